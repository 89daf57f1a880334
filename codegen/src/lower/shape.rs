//! Shapes that are no messages yet: what inline fields and CRD manifests become before they are printed as `.proto`,
//! and how names in JSON and in protobuf lead to each other.

use std::collections::BTreeSet;

use crate::model::snake_case;
use crate::source::Span;

/// A message about to be printed.
pub(super) struct MadeMessage {
    /// Last segment of its name.
    pub(super) name: String,
    pub(super) doc: String,
    pub(super) fields: Vec<MadeField>,
    pub(super) messages: Vec<MadeMessage>,
    pub(super) enums: Vec<MadeEnum>,
}

/// A field about to be printed.
pub(super) struct MadeField {
    /// Name in JSON.
    pub(super) json_name: String,
    /// Name in the `.proto` file.
    pub(super) name: String,
    /// Type in the `.proto` file, with `optional`, `repeated` or `map<…>`.
    pub(super) ty: String,
    pub(super) doc: String,
    /// Where a conflict about its number is shown.
    pub(super) span: Span,
}

/// An enum about to be printed.
pub(super) struct MadeEnum {
    /// Last segment of its name.
    pub(super) name: String,
    /// The first one has number 0.
    pub(super) values: Vec<String>,
    /// Where a missing first value is shown.
    pub(super) span: Span,
}

/// Spec and status of a kind, and the files that their types come from.
pub(super) struct MadeKind {
    pub(super) spec: MadeMessage,
    pub(super) status: Option<MadeMessage>,
    pub(super) imports: BTreeSet<String>,
}

/// The JSON name that protobuf gives to a field: without underscores, the letter after each in upper case.
pub(super) fn camel_case(name: &str) -> String {
    let mut camel = String::new();
    let mut raise = false;
    for c in name.chars() {
        if c == '_' {
            raise = true;
        } else {
            camel.push(if raise { c.to_ascii_uppercase() } else { c });
            raise = false;
        }
    }
    camel
}

/// The proto name of a JSON name: snake_case, with an underscore for what protobuf does not allow.
pub(super) fn proto_name(json_name: &str) -> String {
    let snake = snake_case(json_name);
    let mut name: String = snake
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        name.insert(0, 'x');
    }
    name
}

/// The name of the message or enum made for a field: `trainingJob` to `TrainingJob`.
pub(super) fn type_name(proto_name: &str) -> String {
    let camel = camel_case(proto_name);
    let mut chars = camel.chars();
    let first = chars.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(chars).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_both_sorts_follow_from_the_json_name() {
        for (json, proto, ty) in [
            ("owner", "owner", "Owner"),
            ("trainingFramework", "training_framework", "TrainingFramework"),
            ("git_ref", "git_ref", "GitRef"),
            ("x-kind", "x_kind", "XKind"),
            ("$ref", "x_ref", "XRef"),
        ] {
            assert_eq!(proto_name(json), proto);
            assert_eq!(type_name(proto), ty);
        }
    }
}
