//! The size of values and texts, and how they are shortened in messages.

use std::fmt::{self, Write as _};
use std::io;

use serde::Serialize;
use serde_json::Value;

/// The largest text of an object that a change may lead to: as much as a request may send.
pub const OBJECT_BYTES_MAX: usize = 3 * 1024 * 1024;
/// How many doubtful fields are told of one object, as kube-apiserver has it.
const NOTED_MAX: usize = 100;
/// How much is told of one path.
const PATH_BYTES_MAX: usize = 1024;

/// The length of a value's JSON text, which is not made.
pub fn text_bytes(value: &Value) -> usize {
    written_bytes(value)
}

/// The same of a text that is no value.
pub(crate) fn quoted_bytes(text: &str) -> usize {
    written_bytes(text)
}

fn written_bytes(value: &(impl Serialize + ?Sized)) -> usize {
    let mut counter = Counter(0);
    // The counter takes everything.
    let _never_fails = serde_json::to_writer(&mut counter, value);
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
        for value in [json!(null), json!({"a": ["é\n", 1.5, {"b": true}]}), json!("\u{1}")] {
            assert_eq!(text_bytes(&value), value.to_string().len());
        }
        assert_eq!(quoted_bytes("é\n"), json!("é\n").to_string().len());
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
