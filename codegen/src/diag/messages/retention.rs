//! Mistakes about what may be removed: rules that keep nothing, states that are none.

use super::suggestion;
use crate::diag::Diagnostic;
use crate::source::Place;

pub(crate) fn retention_of_everything(place: Place) -> Diagnostic {
    Diagnostic::at(place, "this rule would remove every row as soon as its object is gone")
        .help("give `keep_days`, `keep_last_per_namespace` or both")
}

pub(crate) fn state_column_without_states(place: Place) -> Diagnostic {
    Diagnostic::at(place, "`state_column` without `states`").help("say which states may go: states = [\"…\"]")
}

pub(crate) fn no_states(place: Place) -> Diagnostic {
    Diagnostic::at(place, "no state may go by this rule").help("name at least one state, or leave `states` out for all")
}

pub(crate) fn no_state_column<'a>(name: &str, place: Place, candidates: impl Iterator<Item = &'a str>) -> Diagnostic {
    let mut diagnostic =
        Diagnostic::at(place, format!("the kind has no column \"{name}\"")).label("states of which column?");
    let help = suggestion(
        name,
        candidates,
        "name one with `state_column`; its columns of text are",
    );
    diagnostic.help.extend(help);
    diagnostic
}

pub(crate) fn state_column_not_text(name: &str, ty: &str, place: Place) -> Diagnostic {
    Diagnostic::at(place, format!("column \"{name}\" holds no states")).label(format!("it is of type {ty}"))
}
