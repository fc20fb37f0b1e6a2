//! Chance that falls the same way for the same seed.

/// The splitmix64 generator: <https://prng.di.unimi.it/splitmix64.c>.
#[derive(Debug, Clone)]
pub(super) struct Dice {
    state: u64,
}

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Dice for one occasion, which is named by numbers: they fall the same however often and whenever it comes.
    pub(super) fn of(seed: u64, occasion: &[u64]) -> Self {
        let mut dice = Self::new(seed);
        for &number in occasion {
            dice.state = dice.roll() ^ number;
        }
        dice
    }

    fn roll(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to `bound` − 1; 0 when `bound` is 0.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.roll() % bound.max(1)
    }

    /// Whether something of this probability in percent happens.
    pub(super) fn happens(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}
