//! Races of the real runtime over the in-memory queue.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use object_store::memory::InMemory;
use workflow_runtime::port::JobState;
use workflow_runtime::{
    Error, NoopTerminalHook, QueuePort, RunOutcome, RunSpec, Step, StepError, StepOutcome, StepRunner, SubmitOutcome,
    TerminalStatus, WorkflowRuntime,
};
use workflow_testkit::{Actor, Explored, Interleaver, MemoryDisk, MemoryQueue, Moment, Turns};

const RUN: &str = "r";

/// Counts the calls of each step, and lets a run end with its second.
#[derive(Clone, Default)]
struct TwoSteps {
    calls: Arc<Mutex<BTreeMap<u32, usize>>>,
}

impl StepRunner for TwoSteps {
    async fn run_step(&self, step: &Step) -> Result<StepOutcome, StepError> {
        let call = {
            let mut calls = self.calls.lock().unwrap();
            let call = calls.entry(step.step_number).or_default();
            *call += 1;
            *call
        };
        // What every call that commits leaves behind.
        step.effects.put(format!("committed/{}/{call}", step.step_number), "")?;
        Ok(match step.step_number {
            0 => StepOutcome::continue_now(step.payload.clone()),
            _ => StepOutcome::Succeed { result: step.payload.clone() },
        })
    }
}

impl TwoSteps {
    fn calls(&self) -> Vec<usize> {
        self.calls.lock().unwrap().values().copied().collect()
    }
}

type Runtime = WorkflowRuntime<TwoSteps, NoopTerminalHook>;

/// What one scenario is about.
struct World {
    turns: Turns,
    disk: MemoryDisk,
    queue: MemoryQueue,
    objects: Arc<InMemory>,
    runner: TwoSteps,
}

impl World {
    fn new(turns: &Turns) -> Self {
        let disk = MemoryDisk::default();
        let queue = disk.open();
        Self { turns: turns.clone(), disk, queue, objects: Arc::default(), runner: TwoSteps::default() }
    }

    /// A runtime whose calls are those of `name`.
    fn runtime(&self, name: &str) -> Runtime {
        self.over(self.turns.port(name, Arc::new(self.queue.clone())))
    }

    fn over(&self, port: Arc<dyn QueuePort>) -> Runtime {
        let built = WorkflowRuntime::over(port, self.objects.clone(), self.runner.clone(), NoopTerminalHook);
        built.ids(self.turns.ids()).build().unwrap()
    }

    /// What must hold once the run has ended, whatever came first.
    async fn check_end(&self) {
        let end = self.runtime("check").run_end(RUN).await.unwrap().expect("the run has ended");
        assert_eq!((end.status, end.final_step), (TerminalStatus::Succeeded, 1));
        let committed = |(key, _): &(Bytes, Bytes)| key.strip_prefix(b"committed/").map(|rest| rest[0] - b'0');
        let steps: Vec<u8> = self.disk.entries().iter().filter_map(committed).collect();
        assert_eq!(steps, [0, 1], "one attempt of each step commits");
        let jobs = self.disk.jobs();
        assert!(jobs.iter().all(|(_, job)| job.state != JobState::Claimed), "{jobs:?}");
    }
}

async fn submit(runtime: &Runtime) -> Result<SubmitOutcome, Error> {
    runtime.submit(RunSpec { run_id: Some(RUN.to_owned()), input: b"in".to_vec(), ..RunSpec::default() }).await
}

/// Runs the loop until the run has ended.
async fn work(runtime: Runtime) -> RunOutcome {
    let running = runtime.spawn(pending());
    let end = loop {
        match runtime.wait(RUN).await {
            Err(Error::NotFound(_)) => tokio::time::sleep(std::time::Duration::from_millis(200)).await,
            ended => break ended.unwrap(),
        }
    };
    running.shutdown().await.unwrap();
    end
}

/// Choices only where they matter: the queue of notifications stays empty, no priority is in use, and a runtime does
/// nothing between the answer of a read and its next call that another could meet.
fn few() -> Interleaver {
    Interleaver::new().exhaustive_up_to(120).samples(40).seed(7).pass(|call| {
        call.subject.ends_with(".notifications")
            || call.subject == "priority/"
            || call.is_read() && call.moment == Moment::Answered
    })
}

pub(super) fn told(explored: Explored) {
    println!("{explored}");
}

#[test]
fn of_two_submissions_of_one_id_one_makes_the_run_and_both_are_told_the_same() {
    let explored = Interleaver::new().exhaustive_up_to(20_000).run(|turns| async move {
        let world = World::new(&turns);
        let submissions = ["submit a", "submit b"].map(|name| {
            let runtime = world.runtime(name);
            turns.actor(name, async move { submit(&runtime).await.unwrap() })
        });
        turns.race().await;
        let [a, b] = submissions.map(Actor::output);
        assert!(a.newly_submitted != b.newly_submitted, "{a:?}, {b:?}");
        assert_eq!((a.run_id, a.job_id), (b.run_id, b.job_id));
        assert_eq!(world.disk.jobs().len(), 1);
    });
    assert!(explored.exhaustive, "{explored}");
    told(explored);
}

#[test]
fn a_run_submitted_while_the_loop_starts_runs_once() {
    told(few().run(|turns| async move {
        let world = World::new(&turns);
        let (submitter, worker) = (world.runtime("submit"), world.runtime("loop"));
        let submitted = turns.actor("submit", async move { submit(&submitter).await.unwrap() });
        turns.actor("wait", work(worker));
        turns.race().await;
        assert!(submitted.output().newly_submitted);
        assert_eq!(world.runner.calls(), [1, 1]);
        world.check_end().await;
    }));
}

#[test]
fn two_loops_do_one_run_once() {
    told(few().run(|turns| async move {
        let world = World::new(&turns);
        submit(&world.runtime("before")).await.unwrap();
        for (wait, name) in [("wait 1", "loop 1"), ("wait 2", "loop 2")] {
            turns.actor(wait, work(world.runtime(name)));
        }
        turns.race().await;
        assert_eq!(world.runner.calls(), [1, 1]);
        world.check_end().await;
    }));
}

#[test]
fn an_attempt_that_lost_its_lease_changes_nothing_later() {
    told(few().run(|turns| async move {
        let world = World::new(&turns);
        submit(&world.runtime("before")).await.unwrap();
        let worker = turns.actor("wait", work(world.runtime("loop")));
        let (points, disk) = (turns.clone(), world.disk.clone());
        turns.actor("pause", async move {
            points.point("every lease ends").await;
            disk.end_leases();
        });
        turns.race().await;
        assert_eq!(worker.output().result.as_deref(), Some(&b"in"[..]));
        assert!(world.runner.calls().iter().sum::<usize>() <= 3, "{:?}", world.runner.calls());
        world.check_end().await;
    }));
}

#[test]
fn no_submission_is_answered_that_a_crash_undoes() {
    told(few().exhaustive_up_to(500).run(|turns| async move {
        let mut world = World::new(&turns);
        let submissions = ["submit a", "submit b"].map(|name| {
            let runtime = world.runtime(name);
            turns.actor(name, async move { submit(&runtime).await })
        });
        let (points, disk) = (turns.clone(), world.disk.clone());
        let crash = turns.actor("crash", async move {
            points.point("another process takes over").await;
            disk.open()
        });
        turns.race().await;
        world.queue = crash.output();
        let stands = world.runtime("after").status(RUN).await.unwrap().is_some();
        for answer in submissions.map(Actor::output) {
            assert!(stands || answer.is_err(), "answered, and gone: {answer:?}");
        }
    }));
}

#[test]
fn what_was_acknowledged_survives_a_crash_anywhere_and_ends_once() {
    told(few().run(|turns| async move {
        let mut world = World::new(&turns);
        let (submitter, worker) = (world.runtime("submit"), world.runtime("loop"));
        let submitted = turns.actor("submit", async move { submit(&submitter).await });
        let running = worker.spawn(pending());
        let (points, disk) = (turns.clone(), world.disk.clone());
        let crash = turns.actor("crash", async move {
            points.point("another process takes over").await;
            disk.open()
        });
        turns.race().await;
        assert!(running.wait().await.is_err_and(|error| error.is_closed()));
        world.queue = crash.output();
        let runtime = world.runtime("after");
        match submitted.output() {
            Ok(told) => {
                let again = submit(&runtime).await.unwrap();
                assert!(told.newly_submitted && !again.newly_submitted, "an acknowledged run is lost");
            }
            Err(error) => {
                assert!(error.is_closed(), "{error}");
                submit(&runtime).await.unwrap();
            }
        }
        work(runtime).await;
        world.check_end().await;
        assert!(world.runner.calls().iter().all(|calls| (1..=2).contains(calls)), "{:?}", world.runner.calls());
    }));
}
