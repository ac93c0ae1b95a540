//! Runs and events of all kinds: plausible, contradictory and extreme. Names come from small pools, so that events
//! often meet the run they are about. Boxed, because nested strategies fill a test's stack.

use std::time::Duration;

use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use workflow_core::{
    ActiveRun, Attempt, AttemptFailed, Attempts, CancelGraceOver, CancelRequest, CancelRequested, Claimed,
    CorrelationKey, DoorbellMissed, EndedRun, Event, Failure, FailureKind, HandedBack, Incarnation, InputHash, Jitter,
    JobId, KeyState, ObjectRef, Outcome, PauseRequested, Phase, RecordedStep, RedriveRequested, Remains, Resumed,
    RetryPolicy, Run, Signal, SignalId, Signalled, Status, StepReturned, Submitted, Timestamp, TurnCame, Value,
    WaitKey, When,
};

pub(crate) fn number() -> BoxedStrategy<u32> {
    prop_oneof![4 => 0..6_u32, 1 => Just(u32::MAX), 1 => Just(u32::MAX - 1), 1 => any::<u32>()].boxed()
}

pub(crate) fn time() -> BoxedStrategy<Timestamp> {
    let time =
        prop_oneof![4 => 0..5_u64, 1 => Just(u64::MAX), 1 => Just(Timestamp::NEVER.as_millis() - 1), 1 => any::<u64>()];
    time.prop_map(Timestamp::from_millis).boxed()
}

pub(crate) fn duration() -> BoxedStrategy<Duration> {
    prop_oneof![
        3 => (0..5_u64).prop_map(Duration::from_millis),
        1 => Just(Duration::MAX),
        1 => (0..5_u64).prop_map(Duration::from_nanos),
        1 => (any::<u64>(), 0..1_000_000_000_u32).prop_map(|(seconds, nanos)| Duration::new(seconds, nanos)),
    ]
    .boxed()
}

pub(crate) fn job() -> impl Strategy<Value = JobId> + Clone {
    prop_oneof![3 => Just("a"), 1 => Just("b")].prop_map(JobId::from)
}

fn incarnation() -> impl Strategy<Value = Incarnation> + Clone {
    prop_oneof![5 => Just(1), 1 => Just(2)].prop_map(Incarnation::new)
}

/// Values that the run names, that its history or a signal does, or that an event brings: objects are written under
/// fresh names.
fn value(owner: &'static str) -> BoxedStrategy<Value> {
    let object = move |name: u8| Value::Object(ObjectRef { path: format!("{owner}/{name}"), len: u64::MAX });
    prop_oneof![any::<u8>().prop_map(|byte| Value::from(vec![byte])), any::<u8>().prop_map(object)].boxed()
}

pub(crate) fn policy() -> BoxedStrategy<RetryPolicy> {
    let jitter = prop_oneof![Just(Jitter::Full), Just(Jitter::None)];
    (duration(), number(), duration(), jitter)
        .prop_map(|(base, factor, cap, jitter)| RetryPolicy { base, factor, cap, jitter })
        .boxed()
}

pub(crate) fn attempts() -> BoxedStrategy<Attempts> {
    (number(), number(), number(), any::<bool>())
        .prop_map(|(used, base, lost, parked)| Attempts { used, base, lost, parked })
        .boxed()
}

pub(crate) fn kind() -> impl Strategy<Value = FailureKind> + Clone {
    prop_oneof![
        Just(FailureKind::Transient),
        Just(FailureKind::Permanent),
        Just(FailureKind::Panicked),
        Just(FailureKind::TimedOut)
    ]
}

pub(crate) fn run() -> BoxedStrategy<Run> {
    prop_oneof![1 => Just(Run::absent()), 6 => active().prop_map(Run::Active), 2 => ended().prop_map(Run::Ended)]
        .boxed()
}

/// How often a run was brought back. Nothing counts to the last number.
fn redrive() -> impl Strategy<Value = u32> + Clone {
    prop_oneof![0..3_u32, Just(u32::MAX - 1)]
}

/// Up to the last revision but one: nothing counts to the last.
fn revision() -> impl Strategy<Value = u64> + Clone {
    prop_oneof![0..5_u64, Just(u64::MAX - 1), 0..u64::MAX]
}

fn key() -> impl Strategy<Value = CorrelationKey> + Clone {
    prop_oneof![3 => Just("a"), 2 => Just("b"), 1 => Just("c")]
        .prop_map(|key| CorrelationKey::parse(key).expect("a short text is a key"))
}

/// One key or more, each once.
fn keys() -> BoxedStrategy<Vec<CorrelationKey>> {
    btree_set(key(), 1..4).prop_map(|keys| keys.into_iter().collect::<Vec<_>>()).prop_shuffle().boxed()
}

fn signal(owner: &'static str) -> impl Strategy<Value = Signal> {
    (any::<u128>(), key(), value(owner)).prop_map(|(id, key, payload)| Signal { id: SignalId::new(id), key, payload })
}

fn reason() -> impl Strategy<Value = Option<String>> + Clone {
    option::of(prop_oneof![Just("no"), Just("enough")].prop_map(str::to_owned))
}

pub(crate) fn phase() -> BoxedStrategy<Phase> {
    prop_oneof![
        Just(Phase::Ready),
        time().prop_map(|until| Phase::BackingOff { until }),
        time().prop_map(|until| Phase::Delayed { until }),
        waiting(),
    ]
    .boxed()
}

pub(crate) fn waiting() -> BoxedStrategy<Phase> {
    (keys(), option::of(time())).prop_map(|(keys, until)| Phase::Waiting { keys, until }).boxed()
}

pub(crate) fn active() -> BoxedStrategy<ActiveRun> {
    active_in(phase())
}

pub(crate) fn active_in(phase: BoxedStrategy<Phase>) -> BoxedStrategy<ActiveRun> {
    let cancel = option::weighted(0.3, reason().prop_map(|reason| CancelRequest { reason }));
    let held = (value("run"), option::of(signal("run")), attempts(), cancel, prop::bool::weighted(0.3));
    let record = (revision(), incarnation(), redrive(), time());
    (record, number(), job(), phase, held)
        .prop_map(|(record, step, job, phase, (payload, signal, attempts, cancel, paused))| {
            let (revision, incarnation, redrive, since) = record;
            let signal = signal.filter(|_| has_begun(&phase));
            ActiveRun {
                revision,
                incarnation,
                redrive,
                since,
                step,
                job,
                phase,
                payload,
                signal,
                attempts,
                cancel,
                paused,
            }
        })
        .boxed()
}

/// The one thing that no record says: a step that waits has a signal already.
fn has_begun(phase: &Phase) -> bool {
    !matches!(phase, Phase::Waiting { .. })
}

fn remains() -> BoxedStrategy<Remains> {
    (value("run"), option::of(signal("run")), phase())
        .prop_map(|(payload, signal, phase)| {
            let signal = signal.filter(|_| has_begun(&phase));
            Remains { payload, signal, phase }
        })
        .boxed()
}

/// A run with a result, or with remains.
pub(crate) fn ended() -> BoxedStrategy<EndedRun> {
    let succeeded = value("run").prop_map(|result| (Status::Succeeded, Some(result), None));
    let status = prop_oneof![Just(Status::Failed), Just(Status::Cancelled)];
    let other = (status, remains()).prop_map(|(status, remains)| (status, None, Some(remains)));
    let end = prop_oneof![1 => succeeded, 3 => other];
    (revision(), incarnation(), redrive(), end, number(), time(), job(), any::<bool>())
        .prop_map(|(revision, incarnation, redrive, end, final_step, ended_at, final_job, dead_letter)| {
            let (status, result, remains) = end;
            let error = (status != Status::Succeeded).then(|| "no".to_owned());
            EndedRun {
                revision,
                incarnation,
                status,
                result,
                error,
                final_step,
                ended_at,
                final_job,
                dead_letter,
                redrive,
                remains,
            }
        })
        .boxed()
}

pub(crate) fn attempt() -> BoxedStrategy<Attempt> {
    (incarnation(), number(), job(), number())
        .prop_map(|(incarnation, step, job, deliveries)| Attempt { incarnation, step, job, deliveries })
        .boxed()
}

fn next_job() -> impl Strategy<Value = JobId> + Clone {
    Just(JobId::from("next"))
}

pub(crate) fn event() -> BoxedStrategy<Event> {
    let wishes = prop_oneof![cancel_requested(), pause_requested(), resumed(), redrive_requested()];
    prop_oneof![2 => submitted(), 3 => claimed(), 5 => attempt_event(), 2 => signalled(), 4 => wishes, 1 => doorbell_missed()]
        .boxed()
}

/// Events about one attempt.
pub(crate) fn attempt_event() -> BoxedStrategy<Event> {
    prop_oneof![turn_came(), step_returned(), step_failed(), handed_back(), cancel_grace_over()].boxed()
}

/// The attempt that the event is about.
pub(crate) fn attempt_of(event: &mut Event) -> Option<&mut Attempt> {
    match event {
        Event::Submitted(_)
        | Event::Claimed(_)
        | Event::Signalled(_)
        | Event::CancelRequested(_)
        | Event::PauseRequested(_)
        | Event::Resumed(_)
        | Event::RedriveRequested(_)
        | Event::DoorbellMissed(_) => None,
        Event::TurnCame(event) => Some(&mut event.attempt),
        Event::StepReturned(event) => Some(&mut event.attempt),
        Event::StepFailed(event) => Some(&mut event.attempt),
        Event::HandedBack(event) => Some(&mut event.attempt),
        Event::CancelGraceOver(event) => Some(&mut event.attempt),
    }
}

/// `event`, made to fit `run`: it is about the current attempt, the next delivery, the wait that goes on.
pub(crate) fn aimed(mut event: Event, run: &ActiveRun) -> Event {
    let (incarnation, step, job) = (run.incarnation, run.step, run.job.clone());
    let next_delivery = |deliveries: u32| deliveries.max(run.attempts.base.saturating_add(1));
    if let Some(attempt) = attempt_of(&mut event) {
        *attempt = Attempt { incarnation, step, job, deliveries: next_delivery(attempt.deliveries) };
        return event;
    }
    match event {
        Event::Claimed(event) => {
            let deliveries = next_delivery(event.deliveries);
            // Some of them were overtaken.
            let recorded = event.recorded.map(|Attempt { deliveries, .. }| {
                let job = job.clone();
                Attempt { incarnation, step, job, deliveries: deliveries.saturating_add(run.attempts.base / 2) }
            });
            Event::Claimed(Claimed { incarnation, job, deliveries, recorded, ..event })
        }
        Event::Signalled(event) => Event::Signalled(Signalled { incarnation, step, ..event }),
        Event::DoorbellMissed(event) => Event::DoorbellMissed(DoorbellMissed { job, ..event }),
        event => event,
    }
}

/// `event`, made to fit a run that is over: it is about its final job, and about the keys that it waited for.
pub(crate) fn aimed_at_end(event: Event, run: &EndedRun) -> Event {
    match event {
        Event::Claimed(event) => {
            Event::Claimed(Claimed { incarnation: run.incarnation, job: run.final_job.clone(), ..event })
        }
        Event::RedriveRequested(event) => {
            let from = event.from.map(|from| RecordedStep { step: from.step.min(run.final_step), ..from });
            let phase = run.remains.as_ref().map(|remains| &remains.phase);
            let keys = if let Some(Phase::Waiting { keys, .. }) = phase { keys.as_slice() } else { &[] };
            // What the slots hold is drawn for other keys; beyond those, they hold nothing.
            let states = event.keys.into_iter().map(|key| key.state).chain(std::iter::repeat(KeyState::Free));
            let keys = keys.iter().cloned().zip(states).map(|(key, state)| wait_key(key, state)).collect();
            Event::RedriveRequested(RedriveRequested { from, keys, ..event })
        }
        event => event,
    }
}

/// `event`, aimed at `run` on request.
pub(crate) fn event_at(run: &Run, event: Event, aim: bool) -> Event {
    match run {
        Run::Active(active) if aim => aimed(event, active),
        Run::Ended(ended) if aim => aimed_at_end(event, ended),
        Run::Absent | Run::Active(_) | Run::Ended(_) => event,
    }
}

fn submitted() -> BoxedStrategy<Event> {
    let hash = prop_oneof![Just(InputHash([1; 32])), Just(InputHash([2; 32]))];
    (incarnation(), value("event"), hash.clone(), option::of(hash), time(), option::of(time()))
        .prop_map(|(incarnation, input, input_hash, stored_input_hash, now, run_at)| {
            let job = JobId::from("next");
            Event::Submitted(Submitted { incarnation, job, input, input_hash, stored_input_hash, now, run_at })
        })
        .boxed()
}

pub(crate) fn claimed() -> BoxedStrategy<Event> {
    let recorded = option::weighted(0.2, attempt());
    (incarnation(), job(), number(), number(), time(), next_job(), recorded, any::<bool>())
        .prop_map(|(incarnation, job, deliveries, max_attempts, now, next_job, recorded, requeued)| {
            Event::Claimed(Claimed { incarnation, job, deliveries, max_attempts, now, next_job, recorded, requeued })
        })
        .boxed()
}

fn turn_came() -> BoxedStrategy<Event> {
    (attempt(), time(), next_job())
        .prop_map(|(attempt, now, next_job)| Event::TurnCame(TurnCame { attempt, now, next_job }))
        .boxed()
}

fn cancel_grace_over() -> BoxedStrategy<Event> {
    (attempt(), time()).prop_map(|(attempt, now)| Event::CancelGraceOver(CancelGraceOver { attempt, now })).boxed()
}

pub(crate) fn cancel_requested() -> BoxedStrategy<Event> {
    (reason(), any::<bool>(), time())
        .prop_map(|(reason, in_hand, now)| Event::CancelRequested(CancelRequested { reason, in_hand, now }))
        .boxed()
}

pub(crate) fn pause_requested() -> BoxedStrategy<Event> {
    time().prop_map(|now| Event::PauseRequested(PauseRequested { now })).boxed()
}

pub(crate) fn resumed() -> BoxedStrategy<Event> {
    (any::<bool>(), time(), next_job())
        .prop_map(|(has_doorbell, now, next_job)| Event::Resumed(Resumed { has_doorbell, now, next_job }))
        .boxed()
}

pub(crate) fn redrive_requested() -> BoxedStrategy<Event> {
    let from = (number(), value("history"), option::of(signal("history")))
        .prop_map(|(step, payload, signal)| RecordedStep { step, payload, signal });
    (option::of(from), option::of(value("event")), wait_keys(), time(), next_job())
        .prop_map(|(from, payload, keys, now, next_job)| {
            Event::RedriveRequested(RedriveRequested { from, payload, keys, now, next_job })
        })
        .boxed()
}

pub(crate) fn doorbell_missed() -> BoxedStrategy<Event> {
    (job(), time(), next_job())
        .prop_map(|(job, now, next_job)| Event::DoorbellMissed(DoorbellMissed { job, now, next_job }))
        .boxed()
}

pub(crate) fn signalled() -> BoxedStrategy<Event> {
    (signal("signal"), incarnation(), number(), time(), next_job())
        .prop_map(|(signal, incarnation, step, now, next_job)| {
            Event::Signalled(Signalled { signal, incarnation, step, now, next_job })
        })
        .boxed()
}

/// A key whose slot holds `state`: a signal on it, if any.
fn wait_key(key: CorrelationKey, state: KeyState) -> WaitKey {
    match state {
        KeyState::Free | KeyState::Taken => WaitKey { key, state },
        KeyState::Buffered(signal) => {
            let signal = Signal { key: key.clone(), ..signal };
            WaitKey { key, state: KeyState::Buffered(signal) }
        }
    }
}

/// One key or more, whatever their slots hold. Sometimes a key is named twice, or none is.
fn wait_keys() -> BoxedStrategy<Vec<WaitKey>> {
    let state = prop_oneof![
        4 => Just(KeyState::Free),
        1 => Just(KeyState::Taken),
        2 => signal("event").prop_map(KeyState::Buffered),
    ];
    vec((key(), state).prop_map(|(key, state)| wait_key(key, state)), 0..4).boxed()
}

fn on_signal() -> BoxedStrategy<When> {
    (wait_keys(), option::of(time())).prop_map(|(keys, until)| When::OnSignal { keys, until }).boxed()
}

pub(crate) fn outcome() -> BoxedStrategy<Outcome> {
    let when = prop_oneof![1 => Just(When::Now), 1 => time().prop_map(When::At), 2 => on_signal()];
    prop_oneof![
        4 => (value("event"), when).prop_map(|(payload, when)| Outcome::Continue { payload, when }),
        1 => value("event").prop_map(|result| Outcome::Succeed { result }),
        1 => Just(Outcome::Fail { reason: "no".to_owned() }),
        1 => Just(Outcome::Cancel { reason: "no".to_owned() }),
    ]
    .boxed()
}

pub(crate) fn step_returned() -> BoxedStrategy<Event> {
    (attempt(), outcome(), time(), next_job(), any::<bool>())
        .prop_map(|(attempt, outcome, now, next_job, inline)| {
            Event::StepReturned(StepReturned { attempt, outcome, now, next_job, inline })
        })
        .boxed()
}

pub(crate) fn attempt_failed() -> BoxedStrategy<AttemptFailed> {
    let failure = kind().prop_map(|kind| Failure { kind, message: "no".to_owned() });
    (attempt(), failure, option::of(duration()), number(), policy(), any::<u64>(), time(), next_job())
        .prop_map(|(attempt, failure, retry_after, max_attempts, retry, entropy, now, next_job)| AttemptFailed {
            attempt,
            failure,
            retry_after,
            max_attempts,
            retry,
            entropy,
            now,
            next_job,
        })
        .boxed()
}

fn step_failed() -> BoxedStrategy<Event> {
    attempt_failed().prop_map(Event::StepFailed).boxed()
}

fn handed_back() -> BoxedStrategy<Event> {
    (attempt(), time(), next_job())
        .prop_map(|(attempt, now, next_job)| Event::HandedBack(HandedBack { attempt, now, next_job }))
        .boxed()
}
