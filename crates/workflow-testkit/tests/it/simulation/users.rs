//! Users: they call everything that a runtime offers, at random, several at a time.

mod listings;
mod outcomes;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::join_all;
use tokio::time::{sleep, timeout};
use workflow_core::{ActiveRun, Phase, Run, Status};
use workflow_runtime::port::{Clock, JobState};
use workflow_runtime::{Error, RedriveOptions, RunSpec, SignalOptions, WorkflowRuntime};
use workflow_testkit::MemoryDisk;

use self::outcomes::{cancelled, paused, redriven, resumed, signalled};
use super::answer::{Answer, End};
use super::committed::Committed;
use super::event::Event;
use super::op::Op;
use super::script::KEYS;
use super::witness::Witness;
use super::workload::{Workload, bytes, headers};
use crate::faults::Drawn;

/// A runtime of the simulation.
pub(crate) type Runtime = WorkflowRuntime<Workload, Workload>;

/// How many users there are.
const USERS: u64 = 4;
/// How many run ids there are.
const RUNS: u64 = 10;
/// How long a user waits for an answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// The users. They outlive the processes.
#[derive(Clone)]
pub(crate) struct Users {
    witness: Witness,
    drawn: Drawn,
    disk: MemoryDisk,
    /// Operators remove jobs.
    may_remove: bool,
    told: Arc<Mutex<Told>>,
}

/// What users have sent before, to be sent again.
#[derive(Default)]
struct Told {
    inputs: BTreeMap<String, u64>,
    signals: Vec<(String, u64)>,
}

impl Users {
    pub(crate) fn new(witness: Witness, drawn: Drawn, disk: MemoryDisk, may_remove: bool) -> Self {
        Self { witness, drawn, disk, may_remove, told: Arc::default() }
    }

    /// Users call the runtime of a process. Never ends.
    pub(crate) async fn act(&self, runtime: &Runtime) {
        join_all((0..USERS).map(|_| self.act_alone(runtime))).await;
    }

    async fn act_alone(&self, runtime: &Runtime) {
        loop {
            let op = self.draw();
            self.call(runtime, op).await;
            sleep(Duration::from_millis(self.drawn.below(200))).await;
        }
    }

    /// One call, and what it is answered.
    pub(crate) async fn call(&self, runtime: &Runtime, op: Op) {
        let number = self.witness.number();
        self.witness.tell(Event::Asked(number, op.clone()));
        let asked = timeout(PATIENCE, self.ask(runtime, number, &op)).await;
        let answer = match asked {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) if error.is_permanent() => Answer::Refused(error.to_string()),
            Ok(Err(error)) => Answer::Failed(error.to_string()),
            Err(_) => Answer::Failed("nobody waits any longer".to_owned()),
        };
        self.witness.tell(Event::Answered(number, op, answer));
    }

    fn draw(&self) -> Op {
        let any = |_: &Run| true;
        match self.drawn.below(112) {
            0..=25 => self.submission(format!("r{}", self.drawn.below(RUNS))),
            26..=46 => self.signal(),
            47..=51 => Op::Cancel(self.run_id(|run| matches!(run, Run::Active(_)))),
            52..=59 => Op::Pause(self.run_id(is_waiting)),
            60..=68 => Op::Resume(self.run_id(|run| matches!(run, Run::Active(run) if run.paused))),
            69..=80 => Op::Redrive {
                run_id: self.run_id(|run| matches!(run, Run::Ended(run) if run.status != Status::Succeeded)),
                step: (self.drawn.below(3) == 0).then(|| self.drawn.below(2) as u32),
                payload: (self.drawn.below(3) == 0).then(|| self.witness.number()),
            },
            81..=86 => Op::Forget(self.run_id(|run| matches!(run, Run::Ended(_)))),
            87..=91 => Op::End(self.run_id(any)),
            92..=95 => Op::Wait(self.run_id(any)),
            96..=99 => Op::Clear(self.key()),
            100..=102 => Op::Kept(self.key()),
            103..=105 => Op::List(self.filter(), self.order()),
            106..=107 => Op::Count(self.filter()),
            108 if self.may_remove => Op::Remove,
            _ => Op::Requeue,
        }
    }

    /// Half of the time that of a run which is so, if there is one.
    fn run_id(&self, is_so: fn(&Run) -> bool) -> String {
        let those = self.witness.look(|committed| committed.run_ids(is_so));
        match those.get(self.drawn.below(2 * those.len() as u64) as usize) {
            Some(run_id) => run_id.clone(),
            None => format!("r{}", self.drawn.below(RUNS)),
        }
    }

    /// Of a new input, or of the last again.
    fn submission(&self, run_id: String) -> Op {
        let mut told = self.told.lock().unwrap();
        let last = told.inputs.get(&run_id).copied().filter(|_| self.drawn.below(4) == 0);
        let input = last.unwrap_or_else(|| self.witness.number());
        told.inputs.insert(run_id.clone(), input);
        Op::Submit { run_id, input }
    }

    /// A new one, or one of the last again.
    fn signal(&self) -> Op {
        let mut told = self.told.lock().unwrap();
        let last = told.signals.len().min(8) as u64;
        if last > 0 && self.drawn.below(6) == 0 {
            let (key, id) = told.signals[told.signals.len() - 1 - self.drawn.below(last) as usize].clone();
            return Op::Signal { key, id: Some(id) };
        }
        let waited_for = self.witness.look(Committed::waited_for);
        let key = match self.drawn.below(12) {
            0 => "nobody".to_owned(),
            1..=6 if !waited_for.is_empty() => waited_for[self.drawn.below(waited_for.len() as u64) as usize].clone(),
            _ => self.key(),
        };
        let id = (self.drawn.below(8) > 0).then(|| self.witness.number());
        told.signals.extend(id.map(|id| (key.clone(), id)));
        Op::Signal { key, id }
    }

    fn key(&self) -> String {
        KEYS[self.drawn.below(KEYS.len() as u64) as usize].to_owned()
    }

    async fn ask(&self, runtime: &Runtime, number: u64, op: &Op) -> workflow_runtime::Result<Answer> {
        Ok(match op {
            Op::Submit { run_id, input } => {
                let made = runtime.submit(self.spec(number, run_id, *input)).await?.newly_submitted;
                if made { Answer::Made } else { Answer::Known }
            }
            Op::Signal { key, id } => {
                let payload = bytes(&format!("s{}", id.unwrap_or(number)), number.is_multiple_of(5));
                let options = SignalOptions { id: id.map(|id| id.to_string()) };
                signalled(runtime.signal_with(key, payload, options).await?)
            }
            Op::Clear(key) => Answer::Cleared(runtime.clear_signal(key).await?),
            Op::Kept(key) => listings::kept(runtime, key).await?,
            Op::List(filter, order) => listings::listed(runtime, filter, *order).await?,
            Op::Count(filter) => Answer::Counted(runtime.count(filter.clone()).await?),
            Op::Cancel(run_id) => cancelled(runtime.cancel(run_id, Some(format!("call {number}"))).await?),
            Op::Pause(run_id) => paused(runtime.pause(run_id).await?),
            Op::Resume(run_id) => resumed(runtime.resume(run_id).await?),
            Op::Redrive { run_id, step, payload } => {
                let payload = payload.map(|number| bytes(&format!("p{number}"), number.is_multiple_of(5)));
                redriven(runtime.redrive(run_id, RedriveOptions { step: *step, payload }).await?)
            }
            Op::Forget(run_id) => {
                if runtime.forget(run_id).await? {
                    Answer::Forgotten
                } else {
                    Answer::Nothing
                }
            }
            Op::End(run_id) => {
                runtime.run_end(run_id).await?.map_or(Answer::Nothing, |end| Answer::Over(End::of(&end)))
            }
            Op::Wait(run_id) => self.wait(runtime, run_id).await?,
            Op::Requeue => self.requeue(),
            Op::Remove => self.remove(),
        })
    }

    fn spec(&self, number: u64, run_id: &str, input: u64) -> RunSpec {
        let now: std::time::SystemTime = self.disk.clock().now().into();
        RunSpec {
            run_id: Some(run_id.to_owned()),
            input: bytes(&format!("i{input}"), input.is_multiple_of(5)),
            headers: headers(number, self.drawn.below(u64::MAX)),
            priority: (self.drawn.below(8) == 0).then_some(1),
            max_attempts_per_step: (self.drawn.below(6) == 0).then_some(1),
            run_at: (self.drawn.below(6) == 0).then(|| now + Duration::from_millis(self.drawn.below(5_000))),
            kv_writes: [(format!("made/{number}").into_bytes(), Vec::new())].into(),
        }
    }

    async fn wait(&self, runtime: &Runtime, run_id: &str) -> workflow_runtime::Result<Answer> {
        let patience = Duration::from_millis(self.drawn.below(5_000));
        match runtime.wait_timeout(run_id, patience).await {
            Ok(Some(end)) => Ok(Answer::Over(End::of(&end))),
            Ok(None) | Err(Error::NotFound(_)) => Ok(Answer::Nothing),
            Err(error) => Err(error),
        }
    }

    fn requeue(&self) -> Answer {
        let jobs = self.disk.jobs().into_iter();
        for (job, _) in jobs.filter(|(_, job)| job.state == JobState::Dead) {
            self.disk.requeue_dead_job(&job);
        }
        Answer::Done
    }

    fn remove(&self) -> Answer {
        let jobs = self.disk.jobs().into_iter();
        let waiting: Vec<_> =
            jobs.filter(|(_, job)| job.state == JobState::Waiting && !job.queue.ends_with("notifications")).collect();
        if let Some((job, _)) = waiting.get(self.drawn.below(waiting.len() as u64) as usize) {
            self.disk.remove_job(job);
        }
        Answer::Done
    }
}

fn is_waiting(run: &Run) -> bool {
    matches!(run, Run::Active(ActiveRun { phase: Phase::Waiting { .. }, .. }))
}
