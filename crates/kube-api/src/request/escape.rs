//! Texts as parts of URLs, and back. <https://www.rfc-editor.org/rfc/rfc3986#section-2.1>

use std::fmt::Write as _;

/// A text as a part of a URL.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => escaped.push(byte.into()),
            other => write!(escaped, "%{other:02X}").expect("a String takes all text"),
        }
    }
    escaped
}

/// Undoes `%41`; what is no valid escape stays as it is.
pub fn unescaped(text: &str) -> String {
    // Most parts of most paths, each of which is read with every request.
    if !text.contains('%') {
        return text.to_owned();
    }
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escape = bytes.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        match escape.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()) {
            Some(byte) => {
                decoded.push(byte);
                at += 3;
            }
            None => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}
