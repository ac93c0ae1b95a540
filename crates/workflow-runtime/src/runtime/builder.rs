//! Builds a runtime from a queue, a store, the user's code and settings; finds misconfigurations before anything runs.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use object_store::ObjectStore;
use tokio::sync::Semaphore;
use workflow_core::RetryPolicy;
use workflow_effects::{Committer, KeySpace, KvStore, ObjectConfig, ObjectValues};

use super::WorkflowRuntime;
use crate::decision::{Decider, Decision};
use crate::engine::{Engine, Queues, UNSETTLED};
use crate::group_commit::GroupCommit;
use crate::ids::{IdSource, RandomIds};
use crate::in_hand::InHand;
use crate::lease::Leases;
use crate::port::QueuePort;
use crate::reads::RunReads;
use crate::retention::Ends;
use crate::settings::{CommitMode, Settings};
use crate::signals::Turns;
use crate::{HistoryLevel, Result, StepRunner, TerminalHook};

/// Collects what a runtime is built from. The setters fill a [`Settings`], whose fields say what each means.
#[must_use]
pub struct WorkflowRuntimeBuilder<R, H> {
    port: Arc<dyn QueuePort>,
    store: Arc<dyn ObjectStore>,
    runner: R,
    hook: H,
    ids: Arc<dyn IdSource>,
    decider: Decider,
    settings: Settings,
}

impl<R, H> WorkflowRuntime<R, H>
where
    R: StepRunner + 'static,
    H: TerminalHook + 'static,
{
    /// A runtime over any implementation of the port. `store` holds the large values.
    pub fn over(
        port: Arc<dyn QueuePort>,
        store: Arc<dyn ObjectStore>,
        runner: R,
        hook: H,
    ) -> WorkflowRuntimeBuilder<R, H> {
        let (ids, decider) = (Arc::new(RandomIds), Decider::default());
        WorkflowRuntimeBuilder { port, store, runner, hook, ids, decider, settings: Settings::default() }
    }
}

/// Setters of one field each, which take the field's type.
macro_rules! setters {
    ($($(#[$doc:meta])* $field:ident: $type:ty,)*) => {
        $(
            $(#[$doc])*
            pub fn $field(mut self, $field: $type) -> Self {
                self.settings.$field = $field;
                self
            }
        )*
    };
}

impl<R, H> WorkflowRuntimeBuilder<R, H>
where
    R: StepRunner + 'static,
    H: TerminalHook + 'static,
{
    /// Replaces all settings.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Sets [`Settings::queue_name`].
    pub fn queue_name(mut self, name: impl Into<String>) -> Self {
        self.settings.queue_name = name.into();
        self
    }

    /// Sets [`Settings::prefix`].
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.settings.prefix = prefix.into();
        self
    }

    setters! {
        /// Sets [`Settings::max_concurrent_steps`].
        max_concurrent_steps: usize,
        /// Sets [`Settings::max_concurrent_hooks`].
        max_concurrent_hooks: usize,
        /// Sets [`Settings::inline_steps`].
        inline_steps: u32,
        /// Sets [`Settings::max_attempts_per_step`].
        max_attempts_per_step: u32,
        /// Sets [`Settings::retry_policy`].
        retry_policy: RetryPolicy,
        /// Sets [`Settings::lease`].
        lease: Duration,
        /// Sets [`Settings::shutdown_grace`].
        shutdown_grace: Duration,
        /// Sets [`Settings::cancel_grace`].
        cancel_grace: Duration,
        /// Sets [`Settings::history`].
        history: HistoryLevel,
        /// Sets [`Settings::commit_mode`].
        commit_mode: CommitMode,
        /// Sets [`Settings::replay`].
        replay: bool,
        /// Sets [`Settings::repair`].
        repair: bool,
        /// Sets [`Settings::hook_attempts`].
        hook_attempts: u32,
        /// Sets [`Settings::inline_limit`].
        inline_limit: usize,
        /// Sets [`Settings::max_value_size`].
        max_value_size: u64,
    }

    /// Sets [`Settings::step_timeout`].
    pub fn step_timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.settings.step_timeout = timeout.into();
        self
    }

    /// Sets [`Settings::retention`].
    pub fn retention(mut self, retention: impl Into<Option<Duration>>) -> Self {
        self.settings.retention = retention.into();
        self
    }

    /// Sets [`Settings::signal_limit`] and [`Settings::signal_ttl`].
    pub fn signal_buffer(mut self, limit: u64, ttl: Duration) -> Self {
        self.settings.signal_limit = limit;
        self.settings.signal_ttl = ttl;
        self
    }

    /// Takes ids and chance from `ids`, so that a test can fix them.
    pub fn ids(mut self, ids: Arc<dyn IdSource>) -> Self {
        self.ids = ids;
        self
    }

    /// Tells `observer` of every decision on a run, whatever becomes of its commit: which cell of the table of decisions it
    /// was. For tests that ask what they have exercised. Without one it costs nothing.
    pub fn on_decision(mut self, observer: impl Fn(Decision) + Send + Sync + 'static) -> Self {
        self.decider = Decider::observed_by(observer);
        self
    }

    /// Checks the settings and makes the runtime. Writes nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Misconfigured`](crate::Error::Misconfigured), naming the setting.
    pub fn build(self) -> Result<WorkflowRuntime<R, H>> {
        let Self { port, store, runner, hook, ids, decider, settings } = self;
        settings.check()?;
        let kv: Arc<dyn KvStore> = Arc::new(GroupCommit::new(port.clone()));
        let keys = KeySpace::new(&settings.queue_name);
        let (fresh, clock) = (ids.clone(), port.clock());
        let objects = ObjectValues::new(ObjectConfig {
            kv: kv.clone(),
            store,
            keys: keys.clone(),
            prefix: settings.prefix.clone(),
            inline_limit: settings.inline_limit,
            max_value_size: settings.max_value_size,
            fresh: Box::new(move || fresh.random()),
            now: Box::new(move || clock.now()),
        });
        let engine = Engine {
            committer: Committer::new(kv.clone()),
            reads: RunReads { kv, keys, objects: Arc::new(objects) },
            clock: port.clock(),
            ids,
            decider,
            runner: Arc::new(runner),
            hook: Arc::new(hook),
            leases: Leases::new(port.clone(), settings.lease),
            queues: Queues::new(&settings.queue_name),
            turns: Turns::default(),
            ends: Ends::default(),
            in_hand: InHand::default(),
            unsettled: Semaphore::new(UNSETTLED),
            running: AtomicBool::new(false),
            port,
            settings,
        };
        Ok(WorkflowRuntime { engine: Arc::new(engine) })
    }
}
