//! Text in little room: the form that MySQL's `COMPRESS()` makes and its `UNCOMPRESS()`
//! reads, so that a history can be read in SQL. The length in four bytes, then zlib.
//! <https://dev.mysql.com/doc/refman/8.4/en/encryption-functions.html#function_compress>

use miniz_oxide::deflate::compress_to_vec_zlib;
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;

/// How a payload is written, as the column `encoding` says it. Others may follow.
pub(crate) const ENCODING: i64 = 1;

/// A higher level takes longer and saves nothing on objects of a few kilobytes.
const LEVEL: u8 = 6;
/// For texts that are dropped before long: less time, and a little more room.
const FAST_LEVEL: u8 = 1;
const LENGTH_BYTES: usize = 4;

pub(crate) fn pack(text: &str) -> Vec<u8> {
    packed(text, LEVEL)
}

/// The same in less time.
pub(crate) fn pack_fast(text: &str) -> Vec<u8> {
    packed(text, FAST_LEVEL)
}

fn packed(text: &str, level: u8) -> Vec<u8> {
    let length = u32::try_from(text.len()).expect("an object is shorter than 4 GiB");
    let mut packed = length.to_le_bytes().to_vec();
    packed.extend(compress_to_vec_zlib(text.as_bytes(), level));
    packed
}

/// # Errors
/// What is wrong with the payload.
pub(crate) fn unpack(encoding: i64, packed: &[u8]) -> Result<String, String> {
    if encoding != ENCODING {
        return Err(format!("encoding {encoding} is not known: a newer program wrote it"));
    }
    let (length, zlib) = packed
        .split_first_chunk::<LENGTH_BYTES>()
        .ok_or("the payload is cut off")?;
    let length = u32::from_le_bytes(*length) as usize;
    let text = decompress_to_vec_zlib_with_limit(zlib, length).map_err(|error| error.to_string())?;
    if text.len() != length {
        return Err(format!("{} bytes where {length} were packed", text.len()));
    }
    String::from_utf8(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_comes_back_to_the_byte() {
        let long = "{\"größe\":1.0}".repeat(50_000);
        for text in ["{}", "\u{0}", &long] {
            assert_eq!(unpack(ENCODING, &pack(text)).as_deref(), Ok(text));
            assert_eq!(unpack(ENCODING, &pack_fast(text)).as_deref(), Ok(text));
        }
        assert!(pack(&long).len() < long.len() / 100);
    }

    #[test]
    fn a_damaged_payload_is_reported_and_never_half_read() {
        let packed = pack("{\"metadata\":{\"name\":\"a\"}}");
        for end in 0..packed.len() {
            assert!(unpack(ENCODING, &packed[..end]).is_err(), "{end} bytes");
        }
        let mut flipped = packed.clone();
        *flipped.last_mut().expect("not empty") ^= 1;
        assert!(unpack(ENCODING, &flipped).is_err(), "the checksum tells");
        let mut longer = packed.clone();
        longer[0] -= 1;
        assert!(unpack(ENCODING, &longer).is_err(), "more than was packed");
        assert!(unpack(2, &packed).is_err_and(|message| message.contains("newer program")));
    }
}
