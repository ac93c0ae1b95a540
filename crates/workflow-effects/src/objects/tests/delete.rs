//! Deleting: a signal's object with its row, and all of an owner's objects without those of its neighbours.

use super::*;

impl Fixture {
    /// Writes an object at `path`.
    async fn write_object(&self, path: &str) {
        self.store.inner.put(&Path::from(path), "x".into()).await.unwrap();
    }
}

#[tokio::test]
async fn all_objects_of_an_owner_are_deleted_and_no_others() {
    let fixture = fixture();
    let folder = |run: &str, incarnation: u128| format!("some/prefix/{run}/{incarnation:032x}");
    let others = [
        format!("{}/1", folder("r", 16)),
        format!("{}/1", folder("r-2", 15)),
        format!("{}/1", folder("rr", 15)),
        format!("{}0/1", folder("r", 15)),
        folder("r", 15),
        format!("some/prefix/signals./{:032x}/1", 15),
        format!("other/r/{:032x}/1", 15),
        format!("some/prefix/x/{}/1", folder("r", 15)),
    ];
    for path in &others {
        fixture.write_object(path).await;
    }
    for name in ["1", "2", "deep/er/3"] {
        fixture.write_object(&format!("{}/{name}", folder("r", 15))).await;
    }
    for _ in 0..2 {
        fixture.values.delete_all(&owner(), "some/prefix").await.unwrap();
        let mut expected = others.to_vec();
        expected.sort();
        assert_eq!(fixture.paths().await, expected);
    }
}

#[tokio::test]
async fn all_objects_of_a_signal_are_deleted_wherever_its_row_says() {
    let fixture = fixture();
    let folder = |id: u128| format!("else//where/signals./{id:032x}");
    fixture.write_object(&format!("{}/1", folder(15))).await;
    fixture.write_object(&format!("{}/1", folder(16))).await;
    fixture.values.delete_all(&signal(), "some/prefix").await.unwrap();
    assert_eq!(fixture.paths().await.len(), 2);
    fixture.values.delete_all(&signal(), "else//where/").await.unwrap();
    assert_eq!(fixture.paths().await, [format!("else/where/signals./{:032x}/1", 16)]);
}

#[tokio::test]
async fn what_was_put_is_found_under_its_prefix() {
    for prefix in ["", "/", "a//b/", "..", "ä b", "a%2Fb"] {
        let fixture = fixture_drawing(prefix, || 1);
        for owner in [owner(), signal()] {
            fixture.values.put(&owner, vec![7; 9].into()).await.unwrap();
            fixture.values.delete_all(&owner, prefix).await.unwrap();
            assert!(fixture.paths().await.is_empty(), "{prefix:?}");
        }
    }
}

#[tokio::test]
async fn what_cannot_be_deleted_is_an_error_and_keeps_nothing_else() {
    let fixture = fixture();
    for _ in 0..3 {
        fixture.put(9).await.unwrap();
    }
    let stays = fixture.paths().await.remove(1);
    *fixture.store.undeletable.lock().unwrap() = Some(stays.clone());
    let error = fixture.values.delete_all(&owner(), "some/prefix").await.unwrap_err();
    assert!(matches!(error, Error::Store(_)) && !error.is_permanent(), "{error}");
    assert_eq!(fixture.paths().await, [stays]);
}

#[tokio::test]
async fn the_row_of_a_signal_goes_with_its_object() {
    for prefix in ["", "some/prefix", "a//b/", "signals.", "a%2Fb"] {
        let fixture = fixture_drawing(prefix, || 1);
        let value = fixture.values.put(&signal(), vec![7; 9].into()).await.unwrap();
        fixture.values.discard(&value).await;
        assert_eq!((fixture.paths().await, fixture.row_of(&signal())), (Vec::new(), None), "{prefix:?}");
        fixture.values.discard(&value).await;
    }
}

/// A store may write an object, lose the answer, find the name taken when it tries again, and be given another name.
#[tokio::test]
async fn what_a_repeated_write_has_left_goes_with_the_signal() {
    let fixture = fixture();
    let value = fixture.values.put(&signal(), vec![7; 9].into()).await.unwrap();
    fixture.write_object(&format!("some/prefix/signals./{:032x}/left", 15)).await;
    fixture.values.discard(&value).await;
    assert_eq!((fixture.paths().await, fixture.row_of(&signal())), (Vec::new(), None));
}

#[tokio::test]
async fn the_row_of_a_signal_stays_with_what_cannot_be_deleted() {
    for stays in ["0", "left"] {
        let fixture = fixture();
        let value = fixture.values.put(&signal(), vec![7; 9].into()).await.unwrap();
        fixture.write_object(&format!("some/prefix/signals./{:032x}/left", 15)).await;
        *fixture.store.undeletable.lock().unwrap() = Some(stays.to_owned());
        fixture.values.discard(&value).await;
        assert_eq!(fixture.row_of(&signal()), Some(signal_row(SignalObjectsState::Fresh)), "{stays}");
    }
}

#[tokio::test]
async fn the_row_of_a_run_stays_when_an_object_goes() {
    for id in ["r", "f", "signals"] {
        let fixture = fixture_drawing("signals.", || 1);
        let owner = run(id, 15);
        let value = fixture.values.put(&owner, vec![7; 9].into()).await.unwrap();
        fixture.values.discard(&value).await;
        assert!(fixture.paths().await.is_empty() && fixture.row_of(&owner).is_some());
        assert_eq!(fixture.requests().1, 2, "a put and a delete");
    }
}
