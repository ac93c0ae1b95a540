//! A run that kills its process on every start, and its neighbours: the killer uses up its own attempts, not theirs.
//!
//! The model is one process after another over a durable queue. Claims take any order, in a limited number of slots.
//! Suspects run one at a time, first come first served, and take no slot. A crash may forget a claim by the process
//! that rang the doorbell, unless a later commit of the run made it durable. It may also come between a claim and the
//! commit of its decision. Neighbours, and a killer that waits for its turn, may be handed back, under a new job.

use std::collections::{BTreeMap, VecDeque};

use proptest::collection::vec;
use proptest::prelude::*;
use workflow_core::{
    Action, Attempt, Attempts, ClaimVerdict, Claimed, Effect, Event, HandedBack, Incarnation, InputHash, JobId,
    Outcome, Run, SUSPECT_AFTER, Status, StepReturned, Submitted, Timestamp, Transition, TurnCame, Value, When, decide,
};

use super::config;

const MAX_ATTEMPTS: u32 = 5;
const NOW: Timestamp = Timestamp::from_millis(1_000);
const KILLER: usize = 0;

/// One thing that can happen next, given the doorbells to choose from.
type Move = fn(&mut World, &JobId);

/// A doorbell in the queue.
struct Job {
    run: usize,
    deliveries: u32,
    rung_by: u32,
    claim: Option<Claim>,
}

impl Job {
    fn is_running(&self) -> bool {
        self.claim.as_ref().is_some_and(|claim| claim.running)
    }
}

/// A delivery in this process.
struct Claim {
    durable: bool,
    running: bool,
}

struct World {
    runs: Vec<Run>,
    /// The steps after which each neighbour succeeds.
    steps: Vec<u32>,
    jobs: BTreeMap<JobId, Job>,
    suspects: VecDeque<JobId>,
    running_suspect: Option<JobId>,
    slots: usize,
    open: u32,
    rung: u32,
    /// The attempts that each step of each run lost, those aside that a crash forgot.
    lost: BTreeMap<(usize, u32), u32>,
    /// The first deliveries of each step of each run that were lost before they started: no record tells them apart
    /// from those that started.
    mistaken: BTreeMap<(usize, u32), u32>,
    killer_starts: u32,
    forgotten_starts: u32,
    hand_backs: u32,
    choices: Vec<u8>,
    chosen: usize,
}

impl World {
    fn new(neighbours: &[u32], slots: usize, hand_backs: u32, choices: Vec<u8>) -> Self {
        let steps: Vec<u32> = std::iter::once(1).chain(neighbours.iter().copied()).collect();
        let mut world = Self {
            runs: vec![Run::absent(); steps.len()],
            steps,
            jobs: BTreeMap::new(),
            suspects: VecDeque::new(),
            running_suspect: None,
            slots,
            open: 0,
            rung: 0,
            lost: BTreeMap::new(),
            mistaken: BTreeMap::new(),
            killer_starts: 0,
            forgotten_starts: 0,
            hand_backs,
            choices,
            chosen: 0,
        };
        for run in 0..world.runs.len() {
            world.submit(run);
        }
        world
    }

    /// The next choice out of `count`.
    fn choose(&mut self, count: usize) -> usize {
        let choice = self.choices[self.chosen % self.choices.len()];
        // Past the end of the choices their order shifts, so that no choice repeats for ever.
        let shift = self.chosen / self.choices.len();
        self.chosen += 1;
        (usize::from(choice) + shift) % count
    }

    fn new_job(&mut self) -> JobId {
        self.rung += 1;
        JobId::from(format!("{:04}", self.rung))
    }

    fn submit(&mut self, run: usize) {
        let job = self.new_job();
        let hash = InputHash([0; 32]);
        let event = Event::Submitted(Submitted {
            incarnation: Incarnation::new(run as u128),
            job,
            input: Value::from("input"),
            input_hash: hash,
            stored_input_hash: None,
            now: NOW,
            run_at: None,
        });
        self.commit(run, event);
        let rung_by = self.choose(2) as u32;
        self.jobs.values_mut().filter(|job| job.run == run).for_each(|job| job.rung_by = rung_by);
        self.open = 1;
    }

    /// Decides and commits; a written record makes the claim that it was decided for durable.
    fn commit(&mut self, run: usize, event: Event) -> Transition {
        let transition = decide(&self.runs[run], event);
        if transition.next != self.runs[run]
            && let Run::Active(active) = &self.runs[run]
            && let Some(claim) = self.jobs.get_mut(&active.job).and_then(|job| job.claim.as_mut())
        {
            claim.durable = true;
        }
        for effect in &transition.effects {
            if let Effect::EnqueueStep { job, .. } = effect {
                let rung = Job { run, deliveries: 0, rung_by: self.open, claim: None };
                self.jobs.insert(job.clone(), rung);
            }
        }
        self.runs[run] = transition.next.clone();
        transition
    }

    fn attempt(&self, job: &JobId) -> Attempt {
        let Job { run, deliveries, .. } = self.jobs[job];
        let Run::Active(active) = &self.runs[run] else { panic!("run {run} is not active") };
        Attempt { incarnation: active.incarnation, step: active.step, job: job.clone(), deliveries }
    }

    fn claim(&mut self, job: &JobId) {
        let entry = self.jobs.get_mut(job).expect("the job is in the queue");
        entry.deliveries += 1;
        entry.claim = Some(Claim { durable: entry.rung_by != self.open, running: false });
        let (run, deliveries) = (entry.run, entry.deliveries);
        let next_job = self.new_job();
        let incarnation = Incarnation::new(run as u128);
        let event = Claimed {
            incarnation,
            job: job.clone(),
            deliveries,
            max_attempts: MAX_ATTEMPTS,
            now: NOW,
            next_job,
            recorded: None,
            requeued: false,
        };
        match self.commit(run, Event::Claimed(event)).action {
            Action::Execute { attempt } => self.start(job, attempt),
            Action::Park => self.suspects.push_back(job.clone()),
            Action::Ack | Action::DeadLetter | Action::Discard => drop(self.jobs.remove(job)),
            Action::Replay | Action::Advance | Action::None => panic!("no answer to a claim"),
        }
    }

    fn turn(&mut self) {
        let job = self.suspects.pop_front().expect("a suspect waits");
        let event = Event::TurnCame(TurnCame { attempt: self.attempt(&job), now: NOW, next_job: self.new_job() });
        let transition = self.commit(self.jobs[&job].run, event);
        let Action::Execute { attempt } = transition.action else { panic!("{transition:?}") };
        self.start(&job, attempt);
        self.running_suspect = Some(job);
    }

    fn start(&mut self, job: &JobId, attempt: u32) {
        let run = self.jobs[job].run;
        assert_eq!(attempt, self.counted(run, self.attempt(job).step) + 1, "run {run} lost count");
        let entry = self.jobs.get_mut(job).expect("the job is in the queue");
        entry.claim.as_mut().expect("the job is claimed").running = true;
        self.killer_starts += u32::from(entry.run == KILLER);
    }

    /// The attempts of a step that are over, as they should be counted.
    fn counted(&self, run: usize, step: u32) -> u32 {
        let of = |counts: &BTreeMap<(usize, u32), u32>| counts.get(&(run, step)).copied().unwrap_or(0);
        of(&self.lost) + of(&self.mistaken)
    }

    /// A running neighbour's step returns; the next one goes on inline, or through the queue.
    fn finish(&mut self, job: &JobId) {
        let run = self.jobs[job].run;
        let attempt = self.attempt(job);
        let outcome = if attempt.step + 1 < self.steps[run] {
            Outcome::Continue { payload: Value::from("next"), when: When::Now }
        } else {
            Outcome::Succeed { result: Value::from("result") }
        };
        let inline = self.choose(2) == 0;
        let next_job = self.new_job();
        let event = Event::StepReturned(StepReturned { attempt, outcome, now: NOW, next_job, inline });
        let action = self.commit(run, event).action;
        if self.running_suspect.as_ref() == Some(job) {
            self.running_suspect = None;
        }
        if action != Action::Advance {
            assert_eq!(action, Action::Ack);
            self.jobs.remove(job);
        }
    }

    /// A delivery that runs or waits for its turn is given back; a suspect is one under its new job too, whose
    /// first delivery may be lost before it is parked.
    fn hand_back(&mut self, job: &JobId) {
        self.hand_backs -= 1;
        let (run, attempt, next_job) = (self.jobs[job].run, self.attempt(job), self.new_job());
        let new_job = next_job.clone();
        let event = Event::HandedBack(HandedBack { attempt, now: NOW, next_job });
        assert_eq!(self.commit(run, event).action, Action::Ack);
        self.jobs.remove(job);
        self.suspects.retain(|suspect| suspect != job);
        self.running_suspect.take_if(|suspect| suspect == job);
        let suspect = matches!(&self.runs[run], Run::Active(run) if run.attempts.lost >= SUSPECT_AFTER);
        if suspect && self.choose(2) == 0 {
            self.die_undecided(&new_job);
        }
    }

    /// The process dies, in the midst of some claims: those are durable, and what is decided on them is not.
    fn crash(&mut self) {
        let free = self.slots.saturating_sub(self.healthy());
        for job in self.waiting().into_iter().take(free) {
            if self.choose(2) == 0 {
                self.die_undecided(&job);
            }
        }
        let claimed: Vec<JobId> = self.claimed(|_| true);
        for job in claimed {
            let forgotten = self.choose(2) == 0;
            let step = self.attempt(&job).step;
            let entry = self.jobs.get_mut(&job).expect("the job is in the queue");
            let claim = entry.claim.take().expect("the job is claimed");
            if !claim.durable && forgotten {
                entry.deliveries -= 1;
                self.forgotten_starts += u32::from(entry.run == KILLER && claim.running);
            } else if claim.running {
                *self.lost.entry((entry.run, step)).or_default() += 1;
            }
        }
        self.suspects.clear();
        self.running_suspect = None;
        self.open += 1;
    }

    fn die_undecided(&mut self, job: &JobId) {
        let entry = self.jobs.get_mut(job).expect("the job is in the queue");
        entry.deliveries += 1;
        let Run::Active(active) = &self.runs[entry.run] else { return };
        let waits = active.attempts.parked || (active.attempts.base == 0 && active.attempts.lost >= SUSPECT_AFTER);
        if entry.deliveries == active.attempts.base + 1 && !waits {
            *self.mistaken.entry((entry.run, active.step)).or_default() += 1;
        }
    }

    fn waiting(&self) -> Vec<JobId> {
        self.jobs.iter().filter(|(_, job)| job.claim.is_none()).map(|(id, _)| id.clone()).collect()
    }

    /// The deliveries that take a slot.
    fn healthy(&self) -> usize {
        self.claimed(Job::is_running).len() - usize::from(self.running_suspect.is_some())
    }

    fn claimed(&self, which: impl Fn(&Job) -> bool) -> Vec<JobId> {
        let claimed = self.jobs.iter().filter(|(_, job)| job.claim.is_some() && which(job));
        claimed.map(|(id, _)| id.clone()).collect()
    }

    /// One thing that can happen next, chosen; false when nothing can.
    fn advance(&mut self) -> bool {
        let killer = |job: &Job| job.run == KILLER;
        let waiting = if self.healthy() < self.slots { self.waiting() } else { Vec::new() };
        let turns =
            if self.running_suspect.is_none() { self.suspects.iter().take(1).cloned().collect() } else { vec![] };
        let to_hand_back =
            if self.hand_backs > 0 { self.claimed(|job| !(killer(job) && job.is_running())) } else { vec![] };
        let moves: [(Move, Vec<JobId>); 5] = [
            (Self::claim, waiting),
            (|world, _| world.turn(), turns),
            (Self::finish, self.claimed(|job| job.is_running() && !killer(job))),
            (Self::hand_back, to_hand_back),
            (|world, _| world.crash(), self.claimed(|job| job.is_running() && killer(job))),
        ];
        let possible: Vec<_> = moves.into_iter().filter(|(_, jobs)| !jobs.is_empty()).collect();
        if possible.is_empty() {
            return false;
        }
        let (next, jobs) = &possible[self.choose(possible.len())];
        let job = &jobs[self.choose(jobs.len())];
        next(self, job);
        true
    }
}

fn status(run: &Run) -> Option<Status> {
    match run {
        Run::Absent | Run::Active(_) => None,
        Run::Ended(run) => Some(run.status),
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_killer_uses_up_its_own_attempts_and_not_its_neighbours(
        neighbours in vec(1..4_u32, 1..6), slots in 1..8_usize, hand_backs in 0..6_u32,
        choices in vec(any::<u8>(), 8..64),
    ) {
        let mut world = World::new(&neighbours, slots, hand_backs, choices);
        let mut moves = 0;
        while world.advance() {
            moves += 1;
            prop_assert!(moves < 10_000, "no end");
        }
        prop_assert_eq!(status(&world.runs[KILLER]), Some(Status::Failed));
        prop_assert!(matches!(&world.runs[KILLER], Run::Ended(run) if run.dead_letter));
        for run in &world.runs[KILLER + 1..] {
            prop_assert_eq!(status(run), Some(Status::Succeeded));
        }
        prop_assert!(world.forgotten_starts <= 1, "one crash per doorbell may be forgotten");
        prop_assert_eq!(world.killer_starts - world.forgotten_starts, MAX_ATTEMPTS);
        for (run, step) in world.lost.keys().chain(world.mistaken.keys()) {
            let counted = world.counted(*run, *step);
            prop_assert!(*run == KILLER || counted <= 3, "step {} of run {} lost {} attempts", step, run, counted);
        }
        prop_assert_eq!(world.jobs.len(), 0, "doorbells are left over");
    }

    /// Each delivery dies: of some, before their decision commits, of others at their start or while they wait.
    #[test]
    fn a_killer_is_exhausted_after_as_many_starts_as_it_has_attempts(
        max_attempts in 1..8_u32, deaths in vec(0..3_u8, 0..40),
    ) {
        let mut attempts = Attempts::default();
        let (mut starts, mut mistaken, mut deaths) = (0, 0, deaths.into_iter());
        for deliveries in 1.. {
            let dies = deaths.next();
            if dies == Some(0) {
                mistaken += u32::from(deliveries == 1);
                continue;
            }
            attempts = match attempts.claim(deliveries, max_attempts) {
                ClaimVerdict::Start(counted) => counted,
                ClaimVerdict::Park(counted) if dies == Some(1) => {
                    attempts = counted;
                    continue;
                }
                ClaimVerdict::Park(counted) => Attempts { parked: false, ..counted },
                ClaimVerdict::Exhausted => break,
                ClaimVerdict::Late => unreachable!("the deliveries rise"),
            };
            starts += 1;
            prop_assert_eq!(attempts.number(deliveries), starts + mistaken);
            prop_assert!(starts <= max_attempts && deliveries <= 41 + max_attempts, "no end");
        }
        prop_assert_eq!(starts + mistaken, max_attempts);
    }
}
