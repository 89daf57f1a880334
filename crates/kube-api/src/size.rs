//! The size of values and texts, and how they are shortened in messages.

use std::fmt::{self, Write as _};
use std::io;

use serde_json::{Number, Value};

/// The largest text of an object that a change may lead to: as much as a request may send.
pub const OBJECT_BYTES_MAX: usize = 3 * 1024 * 1024;
/// How many doubtful fields are told of one object, as kube-apiserver has it.
const NOTED_MAX: usize = 100;
/// How much is told of one path.
const PATH_BYTES_MAX: usize = 1024;

/// Two brackets, braces or quotes.
const PAIR_BYTES: usize = 2;

/// The length of a value's JSON text, which is not made. Counted without the serializer, which takes as long as if it
/// wrote: each write counts its object twice.
pub fn text_bytes(value: &Value) -> usize {
    // All but the last are followed by a comma.
    let commas = |count: usize| count.saturating_sub(1);
    match value {
        Value::Null | Value::Bool(true) => 4,
        Value::Bool(false) => 5,
        Value::Number(number) => number_bytes(number),
        Value::String(text) => quoted_bytes(text),
        Value::Array(items) => PAIR_BYTES + commas(items.len()) + items.iter().map(text_bytes).sum::<usize>(),
        Value::Object(fields) => {
            let each = fields
                .iter()
                .map(|(name, field)| quoted_bytes(name) + ":".len() + text_bytes(field));
            PAIR_BYTES + commas(fields.len()) + each.sum::<usize>()
        }
    }
}

/// The same of a text that is no value.
pub(crate) fn quoted_bytes(text: &str) -> usize {
    let is_escaped = |byte: &u8| *byte < b' ' || *byte == b'"' || *byte == b'\\';
    // Few texts have any, which is counted many bytes at a time.
    let more: usize = match text.bytes().filter(is_escaped).count() {
        0 => 0,
        _ => text.bytes().map(escape_bytes).sum(),
    };
    PAIR_BYTES + text.len() + more
}

/// How much longer a byte of a text is where it is escaped, as `\n` or `\u0001`.
fn escape_bytes(byte: u8) -> usize {
    const BACKSPACE: u8 = 0x08;
    const FORM_FEED: u8 = 0x0c;
    match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | BACKSPACE | FORM_FEED => 1,
        control if control < b' ' => 5,
        _ => 0,
    }
}

/// The same of a number. What fractions look like is the serializer's matter.
fn number_bytes(number: &Number) -> usize {
    let mut counter = Counter(0);
    // The counter takes everything.
    let _never_fails = serde_json::to_writer(&mut counter, number);
    counter.0
}

/// What a value takes in a list, a first field with its map, and each further field.
pub(crate) const ITEM_BYTES: usize = size_of::<Value>();
pub(crate) const MAP_BYTES: usize = 640;
pub(crate) const FIELD_BYTES: usize = 64;

/// About what a value takes in memory beside its texts: a map of one field a hundred times its text.
pub fn held_bytes(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(|item| ITEM_BYTES + held_bytes(item)).sum(),
        Value::Object(fields) => {
            let own = MAP_BYTES * usize::from(!fields.is_empty());
            own + fields
                .values()
                .map(|field| FIELD_BYTES + held_bytes(field))
                .sum::<usize>()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

struct Counter(usize);

impl io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Notes a path. Thousands of fields may stand below a key of a megabyte: of long paths the beginning is noted, of
/// many paths the first.
pub(crate) fn note(found: &mut Vec<String>, path: &impl fmt::Display) {
    if found.len() < NOTED_MAX {
        let mut start = Start(String::new());
        let text = match write!(start, "{path}") {
            Ok(()) => start.0,
            Err(fmt::Error) => start.0 + "…",
        };
        found.push(text);
    }
}

/// Takes as much of a text as is told.
struct Start(String);

impl fmt::Write for Start {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = PATH_BYTES_MAX.saturating_sub(self.0.len());
        if text.len() <= room {
            self.0.push_str(text);
            return Ok(());
        }
        self.0.push_str(&text[..text.floor_char_boundary(room)]);
        Err(fmt::Error)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_is_measured_as_it_would_be_written() {
        let values = [
            json!([null, true, false]),
            json!({"a": ["é\n", 1.5, {"b": true}], "b\"\u{2}": [], "c": {}}),
            json!({"a": {"b": 1}}),
            json!([0, 10, -1, u64::MAX, i64::MIN, 1.5, -0.0, 1e300, 0.1]),
        ];
        for value in values {
            assert_eq!(text_bytes(&value), value.to_string().len(), "{value}");
        }
        for byte in 0..=u8::MAX {
            let text = format!("a{}b", char::from(byte));
            assert_eq!(quoted_bytes(&text), json!(text).to_string().len(), "{text:?}");
        }
        assert_eq!(quoted_bytes(""), json!("").to_string().len());
    }

    #[test]
    fn what_is_noted_is_bounded_in_number_and_length() {
        let mut found = Vec::new();
        for _ in 0..1000 {
            note(&mut found, &"é".repeat(1 << 20));
        }
        assert_eq!(found.len(), 100);
        assert_eq!(found[0], "é".repeat(512) + "…");
    }
}
