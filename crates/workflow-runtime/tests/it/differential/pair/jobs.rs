//! Jobs apart from their claims.

use futures::FutureExt;
use workflow_runtime::port::{JobId, JobState, Settlement};

use super::{ALL, Compared, Pair, QUEUES, same};

impl Pair {
    /// Drops jobs, unless the stores are held: a dead one then keeps claims from being answered, or not.
    pub(super) async fn drop_jobs(&mut self, jobs: &[usize], dead: bool) -> Compared {
        if self.in_flight.is_some() {
            return Ok(());
        }
        let mut jobs: Vec<JobId> = jobs.iter().filter_map(|job| nth(&self.jobs, *job)).collect();
        if dead {
            jobs.extend(self.all_dead().await);
        }
        for job in &jobs {
            let state = self.ports[0].job_state(job).await.expect("an open queue tells where a job is");
            self.happened.insert(match state {
                None => "drop: gone",
                Some(JobState::Waiting) => "drop: waiting",
                Some(JobState::Claimed) => "drop: held",
                Some(JobState::Dead) => "drop: dead",
            });
        }
        let calls = self.ports.clone().map(|port| {
            let jobs = jobs.clone();
            let drop = async move { port.settle(Settlement::Drop(jobs)).await.map_err(|error| error.to_string()) };
            drop.map(|dropped| format!("{dropped:?}")).boxed()
        });
        self.call("a drop", calls).await?;
        for job in &jobs {
            self.compare_job(job).await?;
        }
        Ok(())
    }

    /// An operator puts a job back, unless the stores are held.
    pub(super) async fn requeue(&mut self, job: usize) -> Compared {
        if self.in_flight.is_some() {
            return Ok(());
        }
        let dead = self.all_dead().await;
        let Some(job) = nth(&dead, job).or_else(|| nth(&self.jobs, job)) else { return Ok(()) };
        let requeued = [self.disks[0].requeue_dead_job(&job).await, self.disks[1].requeue_dead_job(&job).await];
        same("an operator's requeue", &requeued[0], &requeued[1])?;
        if requeued[0] {
            // Nobody has told the process.
            self.lapsed.extend(0..QUEUES.len());
        }
        self.happened.insert(if requeued[0] { "requeue: dead" } else { "requeue: not dead" });
        self.compare_job(&job).await
    }

    /// Compares what is told of a job. What is in flight is seen or not.
    pub(super) async fn job(&mut self, job: usize) -> Compared {
        match nth(&self.jobs, job).filter(|_| self.in_flight.is_none()) {
            Some(job) => self.compare_job(&job).await,
            None => Ok(()),
        }
    }

    async fn compare_job(&mut self, job: &JobId) -> Compared {
        let mut told = Vec::new();
        for port in &self.ports {
            let state = port.job_state(job).await.expect("an open queue tells where a job is");
            let is_requeued = port.is_requeued(job).await.expect("an open queue tells whether a job was put back");
            told.push((state, is_requeued));
        }
        same("a job", &told[0], &told[1])?;
        self.happened.insert(match told[0] {
            (None, _) => "job: none",
            (Some(JobState::Waiting), false) => "job: waiting",
            (Some(JobState::Claimed), false) => "job: claimed",
            (Some(JobState::Dead), _) => "job: dead",
            (Some(JobState::Waiting | JobState::Claimed), true) => "job: requeued",
        });
        Ok(())
    }

    async fn all_dead(&self) -> Vec<JobId> {
        let mut dead = Vec::new();
        for queue in QUEUES {
            dead.extend(self.ports[0].dead_jobs(queue, ALL).await.expect("an open queue tells its dead jobs"));
        }
        dead
    }

    pub(super) async fn dead_jobs(&mut self, queue: usize, limit: usize) -> Compared {
        let mut dead = Vec::new();
        for port in &self.ports {
            let jobs = port.dead_jobs(QUEUES[queue], limit).await.expect("an open queue tells its dead jobs");
            let mut all = port.dead_jobs(QUEUES[queue], ALL).await.expect("an open queue tells its dead jobs");
            assert!(jobs.iter().all(|job| all.contains(job)));
            all.sort();
            dead.push((jobs.len(), all));
        }
        same("the dead jobs", &dead[0], &dead[1])?;
        self.happened.insert(if dead[0].1.is_empty() { "dead jobs: none" } else { "dead jobs: some" });
        Ok(())
    }
}

fn nth(jobs: &[JobId], number: usize) -> Option<JobId> {
    jobs.get(number.checked_rem(jobs.len())?).cloned()
}
