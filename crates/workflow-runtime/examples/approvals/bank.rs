//! Stands for a payment provider: an account that is not ours, where a second call would move the money again.

use workflow_runtime::StepError;

use crate::amount::Amount;
use crate::ledger::Payment;

/// Moves the money, and gives a receipt that no other transfer has.
///
/// A real provider is called over the network and knows a repetition by `_idempotency_key`: the one gap that a memo
/// cannot close is a crash after the transfer and before the memo is stored.
pub(crate) async fn transfer(_idempotency_key: &str, amount: Amount) -> Result<Payment, StepError> {
    Ok(Payment { receipt: format!("r-{:016x}", rand::random::<u64>()), amount })
}
