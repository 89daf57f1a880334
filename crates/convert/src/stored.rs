//! Stored objects in a version of their kind, whichever version their texts are in.

use std::borrow::Cow;

use kindex_model::kind::{Kind, Platform};
use kindex_model::object::Object;

use super::convert::{ConvertError, convert};
use super::tree::Problem;

/// The text of a stored object in `version`.
///
/// # Guarantees
/// The text itself, unread, where the kind has one version or the object is in `version` already.
///
/// # Errors
/// As [`convert`].
pub fn text_in<'t>(
    platform: &Platform,
    kind: &Kind,
    object: &'t Object,
    version: &str,
) -> Result<Cow<'t, str>, ConvertError> {
    let said = object.metadata.api_version.split_once('/');
    let is_in_it = match said {
        Some((group, is)) => group == kind.group && is == version,
        // The items of a list need not repeat it.
        None => object.metadata.api_version.is_empty() && version == kind.version,
    };
    if kind.versions.is_empty() || is_in_it {
        return Ok(Cow::Borrowed(object.text()));
    }
    let converted = match convert(platform, kind, object.text(), version) {
        Err(error) if is_unnamed(&error.problem) => {
            let text = with_api_version(object.text(), &object.metadata.api_version);
            convert(platform, kind, &text, version)
        }
        converted => converted,
    };
    converted.map(Cow::Owned)
}

fn is_unnamed(problem: &Problem) -> bool {
    matches!(problem, Problem::UnknownVersion(version) if version.is_empty())
}

/// The text of an object that says nothing of its version, with this one: `group/version`.
pub fn with_api_version(text: &str, api_version: &str) -> String {
    match text.trim_start().strip_prefix('{') {
        Some(fields) => format!("{{\"apiVersion\":{},{fields}", serde_json::Value::from(api_version)),
        None => text.to_owned(),
    }
}

/// The same as an object.
///
/// # Errors
/// As [`text_in`].
pub fn object_in(platform: &Platform, kind: &Kind, object: &Object, version: &str) -> Result<Object, ConvertError> {
    match text_in(platform, kind, object, version)? {
        Cow::Borrowed(_) => Ok(object.clone()),
        Cow::Owned(text) => Object::parse_str(&text).map_err(|error| ConvertError::of(kind, &text, error.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convert::tests::{KIND, PLATFORM};

    fn object(api_version: &str) -> Object {
        let text = format!(
            r#"{{"apiVersion":"{api_version}","kind":"Trial","metadata":{{"name":"a","uid":"u","resourceVersion":"1"}},
                "spec":{{"rate":1}}}}"#
        );
        Object::parse_str(&text).expect("an object")
    }

    /// A kind of one version has nothing to convert, whatever its texts say.
    #[test]
    fn only_an_object_in_another_version_is_converted() {
        static ONE: Kind = Kind { versions: &[], ..KIND };
        let is_as_it_was = |kind, api_version: &str| {
            let object = object(api_version);
            let text = text_in(&PLATFORM, kind, &object, KIND.version).expect("a text");
            matches!(text, Cow::Borrowed(text) if std::ptr::eq(text, object.text()))
        };
        let (own, other) = (KIND.api_version(), format!("{}/{}", KIND.group, KIND.versions[0].name));
        assert!(is_as_it_was(&KIND, &own));
        assert!(is_as_it_was(&KIND, ""), "the items of a list need not say it");
        assert!(!is_as_it_was(&KIND, &other));
        assert!(is_as_it_was(&ONE, &other));
        assert!(is_as_it_was(&ONE, "elsewhere/v9"));
        let converted = object_in(&PLATFORM, &KIND, &object(&other), KIND.version).expect("an object");
        assert_eq!(converted.metadata.api_version, own);
        assert!(text_in(&PLATFORM, &KIND, &object("elsewhere/v9"), KIND.version).is_err());
    }

    #[test]
    fn a_text_without_a_version_is_in_that_of_its_row() {
        let text = |api_version: &str| {
            let text = format!(
                r#"{{{api_version}"kind":"Trial","metadata":{{"name":"a","uid":"u","resourceVersion":"1"}},
                    "spec":{{"rate":1}}}}"#
            );
            Object::parse_str(&text).expect("an object")
        };
        let said = text(r#""apiVersion":"test.kindex/v1","#);
        let expected = text_in(&PLATFORM, &KIND, &said, KIND.version).expect("a text");
        let unnamed = text("").or_in("test.kindex/v1");
        assert_eq!(
            text_in(&PLATFORM, &KIND, &unnamed, KIND.version).expect("a text"),
            expected
        );
        assert_ne!(unnamed.text(), expected);
        let wrong = text("").or_in("test.kindex/v9");
        assert!(text_in(&PLATFORM, &KIND, &wrong, KIND.version).is_err());
    }
}
