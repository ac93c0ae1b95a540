//! Nothing leaves the runtime that a crash could still undo: on a store whose flush is held back, no call answers and
//! no user code starts. Callers that give up leave nothing half done.
//!
//! The tests run on one thread, so that "it does not happen" can be shown without waiting for it: once the flush is
//! held and every task that can run has run, nothing more can happen until the gate opens.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use ::taquba::{JobStatus, OpenOptions, Queue};
use bytes::Bytes;
use futures::TryStreamExt;
use object_store::ObjectStore;
use object_store::memory::InMemory;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, yield_now};
use workflow_core::{Run, RunId};
use workflow_effects::{KeySpace, MemoScope, decode_run};
use workflow_runtime::{
    Error, NoopTerminalHook, RunSpec, RunnerHandle, Step, StepError, StepOutcome, TerminalHook, TerminalStatus,
    WorkflowRuntime, WorkflowRuntimeBuilder,
};
use workflow_testkit::Gate;

use crate::support::{Answer, Hook, Runner, at_once, spec, succeed, until};

const STEPS: &str = "workflow-steps";
const HOOKS: &str = "workflow-steps.notifications";
/// The payload of jobs that mean nothing.
const DECOY: &[u8] = b"decoy";

/// A call of the runner, waiting for the test's answer.
type Call = (Step, oneshot::Sender<Answer>);

/// A runner whose every call is answered by the test.
fn puppet() -> (Runner, mpsc::UnboundedReceiver<Call>) {
    let (calls, called) = mpsc::unbounded_channel();
    let runner = Runner::new(move |step| {
        let (answer, answered) = oneshot::channel();
        let _ = calls.send((step, answer));
        async move { answered.await.unwrap_or_else(|_| Err(StepError::permanent("no answer"))) }
    });
    (runner, called)
}

/// A queue as the library opens it, but with a flush interval to taste.
async fn open_queue(store: Arc<dyn ObjectStore>, flush_interval: Duration) -> Arc<Queue> {
    let mut options = OpenOptions::default()
        .flush_interval(flush_interval)
        .reaper_interval(Duration::from_secs(3600))
        .payload_offload_threshold(None);
    options.default_queue_config = options.default_queue_config.dead_retention(None);
    Arc::new(Queue::open_with_options(store, "queue", options).await.unwrap())
}

/// What the queue shows of a run, durable or not.
async fn shown(queue: &Queue, run_id: &str) -> Run {
    let id = RunId::parse(run_id).unwrap();
    let record = queue.view().kv_get(&KeySpace::new(STEPS).run(&id)).await.unwrap();
    decode_run(&id, record.as_deref()).unwrap()
}

/// Whether the run is active in its step `number`.
fn is_in(run: &Run, number: u32) -> bool {
    matches!(run, Run::Active(run) if run.step == number)
}

/// A runtime on a queue whose flushes can be held back.
struct Held<H: TerminalHook + 'static = NoopTerminalHook> {
    gate: Gate,
    queue: Arc<Queue>,
    runtime: WorkflowRuntime<Runner, H>,
}

impl Held {
    async fn new(runner: Runner) -> Self {
        Self::with(runner, NoopTerminalHook, |builder| builder).await
    }
}

impl<H: TerminalHook + 'static> Held<H> {
    async fn with(
        runner: Runner,
        hook: H,
        settings: impl FnOnce(WorkflowRuntimeBuilder<Runner, H>) -> WorkflowRuntimeBuilder<Runner, H>,
    ) -> Self {
        let gate = Gate::new(Arc::new(InMemory::new()));
        let store: Arc<dyn ObjectStore> = Arc::new(gate.clone());
        let queue = open_queue(store.clone(), Duration::from_millis(1)).await;
        for name in [STEPS, HOOKS] {
            queue.enqueue(name, DECOY.to_vec()).await.unwrap();
            queue.claim(name, Duration::ZERO).await.unwrap().unwrap();
        }
        let builder = WorkflowRuntime::builder(queue.clone(), store, runner, hook).retry_policy(at_once());
        Self { gate, queue, runtime: settings(builder).build().unwrap() }
    }

    fn spawn_loop(&self) -> RunnerHandle {
        self.runtime.spawn(std::future::pending())
    }

    /// Makes a call in a task of its own.
    fn begin<T: Send + 'static, F>(&self, call: impl FnOnce(WorkflowRuntime<Runner, H>) -> F) -> JoinHandle<T>
    where
        F: Future<Output = T> + Send + 'static,
    {
        tokio::spawn(call(self.runtime.clone()))
    }

    /// Returns once the queue shows the run so, durable or not.
    async fn until_shown(&self, run_id: &str, so: impl Fn(&Run) -> bool) {
        until(async || so(&shown(&self.queue, run_id).await)).await;
    }

    /// Returns once the current job of the run is claimed.
    async fn until_claimed(&self, run_id: &str) {
        until(async || match shown(&self.queue, run_id).await {
            Run::Active(run) => self.claimed(STEPS).await.iter().any(|job| *job == *run.job.as_str()),
            Run::Absent | Run::Ended(_) => false,
        })
        .await;
    }

    /// The claimed jobs of `queue`. Where a queue was empty, Taquba does not look for jobs before one is durable, or
    /// one comes back whose lease has expired: the decoy does.
    async fn claimed(&self, queue: &str) -> Vec<String> {
        self.queue.reap_now().await.unwrap();
        let claimed = self.queue.view().list_jobs(queue, JobStatus::Claimed, None, 10).await.unwrap();
        claimed.jobs.into_iter().filter(|job| job.payload != DECOY).map(|job| job.id).collect()
    }

    /// Returns once the flush is held back and everything that can happen before it has happened.
    async fn quiet(&self) {
        self.gate.until_waiting(1).await;
        all_have_run().await;
    }
}

/// Lets every other task of this thread run until none can.
async fn all_have_run() {
    for _ in 0..2_000 {
        yield_now().await;
    }
}

#[tokio::test]
async fn no_submission_is_answered_before_the_run_is_durable() {
    let held = Held::new(Runner::sync(succeed)).await;
    held.gate.close();
    let first = held.begin(async |runtime| runtime.submit(spec("a", "x")).await);
    held.until_shown("a", |run| is_in(run, 0)).await;
    let duplicate = held.begin(async |runtime| runtime.submit(spec("a", "x")).await);
    let mismatch = held.begin(async |runtime| runtime.submit(spec("a", "y")).await);
    held.quiet().await;
    assert!(!first.is_finished() && !duplicate.is_finished() && !mismatch.is_finished());

    held.gate.open();
    assert!(first.await.unwrap().unwrap().newly_submitted);
    assert!(!duplicate.await.unwrap().unwrap().newly_submitted);
    assert!(matches!(mismatch.await.unwrap(), Err(Error::InputMismatch(_))));
}

#[tokio::test]
async fn no_read_shows_a_submission_that_is_not_durable() {
    let held = Held::new(Runner::sync(succeed)).await;
    held.gate.close();
    let written = RunSpec { kv_writes: [(b"key".to_vec(), b"value".to_vec())].into(), ..spec("a", "x") };
    let submitted = held.begin(async |runtime| runtime.submit(written).await);
    held.until_shown("a", |run| is_in(run, 0)).await;
    let status = held.begin(async |runtime| runtime.status("a").await);
    let end = held.begin(async |runtime| runtime.run_end("a").await);
    let wait = held.begin(async |runtime| runtime.wait("a").await);
    let timed = held.begin(async |runtime| runtime.wait_timeout("a", Duration::MAX).await);
    let get = held.begin(async |runtime| runtime.kv().get(b"key").await);
    let scan = held.begin(async |runtime| runtime.kv().scan(b"k").try_collect::<Vec<_>>().await);
    held.quiet().await;
    assert!(!status.is_finished() && !end.is_finished() && !wait.is_finished() && !timed.is_finished());
    assert!(!get.is_finished() && !scan.is_finished() && !submitted.is_finished());
    // What is not in flight is told at any time.
    assert!(held.runtime.status("b").await.unwrap().is_none());
    assert!(held.runtime.kv().get(b"other").await.unwrap().is_none());
    assert!(held.runtime.kv().scan(b"o").try_collect::<Vec<_>>().await.unwrap().is_empty());

    held.gate.open();
    assert_eq!(status.await.unwrap().unwrap().unwrap().step, 0);
    assert!(end.await.unwrap().unwrap().is_none());
    assert_eq!(get.await.unwrap().unwrap().unwrap(), "value");
    assert_eq!(scan.await.unwrap().unwrap(), [(Bytes::from("key"), Bytes::from("value"))]);
    held.spawn_loop();
    assert_eq!(wait.await.unwrap().unwrap().status, TerminalStatus::Succeeded);
    assert_eq!(timed.await.unwrap().unwrap().unwrap().status, TerminalStatus::Succeeded);
}

#[tokio::test]
async fn no_step_starts_before_its_run_is_durable() {
    let (runner, mut calls) = puppet();
    let held = Held::new(runner).await;
    held.spawn_loop();
    held.gate.close();
    let submitted = held.begin(async |runtime| runtime.submit(spec("a", "x")).await);
    held.until_claimed("a").await;
    held.quiet().await;
    assert!(calls.try_recv().is_err() && !submitted.is_finished());

    held.gate.open();
    let (step, answer) = calls.recv().await.unwrap();
    answer.send(succeed(&step)).unwrap();
    assert_eq!(held.runtime.wait("a").await.unwrap().status, TerminalStatus::Succeeded);
}

/// Or a crash in the step would never be counted.
#[tokio::test]
async fn no_step_starts_on_a_doorbell_of_an_earlier_process_before_its_claim_is_durable() {
    let disk = InMemory::new();
    let store: Arc<dyn ObjectStore> = Arc::new(disk.clone());
    let queue = open_queue(store.clone(), Duration::from_millis(1)).await;
    let earlier = WorkflowRuntime::builder(queue, store, Runner::sync(succeed), NoopTerminalHook).build().unwrap();
    earlier.submit(spec("a", "x")).await.unwrap();

    let gate = Gate::new(Arc::new(disk.fork()));
    let store: Arc<dyn ObjectStore> = Arc::new(gate.clone());
    let queue = open_queue(store.clone(), Duration::from_millis(1)).await;
    let (runner, mut calls) = puppet();
    let runtime = WorkflowRuntime::builder(queue, store, runner, NoopTerminalHook).build().unwrap();
    gate.close();
    runtime.spawn(std::future::pending());
    gate.until_waiting(1).await;
    all_have_run().await;
    assert!(calls.try_recv().is_err(), "the step starts on a claim that a crash can undo");

    gate.open();
    let (step, answer) = calls.recv().await.unwrap();
    answer.send(succeed(&step)).unwrap();
    assert_eq!(runtime.wait("a").await.unwrap().status, TerminalStatus::Succeeded);
}

/// The first attempt of the first step answers `answer`; the next call of the runner must not come before that is
/// durable.
async fn check_next_call(answer: Answer, next_step: u32, inline_steps: u32) {
    let (runner, mut calls) = puppet();
    let held = Held::with(runner, NoopTerminalHook, |builder| builder.inline_steps(inline_steps)).await;
    held.spawn_loop();
    held.runtime.submit(spec("a", "x")).await.unwrap();
    let (step, answers) = calls.recv().await.unwrap();
    step.effects.put("key", "value").unwrap();
    let before = shown(&held.queue, "a").await;
    held.gate.close();
    answers.send(answer).unwrap();
    held.until_shown("a", |run| *run != before).await;
    held.until_claimed("a").await;
    let effect = held.begin(async |runtime| runtime.kv().get(b"key").await);
    let status = held.begin(async |runtime| runtime.status("a").await);
    held.quiet().await;
    assert!(calls.try_recv().is_err(), "the next call came too early");
    // The effects of a failed attempt are dropped, so that the key is not in flight.
    assert_eq!(effect.is_finished(), next_step == 0);
    assert!(!status.is_finished());

    held.gate.open();
    let (step, answers) = calls.recv().await.unwrap();
    assert_eq!(step.step_number, next_step);
    answers.send(succeed(&step)).unwrap();
    assert_eq!(held.runtime.wait("a").await.unwrap().final_step, next_step);
    assert_eq!(effect.await.unwrap().unwrap().is_some(), next_step == 1);
    assert_eq!(status.await.unwrap().unwrap().unwrap().step, next_step);
}

#[tokio::test]
async fn no_step_starts_before_the_last_is_durable() {
    let now = || Ok(StepOutcome::continue_now(b"next".to_vec()));
    check_next_call(now(), 1, 32).await;
    check_next_call(now(), 1, 0).await;
    check_next_call(Ok(StepOutcome::continue_after(b"next".to_vec(), Duration::ZERO)), 1, 32).await;
    check_next_call(Err(StepError::transient("again")), 0, 32).await;
}

#[tokio::test]
async fn no_end_is_told_before_it_is_durable() {
    let (runner, mut calls) = puppet();
    let hook = Hook::default();
    let held = Held::with(runner, hook.clone(), |builder| builder).await;
    held.spawn_loop();
    held.runtime.submit(spec("a", "x")).await.unwrap();
    let waiting = held.begin(async |runtime| runtime.wait("a").await);
    let (step, answer) = calls.recv().await.unwrap();
    held.gate.close();
    answer.send(succeed(&step)).unwrap();
    held.until_shown("a", |run| matches!(run, Run::Ended(_))).await;
    until(async || held.claimed(HOOKS).await.len() == 1).await;
    let wait = held.begin(async |runtime| runtime.wait("a").await);
    let end = held.begin(async |runtime| runtime.run_end("a").await);
    let status = held.begin(async |runtime| runtime.status("a").await);
    let duplicate = held.begin(async |runtime| runtime.submit(spec("a", "x")).await);
    held.quiet().await;
    assert!(hook.told().is_empty());
    assert!(!waiting.is_finished() && !wait.is_finished() && !end.is_finished());
    assert!(!status.is_finished() && !duplicate.is_finished());

    held.gate.open();
    assert_eq!(waiting.await.unwrap().unwrap().status, TerminalStatus::Succeeded);
    assert_eq!(wait.await.unwrap().unwrap().status, TerminalStatus::Succeeded);
    assert!(end.await.unwrap().unwrap().is_some());
    assert!(duplicate.await.unwrap().unwrap().end.is_some());
    until(async || hook.told().len() == 1).await;
    until(async || held.runtime.kv().get(b"told/a").await.unwrap().is_some()).await;
}

#[tokio::test]
async fn no_memo_tells_what_is_not_durable() {
    let (runner, mut calls) = puppet();
    let held = Held::new(runner).await;
    held.spawn_loop();
    held.runtime.submit(spec("a", "x")).await.unwrap();
    let (step, answer) = calls.recv().await.unwrap();
    let incarnation = shown(&held.queue, "a").await.incarnation().unwrap();
    let entry = KeySpace::new(STEPS).memo(&RunId::parse("a").unwrap(), incarnation, MemoScope::Step(0), "key");
    held.gate.close();
    let memo = step.memo.clone();
    let put = tokio::spawn(async move { memo.put("key", b"7").await });
    until(async || held.queue.view().kv_get(&entry).await.unwrap().is_some()).await;
    let memo = step.memo.clone();
    let get = tokio::spawn(async move { memo.get("key").await });
    let memo = step.memo.clone();
    let memoized = tokio::spawn(async move { memo.memoized("key", async { Ok::<_, StepError>(8) }).await });
    held.quiet().await;
    assert!(!put.is_finished() && !get.is_finished() && !memoized.is_finished());
    assert!(step.memo.get("other").await.unwrap().is_none());

    held.gate.open();
    put.await.unwrap().unwrap();
    assert_eq!(get.await.unwrap().unwrap().unwrap(), b"7");
    assert_eq!(memoized.await.unwrap().unwrap(), 7);
    answer.send(succeed(&step)).unwrap();
    held.runtime.wait("a").await.unwrap();
}

/// Copies of the store, each made at the moment of something that must not come before its cause is durable.
#[derive(Clone)]
struct Images {
    store: Arc<InMemory>,
    taken: Arc<Mutex<Vec<(String, InMemory)>>>,
}

impl Images {
    fn take(&self, moment: impl Into<String>) {
        self.taken.lock().unwrap().push((moment.into(), self.store.fork()));
    }
}

impl TerminalHook for Images {
    async fn on_termination(
        &self,
        _: &workflow_runtime::RunOutcome,
        _: &workflow_runtime::TerminalEffects,
    ) -> Result<(), StepError> {
        self.take("hook");
        Ok(())
    }
}

/// With a flush every 3 s (of a paused clock), a crash at the start of a step or hook, or right after an answer, keeps
/// what led to it.
#[tokio::test(start_paused = true)]
async fn on_a_slow_store_everything_starts_after_its_cause_is_durable() {
    const FLUSH: Duration = Duration::from_secs(3);
    let images = Images { store: Arc::new(InMemory::new()), taken: Arc::default() };
    let queue = open_queue(images.store.clone(), FLUSH).await;
    let starts = images.clone();
    let runner = Runner::sync(move |step| {
        starts.take(format!("step {}", step.step_number));
        match step.step_number {
            0 => Ok(StepOutcome::continue_now(Vec::new())),
            1 => Ok(StepOutcome::continue_after(Vec::new(), Duration::from_millis(1))),
            _ => succeed(step),
        }
    });
    let builder = WorkflowRuntime::builder(queue, images.store.clone(), runner, images.clone());
    let runtime = builder.build().unwrap();
    runtime.spawn(std::future::pending());
    let begun = tokio::time::Instant::now();
    runtime.submit(spec("a", "x")).await.unwrap();
    images.take("submitted");
    runtime.wait("a").await.unwrap();
    images.take("ended");
    until(async || images.taken.lock().unwrap().iter().any(|(moment, _)| moment == "hook")).await;
    // Four commits, one after the other, the first perhaps just before a flush.
    assert!(begun.elapsed() >= FLUSH * 3, "{:?}", begun.elapsed());

    let taken = std::mem::take(&mut *images.taken.lock().unwrap());
    assert_eq!(taken.len(), 6);
    for (moment, image) in taken {
        let queue = open_queue(Arc::new(image), Duration::from_millis(1)).await;
        let run = shown(&queue, "a").await;
        let holds = match moment.as_str() {
            "submitted" => !matches!(run, Run::Absent),
            "step 0" => is_in(&run, 0),
            "step 1" => is_in(&run, 1),
            "step 2" => is_in(&run, 2),
            _ => matches!(run, Run::Ended(_)),
        };
        assert!(holds, "{moment}: {run:?}");
    }
}

/// Polls `call` so many times and drops it; its answer, if it came by then.
async fn polled<T>(call: impl Future<Output = T>, polls: usize) -> Option<T> {
    let (mut call, mut left) = (pin!(call), polls);
    poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match call.as_mut().poll(context) {
            Poll::Ready(answer) => Poll::Ready(Some(answer)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Calls `answered` with 0 polls, 1, and so on, until so many polls bring an answer.
async fn at_every_poll(mut answered: impl AsyncFnMut(usize) -> bool) {
    let mut polls = 0;
    while !answered(polls).await {
        polls += 1;
        assert!(polls < 1_000, "the call is never answered");
    }
    assert!(polls > 0);
}

#[tokio::test]
async fn a_dropped_submission_is_made_wholly_or_not_at_all() {
    const WRITES: [&str; 3] = ["first", "second", "third"];
    let calls = Arc::new(Mutex::new(Vec::new()));
    let called = calls.clone();
    let held = Held::new(Runner::sync(move |step| {
        called.lock().unwrap().push(step.run_id.clone());
        succeed(step)
    }))
    .await;
    held.spawn_loop();
    let input = "x".repeat(40_000);
    let submission = |id: &str| {
        let key = |name: &str| (format!("{id}/{name}").into_bytes(), b"written".to_vec());
        RunSpec { kv_writes: WRITES.map(key).into(), ..spec(id, &input) }
    };
    let written = async |id: &str| {
        let mut written = Vec::new();
        for name in WRITES {
            written.push(held.runtime.kv().get(format!("{id}/{name}").as_bytes()).await.unwrap().is_some());
        }
        written
    };
    at_every_poll(async |polls| {
        let id = format!("run-{polls}");
        let answer = polled(held.runtime.submit(submission(&id)), polls).await;
        let before = held.runtime.status(&id).await.unwrap().is_some();
        let writes = written(&id).await;
        let after = held.runtime.status(&id).await.unwrap().is_some();
        assert!(!before || writes == [true; 3], "a run without its writes");
        assert!(after || writes == [false; 3], "writes without their run");
        let again = held.runtime.submit(submission(&id)).await.unwrap();
        assert!(!before || !again.newly_submitted);
        assert_eq!(held.runtime.wait(&id).await.unwrap().result.unwrap(), input.as_bytes());
        assert_eq!(written(&id).await, [true; 3]);
        assert_eq!(calls.lock().unwrap().iter().filter(|called| **called == id).count(), 1);
        answer.is_some()
    })
    .await;
}

#[tokio::test]
async fn what_a_dropped_call_began_goes_on_to_its_end() {
    let (runner, mut calls) = puppet();
    let held = Held::new(runner).await;
    held.spawn_loop();
    held.gate.close();
    let submission = held.begin(async |runtime| runtime.submit(spec("a", "x")).await);
    held.until_shown("a", |run| is_in(run, 0)).await;
    submission.abort();
    assert!(submission.await.unwrap_err().is_cancelled());
    held.gate.open();
    assert!(!held.runtime.submit(spec("a", "x")).await.unwrap().newly_submitted);

    let (step, answer) = calls.recv().await.unwrap();
    let incarnation = shown(&held.queue, "a").await.incarnation().unwrap();
    let entry = KeySpace::new(STEPS).memo(&RunId::parse("a").unwrap(), incarnation, MemoScope::Step(0), "key");
    held.gate.close();
    let memo = step.memo.clone();
    let put = tokio::spawn(async move { memo.put("key", b"value").await });
    until(async || held.queue.view().kv_get(&entry).await.unwrap().is_some()).await;
    put.abort();
    assert!(put.await.unwrap_err().is_cancelled());
    held.gate.open();
    assert_eq!(step.memo.get("key").await.unwrap().unwrap(), b"value");

    answer.send(succeed(&step)).unwrap();
    assert_eq!(held.runtime.wait("a").await.unwrap().status, TerminalStatus::Succeeded);
}

#[tokio::test]
async fn a_dropped_memo_put_stores_its_value_wholly_or_not_at_all() {
    let (runner, mut calls) = puppet();
    let held = Held::new(runner).await;
    held.spawn_loop();
    held.runtime.submit(spec("a", "x")).await.unwrap();
    let (step, answer) = calls.recv().await.unwrap();
    for size in [1, 40_000] {
        let (value, other) = (vec![1; size], vec![2; size]);
        at_every_poll(async |polls| {
            let key = format!("{size}/{polls}");
            let answer = polled(step.memo.put(&key, &value), polls).await;
            let stored = step.memo.get(&key).await.unwrap();
            assert!(stored.is_none_or(|stored| stored == value));
            step.memo.put(&key, &other).await.unwrap();
            assert_eq!(step.memo.get(&key).await.unwrap().unwrap(), other);
            // Dropped in the place of another value, the new value or the old one is there.
            polled(step.memo.put(&key, &value), polls).await;
            let stored = step.memo.get(&key).await.unwrap().unwrap();
            assert!(stored == value || stored == other);
            answer.is_some()
        })
        .await;
    }
    answer.send(succeed(&step)).unwrap();
    assert_eq!(held.runtime.wait("a").await.unwrap().status, TerminalStatus::Succeeded);
}

#[tokio::test]
async fn a_dropped_wait_leaves_the_run_and_the_next_wait_alone() {
    let (runner, mut calls) = puppet();
    let held = Held::new(runner).await;
    held.spawn_loop();
    at_every_poll(async |polls| {
        let id = format!("run-{polls}");
        held.runtime.submit(spec(&id, "x")).await.unwrap();
        tokio::select! {
            biased;
            early = polled(held.runtime.wait(&id), polls) => assert!(early.is_none(), "the run has not ended"),
            () = all_have_run() => {}
        }
        assert!(held.runtime.wait_timeout(&id, Duration::ZERO).await.unwrap().is_none());
        let (step, answer) = calls.recv().await.unwrap();
        answer.send(succeed(&step)).unwrap();
        let late = polled(held.runtime.wait(&id), polls).await;
        assert_eq!(held.runtime.wait(&id).await.unwrap().status, TerminalStatus::Succeeded);
        late.is_some()
    })
    .await;
}
