//! One source of the loop: takes slots, claims deliveries, starts a task for each.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tracing::{error, warn};
use workflow_core::Timestamp;
use workflow_effects::{Doorbell, Read, ScanRange, decode_doorbell};

use super::backoff::Backoff;
use super::slots::{Slot, Slots};
use super::{Stop, delivery, notification};
use crate::engine::{Engine, MAX_PRIORITIES};
use crate::lease::LeaseGuard;
use crate::port::{ClaimedJob, Settlement};
use crate::{Result, StepRunner, TerminalHook};

/// The most deliveries that one claim takes.
const BATCH: usize = 64;
/// The longest wait for work: a wake-up can go to another runtime of the same queue.
const IDLE_WAIT: Duration = Duration::from_secs(1);

/// What is fetched.
#[derive(Clone, Copy)]
pub(crate) enum Source {
    /// Doorbells of runs.
    Steps,
    /// Terminal notifications.
    Notifications,
}

/// One delivery with its doorbell read.
pub(crate) struct Rung {
    pub(crate) job: ClaimedJob,
    pub(crate) doorbell: Doorbell,
    /// Kept alive from the claim on.
    pub(crate) lease: LeaseGuard,
}

/// Fetches until the loop drains or the store is closed, and returns once nothing is in hand any more.
pub(crate) async fn fetch<R, H>(engine: &Arc<Engine<R, H>>, source: Source, stop: &Stop) -> Result<()>
where
    R: StepRunner + 'static,
    H: TerminalHook + 'static,
{
    let slots = Slots::new(match source {
        Source::Steps => engine.settings.max_concurrent_steps,
        Source::Notifications => engine.settings.max_concurrent_hooks,
    });
    let mut tasks = JoinSet::new();
    let mut backoff = Backoff::default();
    let mut priorities = Priorities::default();
    let result = loop {
        while let Some(ended) = tasks.try_join_next() {
            report(ended);
        }
        let taken = tokio::select! {
            biased;
            () = stop.draining.cancelled() => break Ok(()),
            taken = slots.take(BATCH) => taken,
        };
        if matches!(source, Source::Steps) {
            priorities.refresh(engine).await;
        }
        let queues = queues(engine, source);
        match claim(engine, &queues, taken.len()).await {
            Ok(jobs) if jobs.is_empty() => {
                drop(taken);
                backoff = Backoff::default();
                tokio::select! {
                    biased;
                    () = stop.draining.cancelled() => break Ok(()),
                    () = engine.port.wait_for_work(&queues, IDLE_WAIT) => {}
                }
            }
            Ok(jobs) => {
                backoff = Backoff::default();
                if let Err(error) = start(engine, source, stop, jobs, taken, &mut tasks).await {
                    break Err(error);
                }
            }
            Err(error) if error.is_closed() => break Err(error),
            Err(error) => {
                warn!(error = &error as &dyn std::error::Error, "claim failed");
                drop(taken);
                backoff.pause(&*engine.clock, &stop.draining).await;
            }
        }
    };
    if result.is_err() {
        stop.draining.cancel();
        stop.aborting.cancel();
    }
    while let Some(ended) = tasks.join_next().await {
        report(ended);
    }
    result
}

/// Which priorities are in use, looked up now and then: another runtime of the name may have begun to use one.
#[derive(Default)]
struct Priorities {
    looked_up: Option<Timestamp>,
}

impl Priorities {
    async fn refresh<R, H>(&mut self, engine: &Engine<R, H>) {
        let now = engine.clock.now();
        if self.looked_up.is_some_and(|at| now.since(at) < IDLE_WAIT) {
            return;
        }
        // A name has a bounded number of priorities: one page holds them.
        let range = ScanRange::first(engine.reads.keys.priorities_prefix(), 2 * MAX_PRIORITIES);
        match engine.port.scan(&range, Read::Latest).await {
            Ok(page) => {
                let used = page.entries.iter().filter_map(|(key, _)| engine.reads.keys.parse_priority(key));
                used.for_each(|priority| engine.queues.remember(priority));
                self.looked_up = Some(now);
            }
            Err(error) => warn!(error = &error as &dyn std::error::Error, "priorities could not be read"),
        }
    }
}

fn queues<R, H>(engine: &Engine<R, H>, source: Source) -> Vec<String> {
    match source {
        Source::Steps => engine.queues.in_order(),
        Source::Notifications => vec![engine.queues.notifications()],
    }
}

/// Claims up to `max` jobs, from the queues in order.
async fn claim<R, H>(engine: &Engine<R, H>, queues: &[String], max: usize) -> Result<Vec<ClaimedJob>> {
    let mut jobs = Vec::new();
    for queue in queues {
        if jobs.len() == max {
            break;
        }
        match engine.port.claim(queue, max - jobs.len(), engine.leases.lease()).await {
            Ok(claimed) => jobs.extend(claimed),
            Err(error) if jobs.is_empty() => return Err(error.into()),
            Err(_) => break,
        }
    }
    Ok(jobs)
}

/// Starts a task for each job, once every claim of a doorbell that another process rang is durable: at most one crash
/// per doorbell goes uncounted.
async fn start<R, H>(
    engine: &Arc<Engine<R, H>>,
    source: Source,
    stop: &Stop,
    jobs: Vec<ClaimedJob>,
    slots: Vec<Slot>,
    tasks: &mut JoinSet<()>,
) -> Result<()>
where
    R: StepRunner + 'static,
    H: TerminalHook + 'static,
{
    let mut rung = Vec::with_capacity(jobs.len());
    for job in jobs {
        match decode_doorbell(&job.payload) {
            Ok(doorbell) => {
                let lease = engine.leases.hold(job.claim.clone(), job.job.clone(), job.lost.clone());
                rung.push(Rung { job, doorbell, lease });
            }
            Err(error) => {
                error!(job_id = %job.job, error = &error as &dyn std::error::Error, "malformed job");
                let engine = engine.clone();
                tasks.spawn(async move { bury(&engine, job, "not a doorbell of this queue").await });
            }
        }
    }
    let open = engine.port.open_number();
    if rung.iter().any(|rung| rung.doorbell.open != open) && !persist_claims(engine, stop).await? {
        return Ok(());
    }
    for (rung, slot) in rung.into_iter().zip(slots) {
        let (engine, stop) = (engine.clone(), stop.clone());
        // Boxed: a task is moved about before it runs, and these are large.
        match source {
            Source::Steps => tasks.spawn(Box::pin(delivery::deliver(engine, stop, rung, slot))),
            Source::Notifications => tasks.spawn(Box::pin(notification::deliver(engine, stop, rung, slot))),
        };
    }
    Ok(())
}

/// Makes claims durable; `false` when the loop stops first, and the claims are left to their leases.
async fn persist_claims<R, H>(engine: &Engine<R, H>, stop: &Stop) -> Result<bool> {
    let mut backoff = Backoff::default();
    while !stop.aborting.is_cancelled() {
        match engine.port.persist_claims().await {
            Ok(()) => return Ok(true),
            Err(error) if error.is_closed() => return Err(error.into()),
            Err(error) => {
                warn!(error = &error as &dyn std::error::Error, "claims could not be made durable");
                backoff.pause(&*engine.clock, &stop.aborting).await;
            }
        }
    }
    Ok(false)
}

/// Puts a job that means nothing to this runtime among the dead ones.
pub(crate) async fn bury<R, H>(engine: &Engine<R, H>, job: ClaimedJob, reason: &str) {
    settle(engine, Settlement::Dead(job.claim, reason.to_owned())).await;
}

/// Settles; a store that closed meanwhile delivers the job again after the next open, and its record tells the rest.
pub(crate) async fn settle<R, H>(engine: &Engine<R, H>, settlement: Settlement) {
    if let Err(error) = engine.port.settle(settlement).await {
        warn!(error = &error as &dyn std::error::Error, "delivery not settled");
    }
}

fn report(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        error!(error = &error as &dyn std::error::Error, "a delivery's task died: its lease brings it back");
    }
}
