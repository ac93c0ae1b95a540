//! Groups over a store that answers when it is told to.

use std::collections::BTreeMap;
use std::mem::take;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::task::yield_now;

use super::*;

/// A store that keeps commits until they are let go, and then applies those whose expectations hold.
#[derive(Default)]
struct Held {
    rows: Mutex<BTreeMap<Bytes, Bytes>>,
    held: Mutex<Vec<(Commit, oneshot::Sender<Answer>)>>,
    /// How many commits it was handed at all.
    handed: Mutex<usize>,
}

impl Held {
    /// Lets go of what is held, and gives others a turn. Says how many keys each commit wrote.
    async fn let_go(&self) -> Vec<usize> {
        let held = take(&mut *self.held.lock().unwrap());
        let sizes = held.iter().map(|(commit, _)| commit.written().count()).collect();
        for (commit, answer) in held {
            let _ = answer.send(self.apply(&commit));
        }
        for _ in 0..10 {
            yield_now().await;
        }
        sizes
    }

    fn apply(&self, commit: &Commit) -> Answer {
        commit.check().map_err(Rejected::Invalid)?;
        let mut rows = self.rows.lock().unwrap();
        if commit.expect.iter().any(|(key, expected)| rows.get(key) != expected.as_ref()) {
            return Err(Rejected::Conflict);
        }
        rows.extend(commit.puts.iter().cloned());
        commit.deletes.iter().for_each(|key| drop(rows.remove(key)));
        Ok(())
    }

    fn len(&self) -> usize {
        self.rows.lock().unwrap().len()
    }
}

#[async_trait]
impl KvStore for Held {
    async fn get(&self, _: &[u8], _: Read) -> Result<Option<Bytes>, Error> {
        unreachable!("groups are made without reads")
    }

    async fn scan(&self, _: &ScanRange, _: Read) -> Result<ScanPage, Error> {
        unreachable!("groups are made without reads")
    }

    async fn commit(&self, commits: Vec<Commit>) -> Vec<Answer> {
        let answers: Vec<_> = commits
            .into_iter()
            .map(|commit| {
                let (answer, answered) = oneshot::channel();
                *self.handed.lock().unwrap() += 1;
                self.held.lock().unwrap().push((commit, answer));
                answered
            })
            .collect();
        let lost = |_| Err(Rejected::Unknown(Error::Unavailable("the store broke down".into())));
        join_all(answers).await.into_iter().map(|answer| answer.unwrap_or_else(lost)).collect()
    }
}

fn grouped() -> (Arc<Held>, Arc<GroupCommit>) {
    let held = Arc::new(Held::default());
    (held.clone(), Arc::new(GroupCommit::new(held)))
}

fn put(key: impl Into<Bytes>) -> Commit {
    Commit { puts: vec![(key.into(), "value".into())], ..Commit::default() }
}

/// As [`put`], which expects nothing there.
fn first(key: &'static str) -> Commit {
    Commit { expect: vec![(key.into(), None)], ..put(key) }
}

/// Hands `commit` in.
async fn hand_in(group: &Arc<GroupCommit>, commit: Commit) -> BoxFuture<'static, Answer> {
    let group = group.clone();
    let mut answer = async move { group.commit(vec![commit]).await.remove(0) }.boxed();
    assert!(answer.as_mut().now_or_never().is_none(), "the store holds it");
    // The flight waits for others before it takes off.
    yield_now().await;
    yield_now().await;
    answer
}

/// Hands `commits` in, one after the other.
async fn hand_in_all(
    group: &Arc<GroupCommit>,
    commits: impl IntoIterator<Item = Commit>,
) -> Vec<BoxFuture<'static, Answer>> {
    let mut answers = Vec::new();
    for commit in commits {
        answers.push(hand_in(group, commit).await);
    }
    answers
}

/// Fills all flights, so that what comes next has to wait.
async fn fill(group: &Arc<GroupCommit>) -> Vec<BoxFuture<'static, Answer>> {
    hand_in_all(group, (0..IN_FLIGHT).map(|number| put(format!("filler {number}")))).await
}

#[tokio::test(start_paused = true)]
async fn a_lone_commit_goes_at_once_and_what_waits_goes_together() {
    let (store, group) = grouped();
    let fillers = fill(&group).await;
    assert_eq!(*store.handed.lock().unwrap(), IN_FLIGHT, "each went at once");
    let waiting = hand_in_all(&group, (0..9).map(|number| put(format!("key {number}")))).await;
    assert_eq!(*store.handed.lock().unwrap(), IN_FLIGHT);
    store.let_go().await;
    assert!(join_all(fillers).await.into_iter().all(|answer| answer.is_ok()));
    assert_eq!(store.let_go().await, [9]);
    assert!(join_all(waiting).await.into_iter().all(|answer| answer.is_ok()));
    assert_eq!(store.len(), IN_FLIGHT + 9);
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_a_slow_store_to_answer_others() {
    let (store, group) = grouped();
    let _fillers = fill(&group).await;
    let _waiting = hand_in_all(&group, (0..9).map(|number| put(format!("key {number}")))).await;
    tokio::time::sleep(SLOW * 2).await;
    let handed: Vec<_> = store.held.lock().unwrap().iter().map(|(commit, _)| commit.written().count()).collect();
    assert_eq!(handed, [1, 1, 1, 1, 9]);
    let mut later = Vec::new();
    for number in 0..SLOW_IN_FLIGHT {
        later.push(hand_in(&group, put(format!("later {number}"))).await);
        tokio::time::sleep(SLOW * 2).await;
    }
    assert_eq!(*store.handed.lock().unwrap(), SLOW_IN_FLIGHT, "there is a bound all the same");
    assert_eq!(store.let_go().await.len(), SLOW_IN_FLIGHT);
    assert_eq!(store.let_go().await, [IN_FLIGHT + 1]);
}

#[tokio::test(start_paused = true)]
async fn commits_that_are_handed_in_at_once_go_together() {
    let (store, group) = grouped();
    let together = (0..9).map(|number| group.commit(vec![put(format!("key {number}"))]));
    let mut together = join_all(together).boxed();
    assert!(together.as_mut().now_or_never().is_none());
    yield_now().await;
    yield_now().await;
    assert_eq!(store.let_go().await, [9]);
    assert!(together.await.into_iter().flatten().all(|answer| answer.is_ok()));
}

#[test]
fn an_async_runtime_shuts_down_beside_commits_that_wait() {
    for turns in 0..5 {
        let (_store, group) = grouped();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let answers = runtime.block_on(async {
            let answers = hand_in_all(&group, (0..9).map(|number| put(format!("key {number}")))).await;
            for _ in 0..turns {
                yield_now().await;
            }
            answers
        });
        drop(runtime);
        drop(answers);
        assert!(!group.inner.lock().is_boarding);
    }
}

#[tokio::test(start_paused = true)]
async fn what_one_expects_no_other_of_its_group_writes() {
    let delete = |key: &'static str| Commit { deletes: vec![key.into()], ..Commit::default() };
    for of_one_key in [[first("a"), put("a")], [put("a"), first("a")], [first("a"), delete("a")]] {
        let (store, group) = grouped();
        let _fillers = fill(&group).await;
        let waiting = hand_in_all(&group, of_one_key.into_iter().chain([put("b")])).await;
        store.let_go().await;
        let sizes = store.let_go().await;
        assert_eq!(sizes, [2, 1]);
        assert!(join_all(waiting).await.iter().any(Result::is_ok));
    }
}

#[tokio::test(start_paused = true)]
async fn of_writes_of_one_key_that_nobody_expects_the_last_counts() {
    let (store, group) = grouped();
    let _fillers = fill(&group).await;
    let written = |key: &'static str, value: &'static str, gone: &'static str| Commit {
        puts: vec![(key.into(), value.into())],
        deletes: vec![gone.into()],
        ..Commit::default()
    };
    let commits = [written("a", "1", "b"), written("b", "2", "a"), written("c", "3", "d"), written("c", "4", "e")];
    let waiting = hand_in_all(&group, commits).await;
    store.let_go().await;
    assert_eq!(store.let_go().await, [5], "they go together");
    assert!(join_all(waiting).await.into_iter().all(|answer| answer.is_ok()));
    let rows = store.rows.lock().unwrap();
    let found = |key: &str| rows.get(key.as_bytes()).map(|value| String::from_utf8_lossy(value).into_owned());
    assert_eq!(["a", "b", "c"].map(found), [None, Some("2".to_owned()), Some("4".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn only_those_are_refused_whose_commit_is() {
    let (store, group) = grouped();
    for key in ["3", "6"] {
        store.rows.lock().unwrap().insert(key.into(), "there".into());
    }
    let _fillers = fill(&group).await;
    let keys = ["0", "1", "2", "3", "4", "5", "6", "7"];
    let mut waiting = hand_in_all(&group, keys.map(first)).await;
    let broken = Commit { expect: vec![("x".into(), None)], ..Commit::default() };
    waiting.push(hand_in(&group, broken).await);
    for _ in 0..8 {
        store.let_go().await;
    }
    let mut answers: Vec<_> = join_all(waiting).await;
    assert!(matches!(answers.pop(), Some(Err(Rejected::Invalid(_)))));
    for (key, answer) in keys.iter().zip(answers) {
        assert_eq!(matches!(answer, Err(Rejected::Conflict)), ["3", "6"].contains(key), "{key}: {answer:?}");
        assert_eq!(answer.is_ok(), !["3", "6"].contains(key), "{key}: {answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn everyone_in_a_group_of_unknown_outcome_learns_that() {
    let (store, group) = grouped();
    let fillers = fill(&group).await;
    let waiting = hand_in_all(&group, ["a", "b"].map(put)).await;
    store.let_go().await;
    drop(fillers);
    store.held.lock().unwrap().clear();
    for answer in join_all(waiting).await {
        assert!(matches!(answer, Err(Rejected::Unknown(Error::Unavailable(_)))), "{answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_who_gives_up_abandons_the_answer_only() {
    let (store, group) = grouped();
    let fillers = fill(&group).await;
    drop(hand_in(&group, put("a")).await);
    let waiting = hand_in(&group, put("b")).await;
    store.let_go().await;
    drop(fillers);
    store.let_go().await;
    waiting.await.unwrap();
    assert!(store.rows.lock().unwrap().contains_key(b"a".as_slice()));
}

#[tokio::test(start_paused = true)]
async fn what_waits_takes_off_although_nobody_polls_for_the_answers_in_flight() {
    let (store, group) = grouped();
    let _fillers = fill(&group).await;
    let waiting = hand_in(&group, put("a")).await;
    store.let_go().await;
    store.let_go().await;
    waiting.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_group_and_what_waits_are_bounded() {
    let (store, group) = grouped();
    let _fillers = fill(&group).await;
    let large = |key: &'static str| Commit {
        puts: vec![(key.into(), Bytes::from(vec![0; GROUP_BYTES / 2]))],
        ..Commit::default()
    };
    let _waiting = hand_in_all(&group, ["a", "b", "c"].map(large)).await;
    store.let_go().await;
    assert_eq!(store.let_go().await.len(), 3, "two of them are more than a group carries");
    let many = 0..2 * ROOM * ROOM_UNIT / GROUP_BYTES + 2;
    let keys = many.map(|number| Bytes::from(number.to_string()));
    let value = Bytes::from(vec![0; GROUP_BYTES / 2]);
    let all =
        hand_in_all(&group, keys.map(|key| Commit { puts: vec![(key, value.clone())], ..Commit::default() })).await;
    let waiting: usize = group.inner.lock().waiting.iter().map(|waiting| size(&waiting.commit)).sum();
    assert!(waiting <= ROOM * ROOM_UNIT, "{waiting} bytes wait");
    drop(all);
}
