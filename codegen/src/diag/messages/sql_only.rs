//! About kinds that no cluster has.

use crate::diag::Diagnostic;
use crate::source::{Span, Text};

/// `key` has a meaning in a cluster alone.
pub(crate) fn without_cluster(kind: &Text, key: &str, span: Span) -> Diagnostic {
    let title = format!("`{key}` has no meaning for kind {}, which no cluster has", kind.value);
    let help = match key {
        "crd" => "declare its shape with `message` or `fields`, or leave out `cluster = false`",
        "evicted" => "its objects are never archived: rows of deleted ones are removed without it",
        _ => "leave it out, or leave out `cluster = false`",
    };
    Diagnostic::at(span, title).help(help)
}
