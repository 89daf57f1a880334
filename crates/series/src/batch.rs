//! The body of a batch as it is logged: cheap to write, all metrics in one, in the order in which points arrived. What
//! metrics are called is kept beside; the body has their numbers.

use crate::error::DecodeError;
use crate::points::Columns;
use crate::varint::{self, Reader};

const FORMAT: u8 = 1;

/// The fewest bytes of a point: a name, a step, a time and eight of its value.
const POINT_BYTES_MIN: u64 = 11;

/// A decoded body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Body {
    /// The numbers of its metrics; a point's name is an index into them.
    pub numbers: Vec<u32>,
    /// Its points, in the order in which they arrived.
    pub columns: Columns,
}

/// Encodes points, of which `numbers[columns.names[i]]` is the metric of the point `i`.
#[must_use]
pub fn encode(numbers: &[u32], columns: &Columns) -> Vec<u8> {
    let columns = encode_columns(columns);
    let mut out = Vec::with_capacity(columns.len() + 3 * numbers.len() + 6);
    encode_head(numbers, &mut out);
    out.extend_from_slice(&columns);
    out
}

/// The first part of a body, which needs the numbers of its metrics.
pub fn encode_head(numbers: &[u32], out: &mut Vec<u8>) {
    out.push(FORMAT);
    varint::write(numbers.len() as u64, out);
    for &number in numbers {
        varint::write(u64::from(number), out);
    }
}

/// The second part of a body, which can be encoded before metrics have numbers.
#[must_use]
pub fn encode_columns(columns: &Columns) -> Vec<u8> {
    let mut out = Vec::with_capacity(columns.len() * 14 + 10);
    varint::write(columns.len() as u64, &mut out);
    for &name in &columns.names {
        varint::write(u64::from(name), &mut out);
    }
    write_differences(&columns.steps, &mut out);
    write_differences(&columns.times, &mut out);
    for bits in &columns.bits {
        out.extend_from_slice(&bits.to_le_bytes());
    }
    out
}

/// Decodes a body. Never panics, and allocates no more than a few times its length.
///
/// # Errors
/// The bytes are not what `encode` returns.
pub fn decode(bytes: &[u8]) -> Result<Body, DecodeError> {
    let mut reader = Reader::new(bytes);
    let format = reader.byte()?;
    if format != FORMAT {
        return Err(DecodeError::Format(format));
    }
    let numbers = read_numbers(&mut reader)?;
    let columns = read_columns(numbers.len(), &mut reader)?;
    reader.end()?;
    Ok(Body { numbers, columns })
}

/// The numbers of the metrics of a body, without its points.
///
/// # Errors
/// The bytes do not begin as `encode` begins.
pub fn decode_head(bytes: &[u8]) -> Result<Vec<u32>, DecodeError> {
    let mut reader = Reader::new(bytes);
    let format = reader.byte()?;
    if format != FORMAT {
        return Err(DecodeError::Format(format));
    }
    read_numbers(&mut reader)
}

fn write_differences(numbers: &[i64], out: &mut Vec<u8>) {
    let mut last = 0_i64;
    for &number in numbers {
        varint::write_signed(number.wrapping_sub(last), out);
        last = number;
    }
}

/// A count of things that take at least so many bytes each.
fn read_count(reader: &mut Reader<'_>, bytes_min: u64) -> Result<usize, DecodeError> {
    let count = reader.number()?;
    if count > reader.left() as u64 / bytes_min {
        return Err(DecodeError::Truncated);
    }
    usize::try_from(count).map_err(|_| DecodeError::Truncated)
}

fn read_numbers(reader: &mut Reader<'_>) -> Result<Vec<u32>, DecodeError> {
    let count = read_count(reader, 1)?;
    let mut numbers = Vec::with_capacity(count);
    for _ in 0..count {
        let number = reader.number()?;
        numbers.push(u32::try_from(number).map_err(|_| DecodeError::UnknownName(number))?);
    }
    Ok(numbers)
}

fn read_columns(names: usize, reader: &mut Reader<'_>) -> Result<Columns, DecodeError> {
    let count = read_count(reader, POINT_BYTES_MIN)?;
    let mut columns = Columns::with_capacity(count);
    for _ in 0..count {
        let name = reader.number()?;
        if name >= names as u64 {
            return Err(DecodeError::UnknownName(name));
        }
        columns.names.push(name as u32);
    }
    read_differences(count, &mut columns.steps, reader)?;
    read_differences(count, &mut columns.times, reader)?;
    let (values, _) = reader.take(8 * count)?.as_chunks::<8>();
    columns.bits.extend(values.iter().map(|bits| u64::from_le_bytes(*bits)));
    Ok(columns)
}

fn read_differences(count: usize, out: &mut Vec<i64>, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
    let mut last = 0_i64;
    for _ in 0..count {
        last = last.wrapping_add(reader.signed()?);
        out.push(last);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{Strategy, any, proptest};

    use super::{Columns, DecodeError, decode, decode_head, encode};

    fn columns() -> impl Strategy<Value = Columns> {
        let point = (0_u32..40, any::<i64>(), any::<i64>(), any::<u64>());
        vec(point, 0..200).prop_map(|points| {
            let mut columns = Columns::default();
            for (name, step, time, bits) in points {
                columns.push(name, step, time, bits);
            }
            columns
        })
    }

    proptest! {
        #[test]
        fn every_batch_round_trips_to_the_bit(columns in columns(), first in any::<u32>()) {
            let numbers: Vec<u32> = (0..40_u32).map(|name| first.wrapping_add(name)).collect();
            let bytes = encode(&numbers, &columns);
            let body = decode(&bytes).unwrap();
            assert_eq!(decode_head(&bytes), Ok(numbers.clone()));
            assert_eq!((body.numbers, body.columns), (numbers, columns));
        }

        #[test]
        fn hostile_bytes_never_panic(bytes in vec(any::<u8>(), 0..400)) {
            let _ = decode(&bytes);
            let mut known = vec![1];
            known.extend(bytes);
            let _ = decode(&known);
        }

        #[test]
        fn a_damaged_batch_never_panics(columns in columns(), at in any::<usize>(), byte in any::<u8>()) {
            let mut bytes = encode(&(0..40).collect::<Vec<u32>>(), &columns);
            let at = at % bytes.len();
            assert!(decode(&bytes[..at]).is_err());
            bytes[at] = byte;
            let _ = decode(&bytes);
        }
    }

    #[test]
    fn a_point_of_a_metric_that_is_not_listed_is_refused() {
        let mut columns = Columns::default();
        columns.push(2, 1, 1, 1);
        assert_eq!(decode(&encode(&[7, 8], &columns)), Err(DecodeError::UnknownName(2)));
    }

    #[test]
    fn bytes_after_the_last_point_are_refused() {
        let mut bytes = encode(&[], &Columns::default());
        bytes.push(0);
        assert_eq!(decode(&bytes), Err(DecodeError::Trailing(1)));
    }

    #[test]
    fn a_step_of_fifty_metrics_takes_twelve_bytes_a_point() {
        let mut columns = Columns::default();
        for index in 0..1_000_u32 {
            let step = i64::from(index / 50);
            columns.push(
                index % 50,
                step,
                1_700_000_000_000_000_000 + step * 100_000_000,
                u64::from(index),
            );
        }
        let bytes = encode(&(0..50).collect::<Vec<u32>>(), &columns);
        assert!(bytes.len() < 12_000, "{} bytes", bytes.len());
    }
}
