//! Every event of the table, in the variations that matter, made to fit the run it happens to.

use std::time::Duration;

use workflow_core::{
    ActiveRun, Attempt, AttemptFailed, Claimed, Event, Failure, FailureKind, HandedBack, Incarnation, InputHash,
    Jitter, JobId, Outcome, RetryPolicy, Run, StepReturned, Submitted, Timestamp, TurnCame, Value,
};

use super::fixtures::{FUTURE, Facts, INPUT_HASH, MAX_ATTEMPTS, NOW, PAST, Stage};

/// The kinds of event, in the order of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Submitted,
    Claimed,
    TurnCame,
    StepReturned,
    StepFailed,
    HandedBack,
}

impl Kind {
    pub(crate) const ALL: [Self; 6] =
        [Self::Submitted, Self::Claimed, Self::TurnCame, Self::StepReturned, Self::StepFailed, Self::HandedBack];

    pub(crate) fn of(event: &Event) -> Self {
        match event {
            Event::Submitted(_) => Self::Submitted,
            Event::Claimed(_) => Self::Claimed,
            Event::TurnCame(_) => Self::TurnCame,
            Event::StepReturned(_) => Self::StepReturned,
            Event::StepFailed(_) => Self::StepFailed,
            Event::HandedBack(_) => Self::HandedBack,
        }
    }

    pub(crate) fn about(self) -> &'static str {
        match self {
            Self::Submitted => "Somebody submitted the run's id.",
            Self::Claimed => "A doorbell of the run was delivered.",
            Self::TurnCame => "The turn of a parked suspect came.",
            Self::StepReturned => "The runner answered.",
            Self::StepFailed => {
                "The runner failed, panicked or took too long. The retry policy of these rows waits 1 s, without jitter."
            }
            Self::HandedBack => "The runtime shuts down and gives the delivery back.",
        }
    }
}

/// One row kind: an event, told apart by the facts it carries.
pub(crate) struct Case {
    /// What is reported, in a few words.
    pub(crate) what: String,
    /// Which delivery reports it.
    pub(crate) delivery: &'static str,
    at_step_limit: bool,
    event: Box<dyn Fn(&Facts) -> Event>,
}

impl Case {
    /// The run of `stage`, and the event as it happens to it.
    pub(crate) fn at(&self, stage: Stage) -> (Run, Event) {
        let mut run = stage.run();
        if let Run::Active(ActiveRun { step, .. }) = &mut run
            && self.at_step_limit
        {
            *step = u32::MAX;
        }
        let event = (self.event)(&Facts::of(&run));
        (run, event)
    }

    pub(crate) fn kind(&self) -> Kind {
        Kind::of(&self.at(Stage::Ready).1)
    }
}

pub(crate) fn all() -> Vec<Case> {
    [submissions(), claims(), turns(), outcomes(), failures(), hand_backs()].into_iter().flatten().collect()
}

fn case(what: impl Into<String>, delivery: &'static str, event: impl Fn(&Facts) -> Event + 'static) -> Case {
    Case { what: what.into(), delivery, at_step_limit: false, event: Box::new(event) }
}

fn submissions() -> Vec<Case> {
    let submitted = |input_hash, run_at| {
        move |facts: &Facts| {
            Event::Submitted(Submitted {
                incarnation: Incarnation::new(8),
                job: JobId::from("new"),
                input: Value::from("input"),
                input_hash,
                // An absent run has no hash to compare with; its facts say step 0.
                stored_input_hash: (facts.step > 0).then_some(INPUT_HASH),
                now: NOW,
                run_at,
            })
        }
    };
    let other = InputHash([2; 32]);
    vec![
        case("same input", "", submitted(INPUT_HASH, None)),
        case("same input, to run later", "", submitted(INPUT_HASH, Some(FUTURE))),
        case("same input, to run at a time that has passed", "", submitted(INPUT_HASH, Some(PAST))),
        case("other input", "", submitted(other, None)),
        case("other input, to run later", "", submitted(other, Some(FUTURE))),
    ]
}

fn claims() -> Vec<Case> {
    let claimed = |change: fn(&Facts, &mut Claimed)| {
        move |facts: &Facts| {
            let mut event = Claimed {
                incarnation: facts.incarnation,
                job: facts.job.clone(),
                deliveries: facts.delivery(),
                max_attempts: MAX_ATTEMPTS,
                now: NOW,
                next_job: JobId::from("new"),
            };
            change(facts, &mut event);
            Event::Claimed(event)
        }
    };
    vec![
        case("", "the next delivery", claimed(|_, _| {})),
        case(
            "",
            "the next delivery, last attempt",
            claimed(|facts, event| event.max_attempts = facts.attempt_number()),
        ),
        case("", "after one lost delivery", claimed(|_, event| event.deliveries += 1)),
        case("", "after two lost deliveries", claimed(|_, event| event.deliveries += 2)),
        case("", "after as many lost deliveries as attempts", claimed(|_, event| event.deliveries += MAX_ATTEMPTS)),
        case(
            "",
            "attempts used up before it",
            claimed(|facts, event| event.max_attempts = facts.attempt_number().saturating_sub(1)),
        ),
        case("", "overtaken by a later delivery", claimed(|_, event| event.deliveries -= 1)),
        case("", "stale job", claimed(|_, event| event.job = JobId::from("old"))),
        case("", "other incarnation", claimed(|_, event| event.incarnation = Incarnation::new(6))),
    ]
}

/// What is reported by the current attempt, and by attempts that are late or stale.
fn current_late_and_stale(what: &str, event: impl Fn(&Facts, Attempt) -> Event + Clone + 'static) -> Vec<Case> {
    let with = |delivery, change: fn(&mut Attempt)| {
        let event = event.clone();
        case(what, delivery, move |facts| {
            let mut attempt = facts.attempt();
            change(&mut attempt);
            event(facts, attempt)
        })
    };
    vec![
        with("current attempt", |_| {}),
        with("overtaken by a later delivery", |attempt| attempt.deliveries -= 1),
        with("of an earlier step", |attempt| attempt.step = attempt.step.wrapping_sub(1)),
        with("of a stale job", |attempt| attempt.job = JobId::from("old")),
        with("of another incarnation", |attempt| attempt.incarnation = Incarnation::new(6)),
    ]
}

fn turns() -> Vec<Case> {
    current_late_and_stale("", |_, attempt| Event::TurnCame(TurnCame { attempt }))
}

fn outcomes() -> Vec<Case> {
    let returned = |outcome: Outcome, inline: bool| {
        move |_: &Facts, attempt: Attempt| {
            let (outcome, next_job) = (outcome.clone(), JobId::from("new"));
            Event::StepReturned(StepReturned { attempt, outcome, now: NOW, next_job, inline })
        }
    };
    let go_on = |due: Option<Timestamp>| Outcome::Continue { payload: Value::from("next payload"), due };
    let reason = || "why".to_owned();
    let mut cases = Vec::new();
    for (inline, how) in [(true, "inline"), (false, "not inline")] {
        cases.extend(current_late_and_stale(&format!("`Continue` now, {how}"), returned(go_on(None), inline)));
        let delayed = format!("`Continue` later, {how}");
        cases.extend(current_late_and_stale(&delayed, returned(go_on(Some(FUTURE)), inline)));
        let due = format!("`Continue` at a time that has passed, {how}");
        cases.extend(current_late_and_stale(&due, returned(go_on(Some(PAST)), inline)));
        let mut limit =
            current_late_and_stale(&format!("`Continue` at the step limit, {how}"), returned(go_on(None), inline));
        limit.iter_mut().for_each(|case| case.at_step_limit = true);
        cases.extend(limit);
    }
    let ends = [
        ("`Succeed`", Outcome::Succeed { result: Value::from("result") }),
        ("`Fail`", Outcome::Fail { reason: reason() }),
        ("`Cancel`", Outcome::Cancel { reason: reason() }),
    ];
    for (name, outcome) in ends {
        cases.extend(current_late_and_stale(name, returned(outcome, true)));
    }
    cases
}

fn failures() -> Vec<Case> {
    let failed = |kind, retry_after, last: bool| {
        move |facts: &Facts, attempt: Attempt| {
            let base = Duration::from_secs(1);
            Event::StepFailed(AttemptFailed {
                attempt,
                failure: Failure { kind, message: "why".to_owned() },
                retry_after,
                max_attempts: if last { facts.attempt_number() } else { MAX_ATTEMPTS },
                retry: RetryPolicy { base, factor: 1, cap: base, jitter: Jitter::None },
                entropy: 0,
                now: NOW,
                next_job: JobId::from("new"),
            })
        }
    };
    let mut cases = Vec::new();
    for kind in [FailureKind::Transient, FailureKind::Permanent, FailureKind::Panicked, FailureKind::TimedOut] {
        let name = match kind {
            FailureKind::Transient => "transient",
            FailureKind::Permanent => "permanent",
            FailureKind::Panicked => "panic",
            FailureKind::TimedOut => "timeout",
        };
        let left = format!("{name}, attempts left");
        cases.extend(current_late_and_stale(&left, failed(kind, None, false)));
        let last = format!("{name}, last attempt");
        cases.extend(current_late_and_stale(&last, failed(kind, None, true)));
    }
    let overrides = [("10 s", Duration::from_secs(10)), ("0", Duration::ZERO), ("the longest time", Duration::MAX)];
    for (name, wait) in overrides {
        let name = format!("transient, to be retried after {name}");
        cases.extend(current_late_and_stale(&name, failed(FailureKind::Transient, Some(wait), false)));
    }
    cases
}

fn hand_backs() -> Vec<Case> {
    current_late_and_stale("", |_, attempt| {
        Event::HandedBack(HandedBack { attempt, now: NOW, next_job: JobId::from("new") })
    })
}
