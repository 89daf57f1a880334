//! Values as the API server, a Go program, prints them into its messages: `%q` and `%v`. Knows none of the messages.

use std::fmt::Write as _;

use serde_json::{Number, Value};

/// How much of a wrong value is told.
const SHOWN_BYTES_MAX: usize = 16 * 1024;

/// A text in double quotes with Go's escapes.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            other if other.is_ascii_control() => push_code(&mut out, 'x', 2, other),
            '\'' => out.push('\''),
            // Debug escapes exactly the characters that are not printable.
            other if other.escape_debug().count() == 1 => out.push(other),
            other if u32::from(other) <= 0xffff => push_code(&mut out, 'u', 4, other),
            other => push_code(&mut out, 'U', 8, other),
        }
    }
    out.push('"');
    out
}

fn push_code(out: &mut String, letter: char, width: usize, character: char) {
    write!(out, "\\{letter}{:0width$x}", u32::from(character)).expect("a String takes any text");
}

/// A number in Go's default form: integers plainly, floats in the shortest form, with an exponent from 1e21 on and
/// below 1e-4.
pub fn number(number: &Number) -> String {
    match (number.as_i64(), number.as_f64()) {
        (Some(integer), _) => integer.to_string(),
        (None, Some(value)) => float(value),
        (None, None) => number.to_string(),
    }
}

/// A float in Go's default form.
pub(crate) fn float(value: f64) -> String {
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').expect("the e format has an exponent");
    let exponent: i32 = exponent.parse().expect("the e format has a whole exponent");
    if (-4..21).contains(&exponent) {
        return format!("{value}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// The value in `Invalid value: …`: scalars plainly, texts quoted, the rest as JSON.
pub(super) fn bad_value(value: &Value) -> String {
    let mut shown = whole(value);
    if shown.len() > SHOWN_BYTES_MAX {
        shown.truncate(shown.floor_char_boundary(SHOWN_BYTES_MAX));
        shown.push('…');
    }
    shown
}

fn whole(value: &Value) -> String {
    match value {
        Value::Bool(flag) => flag.to_string(),
        Value::Number(value) => number(value),
        Value::String(text) => quote(text),
        Value::Null | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_are_quoted_with_the_escapes_of_go() {
        assert_eq!(quote("a\"b\\\n\t\u{1}é'\u{200b}"), "\"a\\\"b\\\\\\n\\t\\x01é'\\u200b\"");
    }

    #[test]
    fn floats_take_an_exponent_only_when_very_large_or_small() {
        let texts: Vec<_> = [1.0, 0.5, 1e20, 1e21, 1.5e-7, 0.0001]
            .iter()
            .map(|value| float(*value))
            .collect();
        assert_eq!(
            texts,
            ["1", "0.5", "100000000000000000000", "1e+21", "1.5e-07", "0.0001"]
        );
    }

    #[test]
    fn lists_and_objects_are_json() {
        assert_eq!(bad_value(&json!({"a": [1, null, "x"]})), r#"{"a":[1,null,"x"]}"#);
        assert_eq!(bad_value(&json!(null)), "null");
    }
}
