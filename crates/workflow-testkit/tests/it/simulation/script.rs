//! What a run does at each step: drawn by the number in a header of its submission, so that every attempt does the same.

use std::time::Duration;

use workflow_testkit::Chance;

/// The correlation keys that runs share.
pub(crate) const KEYS: [&str; 4] = ["k0", "k1", "k2", "k3"];
/// The step at which every run succeeds, if it gets there.
const LAST_STEP: u32 = 5;

/// One step.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    /// Waits until the steps before it are durable.
    pub(crate) syncs: bool,
    pub(crate) memo: bool,
    pub(crate) run_memo: bool,
    pub(crate) takes: Duration,
    /// So many attempts fail.
    pub(crate) failures: u32,
    pub(crate) then: Then,
    pub(crate) has_large_payload: bool,
}

/// What comes of a step.
#[derive(Clone, Debug)]
pub(crate) enum Then {
    GoOn,
    GoOnAfter(Duration),
    Wait {
        keys: Vec<String>,
        timeout: Duration,
    },
    Succeed,
    Fail,
    Cancel,
    /// An error that no attempt mends; another payload does.
    Break,
    Panic,
    /// The process dies, at every attempt.
    Kill,
    /// The step does not return before its time is up.
    Hang,
}

impl Script {
    /// Step `step` of the runs whose header says `script`.
    pub(crate) fn of(script: u64, step: u32) -> Self {
        let mut chance = Chance::of(script.wrapping_add(u64::from(step).wrapping_mul(0x1_0000_0001)));
        let drawn = Self {
            syncs: chance.below(3) == 0,
            memo: chance.below(2) == 0,
            run_memo: chance.below(6) == 0,
            takes: takes(&mut chance),
            failures: if chance.below(6) == 0 { 1 + chance.below(3) as u32 } else { 0 },
            then: if step == LAST_STEP { Then::Succeed } else { Then::draw(&mut chance) },
            has_large_payload: chance.below(8) == 0,
        };
        if script.is_multiple_of(4) { drawn.hurried() } else { drawn }
    }

    /// The same without anything that takes time, so that what can run ahead does.
    fn hurried(self) -> Self {
        let then = if matches!(self.then, Then::GoOnAfter(_) | Then::Wait { .. }) { Then::GoOn } else { self.then };
        let (syncs, memo, run_memo, has_large_payload) = (false, false, false, false);
        Self { syncs, memo, run_memo, takes: Duration::ZERO, failures: 0, then, has_large_payload }
    }
}

fn takes(chance: &mut Chance) -> Duration {
    Duration::from_millis(match chance.below(12) {
        0 => 4_000,
        1..=4 => chance.below(1_000),
        _ => 0,
    })
}

impl Then {
    fn draw(chance: &mut Chance) -> Self {
        match chance.below(40) {
            0..=13 => Self::GoOn,
            14..=18 => Self::GoOnAfter(Duration::from_millis(chance.below(8_000))),
            19..=28 => Self::wait(chance),
            29..=32 => Self::Succeed,
            33 | 34 => Self::Fail,
            35 => Self::Cancel,
            36 => Self::Break,
            37 => Self::Panic,
            38 => Self::Hang,
            _ if chance.below(2) == 0 => Self::Kill,
            _ => Self::GoOn,
        }
    }

    fn wait(chance: &mut Chance) -> Self {
        let first = chance.below(KEYS.len() as u64) as usize;
        let count = 1 + chance.below(4) as usize / 3;
        let keys = KEYS.iter().cycle().skip(first).take(count).map(|key| (*key).to_owned()).collect();
        let timeout = match chance.below(3) {
            0 => Duration::MAX,
            _ => Duration::from_millis(chance.below(15_000)),
        };
        Self::Wait { keys, timeout }
    }
}
