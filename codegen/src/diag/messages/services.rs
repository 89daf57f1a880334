//! Errors in other services and their kinds.

use super::suggestion;
use crate::diag::Diagnostic;
use crate::model::Service;
use crate::source::{Span, Text};

pub(crate) fn unknown_service(text: &Text, dot: usize, services: &[Service]) -> Diagnostic {
    let name = &text.value[..dot];
    let mut diagnostic = Diagnostic::at(text.part(0..dot), format!("unknown service \"{name}\""));
    let candidates = services.iter().map(|service| service.name.as_str());
    let help = suggestion(name, candidates, "the services are");
    let help = help.unwrap_or_else(|| format!("declare it: [services.{name}] with group, kinds and address"));
    diagnostic.help.push(help);
    diagnostic
}

pub(crate) fn unknown_kind_of_a_service(text: &Text, dot: usize, service: &Service) -> Diagnostic {
    let name = &text.value[dot + 1..];
    let title = format!("service \"{}\" has no kind \"{name}\"", service.name);
    let mut diagnostic = Diagnostic::at(text.part(dot + 1..text.value.len()), title);
    let candidates = service.kinds.iter().map(|kind| kind.name.as_str());
    diagnostic.help.extend(suggestion(name, candidates, "its kinds are"));
    diagnostic
}

pub(crate) fn duplicate_service_group(text: &Text, first: Span) -> Diagnostic {
    Diagnostic::at(text.span, format!("two services have the group \"{}\"", text.value))
        .related(first, "the other one")
        .help("an API group belongs to one service: list all of its kinds there")
}

pub(crate) fn group_of_this_platform(text: &Text, kind: &Text) -> Diagnostic {
    Diagnostic::at(text.span, format!("group \"{}\" belongs to this platform", text.value))
        .related(kind.span, "a kind of this group")
        .help("references name kinds of this file without a service")
}

pub(crate) fn kind_listed_twice(text: &Text) -> Diagnostic {
    Diagnostic::at(text.span, format!("kind \"{}\" is listed twice", text.value))
}

pub(crate) fn not_among_the_kinds(text: &Text, service: &Text) -> Diagnostic {
    let title = format!(
        "\"{}\" is not one of the kinds of service \"{}\"",
        text.value, service.value
    );
    Diagnostic::at(text.span, title).help("list it in `kinds` as well")
}

pub(crate) fn not_an_address(text: &Text) -> Diagnostic {
    Diagnostic::at(text.span, format!("\"{}\" is not the address of a service", text.value))
        .help("an address is an https URL without query: https://region.example.com:6443")
}

pub(crate) fn address_without_tls(text: &Text) -> Diagnostic {
    Diagnostic::at(text.span, "what is sent to this address would not be encrypted")
        .help("use https; http is for addresses of the same machine, such as http://127.0.0.1:6480")
}

pub(crate) fn file_without_tls(file: &Text) -> Diagnostic {
    Diagnostic::at(file.span, "this file is for an https address")
        .help("remove it, or use https: over http a token would be sent unencrypted, and certificates are not checked")
}

pub(crate) fn empty_file_name(file: &Text) -> Diagnostic {
    Diagnostic::at(file.span, "the name of a file must not be empty")
}

pub(crate) fn kind_of_two_files(text: &Text, group: &str, first: Span) -> Diagnostic {
    Diagnostic::at(
        text.span,
        format!("two files declare the kind {} of {group}", text.value),
    )
    .related(first, "the other one")
    .help("a kind belongs to one service: the others name it under [services]")
}

pub(crate) fn kind_missing_in_its_file(text: &Text, path: &str, kinds: &[&str]) -> Diagnostic {
    let mut diagnostic = Diagnostic::at(text.span, format!("{path} declares no kind \"{}\"", text.value));
    let help = suggestion(&text.value, kinds.iter().copied(), "its kinds are");
    diagnostic.help.extend(help);
    diagnostic
}

pub(crate) fn plural_unlike_that_of_its_file(
    span: Span,
    (kind, plural): (&str, &str),
    path: &str,
    declared: &str,
) -> Diagnostic {
    let title = format!("the plural of {kind} is \"{plural}\" here, and \"{declared}\" in {path}");
    Diagnostic::at(span, title).help(format!(
        "list it with the plural: {{ kind = \"{kind}\", plural = \"{declared}\" }}"
    ))
}
