//! Mistakes in how the file is written: TOML, keys, sorts of values, and the lock.

use super::suggestion;
use crate::diag::Diagnostic;
use crate::grammar::Section;
use crate::source::{Place, Text};

/// A file that cannot be read has no text to point at.
pub(crate) fn unreadable(path: &str, error: &str) -> Diagnostic {
    Diagnostic::nowhere(format!("{path}: {error}"))
}

/// A file named in the declaration that cannot be read.
pub(crate) fn unreadable_manifest(path: &Text, error: &str) -> Diagnostic {
    Diagnostic::at(path.place, format!("cannot read \"{}\": {error}", path.value))
        .help("the path is relative to the directory of crds.toml")
}

pub(crate) fn toml_syntax(message: &str, place: Place) -> Diagnostic {
    let first_line = message.lines().next().unwrap_or(message);
    Diagnostic::at(place, first_line)
}

pub(crate) fn unknown_key(section: &Section, name: &Text) -> Diagnostic {
    let keys = section.keys.iter().map(|key| key.name);
    let mut diagnostic = Diagnostic::at(
        name.place,
        format!("unknown key \"{}\" in a {}", name.value, section.name),
    );
    diagnostic.help.extend(suggestion(&name.value, keys, "its keys are"));
    diagnostic
}

pub(crate) fn missing_key(section: &Section, key: &str, place: Place) -> Diagnostic {
    let doc = section.key(key).map_or("", |key| key.doc);
    let mut diagnostic = Diagnostic::at(place, format!("a {} needs \"{key}\"", section.name));
    if !doc.is_empty() {
        diagnostic = diagnostic.help(format!("{key}: {doc}"));
    }
    diagnostic
}

pub(crate) fn wrong_sort(key: &str, wanted: &str, is: &str, place: Place) -> Diagnostic {
    let title = format!("\"{key}\" must be {wanted}");
    Diagnostic::at(place, title).label(format!("this is of type {is}"))
}

pub(crate) fn unknown_choice(key: &str, word: &str, choices: &[&str], place: Place) -> Diagnostic {
    let mut diagnostic = Diagnostic::at(place, format!("unknown value \"{word}\" for \"{key}\""));
    let choices = choices.iter().copied();
    diagnostic.help.extend(suggestion(word, choices, "the choices are"));
    diagnostic
}

pub(crate) fn shape_not_once(kind: &Text, given: &[&str]) -> Diagnostic {
    let title = match given {
        [] => format!("kind {} has no shape", kind.value),
        _ => format!("kind {} has more than one shape: {}", kind.value, given.join(" and ")),
    };
    Diagnostic::at(kind.place, title)
        .help("give exactly one of `message` (from proto/), `fields` (inline) and `crd` (a manifest)")
}

pub(crate) fn unknown_part(name: &Text) -> Diagnostic {
    Diagnostic::at(name.place, format!("unknown part \"{}\" of an object", name.value))
        .help("`fields` has `spec` and, if wanted, `status`")
}

pub(crate) fn fields_without_spec(kind: &Text) -> Diagnostic {
    let title = format!("the fields of kind {} have no `spec`", kind.value);
    Diagnostic::at(kind.place, title).help("write fields = { spec = { … } }")
}

pub(crate) fn lock_line(line: &str, place: Place) -> Diagnostic {
    let title = if line.starts_with("<<<<<<<") || line.starts_with("=======") || line.starts_with(">>>>>>>") {
        "a merge conflict was left in the lock"
    } else {
        "this line of the lock says nothing"
    };
    Diagnostic::at(place, title).help("keep the lines of both branches, or take the file of one branch and build again")
}

pub(crate) fn tag_reused(
    message: &str,
    number: u32,
    first_field: &str,
    field: &str,
    place: Place,
    first: Place,
) -> Diagnostic {
    let title = format!("proto tag {number} of {message} is used by both {first_field} and {field}");
    Diagnostic::at(place, title)
        .label("used again here")
        .related(first, "first used here")
        .help("remove the line of the field that was added last; the next build gives it a new number")
}
