//! Which of the names that a definition asks for it is granted, and the conditions that say so.

use std::collections::BTreeSet;

use kindex_kube_api::condition::{self, Condition, ConditionStatus};
use serde_json::Value;

use super::serve::ESTABLISHED;

/// Names that the other definitions of a group hold.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    /// Plurals, singulars and short names.
    resources: BTreeSet<String>,
    /// Kinds and list kinds.
    kinds: BTreeSet<String>,
}

impl Claims {
    /// Adds what another definition of the same group has been granted.
    pub(crate) fn add(&mut self, accepted: &crate::resource::Names) {
        self.resources
            .extend([accepted.plural.clone(), accepted.singular.clone()]);
        self.resources.extend(accepted.short_names.iter().cloned());
        self.kinds.extend([accepted.kind.clone(), accepted.list_kind.clone()]);
    }
}

/// Grants `definition` the names that nobody holds, and sets the conditions NamesAccepted and Established.
pub(crate) fn settle(definition: &mut Value, claims: &Claims, now: &str) {
    let requested = definition["spec"]["names"].clone();
    let mut accepted = definition["status"]["acceptedNames"]
        .as_object()
        .cloned()
        .unwrap_or_default();
    let mut refusal: Option<(&str, String)> = None;
    let scalars = [
        ("plural", &claims.resources, "PluralConflict"),
        ("singular", &claims.resources, "SingularConflict"),
        ("kind", &claims.kinds, "KindConflict"),
        ("listKind", &claims.kinds, "ListKindConflict"),
    ];
    for (field, taken, reason) in scalars {
        let name = requested[field].as_str().unwrap_or_default();
        if accepted.get(field).and_then(Value::as_str) != Some(name) && taken.contains(name) {
            refusal = Some((reason, in_use(name)));
        } else {
            accepted.insert(field.to_owned(), name.into());
        }
    }
    let held = accepted.get("shortNames").cloned().unwrap_or_default();
    let short_names: Vec<_> = requested["shortNames"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let fresh = |name: &&str| !held.as_array().is_some_and(|held| held.iter().any(|h| h == *name));
    let refused: Vec<_> = short_names
        .iter()
        .copied()
        .filter(fresh)
        .filter(|name| claims.resources.contains(*name))
        .map(in_use)
        .collect();
    match refused.as_slice() {
        [] => copy(&mut accepted, "shortNames", &requested),
        [one] => refusal = Some(("ShortNamesConflict", one.clone())),
        several => refusal = Some(("ShortNamesConflict", format!("[{}]", several.join(", ")))),
    }
    copy(&mut accepted, "categories", &requested);
    definition["status"]["acceptedNames"] = Value::Object(accepted);
    set_names_conditions(definition, refusal, now);
}

fn in_use(name: &str) -> String {
    format!("\"{name}\" is already in use")
}

fn copy(accepted: &mut serde_json::Map<String, Value>, field: &str, requested: &Value) {
    match requested.get(field) {
        Some(value) => accepted.insert(field.to_owned(), value.clone()),
        None => accepted.remove(field),
    };
}

fn set_names_conditions(definition: &mut Value, refusal: Option<(&str, String)>, now: &str) {
    let is_established = super::is_established(definition);
    let (names, established) = match &refusal {
        None => (
            (ConditionStatus::True, "NoConflicts", "no conflicts found"),
            Some((
                ConditionStatus::True,
                "InitialNamesAccepted",
                "the initial names have been accepted",
            )),
        ),
        Some((reason, message)) => (
            (ConditionStatus::False, *reason, message.as_str()),
            (!is_established).then_some((ConditionStatus::False, "NotAccepted", "not all names are accepted")),
        ),
    };
    let established = established.map(|said| (ESTABLISHED, said));
    for (r#type, (status, reason, message)) in [("NamesAccepted", names)].into_iter().chain(established) {
        let condition = Condition {
            r#type,
            status,
            reason,
            message,
        };
        condition::set(&mut definition["status"]["conditions"], &condition, now);
    }
}
