//! Columns of whole numbers as planes of bytes: all lowest bytes, then all second lowest, and so on. A plane of equal
//! bytes takes two; a plane that compresses is deflated; noise is stored as it is and costs nothing to read.

use miniz_oxide::DataFormat;
use miniz_oxide::deflate::CompressionLevel;
use miniz_oxide::deflate::core::{CompressorOxide, TDEFLFlush, TDEFLStatus, compress};
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::inflate_flags::TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress};

use crate::error::DecodeError;
use crate::varint::{self, Reader};

const EQUAL: u8 = 0;
const STORED: u8 = 1;
const DEFLATED: u8 = 2;

/// How much work to spend on smaller chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Little: for chunks that will be merged again.
    Live,
    /// More: for those of a run that has ended.
    Sealed,
}

/// Encodes columns, and keeps what it allocates.
pub(crate) struct Packer {
    effort: Effort,
    compressors: Vec<CompressorOxide>,
    plane: Vec<u8>,
    deflated: Vec<u8>,
    attempt: Vec<u8>,
}

impl Packer {
    pub(crate) fn new(effort: Effort) -> Self {
        // Short matches in noise cost more than they save: the fast level is also the smaller one there, and the other
        // one wins where whole stretches come again.
        let levels: &[CompressionLevel] = match effort {
            Effort::Live => &[CompressionLevel::BestSpeed],
            Effort::Sealed => &[CompressionLevel::BestSpeed, CompressionLevel::DefaultLevel],
        };
        let of = |&level: &_| CompressorOxide::with_format_and_level(DataFormat::Raw, level);
        Self {
            effort,
            compressors: levels.iter().map(of).collect(),
            plane: Vec::new(),
            deflated: Vec::new(),
            attempt: Vec::new(),
        }
    }

    /// Appends numbers: how many bytes the largest has, and the planes.
    pub(crate) fn write_words(&mut self, words: &[u64], out: &mut Vec<u8>) {
        let bits = words.iter().fold(0, |bits, word| bits | word);
        let planes = (u64::BITS - bits.leading_zeros()).div_ceil(8);
        out.push(planes as u8);
        for plane in 0..planes {
            self.plane.clear();
            self.plane.extend(words.iter().map(|word| (word >> (8 * plane)) as u8));
            self.write_plane(out);
        }
    }

    /// Appends signed numbers: the first, and the differences between neighbors, less what all of them have in common.
    pub(crate) fn write_numbers(&mut self, numbers: &[i64], out: &mut Vec<u8>) {
        let Some(&first) = numbers.first() else { return };
        varint::write_signed(first, out);
        let differences = || numbers.windows(2).map(|pair| pair[1].wrapping_sub(pair[0]));
        let Some(least) = differences().min() else { return };
        let mut rest: Vec<u64> = differences().map(|next| next.wrapping_sub(least) as u64).collect();
        let unit = common_divisor(&rest).max(1);
        if unit > 1 {
            rest.iter_mut().for_each(|rest| *rest /= unit);
        }
        varint::write_signed(least, out);
        varint::write(unit, out);
        self.write_words(&rest, out);
    }

    fn write_plane(&mut self, out: &mut Vec<u8>) {
        let first = self.plane.first().copied().unwrap_or(0);
        if self.plane.iter().all(|&byte| byte == first) {
            out.extend([EQUAL, first]);
            return;
        }
        let room = self.plane.len() - self.plane.len() / 32;
        let is_worth_trying = self.effort == Effort::Sealed || entropy_bytes(&self.plane) < room;
        if is_worth_trying && self.deflate(room) {
            out.push(DEFLATED);
            varint::write(self.deflated.len() as u64, out);
            out.extend_from_slice(&self.deflated);
        } else {
            out.push(STORED);
            out.extend_from_slice(&self.plane);
        }
    }

    /// Whether the plane, deflated, fits into so many bytes.
    fn deflate(&mut self, room: usize) -> bool {
        self.deflated.clear();
        let mut room = room;
        let mut fits = false;
        for compressor in &mut self.compressors {
            compressor.reset();
            self.attempt.clear();
            self.attempt.resize(room, 0);
            let (status, _, written) = compress(compressor, &self.plane, &mut self.attempt, TDEFLFlush::Finish);
            if status == TDEFLStatus::Done && written < room {
                self.attempt.truncate(written);
                std::mem::swap(&mut self.attempt, &mut self.deflated);
                room = written;
                fits = true;
            }
        }
        fits
    }
}

/// The greatest number that divides all of them; 0 if all are 0.
fn common_divisor(numbers: &[u64]) -> u64 {
    let mut divisor = 0;
    for &number in numbers {
        let (mut low, mut high) = (divisor, number);
        while high != 0 {
            (low, high) = (high, low % high);
        }
        divisor = low;
        if divisor == 1 {
            break;
        }
    }
    divisor
}

/// About how many bytes an entropy coder makes of them, with its table.
fn entropy_bytes(bytes: &[u8]) -> usize {
    let mut counts = [0_u32; 256];
    for &byte in bytes {
        counts[usize::from(byte)] += 1;
    }
    let present = counts.iter().filter(|&&count| count > 0);
    let total = bytes.len() as f64;
    let bits: f64 = present
        .clone()
        .map(|&count| f64::from(count) * (total / f64::from(count)).log2())
        .sum();
    (bits / 8.0) as usize + present.count() / 2
}

/// Decodes columns.
pub(crate) struct Unpacker {
    decompressor: Box<DecompressorOxide>,
    plane: Vec<u8>,
}

impl Unpacker {
    pub(crate) fn new() -> Self {
        Self {
            decompressor: Box::default(),
            plane: Vec::new(),
        }
    }

    pub(crate) fn words(&mut self, count: usize, from: &mut Reader<'_>) -> Result<Vec<u64>, DecodeError> {
        let planes = from.byte()?;
        if planes > 8 {
            return Err(DecodeError::Encoding(planes));
        }
        let mut words = vec![0_u64; count];
        for plane in 0..planes {
            let shift = 8 * u32::from(plane);
            match from.byte()? {
                EQUAL => {
                    let bits = u64::from(from.byte()?) << shift;
                    words.iter_mut().for_each(|word| *word |= bits);
                }
                STORED => add_plane(&mut words, from.take(count)?, shift),
                DEFLATED => {
                    let length = usize::try_from(from.number()?).map_err(|_| DecodeError::Truncated)?;
                    let deflated = from.take(length)?;
                    add_plane(&mut words, self.inflate(deflated, count)?, shift);
                }
                unknown => return Err(DecodeError::Encoding(unknown)),
            }
        }
        Ok(words)
    }

    pub(crate) fn numbers(&mut self, count: usize, from: &mut Reader<'_>) -> Result<Vec<i64>, DecodeError> {
        if count == 0 {
            return Ok(Vec::new());
        }
        let mut number = from.signed()?;
        let mut numbers = Vec::with_capacity(count);
        numbers.push(number);
        if count > 1 {
            let least = from.signed()?;
            let unit = from.number()?;
            for rest in self.words(count - 1, from)? {
                let difference = (rest.wrapping_mul(unit) as i64).wrapping_add(least);
                number = number.wrapping_add(difference);
                numbers.push(number);
            }
        }
        Ok(numbers)
    }

    fn inflate(&mut self, deflated: &[u8], count: usize) -> Result<&[u8], DecodeError> {
        self.decompressor.init();
        self.plane.clear();
        self.plane.resize(count, 0);
        let flags = TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
        let (status, read, written) = decompress(&mut self.decompressor, deflated, &mut self.plane, 0, flags);
        match status {
            TINFLStatus::Done if read == deflated.len() && written == count => Ok(&self.plane),
            _ => Err(DecodeError::Compressed),
        }
    }
}

fn add_plane(words: &mut [u64], plane: &[u8], shift: u32) {
    for (word, &byte) in words.iter_mut().zip(plane) {
        *word |= u64::from(byte) << shift;
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{any, proptest};

    use super::{Effort, Packer, Reader, Unpacker, common_divisor};

    proptest! {
        #[test]
        fn any_numbers_round_trip(numbers in vec(any::<i64>(), 0..300), narrow in 0_u32..64) {
            let numbers: Vec<i64> = numbers.iter().map(|number| number >> narrow).collect();
            for effort in [Effort::Live, Effort::Sealed] {
                let mut bytes = Vec::new();
                Packer::new(effort).write_numbers(&numbers, &mut bytes);
                let mut reader = Reader::new(&bytes);
                assert_eq!(Unpacker::new().numbers(numbers.len(), &mut reader), Ok(numbers.clone()));
                assert_eq!(reader.end(), Ok(()));
            }
        }
    }

    #[test]
    fn a_regular_column_takes_a_few_bytes() {
        let numbers: Vec<i64> = (0..4_000).map(|index| 1_700_000_000 + index * 250).collect();
        let mut bytes = Vec::new();
        Packer::new(Effort::Live).write_numbers(&numbers, &mut bytes);
        assert!(bytes.len() <= 16, "{} bytes", bytes.len());
    }

    #[test]
    fn the_unit_of_times_is_found() {
        assert_eq!(common_divisor(&[3_000, 0, 7_000]), 1_000);
        assert_eq!(common_divisor(&[0, 0]), 0);
        assert_eq!(common_divisor(&[4, 9, 8]), 1);
    }
}
