//! Part A of the public API, written the way users' code writes it: this file compiles, or their code does not.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures::{Stream, TryStreamExt};
use object_store::ObjectStore;
use tokio_util::sync::CancellationToken;
use workflow_runtime::{
    EffectsHandle, Error, KvReadHandle, LeaseHandle, Memo, NoopTerminalHook, QueuePort, Result, RunOutcome, RunSpec,
    RunnerHandle, Step, StepError, StepErrorKind, StepOutcome, StepRunner, SubmitOutcome, TaqubaQueue, TerminalEffects,
    TerminalHook, TerminalStatus, Trigger, WorkflowRuntime, WorkflowRuntimeBuilder,
};

struct Shop;

impl StepRunner for Shop {
    async fn run_step(&self, step: &Step) -> Result<StepOutcome, StepError> {
        let charge: u64 = step.memo.memoized("charge", async { Ok::<_, StepError>(17) }).await?;
        let total: u64 =
            step.run_memo.memoized_by_content(&("total", charge), async { Ok::<_, Error>(charge) }).await?;
        step.memo.put("raw", b"bytes").await?;
        let raw: Option<Vec<u8>> = step.memo.get("raw").await?;
        step.effects.put("paid", total.to_string())?;
        step.effects.delete(b"cart".to_vec())?;
        let _: Option<Bytes> = step.kv.get(b"paid").await?;
        let rows: Vec<(Bytes, Bytes)> = step.kv.scan(b"orders/").try_collect().await?;
        step.lease.ensure_at_least(Duration::from_secs(60))?;
        if step.is_last_attempt() || step.cancel_token.is_cancelled() {
            return Err(StepError::transient("busy").retry_after(Duration::from_secs(1)));
        }
        Ok(StepOutcome::Succeed { result: [raw.unwrap_or_default(), vec![rows.len() as u8]].concat() })
    }
}

struct Mail;

impl TerminalHook for Mail {
    async fn on_termination(&self, outcome: &RunOutcome, effects: &TerminalEffects) -> Result<(), StepError> {
        effects.put(format!("mailed/{}", outcome.run_id), outcome.error.clone().unwrap_or_default())?;
        effects.delete("outbox")?;
        Ok(())
    }

    fn observes(&self, outcome: &RunOutcome) -> bool {
        outcome.status == TerminalStatus::Failed
    }
}

fn built(queue: Arc<::taquba::Queue>, store: Arc<dyn ObjectStore>) -> WorkflowRuntimeBuilder<Shop, Mail> {
    WorkflowRuntime::builder(queue, store, Shop, Mail)
}

fn over(port: Arc<dyn QueuePort>, store: Arc<dyn ObjectStore>) -> WorkflowRuntimeBuilder<Shop, NoopTerminalHook> {
    WorkflowRuntime::over(port, store, Shop, NoopTerminalHook)
}

#[tokio::test]
async fn users_code_compiles_and_runs() -> Result<()> {
    let storage = workflow_runtime::open("memory:").await?;
    let runtime = built(storage.queue().clone(), storage.store().clone()).build()?;
    let other = over(Arc::new(TaqubaQueue::over(storage.queue().clone())), storage.store().clone());
    assert!(other.queue_name("other").build().is_ok());
    let clone = runtime.clone();
    let handle: RunnerHandle = clone.spawn(std::future::pending());
    let spec = RunSpec {
        run_id: Some("order-1".to_owned()),
        input: b"order".to_vec(),
        headers: HashMap::from([("tenant".to_owned(), "a".to_owned())]),
        priority: Some(5),
        max_attempts_per_step: Some(3),
        run_at: Some(SystemTime::now()),
        kv_writes: HashMap::from([(b"orders/1".to_vec(), b"new".to_vec())]),
    };
    let SubmitOutcome { run_id, newly_submitted, job_id, end, .. } = runtime.submit(spec.clone()).await?;
    assert!(newly_submitted && !job_id.is_empty() && end.is_none());
    let RunOutcome { status, result, error, headers, final_step, .. } = runtime.wait(&run_id).await?;
    assert_eq!((status, error, final_step), (TerminalStatus::Succeeded, None, 0));
    assert_eq!(result.as_deref(), Some(b"bytes\x01".as_slice()));
    assert_eq!(headers["tenant"], "a");
    assert!(runtime.submit(spec).await?.end.is_some());
    handle.shutdown().await?;
    assert!(format!("{:?}", RunSpec { input: b"secret".to_vec(), ..Default::default() }).contains("input_len: 6"));
    Ok(())
}

#[tokio::test]
async fn a_runner_is_tested_without_a_runtime() -> Result<()> {
    let mut step = Step::detached("order 17");
    step.kv = KvReadHandle::detached();
    step.lease = LeaseHandle::detached();
    step.cancel_token = CancellationToken::new();
    step.attempts = 2;
    let outcome = Shop.run_step(&step).await.expect("the step succeeds");
    assert!(matches!(outcome, StepOutcome::Succeed { .. }));
    assert_eq!(step.effects.staged().puts.len(), 1);
    let (memo, effects): (Memo, EffectsHandle) = (Memo::detached(), EffectsHandle::detached());
    memo.put("a", b"1").await?;
    effects.put("a", "1")?;
    assert!(!format!("{step:?}").contains("order 17"));
    let hooked = TerminalEffects::detached();
    hooked.put("a", "1")?;
    assert_eq!(hooked.staged().puts.len(), 1);
    Ok(())
}

#[test]
fn errors_say_whether_another_attempt_helps() {
    let transient = StepError::transient("later");
    assert_eq!((transient.kind, transient.to_string()), (StepErrorKind::Transient, "later".to_owned()));
    let error: &dyn std::error::Error = &StepError::permanent("never");
    assert_eq!(error.to_string(), "never");
    let mismatch = StepError::from(Error::InputMismatch("order-1".to_owned()));
    assert_eq!(mismatch.kind, StepErrorKind::Permanent);
    assert!(mismatch.message.contains("order-1"));
    let down = Error::Store(object_store::Error::NotImplemented {
        operation: "put".to_owned(),
        implementer: "test".to_owned(),
    });
    assert_eq!(StepError::from(down).kind, StepErrorKind::Transient);
    let (sealed, seal) = EffectsHandle::sealable();
    seal.take();
    let refused = sealed.put("late", "x").expect_err("a sealed handle takes nothing");
    assert_eq!(StepError::from(refused).kind, StepErrorKind::Permanent);
}

#[test]
fn outcomes_have_short_names() {
    let now = StepOutcome::continue_now(b"x".to_vec());
    assert_eq!(now, StepOutcome::Continue { payload: b"x".to_vec(), when: Trigger::Immediate });
    let later = StepOutcome::continue_after(b"x".to_vec(), Duration::from_secs(1));
    assert!(matches!(later, StepOutcome::Continue { when: Trigger::After(_), .. }));
    fn assert_stream<S: Stream<Item = workflow_effects_result::Item> + Send>(_: &S) {}
    assert_stream(&KvReadHandle::detached().scan(b"a"));
}

/// The item of a scan, as the handle's own crate names it.
mod workflow_effects_result {
    pub(super) type Item = Result<(bytes::Bytes, bytes::Bytes), workflow_effects::Error>;
}
