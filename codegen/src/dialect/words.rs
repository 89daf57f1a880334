//! A statement as words, so that dialects find clauses in what people wrote. What the words mean is not known here.

/// In capitals; a clause such as `LOCK=NONE` is one.
pub(super) fn words(statement: &str) -> Vec<String> {
    let words = statement.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '='));
    let words = words.filter(|word| !word.is_empty());
    words.map(str::to_ascii_uppercase).collect()
}

/// Whether one word stands right in front of the other.
pub(super) fn has_pair(words: &[String], first: &str, second: &str) -> bool {
    words.windows(2).any(|pair| pair[0] == first && pair[1] == second)
}
