//! A sentence for every reason. One list makes both the table of sentences and a match that a new reason breaks.

use workflow_core::Reason;

macro_rules! reasons {
    ($($reason:ident: $sentence:literal,)*) => {
        /// Every reason with its sentence.
        pub(crate) const ALL: &[(Reason, &str)] = &[$((Reason::$reason, $sentence),)*];

        /// The reason's name as the type has it.
        pub(crate) fn name(reason: Reason) -> &'static str {
            match reason {
                $(Reason::$reason => stringify!($reason),)*
            }
        }
    };
}

reasons! {
    Submitted: "The id was free: the run is recorded and its first doorbell rings with the same commit.",
    Duplicate: "The id has a run of the same input, going on or ended: the submitter gets that run, and nothing is written.",
    InputMismatch: "The id has a run of another input: the submitter gets an error, and nothing is written.",
    NoRun: "There is no record: whatever rings or answers is left over from a run that was removed.",
    StaleDoorbell: "The record names another job or incarnation: this one was replaced, and what it carries was committed or given up with it.",
    LateAttempt: "The record counts a later delivery or a later step: another attempt has taken over, and this one's answer must not be committed.",
    NotBegun: "The step waits for a signal, so nothing of it has begun that could answer; and a wait without an end has no doorbell that could ring.",
    RangEarly: "The step is not due: a new doorbell rings at its time. No attempt is used by this delivery; what was lost before it is counted, but for a wait, in which nothing can have started.",
    Started: "The delivery is the next one, so nothing needs to be written before the step starts.",
    StartedAfterLoss: "Deliveries ended without a word: they are fenced before the step starts, and count as one attempt. Only the first of them can have started: any later one would have committed this before.",
    Suspected: "Two deliveries or more that may have started ended without a word, so the step may be what kills its process: it waits for its turn among the suspects, which run one at a time. Lost while it waits, it loses no attempt.",
    AttemptsLost: "No attempt is left, and none of them answered: the run ends without calling the runner again.",
    Advanced: "The next step is due and goes on in the same delivery: one commit, no queue.",
    Continued: "The next step is due and goes through the queue, as the caller asked.",
    Delayed: "The next step has a time to wait for; its doorbell rings then.",
    StepLimit: "The step number cannot rise, so the run ends. What the step staged is not applied: the step did not do what it answered.",
    Succeeded: "The runner ended the run with a result.",
    Failed: "The runner ended the run with an error. It did so on purpose: no dead letter.",
    Cancelled: "The runner gave the run up. It did so on purpose: no dead letter.",
    Retrying: "The attempt failed and attempts are left: another follows after a pause. What the attempt staged is dropped.",
    AttemptsExhausted: "The last attempt failed: the run ends as a dead letter.",
    FailedPermanently: "The runner says that no attempt will help: the run ends as a dead letter, whatever attempts are left.",
    HandedBack: "The attempt was broken off, not failed: a new doorbell rings for it, and it is not counted.",
    Waiting: "No signal is buffered for any of the keys: the slot of each names the run, in the commit that ends the step. A wait without an end has no doorbell.",
    ConsumedBuffered: "A signal is buffered for one of the keys, and it is taken from the first such one: the next step has it and starts at once. Nobody is entered as a waiter.",
    WaitedNoTime: "No signal is buffered, and the time of the wait has passed already: the next step starts at once, without a signal.",
    KeyTaken: "Another run waits for one of the keys. It goes on waiting; this run ends as a dead letter, and what the step staged is not applied. A run that was to be brought back stays ended.",
    Signalled: "The signal ends the wait: the record holds it until the step ends, so every attempt sees the same. All keys of the wait are free, and the step has a new doorbell, which rings at once, unless the run is paused.",
    TimedOut: "The wait is over without a signal. That is written, and its keys are free, before the step starts: no attempt sees a signal that comes later. If the run is paused, the step starts when it is resumed.",
    NobodyWaits: "The run does not wait for the signal, or not any more: it is buffered for whoever does next.",
    CancelRequested: "A step may be in hand: the request is written into the record, and whatever the step does, the run ends as cancelled.",
    CancelPending: "Somebody asked before, and a step may be in hand. The first reason stays, and nothing but the end follows.",
    CancelledOnRequest: "Somebody asked for the end of the run, and no step is in hand, or the one that was has stopped or lost its doorbell. What it answers, and what it staged, is given up.",
    NotCancelled: "Nobody asked for the end of the run, so there is no grace to be over.",
    AlreadyEnded: "The run has ended: nothing but a redrive changes it.",
    EndedAsDeadLetter: "The run ended with this very job as a dead letter, and a crash lost the settlement: it is repeated.",
    NothingOwed: "There is no row: the hook's effects are committed, so whatever rings or answers is left over.",
    HookReturned: "The hook succeeded: the commit that deletes the row applies what the hook staged, once.",
    AlreadyDead: "The hook has had its last call, so nothing that an earlier call answers is committed.",
    PutBack: "The job's deliveries start anew, so an operator put the dead letter back: the hook is called again, with all its attempts. The job of a run says so itself, and the run is redriven from its final step, under a new job, so that this one asks once.",
    Paused: "From now on no step starts. One that is in hand goes on to its end, and a doorbell that is still to ring stays.",
    AlreadyPaused: "Somebody asked before.",
    HeldBack: "The run is paused, so the delivery is done with and uses no attempt; what was lost before it is counted. The record names a job that is in no queue, by which a resumption knows that it has to ring.",
    Resumed: "The run goes on. Its doorbell rings as it would have, or a new one does at the time of the phase; a wait without an end needs none.",
    NotPaused: "The run goes on already.",
    Redriven: "The run goes on from the step that ended it, waiting again for what that waited for, or from an earlier one as it was written down. All its attempts are new; what was committed stays.",
    NotEnded: "The run goes on: there is no end to bring it back from.",
    NothingToRedrive: "The run succeeded, so its last step is over and nothing of it is kept; or it had not come to the step that was asked for.",
    RungAgain: "The run needs a doorbell, and the one that its record names was taken away: another rings. Nothing tells whether the old one was delivered, so no attempt is counted.",
    NotMissed: "The job is not the run's, or not any more, or the run needs no doorbell.",
    Replayed: "An attempt that no later one has overtaken wrote its outcome down: that is applied, and the runner is not called.",
}
