//! Jobs apart from their claims.

use std::sync::Arc;
use std::time::Duration;

use ::taquba::{JobStatus, OpenOptions, Queue, QueueConfig};
use object_store::memory::InMemory;
use workflow_runtime::port::Settlement;
use workflow_runtime::{QueuePort, TaqubaQueue};

use super::{LEASE, QUEUE, commit_on, ringing};

#[tokio::test]
async fn a_done_job_that_the_queue_keeps_is_gone() {
    let kept = QueueConfig { keep_done_jobs: Some(Duration::from_secs(3600)), ..QueueConfig::default() };
    let options = OpenOptions::default().default_queue_config(kept);
    let queue = Arc::new(Queue::open_with_options(Arc::new(InMemory::new()), "queue", options).await.unwrap());
    let port = TaqubaQueue::over(queue.clone());
    let job = port.next_job_id();
    commit_on(&port, ringing(&job, None)).await.unwrap();
    let claim = async || port.claim(QUEUE, 1, LEASE).await.unwrap().remove(0).claim;
    port.settle(Settlement::Dead(claim().await, "because".to_owned())).await.unwrap();
    queue.requeue_dead_job(job.as_str()).await.unwrap();
    port.settle(Settlement::Ack(claim().await)).await.unwrap();
    let record = queue.view().job_record(job.as_str()).await.unwrap();
    assert_eq!(record.unwrap().status, JobStatus::Done, "the queue keeps it");
    assert_eq!(port.job_state(&job).await.unwrap(), None);
    assert!(!port.is_requeued(&job).await.unwrap());
}
