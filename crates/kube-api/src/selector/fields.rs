//! Field selectors: `metadata.name=a,spec.color!=red`, with `\,` `\=` and `\\` for the characters themselves.

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

use super::{SelectorError, TERMS_MAX};

#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    field: String,
    value: String,
    equal: bool,
}

/// All of its requirements must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSelector {
    requirements: Vec<Requirement>,
}

impl FieldSelector {
    /// Parses the value of `fieldSelector`.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let mut requirements = Vec::new();
        for term in split_terms(text) {
            if term.is_empty() {
                continue;
            }
            let refused = || SelectorError::Fields(text.to_owned(), term.to_owned());
            let (field, value, equal) = split_operator(term).ok_or_else(refused)?;
            let value = unescape(value).ok_or_else(refused)?;
            requirements.push(Requirement {
                field: field.to_owned(),
                value,
                equal,
            });
            if requirements.len() > TERMS_MAX {
                return Err(SelectorError::TooMany);
            }
        }
        Ok(Self { requirements })
    }

    /// Whether it asks for anything.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// The one name that it selects, if it does.
    pub fn name(&self) -> Option<&str> {
        let mut named = self.requirements.iter();
        let found = named.find(|requirement| requirement.equal && requirement.field == "metadata.name")?;
        Some(&found.value)
    }

    /// The fields it looks at.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.requirements.iter().map(|requirement| requirement.field.as_str())
    }

    /// The requirements on those fields alone.
    pub fn only(&self, is_kept: impl Fn(&str) -> bool) -> Self {
        let kept = self
            .requirements
            .iter()
            .filter(|requirement| is_kept(&requirement.field));
        Self {
            requirements: kept.cloned().collect(),
        }
    }

    /// The same requirements on these fields instead, without those on fields that become none.
    pub fn renamed(&self, rename: impl Fn(&str) -> Option<String>) -> Self {
        let requirements = self.requirements.iter().filter_map(|requirement| {
            let field = rename(&requirement.field)?;
            Some(Requirement {
                field,
                ..requirement.clone()
            })
        });
        Self {
            requirements: requirements.collect(),
        }
    }

    /// Whether an object is selected whose fields `lookup` gives (the empty string for an absent one).
    pub fn matches<'a>(&self, lookup: impl Fn(&str) -> Cow<'a, str>) -> bool {
        self.requirements
            .iter()
            .all(|requirement| (lookup(&requirement.field) == requirement.value) == requirement.equal)
    }
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, requirement) in self.requirements.iter().enumerate() {
            let comma = if number == 0 { "" } else { "," };
            let operator = if requirement.equal { "=" } else { "!=" };
            write!(f, "{comma}{}{operator}", requirement.field)?;
            for c in requirement.value.chars() {
                match c {
                    '\\' | ',' | '=' => write!(f, "\\{c}")?,
                    other => write!(f, "{other}")?,
                }
            }
        }
        Ok(())
    }
}

/// What a field selector compares of an object: the text of the field at a path of dots, as it stands in the object,
/// since a selector may look a thousand times at a large one.
pub fn field_text<'a>(object: &'a Value, field: &str) -> Cow<'a, str> {
    let pointer = format!("/{}", field.replace('.', "/"));
    match object.pointer(&pointer) {
        Some(Value::String(text)) => text.into(),
        Some(value @ (Value::Bool(_) | Value::Number(_))) => value.to_string().into(),
        // The source of an event is selected by its component.
        Some(Value::Object(source)) => source
            .get("component")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .into(),
        Some(Value::Null | Value::Array(_)) | None => "".into(),
    }
}

/// Cuts at commas that no backslash protects.
fn split_terms(text: &str) -> Vec<&str> {
    let (mut terms, mut start, mut escaped) = (Vec::new(), 0, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                terms.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

fn split_operator(term: &str) -> Option<(&str, &str, bool)> {
    let at = term.find(['=', '!'])?;
    let (field, rest) = term.split_at(at);
    let (operator, equal) = [("!=", false), ("==", true), ("=", true)]
        .into_iter()
        .find(|(o, _)| rest.starts_with(o))?;
    (!field.is_empty()).then(|| (field, &rest[operator.len()..], equal))
}

fn unescape(value: &str) -> Option<String> {
    let mut text = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(c) = characters.next() {
        match c {
            '\\' => text.push(characters.next().filter(|c| ['\\', ',', '='].contains(c))?),
            ',' | '=' => return None,
            other => text.push(other),
        }
    }
    Some(text)
}

/// Whether a server says by this message that it does not select by a field. Before Kubernetes 1.31, this is so for all
/// fields of custom resources but their names.
/// <https://kubernetes.io/docs/concepts/overview/working-with-objects/field-selectors/#list-of-supported-fields>
pub fn is_unselectable(message: &str) -> bool {
    message.contains("field label not supported") || message.contains("is not a known field selector")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(selector: &str) -> bool {
        FieldSelector::parse(selector).unwrap().matches(|field| match field {
            "metadata.name" => "a,b=c".into(),
            _ => "".into(),
        })
    }

    #[test]
    fn terms_compare_and_escapes_stand_for_themselves() {
        assert!(matches(""));
        assert!(matches(r"metadata.name=a\,b\=c"));
        assert!(matches(r"metadata.name==a\,b\=c,spec.x="));
        assert!(matches("metadata.name!=x"));
        assert!(!matches(r"metadata.name!=a\,b\=c"));
    }

    #[test]
    fn fields_are_renamed_and_the_text_says_the_same() {
        let selector = FieldSelector::parse(r"spec.old=a\,b\=c\\,spec.gone=1,metadata.name!=x").unwrap();
        let renamed = selector.renamed(|field| match field {
            "spec.gone" => None,
            "spec.old" => Some("spec.new".to_owned()),
            other => Some(other.to_owned()),
        });
        let text = r"spec.new=a\,b\=c\\,metadata.name!=x";
        assert_eq!(renamed.to_string(), text);
        assert_eq!(FieldSelector::parse(text).unwrap(), renamed);
    }

    #[test]
    fn the_one_name_that_is_selected_is_known() {
        for (selector, name) in [
            ("", None),
            ("metadata.name!=a", None),
            ("metadata.namespace=a", None),
            ("metadata.name!=a,spec.x=1,metadata.name=b", Some("b")),
        ] {
            assert_eq!(FieldSelector::parse(selector).unwrap().name(), name, "{selector}");
        }
    }

    #[test]
    fn fields_are_compared_as_texts_whatever_they_hold() {
        let object = serde_json::json!({"type": "Normal", "count": 7, "flag": true, "list": [1],
            "source": {"component": "kubelet"}, "spec": {"deep": "x"}});
        for (field, text) in [
            ("type", "Normal"),
            ("count", "7"),
            ("flag", "true"),
            ("list", ""),
            ("source", "kubelet"),
            ("spec", ""),
            ("spec.deep", "x"),
            ("spec.none", ""),
        ] {
            assert_eq!(field_text(&object, field), text, "{field}");
        }
    }

    #[test]
    fn a_selector_has_a_thousand_terms_at_most() {
        let terms = |count: usize| vec!["metadata.name!=b"; count].join(",");
        assert!(FieldSelector::parse(&terms(TERMS_MAX)).is_ok());
        assert_eq!(FieldSelector::parse(&terms(TERMS_MAX + 1)), Err(SelectorError::TooMany));
    }

    #[test]
    fn terms_without_an_operator_are_refused() {
        for selector in ["metadata.name", "=x", "a=b=c", r"a=\x", "a!b"] {
            assert!(FieldSelector::parse(selector).is_err(), "{selector}");
        }
    }
}
