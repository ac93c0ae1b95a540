//! What is in hand while a runtime works on a run.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use workflow_core::{Incarnation, RunId};

use super::*;
use crate::in_hand::InHand;
use crate::{IdSource, RunOutcome, RunSpec, Step, StepError, StepOutcome, TerminalEffects, open};

/// What the test and the user's code tell each other.
#[derive(Clone, Default)]
struct Talk {
    begun: Arc<Notify>,
    go_on: Arc<Notify>,
}

impl Talk {
    async fn pause(&self) {
        self.begun.notify_one();
        self.go_on.notified().await;
    }
}

impl StepRunner for Talk {
    async fn run_step(&self, _: &Step) -> Result<StepOutcome, StepError> {
        self.pause().await;
        Ok(StepOutcome::Succeed { result: Vec::new() })
    }
}

impl TerminalHook for Talk {
    async fn on_termination(&self, _: &RunOutcome, _: &TerminalEffects) -> Result<(), StepError> {
        self.pause().await;
        Ok(())
    }
}

/// Draws 1, 2, and so on, and looks each time whether the run is busy.
#[derive(Default)]
struct Watching {
    in_hand: OnceLock<InHand>,
    drawn: AtomicU64,
    busy: AtomicU64,
}

impl IdSource for Watching {
    fn random(&self) -> u128 {
        if self.in_hand.get().is_some_and(is_busy) {
            self.busy.fetch_add(1, Ordering::Relaxed);
        }
        u128::from(self.drawn.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

/// Whether the run is busy, whose incarnation is what was drawn first.
fn is_busy(in_hand: &InHand) -> bool {
    in_hand.is_busy(&RunId::parse("r").expect("it is an id"), Incarnation::new(1))
}

#[tokio::test]
async fn a_run_is_busy_while_it_is_submitted_delivered_and_told_of() {
    let (talk, ids) = (Talk::default(), Arc::new(Watching::default()));
    let storage = open("memory:").await.unwrap();
    let runtime = storage.runtime(talk.clone(), talk.clone()).ids(ids.clone()).build().unwrap();
    let in_hand = ids.in_hand.get_or_init(|| runtime.engine.in_hand.clone());
    let input = vec![1; 100_000];
    runtime.submit(RunSpec { run_id: Some("r".to_owned()), input, ..RunSpec::default() }).await.unwrap();
    assert!(ids.busy.load(Ordering::Relaxed) > 0, "when the path of the input was drawn");
    assert!(!is_busy(in_hand));

    let running = runtime.spawn(std::future::pending());
    talk.begun.notified().await;
    assert!(is_busy(in_hand), "in the step");
    talk.go_on.notify_one();
    talk.begun.notified().await;
    // The delivery of the step ends meanwhile.
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(is_busy(in_hand), "in the hook");
    talk.go_on.notify_one();
    running.shutdown().await.unwrap();
    assert!(!is_busy(in_hand));
}
