//! The workflow: a room is reserved, then a seat. Then the traveller is asked, and has a day to answer. Whatever is
//! reserved and not wanted, or cannot be completed, is given back.

use std::time::Duration;

use workflow_runtime::{Step, StepError, StepOutcome, StepRunner};

use crate::fakes::Partner;

const DAY: Duration = Duration::from_secs(24 * 3_600);

/// Books trips.
pub(crate) struct Booking {
    pub(crate) hotel: Partner,
    pub(crate) airline: Partner,
    pub(crate) mail: Partner,
}

/// What a step does. The payload names it.
const ROOM: &[u8] = b"room";
const SEAT: &[u8] = b"seat";
const ASK: &[u8] = b"ask";
const ANSWERED: &[u8] = b"answered";
/// Gives back what is reserved; the reason follows.
const GIVE_BACK: &[u8] = b"give back: ";

impl StepRunner for Booking {
    async fn run_step(&self, step: &Step) -> Result<StepOutcome, StepError> {
        match &step.payload[..] {
            ROOM => self.reserve(step, "room", &self.hotel, SEAT).await,
            SEAT => self.reserve(step, "seat", &self.airline, ASK).await,
            ASK => self.ask(step).await,
            ANSWERED => self.answered(step).await,
            payload => match payload.strip_prefix(GIVE_BACK) {
                Some(reason) => self.give_back(step, &String::from_utf8_lossy(reason)).await,
                None => Err(StepError::permanent("no such step")),
            },
        }
    }
}

impl Booking {
    /// Reserves something, and goes on; if there is none left, gives back what is reserved before.
    async fn reserve(&self, step: &Step, what: &str, of: &Partner, next: &[u8]) -> Result<StepOutcome, StepError> {
        let key = format!("{}-{what}", step.run_id);
        let is_reserved: bool = step.memo.memoized("reserved", of.reserve(&key, what)).await?;
        if !is_reserved {
            return Ok(gives_back(&format!("no {what} is left")));
        }
        step.effects.put(format!("{what}/{}", step.run_id), key)?;
        Ok(StepOutcome::continue_now(next.to_vec()))
    }

    async fn ask(&self, step: &Step) -> Result<StepOutcome, StepError> {
        self.mail.mail(&format!("{}-ask", step.run_id), "is this your trip?").await;
        Ok(StepOutcome::continue_on_signal(ANSWERED.to_vec(), answer_key(&step.run_id), DAY))
    }

    async fn answered(&self, step: &Step) -> Result<StepOutcome, StepError> {
        match step.signal.as_deref() {
            Some(b"yes") => {
                self.mail.mail(&format!("{}-booked", step.run_id), "have a good trip").await;
                Ok(StepOutcome::Succeed { result: b"booked".to_vec() })
            }
            Some(_) => Ok(gives_back("the traveller declined")),
            None => Ok(gives_back("the traveller did not answer")),
        }
    }

    /// Gives back the seat and the room, if there are any, and ends the run.
    async fn give_back(&self, step: &Step, reason: &str) -> Result<StepOutcome, StepError> {
        for (what, of) in [("seat", &self.airline), ("room", &self.hotel)] {
            let row = format!("{what}/{}", step.run_id);
            if let Some(key) = step.kv.get(row.as_bytes()).await? {
                of.give_back(&String::from_utf8_lossy(&key), what).await;
                step.effects.delete(row)?;
            }
        }
        Ok(StepOutcome::Cancel { reason: reason.to_owned() })
    }
}

fn gives_back(reason: &str) -> StepOutcome {
    StepOutcome::continue_now([GIVE_BACK, reason.as_bytes()].concat())
}

/// The correlation key on which the traveller answers.
pub(crate) fn answer_key(run_id: &str) -> String {
    format!("answer/{run_id}")
}
