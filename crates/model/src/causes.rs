//! An error with its causes as one text, for logs and for people.

use std::error::Error;

/// Joins an error with its causes, outermost first, leaving out a cause whose text the line already holds.
///
/// # Example
/// ```
/// use kindex_model::causes::chain;
///
/// let error = "x".parse::<u8>().expect_err("no number");
/// assert_eq!(chain(&error), "invalid digit found in string");
/// ```
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Failed {
        text: &'static str,
        #[source]
        cause: Option<Box<Failed>>,
    }

    /// An error with these texts, outermost first.
    fn failed(texts: &[&'static str]) -> Failed {
        let (&text, causes) = texts.split_first().expect("an error has a text");
        let cause = (!causes.is_empty()).then(|| Box::new(failed(causes)));
        Failed { text, cause }
    }

    /// As if only the first cause counted, or every one were added.
    #[test]
    fn every_cause_is_said_once_and_the_outermost_first() {
        let said = |texts: &[&'static str]| chain(&failed(texts));
        assert_eq!(said(&["no answer"]), "no answer");
        assert_eq!(said(&["no answer", "cut", "reset"]), "no answer: cut: reset");
        assert_eq!(
            said(&["no answer: cut", "cut", "reset"]),
            "no answer: cut: reset",
            "what names its cause itself does not name it twice, and hides none behind it"
        );
    }
}
