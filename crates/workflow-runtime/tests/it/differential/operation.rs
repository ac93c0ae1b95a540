//! The operations, as data: what they name is looked up when they run, so that any of them can be left out.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

/// One operation on both queues.
#[derive(Clone, Debug)]
pub(super) enum Operation {
    Commit(Change),
    Get {
        key: usize,
        durable: bool,
    },
    Scan {
        prefix: usize,
        after: Option<usize>,
        limit: usize,
        backwards: bool,
        durable: bool,
    },
    /// A wait for a change, which is given up when it does not end at once.
    Change {
        key: usize,
        seen: Option<u8>,
    },
    Claim {
        queue: usize,
        max: usize,
        ticks: u32,
    },
    Extend {
        claim: usize,
        ticks: u32,
    },
    Settle {
        claim: usize,
        dead: bool,
    },
    /// Drops jobs, whatever they are, and all that are dead.
    Drop {
        jobs: Vec<usize>,
        dead: bool,
    },
    /// An operator puts back a dead job, or one that is not dead where none is.
    Requeue {
        job: usize,
    },
    /// Asks for everything about a job.
    Job {
        job: usize,
    },
    PersistClaims,
    DeadJobs {
        queue: usize,
        limit: usize,
    },
    /// Lets time pass, unless the stores are held.
    Wait {
        ticks: u32,
    },
    Hold,
    Release,
    /// A crash if the stores are held, a takeover otherwise.
    Reopen,
}

/// A commit.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) key: usize,
    /// The value put at the key, or none if it is deleted.
    pub(super) value: Option<u8>,
    /// Whether it expects what is there, or something else; if it expects anything.
    pub(super) expects_right: Option<bool>,
    /// Another key that is deleted.
    pub(super) deleted: Option<usize>,
    pub(super) job: Option<NewJob>,
    pub(super) flaw: Option<Flaw>,
}

/// A job of a commit.
#[derive(Clone, Debug)]
pub(super) struct NewJob {
    pub(super) queue: usize,
    /// The id of an earlier job.
    pub(super) again: Option<usize>,
    pub(super) due: Option<Due>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Due {
    Already,
    In { ticks: u32 },
}

/// What makes a commit invalid.
#[derive(Clone, Copy, Debug)]
pub(super) enum Flaw {
    WritesTwice,
    ExpectsWithoutWriting,
    PutsTooMuch,
}

pub(super) fn operations() -> impl Strategy<Value = Operation> {
    prop_oneof![
        10 => changes().prop_map(Operation::Commit),
        2 => (0..4usize, any::<bool>()).prop_map(|(key, durable)| Operation::Get { key, durable }),
        4 => (0..3usize, option::weighted(0.3, 0..4usize), limits(), any::<bool>(), any::<bool>())
            .prop_map(|(prefix, after, limit, backwards, durable)| {
                Operation::Scan { prefix, after, limit, backwards, durable }
            }),
        2 => (0..4usize, option::of(0..3u8)).prop_map(|(key, seen)| Operation::Change { key, seen }),
        7 => (0..2usize, prop_oneof![Just(1), Just(2), Just(99)], 0..3u32)
            .prop_map(|(queue, max, ticks)| Operation::Claim { queue, max, ticks }),
        3 => (any::<usize>(), 0..3u32).prop_map(|(claim, ticks)| Operation::Extend { claim, ticks }),
        6 => (any::<usize>(), any::<bool>()).prop_map(|(claim, dead)| Operation::Settle { claim, dead }),
        3 => (vec(any::<usize>(), 0..4), any::<bool>()).prop_map(|(jobs, dead)| Operation::Drop { jobs, dead }),
        4 => any::<usize>().prop_map(|job| Operation::Requeue { job }),
        3 => any::<usize>().prop_map(|job| Operation::Job { job }),
        1 => Just(Operation::PersistClaims),
        1 => (0..2usize, 0..4usize).prop_map(|(queue, limit)| Operation::DeadJobs { queue, limit }),
        3 => (1..3u32).prop_map(|ticks| Operation::Wait { ticks }),
        2 => Just(Operation::Hold),
        4 => Just(Operation::Release),
        2 => Just(Operation::Reopen),
    ]
}

/// The limit of a scan: often less than there is.
fn limits() -> impl Strategy<Value = usize> {
    prop_oneof![2 => Just(1), 1 => 0..4usize]
}

fn changes() -> impl Strategy<Value = Change> {
    let value = option::weighted(0.7, 0..3u8);
    let expects_right = option::weighted(0.4, prop::bool::weighted(0.7));
    let flaw = prop_oneof![Just(Flaw::WritesTwice), Just(Flaw::ExpectsWithoutWriting), Just(Flaw::PutsTooMuch)];
    (0..4usize, value, expects_right, option::weighted(0.2, 0..4usize), option::of(jobs()), option::weighted(0.1, flaw))
        .prop_map(|(key, value, expects_right, deleted, job, flaw)| {
            let deleted = deleted.filter(|deleted| *deleted != key);
            Change { key, value, expects_right, deleted, job, flaw }
        })
}

fn jobs() -> impl Strategy<Value = NewJob> {
    let due = prop_oneof![Just(Due::Already), (0..3u32).prop_map(|ticks| Due::In { ticks })];
    (0..2usize, option::weighted(0.1, any::<usize>()), option::weighted(0.4, due))
        .prop_map(|(queue, again, due)| NewJob { queue, again, due })
}
