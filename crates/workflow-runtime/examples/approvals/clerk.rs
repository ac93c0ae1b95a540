//! Closes the orders whose runs did not do it themselves: they were stopped from outside, or failed by an error.

use workflow_runtime::{KvReadHandle, RunOutcome, StepError, TerminalEffects, TerminalHook, TerminalStatus};

use crate::ledger::{Entry, decode, order_key};

/// Told of every end that a step may not have written down.
pub(crate) struct Clerk {
    kv: KvReadHandle,
}

impl Clerk {
    pub(crate) fn new(kv: KvReadHandle) -> Self {
        Self { kv }
    }
}

impl TerminalHook for Clerk {
    async fn on_termination(&self, outcome: &RunOutcome, effects: &TerminalEffects) -> Result<(), StepError> {
        // The run of an order has its id.
        let Some(row) = self.kv.get(order_key(&outcome.run_id).as_bytes()).await? else { return Ok(()) };
        let mut entry: Entry = decode(&row)?;
        if entry.state.is_open() {
            entry.close_with(outcome);
            entry.stage_in_hook(effects)?;
        }
        Ok(())
    }

    fn observes(&self, outcome: &RunOutcome) -> bool {
        // A success always comes with its rows.
        outcome.status != TerminalStatus::Succeeded
    }
}

#[cfg(test)]
mod tests {
    use workflow_runtime::{KvReadHandle, RunOutcome, TerminalEffects, TerminalHook, TerminalStatus};

    use super::Clerk;
    use crate::ledger::{Entry, State, decode, encode};
    use crate::order::Draft;

    async fn check(state: State, status: TerminalStatus, expected: Option<State>) {
        let draft = Draft { id: "po-1".into(), item: "lamp".into(), amount: "7".into(), ..Draft::default() };
        let order = Draft { requester: "Ada".into(), ..draft }.parse().unwrap();
        let entry = Entry { state, ..Entry::new(order, 17) };
        let clerk = Clerk::new(KvReadHandle::detached_with([("order/po-1", encode(&entry))]));
        let effects = TerminalEffects::detached();
        let mut outcome = RunOutcome::detached("po-1", status);
        outcome.error = Some("why".to_owned());
        clerk.on_termination(&outcome, &effects).await.unwrap();
        let staged = effects.staged();
        let closed: Option<Entry> = staged.puts.get(&b"order/po-1"[..]).map(|row| decode(row).unwrap());
        assert_eq!(closed.as_ref().map(|entry| entry.state), expected);
        assert_eq!(staged.deletes.contains(&b"open/0000000000017/po-1"[..]), expected.is_some());
        assert_eq!(closed.and_then(|entry| entry.reason).as_deref(), expected.map(|_| "why"));
    }

    #[tokio::test]
    async fn what_was_ended_from_outside_is_closed_and_what_is_closed_stays_as_it_is() {
        check(State::Asked, TerminalStatus::Cancelled, Some(State::Stopped)).await;
        check(State::Approved, TerminalStatus::Failed, Some(State::Failed)).await;
        check(State::Withdrawn, TerminalStatus::Cancelled, None).await;
        check(State::Expired, TerminalStatus::Failed, None).await;
    }
}
