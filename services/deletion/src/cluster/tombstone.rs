//! The deletion of an archived object that others hold, one step at a time. Its state is only in SQL: whatever ends
//! between two requests, the next reading goes on from there.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kindex_kube_client::ClusterError;
use tokio::time::Instant;

use super::archived::{HolderSweep, has_its_name};
use super::follower::Follower;
use super::outcome::Unanswered;
use super::{Cluster, failed};
use crate::answers::{RefusedHolders, Swept};
use crate::archive::tombstone::decide;
use crate::archive::{Archive, HolderScope};
use crate::cleanup_states::ArchivedCleanupStates;
use crate::decide::{Archived, CleanupState, Seen, Step};
use crate::object::{KindName, Object};

/// What came of a step of a tombstone.
pub(crate) struct TombstoneProgress {
    /// The object as it was read.
    pub(crate) object: Object,
    /// What was done, or what it waits for.
    pub(crate) step: Step,
    /// The service for which its last step waits.
    pub(crate) unanswered: Option<Unanswered>,
    /// The live holders that cannot be changed.
    pub(crate) refused: Option<RefusedHolders>,
    /// Whether something changed, so that the next step may be due.
    pub(crate) moved: bool,
}

impl Cluster {
    /// Uids of a kind's tombstones, after one of them; none at the end.
    pub(crate) async fn tombstones(&self, kind: &KindName, after: &str) -> Result<Vec<String>, ClusterError> {
        match &self.archive {
            Some(archive) => archive.tombstones(kind, after).await.map_err(|error| failed(&error)),
            None => Ok(Vec::new()),
        }
    }

    /// Takes one tombstone a step further. Nothing where it is none any more, or the cluster has the object again.
    /// Services that are silent are not asked, and the call of a cleanup is left to the caller: it may take long.
    pub(crate) async fn advance_tombstone(
        &self,
        kind: &KindName,
        uid: &str,
        silent: &BTreeSet<String>,
        states: &ArchivedCleanupStates,
        follower: &Follower,
        now: Timestamp,
    ) -> Result<Option<TombstoneProgress>, ClusterError> {
        let Some(archive) = self.archive.as_deref() else {
            return Ok(None);
        };
        let found = archive.tombstone(kind, uid).await;
        let Some(object) = found.map_err(|error| failed(&error))? else {
            self.rounds.forget(uid);
            return Ok(None);
        };
        let in_cluster = self.get(&object.key).await?;
        if in_cluster.as_ref().is_some_and(|found| found.uid == object.uid) {
            self.rounds.forget(uid);
            return Ok(None);
        }
        let target = Seen::of(&object);
        let is_named = in_cluster.is_none() && has_its_name(archive, &target).await?;
        let holders = HolderSweep {
            target,
            phase: object.phase,
            scope: if is_named { HolderScope::All } else { HolderScope::Rows },
            follower: Some(follower),
        };
        let Some(swept) = holders.sweep(self, archive, now).await? else {
            return Ok(None);
        };
        let holds = is_free(&swept) && self.holds(archive, &object).await?;
        let cleanup = match self.may_have_outside(kind) {
            true => states.of(&object, Instant::now()),
            false => CleanupState::Gone,
        };
        let step = decide(&swept, &cleanup, holds);
        let mut unanswered = None;
        let wrote = if let Step::Record(phase, _) = &step {
            let written = archive.record(&object, *phase, now).await;
            written.map_err(|error| failed(&error))?
        } else if matches!(step, Step::Free { .. }) {
            // What it holds here is released by its end.
            unanswered = self.release_elsewhere(&object, silent).await;
            let ended = match &unanswered {
                None => archive.end(&object, now).await,
                Some(_) => Ok(false),
            };
            ended.map_err(|error| failed(&error))?
        } else {
            false
        };
        let moved = wrote || swept.goes_on;
        Ok(Some(TombstoneProgress {
            object,
            step,
            unanswered,
            refused: swept.refused,
            moved,
        }))
    }

    /// Whether it has rows on others, or names objects of other services.
    async fn holds(&self, archive: &dyn Archive, object: &Object) -> Result<bool, ClusterError> {
        let foreign = object
            .edges
            .iter()
            .any(|edge| self.peers.of(&edge.target.kind).is_some());
        Ok(foreign || archive.holds(&object.uid).await.map_err(|error| failed(&error))?)
    }

    /// Releases what it holds at other services, as far as they answer. The first one that does not, if any.
    async fn release_elsewhere(&self, object: &Object, silent: &BTreeSet<String>) -> Option<Unanswered> {
        let name = object.reference_name()?.to_string();
        let mut first = None;
        for edge in &object.edges {
            let Some(peer) = self.peers.of(&edge.target.kind) else {
                continue;
            };
            let place = peer.service_description();
            let unanswered = match silent.contains(&place) {
                true => Unanswered {
                    place,
                    why: "it did not answer a moment ago".to_owned(),
                    is_silent: true,
                },
                false => match peer.release_reference(&edge.target, &name, None).await {
                    Ok(()) => continue,
                    Err(error) => Unanswered::by(place, &error),
                },
            };
            first.get_or_insert(unanswered);
        }
        first
    }
}

fn is_free(swept: &Swept) -> bool {
    matches!(&swept.archived, Archived::Remaining { plain, owned } if plain.is_empty() && owned.is_empty())
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use axum::Router;
    use axum::http::StatusCode;
    use kindex_kube_client::peer::Address;
    use kindex_model::kind::Registry;
    use kindex_model::reference::OnDelete;
    use tokio::net::TcpListener;

    use super::*;
    use crate::fixture::{deleting, key, key_in};
    use crate::kinds::Kinds;
    use crate::object::{Edge, Key};
    use crate::peer::{Peers, Transport};

    /// Where nobody listens.
    const NOWHERE: &str = "http://127.0.0.1:1";

    fn object(targets: &[Key]) -> Object {
        let edges = targets.iter().map(|target| Edge {
            reference: "target",
            target: target.clone(),
            owned: false,
            on_delete: OnDelete::Block,
        });
        Object {
            edges: edges.collect(),
            ..deleting(key("Cluster", "c"), "7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce")
        }
    }

    fn project() -> Key {
        key_in("y.example.com", "Project", "a")
    }

    /// A cluster beside the service of projects at this URL.
    async fn beside(url: &str) -> Cluster {
        let address = Address {
            name: "identity".to_owned(),
            url: url.to_owned(),
            ca_file: None,
            token_file: None,
        };
        let client = address.client().await.expect("a client");
        let peers = Peers::new([(project().kind, address)], &Transport::Events);
        Cluster::new(client, Kinds::of(&Registry::EMPTY)).beside(peers)
    }

    #[tokio::test]
    async fn a_service_that_refuses_something_of_one_object_is_not_silent() {
        let of_the_object = [403, 409, 422].map(|code| (code, false));
        let of_the_service = [401, 404, 408, 429, 503].map(|code| (code, true));
        for (code, is_silent) in of_the_object.into_iter().chain(of_the_service) {
            let code = StatusCode::from_u16(code).expect("a code");
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
            let url = format!("http://{}", listener.local_addr().expect("an address"));
            let refuses = Router::new().fallback(move || ready(code));
            tokio::spawn(async move { axum::serve(listener, refuses).await });
            let (cluster, object, nobody) = (beside(&url).await, object(&[project()]), BTreeSet::new());
            let refused = cluster.release_elsewhere(&object, &nobody).await;
            let refused = refused.expect("nothing is released");
            assert_eq!(refused.is_silent, is_silent, "{code}: {}", refused.why);
        }
    }

    #[tokio::test]
    async fn a_service_that_does_not_release_its_object_is_named() {
        let (cluster, project) = (beside(NOWHERE).await, project());
        let network = key("Network", "a");
        let nobody = BTreeSet::new();
        let here = object(std::slice::from_ref(&network));
        let here = cluster.release_elsewhere(&here, &nobody).await;
        assert_eq!(here, None, "its own service releases that");
        let object = object(&[network, project]);
        let there = cluster.release_elsewhere(&object, &nobody).await;
        let there = there.expect("nobody answers");
        assert_eq!(there.place, "the service identity at http://127.0.0.1:1");
        assert!(
            there.is_silent && there.why.contains("does not answer"),
            "{}",
            there.why
        );
        let silent = BTreeSet::from([there.place]);
        let again = cluster.release_elsewhere(&object, &silent).await;
        assert_eq!(again.expect("still").why, "it did not answer a moment ago");
    }
}
