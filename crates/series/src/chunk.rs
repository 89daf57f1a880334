//! A chunk: an ordered stretch of one series, small to keep and quick to read.

use crate::error::DecodeError;
pub use crate::planes::Effort;
use crate::planes::{Packer, Unpacker};
use crate::points::Series;
use crate::values;
use crate::varint::{self, Reader};

const FORMAT: u8 = 1;

/// The most points of a chunk.
const POINTS_MAX: usize = 1 << 20;

/// Encodes chunks, and keeps what it allocates from one to the next.
pub struct Encoder {
    packer: Packer,
}

impl Encoder {
    /// One that spends so much work.
    #[must_use]
    pub fn new(effort: Effort) -> Self {
        Self {
            packer: Packer::new(effort),
        }
    }

    /// Encodes a series.
    ///
    /// *Assumptions*: the series is ordered, and has at most `POINTS_MAX` points; `decode` refuses any other.
    pub fn encode(&mut self, series: &Series) -> Vec<u8> {
        debug_assert!(series.is_ordered() && series.len() <= POINTS_MAX);
        let mut out = Vec::with_capacity(series.len() * 10 + 64);
        out.push(FORMAT);
        varint::write(series.len() as u64, &mut out);
        self.packer.write_numbers(&series.steps, &mut out);
        self.packer.write_numbers(&series.times, &mut out);
        values::write(&series.bits, &mut self.packer, &mut out);
        out
    }
}

/// Decodes chunks, whatever work was spent on them, and keeps what it allocates from one to the next.
pub struct Decoder {
    unpacker: Unpacker,
}

impl Default for Decoder {
    fn default() -> Self {
        Self {
            unpacker: Unpacker::new(),
        }
    }
}

impl Decoder {
    /// Decodes a chunk. Never panics.
    ///
    /// # Errors
    /// The bytes are not what `Encoder::encode` returns for an ordered series.
    pub fn decode(&mut self, bytes: &[u8]) -> Result<Series, DecodeError> {
        let mut reader = Reader::new(bytes);
        let format = reader.byte()?;
        if format != FORMAT {
            return Err(DecodeError::Format(format));
        }
        let points = reader.number()?;
        if points > POINTS_MAX as u64 {
            return Err(DecodeError::TooManyPoints(points));
        }
        let points = points as usize;
        let series = Series {
            steps: self.unpacker.numbers(points, &mut reader)?,
            times: self.unpacker.numbers(points, &mut reader)?,
            bits: values::read(points, &mut self.unpacker, &mut reader)?,
        };
        reader.end()?;
        match series.is_ordered() {
            true => Ok(series),
            false => Err(DecodeError::Unordered),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{Strategy, any, proptest};

    use super::{DecodeError, Decoder, Effort, Encoder, Series};
    use crate::sample::{self, Shape};

    fn ordered() -> impl Strategy<Value = Series> {
        vec((any::<i64>(), any::<i64>(), any::<u64>()), 0..300).prop_map(|mut points| {
            points.sort_by_key(|point| point.0);
            points.dedup_by_key(|point| point.0);
            let mut series = Series::default();
            for (step, time, bits) in points {
                series.push(step, time, bits);
            }
            series
        })
    }

    proptest! {
        #[test]
        fn every_series_round_trips_to_the_bit(series in ordered()) {
            for effort in [Effort::Live, Effort::Sealed] {
                let bytes = Encoder::new(effort).encode(&series);
                assert_eq!(Decoder::default().decode(&bytes), Ok(series.clone()));
            }
        }

        #[test]
        fn hostile_bytes_never_panic(bytes in vec(any::<u8>(), 0..400), points in 0_u8..128) {
            let _ = Decoder::default().decode(&bytes);
            let mut known = vec![1, points];
            known.extend(bytes);
            let _ = Decoder::default().decode(&known);
        }

        #[test]
        fn a_damaged_chunk_never_panics(seed in any::<u64>(), at in any::<usize>(), byte in any::<u8>()) {
            let series = sample::series(Shape::Bf16, 300, seed);
            let mut bytes = Encoder::new(Effort::Sealed).encode(&series);
            let at = at % bytes.len();
            assert!(Decoder::default().decode(&bytes[..at]).is_err());
            bytes[at] = byte;
            let _ = Decoder::default().decode(&bytes);
        }
    }

    #[test]
    fn an_encoder_is_used_again() {
        let mut encoder = Encoder::new(Effort::Sealed);
        let mut decoder = Decoder::default();
        for shape in Shape::ALL {
            for points in [0, 1, 2, 4_096, 17] {
                let series = sample::series(shape, points, 7);
                let bytes = encoder.encode(&series);
                assert_eq!(decoder.decode(&bytes), Ok(series));
            }
        }
    }

    /// Steps and times are among the bytes. Times have the jitter of a real loop.
    #[test]
    fn a_sealed_chunk_is_small() {
        let marks = [
            (Shape::Noise, 12.0),
            (Shape::F32, 6.0),
            (Shape::Bf16, 4.0),
            (Shape::Integers, 3.0),
        ];
        for (shape, mark) in marks {
            let bytes = Encoder::new(Effort::Sealed).encode(&sample::series(shape, 4_096, 1));
            let each = bytes.len() as f64 / 4_096.0;
            assert!(each <= mark, "{shape:?}: {each:.2} bytes a point");
        }
    }

    #[test]
    fn steps_that_do_not_ascend_are_refused() {
        // Format, two points, first step 5, difference 0, unit 1, no planes; then the same for times; bits without
        // planes.
        let bytes = [1, 2, 10, 0, 1, 0, 10, 0, 1, 0, 0, 0];
        assert_eq!(Decoder::default().decode(&bytes), Err(DecodeError::Unordered));
    }

    #[test]
    fn a_small_chunk_cannot_claim_a_billion_points() {
        let mut bytes = vec![1];
        crate::varint::write(1_000_000_000, &mut bytes);
        assert_eq!(
            Decoder::default().decode(&bytes),
            Err(DecodeError::TooManyPoints(1_000_000_000))
        );
    }
}
