//! The waits between attempts.

use std::time::Duration;

use proptest::prelude::*;
use workflow_core::{Jitter, RetryPolicy, Timestamp};

use super::config;
use super::generators::{duration, number, policy, time};

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_ceiling_multiplies_up_to_the_cap_and_never_falls(policy in policy(), attempts in 1..200_u32) {
        let mut expected = policy.base.min(policy.cap);
        prop_assert_eq!(policy.ceiling(0), expected);
        for attempt in 1..=attempts {
            let ceiling = policy.ceiling(attempt);
            prop_assert_eq!(ceiling, expected, "attempt {}", attempt);
            prop_assert!(policy.ceiling(attempt + 1) >= ceiling);
            expected = ceiling.saturating_mul(policy.factor.max(1)).min(policy.cap);
        }
        prop_assert!(policy.ceiling(u32::MAX) >= policy.ceiling(attempts));
    }

    #[test]
    fn jitter_stays_between_zero_and_the_ceiling(policy in policy(), attempt in number(), entropy: u64) {
        let ceiling = policy.ceiling(attempt);
        let full = RetryPolicy { jitter: Jitter::Full, ..policy };
        let delay = full.delay(attempt, entropy);
        prop_assert!(delay <= ceiling, "{delay:?} of {ceiling:?}");
        prop_assert_eq!(full.delay(attempt, 0), Duration::ZERO);
        prop_assert!(full.delay(attempt, u64::MAX) >= delay);
        let none = RetryPolicy { jitter: Jitter::None, ..full };
        prop_assert_eq!(none.delay(attempt, entropy), ceiling);
    }

    #[test]
    fn a_time_after_a_delay_is_not_too_early(now in time(), delay in duration()) {
        let then = now.after(delay);
        prop_assert!(then >= now && then <= Timestamp::NEVER);
        prop_assert!(then == Timestamp::NEVER || then.since(now) >= delay);
        prop_assert!(then == Timestamp::NEVER || then.since(now) < delay + Duration::from_millis(1));
    }
}
