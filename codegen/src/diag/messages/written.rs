//! Errors in the syntax of the file: TOML, keys, types of values, and the lock file.

use super::suggestion;
use crate::diag::Diagnostic;
use crate::grammar::Section;
use crate::source::{Span, Text};

/// A file that cannot be read has no text to point at.
pub(crate) fn unreadable(path: &str, error: &str) -> Diagnostic {
    Diagnostic::nowhere(format!("{path}: {error}"))
}

/// A file named in the declaration that cannot be read.
pub(crate) fn unreadable_manifest(path: &Text, error: &str) -> Diagnostic {
    Diagnostic::at(path.span, format!("cannot read \"{}\": {error}", path.value))
        .help("the path is relative to the directory of crds.toml")
}

pub(crate) fn toml_syntax(message: &str, span: Span) -> Diagnostic {
    let first_line = message.lines().next().unwrap_or(message);
    Diagnostic::at(span, first_line)
}

pub(crate) fn unknown_key(section: &Section, name: &Text) -> Diagnostic {
    let keys = section.keys.iter().map(|key| key.name);
    let mut diagnostic = Diagnostic::at(
        name.span,
        format!("unknown key \"{}\" in a {}", name.value, section.name),
    );
    diagnostic.help.extend(suggestion(&name.value, keys, "its keys are"));
    diagnostic
}

pub(crate) fn missing_key(section: &Section, key: &str, span: Span) -> Diagnostic {
    let doc = section.key(key).map_or("", |key| key.doc);
    let mut diagnostic = Diagnostic::at(span, format!("a {} needs \"{key}\"", section.name));
    if !doc.is_empty() {
        diagnostic = diagnostic.help(format!("{key}: {doc}"));
    }
    diagnostic
}

pub(crate) fn wrong_sort(key: &str, wanted: &str, is: &str, span: Span) -> Diagnostic {
    let title = format!("\"{key}\" must be {wanted}");
    Diagnostic::at(span, title).label(format!("this is of type {is}"))
}

pub(crate) fn unknown_choice(key: &str, word: &str, choices: &[&str], span: Span) -> Diagnostic {
    let mut diagnostic = Diagnostic::at(span, format!("unknown value \"{word}\" for \"{key}\""));
    let choices = choices.iter().copied();
    diagnostic.help.extend(suggestion(word, choices, "the choices are"));
    diagnostic
}

pub(crate) fn shape_not_once(kind: &Text, given: &[&str]) -> Diagnostic {
    let title = match given {
        [] => format!("kind {} has no shape", kind.value),
        _ => format!("kind {} has more than one shape: {}", kind.value, given.join(" and ")),
    };
    Diagnostic::at(kind.span, title)
        .help("set exactly one of `message` (from proto/), `fields` (inline) and `crd` (a manifest)")
}

pub(crate) fn unknown_part(name: &Text) -> Diagnostic {
    Diagnostic::at(name.span, format!("unknown part \"{}\" of an object", name.value))
        .help("`fields` has `spec` and, if wanted, `status`")
}

pub(crate) fn fields_without_spec(kind: &Text) -> Diagnostic {
    let title = format!("the fields of kind {} have no `spec`", kind.value);
    Diagnostic::at(kind.span, title).help("write fields = { spec = { … } }")
}

pub(crate) fn lock_line(line: &str, span: Span) -> Diagnostic {
    let title = if line.starts_with("<<<<<<<") || line.starts_with("=======") || line.starts_with(">>>>>>>") {
        "a merge conflict was left in the lock file"
    } else {
        "this line of the lock file is not valid"
    };
    Diagnostic::at(span, title).help("keep the lines of both branches, or take the file of one branch and build again")
}

pub(crate) fn tag_reused(
    message: &str,
    number: u32,
    first_field: &str,
    field: &str,
    span: Span,
    first: Span,
) -> Diagnostic {
    let title = format!("proto tag {number} of {message} is used by both {first_field} and {field}");
    Diagnostic::at(span, title)
        .label("used again here")
        .related(first, "first used here")
        .help("remove the line of the field that was added last; the next build gives it a new number")
}
