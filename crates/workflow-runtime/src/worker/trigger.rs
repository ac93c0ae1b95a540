//! What a runner asks of the start of the next step, checked.

use std::time::Duration;

use workflow_core::{KeyState, MAX_WAIT_KEYS, Timestamp, WaitKey, When};

use crate::Trigger;
use crate::signals::parse_correlation_key;

/// When the next step may start; the limit, where what was asked for is beyond one.
pub(super) fn start_of_next(when: &Trigger, now: Timestamp) -> Result<When, String> {
    match when {
        Trigger::Immediate => Ok(When::Now),
        Trigger::After(delay) => Ok(When::At(now.after(*delay))),
        Trigger::OnSignal { correlation_key, timeout } => {
            wait_for(std::slice::from_ref(correlation_key), *timeout, now)
        }
        Trigger::OnAnySignal { correlation_keys, timeout } => wait_for(correlation_keys, *timeout, now),
    }
}

fn wait_for(keys: &[String], timeout: Duration, now: Timestamp) -> Result<When, String> {
    if keys.is_empty() || keys.len() > MAX_WAIT_KEYS {
        return Err(format!("a wait names 1 to {MAX_WAIT_KEYS} correlation keys, not {}", keys.len()));
    }
    let mut parsed: Vec<WaitKey> = Vec::with_capacity(keys.len());
    for key in keys {
        let key = parse_correlation_key(key).map_err(|error| error.to_string())?;
        if parsed.iter().any(|before| before.key == key) {
            return Err(format!("a wait names correlation key {:?} more than once", key.as_str()));
        }
        parsed.push(WaitKey { key, state: KeyState::Free });
    }
    let until = Some(now.after(timeout)).filter(|until| *until < Timestamp::NEVER);
    Ok(When::OnSignal { keys: parsed, until })
}
