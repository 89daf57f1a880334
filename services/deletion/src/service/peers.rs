//! What other services say, beside the loop of one cluster: their events, and look-ups of what ours name.

use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::time::Duration;

use kindex_kube_client::ClusterError;
use kindex_model::reference_name::ReferenceName;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::REPORTS_MAX;
use super::readiness_failures::ReadinessFailures;
use super::work::Work;
use crate::cluster::Cluster;
use crate::cluster::outcome::Task;
use crate::decide::{Cause, FoundHolder, Step};
use crate::kinds::name_of;
use crate::notice::{self, Notice};
use crate::object::{Key, KindName, Object};
use crate::peer::follow::{PeerEvent, TargetUids, follow};

/// After a look-up that failed.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// After nobody has said where a holder is: only what people are told depends on it.
const FIND_AGAIN_AFTER: Duration = Duration::from_secs(10);
/// As often in succession a step fails before an event says that a service does not answer.
pub(super) const FAILURES_UNTIL_REPORT: u32 = 3;

/// What ends of it.
pub(super) enum PeerInput {
    /// An event of a service.
    Event(PeerEvent),
    /// An answer.
    LookedUp(Key, Result<Option<Box<Object>>, ClusterError>),
    /// The pause after a look-up that failed.
    Paused(Key),
    /// Where a holder is.
    Found(ReferenceName, Result<Option<FoundHolder>, ClusterError>),
    /// The pause after nobody has said so.
    PausedHolder(ReferenceName),
}

/// The other services of one run.
pub(super) struct Peers {
    cluster: Cluster,
    events: mpsc::Receiver<PeerEvent>,
    followers: JoinSet<()>,
    look_ups: JoinSet<PeerInput>,
    /// Of holders, which keep no look-up from its turn.
    finds: JoinSet<PeerInput>,
    held: BTreeMap<KindName, TargetUids>,
    /// Of which nothing is heard, and why.
    silent: BTreeMap<KindName, String>,
}

impl Peers {
    /// Follows them from now on.
    pub(super) fn follow(cluster: &Cluster) -> Self {
        let (send, events) = mpsc::channel(REPORTS_MAX);
        let holders: Vec<_> = cluster.kinds().all().map(name_of).collect();
        let (mut followers, mut held) = (JoinSet::new(), BTreeMap::new());
        for kind in cluster.peers().kinds() {
            let of_kind = TargetUids::default();
            held.insert(kind.clone(), of_kind.clone());
            let (cluster, kind, holders, send) = (cluster.clone(), kind.clone(), holders.clone(), send.clone());
            followers.spawn(async move {
                if let Some(peer) = cluster.peers().of(&kind) {
                    follow(peer, &holders, &of_kind, &send).await;
                }
            });
        }
        Self {
            cluster: cluster.clone(),
            events,
            followers,
            look_ups: JoinSet::new(),
            finds: JoinSet::new(),
            held,
            silent: BTreeMap::new(),
        }
    }

    /// Begins the look-ups that are due, as many at a time as each service is asked for.
    pub(super) fn ask(&mut self, work: &mut Work) {
        while let Some(key) = work.next_look_up() {
            let cluster = self.cluster.clone();
            self.look_ups.spawn(async move {
                let found = match cluster.peers().of(&key.kind) {
                    Some(peer) => peer.look(&key).await,
                    None => Ok(None),
                };
                PeerInput::LookedUp(key, found.map(|found| found.map(Box::new)))
            });
        }
        while let Some(name) = work.next_holder() {
            let cluster = self.cluster.clone();
            self.finds.spawn(async move {
                let found = cluster.peers().find(&name).await;
                PeerInput::Found(name, found)
            });
        }
    }

    /// What is heard next; never ends where there are no other services.
    pub(super) async fn next(&mut self) -> PeerInput {
        tokio::select! {
            Some(event) = self.events.recv() => PeerInput::Event(event),
            Some(ended) = self.look_ups.join_next() => ended.expect("a look-up does not panic"),
            Some(ended) = self.finds.join_next() => ended.expect("a look-up does not panic"),
            else => std::future::pending().await,
        }
    }

    /// Takes in what was heard.
    pub(super) fn take(&mut self, input: PeerInput, work: &mut Work, readiness_failures: &ReadinessFailures) {
        match input {
            PeerInput::Event(PeerEvent::Happened(key, is_deleted)) => work.happened(key, is_deleted),
            PeerInput::Event(PeerEvent::Replayed(kind, targets)) => {
                work.replayed(&kind, targets);
                if work.doubts(&kind) {
                    let all = format!("all that matter here were looked up: the events of {kind} are complete again");
                    readiness_failures.begin(&kind, doubted_until(&kind, &all));
                } else {
                    readiness_failures.end(&kind);
                }
            }
            PeerInput::Event(PeerEvent::Heard(kind)) => {
                tracing::info!(%kind, "The objects of another service are followed");
                self.silent.remove(&kind);
            }
            PeerInput::Event(PeerEvent::Silent(kind, why)) => {
                // An outage is one warning, however often it is noticed.
                if self.silent.get(&kind) != Some(&why) {
                    tracing::warn!(%kind, why, "Another service is not heard");
                    self.silent.insert(kind, why);
                }
            }
            PeerInput::Event(PeerEvent::Doubted(kind, why)) => {
                tracing::error!(%kind, why, "The events of another service are not to be trusted");
                work.doubted(&kind);
                readiness_failures.begin(&kind, why);
            }
            PeerInput::LookedUp(key, Ok(found)) => {
                work.looked_up(&key, found.map(|found| *found), Instant::now());
                if !work.doubts(&key.kind) {
                    readiness_failures.end(&key.kind);
                }
            }
            PeerInput::LookedUp(key, Err(error)) => {
                tracing::debug!(object = %key, %error, "A look-up is tried again");
                if work.doubts_until_looked_up(&key) {
                    let this = format!("{key} was looked up: {error}");
                    readiness_failures.begin(&key.kind, doubted_until(&key.kind, &this));
                }
                self.look_ups.spawn(async move {
                    sleep(LOOK_AGAIN_AFTER).await;
                    PeerInput::Paused(key)
                });
            }
            PeerInput::Paused(key) => work.look_up_again(&key),
            PeerInput::Found(name, Ok(found)) => work.found(name, found, Instant::now()),
            PeerInput::Found(name, Err(error)) => {
                tracing::debug!(%name, %error, "A holder is looked for again");
                self.finds.spawn(async move {
                    sleep(FIND_AGAIN_AFTER).await;
                    PeerInput::PausedHolder(name)
                });
            }
            PeerInput::PausedHolder(name) => work.find_again(&name),
        }
    }

    /// Says which of their objects have references of ours.
    pub(super) fn hold(&self, work: &Work) {
        for (kind, held) in &self.held {
            *held.lock().unwrap_or_else(PoisonError::into_inner) = work.held(kind);
        }
    }

    /// Follows nobody any more.
    pub(super) async fn end(mut self) {
        self.followers.shutdown().await;
        self.look_ups.shutdown().await;
        self.finds.shutdown().await;
    }
}

/// Why nothing goes with the objects of a kind, although its events are complete again.
fn doubted_until(kind: &KindName, looked_up: &str) -> String {
    format!("nothing is deleted with objects of {kind} until {looked_up}")
}

/// What people are told of a step that waits for another service; nothing where it waits for none.
pub(super) fn unanswered(cluster: &Cluster, task: &Task, why: &str) -> Option<Notice> {
    let asked: Vec<&Key> = match &task.step {
        Step::Place { target, .. } | Step::Release(target) => vec![&target.key],
        Step::Delete(Cause::Target { target, .. }) | Step::Request(Cause::Target { target, .. }) => vec![&target.key],
        Step::Free { confirm } => confirm.iter().collect(),
        Step::Adopt
        | Step::Request(Cause::Requested)
        | Step::Delete(Cause::Requested)
        | Step::Record(..)
        | Step::Hold { .. }
        | Step::Keep(_)
        | Step::Sweep
        | Step::CleanUp
        | Step::Wait(_)
        | Step::Rest(_) => Vec::new(),
    };
    let peer = asked.into_iter().find_map(|key| cluster.peers().of(&key.kind))?;
    Some(notice::unanswered(&peer.service_description(), why))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::Router;
    use kindex_model::kind::Registry;
    use kindex_model::object::ResourceVersion;
    use kindex_model::reference::OnDelete;
    use kube::Client;
    use tracing::dispatcher::set_default;
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Dispatch, Event, Level, Metadata, Subscriber};

    use super::*;
    use crate::fixture::{key, key_in, live};
    use crate::kinds::Kinds;
    use crate::object::Edge;
    use crate::service::work::Setup;

    fn project() -> Key {
        key_in("identity.example.com", "Project", "a")
    }

    /// A run in which a cluster names the project.
    fn work() -> Work {
        let setup = Setup {
            foreign: BTreeSet::from([project().kind]),
            ..Setup::default()
        };
        let mut work = Work::new(Vec::new(), setup, Duration::ZERO);
        let cluster = Object {
            edges: vec![Edge {
                reference: "project",
                target: project(),
                owned: false,
                on_delete: OnDelete::Cascade,
            }],
            ..live(key("Cluster", "c"), "c")
        };
        work.on_list(&key("Cluster", "c").kind, ResourceVersion(6), vec![cluster]);
        work
    }

    /// Counts what is warned of.
    #[derive(Clone, Default)]
    struct Warnings(Arc<AtomicUsize>);

    impl Subscriber for Warnings {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, event: &Event<'_>) {
            let is_warning = *event.metadata().level() == Level::WARN;
            self.0.fetch_add(usize::from(is_warning), Ordering::Relaxed);
        }

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }

    /// A run without objects, and what it hears of other services.
    fn peers() -> Peers {
        let client = Client::new(Router::<()>::new(), "default");
        Peers::follow(&Cluster::new(client, Kinds::of(&Registry::EMPTY)))
    }

    #[tokio::test]
    async fn a_service_that_is_not_heard_is_warned_of_once_until_the_reason_changes() {
        // With one dispatcher alone, tracing remembers what other tests' threads want of a line.
        let _second = Dispatch::new(Warnings::default());
        let warnings = Warnings::default();
        let _guard = set_default(&Dispatch::new(warnings.clone()));
        let (mut peers, mut work, readiness_failures) = (peers(), work(), ReadinessFailures::default());
        let mut warned = |event| {
            peers.take(PeerInput::Event(event), &mut work, &readiness_failures);
            warnings.0.swap(0, Ordering::Relaxed)
        };
        let silent = |kind: KindName, why: &str| PeerEvent::Silent(kind, why.to_owned());
        let project = || project().kind;
        assert_eq!(warned(silent(project(), "reset")), 1);
        assert_eq!(warned(silent(project(), "reset")), 0, "the same again");
        assert_eq!(warned(silent(key("Cluster", "c").kind, "reset")), 1, "of another kind");
        assert_eq!(warned(silent(project(), "forbidden")), 1, "for another reason");
        assert_eq!(warned(silent(project(), "forbidden")), 0, "the same again");
        assert_eq!(warned(PeerEvent::Heard(project())), 0);
        assert_eq!(warned(silent(project(), "forbidden")), 1, "it was heard in between");
    }

    /// As if the doubt ended with complete events, or as if nobody were told why it lasts.
    #[tokio::test]
    async fn a_kind_is_listed_until_its_look_ups_are_answered_again() {
        let (mut peers, mut work, readiness_failures) = (peers(), work(), ReadinessFailures::default());
        let mut hear = |input| {
            peers.take(input, &mut work, &readiness_failures);
            readiness_failures.list()
        };
        let kind = project().kind;
        let doubted = || PeerInput::Event(PeerEvent::Doubted(kind.clone(), "restored".to_owned()));
        let replayed = || PeerInput::Event(PeerEvent::Replayed(kind.clone(), Vec::new()));
        let refused = || PeerInput::LookedUp(project(), Err(ClusterError::Refused("forbidden".to_owned())));
        assert_eq!(hear(doubted()), ["restored"]);
        assert_eq!(hear(refused()), ["restored"], "the events come first");
        let until = |what: &str| format!("nothing is deleted with objects of {kind} until {what}");
        let all = format!("all that matter here were looked up: the events of {kind} are complete again");
        assert_eq!(hear(replayed()), [until(&all)]);
        let this = format!("{} was looked up: refused: forbidden", project());
        assert_eq!(hear(refused()), [until(&this)]);
        assert!(hear(PeerInput::LookedUp(project(), Ok(None))).is_empty());
        assert_eq!(hear(doubted()), ["restored"], "again");
    }
}
