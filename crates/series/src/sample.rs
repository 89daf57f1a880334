//! Series such as training jobs log, from a seed: for tests and figures.

use crate::Series;

/// What its values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Doubles with noise in every bit.
    Noise,
    /// Doubles that were single precision.
    F32,
    /// Doubles that were bf16.
    Bf16,
    /// Whole numbers below a thousand.
    Integers,
}

impl Shape {
    /// All of them.
    pub(crate) const ALL: [Self; 4] = [Self::Noise, Self::F32, Self::Bf16, Self::Integers];
}

/// A generator that depends on its seed alone (splitmix64).
pub(crate) struct Random(u64);

impl Random {
    /// From a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    pub(crate) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to 1.
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.number() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// A loss that falls from 2.5 with noise, logged about ten times a second with times in microseconds.
pub(crate) fn series(shape: Shape, points: usize, seed: u64) -> Series {
    let mut random = Random::new(seed);
    let mut series = Series::with_capacity(points);
    let mut time = 1_790_000_000_000_000_000_i64;
    for step in 0..points {
        time += 100_000_000 + (random.number() % 4_000) as i64 * 1_000;
        let loss = 2.5 * (-(step as f64) / 3_000.0).exp() + 0.1 * random.fraction() + 0.05;
        let value = match shape {
            Shape::Noise => loss,
            Shape::F32 => f64::from(loss as f32),
            Shape::Bf16 => f64::from(f32::from_bits((loss as f32).to_bits() & 0xffff_0000)),
            Shape::Integers => (random.number() % 1_000) as f64,
        };
        series.push(step as i64, time, value.to_bits());
    }
    series
}
