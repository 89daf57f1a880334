//! The headers of answers, beside their code and their media type: who may keep them, and the warnings for the person
//! at the client. Knows nothing of connections.

/// `Cache-Control` of every answer: nobody keeps it.
pub const CACHE_CONTROL: &str = "no-cache, private";

/// A text as a `Warning` header, without its control characters, which no header may have.
/// <https://www.rfc-editor.org/rfc/rfc7234#section-5.5>
///
/// # Example
/// ```
/// use kindex_kube_api::headers::warning;
///
/// assert_eq!(warning("unknown field \"a\""), r#"299 - "unknown field \"a\"""#);
/// ```
pub fn warning(text: &str) -> String {
    let mut value = String::from("299 - \"");
    for character in text.chars().filter(|character| !character.is_control()) {
        if matches!(character, '"' | '\\') {
            value.push('\\');
        }
        value.push(character);
    }
    value.push('"');
    value
}

/// The text of a `Warning` header; `None` where it has none.
pub fn warning_text(value: &str) -> Option<String> {
    let quoted = value.split_once('"')?.1.strip_suffix('"')?;
    Some(quoted.replace("\\\"", "\"").replace("\\\\", "\\"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_that_is_written_is_read_again() {
        for text in ["", "plain", r#"a "b" c"#, r#"\"#, r#"\\"a\"#, r#"""#, "é"] {
            assert_eq!(warning_text(&warning(text)).as_deref(), Some(text));
        }
        assert_eq!(warning("a\r\nb\tc"), "299 - \"abc\"");
        assert_eq!((warning_text("299 - a"), warning_text("299 - \"a")), (None, None));
    }
}
