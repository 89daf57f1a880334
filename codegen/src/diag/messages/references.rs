//! Errors in references to kinds, columns and queries.

use std::ops::Range;

use super::suggestion;
use crate::diag::Diagnostic;
use crate::source::{Span, Text};

pub(crate) fn unknown_kind<'a>(text: &Text, candidates: impl Iterator<Item = &'a str>) -> Diagnostic {
    let mut diagnostic = Diagnostic::at(text.span, format!("unknown kind \"{}\"", text.value));
    let help = suggestion(&text.value, candidates, "the kinds are");
    diagnostic.help.extend(help);
    diagnostic
}

pub(crate) fn unknown_column<'a>(
    text: &Text,
    range: Range<usize>,
    candidates: impl Iterator<Item = &'a str>,
) -> Diagnostic {
    let name = &text.value[range.clone()];
    let mut diagnostic = Diagnostic::at(text.part(range.clone()), format!("unknown column \"{name}\""));
    let help = suggestion(name, candidates, "the columns are");
    diagnostic.help.extend(help);
    diagnostic
}

pub(crate) fn target_not_once(name: &Text, both: bool) -> Diagnostic {
    let title = if both {
        format!("reference \"{}\" has both `kind` and `kind_column`", name.value)
    } else {
        format!("reference \"{}\" names no kind", name.value)
    };
    Diagnostic::at(name.span, title).help("set `kind`, or `kind_column` if the kind differs between objects")
}

pub(crate) fn kind_column_not_text(text: &Text, ty: &str) -> Diagnostic {
    let title = format!("column \"{}\" cannot hold the name of a kind", text.value);
    Diagnostic::at(text.span, title).label(format!("it is of type {ty}"))
}

pub(crate) fn not_an_identifier_column<'a>(
    text: &Text,
    is_column: bool,
    candidates: impl Iterator<Item = &'a str>,
) -> Diagnostic {
    let title = if is_column {
        format!("column \"{}\" is not a ResourceIdentifier", text.value)
    } else {
        format!("unknown column \"{}\"", text.value)
    };
    let mut diagnostic = Diagnostic::at(text.span, title);
    let help = suggestion(&text.value, candidates, "ResourceIdentifier columns are");
    diagnostic
        .help
        .extend(help.or_else(|| Some("declare a column for the ResourceIdentifier first".to_owned())));
    diagnostic
}

pub(crate) fn kind_without_its_service(text: &Text, meant: &str) -> Diagnostic {
    Diagnostic::at(text.span, format!("unknown kind \"{}\"", text.value)).help(format!(
        "a kind of another service has the service in front: \"{meant}\""
    ))
}

pub(crate) fn kinds_without_a_column(span: Span, has_kind: bool) -> Diagnostic {
    let diagnostic = Diagnostic::at(span, "`kinds` is about what `kind_column` holds");
    if has_kind {
        return diagnostic.help("remove it: `kind` names the one kind");
    }
    diagnostic.help("set `kind_column` to the column that holds the kind")
}

pub(crate) fn no_kinds(span: Span) -> Diagnostic {
    Diagnostic::at(span, "a reference to no kind")
        .help("list the kinds that the column may name; without `kinds` they are all others of this file")
}

pub(crate) fn no_other_kind(column: &Text) -> Diagnostic {
    Diagnostic::at(column.span, "there is no other kind that the column could name")
        .help("list the kind itself to let its objects form trees: kinds = [\"…\"]")
}

pub(crate) fn kinds_of_one_name(text: &Text, other: Span, kind: &str) -> Diagnostic {
    Diagnostic::at(text.span, format!("two of these kinds are called {kind}"))
        .related(other, "the other one")
        .help("the column holds the name of a kind without its service: use a reference for each")
}

pub(crate) fn holder_not_once(name: &Text, both: bool) -> Diagnostic {
    let title = if both {
        format!("reference \"{}\" has both `column` and `path`", name.value)
    } else {
        format!("reference \"{}\" does not say which field it is", name.value)
    };
    Diagnostic::at(name.span, title)
        .help("set `column` to a ResourceIdentifier column, or `path` to a field that has no such column")
}

pub(crate) fn path_names_nothing(text: &Text, what: &str) -> Diagnostic {
    let last = text.value.rfind('.').map_or(0, |dot| dot + 1);
    let title = format!("`{}` is {what}, which names no object", text.value);
    Diagnostic::at(text.part(last..text.value.len()), title)
        .help("a reference is a ResourceIdentifier, or a string with the name of an object in the same namespace")
}

pub(crate) fn path_is_a_column(text: &Text, column: &str) -> Diagnostic {
    Diagnostic::at(text.span, format!("`{}` has the column \"{column}\"", text.value))
        .help(format!("by its column it can be searched for: column = \"{column}\""))
}

pub(crate) fn owned_otherwise(on_delete: &Text, owned: Span) -> Diagnostic {
    let title = format!("an owned object cannot have on_delete = \"{}\"", on_delete.value);
    Diagnostic::at(on_delete.span, title)
        .related(owned, "its owner deletes it")
        .help("remove one of them: `owned` implies \"cascade\"")
}

pub(crate) fn owned_by_status(owned: Span, path: &str) -> Diagnostic {
    Diagnostic::at(owned, format!("no owner can be named by `{path}`"))
        .label("an object is owned from its creation")
        .help("a status is written later, and an object without one would outlive its owner: name the owner in `spec`")
}

pub(crate) fn owned_by_an_optional_field(owned: Span, path: &str) -> Diagnostic {
    Diagnostic::at(owned, format!("`{path}` is optional, but an owned object has an owner"))
        .label("an object without the field would have none")
        .help("make the field required, or use on_delete = \"cascade\" alone")
}

pub(crate) fn name_without_a_namespace(path: &Text, kind: &str, target: &str) -> Diagnostic {
    let title = format!("`{}` does not name the namespace of the {target}", path.value);
    Diagnostic::at(path.span, title)
        .label(format!("{kind} is cluster-wide and has none of its own"))
        .help("use a ResourceIdentifier, which has namespace and name")
}

pub(crate) fn owned_across_scopes(owned: Span, kind: &str, target: &str) -> Diagnostic {
    Diagnostic::at(
        owned,
        format!("{kind} is cluster-wide: no {target}, which is in a namespace, can own it"),
    )
    .label("Kubernetes would not find the owner, and delete the object")
    .help("use on_delete = \"cascade\" alone")
}

pub(crate) fn query_syntax(text: &Text, range: Range<usize>, wanted: &str) -> Diagnostic {
    let is_end = range.start >= text.value.len();
    let span = if is_end { text.span } else { text.part(range) };
    Diagnostic::at(span, format!("expected {wanted}")).label(if is_end { "at the end" } else { "here" })
}

pub(crate) fn literal_of_wrong_type(text: &Text, range: Range<usize>, ty: &str) -> Diagnostic {
    let literal = &text.value[range.clone()];
    let title = format!("{literal} cannot be compared with a column of type {ty}");
    Diagnostic::at(text.part(range), title)
}

pub(crate) fn unknown_enum_value(text: &Text, range: Range<usize>, value: &str, candidates: Vec<&str>) -> Diagnostic {
    let title = format!("unknown enum value \"{value}\"");
    let mut diagnostic = Diagnostic::at(text.part(range), title);
    let help = suggestion(value, candidates, "the values are");
    diagnostic.help.extend(help);
    diagnostic
}

pub(crate) fn parameter_of_two_types(text: &Text, range: Range<usize>, (first, second): (&str, &str)) -> Diagnostic {
    let parameter = &text.value[range.clone()];
    let title = format!("parameter {parameter} is compared with columns of type {first} and {second}");
    Diagnostic::at(text.part(range), title).help("use two parameters")
}

pub(crate) fn query_scans(text: &Text, leading: &[&str]) -> Diagnostic {
    Diagnostic::at(text.span, "this query would read the whole table")
        .label("no condition narrows by a key")
        .help(format!(
            "add an equality with the first column of a key ({}), or set key = true on a column",
            leading.join(", ")
        ))
}
