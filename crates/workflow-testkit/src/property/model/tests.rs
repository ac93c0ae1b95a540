//! The model is sharp: each promise that is broken is told, and what is allowed is not.

mod hooks;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use workflow_runtime::{
    CancelOutcome, Error, NoopTerminalHook, PauseOutcome, RedriveOutcome, ResumeOutcome, RunOutcome, RunPhase, RunSpec,
    RunState, RunStatus, Settings, SignalOutcome, Step, StepError, StepOutcome, StepRunner, SubmitOutcome,
    TerminalStatus,
};

use super::{Asked, Model, Verdict};
use crate::Sim;
use crate::sim::{Event, Place, Signal};

const RUN: &str = "run-0";
const DAY: Duration = Duration::from_secs(24 * 3_600);

struct Succeeds;

impl StepRunner for Succeeds {
    async fn run_step(&self, _: &Step) -> Result<StepOutcome, StepError> {
        Ok(StepOutcome::Succeed { result: Vec::new() })
    }
}

/// What a real run is answered, seen and ended with: nobody else can make these.
#[derive(Clone)]
struct Real {
    submitted: SubmitOutcome,
    status: RunStatus,
    end: RunOutcome,
}

fn real() -> Real {
    let told = Arc::new(Mutex::new(None));
    let tell = told.clone();
    Sim::run(0, move |sim| {
        let told = tell.clone();
        async move {
            let runtime = sim.start(Succeeds, NoopTerminalHook);
            let spec = RunSpec { run_id: Some(RUN.to_owned()), ..RunSpec::default() };
            let submitted = runtime.submit(spec).await.unwrap();
            let end = runtime.wait(RUN).await.unwrap();
            let status = runtime.status(RUN).await.unwrap().unwrap();
            *told.lock().unwrap() = Some(Real { submitted, status, end });
        }
    });
    let real = told.lock().unwrap().take();
    real.unwrap()
}

fn changed<T: Clone>(value: &T, change: impl FnOnce(&mut T)) -> T {
    let mut value = value.clone();
    change(&mut value);
    value
}

/// The run, were it at this step and due.
fn active(real: &Real, step: u32, state: RunState) -> RunStatus {
    changed(&real.status, |status| (status.step, status.state, status.phase) = (step, state, RunPhase::Ready))
}

fn asked(events: usize) -> Asked<'static> {
    Asked { run_id: RUN, again: false, now: SystemTime::UNIX_EPOCH, events }
}

/// A model that knows of one run.
fn submitted(real: &Real) -> Model {
    let mut model = Model::new(&Settings::default());
    submit(&mut model, &asked(0), b"", &Ok(real.submitted.clone())).unwrap();
    model
}

fn submit(
    model: &mut Model,
    asked: &Asked<'_>,
    input: &[u8],
    answer: &workflow_runtime::Result<SubmitOutcome>,
) -> Verdict {
    model.submitted(asked, input, &BTreeMap::new(), answer)
}

/// The promise is told as broken, in words with these in them.
#[track_caller]
fn broken(verdict: Verdict, words: &str) {
    let told = verdict.unwrap_err();
    assert!(told.contains(words), "{told}");
}

fn starts(step: u32, signal: Option<&str>) -> Event {
    let place = Place { run_id: RUN.to_owned(), step: Some(step) };
    let signal = signal.map(|payload| Signal { key: "k".to_owned(), payload: payload.into() });
    Event::Started(place, 1, signal)
}

#[test]
fn one_run_per_id() {
    let real = real();
    let (mut model, duplicate) =
        (submitted(&real), changed(&real.submitted, |outcome| outcome.newly_submitted = false));
    broken(submit(&mut model, &asked(0), b"", &Ok(real.submitted)), "was submitted before");
    broken(submit(&mut model, &asked(0), b"x", &Ok(duplicate.clone())), "was submitted before");
    broken(submit(&mut model, &asked(0), b"", &Err(Error::InputMismatch(RUN.to_owned()))), "was submitted before");
    submit(&mut model, &asked(0), b"", &Ok(duplicate.clone())).unwrap();
    submit(&mut model, &asked(0), b"x", &Err(Error::InputMismatch(RUN.to_owned()))).unwrap();
    let mut nobody = Model::new(&Settings::default());
    broken(submit(&mut nobody, &asked(0), b"", &Ok(duplicate.clone())), "was never submitted");
    submit(&mut nobody, &Asked { again: true, ..asked(0) }, b"", &Ok(duplicate)).unwrap();
}

#[test]
fn what_was_submitted_is_found_until_its_retention_is_over() {
    let real = real();
    let later = |days: u32| Asked { now: SystemTime::UNIX_EPOCH + DAY * days, ..asked(0) };
    broken(submitted(&real).seen(&later(6), None, None), "is not found");
    broken(submitted(&real).cancelled(&asked(0), &Ok(CancelOutcome::NotFound)), "is not found");
    broken(submitted(&real).forgotten(&asked(0), &Ok(false)), "is not found");
    submitted(&real).seen(&later(7), None, None).unwrap();
    submit(&mut submitted(&real), &later(7), b"", &Ok(real.submitted.clone())).unwrap();
    let mut model = submitted(&real);
    model.forgotten(&asked(0), &Ok(true)).unwrap();
    broken(model.paused(&asked(0), &Ok(PauseOutcome::Paused)), "was never submitted");
}

#[test]
fn a_run_ends_once_and_as_it_was_asked_to() {
    let real = real();
    let failed = changed(&real.end, |end| end.status = TerminalStatus::Failed);
    let mut model = submitted(&real);
    model.cancelled(&asked(0), &Ok(CancelOutcome::AlreadyEnded(real.end.clone()))).unwrap();
    broken(model.paused(&asked(0), &Ok(PauseOutcome::AlreadyEnded(failed))), "has ended twice");
    broken(model.cancelled(&asked(0), &Ok(CancelOutcome::Ended)), "had ended, and is cancelled");
    broken(model.paused(&asked(0), &Ok(PauseOutcome::Finishing)), "had ended, and is paused");
    broken(model.resumed(&asked(0), &Ok(ResumeOutcome::NotPaused)), "had ended, and resuming");
    broken(model.redriven(&asked(0), &Ok(RedriveOutcome::Redriven)), "is known as Some(Succeeded)");
    broken(model.forgotten(&asked(0), &Err(Error::NotEnded(RUN.to_owned()))), "forgetting run-0");
    let active = active(&real, 0, RunState::Active);
    broken(model.seen(&asked(0), Some(&active), None), "had ended, and is Active");
    let mut model = submitted(&real);
    model.cancelled(&asked(0), &Ok(CancelOutcome::Requested)).unwrap();
    broken(model.seen(&asked(0), Some(&real.status), Some(&real.end)), "was cancelled, and ends otherwise");
    broken(Model::must_have_ended(RUN, None), "does not end");
}

#[test]
fn a_run_goes_on_from_a_failure_once_for_each_redrive() {
    let mut real = real();
    real.end.status = TerminalStatus::Failed;
    let ended = |model: &mut Model| model.cancelled(&asked(0), &Ok(CancelOutcome::AlreadyEnded(real.end.clone())));
    let active = active(&real, 0, RunState::Active);
    let mut model = submitted(&real);
    ended(&mut model).unwrap();
    broken(model.redriven(&asked(0), &Ok(RedriveOutcome::Active)), "is known as Some(Failed)");
    model.redriven(&asked(0), &Ok(RedriveOutcome::Redriven)).unwrap();
    broken(model.seen(&asked(0), Some(&active), None), "was redriven 0 times");
    let redriven = |times| changed(&active, |status| status.redrives = times);
    model.seen(&asked(0), Some(&redriven(1)), None).unwrap();
    // The first of two calls may have been the one that did it.
    ended(&mut model).unwrap();
    model.redriven(&Asked { again: true, ..asked(0) }, &Ok(RedriveOutcome::Active)).unwrap();
    model.seen(&asked(0), Some(&redriven(2)), None).unwrap();
}

#[test]
fn steps_only_rise_and_pauses_hold() {
    let real = real();
    let status = |step, state| active(&real, step, state);
    let mut model = submitted(&real);
    model.seen(&asked(0), Some(&status(2, RunState::Active)), None).unwrap();
    broken(model.seen(&asked(0), Some(&status(1, RunState::Active)), None), "was at step 2");
    broken(model.resumed(&asked(0), &Ok(ResumeOutcome::Resumed)), "was not paused");
    model.paused(&asked(0), &Ok(PauseOutcome::Finishing)).unwrap();
    broken(model.seen(&asked(0), Some(&status(2, RunState::Active)), None), "was paused, and is Active");
    model.seen(&asked(0), Some(&status(2, RunState::Paused)), None).unwrap();
    broken(model.resumed(&asked(0), &Ok(ResumeOutcome::NotPaused)), "was paused");
    broken(Model::rests(&status(2, RunState::Active)), "nothing executes it");
    Model::rests(&status(2, RunState::Paused)).unwrap();
    let headers = [("a".to_owned(), "b".to_owned())].into();
    let other = changed(&status(2, RunState::Paused), |status| status.headers = headers);
    broken(model.seen(&asked(0), Some(&other), None), "other headers");
}

#[test]
fn no_step_starts_after_a_pause_a_cancel_or_an_end() {
    let real = real();
    let first = [starts(0, None)];
    let then = [starts(0, None), starts(0, None)];
    let quiet = |model: &mut Model| broken(model.read(&then), "step 0 of run-0 starts");
    let mut model = submitted(&real);
    model.read(&first).unwrap();
    model.paused(&asked(1), &Ok(PauseOutcome::Paused)).unwrap();
    quiet(&mut model);
    let mut model = submitted(&real);
    model.cancelled(&asked(1), &Ok(CancelOutcome::Requested)).unwrap();
    quiet(&mut model);
    let mut model = submitted(&real);
    model.seen(&asked(1), Some(&real.status), Some(&real.end)).unwrap();
    quiet(&mut model);
    // One that is in hand goes on, and a run that is resumed starts.
    let mut model = submitted(&real);
    model.paused(&asked(1), &Ok(PauseOutcome::Finishing)).unwrap();
    model.read(&then).unwrap();
    let mut model = submitted(&real);
    model.paused(&asked(1), &Ok(PauseOutcome::Paused)).unwrap();
    model.expect_starts(RUN);
    model.read(&then).unwrap();
}

/// A model to which these were sent, and a run that was started with those, step by step.
fn signals(sent: &[&str], received: &[&str]) -> Model {
    let mut model = Model::new(&Settings::default());
    for payload in sent {
        model.signalled(&asked(0), "k", payload.as_bytes(), &Ok(SignalOutcome::Buffered)).unwrap();
    }
    let events: Vec<Event> = received.iter().zip(1..).map(|(payload, step)| starts(step, Some(payload))).collect();
    model.read(&events).unwrap();
    model
}

fn kept(model: &Model, kept: &[&str], days: u32) -> Verdict {
    let kept: Vec<Vec<u8>> = kept.iter().map(|payload| payload.as_bytes().to_vec()).collect();
    model.kept("k", &kept, SystemTime::UNIX_EPOCH + DAY * days)
}

#[test]
fn each_signal_is_received_once_in_order_or_kept() {
    kept(&signals(&["a", "b", "a"], &["a", "b"]), &["a"], 0).unwrap();
    kept(&signals(&["a", "b"], &[]), &["a", "b"], 0).unwrap();
    broken(kept(&signals(&["a", "b"], &["b"]), &[], 0), "are lost: [[97]]");
    broken(kept(&signals(&["a", "b"], &["b", "a"]), &[], 0), "were not sent so");
    broken(kept(&signals(&["a"], &["a", "a"]), &[], 0), "were not sent so");
    broken(kept(&signals(&["a", "b"], &["b"]), &["a"], 0), "are not the last sent");
    broken(kept(&signals(&["a"], &["a"]), &["a"], 0), "were not sent so");
    // They expire, and a run that is cancelled may have one that no step has seen.
    kept(&signals(&["a", "b"], &["b"]), &[], 7).unwrap();
    let mut model = signals(&["a"], &[]);
    model.signals_may_be_dropped();
    kept(&model, &[], 0).unwrap();
}

#[test]
fn two_runs_do_not_receive_the_same_signal() {
    let mut model = signals(&["a"], &["a"]);
    let other = Place { run_id: "run-1".to_owned(), step: Some(1) };
    let signal = Signal { key: "k".to_owned(), payload: b"a".to_vec() };
    model.read(&[starts(1, Some("a")), Event::Started(other, 1, Some(signal))]).unwrap();
    broken(kept(&model, &[], 0), "is received twice");
}

#[test]
fn every_attempt_sees_the_same_signal() {
    let mut model = signals(&["a", "b"], &["a"]);
    let events = [starts(1, Some("a")), starts(1, Some("a")), starts(1, Some("b"))];
    model.read(&events[..2]).unwrap();
    broken(model.read(&events), "step 1 of run-0 is called with");
    broken(signals(&["a"], &["a"]).read(&[starts(1, Some("a")), starts(1, None)]), "is called with None");
}

#[test]
fn signals_that_cannot_be_are_refused_and_none_is_taken_for_another() {
    let mut model = Model::new(&Settings::default());
    broken(model.signalled(&asked(0), "", b"", &Ok(SignalOutcome::Buffered)), "is answered Ok(Buffered)");
    broken(model.signalled(&asked(0), "k", b"", &Ok(SignalOutcome::Duplicate)), "taken for another");
    model.signalled(&Asked { again: true, ..asked(0) }, "k", b"", &Ok(SignalOutcome::Duplicate)).unwrap();
}

#[test]
fn ids_that_no_run_can_have_are_refused() {
    let hostile = Asked { run_id: "../run", ..asked(0) };
    let mut model = Model::new(&Settings::default());
    broken(model.cancelled(&hostile, &Ok(CancelOutcome::NotFound)), "is not refused");
    broken(model.forgotten(&hostile, &Ok(false)), "is not refused");
    broken(model.resumed(&hostile, &Err(Error::Interrupted)), "is not refused");
}
