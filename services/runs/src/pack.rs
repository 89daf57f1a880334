//! gzip: bodies that came packed, unpacked within a bound that their sender said before and that was reserved for them.

use std::io::Read;

use flate2::bufread::GzDecoder;

/// A header and a trailer.
const PACKED_BYTES_MIN: usize = 18;

/// Why a body cannot be unpacked.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// It is no gzip, or not whole.
    #[error("the body is not a whole gzip member: {0}")]
    Broken(#[from] std::io::Error),
    /// It holds more than is read.
    #[error("the body has more than {0} bytes once it is unpacked")]
    TooLarge(usize),
    /// It holds more than its trailer says.
    #[error("the body is not a whole gzip member: its trailer says another length")]
    Length,
}

/// How many bytes a packed body says to hold. What it says is only a promise, which [`unpack`] holds it to.
#[must_use]
pub(crate) fn claimed_bytes(packed: &[u8]) -> usize {
    let trailer = packed.last_chunk::<4>().filter(|_| packed.len() >= PACKED_BYTES_MIN);
    trailer.map_or(0, |length| u32::from_le_bytes(*length) as usize)
}

/// A packed body, unpacked.
///
/// # Errors
/// What is no single gzip member, and one that holds more than `max` or other than it claims.
pub fn unpack(packed: &[u8], max: usize) -> Result<Vec<u8>, PackError> {
    let claimed = claimed_bytes(packed);
    if claimed > max {
        return Err(PackError::TooLarge(max));
    }
    let mut whole = Vec::with_capacity(claimed);
    let mut reader = GzDecoder::new(packed);
    // One byte more shows that there is more.
    (&mut reader).take(claimed as u64 + 1).read_to_end(&mut whole)?;
    match whole.len() == claimed && reader.into_inner().is_empty() {
        true => Ok(whole),
        false => Err(PackError::Length),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text).expect("a vector takes all");
        encoder.finish().expect("a vector takes all")
    }

    #[test]
    fn what_was_packed_comes_back_within_the_bound() {
        let text = vec![b'x'; 100_000];
        let packed = packed(&text);
        assert_eq!(claimed_bytes(&packed), text.len());
        assert_eq!(unpack(&packed, text.len()).expect("it fits"), text);
        assert!(matches!(
            unpack(&packed, text.len() - 1),
            Err(PackError::TooLarge(99_999))
        ));
    }

    #[test]
    fn a_bomb_that_claims_little_is_not_unpacked_further_than_it_claims() {
        let mut bomb = packed(&vec![0; 50_000_000]);
        let end = bomb.len() - 4;
        bomb[end..].copy_from_slice(&100_u32.to_le_bytes());
        assert!(matches!(unpack(&bomb, 4_000_000), Err(PackError::Length)));
    }

    #[test]
    fn what_is_no_gzip_is_refused() {
        let good = packed(b"{}");
        let twice = [good.clone(), good.clone()].concat();
        let cut = good[..good.len() - 1].to_vec();
        for broken in [Vec::new(), b"{}".to_vec(), vec![0x1f, 0x8b], cut, twice] {
            assert!(unpack(&broken, 1000).is_err(), "{broken:?}");
        }
    }
}
