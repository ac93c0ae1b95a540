//! Everything about a runtime that is plain data, with the defaults and the checks.

use std::time::Duration;

use workflow_core::RetryPolicy;
use workflow_effects::MAX_INLINE_LIMIT;

use crate::{Error, HistoryLevel, Result};

/// The longest queue name in bytes.
pub const MAX_QUEUE_NAME_LEN: usize = 200;
/// The suffix of the queue that holds a runtime's terminal notifications.
pub(crate) const NOTIFICATION_SUFFIX: &str = ".notifications";

/// Plain data that a runtime is built from; each field's text ends with its default. The setters of [`WorkflowRuntimeBuilder`](crate::WorkflowRuntimeBuilder)
/// fill one; fields may be added, so write `..Settings::default()`. Durations may be anything up to [`Duration::MAX`].
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Names the runs of this runtime: runtimes of other names never see them. 1 to 200 bytes of `[A-Za-z0-9._-]`,
    /// beginning with a letter or digit, not ending in a dot and digits, nor in `.notifications`. `workflow-steps`.
    pub queue_name: String,
    /// Where large values live in the object store: a relative path without `.` and `..`. `workflow-objects`.
    pub prefix: String,
    /// How many steps execute at the same time, at least 1. 256.
    pub max_concurrent_steps: usize,
    /// How many terminal hooks execute at the same time, at least 1. 32.
    pub max_concurrent_hooks: usize,
    /// How many immediate steps of a run follow each other in one delivery while other runs wait for a slot. 0 sends
    /// every step through the queue. 32.
    pub inline_steps: u32,
    /// How often a step is attempted when its submission does not say, at least 1. 5.
    pub max_attempts_per_step: u32,
    /// The wait before another attempt. 1 s, doubling up to 5 min, with full jitter.
    pub retry_policy: RetryPolicy,
    /// How long a step or hook may take. `None`, the default: as long as it likes, so a step that hangs hangs for ever.
    pub step_timeout: Option<Duration>,
    /// The lease of a delivery, renewed at a third; at least 1 s. 30 s.
    pub lease: Duration,
    /// How long running steps may go on after the shutdown began, before they are handed back. 30 s.
    pub shutdown_grace: Duration,
    /// How long a step may go on after its run was cancelled, before the run ends without it. 30 s.
    pub cancel_grace: Duration,
    /// How many signals wait for a wait on one correlation key at most. 100,000.
    pub signal_limit: u64,
    /// How long a signal is kept that nobody waits for, and an idempotency id remembered. 7 days.
    pub signal_ttl: Duration,
    /// How long a run is kept after its end, and how long its id stays taken. `None`: until it is
    /// [forgotten](crate::WorkflowRuntime::forget). 7 days.
    pub retention: Option<Duration>,
    /// How much is written down of the steps of a run. The step that ended it.
    pub history: HistoryLevel,
    /// When a step starts whose predecessor has just returned. Strict.
    pub commit_mode: CommitMode,
    /// Whether the outcome of a step is written down before the commit that it leads to, so that a step whose commit is
    /// lost with its process is not executed again. Costs another durable commit per step; an outcome with more than
    /// 512 KiB of staged effects is not written down. Not together with pipelined commits. No.
    pub replay: bool,
    /// Whether the loop looks now and then for runs whose queue job an operator has removed, and lets them go on; takes
    /// a few hundredths of one core after the start. Yes.
    pub repair: bool,
    /// How often a failing hook is called, at least 1. 20.
    pub hook_attempts: u32,
    /// Values up to this size are stored in the record, larger ones as objects. At most 64 KiB. 32 KiB.
    pub inline_limit: usize,
    /// The largest payload, result and memo value, in bytes. 64 MiB.
    pub max_value_size: u64,
}

/// When a step of a run starts whose predecessor has just returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CommitMode {
    /// Once the predecessor's commit is durable.
    #[default]
    Strict,
    /// At once, at the speed of memory, while the commits of the steps before are in flight; what waits for a flight to
    /// land commits as one. A crash, a cancel or a pause undoes the last steps, which are then executed again, or never:
    /// right for steps that can be repeated. Before a step does something outside that must not happen on a branch that is
    /// undone, it awaits [`Step::sync`](crate::Step::sync).
    ///
    /// Everything else is as in strict commits: what a call answers is durable, so is a value that a memo has stored, and
    /// hooks are told of committed ends. A wait, a delay, an end, a failed attempt or a payload beyond `inline_limit` lets the steps before it
    /// land first.
    Pipelined,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            queue_name: "workflow-steps".to_owned(),
            prefix: "workflow-objects".to_owned(),
            max_concurrent_steps: 256,
            max_concurrent_hooks: 32,
            inline_steps: 32,
            max_attempts_per_step: 5,
            retry_policy: RetryPolicy::default(),
            step_timeout: None,
            lease: Duration::from_secs(30),
            shutdown_grace: Duration::from_secs(30),
            cancel_grace: Duration::from_secs(30),
            signal_limit: 100_000,
            signal_ttl: Duration::from_secs(7 * 24 * 3600),
            retention: Some(Duration::from_secs(7 * 24 * 3600)),
            history: HistoryLevel::Ends,
            commit_mode: CommitMode::Strict,
            replay: false,
            repair: true,
            hook_attempts: 20,
            inline_limit: 32 * 1024,
            max_value_size: 64 * 1024 * 1024,
        }
    }
}

impl Settings {
    /// Checks every rule that the fields' documentation states.
    ///
    /// # Errors
    ///
    /// [`Error::Misconfigured`] naming the setting.
    pub fn check(&self) -> Result<()> {
        check_queue_name(&self.queue_name)?;
        check_prefix(&self.prefix)?;
        let at_least_one = [
            ("max_concurrent_steps", self.max_concurrent_steps),
            ("max_concurrent_hooks", self.max_concurrent_hooks),
            ("max_attempts_per_step", self.max_attempts_per_step as usize),
            ("hook_attempts", self.hook_attempts as usize),
        ];
        for (name, value) in at_least_one {
            ensure(value >= 1, || format!("{name} must be at least 1"))?;
        }
        ensure(self.max_concurrent_steps <= MAX_SLOTS, || format!("max_concurrent_steps is at most {MAX_SLOTS}"))?;
        ensure(self.max_concurrent_hooks <= MAX_SLOTS, || format!("max_concurrent_hooks is at most {MAX_SLOTS}"))?;
        ensure(self.lease >= Duration::from_secs(1), || "lease must be at least 1 s".to_owned())?;
        ensure(self.inline_limit <= MAX_INLINE_LIMIT, || {
            format!("inline_limit is at most {MAX_INLINE_LIMIT} bytes, not {}", self.inline_limit)
        })?;
        ensure(!self.replay || self.commit_mode == CommitMode::Strict, || {
            "replay writes down every outcome before the next step starts, which pipelined commits do not wait for"
                .to_owned()
        })
    }
}

const MAX_SLOTS: usize = 1 << 20;
const MAX_PREFIX_LEN: usize = 512;
const MAX_PREFIX_PART_LEN: usize = 200;

fn check_queue_name(name: &str) -> Result<()> {
    let misnamed = |rule: &str| Error::Misconfigured(format!("queue_name `{}` {rule}", name.escape_debug()));
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if name.is_empty() || name.len() > MAX_QUEUE_NAME_LEN {
        return Err(misnamed("must have 1 to 200 bytes"));
    }
    if !name.starts_with(|c: char| c.is_ascii_alphanumeric()) || !name.chars().all(plain) {
        return Err(misnamed("must be letters, digits, `.`, `_` and `-`, beginning with a letter or digit"));
    }
    let ends_in_number = name.rsplit_once('.').is_some_and(|(_, end)| end.chars().all(|c| c.is_ascii_digit()));
    if ends_in_number {
        return Err(misnamed("ends in a dot and digits, which names a priority"));
    }
    if name.ends_with(NOTIFICATION_SUFFIX) {
        return Err(misnamed("ends in `.notifications`, which names the queue of terminal notifications"));
    }
    Ok(())
}

fn check_prefix(prefix: &str) -> Result<()> {
    let short = |part: &str| part.len() <= MAX_PREFIX_PART_LEN;
    let plain = |part: &str| !part.is_empty() && part != "." && part != ".." && !part.contains(['\0', '\\']);
    ensure(prefix.len() <= MAX_PREFIX_LEN && prefix.split('/').all(short), || {
        format!("prefix has at most {MAX_PREFIX_LEN} bytes, and {MAX_PREFIX_PART_LEN} between slashes")
    })?;
    ensure(prefix.split('/').all(plain), || {
        format!("prefix `{}` must be a relative path without empty parts, `.` and `..`", prefix.escape_debug())
    })
}

fn ensure(holds: bool, problem: impl FnOnce() -> String) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::Misconfigured(problem())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(change: impl FnOnce(&mut Settings), accepted: bool) {
        let mut settings = Settings::default();
        change(&mut settings);
        let answer = settings.check();
        assert_eq!(answer.is_ok(), accepted, "{settings:?}: {answer:?}");
    }

    #[test]
    fn what_cannot_work_is_refused() {
        check(|_| (), true);
        check(|s| s.max_concurrent_steps = 0, false);
        check(|s| s.max_concurrent_steps = usize::MAX, false);
        check(|s| s.max_concurrent_hooks = 0, false);
        check(|s| s.max_attempts_per_step = 0, false);
        check(|s| s.hook_attempts = 0, false);
        check(|s| s.lease = Duration::from_millis(999), false);
        check(|s| s.inline_limit = 64 * 1024, true);
        check(|s| s.inline_limit = 64 * 1024 + 1, false);
        check(|s| s.max_attempts_per_step = u32::MAX, true);
        check(|s| s.step_timeout = Some(Duration::MAX), true);
        check(|s| s.lease = Duration::MAX, true);
        check(|s| s.commit_mode = CommitMode::Pipelined, true);
        check(|s| (s.commit_mode, s.replay) = (CommitMode::Pipelined, true), false);
    }

    #[test]
    fn a_queue_name_cannot_be_taken_for_another_queue() {
        let names =
            [("a", true), ("a.b", true), ("a.7", false), ("a.", false), ("a.notifications", false), ("", false)];
        for (name, accepted) in names {
            check(|s| s.queue_name = name.to_owned(), accepted);
        }
        check(|s| s.queue_name = "a/b".to_owned(), false);
        check(|s| s.queue_name = "-a".to_owned(), false);
        check(|s| s.queue_name = "x".repeat(200), true);
        check(|s| s.queue_name = "x".repeat(201), false);
    }

    #[test]
    fn a_prefix_stays_inside_the_store() {
        for (prefix, accepted) in [("a/b", true), ("", false), ("/a", false), ("a/../b", false), ("a//b", false)] {
            check(|s| s.prefix = prefix.to_owned(), accepted);
        }
        check(|s| s.prefix = "x".repeat(200), true);
        check(|s| s.prefix = "x".repeat(201), false);
        check(|s| s.prefix = "x/".repeat(256) + "x", false);
    }
}
