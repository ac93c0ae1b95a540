//! Whoever removes objects that nothing names, against whoever is about to name them: of the two, one is refused.

use std::sync::Arc;

use bytes::Bytes;
use workflow_core::RunId;
use workflow_effects::{
    Commit, ObjectsRow, ObjectsState, Read, ScanRange, SignalObjectsRow, SignalObjectsState, decode_objects_row,
    decode_signal_objects_row, encode_objects_row, encode_signal_objects_row,
};
use workflow_runtime::{QueuePort, RunSpec};
use workflow_testkit::{Actor, Turns};

use super::races::told;
use super::signals::{runtime, waiting_if, without_a_loop, world};
use crate::objects::{run_rows, signal_rows};
use crate::scripted::{RUN, Scripted, World};

const LARGE: usize = 100_000;

/// The bytes of a row that is not named yet, once condemned.
type Condemn = fn(&[u8]) -> Option<Bytes>;

fn condemned_run(row: &[u8]) -> Option<Bytes> {
    let row = decode_objects_row(&RunId::parse(RUN).unwrap(), row).unwrap();
    let is_fresh = row.state == ObjectsState::Fresh;
    is_fresh.then(|| encode_objects_row(&ObjectsRow { state: ObjectsState::Condemned, ..row }))
}

fn condemned_signal(row: &[u8]) -> Option<Bytes> {
    let row = decode_signal_objects_row(row).unwrap();
    let is_fresh = row.state == SignalObjectsState::Fresh;
    is_fresh.then(|| encode_signal_objects_row(&SignalObjectsRow { state: SignalObjectsState::Condemned, ..row }))
}

/// Condemns the first row of a kind, if it is there and nothing is named yet, and says whether it did.
fn condemns(world: &World, turns: &Turns, kind: &str, condemn: Condemn) -> Actor<bool> {
    let port: Arc<dyn QueuePort> = turns.port("pass", Arc::new(world.queue.clone()));
    let prefix = Bytes::from(format!("workflow/workflow-steps/{kind}/"));
    turns.actor("pass", async move {
        let page = port.scan(&ScanRange::first(prefix, 1), Read::Latest).await.unwrap();
        let Some((key, row)) = page.entries.into_iter().next() else { return false };
        let Some(condemned) = condemn(&row) else { return false };
        let commit =
            Commit { expect: vec![(key.clone(), Some(row))], puts: vec![(key, condemned)], ..Commit::default() };
        port.commit(vec![commit]).await.remove(0).is_ok()
    })
}

#[test]
fn an_input_is_named_or_removed() {
    told(without_a_loop().run(|turns| async move {
        let world = world(&turns, Scripted::waits_for(&["k"], std::time::Duration::MAX));
        let removed = condemns(&world, &turns, "objects", condemned_run);
        let submitter = runtime(&world, &turns, "submit");
        let submitted = turns.actor("submit", async move {
            let spec = RunSpec { run_id: Some(RUN.to_owned()), input: vec![1; LARGE], ..RunSpec::default() };
            submitter.submit(spec).await
        });
        turns.race().await;
        let (removed, submitted) = (removed.output(), submitted.output());
        let (states, runs): (Vec<_>, _) =
            (run_rows(&world).into_iter().map(|(_, row)| row.state).collect(), world.rows("run"));
        match submitted {
            Ok(_) => assert_eq!((removed, states, runs), (false, vec![ObjectsState::Named], 1)),
            Err(error) => {
                assert!(!error.is_permanent(), "{error}");
                assert_eq!((removed, states, runs), (true, vec![ObjectsState::Condemned], 0));
            }
        }
    }));
}

#[test]
fn a_signal_is_named_or_removed() {
    for is_awaited in [true, false] {
        told(without_a_loop().run(move |turns| async move {
            let world = waiting_if(is_awaited, &turns).await;
            let removed = condemns(&world, &turns, "objects-signal", condemned_signal);
            let sender = runtime(&world, &turns, "send");
            let sent = turns.actor("send", async move { sender.signal("k", vec![1; LARGE]).await });
            turns.race().await;
            let (removed, sent) = (removed.output(), sent.output());
            assert_eq!(removed, sent.is_err(), "{sent:?}");
            // Whoever is refused takes his object back, and with it the row.
            let left = usize::from(sent.is_ok());
            assert_eq!((signal_rows(&world).len(), world.objects().await), (left, left));
            assert!(signal_rows(&world).iter().all(|row| row.state != SignalObjectsState::Condemned));
            assert_eq!(world.rows("signal-item"), usize::from(sent.is_ok() && !is_awaited));
            assert!(!removed || world.rows("signal") == usize::from(is_awaited));
        }));
    }
}
