//! Names of the platform and of kinds in Kubernetes: groups, versions, plurals, short names, annotations. Which of them
//! clash across kinds is checked here too. SQL names are checked where tables and columns are made.

use std::collections::BTreeMap;

use crate::diag::{Collector, messages};
use crate::dialect;
use crate::model::{ApiVersion, GroupName, Platform, TableName, default_plural};
use crate::source::{Span, Text};
use crate::spec::{KindSpec, PlatformSpec};

/// Stands in for a text that was missing or wrong and reported, so that later stages can go on.
const PLACEHOLDER: &str = "placeholder";

/// Checks `[platform]`. Where something is wrong the result holds placeholders, and `found` says so.
pub(super) fn platform(spec: Option<&PlatformSpec>, found: &mut Collector) -> Platform {
    let group = spec.and_then(|spec| spec.group.as_ref());
    let version = spec.and_then(|spec| spec.version.as_ref());
    let mut annotation = |text: Option<&Text>| text.map_or_else(String::new, |text| qualified(text, found));
    let finalizer = annotation(spec.and_then(|spec| spec.finalizer.as_ref()));
    let deleting = annotation(spec.and_then(|spec| spec.deleting.as_ref()));
    let immutable = annotation(spec.and_then(|spec| spec.immutable.as_ref()));
    let restored_from = match spec.and_then(|spec| spec.restored_from.as_ref()) {
        Some(text) => annotation(Some(text)),
        None => beside(&immutable, "RestoredFrom"),
    };
    let conversion_data = match spec.and_then(|spec| spec.conversion_data.as_ref()) {
        Some(text) => annotation(Some(text)),
        None => beside(&immutable, "ConversionData"),
    };
    let database = spec.and_then(|spec| spec.database.as_ref());
    Platform {
        group: api_group(group, found),
        version: api_version(version, found),
        finalizer,
        deleting,
        immutable,
        restored_from,
        conversion_data,
        database: database_name(database, found),
    }
}

/// A name with the prefix of another one.
fn beside(qualified: &str, name: &str) -> String {
    let prefix = qualified.split('/').next().unwrap_or_default();
    format!("{prefix}/{name}")
}

/// The group that `text` names; a placeholder where it is absent or wrong.
pub(super) fn api_group(text: Option<&Text>, found: &mut Collector) -> GroupName {
    let named = text.and_then(|text| {
        let parsed = GroupName::parse(&text.value);
        parsed.map_err(|error| found.push(messages::bad_name(text, error))).ok()
    });
    named.unwrap_or_else(|| GroupName::parse(PLACEHOLDER).expect("a valid group"))
}

/// The version that `text` names; a placeholder where it is absent or wrong.
pub(super) fn api_version(text: Option<&Text>, found: &mut Collector) -> ApiVersion {
    let named = text.and_then(|text| {
        let parsed = ApiVersion::parse(&text.value);
        parsed.map_err(|error| found.push(messages::bad_name(text, error))).ok()
    });
    named.unwrap_or_else(|| ApiVersion::parse("v1").expect("a valid version"))
}

fn database_name(text: Option<&Text>, found: &mut Collector) -> TableName {
    let name = text.map_or("michelangelo", |text| &text.value);
    TableName::parse(name)
        .and_then(dialect::fitting)
        .unwrap_or_else(|error| {
            if let Some(text) = text {
                found.push(messages::bad_name(text, error));
            }
            TableName::parse(PLACEHOLDER).expect("a valid name")
        })
}

/// Kubernetes wants `prefix/name` for finalizers and annotations of custom resources: a DNS name, a slash, then at
/// most 63 letters, digits, dashes, underscores and dots, with a letter or digit at both ends.
fn qualified(text: &Text, found: &mut Collector) -> String {
    let is_qualified = text.value.split_once('/').is_some_and(|(prefix, name)| {
        let ends_well = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
        GroupName::parse(prefix).is_ok()
            && name.len() <= 63
            && ends_well(name.chars().next())
            && ends_well(name.chars().last())
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
    });
    if !is_qualified {
        found.push(messages::not_qualified(text));
    }
    text.value.clone()
}

/// The names of a resource in URLs and for kubectl.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ResourceNames {
    pub(super) plural: String,
    pub(super) singular: String,
    pub(super) short_names: Vec<String>,
    pub(super) categories: Vec<String>,
}

/// Fills in and checks the names of one kind.
pub(super) fn resource_names(spec: &KindSpec, found: &mut Collector) -> ResourceNames {
    let singular = spec.name.value.to_lowercase();
    let plural = plural(&spec.name, spec.plural.as_ref(), found);
    for text in spec.short_names.iter().chain(&spec.categories) {
        check_label(text, found);
    }
    let values = |texts: &[Text]| texts.iter().map(|text| text.value.clone()).collect();
    ResourceNames {
        plural,
        singular,
        short_names: values(&spec.short_names),
        categories: values(&spec.categories),
    }
}

/// The plural of a kind, which may be of another service.
pub(super) fn plural(kind: &Text, declared: Option<&Text>, found: &mut Collector) -> String {
    let Some(text) = declared else {
        return default_plural(&kind.value);
    };
    check_label(text, found);
    text.value.clone()
}

fn check_label(text: &Text, found: &mut Collector) {
    let is_label = !text.value.contains('.') && GroupName::parse(&text.value).is_ok();
    if !is_label {
        found.push(messages::not_a_resource_name(text));
    }
}

/// Names that kubectl must be able to tell apart, with the place of their first use.
#[derive(Default)]
pub(super) struct Taken {
    plurals: BTreeMap<(GroupName, String), Span>,
    words: BTreeMap<String, Span>,
}

impl Taken {
    /// Takes the plural (unique in its group) and the short names (unique at all, also against other kinds' names).
    pub(super) fn take(&mut self, spec: &KindSpec, group: &GroupName, names: &ResourceNames, found: &mut Collector) {
        let span = spec.plural.as_ref().unwrap_or(&spec.name).span;
        let plural = names.plural.clone();
        if let Some(first) = self.plurals.insert((group.clone(), plural), span) {
            found.push(messages::duplicate_plural(&names.plural, span, first));
        }
        for text in &spec.short_names {
            if let Some(first) = self.words.insert(text.value.clone(), text.span) {
                found.push(messages::duplicate_short_name(text, first));
            }
        }
    }
}
