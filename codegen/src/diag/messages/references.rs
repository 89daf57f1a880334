//! Errors in references to kinds, columns and queries.

use std::ops::Range;

use super::suggestion;
use crate::diag::Diagnostic;
use crate::model::KindName;
use crate::source::Text;

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
        format!("column \"{}\" is no ResourceIdentifier", text.value)
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

pub(crate) fn reference_cycle(text: &Text, cycle: &[&KindName]) -> Diagnostic {
    let mut trail: Vec<&str> = cycle.iter().map(|kind| kind.as_str()).collect();
    trail.extend(cycle.first().map(|kind| kind.as_str()));
    let title = format!("reference cycle: {}", trail.join(" -> "));
    Diagnostic::at(text.span, title)
        .label("closes the cycle")
        .help("these kinds wait for each other's deletion; set on_delete = \"orphan\" on one of the references")
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
