//! The settings that `open` gives a queue.

use std::sync::Arc;

use futures::TryStreamExt;
use object_store::ObjectStore;
use object_store::memory::InMemory;
use workflow_effects::{Commit, Enqueue};
use workflow_runtime::{QueuePort, TaqubaQueue, open, open_on};

use super::{QUEUE, commit_on};

#[tokio::test]
async fn a_payload_of_any_size_stays_in_the_queue() {
    let store = Arc::new(InMemory::new());
    let storage = open_on(store.clone()).await.unwrap();
    let port = TaqubaQueue::over(storage.queue().clone());
    let enqueue =
        Enqueue { queue: QUEUE.to_owned(), job: port.next_job_id(), payload: vec![7; 1 << 20].into(), due: None };
    commit_on(&port, Commit { enqueues: vec![enqueue], ..Commit::default() }).await.unwrap();
    let objects: Vec<_> = store.list(None).map_ok(|object| object.location).try_collect().await.unwrap();
    assert!(objects.iter().all(|path| path.as_ref().starts_with("queue/")), "{objects:?}");
}

#[tokio::test]
async fn the_queue_ends_no_job_by_itself() {
    let storage = open("memory:").await.unwrap();
    let config = storage.queue().queue_config(QUEUE);
    assert_eq!((config.dead_retention, config.max_attempts), (None, u32::MAX));
}
