//! Columns of values: as bits, or as whole numbers where all of them are.

use crate::error::DecodeError;
use crate::planes::{Packer, Unpacker};
use crate::varint::{self, Reader};

/// As bits.
const BITS: u8 = 0;
/// As whole numbers, less the smallest.
const OFFSETS: u8 = 1;
/// As whole numbers, by their differences.
const DIFFERENCES: u8 = 2;

/// Beyond it a double does not hold every whole number.
const WHOLE_MAX: f64 = (1_u64 << 53) as f64;

/// Appends values.
pub(crate) fn write(bits: &[u64], packer: &mut Packer, out: &mut Vec<u8>) {
    let Some(numbers) = whole(bits) else {
        out.push(BITS);
        packer.write_words(bits, out);
        return;
    };
    let differences = numbers.windows(2).map(|pair| pair[1] - pair[0]);
    if span(differences) < span(numbers.iter().copied()) {
        out.push(DIFFERENCES);
        packer.write_numbers(&numbers, out);
        return;
    }
    let least = numbers.iter().copied().min().unwrap_or(0);
    let offsets: Vec<u64> = numbers.iter().map(|number| (number - least) as u64).collect();
    out.push(OFFSETS);
    varint::write_signed(least, out);
    packer.write_words(&offsets, out);
}

/// Reads so many values.
pub(crate) fn read(count: usize, unpacker: &mut Unpacker, from: &mut Reader<'_>) -> Result<Vec<u64>, DecodeError> {
    let to_bits = |number: i64| (number as f64).to_bits();
    match from.byte()? {
        BITS => unpacker.words(count, from),
        OFFSETS => {
            let least = from.signed()?;
            let offsets = unpacker.words(count, from)?;
            let number = |offset: u64| least.wrapping_add(offset as i64);
            Ok(offsets.into_iter().map(|offset| to_bits(number(offset))).collect())
        }
        DIFFERENCES => Ok(unpacker.numbers(count, from)?.into_iter().map(to_bits).collect()),
        unknown => Err(DecodeError::Encoding(unknown)),
    }
}

/// The values as whole numbers, if that gives back the same bits.
fn whole(bits: &[u64]) -> Option<Vec<i64>> {
    let whole = |&bits: &u64| {
        let value = f64::from_bits(bits);
        let number = value as i64;
        let is_same = value.abs() <= WHOLE_MAX && (number as f64).to_bits() == bits;
        is_same.then_some(number)
    };
    bits.iter().map(whole).collect()
}

fn span(numbers: impl Iterator<Item = i64>) -> u64 {
    let (min, max) = numbers.fold((i64::MAX, i64::MIN), |(min, max), number| {
        (min.min(number), max.max(number))
    });
    max.saturating_sub(min).max(0) as u64
}

#[cfg(test)]
mod tests {
    use super::{BITS, DIFFERENCES, OFFSETS, Packer, Reader, Unpacker, read, write};
    use crate::planes::Effort;

    /// How values were written, after they were read again.
    fn encoding(values: &[f64]) -> u8 {
        let bits: Vec<u64> = values.iter().map(|value| value.to_bits()).collect();
        let mut out = Vec::new();
        write(&bits, &mut Packer::new(Effort::Live), &mut out);
        let mut reader = Reader::new(&out);
        assert_eq!(read(bits.len(), &mut Unpacker::new(), &mut reader), Ok(bits));
        assert_eq!(reader.end(), Ok(()));
        out[0]
    }

    #[test]
    fn whole_numbers_are_kept_as_such() {
        assert_eq!(encoding(&[3.0, -7.0, 900.0, 12.0]), OFFSETS);
        assert_eq!(encoding(&[1000.0, 1002.0, 1003.0, 1005.0, 1006.0]), DIFFERENCES);
        assert_eq!(
            encoding(&[
                9_007_199_254_740_992.0,
                -9_007_199_254_740_992.0,
                9_007_199_254_740_992.0
            ]),
            OFFSETS
        );
    }

    #[test]
    fn what_whole_numbers_cannot_hold_is_kept_as_bits() {
        assert_eq!(encoding(&[0.0, -0.0]), BITS);
        assert_eq!(encoding(&[1.0, f64::NAN]), BITS);
        assert_eq!(encoding(&[1.0, f64::INFINITY]), BITS);
        assert_eq!(encoding(&[1.0, f64::MAX]), BITS);
        assert_eq!(encoding(&[1.0, 1.5]), BITS);
        assert_eq!(encoding(&[f64::from_bits(0x7ff8_dead_beef_0001)]), BITS);
    }
}
