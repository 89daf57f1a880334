//! What LIKE compares a text with: `%` stands for any characters, `_` for one, and after a backslash
//! both stand for themselves. The case of letters counts. Engines spell it
//! differently, but it matches the same texts.

/// A pattern that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Character(char),
    AnyCharacter,
    AnyCharacters,
}

/// Most characters of a pattern.
const CHARACTERS_MAX: usize = 1_000;

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.chars().count() > CHARACTERS_MAX {
            return Err(format!("a pattern has at most {CHARACTERS_MAX} characters"));
        }
        let (mut parts, mut characters) = (Vec::new(), text.chars());
        while let Some(character) = characters.next() {
            parts.push(match character {
                '%' => Part::AnyCharacters,
                '_' => Part::AnyCharacter,
                '\\' => match characters.next() {
                    Some(escaped @ ('%' | '_' | '\\')) => Part::Character(escaped),
                    _ => return Err(r"expected %, _ or \ after a backslash in a pattern".to_owned()),
                },
                // SQLite would end the text here.
                '\0' => return Err("a pattern must not contain NUL".to_owned()),
                other => Part::Character(other),
            });
        }
        Ok(Self(parts))
    }

    /// Whether the pattern begins with a literal character, so that a key can serve it.
    pub fn has_prefix(&self) -> bool {
        matches!(self.0.first(), Some(Part::Character(_)))
    }

    /// The pattern as an engine spells it: its wildcards for any characters and for one, and how it escapes a literal
    /// wildcard.
    pub fn spelled(&self, any: char, one: char, quote: impl Fn(char) -> String) -> String {
        let parts = self.0.iter().map(|part| match part {
            Part::Character(character) => quote(*character),
            Part::AnyCharacter => one.to_string(),
            Part::AnyCharacters => any.to_string(),
        });
        parts.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_known_where_the_pattern_begins_with_a_character() {
        assert!(Pattern::parse(r"a%").expect("a pattern").has_prefix());
        assert!(Pattern::parse(r"\%a").expect("a pattern").has_prefix());
        assert!(!Pattern::parse("%a").expect("a pattern").has_prefix());
        assert!(!Pattern::parse("").expect("a pattern").has_prefix());
    }

    #[test]
    fn a_backslash_that_protects_nothing_is_refused() {
        for text in [r"\", r"a\", r"\a", r"\\\", "\0"] {
            assert!(Pattern::parse(text).is_err(), "{text}");
        }
        assert!(Pattern::parse(&"é".repeat(1_000)).is_ok());
        assert!(Pattern::parse(&"%".repeat(1_001)).is_err());
    }
}
