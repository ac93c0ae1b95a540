//! The contract of the port as tests: one function per rule, which every implementation must pass.
//!
//! The rules are what [`KvStore`](workflow_runtime::port::KvStore) and [`QueuePort`] say, sentence by sentence. Whoever
//! brings another queue implements [`Subject`] for it, a store that can be opened, broken and opened again, and calls
//! [`conformance!`](macro@crate::conformance) in a test module.
//!
//! A few sentences no suite can drive from outside, and an implementation shows them by tests of its own: that a clock
//! which is set, or a machine that sleeps, ends no lease early; that a store which cannot answer says
//! [`Unavailable`](workflow_runtime::port::Error::Unavailable); what a settlement does while it has to repeat itself.

pub mod claims;
pub mod commits;
pub mod crashes;
pub mod due;
pub mod durability;
pub mod jobs;
pub mod leases;
pub mod names;
pub mod reads;
pub mod scans;
pub mod settlements;
pub mod takeover;
pub mod waits;
mod world;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use workflow_runtime::QueuePort;
use workflow_runtime::port::JobId;

use crate::MemoryDisk;

/// A store that the suite opens, breaks and opens again.
///
/// Every rule has a subject of its own and runs on paused time: the queue's clock and its timers must follow the time
/// of the async runtime, as [`VirtualClock`](crate::VirtualClock) does.
#[async_trait]
pub trait Subject: Send + Sync + 'static {
    /// An empty store, not open yet.
    fn new() -> Self
    where
        Self: Sized;

    /// Opens the store as the next process does, with power, and not held. An earlier opening loses the store, and with
    /// it what it had not made durable.
    async fn open(&self) -> Arc<dyn QueuePort>;

    /// As [`open`](Self::open), and after so many durable writes the next one cuts the power instead: from then on
    /// no call returns. `None` when that happens while the store is being opened.
    ///
    /// What a write is, is the store's to say: the unit in which a process can die. A call may take several, or share
    /// one with others.
    async fn open_with_power_for(&self, writes: u64) -> Option<Arc<dyn QueuePort>>;

    /// Returns once the power of the latest opening is cut.
    async fn cut(&self);

    /// Keeps everything from becoming durable from now on. It may be visible all the same.
    fn hold(&self);

    /// Lets what is held, and everything after it, become durable.
    fn release(&self);

    /// Puts a dead job of the latest opening back among the waiting ones, as an operator does. `false` when it is not
    /// dead.
    async fn requeue_dead_job(&self, job: &JobId) -> bool;
}

#[async_trait]
impl Subject for MemoryDisk {
    fn new() -> Self {
        Self::default()
    }

    async fn open(&self) -> Arc<dyn QueuePort> {
        Arc::new(Self::open(self))
    }

    async fn open_with_power_for(&self, writes: u64) -> Option<Arc<dyn QueuePort>> {
        let queue = Self::open(self);
        self.cut_power_after(writes);
        Some(Arc::new(queue))
    }

    async fn cut(&self) {
        Self::cut(self).await;
    }

    fn hold(&self) {
        Self::hold(self);
    }

    fn release(&self) {
        Self::release(self);
    }

    async fn requeue_dead_job(&self, job: &JobId) -> bool {
        Self::requeue_dead_job(self, job)
    }
}

/// Checks one rule, within a time that no rule needs: one that waits for ever is broken.
///
/// # Panics
///
/// When the rule does not hold.
pub async fn check(rule: impl Future<Output = ()>) {
    let hour = Duration::from_secs(3600);
    assert!(tokio::time::timeout(hour, rule).await.is_ok(), "the rule waits for something that never happens");
}

/// The conformance suite on one [`Subject`]: a test for each rule of the port, named after it.
///
/// The crate that calls it needs `tokio` with the features `macros` and `test-util` as a dev-dependency.
///
/// ```
/// mod memory {
///     workflow_testkit::conformance!(workflow_testkit::MemoryDisk);
/// }
/// # fn main() {}
/// ```
///
/// For a queue on a database, a subject may look like this:
///
/// ```ignore
/// struct Database {
///     /// A proxy in front of the server: it can stop passing answers on, or die at the n-th transaction.
///     proxy: Proxy,
///     /// A schema of this subject's own.
///     schema: String,
/// }
///
/// #[async_trait]
/// impl Subject for Database {
///     fn new() -> Self { Self { proxy: Proxy::new(), schema: random_name() } }
///     async fn open(&self) -> Arc<dyn QueuePort> { Arc::new(MyQueue::open(self.proxy.url(), &self.schema).await) }
///     // …
/// }
///
/// conformance!(Database);
/// ```
#[macro_export]
macro_rules! conformance {
    ($subject:ty) => {
        $crate::conformance_rules! { $subject:
            claims::a_claim_takes_jobs_of_its_queue_only,
            claims::a_claim_takes_no_more_than_it_asks_for,
            claims::a_claim_whose_caller_gives_up_after_any_poll_comes_back,
            claims::a_delivery_carries_what_was_queued,
            claims::a_job_is_delivered_to_one_claim_at_a_time_until_it_is_settled,
            claims::claims_at_the_same_time_share_no_job,
            claims::every_delivery_counts_and_no_limit_ends_them,
            commits::a_commit_changes_what_it_says_and_nothing_else,
            commits::a_commit_that_breaks_a_rule_is_invalid_and_changes_nothing,
            commits::a_commit_whose_caller_gives_up_after_any_poll_is_whole_or_was_never_begun,
            commits::a_commit_with_a_job_id_that_is_taken_is_invalid_and_changes_nothing,
            commits::a_commit_that_expects_other_bytes_changes_nothing,
            commits::a_stale_commit_is_a_conflict_even_if_its_jobs_are_there_already,
            commits::a_value_may_be_as_long_as_a_value_may_be_and_no_longer,
            commits::each_commit_of_a_call_is_answered_on_its_own_and_in_order,
            commits::of_commits_that_expect_the_same_bytes_one_wins,
            crashes::a_crash_at_any_write_leaves_whole_commits_without_a_gap_and_all_that_was_answered,
            due::a_job_is_delivered_when_it_is_due_and_not_before,
            due::a_job_that_is_due_already_is_ready,
            due::a_job_that_was_due_while_nobody_had_the_queue_open_is_delivered_at_once,
            due::jobs_stay_due_when_the_queue_is_opened_again,
            durability::a_claim_that_no_crash_can_undo_is_counted,
            durability::a_claim_that_was_not_persisted_is_delivered_again,
            durability::a_commit_is_answered_once_it_is_durable,
            durability::what_was_not_durable_is_gone_as_a_whole,
            jobs::a_job_that_comes_back_waits_again,
            jobs::a_job_that_an_operator_has_put_back_is_known_until_it_is_dead_again,
            jobs::every_job_is_where_the_queue_says,
            leases::a_job_comes_back_when_its_lease_ends_and_not_before,
            leases::a_lost_claim_is_told,
            leases::a_settlement_of_a_lost_claim_changes_nothing,
            leases::an_extension_counts_from_now_and_never_shortens,
            leases::the_longest_lease_breaks_nothing,
            names::an_opening_has_one_number_and_the_next_has_another,
            names::job_ids_are_all_different_in_every_opening,
            names::the_clock_follows_its_own_sleeps,
            reads::a_durable_read_waits_for_nothing_but_what_it_reads,
            reads::a_latest_read_waits_for_nothing,
            reads::what_a_durable_read_answers_survives_a_crash,
            scans::a_scan_shows_what_its_range_says,
            scans::pages_follow_each_other_without_a_gap,
            settlements::a_dead_job_is_kept_and_not_delivered,
            settlements::a_dead_job_that_is_dropped_is_not_delivered,
            settlements::a_drop_is_answered_once_it_is_durable,
            settlements::a_repeated_settlement_changes_nothing,
            settlements::a_settlement_is_answered_once_it_is_durable,
            settlements::a_settlement_whose_caller_gives_up_goes_on,
            settlements::an_acknowledged_job_is_forgotten,
            settlements::jobs_that_nobody_holds_can_be_dropped,
            settlements::jobs_that_somebody_holds_are_not_dropped,
            takeover::a_commit_of_whoever_lost_the_queue_changes_nothing,
            takeover::whoever_lost_the_queue_is_told_so_by_every_call,
            takeover::whoever_only_waits_is_told_that_the_queue_is_lost,
            waits::a_job_that_came_before_the_wait_ends_it,
            waits::a_wait_for_a_change_tells_what_no_crash_can_undo,
            waits::a_wait_for_a_change_ends_at_any_value_but_the_seen_one,
            waits::a_wait_for_work_ends_by_itself,
            waits::of_several_who_wait_one_at_least_is_woken,
            waits::the_hint_misses_no_job_that_this_process_made_ready,
            waits::whoever_waits_is_woken_by_a_job_of_any_of_the_queues,
            waits::whoever_waits_is_woken_by_a_job_that_comes_back,
            waits::whoever_waits_for_a_late_job_is_woken_by_an_earlier_one,
        }
    };
}

/// The part of [`conformance!`](macro@crate::conformance) that makes a test of each rule.
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_rules {
    ($subject:ty: $($topic:ident::$rule:ident,)*) => {
        $(
            #[tokio::test(start_paused = true)]
            async fn $rule() {
                $crate::conformance::check($crate::conformance::$topic::$rule::<$subject>()).await;
            }
        )*
    };
}
