//! Numbers of variable length: seven bits a byte, the lowest first; signed ones zigzag, so that small ones are short.

use crate::error::DecodeError;

/// Appends a number.
pub(crate) fn write(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends a signed number.
pub(crate) fn write_signed(number: i64, out: &mut Vec<u8>) {
    write(((number << 1) ^ (number >> 63)) as u64, out);
}

/// What is left of some bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'b> {
    rest: &'b [u8],
}

impl<'b> Reader<'b> {
    pub(crate) fn new(bytes: &'b [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn left(&self) -> usize {
        self.rest.len()
    }

    #[inline]
    pub(crate) fn byte(&mut self) -> Result<u8, DecodeError> {
        let (&first, rest) = self.rest.split_first().ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(first)
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'b [u8], DecodeError> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    #[inline]
    pub(crate) fn number(&mut self) -> Result<u64, DecodeError> {
        let first = self.byte()?;
        if first < 0x80 {
            return Ok(u64::from(first));
        }
        self.number_from(first)
    }

    fn number_from(&mut self, first: u8) -> Result<u64, DecodeError> {
        let mut number = u64::from(first & 0x7f);
        for shift in (7..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(DecodeError::NumberTooLong);
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(DecodeError::NumberTooLong)
    }

    #[inline]
    pub(crate) fn signed(&mut self) -> Result<i64, DecodeError> {
        let number = self.number()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// Refuses what is left over.
    pub(crate) fn end(&self) -> Result<(), DecodeError> {
        match self.left() {
            0 => Ok(()),
            left => Err(DecodeError::Trailing(left)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{DecodeError, Reader, write, write_signed};

    #[test]
    fn numbers_of_every_length_round_trip() {
        for shift in 0..64 {
            for number in [1_u64 << shift, (1 << shift) - 1, u64::MAX >> shift] {
                let mut bytes = Vec::new();
                write(number, &mut bytes);
                write_signed(number as i64, &mut bytes);
                let mut reader = Reader::new(&bytes);
                assert_eq!(reader.number(), Ok(number));
                assert_eq!(reader.signed(), Ok(number as i64));
                assert_eq!(reader.end(), Ok(()));
            }
        }
    }

    #[test]
    fn a_number_beyond_64_bits_is_refused() {
        let mut bytes = vec![0xff; 9];
        bytes.push(0x02);
        assert_eq!(Reader::new(&bytes).number(), Err(DecodeError::NumberTooLong));
        assert_eq!(Reader::new(&[0x80; 20]).number(), Err(DecodeError::NumberTooLong));
        assert_eq!(Reader::new(&[0x80]).number(), Err(DecodeError::Truncated));
    }
}
