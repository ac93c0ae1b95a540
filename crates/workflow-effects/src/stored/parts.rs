//! What several records are made of.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use workflow_core::{
    Attempts, CorrelationKey, ObjectRef, ParseCorrelationKeyError, Phase, Signal, SignalId, Status, Timestamp, Value,
};

#[derive(Serialize, Deserialize)]
pub(super) enum ValueV1 {
    Inline(Bytes),
    Object { path: String, len: u64 },
}

impl From<&Value> for ValueV1 {
    fn from(value: &Value) -> Self {
        match value {
            Value::Inline(bytes) => Self::Inline(bytes.clone()),
            Value::Object(object) => Self::Object { path: object.path.clone(), len: object.len },
        }
    }
}

impl From<ValueV1> for Value {
    fn from(value: ValueV1) -> Self {
        match value {
            ValueV1::Inline(bytes) => Self::Inline(bytes),
            ValueV1::Object { path, len } => Self::Object(ObjectRef { path, len }),
        }
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct AttemptsV1 {
    used: u32,
    base: u32,
    lost: u32,
    parked: bool,
}

impl From<Attempts> for AttemptsV1 {
    fn from(attempts: Attempts) -> Self {
        let Attempts { used, base, lost, parked } = attempts;
        Self { used, base, lost, parked }
    }
}

impl From<AttemptsV1> for Attempts {
    fn from(attempts: AttemptsV1) -> Self {
        let AttemptsV1 { used, base, lost, parked } = attempts;
        Self { used, base, lost, parked }
    }
}

#[derive(Serialize, Deserialize)]
pub(super) enum StatusV1 {
    Succeeded,
    Failed,
    Cancelled,
}

impl From<Status> for StatusV1 {
    fn from(status: Status) -> Self {
        match status {
            Status::Succeeded => Self::Succeeded,
            Status::Failed => Self::Failed,
            Status::Cancelled => Self::Cancelled,
        }
    }
}

impl From<StatusV1> for Status {
    fn from(status: StatusV1) -> Self {
        match status {
            StatusV1::Succeeded => Self::Succeeded,
            StatusV1::Failed => Self::Failed,
            StatusV1::Cancelled => Self::Cancelled,
        }
    }
}

/// Milliseconds since the epoch.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct MillisV1(u64);

impl From<Timestamp> for MillisV1 {
    fn from(time: Timestamp) -> Self {
        Self(time.as_millis())
    }
}

impl From<MillisV1> for Timestamp {
    fn from(millis: MillisV1) -> Self {
        Self::from_millis(millis.0)
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct SignalV1 {
    id: u128,
    key: String,
    payload: ValueV1,
}

impl From<&Signal> for SignalV1 {
    fn from(signal: &Signal) -> Self {
        let Signal { id, key, payload } = signal;
        Self { id: id.value(), key: key.to_string(), payload: payload.into() }
    }
}

impl TryFrom<SignalV1> for Signal {
    type Error = ParseCorrelationKeyError;

    fn try_from(signal: SignalV1) -> Result<Self, Self::Error> {
        let SignalV1 { id, key, payload } = signal;
        Ok(Self { id: SignalId::new(id), key: CorrelationKey::parse(key)?, payload: payload.into() })
    }
}

#[derive(Serialize, Deserialize)]
pub(super) enum PhaseV1 {
    Ready,
    BackingOff { until: MillisV1 },
    Delayed { until: MillisV1 },
    Waiting { keys: Vec<String>, until: Option<MillisV1> },
}

impl From<&Phase> for PhaseV1 {
    fn from(phase: &Phase) -> Self {
        match phase {
            Phase::Ready => Self::Ready,
            Phase::BackingOff { until } => Self::BackingOff { until: (*until).into() },
            Phase::Delayed { until } => Self::Delayed { until: (*until).into() },
            Phase::Waiting { keys, until } => {
                Self::Waiting { keys: keys.iter().map(ToString::to_string).collect(), until: until.map(Into::into) }
            }
        }
    }
}

impl TryFrom<PhaseV1> for Phase {
    type Error = ParseCorrelationKeyError;

    fn try_from(phase: PhaseV1) -> Result<Self, Self::Error> {
        Ok(match phase {
            PhaseV1::Ready => Self::Ready,
            PhaseV1::BackingOff { until } => Self::BackingOff { until: until.into() },
            PhaseV1::Delayed { until } => Self::Delayed { until: until.into() },
            PhaseV1::Waiting { keys, until } => Self::Waiting {
                keys: keys.into_iter().map(CorrelationKey::parse).collect::<Result<_, _>>()?,
                until: until.map(Into::into),
            },
        })
    }
}
