//! The one source of chance in a simulated world.

/// SplitMix64: small, fast, and its whole state is one number.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The sequence that `seed` names.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number in `low..=high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.bits() % (high - low + 1)
    }

    /// An index below `len`.
    pub fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.bits() % len as u64).unwrap_or(0)
    }

    /// True in `permille` of a thousand cases.
    pub fn chance(&mut self, permille: u64) -> bool {
        self.bits() % 1_000 < permille
    }
}
