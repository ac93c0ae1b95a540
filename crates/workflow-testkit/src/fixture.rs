//! One step, detached: a runner is called for it as a runtime would, and all that it did is reported.

mod attempt;
mod idempotency;
mod record;
mod report;
mod text;

use std::collections::{BTreeMap, HashMap};
use std::future::ready;

use bytes::Bytes;
use futures::FutureExt;
use serde::Serialize;
use serde::de::DeserializeOwned;
use workflow_core::RunId;
use workflow_effects::key_text;
use workflow_runtime::{EffectsHandle, MAX_MEMO_KEY_LEN, Memo, MemoError, StepOutcome, StepRunner};

use self::attempt::{Attempt, Attempted};
pub use self::idempotency::{Difference, Interruption, NotIdempotent};
pub use self::report::{KvRead, MemoCall, MemoOf, StepReport};
use self::text::answer_text;
pub(crate) use self::text::value_text;
use crate::Outside;
use crate::explore::paused_runtime;

/// A step to call a [`StepRunner`] for, and what is there when it starts. Without more it is the first attempt of five
/// of step 0 of the run `detached`, over nothing.
///
/// Running it changes nothing of it: every [`run`](Self::run) starts from the same state. What follows on a run starts
/// from what [`after`](Self::after) and [`next`](Self::next) make. Only the world [outside](Self::outside) and the
/// runner go on, as they do for a step that is delivered again.
///
/// ```
/// use workflow_runtime::{Step, StepError, StepOutcome, StepRunner};
/// use workflow_testkit::StepFixture;
///
/// struct Approve;
///
/// impl StepRunner for Approve {
///     async fn run_step(&self, step: &Step) -> Result<StepOutcome, StepError> {
///         let Some(approver) = &step.signal else {
///             return Ok(StepOutcome::Fail { reason: "nobody has approved".to_owned() });
///         };
///         let limit = step.kv.get(b"limit").await?.unwrap_or_default();
///         step.effects.put(format!("approved/{}", step.run_id), [approver, &limit[..]].concat())?;
///         Ok(StepOutcome::Succeed { result: approver.clone() })
///     }
/// }
///
/// let step = StepFixture::new("a chair").run_id("order-17").step_number(2).kv("limit", "100");
/// let report = step.clone().signal("approval/order-17", "alice").run_blocking(&Approve);
/// assert_eq!(report.outcome, Ok(StepOutcome::Succeed { result: b"alice".to_vec() }));
/// assert_eq!(report.effects.puts[&b"approved/order-17"[..]], "alice100");
///
/// let timed_out = step.run_blocking(&Approve);
/// assert!(matches!(timed_out.outcome, Ok(StepOutcome::Fail { .. })));
/// assert!(timed_out.reads.is_empty() && timed_out.effects.is_empty());
/// ```
#[derive(Clone, Debug)]
pub struct StepFixture {
    run_id: RunId,
    step_number: u32,
    payload: Vec<u8>,
    headers: HashMap<String, String>,
    attempts: u32,
    max_attempts: u32,
    signal: Option<(String, Vec<u8>)>,
    kv: BTreeMap<Bytes, Bytes>,
    memos: BTreeMap<(MemoOf, String), Bytes>,
    cancelled: bool,
    lease_lost: bool,
    outside: Outside,
}

impl StepFixture {
    /// A step that is called with `payload`.
    pub fn new(payload: impl Into<Vec<u8>>) -> Self {
        Self {
            run_id: RunId::parse("detached").expect("plain letters are a run id"),
            step_number: 0,
            payload: payload.into(),
            headers: HashMap::new(),
            attempts: 1,
            max_attempts: 5,
            signal: None,
            kv: BTreeMap::new(),
            memos: BTreeMap::new(),
            cancelled: false,
            lease_lost: false,
            outside: Outside::detached(),
        }
    }

    /// The run that it is a step of.
    ///
    /// # Panics
    ///
    /// When no run can have this id.
    #[must_use]
    #[track_caller]
    pub fn run_id(mut self, run_id: impl Into<String>) -> Self {
        let run_id = run_id.into();
        self.run_id = RunId::parse(&run_id).unwrap_or_else(|error| panic!("run id {run_id:?}: {error}"));
        self
    }

    /// The number of the step in its run, 0 for the first.
    #[must_use]
    pub fn step_number(mut self, step_number: u32) -> Self {
        self.step_number = step_number;
        self
    }

    /// The number of the attempt, from 1, and that of the last one.
    ///
    /// # Panics
    ///
    /// When there is no such attempt.
    #[must_use]
    #[track_caller]
    pub fn attempt(mut self, attempt: u32, of_max: u32) -> Self {
        assert!((1..=of_max).contains(&attempt), "of {of_max} attempts there is none with number {attempt}");
        (self.attempts, self.max_attempts) = (attempt, of_max);
        self
    }

    /// A header of the run's submission.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// The signal that ended the wait before the step. Without one there was no wait, or it timed out.
    #[must_use]
    pub fn signal(mut self, key: impl Into<String>, payload: impl Into<Vec<u8>>) -> Self {
        self.signal = Some((key.into(), payload.into()));
        self
    }

    /// Application KV that is committed.
    ///
    /// # Panics
    ///
    /// When no step could have put it.
    #[must_use]
    #[track_caller]
    pub fn kv(mut self, key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> Self {
        let (key, value) = (key.into(), value.into());
        if let Err(error) = EffectsHandle::detached().put(key.clone(), value.clone()) {
            panic!("key {}: {error}", key_text(&key));
        }
        self.kv.insert(key.into(), value.into());
        self
    }

    /// Bytes that an earlier attempt of the step has [put](Memo::put).
    ///
    /// # Panics
    ///
    /// When the key is too long.
    #[must_use]
    #[track_caller]
    pub fn memo(self, key: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        self.with_memo(MemoOf::Step, key.into(), value.into())
    }

    /// Bytes that an earlier attempt or step of the run has put in its memo.
    ///
    /// # Panics
    ///
    /// When the key is too long.
    #[must_use]
    #[track_caller]
    pub fn run_memo(self, key: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        self.with_memo(MemoOf::Run, key.into(), value.into())
    }

    /// A value that an earlier attempt of the step has [memoized](Memo::memoized).
    ///
    /// ```
    /// use workflow_runtime::{Step, StepError, StepOutcome, StepRunner};
    /// use workflow_testkit::StepFixture;
    ///
    /// struct Quote;
    ///
    /// impl StepRunner for Quote {
    ///     async fn run_step(&self, step: &Step) -> Result<StepOutcome, StepError> {
    ///         let price: u32 = step.memo.memoized("price", async { Ok::<_, StepError>(17) }).await?;
    ///         Ok(StepOutcome::Succeed { result: price.to_string().into() })
    ///     }
    /// }
    ///
    /// let report = StepFixture::new("a chair").memoized("price", 25).run_blocking(&Quote);
    /// assert_eq!(report.outcome, Ok(StepOutcome::Succeed { result: b"25".to_vec() }));
    /// ```
    ///
    /// # Panics
    ///
    /// When the key is too long, or JSON does not hold the value.
    #[must_use]
    #[track_caller]
    pub fn memoized<T: Serialize + DeserializeOwned + Send>(self, key: impl Into<String>, value: T) -> Self {
        let key = key.into();
        let stored = stored(&key, value);
        self.with_memo(MemoOf::Step, key, stored)
    }

    /// A value that an earlier attempt or step of the run has memoized in its memo. As [`memoized`](Self::memoized).
    ///
    /// # Panics
    ///
    /// When the key is too long, or JSON does not hold the value.
    #[must_use]
    #[track_caller]
    pub fn run_memoized<T: Serialize + DeserializeOwned + Send>(self, key: impl Into<String>, value: T) -> Self {
        let key = key.into();
        let stored = stored(&key, value);
        self.with_memo(MemoOf::Run, key, stored)
    }

    #[track_caller]
    fn with_memo(mut self, of: MemoOf, key: String, value: Vec<u8>) -> Self {
        let len = key.len();
        assert!(len <= MAX_MEMO_KEY_LEN, "a memo key has at most {MAX_MEMO_KEY_LEN} bytes, not {len}");
        self.memos.insert((of, key), value.into());
        self
    }

    /// The run is cancelled: the step's token has fired before it starts.
    #[must_use]
    pub fn cancelled(mut self) -> Self {
        self.cancelled = true;
        self
    }

    /// The lease is lost. The step learns of it when it asks the lease to last; its token fires then.
    #[must_use]
    pub fn lease_lost(mut self) -> Self {
        self.lease_lost = true;
        self
    }

    /// The world outside of this fixture, its clones, and those that follow it: what steps do there is told to it. Give
    /// clones to the fakes of other systems.
    ///
    /// ```
    /// use workflow_runtime::{Step, StepError, StepOutcome, StepRunner};
    /// use workflow_testkit::{Outside, StepFixture};
    ///
    /// struct Mail(Outside);
    ///
    /// impl StepRunner for Mail {
    ///     async fn run_step(&self, step: &Step) -> Result<StepOutcome, StepError> {
    ///         self.0.does_for(&step.run_id, "mail alice").await;
    ///         Ok(StepOutcome::Succeed { result: Vec::new() })
    ///     }
    /// }
    ///
    /// let step = StepFixture::new("");
    /// let report = step.run_blocking(&Mail(step.outside()));
    /// assert_eq!(report.outside, ["mail alice (detached)"]);
    /// ```
    pub fn outside(&self) -> Outside {
        self.outside.clone()
    }

    /// Calls `runner` for the step, and reports what it did. A panic of the runner's passes through.
    ///
    /// ```
    /// use workflow_runtime::{Step, StepError, StepOutcome, StepRunner};
    /// use workflow_testkit::StepFixture;
    ///
    /// struct Echo;
    ///
    /// impl StepRunner for Echo {
    ///     async fn run_step(&self, step: &Step) -> Result<StepOutcome, StepError> {
    ///         Ok(StepOutcome::Succeed { result: step.payload.clone() })
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let report = StepFixture::new("hello").run(&Echo).await;
    /// assert_eq!(report.outcome, Ok(StepOutcome::Succeed { result: b"hello".to_vec() }));
    /// # }
    /// ```
    pub async fn run<R: StepRunner>(&self, runner: &R) -> StepReport {
        self.attempted(runner).await.report
    }

    async fn attempted<R: StepRunner>(&self, runner: &R) -> Attempted {
        let attempt = Attempt::begin(self).await;
        let answer = runner.run_step(&attempt.step).await;
        attempt.end(answer)
    }

    /// As [`run`](Self::run), for tests that are not async: in virtual time, so that a runner's sleeps take none.
    ///
    /// # Panics
    ///
    /// In an async context.
    pub fn run_blocking<R: StepRunner>(&self, runner: &R) -> StepReport {
        paused_runtime().block_on(self.run(runner))
    }

    /// The next attempt of the step after one that failed or died: what it has put in memos is there, what it staged is
    /// not.
    ///
    /// ```
    /// use workflow_runtime::{Step, StepError, StepOutcome, StepRunner};
    /// use workflow_testkit::StepFixture;
    ///
    /// struct Flaky;
    ///
    /// impl StepRunner for Flaky {
    ///     async fn run_step(&self, step: &Step) -> Result<StepOutcome, StepError> {
    ///         let paid_for: u32 = step.memo.memoized("paid for", async { Ok::<_, StepError>(step.attempts) }).await?;
    ///         match step.attempts {
    ///             1 => Err(StepError::transient("busy")),
    ///             _ => Ok(StepOutcome::Succeed { result: paid_for.to_string().into() }),
    ///         }
    ///     }
    /// }
    ///
    /// let first = StepFixture::new("");
    /// let second = first.after(&first.run_blocking(&Flaky));
    /// assert_eq!(second.run_blocking(&Flaky).outcome, Ok(StepOutcome::Succeed { result: b"1".to_vec() }));
    /// ```
    #[must_use]
    pub fn after(&self, report: &StepReport) -> Self {
        let attempts = self.attempts.saturating_add(1).min(self.max_attempts);
        Self { attempts, lease_lost: false, ..self.with_memos(&report.memo) }
    }

    /// The step that follows one that was committed: it is called with the payload of its `Continue`, its effects are
    /// there, and what it has put in the run's memo. A step that waited for a signal has timed out, unless
    /// [`signal`](Self::signal) tells otherwise.
    ///
    /// ```
    /// use workflow_runtime::{Step, StepError, StepOutcome, StepRunner};
    /// use workflow_testkit::StepFixture;
    ///
    /// struct Count;
    ///
    /// impl StepRunner for Count {
    ///     async fn run_step(&self, step: &Step) -> Result<StepOutcome, StepError> {
    ///         let seen = step.kv.get(b"seen").await?.unwrap_or_default();
    ///         step.effects.put("seen", [&seen[..], b"x"].concat())?;
    ///         Ok(StepOutcome::continue_now(seen.to_vec()))
    ///     }
    /// }
    ///
    /// let first = StepFixture::new("");
    /// let second = first.next(&first.run_blocking(&Count));
    /// let report = second.run_blocking(&Count);
    /// assert_eq!(report.outcome, Ok(StepOutcome::continue_now(b"x".to_vec())));
    /// ```
    ///
    /// # Panics
    ///
    /// When the run does not go on: the outcome is no `Continue`, or the run was cancelled.
    #[must_use]
    #[track_caller]
    pub fn next(&self, report: &StepReport) -> Self {
        assert!(!self.cancelled, "no step follows: the run was cancelled, and nothing of the step is committed");
        let Ok(StepOutcome::Continue { payload, .. }) = &report.outcome else {
            panic!("no step follows: {}", answer_text(&report.outcome));
        };
        let mut next = Self {
            step_number: self.step_number + 1,
            payload: payload.clone(),
            attempts: 1,
            signal: None,
            lease_lost: false,
            ..self.with_memos(&report.memo)
        };
        next.memos.retain(|(of, _), _| *of == MemoOf::Run);
        next.kv.retain(|key, _| !report.effects.deletes.contains(key));
        next.kv.extend(report.effects.puts.clone());
        next
    }

    /// This, with what `calls` have put.
    fn with_memos(&self, calls: &[MemoCall]) -> Self {
        let mut fixture = self.clone();
        for call in calls {
            if let MemoCall::Put { of, key, value } = call {
                fixture.memos.insert((*of, key.clone()), value.clone());
            }
        }
        fixture
    }
}

/// The bytes that [`Memo::memoized`] stores for `value`.
#[track_caller]
fn stored<T: Serialize + DeserializeOwned + Send>(key: &str, value: T) -> Vec<u8> {
    let memo = Memo::detached();
    let stored = async {
        memo.memoized(key, ready(Ok::<_, MemoError>(value))).await?;
        memo.get(key).await
    };
    match stored.now_or_never() {
        Some(Ok(Some(stored))) => stored,
        Some(Err(error)) => panic!("memo {}: {error}", key_text(key.as_bytes())),
        Some(Ok(None)) | None => unreachable!("a memo in memory has at once what it was given"),
    }
}
