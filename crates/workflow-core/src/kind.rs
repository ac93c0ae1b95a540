//! The kinds of event and the phases of runs by name, as the decision table, and whoever asks what of it was exercised,
//! call them.

use std::fmt;

use crate::{ActiveRun, EndedRun, Event, Phase, Run, Status, Timestamp};

/// An enum whose variants have a name each, and a list of all of them.
macro_rules! named {
    ($(#[$doc:meta])* $enum:ident, $count:literal { $($(#[$of:meta])* $variant:ident: $name:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $enum {
            $($(#[$of])* $variant,)*
        }

        impl $enum {
            /// All of them, in the order of the table.
            pub const ALL: [Self; $count] = [$(Self::$variant,)*];

            /// What the table calls it.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }

        impl fmt::Display for $enum {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

named! {
    /// The kind of an [`Event`].
    EventKind, 13 {
        /// See [`Event::Submitted`].
        Submitted: "Submitted",
        /// See [`Event::Claimed`].
        Claimed: "Claimed",
        /// See [`Event::TurnCame`].
        TurnCame: "TurnCame",
        /// See [`Event::StepReturned`].
        StepReturned: "StepReturned",
        /// See [`Event::StepFailed`].
        StepFailed: "StepFailed",
        /// See [`Event::HandedBack`].
        HandedBack: "HandedBack",
        /// See [`Event::Signalled`].
        Signalled: "Signalled",
        /// See [`Event::CancelRequested`].
        CancelRequested: "CancelRequested",
        /// See [`Event::CancelGraceOver`].
        CancelGraceOver: "CancelGraceOver",
        /// See [`Event::PauseRequested`].
        PauseRequested: "PauseRequested",
        /// See [`Event::Resumed`].
        Resumed: "Resumed",
        /// See [`Event::RedriveRequested`].
        RedriveRequested: "RedriveRequested",
        /// See [`Event::DoorbellMissed`].
        DoorbellMissed: "DoorbellMissed",
    }
}

named! {
    /// What a run is in, as far as the table tells it apart: a [`Phase`], whether its time has come, and what else decides.
    PhaseKind, 27 {
        /// Never submitted.
        Absent: "absent",
        /// A step may start.
        Ready: "ready",
        /// A failed attempt is followed by another, later.
        BackingOffEarly: "backing off, early",
        /// A failed attempt may be followed by another.
        BackingOffDue: "backing off, due",
        /// A step may start later.
        DelayedEarly: "delayed, early",
        /// A step that had to wait for its time may start.
        DelayedDue: "delayed, due",
        /// A suspect waits for its turn.
        Parked: "parked",
        /// A step may start with the signal that ended the wait before it.
        Signalled: "signalled",
        /// It waits for a signal, for a while.
        WaitingEarly: "waiting, early",
        /// Its wait for a signal is over.
        WaitingDue: "waiting, due",
        /// It waits for a signal.
        WaitingWithoutEnd: "waiting without end",
        /// Somebody asked for the end of the run while a step was in hand.
        ToBeCancelled: "to be cancelled",
        /// As [`Ready`](Self::Ready), and the run is paused.
        PausedReady: "paused, ready",
        /// As [`BackingOffEarly`](Self::BackingOffEarly) or [`BackingOffDue`](Self::BackingOffDue), and paused.
        PausedBackingOff: "paused, backing off",
        /// As [`DelayedEarly`](Self::DelayedEarly) or [`DelayedDue`](Self::DelayedDue), and paused.
        PausedDelayed: "paused, delayed",
        /// As [`Parked`](Self::Parked), and paused.
        PausedParked: "paused, parked",
        /// As [`Signalled`](Self::Signalled), and paused.
        PausedSignalled: "paused, signalled",
        /// As [`WaitingEarly`](Self::WaitingEarly), and paused.
        PausedWaitingEarly: "paused, waiting, early",
        /// As [`WaitingDue`](Self::WaitingDue), and paused.
        PausedWaitingDue: "paused, waiting, due",
        /// As [`WaitingWithoutEnd`](Self::WaitingWithoutEnd), and paused.
        PausedWaitingWithoutEnd: "paused, waiting without end",
        /// As [`ToBeCancelled`](Self::ToBeCancelled), and paused.
        PausedToBeCancelled: "paused, to be cancelled",
        /// It has ended with a result.
        Succeeded: "succeeded",
        /// The runner has ended it with an error.
        Failed: "failed",
        /// Errors have ended it.
        DeadLetter: "dead letter",
        /// It was cancelled, or gave up, when a step could start or was in hand.
        CancelledReady: "cancelled ready",
        /// It was cancelled while it waited for a signal.
        CancelledWaiting: "cancelled waiting",
        /// It was cancelled while it waited for its time.
        CancelledDelayed: "cancelled delayed",
    }
}

impl EventKind {
    /// Whether such an event is left over from something settled, whatever it says, when it comes to a run in `phase`:
    /// nothing but to discard it was ever right there.
    pub fn is_left_over(self, phase: PhaseKind) -> bool {
        let has_begun = || !PhaseKind::ENDED.contains(&phase) && !phase.waits();
        match self {
            // Nothing that is delivered.
            Self::Submitted
            | Self::Signalled
            | Self::CancelRequested
            | Self::PauseRequested
            | Self::Resumed
            | Self::RedriveRequested
            | Self::DoorbellMissed => false,
            // A run without a record has no current doorbell and no attempt.
            _ if phase == PhaseKind::Absent => true,
            // A wait without an end has no doorbell. An end is committed; only a dead letter's doorbell has its settlement
            // left to repeat, or rings anew.
            Self::Claimed => match phase {
                PhaseKind::WaitingWithoutEnd | PhaseKind::PausedWaitingWithoutEnd => true,
                _ => PhaseKind::ENDED.contains(&phase) && phase != PhaseKind::DeadLetter,
            },
            // Only a run that is to be cancelled has a token that fired.
            Self::CancelGraceOver => !matches!(phase, PhaseKind::ToBeCancelled | PhaseKind::PausedToBeCancelled),
            // A step begins once its wait is resolved.
            Self::TurnCame | Self::StepReturned | Self::StepFailed | Self::HandedBack => !has_begun(),
        }
    }
}

impl PhaseKind {
    /// The phases of a step that may start, at once or later.
    pub const STARTABLE: &[Self] = &[
        Self::Ready,
        Self::BackingOffEarly,
        Self::BackingOffDue,
        Self::DelayedEarly,
        Self::DelayedDue,
        Self::Parked,
        Self::Signalled,
    ];

    /// Those of a step that might if its run were not paused.
    pub const PAUSED_STARTABLE: &[Self] =
        &[Self::PausedReady, Self::PausedBackingOff, Self::PausedDelayed, Self::PausedParked, Self::PausedSignalled];

    /// The phases of a step that waits for a signal.
    pub const WAITING: &[Self] = &[Self::WaitingEarly, Self::WaitingDue, Self::WaitingWithoutEnd];

    /// Those of one whose run is paused.
    pub const PAUSED_WAITING: &[Self] =
        &[Self::PausedWaitingEarly, Self::PausedWaitingDue, Self::PausedWaitingWithoutEnd];

    /// The phases of a run that is paused.
    pub const PAUSED: &[Self] = &[
        Self::PausedReady,
        Self::PausedBackingOff,
        Self::PausedDelayed,
        Self::PausedParked,
        Self::PausedSignalled,
        Self::PausedWaitingEarly,
        Self::PausedWaitingDue,
        Self::PausedWaitingWithoutEnd,
        Self::PausedToBeCancelled,
    ];

    /// The phases of a run that goes on, paused or not.
    pub const ACTIVE: &[Self] = &[
        Self::Ready,
        Self::BackingOffEarly,
        Self::BackingOffDue,
        Self::DelayedEarly,
        Self::DelayedDue,
        Self::Parked,
        Self::Signalled,
        Self::WaitingEarly,
        Self::WaitingDue,
        Self::WaitingWithoutEnd,
        Self::ToBeCancelled,
        Self::PausedReady,
        Self::PausedBackingOff,
        Self::PausedDelayed,
        Self::PausedParked,
        Self::PausedSignalled,
        Self::PausedWaitingEarly,
        Self::PausedWaitingDue,
        Self::PausedWaitingWithoutEnd,
        Self::PausedToBeCancelled,
    ];

    /// The ends of a run.
    pub const ENDED: &[Self] = &[
        Self::Succeeded,
        Self::Failed,
        Self::DeadLetter,
        Self::CancelledReady,
        Self::CancelledWaiting,
        Self::CancelledDelayed,
    ];

    /// The ends of a run that was cancelled.
    pub const CANCELLED: &[Self] = &[Self::CancelledReady, Self::CancelledWaiting, Self::CancelledDelayed];

    /// Phases that the table calls by one name where they are decided alike, the largest first.
    pub const TOGETHER: &[(&str, &[Self])] = &[
        ("any", &Self::ALL),
        ("any active", Self::ACTIVE),
        ("paused, any", Self::PAUSED),
        ("any end", Self::ENDED),
        ("startable", Self::STARTABLE),
        ("paused, startable", Self::PAUSED_STARTABLE),
        ("waiting", Self::WAITING),
        ("paused, waiting", Self::PAUSED_WAITING),
        ("cancelled", Self::CANCELLED),
    ];

    /// The phases that the table calls by `name`: one of them, or several [together](Self::TOGETHER).
    pub fn named(name: &str) -> Option<&'static [Self]> {
        let together = Self::TOGETHER.iter().find(|(together, _)| *together == name).map(|(_, phases)| *phases);
        together.or_else(|| Self::ALL.iter().position(|phase| phase.name() == name).map(|at| &PHASES[at..=at]))
    }

    fn waits(self) -> bool {
        Self::WAITING.contains(&self) || Self::PAUSED_WAITING.contains(&self)
    }
}

/// All phases, to lend some of.
const PHASES: &[PhaseKind] = &PhaseKind::ALL;

impl Event {
    /// Which kind of event it is.
    pub fn kind(&self) -> EventKind {
        match self {
            Self::Submitted(_) => EventKind::Submitted,
            Self::Claimed(_) => EventKind::Claimed,
            Self::TurnCame(_) => EventKind::TurnCame,
            Self::StepReturned(_) => EventKind::StepReturned,
            Self::StepFailed(_) => EventKind::StepFailed,
            Self::HandedBack(_) => EventKind::HandedBack,
            Self::Signalled(_) => EventKind::Signalled,
            Self::CancelRequested(_) => EventKind::CancelRequested,
            Self::CancelGraceOver(_) => EventKind::CancelGraceOver,
            Self::PauseRequested(_) => EventKind::PauseRequested,
            Self::Resumed(_) => EventKind::Resumed,
            Self::RedriveRequested(_) => EventKind::RedriveRequested,
            Self::DoorbellMissed(_) => EventKind::DoorbellMissed,
        }
    }
}

impl Run {
    /// What the run is in at `now`.
    pub fn phase_kind(&self, now: Timestamp) -> PhaseKind {
        match self {
            Self::Absent => PhaseKind::Absent,
            Self::Active(run) if run.paused => paused(run, now),
            Self::Active(run) => unpaused(run, now),
            Self::Ended(run) => ended(run),
        }
    }
}

fn unpaused(run: &ActiveRun, now: Timestamp) -> PhaseKind {
    let is_early = |until| until > now;
    match run.phase {
        _ if run.cancel.is_some() => PhaseKind::ToBeCancelled,
        Phase::BackingOff { until } if is_early(until) => PhaseKind::BackingOffEarly,
        Phase::BackingOff { .. } => PhaseKind::BackingOffDue,
        Phase::Delayed { until } if is_early(until) => PhaseKind::DelayedEarly,
        Phase::Delayed { .. } => PhaseKind::DelayedDue,
        Phase::Waiting { until: Some(until), .. } if is_early(until) => PhaseKind::WaitingEarly,
        Phase::Waiting { until: Some(_), .. } => PhaseKind::WaitingDue,
        Phase::Waiting { until: None, .. } => PhaseKind::WaitingWithoutEnd,
        Phase::Ready if run.attempts.parked => PhaseKind::Parked,
        Phase::Ready if run.signal.is_some() => PhaseKind::Signalled,
        Phase::Ready => PhaseKind::Ready,
    }
}

fn paused(run: &ActiveRun, now: Timestamp) -> PhaseKind {
    match unpaused(run, now) {
        PhaseKind::BackingOffEarly | PhaseKind::BackingOffDue => PhaseKind::PausedBackingOff,
        PhaseKind::DelayedEarly | PhaseKind::DelayedDue => PhaseKind::PausedDelayed,
        PhaseKind::WaitingEarly => PhaseKind::PausedWaitingEarly,
        PhaseKind::WaitingDue => PhaseKind::PausedWaitingDue,
        PhaseKind::WaitingWithoutEnd => PhaseKind::PausedWaitingWithoutEnd,
        PhaseKind::ToBeCancelled => PhaseKind::PausedToBeCancelled,
        PhaseKind::Parked => PhaseKind::PausedParked,
        PhaseKind::Signalled => PhaseKind::PausedSignalled,
        _ => PhaseKind::PausedReady,
    }
}

fn ended(run: &EndedRun) -> PhaseKind {
    match (run.status, run.remains.as_ref().map(|remains| &remains.phase)) {
        (Status::Succeeded, _) => PhaseKind::Succeeded,
        (Status::Failed, _) if run.dead_letter => PhaseKind::DeadLetter,
        (Status::Failed, _) => PhaseKind::Failed,
        (Status::Cancelled, Some(Phase::Waiting { .. })) => PhaseKind::CancelledWaiting,
        (Status::Cancelled, Some(Phase::Delayed { .. })) => PhaseKind::CancelledDelayed,
        (Status::Cancelled, Some(Phase::Ready | Phase::BackingOff { .. }) | None) => PhaseKind::CancelledReady,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_are_found_by_name() {
        for phase in PhaseKind::ALL {
            assert_eq!(PhaseKind::named(&phase.to_string()), Some(&[phase][..]));
        }
        for (name, phases) in PhaseKind::TOGETHER {
            assert_eq!(PhaseKind::named(name), Some(*phases));
            assert!(PhaseKind::ALL.iter().all(|phase| phase.name() != *name), "{name} is two things");
        }
        assert_eq!(PhaseKind::named("nowhere"), None);
    }

    #[test]
    fn a_name_is_padded_like_any_text() {
        assert_eq!(format!("{:>8}|{:<6}", EventKind::Claimed, PhaseKind::Ready), " Claimed|ready ");
    }
}
