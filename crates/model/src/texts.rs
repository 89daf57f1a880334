//! The texts of a registry by the words of their dialects, as the generator calls these. Knows no dialect.

use crate::kind::{Migration, Registry};

impl Registry {
    /// The schema in the dialect that has this word; `None` if there is none.
    pub fn schema(&self, dialect: &str) -> Option<&'static str> {
        in_dialect(self.schemas, dialect)
    }
}

impl Migration {
    /// As [`Registry::schema`], its own text.
    pub fn text(&self, dialect: &str) -> Option<&'static str> {
        in_dialect(self.texts, dialect)
    }
}

fn in_dialect(texts: &[(&'static str, &'static str)], dialect: &str) -> Option<&'static str> {
    let mut texts = texts.iter();
    texts.find(|(word, _)| *word == dialect).map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_by_the_word_of_its_dialect() {
        let registry = Registry {
            schemas: &[("one", "CREATE"), ("other", "")],
            ..Registry::EMPTY
        };
        let found = ["one", "other", "third"].map(|word| registry.schema(word));
        assert_eq!(found, [Some("CREATE"), Some(""), None]);
    }
}
