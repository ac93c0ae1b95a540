//! A payment that is charged before it is memoized, and one that is charged under an idempotency key.

use workflow_runtime::{NoopTerminalHook, RunSpec, Step, StepError, StepOutcome, StepRunner, TerminalStatus};
use workflow_testkit::{Explorer, Outside, Sim, explore};

/// A bank, as far as it shows.
struct Bank {
    outside: Outside,
    knows_repetitions: bool,
}

impl Bank {
    async fn charge(&self, key: &str, amount: u32) -> Result<String, StepError> {
        if self.knows_repetitions {
            self.outside.does_for(key, format!("charge {amount}")).await;
        } else {
            self.outside.does(format!("charge {amount}")).await;
        }
        Ok(format!("receipt for {amount}"))
    }
}

struct Payment {
    bank: Bank,
}

impl StepRunner for Payment {
    async fn run_step(&self, step: &Step) -> Result<StepOutcome, StepError> {
        match step.step_number {
            0 => {
                let receipt = self.bank.charge(&step.run_id, 17);
                let receipt: String = step.memo.memoized("receipt", receipt).await?;
                step.effects.put(format!("paid/{}", step.run_id), receipt.clone())?;
                Ok(StepOutcome::continue_now(receipt.into()))
            }
            _ => Ok(StepOutcome::Succeed { result: step.payload.clone() }),
        }
    }
}

async fn scenario(sim: Sim, knows_repetitions: bool) {
    let bank = Bank { outside: sim.outside(), knows_repetitions };
    let runtime = sim.start(Payment { bank }, NoopTerminalHook);
    runtime.submit(RunSpec { run_id: Some("order-17".to_owned()), ..RunSpec::default() }).await.unwrap();
    let end = runtime.wait("order-17").await.unwrap();
    assert_eq!(end.status, TerminalStatus::Succeeded);
}

#[test]
fn a_charge_without_a_key_passes_without_a_crash() {
    Sim::run(1, |sim| scenario(sim, false));
}

#[test]
fn a_charge_without_a_key_is_found() {
    let failed = Explorer::new().explore(|sim| scenario(sim, false)).unwrap_err();
    println!("{failed}");
    assert_eq!(failed.problems, ["outside: charge 17, done 2 times instead of 1"]);
    assert!(failed.to_string().lines().count() < 15, "{failed}");
    let again = Explorer::new().replay(&failed.schedule, |sim| scenario(sim, false)).unwrap_err();
    assert_eq!(again, failed);
}

#[test]
fn a_charge_with_a_key_holds_at_every_point() {
    let held = explore(|sim| scenario(sim, true));
    println!("{held}");
    assert!(held.exhaustive && held.points > 20, "{held}");
}

#[test]
fn a_charge_with_a_key_holds_when_two_faults_meet() {
    let held = Explorer::new().pairs(100).run(|sim| scenario(sim, true));
    println!("{held}");
}
