//! The options of deletions, as the bodies of requests carry them. Which values they may have is the server's to say.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::parameter;
use super::query::Query;

/// What becomes of the dependents of a deleted object.
/// <https://kubernetes.io/docs/concepts/architecture/garbage-collection/#cascading-deletion>
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Propagation {
    /// They are deleted afterwards.
    Background,
    /// They are deleted before.
    Foreground,
    /// They stay, without owner.
    Orphan,
}

impl Propagation {
    /// All, in the order in which kube-apiserver lists them.
    pub const ALL: [Self; 3] = [Self::Foreground, Self::Background, Self::Orphan];

    /// As Kubernetes writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Background => "Background",
            Self::Foreground => "Foreground",
            Self::Orphan => "Orphan",
        }
    }
}

/// Why options do not say what becomes of dependents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PropagationError {
    /// Both words are given, of which this is the newer one.
    Both(String),
    /// A word that Kubernetes does not have.
    Unknown(String),
}

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
    /// What the parameters of a request say.
    pub fn of_query(query: &Query) -> Self {
        Self {
            propagation_policy: query.get(parameter::PROPAGATION_POLICY).map(str::to_owned),
            orphan_dependents: query.get(parameter::ORPHAN_DEPENDENTS).map(|text| text == "true"),
            dry_run: query.get(parameter::DRY_RUN).map(|stage| vec![stage.to_owned()]),
            ..Self::default()
        }
    }

    /// What becomes of the dependents; `None` where nothing is said of it.
    ///
    /// # Errors
    /// Where both words are given, and for one that is none.
    pub fn propagation(&self) -> Result<Option<Propagation>, PropagationError> {
        match (&self.propagation_policy, self.orphan_dependents) {
            (Some(policy), Some(_)) => Err(PropagationError::Both(policy.clone())),
            (Some(policy), None) => {
                let known = Propagation::ALL.into_iter().find(|known| known.as_str() == policy);
                known.map(Some).ok_or_else(|| PropagationError::Unknown(policy.clone()))
            }
            (None, Some(true)) => Ok(Some(Propagation::Orphan)),
            (None, Some(false)) => Ok(Some(Propagation::Background)),
            (None, None) => Ok(None),
        }
    }

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
        put(parameter::PROPAGATION_POLICY, json!(self.propagation_policy));
        put(parameter::ORPHAN_DEPENDENTS, json!(self.orphan_dependents));
        put(parameter::DRY_RUN, json!(self.dry_run));
        put(parameter::GRACE_PERIOD_SECONDS, json!(self.grace_period_seconds));
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

    /// As if one word were a matter of taste, or two of them could be meant.
    #[test]
    fn what_becomes_of_dependents_is_said_in_one_of_two_ways() {
        let unknown = |word: &str| Err(PropagationError::Unknown(word.to_owned()));
        for (options, expected) in [
            (json!({}), Ok(None)),
            (
                json!({"propagationPolicy": "Background"}),
                Ok(Some(Propagation::Background)),
            ),
            (
                json!({"propagationPolicy": "Foreground"}),
                Ok(Some(Propagation::Foreground)),
            ),
            (json!({"propagationPolicy": "Orphan"}), Ok(Some(Propagation::Orphan))),
            (json!({"orphanDependents": true}), Ok(Some(Propagation::Orphan))),
            (json!({"orphanDependents": false}), Ok(Some(Propagation::Background))),
            (json!({"propagationPolicy": "orphan"}), unknown("orphan")),
            (json!({"propagationPolicy": ""}), unknown("")),
            (
                json!({"propagationPolicy": "Orphan", "orphanDependents": true}),
                Err(PropagationError::Both("Orphan".to_owned())),
            ),
        ] {
            assert_eq!(read(&options).propagation(), expected, "{options}");
        }
    }

    #[test]
    fn parameters_say_what_a_body_says() {
        let said = |query: &str| DeleteOptions::of_query(&Query::parse(query)).to_json();
        let body = |options: &Value| read(options).to_json();
        assert_eq!(said(""), body(&json!({})));
        let policy = json!({"propagationPolicy": "Orphan", "dryRun": ["All"]});
        assert_eq!(said("propagationPolicy=Orphan&dryRun=All"), body(&policy));
        assert_eq!(said("orphanDependents=true"), body(&json!({"orphanDependents": true})));
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
