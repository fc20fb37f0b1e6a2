//! Chance that falls the same way for the same seed.

/// The splitmix64 generator: <https://prng.di.unimi.it/splitmix64.c>.
#[derive(Debug, Clone)]
pub(crate) struct Dice {
    state: u64,
}

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Dice for one occasion, which is named by numbers: they fall the same however often and whenever it comes.
    pub(crate) fn of(seed: u64, occasion: &[u64]) -> Self {
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
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.roll() % bound.max(1)
    }

    /// Whether something happens that has this probability, 0 to 1.
    pub(crate) fn falls_within(&mut self, probability: f64) -> bool {
        // 53 bits are what a double holds exactly.
        ((self.roll() >> 11) as f64) < probability * (1_u64 << 53) as f64
    }

    /// Whether something of this probability in percent happens.
    pub(crate) fn happens(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}
