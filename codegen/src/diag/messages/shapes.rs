//! Errors about shapes: messages of `proto/`, inline fields, CRD manifests.

use super::suggestion;
use crate::diag::Diagnostic;
use crate::model::PrinterType;
use crate::source::{Span, Text};

pub(crate) fn proto_error(message: &str, span: Option<Span>) -> Diagnostic {
    match span {
        Some(span) => Diagnostic::at(span, message),
        None => Diagnostic::nowhere(message),
    }
}

pub(crate) fn unknown_message<'a>(text: &Text, candidates: impl Iterator<Item = &'a str>) -> Diagnostic {
    let title = format!("no file in proto/ declares the message \"{}\"", text.value);
    let mut diagnostic = Diagnostic::at(text.span, title);
    let help = suggestion(&text.value, candidates, "messages with a `spec` are");
    diagnostic.help.extend(help);
    diagnostic
}

pub(crate) fn message_without_part(text: &Text, message: &str, part: &str) -> Diagnostic {
    let title = format!("message {message} has no message field `{part}`");
    let example = match part {
        "metadata" => "k8s.io.apimachinery.pkg.apis.meta.v1.ObjectMeta metadata = 2;".to_owned(),
        _ => {
            let kind = message.rsplit('.').next().unwrap_or(message);
            format!("{kind}Spec spec = 3;")
        }
    };
    Diagnostic::at(text.span, title).help(format!("a kind's message is the whole object: {example}"))
}

pub(crate) fn unknown_type<'a>(text: &Text, name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Diagnostic {
    let mut diagnostic = Diagnostic::at(span_in(text, name), format!("unknown type \"{name}\""));
    let help = suggestion(name, candidates, "types are");
    diagnostic.help.extend(help);
    diagnostic
}

pub(crate) fn ambiguous_type(text: &Text, name: &str, names: &[&str]) -> Diagnostic {
    Diagnostic::at(
        span_in(text, name),
        format!("type \"{name}\" is declared more than once"),
    )
    .help(format!("write one of {}", names.join(", ")))
}

pub(crate) fn bad_map_key(text: &Text, key: &str, keys: &[&str]) -> Diagnostic {
    Diagnostic::at(span_in(text, key), format!("\"{key}\" cannot be the key of a map"))
        .help(format!("keys are of type {}", keys.join(", ")))
}

/// The part of a type that is wrong: `strng` in `map<string, strng>`.
fn span_in(text: &Text, part: &str) -> Span {
    match text.value.rfind(part) {
        Some(start) if !part.is_empty() => text.part(start..start + part.len()),
        _ => text.span,
    }
}

pub(crate) fn bad_field_name(name: &Text) -> Diagnostic {
    let title = format!("\"{}\" is not a field name", name.value);
    Diagnostic::at(name.span, title)
        .help("a field has letters, digits, underscores and dashes, as it stands in a manifest: maxRetries")
}

pub(crate) fn duplicate_field(name: &Text, first: Span) -> Diagnostic {
    let title = format!("duplicate field \"{}\"", name.value);
    Diagnostic::at(name.span, title)
        .related(first, "first declared here")
        .help("fields, enum values and nested types of a message must differ in more than case and underscores")
}

pub(crate) fn empty_enum(field: &Text) -> Diagnostic {
    Diagnostic::at(field.span, format!("the enum of \"{}\" has no values", field.value))
        .help("the first value is the one an absent field reads as: phase = [\"UNKNOWN\", \"READY\"]")
}

pub(crate) fn bad_enum_value(value: &Text) -> Diagnostic {
    Diagnostic::at(value.span, format!("\"{}\" is not an enum value", value.value))
        .help("a value has letters, digits and underscores and starts with a letter: READY")
}

pub(crate) fn enum_value_taken(value: &Text, first: Span) -> Diagnostic {
    let title = format!("\"{}\" is declared twice in this message", value.value);
    Diagnostic::at(value.span, title)
        .related(first, "first declared here")
        .help("protobuf keeps the fields and enum values of a message in one list")
}

pub(crate) fn first_value_removed(value: &str, span: Span) -> Diagnostic {
    Diagnostic::at(span, format!("the enum lost its first value \"{value}\""))
        .help("the value with number 0 is the one an absent field reads as; it must stay")
}

/// `locked`: the line of the lock that gave the number, if it was not given in this very run.
pub(crate) fn tag_type_changed(
    field: &str,
    ty: &str,
    span: Span,
    number: u32,
    locked_type: &str,
    locked: Option<Span>,
) -> Diagnostic {
    let title = format!("proto tag {number} of \"{field}\" is reused: it stands for {locked_type}, not {ty}");
    let mut diagnostic = Diagnostic::at(span, title).help(
        "stored messages would be read wrongly: give the field another name, or, if none was ever stored, remove \
         its line from schema/crds.lock",
    );
    if let Some(locked) = locked {
        diagnostic = diagnostic.related(locked, "given here");
    }
    diagnostic
}

pub(crate) fn made_message_exists(kind: &Text, message: &str) -> Diagnostic {
    let title = format!(
        "kind {} would create message {message}, which already exists",
        kind.value
    );
    Diagnostic::at(kind.span, title).help("refer to the message in proto/, or choose another name")
}

pub(crate) fn made_file_exists(kind: &Text, import_path: &str) -> Diagnostic {
    let title = format!(
        "kind {} would create file {import_path}, which already exists",
        kind.value
    );
    Diagnostic::at(kind.span, title).help("rename the file in proto/, or choose another name")
}

pub(crate) fn made_proto_error(kind: &Text, error: &str) -> Diagnostic {
    let title = format!("the fields of kind {} do not form a valid message", kind.value);
    Diagnostic::at(kind.span, title).help(error.to_owned())
}

pub(crate) fn bad_manifest(path: &Text, why: &str) -> Diagnostic {
    let first_line = why.lines().next().unwrap_or(why);
    let why = first_line.strip_prefix("error: ").unwrap_or(first_line);
    Diagnostic::at(path.span, format!("cannot use the manifest \"{}\": {why}", path.value))
}

pub(crate) fn unknown_printer_type(path: &Text, column: &str, ty: &str) -> Diagnostic {
    let why = format!("its printer column \"{column}\" has the unknown type \"{ty}\"");
    let known = PrinterType::ALL.map(PrinterType::as_str).join(", ");
    bad_manifest(path, &why).help(format!("Kubernetes knows the types {known}"))
}

pub(crate) fn manifest_of_other_kind(path: &Text, other: &str, kind: &Text) -> Diagnostic {
    let title = format!("the manifest \"{}\" is of kind {other}", path.value);
    Diagnostic::at(path.span, title).related(kind.span, "declared as this kind")
}

pub(crate) fn set_by_manifest(text: &Text) -> Diagnostic {
    let title = format!("\"{}\" is already set by the manifest", text.value);
    Diagnostic::at(text.span, title)
        .help("group, version, plural and scope of a kind with `crd` come from there; remove this line")
}

pub(crate) fn printer_beside_a_manifest(heading: &Text) -> Diagnostic {
    Diagnostic::at(
        heading.span,
        "`kubectl get` shows the printer columns of the manifest alone",
    )
    .help("remove `printer` and `wide`: `kindex get -o wide` shows every column")
}
