//! The outcomes of calls, as answers.

use workflow_runtime::{CancelOutcome, PauseOutcome, RedriveOutcome, ResumeOutcome, SignalOutcome};

use crate::simulation::answer::{Answer, End};

pub(super) fn signalled(outcome: SignalOutcome) -> Answer {
    match outcome {
        SignalOutcome::Delivered => Answer::Delivered,
        SignalOutcome::Buffered => Answer::Buffered,
        SignalOutcome::Duplicate => Answer::Duplicate,
        other => unreachable!("{other:?}"),
    }
}

pub(super) fn cancelled(outcome: CancelOutcome) -> Answer {
    match outcome {
        CancelOutcome::Ended => Answer::Ended,
        CancelOutcome::Requested => Answer::Requested,
        CancelOutcome::AlreadyEnded(end) => Answer::Over(End::of(&end)),
        CancelOutcome::NotFound => Answer::Nothing,
        other => unreachable!("{other:?}"),
    }
}

pub(super) fn paused(outcome: PauseOutcome) -> Answer {
    match outcome {
        PauseOutcome::Paused => Answer::Paused,
        PauseOutcome::Finishing => Answer::Finishing,
        PauseOutcome::AlreadyEnded(end) => Answer::Over(End::of(&end)),
        PauseOutcome::NotFound => Answer::Nothing,
        other => unreachable!("{other:?}"),
    }
}

pub(super) fn resumed(outcome: ResumeOutcome) -> Answer {
    match outcome {
        ResumeOutcome::Resumed => Answer::Resumed,
        ResumeOutcome::NotPaused => Answer::NotPaused,
        ResumeOutcome::AlreadyEnded(end) => Answer::Over(End::of(&end)),
        ResumeOutcome::NotFound => Answer::Nothing,
        other => unreachable!("{other:?}"),
    }
}

pub(super) fn redriven(outcome: RedriveOutcome) -> Answer {
    match outcome {
        RedriveOutcome::Redriven => Answer::Redriven,
        RedriveOutcome::Active => Answer::Active,
        RedriveOutcome::Succeeded(end) => Answer::Over(End::of(&end)),
        RedriveOutcome::NotFound => Answer::Nothing,
        other => unreachable!("{other:?}"),
    }
}
