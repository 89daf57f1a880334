//! Gets one object: from the cluster, else from SQL, or in an earlier state.

use jiff::Timestamp;
use kindex_kube_api::request::{Verb, parameter};
use kindex_model::object::Uid;
use kindex_query::{Life, Stored};
use kindex_store::AsOf;

use super::cluster::Call;
use super::objects::Head;
use super::rights::RequiredPermission;
use super::{Answer, Backends, Caller, ObjectKey, Operations, Refusal, refusal, version_of_cluster};

/// Which state of an object is wanted.
#[derive(Clone, Debug, Default)]
pub struct GetOptions {
    /// As it was at this moment, of a kind that keeps its history.
    pub at: Option<Timestamp>,
    /// Also the last that was deleted under the name.
    pub include_deleted: bool,
    /// The object of this uid and no other of the name, also one that was deleted, or whose name another took.
    pub uid: String,
    /// As Kubernetes has it; empty for the newest.
    pub resource_version: String,
}

impl Operations {
    /// The object of that name.
    ///
    /// # Errors
    /// 404 where neither the cluster nor SQL has it.
    pub async fn get(&self, caller: &Caller, key: &ObjectKey<'_>, options: &GetOptions) -> Result<Answer, Refusal> {
        self.rights
            .allow(caller, RequiredPermission::at(Verb::Get, key))
            .await?;
        self.backends.get_object(caller, key, options).await
    }
}

impl Backends {
    /// The object of that name, in the state that is wanted, for whoever may read it.
    async fn get_object(&self, caller: &Caller, key: &ObjectKey<'_>, options: &GetOptions) -> Result<Answer, Refusal> {
        if let Some(time) = options.at {
            return self.get_past(key, time).await;
        }
        if !options.uid.is_empty() {
            return self.get_by_uid(caller, key, &options.uid).await;
        }
        if options.include_deleted {
            self.store()?;
        }
        let query = match version_of_cluster(&options.resource_version) {
            "" => Vec::new(),
            version => vec![(parameter::RESOURCE_VERSION, version.to_owned())],
        };
        match self
            .upstream_of(key.resource.kind)?
            .call(caller, Call::get(key.path(), query))
            .await
        {
            Err(refusal) if refusal.is_of_absent_object() => self.get_stored(key, options, refusal).await,
            answer => answer,
        }
    }

    async fn get_stored(&self, key: &ObjectKey<'_>, options: &GetOptions, absent: Refusal) -> Result<Answer, Refusal> {
        let found = if options.include_deleted {
            let all = self
                .store()?
                .rows_of_name(key.resource.kind, key.namespace, key.name)
                .await;
            let all = all.map_err(|error| refusal::of_store(key, error))?;
            all.into_iter().find(|stored| stored.life != Life::Live)
        } else {
            self.find_archived(key).await?
        };
        let found = found.ok_or(absent)?;
        Ok(Answer::found(self.view(key.resource).shown(&found)?))
    }

    /// What the cluster shows under the name, if that is the one, else what SQL has of it.
    async fn get_by_uid(&self, caller: &Caller, key: &ObjectKey<'_>, uid: &str) -> Result<Answer, Refusal> {
        match self
            .upstream_of(key.resource.kind)?
            .call(caller, Call::get(key.path(), Vec::new()))
            .await
        {
            Ok(answer) if Head::read(&answer.text).metadata.uid == uid => return Ok(answer),
            Err(refusal) if !refusal.is_of_absent_object() => return Err(refusal),
            Ok(_) | Err(_) => {}
        }
        let found = self.store()?.get_by_id(key.resource.kind, &Uid::from(uid)).await;
        let found = found.map_err(|error| refusal::of_store(key, error))?;
        let of_the_name = |stored: &Stored| {
            let metadata = &stored.object.metadata;
            metadata.namespace == key.namespace && metadata.name == key.name && stored.life != Life::Live
        };
        let stored = found.filter(of_the_name).ok_or_else(|| Refusal::not_found(key))?;
        let mut answer = Answer::found(self.view(key.resource).shown(&stored)?);
        if let (Some(by), Some(time)) = (&stored.replaced_by, stored.delete_time) {
            answer.warnings.push(format!(
                "replaced at {time}: {by} took its name in the cluster; kindex restore {} --uid {uid} --as NEW-NAME \
                 creates it again under another name",
                key.resource.kind.singular
            ));
        }
        Ok(answer)
    }

    async fn get_past(&self, key: &ObjectKey<'_>, time: Timestamp) -> Result<Answer, Refusal> {
        let ObjectKey {
            resource,
            namespace,
            name,
        } = key;
        let kind = resource.kind;
        let found = self.store()?.version_at(kind, namespace, name, time).await;
        match found.map_err(|error| refusal::of_store(key, error))? {
            AsOf::Stored(stored) => Ok(Answer::found(self.view(*resource).past(&stored.object).into_owned())),
            AsOf::NotYet { first } => {
                let message = format!("{kind} \"{name}\" was first seen at {first}", kind = kind.plural);
                Err(Refusal::not_found(key).with_message(message))
            }
            AsOf::Deleted { at, .. } => {
                let message = format!("{kind} \"{name}\" was deleted at {at}", kind = kind.plural);
                Err(Refusal::not_found(key).with_message(message))
            }
            AsOf::Unknown => Err(Refusal::not_found(key)),
        }
    }
}
