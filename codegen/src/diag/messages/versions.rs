//! Errors in the versions of a kind and in what maps them to each other.

use super::suggestion;
use crate::diag::Diagnostic;
use crate::source::{Span, Text};

pub(crate) fn version_shape_twice(version: &Text) -> Diagnostic {
    let title = format!("version {} has more than one shape: message and fields", version.value);
    Diagnostic::at(version.span, title)
        .help("give `message` (from proto/), `fields` (inline), or neither for the shape of the kind's own version")
}

pub(crate) fn versions_of_others(version: &Text, crd: &Text) -> Diagnostic {
    let title = format!("version {} belongs to the manifest", version.value);
    Diagnostic::at(version.span, title)
        .related(crd.span, "its versions are those in here")
        .help("the versions of a kind with `crd` are declared and converted by those who own its CRD; remove this")
}

pub(crate) fn version_is_the_own(version: &Text, kind: &Text) -> Diagnostic {
    let title = format!("{} is the own version of kind {}", version.value, kind.value);
    Diagnostic::at(version.span, title).help("`versions` has the other ones; the shape of this one is the kind's")
}

pub(crate) fn unknown_storage<'a>(storage: &Text, versions: impl Iterator<Item = &'a str>) -> Diagnostic {
    let title = format!("no version \"{}\" to store objects in", storage.value);
    let mut diagnostic = Diagnostic::at(storage.span, title);
    let help = suggestion(&storage.value, versions, "the versions are");
    diagnostic.help.extend(help);
    diagnostic
}

pub(crate) fn version_removed(kind: &Text, version: &str, api_version: &str) -> Diagnostic {
    let title = format!(
        "version {version} of kind {} is removed, and schema/crds.lock does not call it dropped",
        kind.value
    );
    Diagnostic::at(kind.span, title)
        .help(format!(
            "objects may be stored in it: declare [kinds.{}.versions.{version}]",
            kind.value
        ))
        .help(format!(
            "once no cluster stores it, add the line \"dropped {} {api_version}\" to schema/crds.lock",
            kind.value
        ))
}

pub(crate) fn mapped_metadata(path: &Text) -> Diagnostic {
    Diagnostic::at(path.span, format!("`{}` is the same in every version", path.value))
        .help("versions differ in `spec` and `status`")
}

pub(crate) fn mapped_twice(path: &Text, version: &str, first: Span) -> Diagnostic {
    let title = format!("`{}` of version {version} is mapped twice", path.value);
    Diagnostic::at(path.span, title)
        .related(first, "first mapped here")
        .help("map a field, or the fields in it, and each of them once")
}

/// `at`: the path of the kind's own version.
pub(crate) fn constant_beside(at: &Text, other: &str) -> Diagnostic {
    let title = format!("`{}` has a constant and `{other}`", at.value);
    Diagnostic::at(at.span, title)
        .help("a constant is for a field that this version has no place for; with `from`, give a `default`")
}

pub(crate) fn constant_of_a_field(at: &Text, version: &str) -> Diagnostic {
    let title = format!("`{}` has a constant, and version {version} a place for it", at.value);
    Diagnostic::at(at.span, title).help("give a `default`, which is for objects without a value")
}

pub(crate) fn function_without_back(at: &Text, missing: &str) -> Diagnostic {
    let title = format!("`{}` is converted one way only: `{missing}` is missing", at.value);
    Diagnostic::at(at.span, title)
        .help("objects go both ways: function = \"conversions::to_seconds\", back = \"conversions::to_hours\"")
}

pub(crate) fn function_beside_default(at: &Text) -> Diagnostic {
    let title = format!("`{}` has a function and a default", at.value);
    Diagnostic::at(at.span, title).help("let the function return the default, or map without a function")
}

pub(crate) fn not_a_function(function: &Text) -> Diagnostic {
    let title = format!("\"{}\" is not the path of a Rust function", function.value);
    Diagnostic::at(function.span, title).help("as Rust code of the emitted crate names it: conversions::to_seconds")
}

/// `span`: the entry, or the version where there is none. The types are as people call them.
pub(crate) fn no_way(span: Span, path: &str, here: (&str, &str), own: (&str, &str)) -> Diagnostic {
    let title = format!(
        "no way between versions {} and {} for `{path}`: {} and {}",
        here.0, own.0, here.1, own.1
    );
    Diagnostic::at(span, title).help(format!(
        "map it by functions: \"{path}\" = {{ function = \"conversions::to_{}\", back = \"conversions::to_{}\" }}",
        own.0, here.0
    ))
}

/// `wanted`: what a value of the field is.
pub(crate) fn scalar_does_not_fit(path: &Text, span: Span, wanted: &str) -> Diagnostic {
    Diagnostic::at(span, format!("`{}` does not take this value", path.value)).label(format!("the field is {wanted}"))
}

pub(crate) fn no_such_value<'a>(value: &str, span: Span, values: impl Iterator<Item = &'a str>) -> Diagnostic {
    let mut diagnostic = Diagnostic::at(span, format!("no value \"{value}\" in this enum"));
    let help = suggestion(value, values, "the values are");
    diagnostic.help.extend(help);
    diagnostic
}

pub(crate) fn stored_unserved(kind: &Text, version: &str, span: Span) -> Diagnostic {
    let title = format!("version {version} of kind {} is stored and not served", kind.value);
    Diagnostic::at(span, title)
        .help("discovery shows no storage version hash for the kind, so that migrators pass it by; serve the version")
}
