//! A Taquba queue in memory that the suite opens, breaks and opens again, on virtual time.

use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use ::taquba::{OpenOptions, Queue};
use async_trait::async_trait;
use object_store::memory::InMemory;
use workflow_runtime::port::{Clock, JobId};
use workflow_runtime::{QueuePort, TaqubaQueue};
use workflow_testkit::conformance::Subject;
use workflow_testkit::{Gate, PowerCut, VirtualClock};

/// How long a write waits for its flush. Virtual time makes every tick of it real work, so it is not shorter.
const FLUSH_INTERVAL: Duration = Duration::from_millis(100);
/// How soon after its end a lease is found to have ended.
const REAPER_INTERVAL: Duration = Duration::from_secs(1);
/// The adapter has a timer of its own.
const SCHEDULER_INTERVAL: Duration = Duration::from_secs(3600);

/// More due times than the suite has.
const NEAR: usize = 4_096;
/// Fewer.
const FEW: usize = 3;

/// What a Taquba queue is kept on, with a clock that goes by the time of the async runtime.
///
/// Each opening reaches the disk through a power switch and a gate of its own. What a process has written is on the
/// disk; whatever waits at its gate when the next one opens stays there for ever.
///
/// SlateDB takes the system's time when it is opened and follows virtual time from then on. So a store that was written
/// at a virtual time far ahead of the system's, by more than ten seconds, cannot be opened again.
pub(crate) struct TaqubaDisk {
    disk: Arc<InMemory>,
    clock: VirtualClock,
    opening: Mutex<Option<(Gate, PowerCut)>>,
    /// How many due times of a queue an opening holds in memory.
    near: usize,
    /// The queue of the latest opening. The port keeps it.
    queue: Mutex<Weak<Queue>>,
}

struct QueueClock(VirtualClock);

impl ::taquba::Clock for QueueClock {
    fn now_ms(&self) -> u64 {
        self.0.now().as_millis()
    }
}

impl TaqubaDisk {
    fn gate(&self) -> Gate {
        self.opening.lock().unwrap().as_ref().expect("it is open").0.clone()
    }

    /// An empty disk whose queue goes by `clock`.
    pub(crate) fn on(clock: VirtualClock) -> Self {
        Self { disk: Arc::default(), clock, opening: Mutex::default(), near: NEAR, queue: Mutex::default() }
    }

    /// An empty disk whose openings hold few due times in memory.
    pub(super) fn holding_few() -> Self {
        Self { near: FEW, ..Self::new() }
    }
}

#[async_trait]
impl Subject for TaqubaDisk {
    fn new() -> Self {
        Self::on(VirtualClock::new())
    }

    async fn open(&self) -> Arc<dyn QueuePort> {
        self.open_with_power_for(u64::MAX).await.expect("the power is never cut")
    }

    async fn open_with_power_for(&self, writes: u64) -> Option<Arc<dyn QueuePort>> {
        let power = PowerCut::after(usize::try_from(writes).unwrap_or(usize::MAX), self.disk.clone());
        let gate = Gate::new(Arc::new(power.clone()));
        *self.opening.lock().unwrap() = Some((gate.clone(), power.clone()));
        let options = OpenOptions::default()
            .flush_interval(FLUSH_INTERVAL)
            .reaper_interval(REAPER_INTERVAL)
            .scheduler_interval(SCHEDULER_INTERVAL)
            .clock(Arc::new(QueueClock(self.clock.clone())));
        tokio::select! {
            biased;
            () = power.cut() => None,
            opened = Queue::open_with_options(Arc::new(gate), "queue", options) => {
                let queue = Arc::new(opened.unwrap());
                *self.queue.lock().unwrap() = Arc::downgrade(&queue);
                Some(Arc::new(TaqubaQueue::holding(self.near, queue)))
            }
        }
    }

    async fn cut(&self) {
        let power = self.opening.lock().unwrap().as_ref().expect("it was opened").1.clone();
        power.cut().await;
    }

    fn hold(&self) {
        self.gate().close();
    }

    fn release(&self) {
        self.gate().open();
    }

    async fn requeue_dead_job(&self, job: &JobId) -> bool {
        let queue = self.queue.lock().unwrap().upgrade().expect("its port is there");
        match queue.requeue_dead_job(job.as_str()).await {
            Ok(()) => true,
            Err(::taquba::Error::InvalidState | ::taquba::Error::JobNotFound(_)) => false,
            Err(error) => panic!("{error}"),
        }
    }
}
