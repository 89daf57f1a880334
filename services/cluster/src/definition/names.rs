//! Which of the names that a definition asks for it is granted, and the conditions that say so.

use std::collections::BTreeSet;

use serde_json::{Value, json};

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
    match refusal {
        None => {
            set_condition(
                definition,
                "NamesAccepted",
                "True",
                "NoConflicts",
                "no conflicts found",
                now,
            );
            set_condition(
                definition,
                "Established",
                "True",
                "InitialNamesAccepted",
                "the initial names have been accepted",
                now,
            );
        }
        Some((reason, message)) => {
            set_condition(definition, "NamesAccepted", "False", reason, &message, now);
            if !super::is_established(definition) {
                set_condition(
                    definition,
                    "Established",
                    "False",
                    "NotAccepted",
                    "not all names are accepted",
                    now,
                );
            }
        }
    }
}

/// Sets one condition; its transition time moves only when its status does.
pub(super) fn set_condition(definition: &mut Value, kind: &str, status: &str, reason: &str, message: &str, now: &str) {
    let conditions = &mut definition["status"]["conditions"];
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Some(conditions) = conditions.as_array_mut() else {
        return;
    };
    let condition = json!({
        "type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": now,
    });
    match conditions.iter_mut().find(|condition| condition["type"] == kind) {
        None => conditions.push(condition),
        Some(existing) => {
            let since = existing["lastTransitionTime"].clone();
            let unchanged = existing["status"] == status;
            *existing = condition;
            if unchanged {
                existing["lastTransitionTime"] = since;
            }
        }
    }
}
