//! A run brought into each of the phases, and kept there.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use workflow_core::{Incarnation, RunId};
use workflow_effects::{BellTarget, Doorbell, encode_doorbell};
use workflow_runtime::port::{Commit, Enqueue, KvStore, QueuePort};
use workflow_runtime::{PhaseKind, RedriveOptions, RunnerHandle, StepError, StepOutcome};
use workflow_testkit::Coverage;

use super::{phase_of, run_of};
use crate::scripted::{RUN, Runtime, Scripted, World, settle_down, submit_with};

const MINUTE: Duration = Duration::from_secs(60);

/// What steps in hand do: they go on, return, or fail.
const HOLD: u8 = 0;
const RETURN: u8 = 1;
const FAIL: u8 = 2;
/// How long a step may go on that is to be cancelled.
const GRACE: Duration = Duration::from_secs(1_200);

/// What somebody does, or what happens, to the run of a stage.
#[derive(Clone, Copy, Debug)]
pub(super) enum Act {
    /// Somebody submits its id again.
    Submit,
    /// Somebody sends the signal that it waits for.
    Signal,
    /// Somebody asks for its end.
    Cancel,
    /// Somebody pauses it.
    Pause,
    /// Somebody resumes it.
    Resume,
    /// Somebody asks to bring it back.
    Redrive,
    /// A doorbell of it rings that is not its own.
    Ring,
    /// Somebody takes its doorbell away, and the next process looks for it.
    Miss,
    /// Its step returns.
    Return,
    /// Its step fails.
    Fail,
    /// The loop hands back what it has in hand.
    HandBack,
    /// Its step does not return.
    TakeTooLong,
    /// Its step becomes suspect, and waits for its turn.
    Die,
}

/// A run in a phase, and all that keeps it there.
pub(super) struct Stage {
    world: World,
    runtime: Runtime,
    /// The loop, if one runs.
    running: Option<RunnerHandle>,
    /// What the steps that are in hand do.
    answer: Arc<AtomicU8>,
    /// A suspect that has the turn.
    other: Option<Box<Self>>,
}

impl Stage {
    fn new(answer: Arc<AtomicU8>) -> Self {
        let world = World::new(script(answer.clone())).with(|settings| {
            (settings.max_attempts_per_step, settings.max_concurrent_steps) = (9, 4);
            (settings.cancel_grace, settings.shutdown_grace) = (GRACE, Duration::ZERO);
        });
        let (runtime, running) = world.running();
        Self { world, runtime, running: Some(running), answer, other: None }
    }

    /// A run in `phase`. In those in which a step may be in hand, one is.
    pub(super) async fn of(phase: PhaseKind) -> Self {
        let mut stage = Self::new(Arc::new(AtomicU8::new(HOLD)));
        stage.bring_into(phase).await;
        assert_eq!(phase_of(&stage.world, RUN), phase);
        stage
    }

    /// What was decided on its run.
    pub(super) fn end(self) -> Coverage {
        self.other.iter().for_each(|other| other.world.stop());
        self.world.stop();
        self.world.coverage.lock().unwrap().clone()
    }

    async fn bring_into(&mut self, phase: PhaseKind) {
        use PhaseKind as P;
        match phase {
            P::Absent => {}
            P::Ready => self.submit("hold").await,
            P::BackingOffEarly => self.submit("back off").await,
            P::BackingOffDue => self.submit_and_wait("back off").await,
            P::DelayedEarly => self.submit("delay").await,
            P::DelayedDue => self.submit_and_wait("delay").await,
            P::Parked => {
                self.submit("hold").await;
                self.act(Act::Die).await;
            }
            P::Signalled => {
                self.submit("wait").await;
                self.act(Act::Signal).await;
            }
            P::WaitingEarly => self.submit("wait a while").await,
            P::WaitingDue => {
                self.submit("wait a while").await;
                self.time_passes_unseen().await;
            }
            P::WaitingWithoutEnd => self.submit("wait").await,
            P::ToBeCancelled | P::PausedToBeCancelled => {
                self.submit("hold").await;
                if phase == P::PausedToBeCancelled {
                    self.act(Act::Pause).await;
                }
                self.act(Act::Cancel).await;
            }
            P::PausedReady => Box::pin(self.paused(P::Ready)).await,
            P::PausedBackingOff => Box::pin(self.paused(P::BackingOffEarly)).await,
            P::PausedDelayed => Box::pin(self.paused(P::DelayedEarly)).await,
            P::PausedParked => Box::pin(self.paused(P::Parked)).await,
            P::PausedSignalled => Box::pin(self.paused(P::Signalled)).await,
            P::PausedWaitingEarly => Box::pin(self.paused(P::WaitingEarly)).await,
            P::PausedWaitingDue => {
                Box::pin(self.paused(P::WaitingEarly)).await;
                self.time_passes_unseen().await;
            }
            P::PausedWaitingWithoutEnd => Box::pin(self.paused(P::WaitingWithoutEnd)).await,
            P::Succeeded => self.submit("succeed").await,
            P::Failed => self.submit("fail").await,
            P::DeadLetter => self.submit("break").await,
            P::CancelledReady => self.submit("give up").await,
            P::CancelledWaiting => {
                self.submit("wait").await;
                self.act(Act::Cancel).await;
            }
            P::CancelledDelayed => {
                self.submit("delay").await;
                self.act(Act::Cancel).await;
            }
        }
    }

    async fn submit(&self, input: &str) {
        submit_with(&self.runtime, RUN, input).await.unwrap();
        settle_down().await;
    }

    /// The second call of what was submitted is in hand afterwards.
    async fn submit_and_wait(&self, input: &str) {
        self.submit(input).await;
        tokio::time::sleep(11 * MINUTE).await;
        self.world.until_called(2).await;
    }

    async fn paused(&mut self, phase: PhaseKind) {
        self.bring_into(phase).await;
        self.act(Act::Pause).await;
    }

    /// No loop runs any more, and a time passes for which nobody looks.
    async fn time_passes_unseen(&mut self) {
        self.stop().await;
        tokio::time::sleep(11 * MINUTE).await;
    }

    /// Does it, and lets the loop do what follows at once.
    pub(super) async fn act(&mut self, act: Act) {
        let runtime = self.runtime.clone();
        // What a call answers is not of interest here.
        match act {
            Act::Submit => drop(submit_with(&runtime, RUN, "again").await),
            Act::Signal => drop(runtime.signal(RUN, Vec::new()).await),
            Act::Cancel => drop(runtime.cancel(RUN, None).await),
            Act::Pause => drop(runtime.pause(RUN).await),
            Act::Resume => drop(runtime.resume(RUN).await),
            Act::Redrive => drop(runtime.redrive(RUN, RedriveOptions::default()).await),
            Act::Ring => self.ring().await,
            Act::Miss => self.miss(),
            Act::Return => self.answer.store(RETURN, Ordering::Relaxed),
            Act::Fail => self.answer.store(FAIL, Ordering::Relaxed),
            Act::HandBack => self.stop().await,
            Act::TakeTooLong => tokio::time::sleep(GRACE + MINUTE).await,
            Act::Die => self.suspect_beside_another().await,
        }
        settle_down().await;
    }

    /// No loop runs.
    async fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            running.shutdown().await.unwrap();
        }
        settle_down().await;
    }

    /// The process dies, and another opens the queue. No loop runs.
    fn die(&mut self) {
        self.world.crash();
        self.runtime = self.world.runtime();
        self.running = None;
    }

    /// A loop runs.
    fn start(&mut self) {
        self.running.get_or_insert_with(|| self.runtime.spawn(pending()));
    }

    /// A doorbell of the run rings that is not its own.
    async fn ring(&mut self) {
        self.start();
        let doorbell = Doorbell {
            run_id: RunId::parse(RUN).unwrap(),
            incarnation: run_of(&self.world, RUN).incarnation().unwrap_or(Incarnation::new(7)),
            queue_name: self.world.settings.queue_name.clone(),
            open: 0,
            target: BellTarget::Step,
        };
        let (queue, job) = (doorbell.queue_name.clone(), self.world.queue.next_job_id());
        let enqueue = Enqueue { queue, job, payload: encode_doorbell(&doorbell), due: None };
        self.world.queue.commit(vec![Commit { enqueues: vec![enqueue], ..Commit::default() }]).await;
    }

    /// The jobs that wait are gone when the next process looks.
    fn miss(&mut self) {
        self.die();
        for (job, _) in self.world.disk.jobs() {
            self.world.disk.remove_job(&job);
        }
        self.start();
    }

    /// What is in hand becomes suspect, and a suspect of another world has the turn.
    async fn suspect_beside_another(&mut self) {
        let mut other = Self::new(self.answer.clone());
        other.submit("hold").await;
        other.die_twice_in_hand().await;
        self.other = Some(Box::new(other));
        self.die_twice_in_hand().await;
    }

    async fn die_twice_in_hand(&mut self) {
        for _ in 0..2 {
            self.die();
            self.start();
            settle_down().await;
        }
    }
}

/// Steps that do what their payload says.
fn script(answer: Arc<AtomicU8>) -> Scripted {
    Scripted::new(move |step| {
        let answer = answer.clone();
        async move {
            let held = || Ok(StepOutcome::continue_on_signal(b"hold".to_vec(), &step.run_id, Duration::MAX));
            match (&step.payload[..], step.attempts) {
                (b"back off", 1) => Err(StepError::transient("not yet").retry_after(10 * MINUTE)),
                (b"delay", _) => Ok(StepOutcome::continue_after(b"hold".to_vec(), 10 * MINUTE)),
                (b"wait", _) => held(),
                (b"wait a while", _) => {
                    Ok(StepOutcome::continue_on_signal(b"hold".to_vec(), &step.run_id, 10 * MINUTE))
                }
                (b"succeed", _) => Ok(StepOutcome::Succeed { result: Vec::new() }),
                (b"fail", _) => Ok(StepOutcome::Fail { reason: "no".to_owned() }),
                (b"break", _) => Err(StepError::permanent("no")),
                (b"give up", _) => Ok(StepOutcome::Cancel { reason: "no".to_owned() }),
                _ => hold(&answer).await,
            }
        }
    })
}

/// A step that is in hand for as long as it is to.
async fn hold(answer: &AtomicU8) -> Result<StepOutcome, StepError> {
    loop {
        match answer.load(Ordering::Relaxed) {
            HOLD => tokio::time::sleep(Duration::from_secs(1)).await,
            RETURN => return Ok(StepOutcome::Succeed { result: Vec::new() }),
            _ => return Err(StepError::transient("no").retry_after(10 * MINUTE)),
        }
    }
}
