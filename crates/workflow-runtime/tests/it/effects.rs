//! Effects, KV reads and memos through a real runtime.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::TryStreamExt;
use workflow_runtime::{EffectsHandle, Memo, NoopTerminalHook, StepError, StepErrorKind, StepOutcome, TerminalStatus};

use crate::support::{Answer, Runner, World, spec, succeed, until};

#[tokio::test]
async fn effects_of_every_committed_step_are_there_and_of_no_other() {
    let world = World::new(Runner::sync(|step| {
        step.effects.put(format!("attempt/{}/{}", step.step_number, step.attempts), "x")?;
        step.effects.put(format!("step/{}", step.step_number), format!("{}", step.attempts))?;
        if step.attempts < 3 {
            return Err(StepError::transient("again"));
        }
        match (step.run_id.as_str(), step.step_number) {
            (_, 0 | 1) => Ok(StepOutcome::continue_now(vec![])),
            ("failed", _) => Ok(StepOutcome::Fail { reason: String::new() }),
            ("cancelled", _) => Ok(StepOutcome::Cancel { reason: String::new() }),
            _ => succeed(step),
        }
    }))
    .await;
    for id in ["succeeded", "failed", "cancelled"] {
        world.end_of(spec(id, "")).await;
        let rows: Vec<_> = world.runtime.kv().scan(b"").try_collect().await.unwrap();
        let keys: Vec<_> = rows.iter().map(|(key, _)| String::from_utf8_lossy(key).into_owned()).collect();
        assert_eq!(keys, ["attempt/0/3", "attempt/1/3", "attempt/2/3", "step/0", "step/1", "step/2"]);
    }
    world.close().await;
}

#[tokio::test]
async fn a_delete_takes_what_an_earlier_step_put() {
    let world = World::new(Runner::sync(|step| match step.step_number {
        0 => {
            step.effects.put("cart", "full")?;
            Ok(StepOutcome::continue_now(vec![]))
        }
        _ => {
            step.effects.delete("cart")?;
            succeed(step)
        }
    }))
    .await;
    world.end_of(spec("a", "")).await;
    assert_eq!(world.value("cart").await, None);
    world.close().await;
}

#[tokio::test]
async fn a_step_reads_what_is_committed_and_not_what_it_has_staged() {
    let world = World::new(Runner::new(|step| async move {
        let key = b"counter";
        let before = step.kv.get(key).await?.map_or(0, |value| value[0]);
        step.effects.put(key.to_vec(), vec![before + 1])?;
        assert_eq!(step.kv.get(key).await?.map_or(0, |value| value[0]), before);
        assert_eq!(u32::from(before), step.step_number);
        if step.step_number == 9 { succeed(&step) } else { Ok(StepOutcome::continue_now(vec![])) }
    }))
    .await;
    assert_eq!(world.end_of(spec("a", "")).await.error, None);
    world.close().await;
}

#[tokio::test]
async fn handles_refuse_to_write_once_their_attempt_has_ended() {
    type Kept = Arc<Mutex<Option<(EffectsHandle, Memo, Memo)>>>;
    let kept: Kept = Kept::default();
    let keep = kept.clone();
    let world = World::new(Runner::sync(move |step| {
        *keep.lock().unwrap() = Some((step.effects.clone(), step.memo.clone(), step.run_memo.clone()));
        succeed(step)
    }))
    .await;
    world.end_of(spec("a", "")).await;
    let (effects, memo, run_memo) = kept.lock().unwrap().take().unwrap();
    let late = [
        StepError::from(effects.put("late", "x").unwrap_err()),
        StepError::from(effects.delete("late").unwrap_err()),
        StepError::from(memo.put("late", b"x").await.unwrap_err()),
        StepError::from(run_memo.put("late", b"x").await.unwrap_err()),
    ];
    assert!(late.iter().all(|error| error.kind == StepErrorKind::Permanent), "{late:?}");
    assert_eq!(world.value("late").await, None);
    drop((memo, run_memo));
    world.close().await;
}

#[tokio::test]
async fn an_attempt_that_timed_out_cannot_write_any_more() {
    let (kept, refused) = (Arc::new(Mutex::new(None)), Arc::new(AtomicU32::new(0)));
    let (keep, count) = (kept.clone(), refused.clone());
    let runner = Runner::new(move |step| {
        let (keep, count) = (keep.clone(), count.clone());
        async move {
            if step.attempts == 1 {
                *keep.lock().unwrap() = Some((step.memo.clone(), step.cancel_token.clone()));
                std::future::pending::<()>().await;
            }
            let (memo, token) = keep.lock().unwrap().clone().unwrap();
            assert!(token.is_cancelled());
            step.memo.put("who", b"second").await?;
            count.fetch_add(u32::from(memo.put("who", b"first").await.is_err()), Ordering::SeqCst);
            let value = step.memo.get("who").await?;
            Ok(StepOutcome::Succeed { result: value.unwrap_or_default() })
        }
    });
    let timeout = Duration::from_millis(20);
    let world = World::with(runner, NoopTerminalHook, |builder| builder.step_timeout(timeout)).await;
    assert_eq!(world.end_of(spec("a", "")).await.result.as_deref(), Some(b"second".as_slice()));
    assert_eq!(refused.load(Ordering::SeqCst), 1);
    kept.lock().unwrap().take();
    world.close().await;
}

#[tokio::test]
async fn memoized_work_is_done_once_in_a_step_and_once_in_a_run() {
    let (steps, runs) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (per_step, per_run) = (steps.clone(), runs.clone());
    let world = World::new(Runner::new(move |step| {
        let (per_step, per_run) = (per_step.clone(), per_run.clone());
        async move {
            let count = async |count: &AtomicU32| Ok::<_, StepError>(count.fetch_add(1, Ordering::SeqCst));
            let of_step: u32 = step.memo.memoized("paid", count(&per_step)).await?;
            let of_run: u32 = step.run_memo.memoized("paid", count(&per_run)).await?;
            assert_eq!((of_step, of_run), (step.step_number, 0));
            if step.attempts < 3 {
                return Err(StepError::transient("again"));
            }
            if step.step_number == 2 { succeed(&step) } else { Ok(StepOutcome::continue_now(vec![])) }
        }
    }))
    .await;
    assert_eq!(world.end_of(spec("a", "")).await.error, None);
    assert_eq!((steps.load(Ordering::SeqCst), runs.load(Ordering::SeqCst)), (3, 1));
    world.close().await;
}

#[tokio::test]
async fn memo_values_of_every_size_come_back_whole() {
    let world = World::new(Runner::new(|step| async move {
        for len in [0, 1, 32 * 1024, 32 * 1024 + 1, 1 << 20] {
            let value = vec![7; len];
            let key = format!("of {len}");
            if step.attempts == 1 {
                step.memo.put(&key, &value).await?;
            }
            assert!(step.memo.get(&key).await? == Some(value));
        }
        if step.attempts == 1 { Err(StepError::transient("again")) } else { succeed(&step) }
    }))
    .await;
    assert_eq!(world.end_of(spec("a", "")).await.error, None);
    world.close().await;
}

/// Ends the run of a runner that makes one bad call and hands the error on; checks that it failed without a retry.
async fn check_permanent(bad: impl Fn(&workflow_runtime::Step) -> Answer + Send + Sync + 'static, message: &str) {
    let world = World::new(Runner::sync(bad)).await;
    let end = world.end_of(spec("a", "")).await;
    assert_eq!(end.status, TerminalStatus::Failed);
    assert!(end.error.as_deref().unwrap().contains(message), "{:?}", end.error);
    until(async || world.dead_jobs().await.len() == 1).await;
    world.close().await;
}

#[tokio::test]
async fn a_bad_effect_fails_its_step_for_good() {
    check_permanent(|step| step.effects.put("workflow/run", "x").map(|()| unreachable!())?, "reserved").await;
    check_permanent(|step| step.effects.put("", "x").map(|()| unreachable!())?, "1 to 1024 bytes").await;
    let conflicting = |step: &workflow_runtime::Step| {
        step.effects.put("a", "x")?;
        step.effects.delete("a")?;
        succeed(step)
    };
    check_permanent(conflicting, "both put and deleted").await;
}

#[tokio::test]
async fn the_largest_effects_of_a_step_commit() {
    let world = World::new(Runner::sync(|step| {
        for i in 0..999 {
            step.effects.put(format!("{i:03}"), vec![1; 3_000])?;
        }
        step.effects.put(vec![b'k'; 1024], vec![1; 256 * 1024])?;
        succeed(step)
    }))
    .await;
    assert_eq!(world.end_of(spec("a", "")).await.error, None);
    let rows: Vec<_> = world.runtime.kv().scan(b"").try_collect().await.unwrap();
    assert_eq!(rows.len(), 1_000);
    world.close().await;
}
