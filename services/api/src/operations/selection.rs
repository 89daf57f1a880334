//! What the selectors of a list ask of archived objects, in any version of their kind.

use std::borrow::Cow;

use kindex_kube_api::request::parameter;
use kindex_kube_api::selector::{FieldSelector, field_text};
use kindex_query::{LabelSelector, Select};
use serde_json::Value;

use super::{ListOptions, Refusal, Resource};

/// What a list's selectors find among archived objects.
pub(super) struct Selected {
    /// In SQL, in order of namespace and name.
    pub(super) select: Select,
    /// What of it is to be looked at once it is in the version of the list.
    pub(super) rest: Rest,
}

/// Requirements on fields that have other values in SQL, which keeps objects in their kind's own version.
pub(super) struct Rest(FieldSelector);

impl Rest {
    pub(super) fn sees(&self, text: &str) -> bool {
        self.0.is_empty()
            || serde_json::from_str(text).is_ok_and(|object: Value| self.0.matches(|field| field_text(&object, field)))
    }

    /// The fields it looks at.
    pub(super) fn fields(&self) -> Vec<&str> {
        self.0.fields().collect()
    }
}

/// Splits the field selector of a list into what SQL answers and the rest.
fn fields(resource: Resource, selector: &str) -> Result<(Cow<'_, str>, FieldSelector), Refusal> {
    let Resource { kind, version } = resource;
    if version == kind.version {
        return Ok((Cow::Borrowed(selector), FieldSelector::default()));
    }
    let selector = FieldSelector::parse(selector).map_err(|error| Refusal::bad_request(error.to_string()))?;
    let own = |field: &str| kindex_convert::own_field(kind, version, field);
    let rest = selector.only(|field| own(field).is_none());
    Ok((Cow::Owned(selector.renamed(own).to_string()), rest))
}

/// What a list's selectors find among archived objects.
pub(super) fn select(resource: Resource, options: &ListOptions) -> Result<Selected, Refusal> {
    let bad = |error: &dyn std::fmt::Display| Refusal::bad_request(error.to_string());
    let (fields, rest) = fields(resource, &options.fields)?;
    let mut select = Select::all(resource.kind);
    if let Some(namespace) = &options.namespace {
        select.in_namespace(namespace);
    }
    let labels = LabelSelector::parse(&options.labels).map_err(|error| bad(&error))?;
    select.filter_by_labels(&labels).map_err(|error| bad(&error))?;
    select.filter_by_fields(&fields).map_err(|error| bad(&error))?;
    if options.include_deleted {
        let gone = "evicted_time is not null or delete_time is not null";
        select.filter_by(gone).map_err(|error| bad(&error))?;
    } else {
        select.with("evicted_time");
        select.without("delete_time");
    }
    for column in ["namespace", "name"] {
        select.order_by(column).map_err(|error| bad(&error))?;
    }
    select.allow_scan();
    let rest = Rest(rest);
    Ok(Selected { select, rest })
}

/// The selectors of a list, for the cluster.
pub(super) fn selectors(options: &ListOptions) -> Vec<(&'static str, String)> {
    [
        (parameter::LABEL_SELECTOR, &options.labels),
        (parameter::FIELD_SELECTOR, &options.fields),
    ]
    .into_iter()
    .filter(|(_, selector)| !selector.is_empty())
    .map(|(name, selector)| (name, selector.clone()))
    .collect()
}

#[cfg(test)]
mod tests {
    use kindex_model::kind::{FieldMap, Kind, MapRule, Version};

    use super::*;
    use crate::operations::token::tests::KIND;

    const MAP: [FieldMap; 2] = [
        FieldMap {
            here: Some(&["spec", "old"]),
            own: Some(&["spec", "new"]),
            rule: MapRule::Same,
        },
        FieldMap {
            here: Some(&["spec", "tries"]),
            own: Some(&["spec", "retries"]),
            rule: MapRule::Default("3"),
        },
    ];
    static VERSIONED: Kind = Kind {
        versions: &[Version {
            name: "v0",
            served: true,
            stored: false,
            deprecated: None,
            map: &MAP,
        }],
        ..KIND
    };

    #[test]
    fn sql_answers_what_has_the_same_values_there_and_the_rest_is_looked_at() {
        let (own, old) = (Resource::all(&VERSIONED).next(), Resource::all(&VERSIONED).nth(1));
        let selector = "spec.old=a,spec.tries!=3,metadata.name=b";
        let (asked, rest) = fields(own.expect("its own version"), selector).expect("a selector");
        assert_eq!((&*asked, rest.is_empty()), (selector, true));
        let (asked, rest) = fields(old.expect("another version"), selector).expect("a selector");
        assert_eq!(&*asked, "spec.new=a,metadata.name=b");
        let rest = Rest(rest);
        assert_eq!(rest.fields(), ["spec.tries"]);
        assert!(rest.sees(r#"{"spec":{"tries":4}}"#) && !rest.sees(r#"{"spec":{"tries":3}}"#));
        assert!(fields(old.expect("another version"), "nonsense").is_err());
    }
}
