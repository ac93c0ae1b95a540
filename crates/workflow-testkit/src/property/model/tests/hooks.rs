//! What hooks are told.

use workflow_runtime::{CancelOutcome, RedriveOutcome, Settings};

use super::*;
use crate::sim::Fault;

/// A model that knows of one run, which was seen to end so.
fn ended(real: &Real, end: &RunOutcome) -> Model {
    let mut model = submitted(real);
    see(&mut model, end);
    model
}

fn see(model: &mut Model, end: &RunOutcome) {
    model.cancelled(&asked(0), &Ok(CancelOutcome::AlreadyEnded(end.clone()))).unwrap();
}

fn redrive(model: &mut Model, again: bool) {
    model.redriven(&Asked { again, ..asked(0) }, &Ok(RedriveOutcome::Redriven)).unwrap();
}

/// Has the model read that the hook was told of these, and nothing else.
fn told(mut model: Model, ends: &[&RunOutcome]) -> Model {
    let events: Vec<Event> = ends.iter().map(|end| Event::Told((*end).clone())).collect();
    model.read(&events).unwrap();
    model
}

fn failed(real: &Real) -> RunOutcome {
    changed(&real.end, |end| end.status = TerminalStatus::Failed)
}

#[test]
fn a_hook_is_told_of_every_end() {
    let real = real();
    let end = &real.end;
    broken(ended(&real, end).hooks_were_told(|_| true), "was told 0 times of what happened 1 times");
    ended(&real, end).hooks_were_told(|_| false).unwrap();
    told(ended(&real, end), &[end]).hooks_were_told(|_| true).unwrap();
    // At least once: it may have failed, or died.
    told(ended(&real, end), &[end, end]).hooks_were_told(|_| true).unwrap();
    // One that does not end owes nothing.
    submitted(&real).hooks_were_told(|_| true).unwrap();
}

#[test]
fn a_hook_is_told_of_each_end_of_a_run_that_is_brought_back() {
    let real = real();
    let failed = failed(&real);
    let twice = || {
        let mut model = ended(&real, &failed);
        redrive(&mut model, false);
        see(&mut model, &failed);
        model
    };
    broken(told(twice(), &[&failed]).hooks_were_told(|_| true), "was told 1 times of what happened 2 times");
    told(twice(), &[&failed, &failed]).hooks_were_told(|_| true).unwrap();
    let mut gone = twice();
    gone.forgotten(&asked(0), &Ok(true)).unwrap();
    broken(told(gone, &[&failed]).hooks_were_told(|_| true), "was told 1 times of what happened 2 times");
}

#[test]
fn a_hook_is_told_of_no_end_that_did_not_happen() {
    let real = real();
    let (end, failed) = (&real.end, failed(&real));
    let lie = "was told of an end that did not happen";
    broken(told(submitted(&real), &[end]).hooks_were_told_the_truth(), lie);
    broken(told(ended(&real, end), &[&failed]).hooks_were_told_the_truth(), lie);
    let other = changed(end, |end| end.result = Some(b"another".to_vec()));
    broken(told(ended(&real, end), &[end, &other]).hooks_were_told_the_truth(), lie);
    told(ended(&real, end), &[end]).hooks_were_told_the_truth().unwrap();
    // Late: the run was brought back since, or is gone.
    let mut model = ended(&real, &failed);
    redrive(&mut model, false);
    told(model, &[&failed]).hooks_were_told_the_truth().unwrap();
    let mut model = ended(&real, end);
    model.forgotten(&asked(0), &Ok(true)).unwrap();
    broken(told(model, &[&failed]).hooks_were_told_the_truth(), lie);
}

#[test]
fn an_end_that_nobody_has_seen_may_have_been() {
    let real = real();
    let failed = failed(&real);
    // It ends while it is to be brought back, which the answer does not tell.
    let mut model = submitted(&real);
    redrive(&mut model, false);
    told(model, &[&failed]).hooks_were_told_the_truth().unwrap();
    // It was brought back by a process that died before it answered, and has ended otherwise since.
    let mut model = ended(&real, &failed);
    redrive(&mut model, true);
    let cancelled = changed(&failed, |end| end.status = TerminalStatus::Cancelled);
    told(model, &[&cancelled]).hooks_were_told_the_truth().unwrap();
    // Its retention is over before anybody looks.
    let mut model = submitted(&real);
    let later = Asked { now: SystemTime::UNIX_EPOCH + DAY * 7, ..asked(0) };
    model.seen(&later, None, None).unwrap();
    told(model, &[&failed]).hooks_were_told_the_truth().unwrap();
}

#[test]
fn faults_use_up_the_attempts_of_a_hook() {
    let real = real();
    let faults = |faults: u32| {
        let mut model = ended(&real, &real.end);
        let fault = Event::Fault(Fault::Crash, "before the hook starts".to_owned());
        model.read(&vec![fault; faults as usize]).unwrap();
        model
    };
    let attempts = Settings::default().hook_attempts;
    broken(faults(attempts - 1).hooks_were_told(|_| true), "was told 0 times");
    faults(attempts).hooks_were_told(|_| true).unwrap();
}
