//! Puts in flight: they outlive their callers, and who waits for them knows when they are over.

use super::*;

/// Runs work in a task of its own.
fn spawned() -> Spawn {
    Spawn::new(|work| {
        let task = tokio::spawn(work);
        Box::pin(async move { drop(task.await) })
    })
}

impl Fixture {
    /// A memo whose puts run in tasks of their own, and the seal of its attempt.
    fn spawning(&self, revision: u64) -> (Memo, Seal) {
        let context = MemoContext { spawn: spawned(), ..self.context(MemoScope::Run, revision) };
        let seal = context.seal.clone();
        (Memo::new(context), seal)
    }
}

/// Begins a put and drops its future.
async fn begin(memo: &Memo, value: &[u8]) {
    tokio::select! {
        biased;
        ended = memo.put("k", value) => panic!("it ended at once: {ended:?}"),
        () = std::future::ready(()) => {}
    }
}

async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_put_lands_whole_although_its_caller_is_gone() {
    let fixture = Fixture::new();
    let (memo, seal) = fixture.spawning(1);
    for value in [vec![1; 3], vec![2; LARGE]] {
        begin(&memo, &value).await;
        while memo.get("k").await.unwrap().as_ref() != Some(&value) {
            tokio::task::yield_now().await;
        }
    }
    seal.seal();
    until(|| seal.is_idle()).await;
    assert_eq!(fixture.object_paths().await.len(), 1);
}

#[tokio::test]
async fn an_attempt_is_not_idle_before_its_last_put_is_over() {
    let fixture = Fixture::new();
    let (memo, seal) = fixture.spawning(1);
    let held = Arc::new(Notify::new());
    fixture.script([Script::Held(held.clone())]);
    begin(&memo, b"v").await;
    until(|| fixture.commits() == 1).await;
    seal.seal();
    for _ in 0..10 {
        tokio::task::yield_now().await;
        assert!(!seal.is_idle());
    }
    check(&memo, "k", None).await;
    held.notify_one();
    until(|| seal.is_idle()).await;
    check(&memo, "k", Some(b"v")).await;
}

#[tokio::test]
async fn a_put_that_the_end_of_its_attempt_overtakes_leaves_nothing() {
    let fixture = Fixture::new();
    let (memo, seal) = fixture.spawning(1);
    begin(&memo, &[7; LARGE]).await;
    seal.seal();
    assert!(seal.is_idle(), "it has not begun");
    let (memo, seal) = fixture.spawning(1);
    let held = Arc::new(Notify::new());
    fixture.script([Script::Held(held.clone())]);
    begin(&memo, &[7; LARGE]).await;
    until(|| fixture.commits() == 1).await;
    seal.seal();
    held.notify_one();
    until(|| seal.is_idle()).await;
    check(&memo, "k", None).await;
    assert_eq!((fixture.commits(), fixture.object_paths().await), (1, Vec::new()), "only the row of the objects");
}

#[tokio::test]
async fn a_put_that_its_runtime_drops_is_a_transient_error() {
    let spawn = Spawn::new(|work| {
        drop(work);
        Box::pin(std::future::ready(()))
    });
    let memo = Memo::new(MemoContext { spawn, ..Fixture::new().context(MemoScope::Run, 1) });
    let error = memo.put("k", b"v").await.unwrap_err();
    assert!(!error.is_permanent(), "{error}");
}
