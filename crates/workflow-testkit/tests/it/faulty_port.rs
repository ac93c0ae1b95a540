//! A port that meets no faults keeps the contract of the queue below it, every rule of it.

use std::sync::Arc;

use async_trait::async_trait;
use workflow_runtime::QueuePort;
use workflow_runtime::port::JobId;
use workflow_testkit::conformance::Subject;
use workflow_testkit::{FaultyPort, MemoryDisk, Plan};

struct WithoutFaults(MemoryDisk);

fn over(queue: Arc<dyn QueuePort>) -> Arc<dyn QueuePort> {
    Arc::new(FaultyPort::new(queue, Plan::none()))
}

#[async_trait]
impl Subject for WithoutFaults {
    fn new() -> Self {
        Self(MemoryDisk::default())
    }

    async fn open(&self) -> Arc<dyn QueuePort> {
        over(Subject::open(&self.0).await)
    }

    async fn open_with_power_for(&self, writes: u64) -> Option<Arc<dyn QueuePort>> {
        self.0.open_with_power_for(writes).await.map(over)
    }

    async fn cut(&self) {
        self.0.cut().await;
    }

    fn hold(&self) {
        self.0.hold();
    }

    fn release(&self) {
        self.0.release();
    }

    async fn requeue_dead_job(&self, job: &JobId) -> bool {
        self.0.requeue_dead_job(job)
    }
}

workflow_testkit::conformance!(WithoutFaults);
