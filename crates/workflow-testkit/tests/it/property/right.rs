//! Runners without a mistake: whatever is done to them, the property holds.

use std::time::Duration;

use workflow_runtime::{
    EventKind, HistoryLevel, PhaseKind, RunOutcome, Settings, Step, StepError, StepOutcome, StepRunner,
    TerminalEffects, TerminalHook, TerminalStatus,
};
use workflow_testkit::Outside;
use workflow_testkit::property::Property;

/// A purchase: charged under a key, then approved by somebody or timed out, shipped later; some fail on the way.
struct Purchase {
    world: Outside,
}

impl StepRunner for Purchase {
    async fn run_step(&self, step: &Step) -> Result<StepOutcome, StepError> {
        let payload = step.payload.clone();
        match step.step_number {
            0 => {
                let charge = async { Ok::<_, StepError>(self.world.does_for(&step.run_id, "charge").await) };
                let _: bool = step.memo.memoized("charged", charge).await?;
                step.effects.put(format!("charged/{}", step.run_id), payload.clone())?;
                Ok(StepOutcome::continue_on_signal(payload, format!("approval/{}", step.run_id), HOUR))
            }
            1 if step.signal.is_none() => Ok(StepOutcome::Fail { reason: "nobody approves".to_owned() }),
            1 if step.attempts == 1 => Err(StepError::transient("the first attempt fails")),
            1 => {
                tokio::time::sleep(Duration::from_millis(700)).await;
                Ok(StepOutcome::continue_after(payload, Duration::from_secs(90)))
            }
            2 if payload == b"a" => Err(StepError::permanent("sold out")),
            _ => {
                self.world.does_for(&step.run_id, "ship").await;
                Ok(StepOutcome::Succeed { result: payload })
            }
        }
    }
}

const HOUR: Duration = Duration::from_secs(3_600);

/// Tells how often each run ended.
struct Tally;

impl TerminalHook for Tally {
    async fn on_termination(&self, outcome: &RunOutcome, effects: &TerminalEffects) -> Result<(), StepError> {
        effects.put(format!("ended/{}", outcome.run_id), format!("{:?}", outcome.status))?;
        Ok(())
    }
}

fn purchase() -> Property<Purchase, Tally> {
    Property::of(|sim| Purchase { world: sim.outside() })
        .hook(|_| Tally)
        .reuse_run_ids()
        .signals("approval/run-[0-2]", "yes|no")
        .at_rest(|rest| {
            for (run_id, end) in &rest.ends {
                let times = |what: &str| rest.times(&format!("{what} ({run_id})"));
                assert!(times("charge") <= 1 && times("ship") <= 1, "{run_id} is charged or shipped twice");
                if end.status == TerminalStatus::Succeeded {
                    assert_eq!((times("charge"), times("ship")), (1, 1), "{run_id}");
                }
            }
        })
}

/// `SEEDS=n` for n times as many cases.
#[test]
fn a_purchase_holds_whatever_is_done_to_it() {
    let held = purchase().run();
    println!("{held}");
    for seed in 1..super::seeds() {
        println!("seed {seed}: {}", purchase().seed(seed.into()).run());
    }
    assert!(held.cases == 256 && held.steps > 500 && held.signals > 20 && held.hooks > 200, "{held}");
    assert!(held.crashes > 50 && held.lost_leases > 10, "{held}");
    let reached = [
        (EventKind::Signalled, PhaseKind::WaitingEarly),
        (EventKind::Signalled, PhaseKind::PausedWaitingEarly),
        (EventKind::StepReturned, PhaseKind::ToBeCancelled),
        (EventKind::StepReturned, PhaseKind::PausedReady),
        (EventKind::Resumed, PhaseKind::PausedSignalled),
        (EventKind::RedriveRequested, PhaseKind::Failed),
        (EventKind::RedriveRequested, PhaseKind::CancelledReady),
        (EventKind::Submitted, PhaseKind::Succeeded),
    ];
    for (event, phase) in reached {
        assert!(held.coverage.count(event, phase) > 0, "{event:?} in {phase:?} is never reached");
    }
}

/// Its step has received a signal, and backs off for longer than the clock stands still.
#[test]
fn a_clock_that_was_set_back_goes_on_when_everything_comes_to_rest() {
    let case = "submit \"run-0\" \"\"\nadvance 1000ms\nsignal \"approval/run-0\" \"yes\"\nclock back 80000000ms";
    let held = purchase().check_case(&case.parse().unwrap()).unwrap();
    assert_eq!(held.steps, 4, "both attempts of step 1 are made: {held}");
}

/// Hands on more than a record holds, step by step.
struct HandsOn;

impl StepRunner for HandsOn {
    async fn run_step(&self, step: &Step) -> Result<StepOutcome, StepError> {
        let payload = vec![b'x'; 100 + step.step_number as usize];
        match step.step_number {
            0..3 => Ok(StepOutcome::continue_now(payload)),
            _ => Ok(StepOutcome::Succeed { result: payload }),
        }
    }
}

#[test]
fn outcomes_that_are_replayed_keep_their_large_values() {
    let settings = Settings { replay: true, inline_limit: 8, history: HistoryLevel::Full, ..Settings::default() };
    let held = Property::of(|_| HandsOn).settings(settings).operations(4..12).cases(192).run();
    assert!(held.lost_leases > 20, "{held}");
}
