//! Other services: their names, kinds and addresses. Nothing is asked of them, and no file of theirs is read.

use std::collections::BTreeMap;

use super::draft::Draft;
use super::names;
use crate::diag::{Collector, messages as errors};
use crate::model::{GroupName, KindName, Service, ServiceKind, ServiceName};
use crate::source::{Span, Text};
use crate::spec::{ServiceKindSpec, Spec};

/// Checks every service against the others and the groups of this platform. One with an error is kept as far as it has
/// a name: references to it are not wrong.
pub(super) fn lower(spec: &Spec, drafts: &[Draft<'_>], found: &mut Collector) -> Vec<Service> {
    let mut groups: BTreeMap<String, Span> = BTreeMap::new();
    let mut services = Vec::new();
    for service in &spec.services {
        let group = names::api_group(service.group.as_ref(), found);
        if let Some(text) = &service.group {
            refuse_taken(text, &group, drafts, &mut groups, found);
        }
        let is_encrypted = service.address.as_ref().is_none_or(|text| address(text, found));
        for file in [&service.ca_file, &service.token_file].into_iter().flatten() {
            if file.value.trim().is_empty() {
                found.push(errors::empty_file_name(file));
            } else if !is_encrypted {
                found.push(errors::file_without_tls(file));
            }
        }
        let kinds = with_plurals(&service.kinds, found);
        let cluster_scoped = kind_names(&service.cluster_scoped, found);
        let is_listed = |text: &&Text| service.kinds.iter().any(|kind| kind.name.value == text.value);
        for text in service.cluster_scoped.iter().filter(|text| !is_listed(text)) {
            found.push(errors::not_among_the_kinds(text, &service.name));
        }
        let refers_to = kind_names(&service.refers_to, found);
        let is_own = |text: &&Text| drafts.iter().any(|draft| draft.spec.name.value == text.value);
        for text in service.refers_to.iter().filter(|text| !is_own(text)) {
            let own = drafts.iter().map(|draft| draft.spec.name.value.as_str());
            found.push(errors::unknown_kind(text, own));
        }
        let name = ServiceName::parse(&service.name.value);
        let Ok(name) = name.map_err(|error| found.push(errors::bad_name(&service.name, error))) else {
            continue;
        };
        let value = |text: &Option<Text>| text.as_ref().map(|text| text.value.clone());
        let address = value(&service.address).unwrap_or_default();
        services.push(Service {
            name,
            group,
            kinds,
            cluster_scoped,
            refers_to,
            address: address.trim_end_matches('/').to_owned(),
            ca_file: value(&service.ca_file),
            token_file: value(&service.token_file),
        });
    }
    services
}

/// Kinds are told apart by group and name: a group is of one service, and of none that is a platform of its own.
fn refuse_taken(
    text: &Text,
    group: &GroupName,
    drafts: &[Draft<'_>],
    groups: &mut BTreeMap<String, Span>,
    found: &mut Collector,
) {
    if let Some(first) = groups.insert(text.value.clone(), text.span) {
        found.push(errors::duplicate_service_group(text, first));
    }
    if let Some(own) = drafts.iter().find(|draft| draft.group == *group) {
        found.push(errors::group_of_this_platform(text, &own.spec.name));
    }
}

/// Its kinds, no two of one name or one plural.
fn with_plurals(specs: &[ServiceKindSpec], found: &mut Collector) -> Vec<ServiceKind> {
    let mut kinds: Vec<ServiceKind> = Vec::new();
    let mut taken: BTreeMap<String, Span> = BTreeMap::new();
    for spec in specs {
        match KindName::parse(&spec.name.value) {
            Err(error) => found.push(errors::bad_name(&spec.name, error)),
            Ok(name) if kinds.iter().any(|kind| kind.name == name) => {
                found.push(errors::kind_listed_twice(&spec.name));
            }
            Ok(name) => {
                let plural = names::plural(&spec.name, spec.plural.as_ref(), found);
                let span = spec.plural.as_ref().unwrap_or(&spec.name).span;
                if let Some(first) = taken.insert(plural.clone(), span) {
                    found.push(errors::duplicate_plural(&plural, span, first));
                }
                kinds.push(ServiceKind { name, plural });
            }
        }
    }
    kinds
}

fn kind_names(texts: &[Text], found: &mut Collector) -> Vec<KindName> {
    let mut kinds: Vec<KindName> = Vec::new();
    for text in texts {
        match KindName::parse(&text.value) {
            Err(error) => found.push(errors::bad_name(text, error)),
            Ok(kind) if kinds.contains(&kind) => found.push(errors::kind_listed_twice(text)),
            Ok(kind) => kinds.push(kind),
        }
    }
    kinds
}

/// Whether what is sent there is encrypted. Only what stays on the machine may be sent unencrypted.
fn address(text: &Text, found: &mut Collector) -> bool {
    let (scheme, rest) = text.value.split_once("://").unwrap_or_default();
    let authority = rest.split('/').next().unwrap_or_default();
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        Some(_) | None => (authority, None),
    };
    let is_host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '[' | ']' | ':');
    let is_url = !host.is_empty()
        && host.chars().all(is_host)
        && port.is_none_or(|port| port.parse::<u16>().is_ok())
        && !text.value.contains(['?', '#', ' ']);
    let is_near = host == "localhost" || host == "[::1]" || host.starts_with("127.");
    match scheme {
        "https" | "http" if !is_url => found.push(errors::not_an_address(text)),
        "http" if !is_near => found.push(errors::address_without_tls(text)),
        "https" | "http" => {}
        _ => found.push(errors::not_an_address(text)),
    }
    scheme != "http"
}
