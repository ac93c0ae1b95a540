//! The rows: where they say that objects are, and of whoever names an object and whoever removes it, who wins.

use super::*;

/// A row that was written when the prefix was another.
fn elsewhere(state: ObjectsState) -> Bytes {
    encode_objects_row(&ObjectsRow { since: Timestamp::from_millis(1), prefix: "else/where".to_owned(), state })
}

impl Fixture {
    async fn name_input(&self, input: &Value) -> Result<Commit> {
        let naming = self.values.name_input(&RunId::parse("r").unwrap(), Incarnation::new(15), input).await?;
        Ok(joined(naming))
    }

    async fn name_signal(&self, payload: &Value, state: SignalObjectsState) -> Result<Commit> {
        Ok(joined(self.values.name_signal(SignalId::new(15), payload, state).await?))
    }

    async fn commit(&self, commit: Commit) -> Result<(), Rejected> {
        self.kv.inner.commit(vec![commit]).await.remove(0)
    }
}

fn joined(naming: Naming) -> Commit {
    let mut commit = Commit::default();
    naming.add_to(&mut commit);
    commit
}

fn buffered() -> SignalObjectsState {
    SignalObjectsState::Buffered { key: workflow_core::CorrelationKey::parse("k").unwrap() }
}

fn owned() -> SignalObjectsState {
    SignalObjectsState::Owned { run_id: RunId::parse("r").unwrap(), incarnation: Incarnation::new(2) }
}

#[tokio::test]
async fn objects_lie_where_the_row_says_although_the_prefix_has_changed() {
    for state in [ObjectsState::Fresh, ObjectsState::Named] {
        let fixture = fixture();
        fixture.write_row(&owner(), elsewhere(state)).await;
        let value = fixture.put(9).await.unwrap();
        assert!(fixture.paths().await[0].starts_with("else/where/r/"));
        assert_eq!(fixture.values.get(&value).await.unwrap(), vec![7; 9]);
        assert_eq!(fixture.row_of(&owner()), Some(elsewhere(state)), "the row is left alone");
    }
}

#[tokio::test]
async fn nothing_is_written_while_it_is_removed() {
    let fixture = fixture();
    fixture.write_row(&owner(), row(ObjectsState::Condemned)).await;
    fixture.write_row(&signal(), signal_row(SignalObjectsState::Condemned)).await;
    for owner in [owner(), signal()] {
        let error = fixture.values.put(&owner, vec![7; 9].into()).await.unwrap_err();
        assert!(matches!(error, Error::Unavailable(_)) && !error.is_permanent(), "{error}");
    }
    assert!(fixture.paths().await.is_empty());
}

#[tokio::test]
async fn a_row_that_is_none_is_corrupt() {
    let fixture = fixture();
    fixture.write_row(&owner(), Bytes::from_static(b"\xff")).await;
    let error = fixture.put(9).await.unwrap_err();
    assert!(error.to_string().starts_with("the objects row of run r is corrupt"), "{error}");
}

#[tokio::test]
async fn whoever_names_an_input_first_expects_and_changes_its_row() {
    let fixture = fixture();
    let input = fixture.put(9).await.unwrap();
    let commit = fixture.name_input(&input).await.unwrap();
    assert_eq!(commit.expect, [(owner().row(&KeySpace::new("q")), Some(row(ObjectsState::Fresh)))]);
    fixture.commit(commit.clone()).await.unwrap();
    assert_eq!(fixture.row_of(&owner()), Some(row(ObjectsState::Named)));
    assert!(matches!(fixture.commit(commit).await, Err(Rejected::Conflict)), "it is not named twice");
    assert!(!fixture.name_input(&input).await.unwrap_err().is_permanent());
}

#[tokio::test]
async fn whoever_names_a_signal_first_expects_and_changes_its_row() {
    for state in [buffered(), owned()] {
        let fixture = fixture();
        let payload = fixture.values.put(&signal(), vec![7; 9].into()).await.unwrap();
        let commit = fixture.name_signal(&payload, state.clone()).await.unwrap();
        assert_eq!(commit.expect[0].1, Some(signal_row(SignalObjectsState::Fresh)));
        fixture.commit(commit).await.unwrap();
        assert_eq!(fixture.row_of(&signal()), Some(signal_row(state.clone())));
        assert!(!fixture.name_signal(&payload, state).await.unwrap_err().is_permanent());
    }
}

#[tokio::test]
async fn what_was_condemned_meanwhile_or_is_gone_is_not_named() {
    let fixture = fixture();
    let input = fixture.put(9).await.unwrap();
    let late = fixture.name_input(&input).await.unwrap();
    fixture.write_row(&owner(), row(ObjectsState::Condemned)).await;
    assert!(matches!(fixture.commit(late).await, Err(Rejected::Conflict)));
    let error = fixture.name_input(&input).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error}");
    let payload = fixture.values.put(&signal(), vec![7; 9].into()).await.unwrap();
    fixture.values.delete_row(&signal()).await;
    let error = fixture.name_signal(&payload, buffered()).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error}");
}

#[tokio::test]
async fn a_small_value_is_named_at_no_cost() {
    let fixture = fixture();
    let small = fixture.put(8).await.unwrap();
    assert_eq!(fixture.name_input(&small).await.unwrap(), Commit::default());
    assert_eq!(fixture.name_signal(&small, buffered()).await.unwrap(), Commit::default());
    assert_eq!(fixture.requests(), (0, 0));
}
