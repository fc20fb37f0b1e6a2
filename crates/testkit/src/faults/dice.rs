//! Randomness that can be repeated.

/// The splitmix64 generator: the same seed gives the same numbers on every machine and in every version.
#[derive(Debug, Clone)]
pub struct Dice {
    state: u64,
}

impl Dice {
    /// Dice that fall as `seed` says.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next number.
    pub fn roll(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to `bound` − 1; 0 when `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.roll() % bound).unwrap_or(0)
    }

    /// Whether something of this probability in percent happens.
    pub fn happens(&mut self, percent: u8) -> bool {
        self.roll() % 100 < u64::from(percent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_falls_the_same_way() {
        let rolls = |seed| {
            let mut dice = Dice::new(seed);
            [dice.roll(), dice.roll()]
        };
        assert_eq!(rolls(1), rolls(1));
        assert_ne!(rolls(1), rolls(2));
    }

    #[test]
    fn percentages_are_about_right() {
        let mut dice = Dice::new(3);
        let happened = (0..10_000).filter(|_| dice.happens(5)).count();
        assert!((400..600).contains(&happened), "{happened}");
        assert!(!(0..100).any(|_| dice.happens(0)));
        assert!((0..100).all(|_| dice.happens(100)));
    }
}
