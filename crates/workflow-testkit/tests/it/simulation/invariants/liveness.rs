//! O3: once faults have stopped, every run ends, or waits for somebody.

use workflow_core::{ActiveRun, Phase};
use workflow_runtime::ViolationKind;

use super::{Broken, Invariant, Now, found};
use crate::simulation::committed::{Landed, run_text};
use crate::simulation::event::{Event, Process};

const NAME: &str = "O3 liveness";
/// Steps that kill their processes use up their attempts: so many deaths are enough for all of them.
const MAX_DEATHS: u32 = 150;

/// Looks at the store once everything should have settled.
#[derive(Default)]
pub(super) struct Liveness {
    is_calm: bool,
    deaths: u32,
}

/// Whether the run goes on by itself.
pub(crate) fn goes_on(run: &ActiveRun) -> bool {
    run.needs_doorbell()
}

impl Invariant for Liveness {
    fn landed(&mut self, _: &Landed, _: &Now<'_>) -> Result<(), Broken> {
        Ok(())
    }

    fn told(&mut self, event: &Event, now: &Now<'_>) -> Result<(), Broken> {
        found(NAME, ViolationKind::Stuck, event)?;
        let stuck = match event {
            Event::Calm => {
                self.is_calm = true;
                None
            }
            Event::Process(Process::Dies | Process::Killed) if self.is_calm => {
                self.deaths += 1;
                now.store.active().find(|(_, run)| self.deaths > MAX_DEATHS && goes_on(run))
            }
            Event::Settled => now.store.active().find(|(_, run)| goes_on(run)),
            Event::Closed => now.store.active().next(),
            _ => None,
        };
        match stuck {
            Some((run_id, run)) => {
                let waits = if matches!(run.phase, Phase::Waiting { .. }) {
                    "its wait does not end"
                } else {
                    "it goes nowhere"
                };
                let text = run_text(&workflow_core::Run::Active(run.clone()));
                Err(Broken::new(NAME, Some(run_id), format!("{waits}, long after the last fault: {text}")))
            }
            None => Ok(()),
        }
    }
}
