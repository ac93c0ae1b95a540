//! Runners with a mistake: it is found, shrunk to a few operations, written, and replayed.

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use workflow_runtime::{
    RunOutcome, Step, StepError, StepOutcome, StepRunner, TerminalEffects, TerminalHook, TerminalStatus,
};
use workflow_testkit::Outside;
use workflow_testkit::property::{Case, FailedCase, Operation, Property};

/// Charges without an idempotency key, before it memoizes that it has.
struct ChargesTwice {
    bank: Outside,
}

impl StepRunner for ChargesTwice {
    async fn run_step(&self, step: &Step) -> Result<StepOutcome, StepError> {
        let charge = async {
            self.bank.does(format!("charge {}", step.run_id)).await;
            Ok::<_, StepError>("receipt".to_owned())
        };
        let receipt = step.memo.memoized("receipt", charge).await?;
        Ok(StepOutcome::Succeed { result: receipt.into_bytes() })
    }
}

fn charges_once() -> Property<ChargesTwice> {
    Property::of(|sim| ChargesTwice { bank: sim.outside() }).at_rest(|rest| {
        for run_id in rest.runs.keys() {
            let times = rest.times(&format!("charge {run_id}"));
            assert!(times <= 1, "{run_id} is charged {times} times");
        }
    })
}

fn is_fault(operation: &Operation) -> bool {
    matches!(operation, Operation::Crash { .. } | Operation::LoseLeases { .. })
}

/// Finds what fails of `property`, in so few operations.
#[track_caller]
fn found<R, H>(property: &Property<R, H>, at_most: usize) -> FailedCase
where
    R: StepRunner + 'static,
    H: TerminalHook + 'static,
{
    let failed = property.check().unwrap_err();
    println!("{failed}");
    assert!(failed.case.operations.len() <= at_most, "{failed}");
    *failed
}

/// The message of a panic.
fn panics<T: Debug>(call: impl FnOnce() -> T) -> String {
    *catch_unwind(AssertUnwindSafe(call)).unwrap_err().downcast::<String>().unwrap()
}

#[test]
fn a_charge_before_its_memo_is_found_and_shrunk_to_a_submission_and_a_fault() {
    let failed = found(&charges_once(), 6);
    assert!(failed.problem.contains("is charged 2 times"), "{failed}");
    let kinds = failed.case.operations.iter().filter(|operation| is_fault(operation)).count();
    assert!(kinds >= 1, "{failed}");
}

#[test]
fn an_id_is_submitted_again_only_where_that_is_asked_for() {
    let case = "submit \"run-0\" \"\"\nadvance 1000ms\nforget \"run-0\"\nsubmit \"run-0\" \"\"".parse().unwrap();
    assert_eq!(charges_once().check_case(&case).unwrap().steps, 1);
    let failed = charges_once().reuse_run_ids().check_case(&case).unwrap_err();
    assert_eq!(failed.problem, "run-0 is charged 2 times");
}

#[test]
fn what_is_found_is_the_same_for_the_same_seed() {
    assert_eq!(charges_once().seed(7).check(), charges_once().seed(7).check());
}

#[test]
fn a_case_that_fails_is_written_and_replays_to_the_same_failure() {
    let file = std::env::temp_dir().join(format!("failed-{}/charge.txt", std::process::id()));
    let told = panics(|| charges_once().file(&file).run());
    assert!(told.contains(&format!("written to {}", file.display())), "{told}");
    let case = Case::read(&file).unwrap();
    let failed = charges_once().check_case(&case).unwrap_err();
    assert!(told.starts_with(&failed.to_string()), "{told}\nis not\n{failed}");
    assert_eq!(panics(|| charges_once().replay(&file)), failed.to_string());
    std::fs::remove_dir_all(file.parent().unwrap()).unwrap();
}

#[test]
fn a_file_that_holds_no_case_is_told_with_its_line() {
    let file = std::env::temp_dir().join(format!("no-case-{}.txt", std::process::id()));
    std::fs::write(&file, "seed 1\n\nsubmit run-0 \"\"\n").unwrap();
    let told = panics(|| charges_once().replay(&file));
    assert!(told.ends_with("line 3: a run id in quotes is expected, not `run-0`"), "{told}");
    std::fs::remove_file(&file).unwrap();
    let told = panics(|| charges_once().replay(&file));
    assert!(told.starts_with(&file.display().to_string()), "{told}");
}

/// Waits for an approval and takes any for one: a mistake that needs a signal.
struct TakesAnyAnswer;

impl StepRunner for TakesAnyAnswer {
    async fn run_step(&self, step: &Step) -> Result<StepOutcome, StepError> {
        match (step.step_number, &step.signal) {
            (0, _) => {
                let key = format!("approval/{}", step.run_id);
                Ok(StepOutcome::continue_on_signal(Vec::new(), key, Duration::from_secs(60)))
            }
            (_, Some(answer)) => {
                step.effects.put(format!("approved/{}", step.run_id), answer.clone())?;
                Ok(StepOutcome::Succeed { result: answer.clone() })
            }
            (_, None) => Ok(StepOutcome::Fail { reason: "nobody answers".to_owned() }),
        }
    }
}

#[test]
fn a_refusal_that_is_taken_for_an_approval_is_found() {
    let property = Property::of(|_| TakesAnyAnswer).signals("approval/run-[0-2]", "yes|no").at_rest(|rest| {
        for (key, answer) in &rest.entries {
            assert_ne!(answer, "no", "{key:?}");
        }
    });
    let failed = found(&property, 2);
    let refusal = |operation: &Operation| matches!(operation, Operation::Signal { payload, .. } if payload == b"no");
    assert!(failed.case.operations.iter().any(refusal), "{failed}");
}

/// Hangs once it is asked for `b`: no token stops it.
struct Hangs;

impl StepRunner for Hangs {
    async fn run_step(&self, step: &Step) -> Result<StepOutcome, StepError> {
        if step.payload == b"b" {
            std::future::pending::<()>().await;
        }
        Ok(StepOutcome::Succeed { result: Vec::new() })
    }
}

#[test]
fn a_step_that_hangs_is_found_without_a_word_from_the_test() {
    let failed = found(&Property::of(|_| Hangs).operations(1..4), 1);
    assert!(failed.problem.contains("after a day something is still under way"), "{failed}");
}

/// Never comes to an end.
struct Spins;

impl StepRunner for Spins {
    async fn run_step(&self, _: &Step) -> Result<StepOutcome, StepError> {
        Ok(StepOutcome::continue_now(Vec::new()))
    }
}

#[test]
fn a_run_that_goes_on_for_ever_is_found() {
    let failed = Property::of(|_| Spins).check_case(&"submit \"run-0\" \"\"".parse().unwrap()).unwrap_err();
    assert_eq!(failed.problem, "after 50000 events there is still more to come");
}

/// Does not want to know of the first end, and expects to be told of it all the same.
#[derive(Default)]
struct ChangesItsMind {
    was_asked: AtomicBool,
}

impl TerminalHook for ChangesItsMind {
    async fn on_termination(&self, _: &RunOutcome, _: &TerminalEffects) -> Result<(), StepError> {
        Ok(())
    }

    fn observes(&self, _: &RunOutcome) -> bool {
        self.was_asked.swap(true, Ordering::Relaxed)
    }
}

#[test]
fn a_hook_that_is_not_told_of_an_end_is_found_without_a_word_from_the_test() {
    let failed = found(&Property::of(|_| GivesUp).hook(|_| ChangesItsMind::default()), 1);
    assert!(failed.problem.starts_with("the hook of run-0 was told 0 times of what happened 1 times"), "{failed}");
}

/// Spends all its attempts: whoever asserts success must be told.
struct GivesUp;

impl StepRunner for GivesUp {
    async fn run_step(&self, step: &Step) -> Result<StepOutcome, StepError> {
        match step.is_last_attempt() {
            true => Ok(StepOutcome::Succeed { result: Vec::new() }),
            false => Err(StepError::transient(format!("attempt {}", step.attempts))),
        }
    }
}

#[test]
fn assertions_see_ends_after_all_their_attempts() {
    let property = Property::of(|_| GivesUp).at_rest(|rest| {
        assert!(rest.ends.values().all(|end| end.status != TerminalStatus::Succeeded), "one succeeds");
    });
    let failed = found(&property, 1);
    assert_eq!(failed.problem, "one succeeds");
    let starts = failed.timeline.iter().filter(|line| line.contains("starts")).count();
    assert_eq!(starts, 5, "{failed}");
}

#[test]
fn of_all_that_panics_meanwhile_only_the_case_that_is_found_is_told() {
    let test = "property::wrong::a_refusal_that_is_taken_for_an_approval_is_found";
    let told = std::process::Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .output()
        .unwrap();
    assert!(told.status.success());
    let panics = String::from_utf8(told.stderr).unwrap().matches("panicked at").count();
    assert_eq!(panics, 1);
}
