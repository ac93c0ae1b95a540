//! Two queues side by side, and the comparison of what they answer.

mod claims;
mod jobs;
mod kv;

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, join_all};
use proptest::test_runner::TestCaseError;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use workflow_runtime::QueuePort;
use workflow_runtime::port::{JobId, Read, ScanOrder, ScanRange, Timestamp};
use workflow_testkit::conformance::Subject;
use workflow_testkit::{MemoryDisk, VirtualClock};

use self::claims::Held;
use super::operation::Operation;
use crate::conformance::TaqubaDisk;

pub(super) type Compared = Result<(), TestCaseError>;

const QUEUES: [&str; 2] = ["bells", "bells.2"];
/// Waits end at multiples of this. Leases and due times end in the middle between two of them, so that no answer hangs
/// on how long an operation takes: all of a sequence take less than half of it.
const TICK: Duration = Duration::from_secs(20);
/// The most ticks that a job is claimed for, or put off.
const MOST_TICKS: u32 = 3;
/// More jobs than there ever are.
const ALL: usize = 99;
/// A call that is not answered by then waits for something.
const MOMENT: Duration = Duration::from_millis(250);

/// The in-memory queue and Taquba, in this order wherever there are two of something.
pub(super) struct Pair {
    disks: [Arc<dyn Subject>; 2],
    ports: [Arc<dyn QueuePort>; 2],
    started: Instant,
    /// Whether the stores can be opened again: SlateDB goes by the system's clock when it is opened and by virtual time
    /// from then on, and refuses to be opened when it is far ahead of the system's clock.
    is_young: bool,
    /// The calls that wait for the stores to be released, when they are held.
    in_flight: Option<Vec<Flight>>,
    /// Whether jobs are among what is in flight: a claim may see them or not.
    has_unseen_jobs: bool,
    claims: Vec<Held>,
    /// Every job there ever was.
    jobs: Vec<JobId>,
    /// The queues that have got a job back since a claim has last taken all of theirs.
    lapsed: BTreeSet<usize>,
    happened: BTreeSet<&'static str>,
}

struct Flight {
    name: &'static str,
    calls: [JoinHandle<String>; 2],
}

/// Both answers are the same.
fn same<T: PartialEq + Debug>(what: &str, memory: &T, taquba: &T) -> Compared {
    if memory == taquba {
        return Ok(());
    }
    Err(TestCaseError::fail(format!("{what}: the in-memory queue says {memory:?}, Taquba {taquba:?}")))
}

impl Pair {
    pub(super) async fn new() -> Self {
        let started = Instant::now();
        let clock = VirtualClock::new();
        let disks: [Arc<dyn Subject>; 2] = [Arc::new(MemoryDisk::new(clock.clone())), Arc::new(TaqubaDisk::on(clock))];
        let ports = [disks[0].open().await, disks[1].open().await];
        Self {
            disks,
            ports,
            started,
            is_young: true,
            in_flight: None,
            has_unseen_jobs: false,
            claims: Vec::new(),
            jobs: Vec::new(),
            lapsed: BTreeSet::new(),
            happened: BTreeSet::new(),
        }
    }

    pub(super) async fn run(&mut self, operation: &Operation) -> Compared {
        match operation {
            Operation::Commit(change) => self.commit(change).await?,
            Operation::Get { key, durable } => self.get(*key, read(*durable)).await?,
            Operation::Scan { prefix, after, limit, backwards, durable } => {
                let order = if *backwards { ScanOrder::Descending } else { ScanOrder::Ascending };
                let range = ScanRange { order, ..kv::range(*prefix, *after, *limit) };
                self.scan(range, read(*durable)).await?;
            }
            Operation::Change { key, seen } => self.wait_for_change(*key, *seen).await?,
            Operation::Claim { queue, max, ticks } => self.claim(*queue, *max, *ticks).await?,
            Operation::Extend { claim, ticks } => self.extend(*claim, *ticks)?,
            Operation::Settle { claim, dead } => self.settle(*claim, *dead).await?,
            Operation::Drop { jobs, dead } => self.drop_jobs(jobs, *dead).await?,
            Operation::Requeue { job } => self.requeue(*job).await?,
            Operation::Job { job } => self.job(*job).await?,
            Operation::PersistClaims => self.persist().await?,
            Operation::DeadJobs { queue, limit } => self.dead_jobs(*queue, *limit).await?,
            Operation::Wait { ticks } => self.wait(*ticks).await,
            Operation::Hold => self.hold().await?,
            Operation::Release => self.release().await?,
            Operation::Reopen => self.reopen().await?,
        }
        self.compare_hints(operation)
    }

    /// Everything comes to its end: what is there then is the same.
    pub(super) async fn end(mut self) -> Result<BTreeSet<&'static str>, TestCaseError> {
        self.release().await?;
        self.reopen().await?;
        self.wait(MOST_TICKS + 1).await;
        let range = ScanRange::first("k", 99);
        let pages = [self.ports[0].scan(&range, Read::Latest).await, self.ports[1].scan(&range, Read::Latest).await]
            .map(|page| page.expect("an open store answers a scan"));
        same("everything", &pages[0], &pages[1])?;
        for job in 0..self.jobs.len() {
            self.job(job).await?;
        }
        for queue in 0..QUEUES.len() {
            self.dead_jobs(queue, 99).await?;
            self.claim(queue, 99, MOST_TICKS).await?;
        }
        Ok(self.happened)
    }

    /// Makes the call on both queues and compares the answers: now, or when the stores are released.
    async fn call(
        &mut self,
        name: &'static str,
        calls: [BoxFuture<'static, String>; 2],
    ) -> Result<String, TestCaseError> {
        let mut calls = calls.map(tokio::spawn);
        let Some(in_flight) = &mut self.in_flight else {
            return self.compare(Flight { name, calls }).await;
        };
        let answers = join_all(calls.iter_mut().map(|call| tokio::time::timeout(MOMENT, call))).await;
        let answers: Vec<_> = answers.into_iter().map(|answer| answer.ok().map(Result::unwrap)).collect();
        same(name, &answers[0], &answers[1])?;
        match answers.into_iter().next().flatten() {
            Some(answer) => Ok(answer),
            None => {
                in_flight.push(Flight { name, calls });
                self.happened.insert("held: in flight");
                Ok(String::new())
            }
        }
    }

    async fn compare(&mut self, flight: Flight) -> Result<String, TestCaseError> {
        let [memory, taquba] = flight.calls;
        let (memory, taquba) = (memory.await.unwrap(), taquba.await.unwrap());
        same(flight.name, &memory, &taquba)?;
        Ok(memory)
    }

    /// Lets time pass.
    async fn wait(&mut self, ticks: u32) {
        if self.in_flight.is_some() {
            return;
        }
        self.is_young = false;
        let done = self.started.elapsed().as_millis() / TICK.as_millis();
        let done = u32::try_from(done).expect("a sequence is short");
        assert!(self.started.elapsed() < TICK * done + TICK / 2, "the operations took too long");
        let waiting = self.ports[0].may_have_ready_job(QUEUES[0]);
        tokio::time::sleep_until(self.started + TICK * (done + ticks)).await;
        if !waiting && self.ports[0].may_have_ready_job(QUEUES[0]) {
            self.happened.insert("wait: due");
        }
        for held in self.claims.iter().filter(|held| held.is_lost()) {
            self.lapsed.insert(held.queue);
            self.happened.insert("wait: lapsed");
        }
    }

    /// From now on nothing becomes durable. Everything before is.
    async fn hold(&mut self) -> Compared {
        if self.in_flight.is_none() {
            self.persist().await?;
            self.disks.iter().for_each(|disk| disk.hold());
            self.in_flight = Some(Vec::new());
        }
        Ok(())
    }

    async fn release(&mut self) -> Compared {
        let Some(in_flight) = self.in_flight.take() else { return Ok(()) };
        self.disks.iter().for_each(|disk| disk.release());
        for flight in in_flight {
            self.compare(flight).await?;
            self.happened.insert("held: landed");
        }
        self.claims.iter_mut().for_each(Held::landed);
        self.has_unseen_jobs = false;
        Ok(())
    }

    /// The next process opens the stores. Of what was held there is nothing.
    async fn reopen(&mut self) -> Compared {
        if !self.is_young {
            return Ok(());
        }
        let is_held = match self.in_flight.take() {
            Some(in_flight) => {
                in_flight.iter().flat_map(|flight| &flight.calls).for_each(JoinHandle::abort);
                self.happened.insert("held: lost");
                true
            }
            None => {
                self.persist().await?;
                self.happened.insert("reopen: clean");
                false
            }
        };
        let ports = [self.disks[0].open().await, self.disks[1].open().await];
        let old = std::mem::replace(&mut self.ports, ports);
        self.claims.clear();
        self.has_unseen_jobs = false;
        self.lapsed.clear();
        if !is_held {
            let late = old.map(kv::late_commit);
            let answer = self.call("a late commit", late).await?;
            assert_eq!(answer, "taken over");
            self.happened.insert("commit: taken over");
        }
        // It may have waited for the system's clock.
        tokio::time::sleep_until(self.started + 2 * TICK).await;
        self.is_young = false;
        Ok(())
    }

    /// The hint misses no job that the process has made ready, and a claim that has taken all leaves none.
    fn compare_hints(&self, operation: &Operation) -> Compared {
        if self.in_flight.is_some() {
            // What is not answered yet is not to be known.
            return Ok(());
        }
        for (queue, name) in QUEUES.iter().enumerate() {
            let [memory, taquba] = [0, 1].map(|side| self.ports[side].may_have_ready_job(name));
            let took_all = matches!(operation, Operation::Claim { queue: of, max: 99, .. } if *of == queue);
            if (memory && !self.lapsed.contains(&queue)) || took_all {
                same("the hint", &memory, &taquba)?;
            }
        }
        Ok(())
    }

    /// The middle between two ticks, so many from now.
    fn due(&self, ticks: u32) -> Timestamp {
        let clock = self.ports[0].clock();
        clock.now().after(self.until(ticks))
    }

    /// How long it is until then.
    fn until(&self, ticks: u32) -> Duration {
        let elapsed = self.started.elapsed();
        let done = elapsed.as_millis() / TICK.as_millis();
        let done = u32::try_from(done).expect("a sequence is short");
        (TICK * (done + ticks) + TICK / 2).saturating_sub(elapsed)
    }
}

fn read(durable: bool) -> Read {
    if durable { Read::Durable } else { Read::Latest }
}
