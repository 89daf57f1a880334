//! Errors in retention rules.

use super::suggestion;
use crate::diag::Diagnostic;
use crate::source::Span;

pub(crate) fn retention_of_everything(span: Span) -> Diagnostic {
    Diagnostic::at(span, "this rule would remove every row as soon as its object is gone")
        .help("set `keep_days`, `keep_last_per_namespace` or both")
}

pub(crate) fn state_column_without_states(span: Span) -> Diagnostic {
    Diagnostic::at(span, "`state_column` without `states`")
        .help("name the states whose rows may be removed: states = [\"…\"]")
}

pub(crate) fn no_states(span: Span) -> Diagnostic {
    Diagnostic::at(span, "this rule covers no state").help("name at least one state, or leave `states` out for all")
}

pub(crate) fn no_state_column<'a>(name: &str, span: Span, candidates: impl Iterator<Item = &'a str>) -> Diagnostic {
    let mut diagnostic = Diagnostic::at(span, format!("the kind has no column \"{name}\"")).label("no such column");
    let help = suggestion(
        name,
        candidates,
        "name one with `state_column`; its columns of text are",
    );
    diagnostic.help.extend(help);
    diagnostic
}

pub(crate) fn state_column_not_text(name: &str, ty: &str, span: Span) -> Diagnostic {
    Diagnostic::at(span, format!("column \"{name}\" holds no states")).label(format!("it is of type {ty}"))
}
