//! Random histories of one run over a model of the queue: deliveries that end without a word, leases that expire under
//! a running attempt, decisions that a crash forgets, early and stale doorbells, hand-backs, outcomes that are written
//! down, waits for signals that come before them, during them or never, cancellations, pauses, redrives, and an operator
//! who takes doorbells away and puts dead ones back.

mod moves;
mod slots;
mod wishes;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use workflow_core::{
    Action, ActiveRun, Attempt, AttemptFailed, CancelGraceOver, Claimed, Effect, Event, Failure, FailureKind,
    HandedBack, Incarnation, JobId, Outcome, Reason, RecordedStep, RetryPolicy, Run, StepReturned, Timestamp,
    Transition, TurnCame, Value, When,
};

use super::config;
use super::invariants::checked;
use moves::{Move, Reply, a_move};
use slots::{KEYS, Slots, key};

/// A delivery that this process still holds something of: it runs, or is parked.
#[derive(Clone, Debug)]
struct Held {
    attempt: Attempt,
    parked: bool,
    /// A later delivery was decided, or the job was replaced.
    overtaken: bool,
    /// What it has written down that it answers.
    answer: Option<Answer>,
}

/// What a runner has answered.
#[derive(Clone, Debug)]
enum Answer {
    Continue(Option<Timestamp>),
    Await { keys: Vec<usize>, until: Option<Timestamp>, taken: bool },
    Succeed,
    GiveUp { cancels: bool },
}

/// An outcome that was written down.
#[derive(Clone, Debug)]
struct Recorded {
    attempt: Attempt,
    answer: Answer,
    overtaken: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Job {
    deliveries: u32,
    claimed: bool,
    requeued: bool,
}

struct World {
    run: Run,
    max_attempts: u32,
    now: Timestamp,
    jobs: BTreeMap<JobId, Job>,
    dead: BTreeSet<JobId>,
    /// The deliveries that are over, until the queue knows: whoever asks for something may come between.
    unsettled: Vec<(JobId, u32, Action)>,
    /// The job that an operator took away.
    removed: Option<JobId>,
    rung: Vec<JobId>,
    held: Vec<Held>,
    recorded: Option<Recorded>,
    /// The steps that are over, as they were when they began.
    history: BTreeMap<u32, RecordedStep>,
    /// The starts of each step after each redrive, those aside that were handed back.
    starts: BTreeMap<(u32, u32), u32>,
    /// Those that nobody counts, because their doorbell was taken away.
    uncounted: BTreeMap<(u32, u32), u32>,
    slots: Slots,
}

type Checked = Result<(), TestCaseError>;

impl World {
    fn new(max_attempts: u32) -> Self {
        let now = Timestamp::from_millis(1_000);
        let (jobs, dead, unsettled, removed, rung, held, recorded) = Default::default();
        let (history, starts, uncounted, slots) = Default::default();
        let run = Run::absent();
        Self {
            run,
            max_attempts,
            now,
            jobs,
            dead,
            unsettled,
            removed,
            rung,
            held,
            recorded,
            history,
            starts,
            uncounted,
            slots,
        }
    }

    fn next_job(&mut self) -> JobId {
        let job = JobId::from(format!("{:04}", self.rung.len()));
        self.rung.push(job.clone());
        job
    }

    fn later(&self, delay_ms: Option<u64>) -> Option<Timestamp> {
        delay_ms.map(|ms| self.now.after(Duration::from_millis(ms)))
    }

    /// Decides, checks what must hold for every decision, and commits.
    fn commit(&mut self, event: Event) -> Result<Transition, TestCaseError> {
        let transition = checked(&self.run, event)?;
        self.slots.commit(&transition)?;
        for effect in &transition.effects {
            match (effect, &self.run) {
                (Effect::EnqueueStep { job, .. }, _) => drop(self.jobs.insert(job.clone(), Job::default())),
                (Effect::DropDoorbell(job), _) => {
                    self.dead.remove(job);
                    // One that somebody holds stays, and is stale.
                    if self.jobs.get(job).is_some_and(|entry| !entry.claimed) {
                        self.jobs.remove(job);
                    }
                }
                (Effect::RecordStep, Run::Active(run)) => {
                    let ActiveRun { step, payload, signal, .. } = run.clone();
                    self.history.insert(step, RecordedStep { step, payload, signal });
                }
                _ => {}
            }
        }
        self.excuse(&transition);
        self.run = transition.next.clone();
        let run = self.run.clone();
        self.overtake(
            |attempt| !matches!(&run, Run::Active(run) if run.job == attempt.job && run.step == attempt.step),
        );
        Ok(transition)
    }

    /// Commits what somebody asked for, and no delivery brought.
    fn wish(&mut self, event: Event) -> Result<Reason, TestCaseError> {
        let transition = self.commit(event)?;
        prop_assert_eq!(transition.action, Action::None);
        Ok(transition.reason)
    }

    /// The doorbell that was taken away may have been delivered, and its attempt begun.
    fn excuse(&mut self, transition: &Transition) {
        if let (Run::Active(before), Run::Active(after)) = (&self.run, &transition.next)
            && before.job != after.job
            && self.removed.take_if(|removed| *removed == before.job).is_some()
            && matches!(transition.reason, Reason::RungAgain | Reason::Resumed)
        {
            *self.uncounted.entry((before.redrive, before.step)).or_default() += 1;
        }
    }

    /// Whatever these attempts report is late from now on.
    fn overtake(&mut self, which: impl Fn(&Attempt) -> bool) {
        self.held.iter_mut().for_each(|held| held.overtaken |= which(&held.attempt));
        self.recorded.iter_mut().for_each(|recorded| recorded.overtaken |= which(&recorded.attempt));
    }

    fn apply(&mut self, next: Move) -> Checked {
        if next == Move::Crash {
            self.unsettled.clear();
        }
        if !next.is_wish() {
            self.settle();
        }
        match next {
            Move::Submit { input, delay_ms } => self.submit(input, delay_ms)?,
            Move::Wait { ms } => self.now = self.now.after(Duration::from_millis(ms)),
            Move::Deliver { forgotten } => self.deliver(forgotten)?,
            Move::DeliverStale { job, deliveries } => self.deliver_stale(job, deliveries)?,
            Move::Turn { attempt } => self.turn(attempt)?,
            Move::Answer { attempt, reply, inline } => self.answer(attempt, reply, inline)?,
            Move::Record { attempt, reply } => self.record(attempt, reply),
            Move::Fail { attempt, kind, retry_after_ms } => self.fail(attempt, kind, retry_after_ms)?,
            Move::HandBack { attempt } => self.hand_back(attempt)?,
            Move::Signal { key } => self.signal(key)?,
            Move::Cancel { overlooked } => self.cancel(overlooked)?,
            Move::GraceOver { attempt } => self.grace_over(attempt)?,
            Move::Pause => self.pause()?,
            Move::Resume { stale } => self.resume(stale)?,
            Move::Redrive { from, payload, taken } => self.redrive(from, payload, taken)?,
            Move::RemoveDoorbell => self.remove_doorbell(),
            Move::MissDoorbell { stale } => self.miss_doorbell(stale)?,
            Move::Requeue => self.requeue(),
            Move::ExpireLease => self.jobs.values_mut().for_each(|job| job.claimed = false),
            Move::Crash => {
                self.held.clear();
                self.jobs.values_mut().for_each(|job| job.claimed = false);
            }
        }
        self.check_doorbell()?;
        self.slots.check(&self.run)?;
        self.slots.check_none_lost()
    }

    fn check_doorbell(&self) -> Checked {
        let Run::Active(active) = &self.run else { return Ok(()) };
        let rings = self.jobs.contains_key(&active.job);
        let removed = self.removed.as_ref() == Some(&active.job);
        prop_assert!(rings || removed || !active.needs_doorbell(), "the run's doorbell is gone");
        // One that was there at the pause may ring in it.
        prop_assert!(!rings || active.paused || active.needs_doorbell(), "a doorbell rings for nothing");
        Ok(())
    }

    /// Delivers a job that nobody has claimed. Forgotten: the process dies before the decision commits.
    fn deliver(&mut self, forgotten: bool) -> Checked {
        let Some((job, entry)) = self.jobs.iter_mut().find(|(_, entry)| !entry.claimed) else { return Ok(()) };
        *entry = Job { deliveries: entry.deliveries + 1, claimed: !forgotten, ..*entry };
        let (job, entry) = (job.clone(), *entry);
        if forgotten { Ok(()) } else { self.claim(job, entry) }
    }

    /// Delivers a job that is settled, or never was in the queue. The run's own is neither.
    fn deliver_stale(&mut self, job: usize, deliveries: u32) -> Checked {
        let is_current = |job: &JobId| matches!(&self.run, Run::Active(run) if run.job == *job);
        let stale = self.rung.get(job).filter(|job| !self.jobs.contains_key(job) && !is_current(job)).cloned();
        let Some(job) = stale else { return Ok(()) };
        let before = self.run.clone();
        self.claim(job, Job { deliveries, ..Job::default() })?;
        prop_assert_eq!(&self.run, &before);
        Ok(())
    }

    fn claim(&mut self, job: JobId, Job { deliveries, requeued, .. }: Job) -> Checked {
        let before = self.run.clone();
        let incarnation = before.incarnation().unwrap_or(Incarnation::new(0));
        let (max_attempts, now, next_job) = (self.max_attempts, self.now, self.next_job());
        let recorded = self.recorded.as_ref().map(|recorded| recorded.attempt.clone());
        let event = Event::Claimed(Claimed {
            incarnation,
            job: job.clone(),
            deliveries,
            max_attempts,
            now,
            next_job,
            recorded,
            requeued,
        });
        let action = self.commit(event)?.action;
        let parked = match action {
            Action::Execute { attempt } => {
                prop_assert!((1..=max_attempts).contains(&attempt));
                false
            }
            Action::Park => true,
            Action::Ack | Action::DeadLetter | Action::Discard => {
                self.unsettled.push((job, deliveries, action));
                return Ok(());
            }
            Action::Replay => false,
            Action::Advance | Action::None => return Err(TestCaseError::fail("no answer to a claim")),
        };
        let Run::Active(active) = &before else { return Err(TestCaseError::fail("started a run that is not active")) };
        let attempt = Attempt { incarnation, step: active.step, job, deliveries };
        if action == Action::Replay {
            return self.replay(attempt);
        }
        prop_assert!(active.phase.due().is_none_or(|due| due <= now), "started before its time");
        self.overtake(|_| true);
        self.held.push(Held { attempt, parked, overtaken: false, answer: None });
        if parked { Ok(()) } else { self.started(active.step) }
    }

    /// Applies what was written down. The claim has written nothing: whatever comes between makes it be decided anew.
    fn replay(&mut self, attempt: Attempt) -> Checked {
        let Some(Recorded { answer, overtaken, .. }) = self.recorded.clone() else {
            return Err(TestCaseError::fail("nothing was written down"));
        };
        prop_assert!(!overtaken, "an attempt had overtaken it");
        let held = Held { attempt, parked: false, overtaken: false, answer: None };
        self.give(held, &answer, true)
    }

    fn started(&mut self, step: u32) -> Checked {
        let Run::Active(run) = &self.run else { return Err(TestCaseError::fail("no run to start a step of")) };
        prop_assert!(!run.paused, "step {} started while the run was paused", step);
        let counts = self.recorded.as_ref().is_some_and(|recorded| !recorded.overtaken);
        prop_assert!(!counts, "step {} had an outcome", step);
        let key = (run.redrive, step);
        let starts = self.starts.entry(key).or_default();
        *starts += 1;
        let limit = self.max_attempts + self.uncounted.get(&key).copied().unwrap_or(0);
        prop_assert!(*starts <= limit, "step {} started {} times", step, starts);
        self.slots.started(&self.run)
    }

    /// Settles what was decided. A job goes only if the delivery still holds it.
    fn settle(&mut self) {
        for (job, deliveries, action) in std::mem::take(&mut self.unsettled) {
            if self.jobs.get(&job).is_some_and(|entry| entry.claimed && entry.deliveries == deliveries) {
                self.jobs.remove(&job);
                if action == Action::DeadLetter {
                    self.dead.insert(job);
                }
            }
        }
    }

    /// Takes an attempt that runs.
    fn running(&mut self, index: usize) -> Option<Held> {
        let running = self.held.iter().enumerate().filter(|(_, held)| !held.parked).map(|(at, _)| at);
        let at = running.clone().cycle().nth(index)?;
        Some(self.held.remove(at))
    }

    fn turn(&mut self, index: usize) -> Checked {
        let parked: Vec<usize> = (0..self.held.len()).filter(|&at| self.held[at].parked).collect();
        let Some(&at) = parked.iter().cycle().nth(index) else { return Ok(()) };
        let held = self.held.remove(at);
        let (attempt, now, next_job) = (held.attempt.clone(), self.now, self.next_job());
        let transition = self.reported(&held, Event::TurnCame(TurnCame { attempt, now, next_job }))?;
        if let Action::Execute { attempt } = transition.action {
            prop_assert!((1..=self.max_attempts).contains(&attempt));
            let step = held.attempt.step;
            self.held.push(Held { parked: false, ..held });
            self.started(step)?;
        }
        Ok(())
    }

    /// What an attempt that was overtaken reports is dropped, and what any other reports is not.
    fn reported(&mut self, held: &Held, event: Event) -> Result<Transition, TestCaseError> {
        let transition = self.commit(event)?;
        prop_assert_eq!(transition.action == Action::Discard, held.overtaken, "{:?} {:?}", held, transition);
        if !matches!(transition.action, Action::Execute { .. } | Action::Advance) {
            self.unsettled.push((held.attempt.job.clone(), held.attempt.deliveries, transition.action));
        }
        Ok(transition)
    }

    /// An attempt that runs answers, as it has written down if it has.
    fn answer(&mut self, index: usize, reply: Reply, inline: bool) -> Checked {
        let Some(held) = self.running(index) else { return Ok(()) };
        let answer = held.answer.clone().unwrap_or_else(|| self.answer_of(reply));
        self.give(held, &answer, inline)
    }

    /// An attempt that runs writes down what it answers, late or not, and takes the place of what was there.
    fn record(&mut self, index: usize, reply: Reply) {
        let answer = self.answer_of(reply);
        let Some(mut held) = self.running(index) else { return };
        if held.answer.is_none() {
            let (attempt, overtaken) = (held.attempt.clone(), held.overtaken);
            self.recorded = Some(Recorded { attempt, answer: answer.clone(), overtaken });
            held.answer = Some(answer);
        }
        self.held.push(held);
    }

    fn answer_of(&self, reply: Reply) -> Answer {
        match reply {
            Reply::Continue { delay_ms } => Answer::Continue(self.later(delay_ms)),
            Reply::Await { keys, timeout_ms, taken } => Answer::Await { keys, until: self.later(timeout_ms), taken },
            Reply::Succeed => Answer::Succeed,
            Reply::GiveUp { cancels } => Answer::GiveUp { cancels },
        }
    }

    /// The outcome that `answer` is by now, for what the slots hold changes.
    fn outcome(&self, answer: &Answer) -> Outcome {
        let go_on = |when| Outcome::Continue { payload: Value::from("next"), when };
        let reason = || "why".to_owned();
        match answer {
            Answer::Continue(due) => go_on(due.map_or(When::Now, When::At)),
            Answer::Await { keys, until, taken } => {
                let keys = keys.iter().map(|index| self.slots.look_up(key(*index), *taken)).collect();
                go_on(When::OnSignal { keys, until: *until })
            }
            Answer::Succeed => Outcome::Succeed { result: Value::from("result") },
            Answer::GiveUp { cancels: true } => Outcome::Cancel { reason: reason() },
            Answer::GiveUp { cancels: false } => Outcome::Fail { reason: reason() },
        }
    }

    fn give(&mut self, mut held: Held, answer: &Answer, inline: bool) -> Checked {
        let (attempt, now, next_job) = (held.attempt.clone(), self.now, self.next_job());
        let outcome = self.outcome(answer);
        let event = Event::StepReturned(StepReturned { attempt, outcome, now, next_job, inline });
        if self.reported(&held, event)?.action == Action::Advance {
            held.attempt.step += 1;
            held.answer = None;
            let step = held.attempt.step;
            self.held.push(held);
            self.started(step)?;
        }
        Ok(())
    }

    fn fail(&mut self, index: usize, kind: FailureKind, retry_after_ms: Option<u64>) -> Checked {
        let Some(held) = self.running(index) else { return Ok(()) };
        if held.answer.is_some() {
            self.held.push(held);
            return Ok(());
        }
        let event = AttemptFailed {
            attempt: held.attempt.clone(),
            failure: Failure { kind, message: "no".to_owned() },
            retry_after: retry_after_ms.map(Duration::from_millis),
            max_attempts: self.max_attempts,
            retry: RetryPolicy { base: Duration::from_millis(10), ..RetryPolicy::default() },
            entropy: u64::MAX / 3,
            now: self.now,
            next_job: self.next_job(),
        };
        self.reported(&held, Event::StepFailed(event))?;
        Ok(())
    }

    /// Hands back an attempt that runs or waits. One that runs and is not late was not counted.
    fn hand_back(&mut self, index: usize) -> Checked {
        let Some(at) = (0..self.held.len()).cycle().nth(index) else { return Ok(()) };
        let held = self.held.remove(at);
        let (attempt, now, next_job) = (held.attempt.clone(), self.now, self.next_job());
        let event = Event::HandedBack(HandedBack { attempt, now, next_job });
        self.reported(&held, event)?;
        if let Run::Active(run) = &self.run
            && !held.overtaken
            && !held.parked
        {
            *self.starts.get_mut(&(run.redrive, held.attempt.step)).expect("it started") -= 1;
        }
        Ok(())
    }

    /// A call that was asked to stop goes on.
    fn grace_over(&mut self, index: usize) -> Checked {
        if !matches!(&self.run, Run::Active(run) if run.cancel.is_some()) {
            return Ok(());
        }
        let Some(held) = self.running(index) else { return Ok(()) };
        let (attempt, now) = (held.attempt.clone(), self.now);
        self.reported(&held, Event::CancelGraceOver(CancelGraceOver { attempt, now }))?;
        Ok(())
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_history_keeps_to_the_limit_and_never_loses_its_doorbell(
        max_attempts in 1..7_u32, moves in vec(a_move(), 0..120),
    ) {
        let mut world = World::new(max_attempts);
        world.apply(Move::Submit { input: 0, delay_ms: None })?;
        for next in moves {
            world.apply(next)?;
        }
    }

    #[test]
    fn a_run_that_is_answered_ends_once_faults_stop(max_attempts in 1..7_u32, moves in vec(a_move(), 0..60)) {
        let mut world = World::new(max_attempts);
        world.apply(Move::Submit { input: 0, delay_ms: None })?;
        for next in moves {
            world.apply(next)?;
        }
        world.apply(Move::Crash)?;
        world.apply(Move::Wait { ms: 1_000_000 })?;
        for _ in 0..200 {
            world.apply(Move::MissDoorbell { stale: 0 })?;
            world.apply(Move::Resume { stale: false })?;
            world.apply(Move::Deliver { forgotten: false })?;
            world.apply(Move::Turn { attempt: 0 })?;
            world.apply(Move::Answer { attempt: 0, reply: Reply::Succeed, inline: true })?;
            for key in 0..KEYS {
                world.apply(Move::Signal { key })?;
            }
        }
        prop_assert!(matches!(world.run, Run::Ended(_)), "{:?}", world.run);
        prop_assert_eq!(world.jobs.len(), 0, "doorbells are left over");
    }
}
