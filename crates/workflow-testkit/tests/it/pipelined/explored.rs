//! Pipelined scenarios, explored: a crash at every point.

use std::time::Duration;

use workflow_runtime::{
    CommitMode, NoopTerminalHook, RunSpec, Step, StepError, StepOutcome, StepRunner, TerminalStatus,
};
use workflow_testkit::{Explorer, Outside, Sim, SimRuntime, explore};

use crate::scripted::RUN;

/// How a step pays that must not pay on a branch that is undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Care {
    Syncs,
    Memoizes,
    None,
}

/// Takes orders, step by step, then pays, then ships.
struct Order {
    bank: Outside,
    care: Care,
    /// Whether the step that has paid waits for somebody to cancel.
    lingers: bool,
}

const PAYS: u32 = 4;

impl StepRunner for Order {
    async fn run_step(&self, step: &Step) -> Result<StepOutcome, StepError> {
        match step.step_number {
            number if number < PAYS => {
                let before = step.kv.get(b"items").await?.map_or(0, |items| items.len());
                step.effects.put("items", vec![b'x'; before + 1])?;
                Ok(StepOutcome::continue_now(step.payload.clone()))
            }
            PAYS => {
                let items = step.kv.get(b"items").await?.unwrap_or_default().len();
                match self.care {
                    Care::Syncs => step.sync().await?,
                    Care::Memoizes => step.memo.put("amount", items.to_string().as_bytes()).await?,
                    Care::None => {}
                }
                self.bank.does_for(&step.run_id, format!("charge for {items}")).await;
                if self.lingers {
                    step.cancel_token.cancelled().await;
                }
                Ok(StepOutcome::continue_now(step.payload.clone()))
            }
            _ => Ok(StepOutcome::Succeed { result: Vec::new() }),
        }
    }
}

fn start(sim: &Sim, care: Care, lingers: bool) -> SimRuntime<Order, NoopTerminalHook> {
    let order = Order { bank: sim.outside(), care, lingers };
    sim.start_with(order, NoopTerminalHook, |builder| builder.commit_mode(CommitMode::Pipelined))
}

fn spec() -> RunSpec {
    RunSpec { run_id: Some(RUN.to_owned()), ..RunSpec::default() }
}

async fn goes_well(sim: Sim, care: Care) {
    let runtime = start(&sim, care, false);
    runtime.submit(spec()).await.unwrap();
    assert_eq!(runtime.wait(RUN).await.unwrap().status, TerminalStatus::Succeeded);
    assert_eq!(sim.entries(b"items")[0].1.len(), PAYS as usize);
}

#[test]
fn a_pipelined_run_holds_at_every_point() {
    for care in [Care::Syncs, Care::Memoizes, Care::None] {
        let held = explore(|sim| goes_well(sim, care));
        println!("{care:?}: {held}");
        assert!(held.exhaustive && held.points > 30, "{held}");
    }
}

#[test]
fn a_pipelined_run_holds_when_two_faults_meet() {
    println!("{}", Explorer::new().pairs(200).run(|sim| goes_well(sim, Care::Syncs)));
}

/// Somebody cancels the order as soon as he sees it paid. The run has to know of what was paid.
async fn cancelled_once_paid(sim: Sim, care: Care) {
    let is_paid = || !sim.outside().done().is_empty();
    let runtime = start(&sim, care, true);
    if !is_paid() {
        runtime.submit(spec()).await.unwrap();
    }
    while !is_paid() {
        sim.advance(Duration::from_micros(100)).await;
    }
    runtime.cancel(RUN, None).await.unwrap();
    let end = runtime.wait(RUN).await.unwrap();
    assert_eq!(end.status, TerminalStatus::Cancelled);
    assert_eq!(end.final_step, PAYS, "it was paid");
}

#[test]
fn nobody_pays_on_a_branch_that_is_undone() {
    for care in [Care::Syncs, Care::Memoizes] {
        let held = explore(|sim| cancelled_once_paid(sim, care));
        println!("{care:?}: {held}");
        assert!(held.exhaustive && held.points > 30, "{held}");
    }
}

#[test]
fn a_payment_that_does_not_sync_is_found() {
    let failed = Explorer::new().explore(|sim| cancelled_once_paid(sim, Care::None)).unwrap_err();
    println!("{failed}");
    assert!(failed.to_string().contains("it was paid"), "{failed}");
}
