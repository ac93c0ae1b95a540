//! O7: what is over costs nothing.

use super::{Broken, Invariant, Now};
use crate::simulation::committed::Landed;
use crate::simulation::event::Event;

const NAME: &str = "O7 bounded";
/// The keys that one commit writes: a sweep's are the most.
const MAX_KEYS: usize = 1_100;
/// The reads and writes of a minute in which there is nothing to do: two loops look for priorities once a second.
const MAX_IDLE_REQUESTS: u64 = 150;

pub(super) struct Bounded;

impl Invariant for Bounded {
    fn landed(&mut self, landed: &Landed, _: &Now<'_>) -> Result<(), Broken> {
        match landed.changes.len() {
            keys if keys > MAX_KEYS => Err(Broken::new(NAME, None, format!("one commit writes {keys} keys"))),
            _ => Ok(()),
        }
    }

    fn told(&mut self, event: &Event, _: &Now<'_>) -> Result<(), Broken> {
        match event {
            Event::Idle { requests } if *requests > MAX_IDLE_REQUESTS => {
                let what = format!("a minute in which there is nothing to do takes {requests} reads and writes");
                Err(Broken::new(NAME, None, what))
            }
            _ => Ok(()),
        }
    }
}
