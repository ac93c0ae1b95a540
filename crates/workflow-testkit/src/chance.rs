//! Chance that repeats itself. It is written out here, a few lines, so that a seed means the same for ever.

/// Numbers that look random and are the same for the same seed, in every version.
///
/// ```
/// use workflow_testkit::Chance;
///
/// let (mut one, mut other) = (Chance::of(7), Chance::of(7));
/// assert_eq!(one.draw(), other.draw());
/// assert!(one.below(6) < 6);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chance(u64);

/// What successive states of a [`Chance`] differ by.
const STRIDE: u64 = 0x9e37_79b9_7f4a_7c15;

impl Chance {
    /// The numbers of `seed`.
    pub fn of(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        let drawn = mix(self.0);
        self.0 = self.0.wrapping_add(STRIDE);
        drawn
    }

    /// The next number below `bound`; 0 when `bound` is.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.draw().checked_rem(bound).unwrap_or(0)
    }

    /// Another seed, for a part of the test that draws by itself.
    #[must_use]
    pub fn split(&mut self) -> Self {
        Self(self.draw())
    }
}

/// The number that `a`, `b` and `c` together stand for.
pub(crate) fn mixed(a: u64, b: u64, c: u64) -> u64 {
    mix(mix(mix(a).wrapping_add(b)).wrapping_add(c))
}

/// SplitMix64.
fn mix(state: u64) -> u64 {
    let x = state.wrapping_add(STRIDE);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_means_the_same_for_ever() {
        // The reference values of SplitMix64 for seed 1234567.
        let mut chance = Chance::of(1_234_567);
        let drawn = [chance.draw(), chance.draw(), chance.draw()];
        assert_eq!(drawn, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn a_number_below_nothing_is_none() {
        assert_eq!(Chance::of(1).below(0), 0);
        assert_eq!(Chance::of(1).below(1), 0);
    }
}
