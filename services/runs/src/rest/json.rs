//! Bodies in JSON, as clients write them: also with the bare `NaN`, `Infinity` and `-Infinity` of Python, which are
//! read as the strings that stand for them.

use serde::de::DeserializeOwned;
use serde_json::error::Category;

use crate::refusal::{Code, Refusal};

/// Reads a body. One of nothing is an empty object.
///
/// # Errors
/// What is no JSON, and JSON that is no such request. What is missing has a reason of its own.
pub(super) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    let body = if body.iter().all(u8::is_ascii_whitespace) {
        b"{}"
    } else {
        body
    };
    match serde_json::from_slice(body) {
        Err(error) if error.classify() == Category::Syntax => match quoted(body) {
            Some(text) => serde_json::from_slice(&text).map_err(|error| refused(&error)),
            None => Err(refused(&error)),
        },
        read => read.map_err(|error| refused(&error)),
    }
}

fn refused(error: &serde_json::Error) -> Refusal {
    let text = error.to_string();
    let (reason, wrong) = match error.classify() {
        Category::Data if text.starts_with("missing field") => ("REQUIRED", "not such a request"),
        Category::Data => ("INVALID_FIELD", "not such a request"),
        Category::Syntax | Category::Eof | Category::Io => ("INVALID_JSON", "no JSON"),
    };
    let message = format!("the body is {wrong}: {text}");
    let field = text
        .strip_prefix("missing field `")
        .and_then(|rest| rest.split('`').next());
    Refusal::new(Code::InvalidArgument, reason, message).at(field.unwrap_or_default())
}

/// The text with quotes around bare words for numbers; none where there is no such word. Texts stay as they are.
fn quoted(text: &[u8]) -> Option<Vec<u8>> {
    const WORDS: [&[u8]; 3] = [b"NaN", b"Infinity", b"-Infinity"];
    let mut out = Vec::with_capacity(text.len() + 64);
    let (mut rest, mut in_text, mut found) = (text, false, false);
    while let Some((&byte, after)) = rest.split_first() {
        if in_text {
            let length = if byte == b'\\' { 2 } else { 1 };
            in_text = byte != b'"';
            let (taken, after) = rest.split_at(length.min(rest.len()));
            out.extend_from_slice(taken);
            rest = after;
            continue;
        }
        if let Some(word) = WORDS.iter().find(|word| rest.starts_with(word)) {
            out.push(b'"');
            out.extend_from_slice(word);
            out.push(b'"');
            (rest, found) = (&rest[word.len()..], true);
            continue;
        }
        in_text = byte == b'"';
        out.push(byte);
        rest = after;
    }
    found.then_some(out)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn bare_words_for_numbers_are_read_and_texts_stay() {
        let text = br#"{"a":[NaN,-Infinity , Infinity],"NaN":"NaN, \" -Infinity\\","b":"\\"}"#;
        let read: Value = read(text).expect("JSON");
        let expected = serde_json::json!({
            "a": ["NaN", "-Infinity", "Infinity"], "NaN": "NaN, \" -Infinity\\", "b": "\\",
        });
        assert_eq!(read, expected);
    }

    #[test]
    fn what_is_wrong_with_a_body_is_said() {
        #[derive(Debug, serde::Deserialize)]
        struct Body {
            #[serde(rename = "run_id")]
            _run_id: String,
        }
        for (text, reason, field) in [
            ("{}", "REQUIRED", "run_id"),
            ("", "REQUIRED", "run_id"),
            (r#"{"run_id":5}"#, "INVALID_FIELD", ""),
            ("{", "INVALID_JSON", ""),
            ("[NaN", "INVALID_JSON", ""),
            ("\"\\", "INVALID_JSON", ""),
        ] {
            let refusal = read::<Body>(text.as_bytes()).expect_err("refused");
            assert_eq!((refusal.reason, refusal.field.as_str()), (reason, field), "{text}");
        }
    }

    #[test]
    fn no_bytes_make_it_panic() {
        let text = br#"{"a":[NaN,"\\\"",-Infinity],"b":"x"}"#;
        for at in 0..text.len() {
            for byte in [b'"', b'\\', b'N', b'-', 0xff, b'{'] {
                let mut other = text.to_vec();
                other[at] = byte;
                let _read = read::<Value>(&other[..]);
                let _cut = read::<Value>(&other[..at]);
            }
        }
    }
}
