//! Decisions in few words, for the cells of the tables.

use workflow_core::{Action, ActiveRun, Attempts, CorrelationKey, Effect, EndedRun, Phase, Run, Timestamp, Value};

use super::fixtures::NOW;

/// One table: its head and its rows, as Markdown.
pub(crate) fn table(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let head_line = line(head.iter().map(ToString::to_string).collect());
    let rule = line(head.iter().map(|_| "---".to_owned()).collect());
    rows.into_iter().map(line).fold(head_line + &rule, |text, row| text + &row)
}

pub(crate) fn action(action: Action) -> String {
    match action {
        Action::Execute { attempt } => format!("`Execute` {attempt}"),
        Action::Replay => "`Replay`".to_owned(),
        Action::Park => "`Park`".to_owned(),
        Action::Advance => "`Advance`".to_owned(),
        Action::Ack => "`Ack`".to_owned(),
        Action::DeadLetter => "`DeadLetter`".to_owned(),
        Action::Discard => "`Discard`".to_owned(),
        Action::None => "`None`".to_owned(),
    }
}

pub(crate) fn effects(effects: &[Effect]) -> String {
    let effects: Vec<String> = effects.iter().map(effect).collect();
    if effects.is_empty() { "–".to_owned() } else { effects.join(", ") }
}

fn effect(effect: &Effect) -> String {
    match effect {
        Effect::RecordSubmission => "record submission".to_owned(),
        Effect::EnqueueStep { job, due: None } => format!("ring *{job}*"),
        Effect::EnqueueStep { job, due: Some(due) } => format!("ring *{job}* {}", time(*due)),
        Effect::ApplyStaged => "apply staged".to_owned(),
        Effect::RecordStep => "record step".to_owned(),
        Effect::NotifyEnd => "notify".to_owned(),
        Effect::RegisterWaiter { keys: all } => format!("wait for {}", keys(all)),
        Effect::FreeWaiter { keys: all } => format!("free {}", keys(all)),
        Effect::TakeSignal { key } => format!("take from *{key}*"),
        Effect::DropDoorbell(job) => format!("drop *{job}*"),
        Effect::ReleaseValue(Value::Inline(bytes)) => format!("release {}", String::from_utf8_lossy(bytes)),
        Effect::ReleaseValue(Value::Object(object)) => format!("release {}", object.path),
    }
}

/// What `next` is, told apart from what the run was.
pub(crate) fn next(run: &Run, next: &Run) -> String {
    match next {
        _ if next == run => "unchanged".to_owned(),
        Run::Absent => "absent".to_owned(),
        Run::Active(active) => {
            let before = match run {
                Run::Absent | Run::Ended(_) => None,
                Run::Active(before) => Some(before),
            };
            let phase = phase(before, active);
            let step = format!("step {}, {phase}, {}, job *{}*", active.step, attempts(active.attempts), active.job);
            let held = [signal(before, active), cancel(before, active), paused(before, active)];
            [Some(step), redrive(before, active)].into_iter().chain(held).flatten().collect()
        }
        Run::Ended(ended) => end(ended),
    }
}

fn phase(before: Option<&ActiveRun>, active: &ActiveRun) -> String {
    match &active.phase {
        phase if before.is_some_and(|before| before.phase == *phase) => "same phase".to_owned(),
        Phase::Ready => "ready".to_owned(),
        Phase::BackingOff { until } => format!("backing off until {}", time(*until)),
        Phase::Delayed { until } => format!("delayed until {}", time(*until)),
        Phase::Waiting { keys: all, until: None } => format!("waiting for {}", keys(all)),
        Phase::Waiting { keys: all, until: Some(until) } => format!("waiting for {} until {}", keys(all), time(*until)),
    }
}

/// How often the run was brought back, when it just was.
fn redrive(before: Option<&ActiveRun>, active: &ActiveRun) -> Option<String> {
    let is_new = before.is_none() && active.redrive > 0;
    is_new.then(|| format!(", redrive {}", active.redrive))
}

/// Whether the run is paused, unless it was or was not before.
fn paused(before: Option<&ActiveRun>, active: &ActiveRun) -> Option<String> {
    let is_new = before.is_some_and(|before| before.paused != active.paused);
    is_new.then(|| if active.paused { ", paused" } else { ", not paused" }.to_owned())
}

/// The signal, unless the same step had it before.
fn signal(before: Option<&ActiveRun>, active: &ActiveRun) -> Option<String> {
    let is_new = before.is_none_or(|before| before.step != active.step || before.signal != active.signal);
    active.signal.as_ref().filter(|_| is_new).map(|signal| format!(", signal on *{}*", signal.key))
}

/// The request for the end of the run, unless it was there before.
fn cancel(before: Option<&ActiveRun>, active: &ActiveRun) -> Option<String> {
    let is_new = before.is_none_or(|before| before.cancel != active.cancel);
    active.cancel.as_ref().filter(|_| is_new).map(|_| ", to be cancelled".to_owned())
}

fn keys(keys: &[CorrelationKey]) -> String {
    let keys: Vec<String> = keys.iter().map(|key| format!("*{key}*")).collect();
    keys.join(" and ")
}

fn end(ended: &EndedRun) -> String {
    let held = match (&ended.result, &ended.error) {
        (Some(_), _) => "with a result",
        (None, Some(_)) => "with an error",
        (None, None) => "with nothing",
    };
    let letter = if ended.dead_letter { ", dead letter" } else { "" };
    format!("`{:?}` at step {} {held}{letter}", ended.status, ended.final_step)
}

pub(crate) fn attempts(Attempts { used, base, lost, parked }: Attempts) -> String {
    let parked = if parked { " parked" } else { "" };
    format!("{used}/{base}/{lost}{parked}")
}

pub(crate) fn time(time: Timestamp) -> String {
    let (ahead, behind) = (time.since(NOW), NOW.since(time));
    match time {
        Timestamp::NEVER => "never".to_owned(),
        NOW => "now".to_owned(),
        _ if time > NOW => format!("in {ahead:?}"),
        _ => format!("{behind:?} ago"),
    }
}
