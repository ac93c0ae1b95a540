//! Every event of the table, in the variations that matter, made to fit the run it happens to.

use std::time::Duration;

use workflow_core::{
    ActiveRun, Attempt, AttemptFailed, CancelGraceOver, CancelRequested, Claimed, DoorbellMissed, Event,
    EventKind as Kind, Failure, FailureKind, HandedBack, Incarnation, InputHash, Jitter, JobId, KeyState, Outcome,
    PauseRequested, PhaseKind as Stage, RecordedStep, RedriveRequested, Resumed, RetryPolicy, Run, Signalled,
    StepReturned, Submitted, Timestamp, TurnCame, Value, WaitKey, When,
};

use super::fixtures::{FUTURE, Facts, INPUT_HASH, MAX_ATTEMPTS, NOW, PAST, STEP, key, run_in, signal};

/// What kind of event it is, in a sentence.
pub(crate) fn about(kind: Kind) -> &'static str {
    match kind {
        Kind::Submitted => "Somebody submitted the run's id.",
        Kind::Claimed => "A doorbell of the run was delivered.",
        Kind::TurnCame => "The turn of a parked suspect came.",
        Kind::StepReturned => "The runner answered.",
        Kind::StepFailed => {
            "The runner failed, panicked or took too long. The retry policy of these rows waits 1 s, without jitter."
        }
        Kind::HandedBack => "The runtime shuts down and gives the delivery back.",
        Kind::Signalled => "A signal came for a key whose slot names the run.",
        Kind::CancelRequested => "Somebody asked for the end of the run.",
        Kind::CancelGraceOver => {
            "The runner did not return in time after its token fired. Rows with `NotCancelled` follow from no history."
        }
        Kind::PauseRequested => "Somebody asked that no step of the run start.",
        Kind::Resumed => "Somebody asked that a paused run go on.",
        Kind::RedriveRequested => {
            "Somebody asked that a run that has ended go on. Only a run that was cancelled waiting looks at its keys."
        }
        Kind::DoorbellMissed => "Somebody looked for the run's doorbell, and it is not there.",
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
        let mut run = run_in(stage);
        if let Run::Active(ActiveRun { step, .. }) = &mut run
            && self.at_step_limit
        {
            *step = u32::MAX;
        }
        let event = (self.event)(&Facts::of(&run));
        (run, event)
    }

    pub(crate) fn kind(&self) -> Kind {
        self.at(Stage::Ready).1.kind()
    }
}

pub(crate) fn all() -> Vec<Case> {
    let of_attempts = [turns(), outcomes(), waits(), failures(), hand_backs()];
    let of_others = [signals(), cancellations(), graces(), pauses(), resumptions(), redrives(), missed_doorbells()];
    [submissions(), claims()].into_iter().chain(of_attempts).chain(of_others).flatten().collect()
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

/// Makes another claim of the next delivery.
type ChangeOfClaim = fn(&Facts, &mut Claimed);

fn claims() -> Vec<Case> {
    let deliveries: [(&str, ChangeOfClaim); 9] = [
        ("the next delivery", |_, _| {}),
        ("the next delivery, last attempt", |facts, event| event.max_attempts = facts.attempt_number()),
        ("after one lost delivery", |_, event| event.deliveries += 1),
        ("after two lost deliveries", |_, event| event.deliveries += 2),
        ("after as many lost deliveries as attempts", |_, event| event.deliveries += MAX_ATTEMPTS),
        ("attempts used up before it", |facts, event| event.max_attempts = facts.attempt_number().saturating_sub(1)),
        ("overtaken by a later delivery", |_, event| event.deliveries -= 1),
        ("stale job", |_, event| event.job = JobId::from("old")),
        ("other incarnation", |_, event| event.incarnation = Incarnation::new(6)),
    ];
    let mut cases = Vec::new();
    for (delivery, change) in deliveries {
        for (what, found) in findings() {
            cases.push(case(what, delivery, move |facts| {
                let mut event = Claimed {
                    incarnation: facts.incarnation,
                    job: facts.job.clone(),
                    deliveries: facts.delivery(),
                    max_attempts: MAX_ATTEMPTS,
                    now: NOW,
                    next_job: JobId::from("new"),
                    recorded: None,
                    requeued: false,
                };
                change(facts, &mut event);
                found(facts, &mut event);
                Event::Claimed(event)
            }));
        }
    }
    cases
}

/// What a delivery finds: an outcome that an attempt had written down, or that an operator had its job put back.
fn findings() -> [(&'static str, ChangeOfClaim); 7] {
    fn recorded(facts: &Facts, change: impl FnOnce(&mut Attempt)) -> Option<Attempt> {
        let mut attempt = facts.attempt();
        change(&mut attempt);
        Some(attempt)
    }
    [
        ("nothing recorded", |_, _| {}),
        ("outcome recorded", |facts, event| event.recorded = recorded(facts, |_| {})),
        ("outcome recorded, overtaken", |facts, event| {
            event.recorded = recorded(facts, |attempt| attempt.deliveries -= 1);
        }),
        ("outcome of an earlier step recorded", |facts, event| {
            event.recorded = recorded(facts, |attempt| attempt.step = attempt.step.wrapping_sub(1));
        }),
        ("outcome of a stale job recorded", |facts, event| {
            event.recorded = recorded(facts, |attempt| attempt.job = JobId::from("old"));
        }),
        ("outcome of another incarnation recorded", |facts, event| {
            event.recorded = recorded(facts, |attempt| attempt.incarnation = Incarnation::new(6));
        }),
        ("put back by an operator", |_, event| event.requeued = true),
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
    current_late_and_stale("", |_, attempt| {
        Event::TurnCame(TurnCame { attempt, now: NOW, next_job: JobId::from("new") })
    })
}

fn returned(outcome: Outcome, inline: bool) -> impl Fn(&Facts, Attempt) -> Event + Clone {
    move |_: &Facts, attempt: Attempt| {
        let (outcome, next_job) = (outcome.clone(), JobId::from("new"));
        Event::StepReturned(StepReturned { attempt, outcome, now: NOW, next_job, inline })
    }
}

fn go_on(when: When) -> Outcome {
    Outcome::Continue { payload: Value::from("next payload"), when }
}

fn outcomes() -> Vec<Case> {
    let reason = || "why".to_owned();
    let mut cases = Vec::new();
    for (inline, how) in [(true, "inline"), (false, "not inline")] {
        cases.extend(current_late_and_stale(&format!("`Continue` now, {how}"), returned(go_on(When::Now), inline)));
        let delayed = format!("`Continue` later, {how}");
        cases.extend(current_late_and_stale(&delayed, returned(go_on(When::At(FUTURE)), inline)));
        let due = format!("`Continue` at a time that has passed, {how}");
        cases.extend(current_late_and_stale(&due, returned(go_on(When::At(PAST)), inline)));
        let mut limit =
            current_late_and_stale(&format!("`Continue` at the step limit, {how}"), returned(go_on(When::Now), inline));
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

/// What a wait finds in the slots of its keys, in the order in which it names them.
fn waits() -> Vec<Case> {
    let (free, taken) = (KeyState::Free, KeyState::Taken);
    let buffered = |on| KeyState::Buffered(signal(on, "buffered"));
    let wait = |states: &[(&str, &KeyState)], until: Option<Timestamp>| {
        let keys = states.iter().map(|(on, state)| WaitKey { key: key(on), state: (*state).clone() }).collect();
        go_on(When::OnSignal { keys, until })
    };
    let (c, d) = (&buffered("c"), &buffered("d"));
    let waits = [
        ("`OnSignal`, *c* free", wait(&[("c", &free)], Some(FUTURE))),
        ("`OnSignal`, *c* free, without end", wait(&[("c", &free)], None)),
        ("`OnSignal`, *c* free, until a time that has passed", wait(&[("c", &free)], Some(PAST))),
        ("`OnSignal`, *c* taken", wait(&[("c", &taken)], Some(FUTURE))),
        ("`OnSignal`, *c* buffered", wait(&[("c", c)], Some(FUTURE))),
        ("`OnSignal`, *c* buffered, until a time that has passed", wait(&[("c", c)], Some(PAST))),
        ("`OnSignal`, *c* and *d* free", wait(&[("c", &free), ("d", &free)], Some(FUTURE))),
        ("`OnSignal`, *c* free, *d* buffered", wait(&[("c", &free), ("d", d)], Some(FUTURE))),
        ("`OnSignal`, *c* and *d* buffered", wait(&[("c", c), ("d", d)], Some(FUTURE))),
        ("`OnSignal`, *c* buffered, *d* taken", wait(&[("c", c), ("d", &taken)], Some(FUTURE))),
    ];
    let mut cases = Vec::new();
    for (name, outcome) in waits {
        for (inline, how) in [(true, "inline"), (false, "not inline")] {
            cases.extend(current_late_and_stale(&format!("{name}, {how}"), returned(outcome.clone(), inline)));
        }
    }
    let mut limit = current_late_and_stale("`OnSignal` at the step limit", returned(wait(&[("c", c)], None), true));
    limit.iter_mut().for_each(|case| case.at_step_limit = true);
    cases.extend(limit);
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

fn signals() -> Vec<Case> {
    let signalled = |change: fn(&mut Signalled)| {
        move |facts: &Facts| {
            let (incarnation, step, next_job) = (facts.incarnation, facts.step, JobId::from("new"));
            let mut event = Signalled { signal: signal("a", "signal"), incarnation, step, now: NOW, next_job };
            change(&mut event);
            Event::Signalled(event)
        }
    };
    vec![
        case("a signal on a key that is waited for", "", signalled(|_| {})),
        case("a signal on another key", "", signalled(|event| event.signal = signal("c", "signal"))),
        case("one whose slot names an earlier step", "", signalled(|event| event.step = event.step.wrapping_sub(1))),
        case(
            "one whose slot names another incarnation",
            "",
            signalled(|event| event.incarnation = Incarnation::new(6)),
        ),
    ]
}

fn cancellations() -> Vec<Case> {
    let requested = |in_hand| {
        move |_: &Facts| {
            let reason = Some("why".to_owned());
            Event::CancelRequested(CancelRequested { reason, in_hand, now: NOW })
        }
    };
    vec![
        case("nobody holds the doorbell", "", requested(false)),
        case("somebody may hold the doorbell", "", requested(true)),
    ]
}

fn graces() -> Vec<Case> {
    current_late_and_stale("", |_, attempt| Event::CancelGraceOver(CancelGraceOver { attempt, now: NOW }))
}

fn pauses() -> Vec<Case> {
    vec![case("", "", |_: &Facts| Event::PauseRequested(PauseRequested { now: NOW }))]
}

fn resumptions() -> Vec<Case> {
    let resumed = |has_doorbell| {
        move |_: &Facts| Event::Resumed(Resumed { has_doorbell, now: NOW, next_job: JobId::from("new") })
    };
    vec![
        case("the job *current* is there", "", resumed(true)),
        case("the job *current* is not there", "", resumed(false)),
    ]
}

fn redrives() -> Vec<Case> {
    let redriven = |change: fn(&mut RedriveRequested)| {
        move |_: &Facts| {
            let free = |on| WaitKey { key: key(on), state: KeyState::Free };
            let keys = vec![free("a"), free("b")];
            let next_job = JobId::from("new");
            let mut event = RedriveRequested { from: None, payload: None, keys, now: NOW, next_job };
            change(&mut event);
            Event::RedriveRequested(event)
        }
    };
    vec![
        case("from the final step", "", redriven(|_| {})),
        case("from the final step, *b* taken", "", redriven(|event| event.keys[1].state = KeyState::Taken)),
        case(
            "from the final step, *b* buffered",
            "",
            redriven(|event| event.keys[1].state = KeyState::Buffered(signal("b", "buffered"))),
        ),
        case("from the final step, its time over", "", redriven(|event| event.now = FUTURE)),
        case("from the final step, by its number", "", redriven(|event| event.from = Some(recorded(STEP)))),
        case("from the final step, with a payload", "", redriven(|event| event.payload = Some("new payload".into()))),
        case("from an earlier step", "", redriven(|event| event.from = Some(recorded(STEP - 1)))),
        case(
            "from an earlier step, with a payload",
            "",
            redriven(|event| {
                event.from = Some(recorded(STEP - 1));
                event.payload = Some("new payload".into());
            }),
        ),
        case(
            "from an earlier step, without a signal",
            "",
            redriven(|event| event.from = Some(RecordedStep { signal: None, ..recorded(STEP - 1) })),
        ),
        case("from a later step", "", redriven(|event| event.from = Some(recorded(STEP + 1)))),
    ]
}

/// A step that is over, as it was written down.
fn recorded(step: u32) -> RecordedStep {
    RecordedStep { step, payload: "recorded payload".into(), signal: Some(signal("c", "recorded signal")) }
}

fn missed_doorbells() -> Vec<Case> {
    let missed = |job: &'static str| {
        move |_: &Facts| {
            Event::DoorbellMissed(DoorbellMissed { job: job.into(), now: NOW, next_job: JobId::from("new") })
        }
    };
    vec![case("the job *current*", "", missed("current")), case("a stale job", "", missed("old"))]
}
