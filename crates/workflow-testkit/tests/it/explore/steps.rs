//! A scenario of the usual size: ten steps, each with a memo, an effect, and a deed outside.

use std::time::Instant;

use workflow_runtime::{NoopTerminalHook, RunSpec, Step, StepError, StepOutcome, StepRunner};
use workflow_testkit::{Outside, Sim, explore};

const STEPS: u32 = 10;

/// Orders one part after the other.
struct Orders {
    supplier: Outside,
}

impl StepRunner for Orders {
    async fn run_step(&self, step: &Step) -> Result<StepOutcome, StepError> {
        let part = step.step_number;
        let order = async {
            self.supplier.does_for(&step.run_id, format!("order part {part}")).await;
            Ok::<_, StepError>(format!("receipt {part}"))
        };
        let receipt: String = step.memo.memoized("receipt", order).await?;
        step.effects.put(format!("ordered/{part}"), receipt.clone())?;
        Ok(match part + 1 {
            STEPS => StepOutcome::Succeed { result: receipt.into() },
            _ => StepOutcome::continue_now(receipt.into()),
        })
    }
}

async fn scenario(sim: Sim) {
    let runtime = sim.start(Orders { supplier: sim.outside() }, NoopTerminalHook);
    runtime.submit(RunSpec { run_id: Some("chair".to_owned()), ..RunSpec::default() }).await.unwrap();
    assert_eq!(runtime.wait("chair").await.unwrap().result.as_deref(), Some(&b"receipt 9"[..]));
}

/// It says how long it took: less than a second on a machine that has nothing else to do, debug build included.
#[test]
fn ten_steps_are_explored_at_every_point() {
    let start = Instant::now();
    let held = explore(scenario);
    println!("{held}, in {:.3} s", start.elapsed().as_secs_f64());
    // Before and after what each step does outside, puts as its memo, and commits.
    assert!(held.exhaustive && held.points > 6 * STEPS as usize, "{held}");
}
