//! The conditions of objects that wait, or cannot hold what they name, written to their status, or to an annotation
//! where that has none. No decision depends on them, and no step waits for them but the record of a phase of an object
//! that has them.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kindex_kube_client::{ClusterError, ReadApi as _, classify, look_up};
use kindex_model::deletion::Phase;
use kindex_model::kind::Kind;
use kindex_model::object::Object as Text;
use kindex_model::reference_name::ReferenceName;
use kube::api::Api;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use super::{Cluster, name_of};
use crate::conditions::{Deletion, Form, may_be_reported};
use crate::kinds;
use crate::notice::{About, Notice};
use crate::object::{DeletionState, Object};
use crate::phase_start;

/// A write that met another one is tried again with what is there then.
const ATTEMPTS: usize = 4;
/// Conditions that are not written by then are left to the next notice or phase, as an event is that fails.
const TIME_MAX: Duration = Duration::from_secs(10);
/// After this, the definition of a kind is read again: it may have changed.
const FORM_AGE_MAX: Duration = Duration::from_secs(300);

/// How a kind spelled conditions when its definition was read.
#[derive(Debug)]
pub(super) struct Known {
    form: Option<Form>,
    read: Instant,
}

/// Conditions that are not written. Why, the log says.
struct Unwritten;

/// What is written into conditions.
#[derive(Clone, Copy)]
enum ConditionUpdate<'a> {
    /// Of a deletion, what it waits for; nothing where its phase has just begun.
    Deletion(Option<&'a Notice>),
    /// What is refused to a live object; nothing where all is placed.
    Refusal(Option<&'a Notice>),
}

impl Cluster {
    /// Records the phase of an object that is being deleted: as annotations, which count, and in conditions that say
    /// that it waits.
    pub(super) async fn record(
        &self,
        object: &Object,
        phase: Phase,
        holders: &[ReferenceName],
        now: Timestamp,
    ) -> Result<Object, ClusterError> {
        let start = phase_start::of(object, phase, holders, now);
        let names = &self.kinds.names.recorded;
        let annotations = Value::Object(names.of_start(&object.phases, &start));
        let written = match self.annotate(object, &annotations).await {
            // A cluster limits the size of all annotations together. The phase counts; the list is for people.
            Err(ClusterError::Refused(why)) => {
                tracing::warn!(object = %object.key, why, "A phase is recorded without the list of phases");
                let annotations = Value::Object(names.without_list(&start));
                self.annotate(object, &annotations).await?
            }
            written => written?,
        };
        let recorded = self.kinds.read(self.kind(&object.key), &written);
        let with_conditions = self.write_phase(&recorded, written).await;
        Ok(with_conditions.unwrap_or(recorded))
    }

    /// Writes a notice into the conditions of its object, if it is about an object that is being deleted, or that
    /// cannot hold what it names.
    pub(crate) async fn write_conditions(&self, object: &Object, notice: &Notice) {
        let update = match notice.about {
            About::Deletion if object.state == DeletionState::Deleting => ConditionUpdate::Deletion(Some(notice)),
            About::Refusal => ConditionUpdate::Refusal(Some(notice)),
            About::Deletion | About::Other => return,
        };
        self.update_conditions(object, update).await;
    }

    /// Writes that nothing is refused to an object any more, if its conditions say that something is. Whether they do
    /// not say that any more, as far as it can be known.
    pub(crate) async fn write_placed(&self, object: &Object) -> bool {
        self.update_conditions(object, ConditionUpdate::Refusal(None)).await
    }

    async fn update_conditions(&self, object: &Object, update: ConditionUpdate<'_>) -> bool {
        let written = async {
            match self.found(object).await? {
                Some(found) => self.write(object, found, update).await,
                None => Ok(None),
            }
        };
        in_time(object, written).await.is_ok()
    }

    /// Writes the phase that was just recorded into conditions that say that the object waits. The object as it is
    /// then, if anything was written.
    async fn write_phase(&self, object: &Object, recorded: Text) -> Option<Object> {
        let in_status = status_of(&recorded).is_ok_and(|status| may_be_reported(&status));
        match in_status || may_be_reported(&self.recorded(&recorded)) {
            true => {
                let written = in_time(object, self.write(object, recorded, ConditionUpdate::Deletion(None))).await;
                written.ok().flatten()
            }
            false => None,
        }
    }

    /// Nothing is written about an object that is another one by now, or has another phase or names others. The
    /// annotation of a kind whose status has a list by now goes.
    async fn write(
        &self,
        object: &Object,
        mut found: Text,
        update: ConditionUpdate<'_>,
    ) -> Result<Option<Object>, ClusterError> {
        let kind = self.kind(&object.key);
        let of_status = self.form(kind).await?;
        let form = of_status.clone().unwrap_or_else(Form::recorded);
        for _ in 0..ATTEMPTS {
            let known = self.kinds.read(kind, &found);
            if known.uid != object.uid {
                return Ok(None);
            }
            let before = match of_status {
                Some(_) => status_of(&found)?,
                None => self.recorded(&found),
            };
            let written = match (&of_status, conditions(&form, object, &known, &before, update)) {
                (Some(_), Some(conditions)) => {
                    let status = json!({"status": {form.list: conditions}});
                    self.patch(&known, Some("status"), status).await
                }
                (None, Some(conditions)) => self.write_recorded(&known, Some(conditions)).await,
                (Some(_), None) if self.has_recorded(&found) => Ok(found),
                (Some(_) | None, None) => return Ok(None),
            };
            let written = match written {
                Ok(written) if of_status.is_some() && self.has_recorded(&written) => {
                    self.write_recorded(&self.kinds.read(kind, &written), None).await
                }
                written => written,
            };
            match written {
                Err(ClusterError::Conflict(_)) => {}
                Err(error) if error.is_absence() => return Ok(None),
                Ok(written) => return Ok(Some(self.kinds.read(kind, &written))),
                Err(error) => return Err(error),
            }
            match self.found(object).await? {
                Some(again) => found = again,
                None => return Ok(None),
            }
        }
        Err(ClusterError::Conflict("others write it all the time".to_owned()))
    }

    /// The conditions in the annotation of an object.
    fn recorded(&self, object: &Text) -> Value {
        self.kinds.names.recorded.status_in(&object.metadata.annotations)
    }

    fn has_recorded(&self, object: &Text) -> bool {
        let annotations = &object.metadata.annotations;
        annotations.contains_key(&self.kinds.names.recorded.conditions)
    }

    /// Writes that annotation; without conditions, it goes.
    async fn write_recorded(&self, object: &Object, conditions: Option<Vec<Value>>) -> Result<Text, ClusterError> {
        let text = conditions.map(|conditions| Value::Array(conditions).to_string());
        let annotations = json!({ &self.kinds.names.recorded.conditions: text });
        self.annotate(object, &annotations).await
    }

    async fn found(&self, object: &Object) -> Result<Option<Text>, ClusterError> {
        let key = &object.key;
        self.api.find(self.kind(key), &name_of(key)).await
    }

    /// How a kind spells conditions, by its definition.
    async fn form(&self, kind: &'static Kind) -> Result<Option<Form>, ClusterError> {
        let name = kinds::name_of(kind);
        if let Some(known) = self.forms().get(&name)
            && known.read.elapsed() < FORM_AGE_MAX
        {
            return Ok(known.form.clone());
        }
        let definition = self.definition(kind).await?;
        let form = definition.and_then(|definition| Form::of(&definition, kind.version));
        let known = Known {
            form: form.clone(),
            read: Instant::now(),
        };
        self.forms().insert(name, known);
        Ok(form)
    }

    /// The definition that the cluster has. No cluster has that of an SQL-only kind.
    async fn definition(&self, kind: &'static Kind) -> Result<Option<Value>, ClusterError> {
        if !kind.cluster {
            return Ok(serde_saphyr::from_str(kind.manifest).ok());
        }
        let definitions: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        let definition = look_up(&definitions, &kind.crd_name()).await;
        let definition = definition.map_err(|error| classify(&error))?;
        Ok(definition.and_then(|definition| serde_json::to_value(definition).ok()))
    }
}

/// The status of an object; null where it has none. One that cannot be read is an error: its conditions would be lost.
fn status_of(object: &Text) -> Result<Value, ClusterError> {
    let fields: Result<BTreeMap<String, &RawValue>, _> = serde_json::from_str(object.text());
    let status = fields.and_then(|fields| match fields.get("status") {
        Some(status) => serde_json::from_str(status.get()),
        None => Ok(Value::Null),
    });
    status.map_err(|error| ClusterError::Refused(format!("its status cannot be read: {error}")))
}

/// The conditions of an object, seen as one and known as another version of it by now; `None` where nothing is to be
/// written.
fn conditions(
    form: &Form,
    seen: &Object,
    known: &Object,
    status: &Value,
    update: ConditionUpdate<'_>,
) -> Option<Vec<Value>> {
    let now = Timestamp::now();
    match update {
        ConditionUpdate::Deletion(notice) if known.is_leaving() && known.phase == seen.phase => {
            let deletion = Deletion {
                phase: known.phase,
                since: known.since,
                notice,
                now,
            };
            form.with(status, deletion)
        }
        ConditionUpdate::Refusal(notice) if !known.is_leaving() && known.edges == seen.edges => {
            form.with_refusal(status, notice, now)
        }
        ConditionUpdate::Deletion(_) | ConditionUpdate::Refusal(_) => None,
    }
}

async fn in_time(
    object: &Object,
    written: impl Future<Output = Result<Option<Object>, ClusterError>>,
) -> Result<Option<Object>, Unwritten> {
    let why = match timeout(TIME_MAX, written).await {
        Ok(Ok(written)) => return Ok(written),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no answer within {TIME_MAX:?}"),
    };
    tracing::warn!(object = %object.key, why, "The conditions of an object cannot be written");
    Err(Unwritten)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As if a number that only a text can hold made a status without conditions of any other.
    #[test]
    fn a_status_is_read_whatever_the_rest_of_its_object_holds() {
        let status = |rest: &str| {
            let text = format!(r#"{{"metadata":{{"name":"a","uid":"u","resourceVersion":"7"}}{rest}}}"#);
            status_of(&Text::parse_str(&text).expect("an object"))
        };
        assert_eq!(status(""), Ok(Value::Null));
        assert_eq!(
            status(r#","spec":{"n":1e400},"status":{"conditions":[]}"#),
            Ok(json!({"conditions": []}))
        );
        assert!(
            status(r#","status":{"n":1e400}"#).is_err(),
            "its conditions would be lost"
        );
    }
}
