//! What becomes of the objects that fields name: how far they are, and references on them. Those of other services are
//! looked up and changed there, with the token of this server: whoever may write the field may use what it names.

use std::time::Duration;

use http::Method;
use kindex_kube_api::patch::PatchType;
use kindex_kube_api::status::{Details, Reason};
use kindex_kube_client::peer::PeerKind;
use kindex_kube_client::{ClusterError, ObjectName};
use kindex_model::object::ResourceVersion;
use kindex_model::reference_name::ReferenceName;
use serde_json::json;
use tokio::time::timeout;

use super::answer::{References, State};
use super::decide::{Change, Decision, decide};
use super::found::FoundObject;
use super::named_object::{Located, NamedObject};
use super::object::LiveObject;
use super::parse::named_in_lower_case;
use super::peers::Peers;
use super::silent::has_answered;
use super::{TRIES, refused};
use crate::operations::cluster::Call;
use crate::operations::{Backends, Caller, ObjectKey, Operations, Refusal};

/// How long a write waits for another service.
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(2);

/// What it means that another service does not say how far an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum FailurePolicy {
    /// The change is refused.
    Refuses,
    /// The change passes: one service that is down must not stop the writes of others. `kindex deletion` places the
    /// reference once the service is back.
    Passes,
    /// The same, and whoever comes within a few seconds does not wait for that service either.
    PassesForAWhile,
}

/// The objects that fields name: those of this service where they are, and those of the others.
#[derive(Clone, Copy)]
pub(in super::super) struct NamedObjects<'a> {
    pub(in super::super) backends: &'a Backends,
    peers: &'a Peers,
}

impl NamedObjects<'_> {
    /// How far an object is; `None` where there is none.
    ///
    /// # Errors
    /// 503 where its service does not answer.
    pub(in super::super) async fn state_of(
        &self,
        caller: &Caller,
        object: &NamedObject,
    ) -> Result<Option<State>, Refusal> {
        match object.located() {
            Located::Own(key) => Ok(self.backends.object_state(caller, &key).await?.map(|found| found.state)),
            Located::AtPeer { service, kind, name } => {
                let kind = self.peers.kind(service, kind);
                let state = state_elsewhere(&kind, &name).await;
                state.map_err(|error| of_service(object, error))
            }
        }
    }

    /// Whether an object is being deleted.
    ///
    /// # Errors
    /// 503 where another service does not answer, and that is no answer.
    pub(super) async fn is_deleting(
        &self,
        caller: &Caller,
        object: &NamedObject,
        policy: FailurePolicy,
    ) -> Result<bool, Refusal> {
        let (kind, name) = match object.located() {
            Located::AtPeer { service, kind, name } if policy != FailurePolicy::Refuses => {
                (self.peers.kind(service, kind), name)
            }
            // There is no database to look it up in, and nobody who could have deleted it.
            Located::Own(key) if !key.resource.kind.cluster && !self.backends.is_storing() => return Ok(false),
            Located::Own(_) | Located::AtPeer { .. } => {
                return Ok(self.state_of(caller, object).await? == Some(State::Deleting));
            }
        };
        let (peers, group) = (self.peers, object.group());
        if policy == FailurePolicy::PassesForAWhile && !peers.may_be_asked(group) {
            return Ok(false);
        }
        let asked = timeout(ANSWER_WAIT_MAX, state_elsewhere(&kind, &name)).await;
        peers.note(group, has_answered(&asked));
        let why = match asked {
            Ok(Ok(state)) => return Ok(state == Some(State::Deleting)),
            Ok(Err(error)) => of_service(object, error).to_string(),
            Err(_) => format!("no answer within {} s", ANSWER_WAIT_MAX.as_secs()),
        };
        tracing::warn!(%object, why, "A field is written without the check that no object is being deleted");
        Ok(false)
    }

    /// The version of an object in the cluster, on which a release may depend. None of an archived one, and none where
    /// a service of an older version does not say it.
    ///
    /// # Errors
    /// 503 where its service does not answer.
    pub(in super::super) async fn version_of(
        &self,
        caller: &Caller,
        object: &NamedObject,
    ) -> Result<Option<ResourceVersion>, Refusal> {
        match object.located() {
            Located::Own(key) => Ok(match self.backends.look(caller, &key).await? {
                Some(FoundObject::Cluster(live)) => Some(live.version()),
                Some(FoundObject::Sql(_)) | None => None,
            }),
            Located::AtPeer { service, kind, name } => {
                let said = self.peers.kind(service, kind).look(&name).await;
                let said = said.map_err(|error| of_service(object, error))?.unwrap_or_default();
                let version = said["target"]["resourceVersion"].as_str();
                Ok(version.and_then(|version| version.parse().ok()).map(ResourceVersion))
            }
        }
    }
}

impl Operations {
    /// The objects that fields name.
    pub(in super::super) fn named_objects(&self) -> NamedObjects<'_> {
        NamedObjects {
            backends: &self.backends,
            peers: &self.peers,
        }
    }

    /// Puts a reference on an object by a write in any case: a release that depends on an earlier version of the object
    /// takes nothing off.
    ///
    /// # Errors
    /// Those of [`Operations::put_reference`].
    pub async fn renew_reference(
        &self,
        caller: &Caller,
        key: &ObjectKey<'_>,
        reference: &str,
    ) -> Result<References, Refusal> {
        let reference = self.allowed(caller, key, named_in_lower_case(reference)?).await?;
        self.place_anew(caller, key, &reference).await?;
        let found = self.backends.look(caller, key).await?;
        self.changed(caller, key, found.as_ref(), &reference, Change::Put).await
    }

    /// Places a reference on an object by a write in any case: it stays from then on, also if `kindex deletion` is
    /// about to release that very reference. An archived object has no version that a release could depend on: there,
    /// `kindex deletion` places the reference again once it sees the field.
    ///
    /// # Errors
    /// 404 where it is not there, 409 where it is being deleted, 503 where its service does not answer.
    pub(in super::super) async fn place_on(
        &self,
        caller: &Caller,
        object: &NamedObject,
        name: &ReferenceName,
    ) -> Result<(), Refusal> {
        match object.located() {
            Located::Own(key) => self.place_anew(caller, &key, name).await,
            Located::AtPeer {
                service,
                kind,
                name: at,
            } => {
                let kind = self.peers.kind(service, kind);
                let placed = kind.renew_reference(&at, &name.to_string()).await;
                let placed = placed.map_err(|error| of_service(object, error))?;
                // A reference that was there already does not help: what is being deleted takes no part in moves.
                if placed["target"]["state"].as_str().and_then(State::parse) == Some(State::Deleting) {
                    let deleted = ClusterError::Conflict("it is being deleted".to_owned());
                    return Err(of_service(object, deleted));
                }
                Ok(())
            }
        }
    }

    /// Places a reference by a write in any case: whoever has read that the object has it, and is about to release
    /// it, is refused by the version.
    async fn place_anew(&self, caller: &Caller, key: &ObjectKey<'_>, name: &ReferenceName) -> Result<(), Refusal> {
        for _ in 0..TRIES {
            let found = self.backends.look(caller, key).await?;
            let seen = self.backends.seen(key, found.as_ref(), name, Change::Put).await?;
            let found = found.ok_or_else(|| Refusal::not_found(key))?;
            let decision = decide(Change::Put, seen);
            let is_done = match (&found, decision) {
                (_, Decision::Refuse(why)) => return Err(refused(key, name, why)),
                (FoundObject::Cluster(found), Decision::Done) => self.touch(caller, key, found).await?,
                (found, _) => self.apply_decision(caller, key, found, name, decision).await?,
            };
            if is_done {
                return Ok(());
            }
        }
        Err(Refusal::conflict(key, "others change it all the time; try again"))
    }

    /// Writes an object of the cluster so that it has a new version. `false` if it has changed since it was found.
    async fn touch(&self, caller: &Caller, key: &ObjectKey<'_>, found: &LiveObject) -> Result<bool, Refusal> {
        let metadata = json!({"metadata": {
            "uid": found.uid(),
            "resourceVersion": found.version().to_string(),
            "annotations": {(format!("{}/reference-renewed", self.backends.registry.platform.group)):
                self.backends.now().to_string()},
        }});
        let call = Call {
            content_type: PatchType::Merge.media_type(),
            ..Call::json(Method::PATCH, key.path(), Vec::new(), metadata.to_string().into())
        };
        let upstream = self.backends.upstream_of(key.resource.kind)?;
        match upstream.call(&caller.on_behalf(), call).await {
            Ok(_) => Ok(true),
            Err(refusal) if refusal.is_of_changed_object() => Ok(false),
            Err(refusal) => Err(refusal),
        }
    }

    /// Releases a reference on an object; with a version, only if it has that still.
    ///
    /// # Errors
    /// 409 where it has another version, 503 where its service does not answer.
    pub(in super::super) async fn release_on(
        &self,
        caller: &Caller,
        object: &NamedObject,
        name: &ReferenceName,
        version: Option<ResourceVersion>,
    ) -> Result<(), Refusal> {
        match object.located() {
            Located::Own(key) => {
                let released = self.change_reference(caller, &key, name, Change::Delete, version).await;
                released.map(drop)
            }
            Located::AtPeer {
                service,
                kind,
                name: at,
            } => {
                let kind = self.peers.kind(service, kind);
                let version = version.map(|version| version.to_string());
                let released = kind.release_reference(&at, &name.to_string(), version.as_deref()).await;
                released.map_err(|error| of_service(object, error))
            }
        }
    }
}

/// How far an object is, as its service says; `None` where there is none.
async fn state_elsewhere(kind: &PeerKind, name: &ObjectName) -> Result<Option<State>, ClusterError> {
    let Some(said) = kind.look(name).await? else {
        return Ok(None);
    };
    let state = serde_json::from_value(said["target"]["state"].clone());
    state.map(Some).map_err(|_| kind.unclear("its answer shows no object"))
}

/// 404, by which its service says that it is not there.
pub(in super::super) fn not_there(object: &NamedObject) -> Refusal {
    match object.key() {
        Some(key) => Refusal::not_found(&key),
        None => Refusal::new(Reason::NotFound, format!("{object} not found")),
    }
}

/// What another service has said, or why nothing came from it.
fn of_service(object: &NamedObject, error: ClusterError) -> Refusal {
    match error {
        ClusterError::NotFound(_) => not_there(object),
        ClusterError::Conflict(why) => Refusal::new(Reason::Conflict, format!("{object}: {why}; {}", object.why())),
        ClusterError::Retryable { message: why, .. }
        | ClusterError::Unserved { message: why, .. }
        | ClusterError::Refused(why)
        | ClusterError::Expired(why) => {
            // By the group it is known that the service is silent, and neither the cluster nor the database.
            Refusal::new(Reason::ServiceUnavailable, why).with(Details {
                group: object.group().to_owned(),
                retry_after_seconds: Some(1),
                ..Details::default()
            })
        }
    }
}
