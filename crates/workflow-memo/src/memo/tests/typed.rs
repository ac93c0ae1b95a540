//! Typed memos: what is computed, stored and read back.

use std::cell::Cell;
use std::collections::BTreeMap;

use serde::Deserialize;

use super::*;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Invoice {
    amount: u64,
    #[serde(skip)]
    note: String,
}

#[derive(Debug, PartialEq)]
enum Failure {
    Own,
    Memo(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        assert!(error.is_permanent());
        Self::Memo(error.to_string())
    }
}

/// A value that JSON holds as something else.
#[derive(Debug, Serialize, Deserialize)]
struct NotANumber(f64);

#[tokio::test]
async fn a_value_is_computed_once() {
    let memo = Fixture::new().memo(1);
    let calls = AtomicU64::new(0);
    for _ in 0..3 {
        let value: Result<u64, Failure> = memo.memoized("k", async { Ok(calls.fetch_add(1, Ordering::Relaxed)) }).await;
        assert_eq!(value, Ok(0));
    }
    check(&memo, "k", Some(b"0")).await;
}

#[tokio::test]
async fn the_first_answer_is_the_stored_one() {
    let memo = Fixture::new().memo(1);
    let compute = async { Ok::<_, Failure>(Invoice { amount: 3, note: "lost in JSON".to_owned() }) };
    let first = memo.memoized("k", compute).await.unwrap();
    assert_eq!(first, Invoice { amount: 3, note: String::new() });
    let again: Invoice = memo.memoized("k", async { Err(Failure::Own) }).await.unwrap();
    assert_eq!(again, first);
}

#[tokio::test]
async fn a_failed_computation_stores_nothing() {
    let fixture = Fixture::new();
    let memo = fixture.memo(1);
    let failed: Result<u8, Failure> = memo.memoized("k", async { Err(Failure::Own) }).await;
    assert_eq!(failed, Err(Failure::Own));
    assert_eq!(fixture.commits(), 0);
    assert_eq!(memo.memoized("k", async { Ok::<_, Failure>(1_u8) }).await, Ok(1));
}

#[tokio::test]
async fn a_value_that_does_not_encode_is_refused_and_not_stored() {
    let memo = Fixture::new().memo(1);
    let pairs = || BTreeMap::from([((1_u8, 2_u8), 3_u8)]);
    let failed: Result<BTreeMap<(u8, u8), u8>, Failure> = memo.memoized("pairs", async { Ok(pairs()) }).await;
    assert_eq!(failed, Err(Failure::Memo("the value of memo \"pairs\" does not encode".to_owned())));
    let failed: Result<NotANumber, Failure> = memo.memoized("nan", async { Ok(NotANumber(f64::NAN)) }).await;
    assert_eq!(failed.unwrap_err(), Failure::Memo("the value of memo \"nan\" does not decode".to_owned()));
    check(&memo, "pairs", None).await;
    check(&memo, "nan", None).await;
}

#[tokio::test]
async fn a_stored_value_of_another_type_names_its_key() {
    let memo = Fixture::new().memo(1);
    memo.put("k", b"\"text\"").await.unwrap();
    let failed: Result<u8, Failure> = memo.memoized("k", async { Ok(1) }).await;
    assert_eq!(failed, Err(Failure::Memo("the value of memo \"k\" does not decode".to_owned())));
}

#[tokio::test]
async fn a_typed_value_may_be_large() {
    let fixture = Fixture::new();
    let memo = fixture.memo(1);
    let text = "x".repeat(LARGE);
    let first: String = memo.memoized("k", async { Ok::<_, Failure>(text.clone()) }).await.unwrap();
    let again: String = memo.memoized("k", async { Err(Failure::Own) }).await.unwrap();
    assert!(first == text && again == text);
    assert_eq!(fixture.object_paths().await.len(), 1);
}

#[tokio::test]
async fn equal_content_is_computed_once() {
    let fixture = Fixture::new();
    let memo = fixture.memo(1);
    let input = BTreeMap::from([("a", 1), ("b", 2)]);
    let first: Result<u8, Failure> = memo.memoized_by_content(&input, async { Ok(1) }).await;
    let again: Result<u8, Failure> = memo.memoized_by_content(&input, async { Err(Failure::Own) }).await;
    let other: Result<u8, Failure> = memo.memoized_by_content("another", async { Ok(2) }).await;
    assert_eq!((first, again, other), (Ok(1), Ok(1), Ok(2)));
}

#[tokio::test]
async fn the_key_of_a_content_is_pinned() {
    let memo = Fixture::new().memo(1);
    let value: Result<u8, Failure> = memo.memoized_by_content("input", async { Ok(1) }).await;
    assert_eq!(value, Ok(1));
    // SHA-256 of `"input"`, quotes included.
    check(&memo, "content:48aed2374cea5f3bbbee1c8742439be758dcc1e999e0e3f0e03c1ee80e3565a0", Some(b"1")).await;
}

#[tokio::test]
async fn a_content_that_does_not_encode_is_refused() {
    let memo = Fixture::new().memo(1);
    let input = BTreeMap::from([((1, 2), 3)]);
    let failed: Result<u8, Failure> = memo.memoized_by_content(&input, async { Ok(1) }).await;
    assert!(matches!(failed, Err(Failure::Memo(message)) if message.contains("content:")));
}

#[tokio::test]
async fn computations_need_not_be_shareable() {
    fn assert_send<T: Send>(value: T) -> T {
        value
    }
    let memo = Memo::detached();
    let compute = async {
        let drawn = Cell::new(3_u8);
        tokio::task::yield_now().await;
        Ok::<_, Failure>(drawn.get())
    };
    assert_eq!(assert_send(memo.memoized("k", compute)).await, Ok(3));
}
