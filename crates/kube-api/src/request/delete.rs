//! The options of deletions, as the bodies of requests carry them. Which values they may have is the server's to say.

use serde::Deserialize;
use serde_json::{Map, Value, json};

/// `DeleteOptions` of Kubernetes. In a body, `null` is as good as nothing.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DeleteOptions {
    /// What must still be true.
    pub preconditions: Option<Preconditions>,
    /// `Background`, `Foreground` or `Orphan`.
    pub propagation_policy: Option<String>,
    /// The older word for `Orphan`.
    pub orphan_dependents: Option<bool>,
    /// `All`, or nothing.
    pub dry_run: Option<Vec<String>>,
    /// Of no effect on custom resources.
    pub grace_period_seconds: Option<i64>,
}

/// What must be true of an object for it to be deleted.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Preconditions {
    /// Its uid.
    pub uid: Option<String>,
    /// Its version.
    pub resource_version: Option<String>,
}

impl DeleteOptions {
    /// Whether the request must leave no trace.
    pub fn is_dry_run(&self) -> bool {
        self.dry_run.as_ref().is_some_and(|stages| !stages.is_empty())
    }

    /// The same, for the object of this uid alone; whose uid is given is not given another.
    #[must_use]
    pub fn of_uid(&self, uid: &str) -> Self {
        let mut options = self.clone();
        options
            .preconditions
            .get_or_insert_default()
            .uid
            .get_or_insert_with(|| uid.to_owned());
        options
    }

    /// The same, for the object in this version alone.
    #[must_use]
    pub fn of_version(&self, version: &str) -> Self {
        let mut options = self.clone();
        options.preconditions.get_or_insert_default().resource_version = Some(version.to_owned());
        options
    }

    /// The body of a request with these options.
    pub fn to_json(&self) -> Value {
        let preconditions = self.preconditions.clone().unwrap_or_default();
        let mut options = json!({"kind": "DeleteOptions", "apiVersion": "v1"});
        let mut put = |field: &str, value: Value| {
            if !value.is_null() {
                options[field] = value;
            }
        };
        put("propagationPolicy", json!(self.propagation_policy));
        put("orphanDependents", json!(self.orphan_dependents));
        put("dryRun", json!(self.dry_run));
        put("gracePeriodSeconds", json!(self.grace_period_seconds));
        let mut conditions = Map::new();
        if let Some(uid) = preconditions.uid {
            conditions.insert("uid".to_owned(), uid.into());
        }
        if let Some(version) = preconditions.resource_version {
            conditions.insert("resourceVersion".to_owned(), version.into());
        }
        if !conditions.is_empty() {
            put("preconditions", Value::Object(conditions));
        }
        options
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(options: &Value) -> DeleteOptions {
        serde_json::from_value(options.clone()).expect("options")
    }

    #[test]
    fn the_options_of_a_deletion_are_passed_on() {
        let all = json!({
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "propagationPolicy": "Orphan",
            "orphanDependents": true,
            "dryRun": ["All"],
            "gracePeriodSeconds": 7,
            "preconditions": {"uid": "u", "resourceVersion": "9"},
        });
        assert_eq!(read(&all).to_json(), all);
        let fields = all.as_object().expect("an object");
        for (field, value) in fields {
            let mut one = json!({"kind": "DeleteOptions", "apiVersion": "v1"});
            one[field.as_str()] = value.clone();
            assert_eq!(read(&one).to_json(), one);
        }
        let of_another = read(&all).of_uid("another").to_json();
        assert_eq!(of_another, all, "whose uid is given is not given another");
        let one = DeleteOptions::default().of_uid("u").to_json();
        assert_eq!(one["preconditions"], json!({"uid": "u"}));
    }

    #[test]
    fn whatever_version_was_asked_for_another_one_takes_its_place() {
        let options = read(&json!({"preconditions": {"resourceVersion": "7"}}));
        let later = options.of_version("8").to_json();
        assert_eq!(later["preconditions"]["resourceVersion"], "8");
        let any = DeleteOptions::default().of_version("8").to_json();
        assert_eq!(any["preconditions"], json!({"resourceVersion": "8"}));
    }

    #[test]
    fn null_says_nothing() {
        let options = json!({"preconditions": null, "propagationPolicy": null, "orphanDependents": null,
            "dryRun": null, "gracePeriodSeconds": null});
        let read = read(&options);
        assert!(!read.is_dry_run());
        assert_eq!(read.to_json(), DeleteOptions::default().to_json());
    }
}
