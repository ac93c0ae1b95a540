//! What is in hand is busy, and nothing else.

use std::pin::pin;

use futures::FutureExt;
use workflow_effects::{Committer, KeySpace, KvStore, MemoScope, MemoryKv, ObjectValues, Seal};
use workflow_memo::{Memo, MemoContext};

use super::*;

fn run(id: &str) -> RunId {
    RunId::parse(id).unwrap()
}

#[test]
fn a_run_is_busy_until_the_last_that_is_in_hand_is_over() {
    let in_hand = InHand::default();
    let (a, one, two) = (run("a"), Incarnation::new(1), Incarnation::new(2));
    let first = in_hand.enter(&a, one);
    let second = in_hand.enter(&a, one);
    let other = in_hand.enter(&a, two);
    drop(first);
    assert!(in_hand.is_busy(&a, one) && in_hand.is_busy(&a, two) && !in_hand.is_busy(&run("b"), one));
    drop(second);
    assert!(!in_hand.is_busy(&a, one) && in_hand.is_busy(&a, two));
    drop(other);
    assert!(in_hand.lock().is_empty());
}

#[tokio::test]
async fn whoever_waits_for_a_run_goes_on_when_the_last_is_let_go() {
    let in_hand = InHand::default();
    let (a, one, two) = (run("a"), Incarnation::new(1), Incarnation::new(2));
    in_hand.until_let_go(&a, one).await;
    let (first, second, other) = (in_hand.enter(&a, one), in_hand.enter(&a, one), in_hand.enter(&a, two));
    let mut waits = pin!(in_hand.until_let_go(&a, one));
    for held in [first, other] {
        drop(held);
        assert!(waits.as_mut().now_or_never().is_none());
    }
    drop(second);
    assert!(waits.as_mut().now_or_never().is_some());
}

#[tokio::test]
async fn a_put_is_in_hand_to_its_end_although_nobody_waits_for_it() {
    let in_hand = InHand::default();
    let (a, one) = (run("a"), Incarnation::new(1));
    let memo = memo(&in_hand, &a, one);
    assert!(!in_hand.is_busy(&a, one), "a memo alone keeps nothing busy");
    tokio::select! {
        biased;
        ended = memo.put("k", b"v") => panic!("it ended at once: {ended:?}"),
        () = std::future::ready(()) => {}
    }
    assert!(in_hand.is_busy(&a, one));
    while in_hand.is_busy(&a, one) {
        tokio::task::yield_now().await;
    }
    assert_eq!(memo.get("k").await.unwrap(), Some(b"v".to_vec()));
}

fn memo(in_hand: &InHand, run_id: &RunId, incarnation: Incarnation) -> Memo {
    let kv: Arc<dyn KvStore> = Arc::new(MemoryKv::new());
    Memo::new(MemoContext {
        objects: Arc::new(ObjectValues::detached(kv.clone())),
        committer: Committer::new(kv),
        keys: KeySpace::new("q"),
        run_id: run_id.clone(),
        incarnation,
        scope: MemoScope::Run,
        revision: 0,
        seal: Seal::new(),
        spawn: in_hand.spawn(run_id, incarnation),
    })
}
