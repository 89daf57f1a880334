//! Reading stanzas out of the tree: every key by its name and type, every error with
//! its position, all of them in one run.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use kindex_model::kind::Registry;
use kindex_model::spelling::nearest;
use serde_saphyr::Spanned;

use super::duration;
use super::tree::{Key, Node, Position, Scalar, position, raw};

/// One error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    line: u64,
    column: u64,
    message: String,
    help: Option<String>,
}

impl FileError {
    pub(super) fn position(&self) -> (u64, u64) {
        (self.line, self.column)
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)?;
        match &self.help {
            Some(help) => write!(f, "\n  help: {help}"),
            None => Ok(()),
        }
    }
}

/// Collects errors while a file is read.
pub(super) struct Reader<'a> {
    pub(super) source: &'a str,
    pub(super) errors: Vec<FileError>,
}

/// One mapping whose keys are being taken out.
#[derive(Default)]
pub(super) struct Stanza {
    name: String,
    entries: Vec<(Key, Spanned<Node>)>,
    known: Vec<&'static str>,
}

impl Reader<'_> {
    pub(super) fn error(&mut self, at: Position, message: impl Into<String>, help: Option<String>) {
        self.errors.push(FileError {
            line: at.line,
            column: at.column,
            message: message.into(),
            help,
        });
    }

    /// The file as a whole cannot be read.
    pub(super) fn yaml_error(&mut self, error: &serde_saphyr::Error) {
        let (line, column) = error.location().map_or((1, 1), |at| (at.line(), at.column()));
        let position = Position { line, column };
        self.error(position, format!("not YAML: {}", error.without_snippet()), None);
    }

    /// Takes a mapping apart; anything else is an error.
    pub(super) fn stanza(&mut self, name: &str, node: Spanned<Node>) -> Stanza {
        let at = position(&node);
        let entries = match node.value {
            Node::Map(entries) => entries,
            Node::Absent => Vec::new(),
            Node::Scalar(_) | Node::List => {
                let message = format!("{name} must be a mapping of keys to values");
                self.error(at, message, None);
                Vec::new()
            }
        };
        let mut seen: Vec<&str> = Vec::new();
        for (key, _) in &entries {
            if seen.contains(&key.value.as_str()) {
                let message = format!("{} is given twice", key.value);
                self.error(position(key), message, None);
            }
            seen.push(&key.value);
        }
        Stanza {
            name: name.to_owned(),
            entries,
            known: Vec::new(),
        }
    }

    /// Reports every key that nobody took.
    pub(super) fn finish(&mut self, stanza: Stanza) {
        for (key, _) in &stanza.entries {
            let within = match stanza.name.as_str() {
                "" => String::new(),
                name => format!(" in {name}"),
            };
            let message = format!("unknown key {:?}{within}", key.value);
            let help = nearest(&key.value, stanza.known.iter().copied())
                .map(|near| format!("did you mean {near:?}?"))
                .unwrap_or_else(|| format!("known keys: {}", stanza.known.join(", ")));
            self.error(position(key), message, Some(help));
        }
    }

    /// Reports two keys of which a stanza may have one.
    pub(super) fn one_of(&mut self, stanza: &Stanza, one: &'static str, other: &'static str) {
        let named = |wanted: &str| stanza.entries.iter().find(|(key, _)| key.value == wanted);
        if let (Some(_), Some((second, _))) = (named(one), named(other)) {
            let message = format!("{one} and {other} are both given");
            self.error(position(second), message, Some("keep one of the two".to_owned()));
        }
    }

    pub(super) fn text(&mut self, stanza: &mut Stanza, key: &'static str) -> Option<String> {
        let value = stanza.take(key)?;
        let at = position(&value);
        let text = match &value.value {
            Node::Scalar(Scalar::Text(text)) => Some(text.clone()),
            // `password: 0123` is the text that was written, as it is for Go's YAML.
            Node::Scalar(Scalar::Bool(_) | Scalar::Int(_) | Scalar::Float(_)) => {
                raw(self.source, &value).map(str::to_owned)
            }
            Node::Absent => return None,
            Node::Map(_) | Node::List => None,
        };
        if text.is_none() {
            self.error(at, format!("{key} must be a text"), quotes());
        }
        text
    }

    pub(super) fn flag(&mut self, stanza: &mut Stanza, key: &'static str) -> Option<bool> {
        let value = stanza.take(key)?;
        match value.value {
            Node::Scalar(Scalar::Bool(flag)) => return Some(flag),
            Node::Absent => return None,
            Node::Scalar(_) | Node::Map(_) | Node::List => {}
        }
        self.error(position(&value), format!("{key} must be true or false"), None);
        None
    }

    /// One of these words.
    pub(super) fn choice<T: Copy>(&mut self, stanza: &mut Stanza, key: &'static str, words: &[(&str, T)]) -> Option<T> {
        let value = stanza.take(key)?;
        let chosen = match &value.value {
            Node::Absent => return None,
            Node::Scalar(Scalar::Text(text)) => words.iter().find(|(word, _)| word == text),
            Node::Scalar(_) | Node::Map(_) | Node::List => None,
        };
        if chosen.is_none() {
            let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            self.error(
                position(&value),
                format!("{key} must be one of {}", words.join(", ")),
                None,
            );
        }
        chosen.map(|(_, choice)| *choice)
    }

    /// Reports a key that does nothing without something else.
    pub(super) fn needless(&mut self, stanza: &Stanza, key: &'static str, why: &str, help: &str) {
        if let Some((found, _)) = stanza.entries.iter().find(|(found, _)| found.value == key) {
            self.error(position(found), format!("{key} {why}"), Some(help.to_owned()));
        }
    }

    pub(super) fn number(&mut self, stanza: &mut Stanza, key: &'static str, least: u32, most: u32) -> Option<u32> {
        let value = stanza.take(key)?;
        self.number_of(key, &value, least, most)
    }

    pub(super) fn number_of(&mut self, key: &str, value: &Spanned<Node>, least: u32, most: u32) -> Option<u32> {
        let number = match &value.value {
            Node::Absent => return None,
            Node::Scalar(Scalar::Int(number)) => u32::try_from(*number).ok(),
            Node::Scalar(_) | Node::Map(_) | Node::List => None,
        };
        let number = number.filter(|number| (least..=most).contains(number));
        if number.is_none() {
            let message = format!("{key} must be a number from {least} to {most}");
            self.error(position(value), message, None);
        }
        number
    }

    pub(super) fn duration(&mut self, stanza: &mut Stanza, key: &'static str) -> Option<Duration> {
        let value = stanza.take(key)?;
        self.duration_of(key, &value)
    }

    pub(super) fn duration_of(&mut self, key: &str, value: &Spanned<Node>) -> Option<Duration> {
        let text = match &value.value {
            Node::Absent => return None,
            Node::Scalar(Scalar::Text(text)) => text.clone(),
            Node::Scalar(Scalar::Int(number)) => number.to_string(),
            Node::Scalar(_) | Node::Map(_) | Node::List => String::new(),
        };
        match duration::parse(&text) {
            Ok(duration) => Some(duration),
            Err(wrong) => {
                self.error(position(value), format!("{key}: {wrong}"), None);
                None
            }
        }
    }

    /// A mapping from kinds, in any case, to values.
    pub(super) fn by_kind<T>(
        &mut self,
        stanza: &mut Stanza,
        key: &'static str,
        registry: &Registry,
        read: impl Fn(&mut Self, &Spanned<Node>) -> Option<T>,
    ) -> BTreeMap<&'static str, T> {
        let mut values = BTreeMap::new();
        let Some(node) = stanza.take(key) else {
            return values;
        };
        for (name, value) in self.stanza(key, node).entries {
            let found = registry
                .kinds
                .iter()
                .find(|kind| kind.name.eq_ignore_ascii_case(&name.value));
            let Some(kind) = found else {
                let names: Vec<&str> = registry.kinds.iter().map(|kind| kind.name).collect();
                let help = nearest(&name.value, names.iter().copied())
                    .map(|near| format!("did you mean {near:?}?"))
                    .unwrap_or_else(|| format!("known kinds: {}", names.join(", ")));
                let message = format!("unknown kind {:?} in {key}", name.value);
                self.error(position(&name), message, Some(help));
                continue;
            };
            if let Some(value) = read(self, &value) {
                values.insert(kind.name, value);
            }
        }
        values
    }
}

impl Stanza {
    /// Takes out a key's value and remembers that the key is known.
    /// Whether a key is given, and not taken yet.
    pub(super) fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|(found, _)| found.value == key)
    }

    pub(super) fn take(&mut self, key: &'static str) -> Option<Spanned<Node>> {
        self.known.push(key);
        let index = self.entries.iter().position(|(name, _)| name.value == key)?;
        Some(self.entries.remove(index).1)
    }
}

fn quotes() -> Option<String> {
    Some("write it in quotes".to_owned())
}
