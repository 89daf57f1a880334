//! Whether a cluster serves a kind, by its discovery. An answer is kept for a moment, and whoever asks at the same time
//! gets it too. Does not know who asks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kindex_kube_api::status::Outcome;
use kindex_model::kind::{Kind, Scope};
use kube::Client;
use tokio::time::Instant;

use super::ClusterError;
use super::classify::outcome;

/// How long an answer counts: each object of a kind that is not served asks for it.
const KEPT_FOR: Duration = Duration::from_secs(5);

/// Where a cluster serves a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// In the version that was asked for.
    Here,
    /// In that version, with namespaces where none are expected, or the other way round.
    InOtherScope,
    /// In other versions of its group alone, as far as they can be read.
    InOtherVersion,
    /// In no version of its group.
    Nowhere,
    /// Whoever asks may not read the discovery.
    Hidden,
    /// What was answered is no discovery of a cluster.
    Unknown,
}

/// The kind that a cluster is asked about.
#[derive(Clone, Copy, Debug)]
pub struct DiscoveryQuery<'a> {
    /// The API group.
    pub group: &'a str,
    /// The version.
    pub version: &'a str,
    /// As paths have it.
    pub plural: &'a str,
    /// Where its objects are expected; `None` where both will do.
    pub scope: Option<Scope>,
}

impl DiscoveryQuery<'static> {
    /// This kind.
    pub(super) fn of(kind: &Kind) -> Self {
        Self {
            group: kind.group,
            version: kind.version,
            plural: kind.plural,
            scope: Some(kind.scope),
        }
    }
}

/// Where a cluster serves a kind. Asks for the groups first: a cluster has that list whatever it serves. It has no page
/// of a group without kinds, as a server that is no cluster has none.
///
/// # Errors
/// Where the cluster does not say enough of it.
pub async fn served(client: &Client, query: &DiscoveryQuery<'_>) -> kube::Result<Served> {
    match look(client, query).await {
        Err(error) if outcome(&error) == Some(Outcome::Forbidden) => Ok(Served::Hidden),
        served => served,
    }
}

async fn look(client: &Client, query: &DiscoveryQuery<'_>) -> kube::Result<Served> {
    // The core group has a discovery of its own.
    if query.group.is_empty() {
        return Ok(Served::Unknown);
    }
    let groups = client.list_api_groups().await?.groups;
    // Every cluster has groups of its own. JSON of what stands before it reads as a list of none.
    if groups.is_empty() {
        return Ok(Served::Unknown);
    }
    let group = groups.into_iter().find(|group| group.name == query.group);
    let mut versions: Vec<_> = group.into_iter().flat_map(|group| group.versions).collect();
    versions.sort_by_key(|version| version.version != query.version);
    let mut served = Served::Nowhere;
    for version in versions {
        let found = find(client, query, &version.group_version).await;
        if version.version == query.version {
            match found? {
                Served::Nowhere => {}
                known => return Ok(known),
            }
        } else if !matches!(found, Ok(Served::Nowhere)) {
            // Objects may be there in a version that cannot be read.
            served = Served::InOtherVersion;
        }
    }
    Ok(served)
}

/// Whether a version of the group has it.
async fn find(client: &Client, query: &DiscoveryQuery<'_>, group_version: &str) -> kube::Result<Served> {
    let list = client.list_api_group_resources(group_version).await?;
    if list.group_version != group_version {
        return Ok(Served::Unknown);
    }
    let Some(found) = list.resources.iter().find(|resource| resource.name == query.plural) else {
        return Ok(Served::Nowhere);
    };
    let is_expected = |scope: Scope| found.namespaced == (scope == Scope::Namespaced);
    Ok(match query.scope.is_none_or(is_expected) {
        true => Served::Here,
        false => Served::InOtherScope,
    })
}

/// What was answered of one kind.
type Answer = Result<Served, ClusterError>;

/// The last answer, and when it came. It is locked while the cluster is asked.
type Slot = Arc<tokio::sync::Mutex<Option<(Instant, Answer)>>>;

/// The answers of the last moment, by group, version and plural. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Answers(Arc<Mutex<BTreeMap<[&'static str; 3], Slot>>>);

impl Answers {
    /// The answer of the last moment; without one, what is asked now.
    pub(super) async fn of(&self, kind: &Kind, asked: impl Future<Output = Answer>) -> Answer {
        let slot = self.slot(kind);
        let mut known = slot.lock().await;
        if let Some((at, answer)) = &*known
            && at.elapsed() < KEPT_FOR
        {
            return answer.clone();
        }
        let answer = asked.await;
        *known = Some((Instant::now(), answer.clone()));
        answer
    }

    /// The cluster has just answered for the kind: that it is not served counts no more. A question under way goes on.
    pub(super) fn forget(&self, kind: &Kind) {
        let mut slots = self.0.lock().expect("nobody panics with the answers in hand");
        slots.remove(&[kind.group, kind.version, kind.plural]);
    }

    fn slot(&self, kind: &Kind) -> Slot {
        let mut slots = self.0.lock().expect("nobody panics with the answers in hand");
        slots
            .entry([kind.group, kind.version, kind.plural])
            .or_default()
            .clone()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::ready;

    use futures::future::join;
    use tokio::time::{advance, sleep};

    use super::*;

    static WIDGETS: Kind = Kind {
        group: "g.example",
        version: "v1",
        plural: "widgets",
        ..Kind::EMPTY
    };
    static NEWER: Kind = Kind {
        group: "g.example",
        version: "v2",
        plural: "widgets",
        ..Kind::EMPTY
    };

    /// As if each object that is not there asked anew, or as if nobody noticed that the kind is served again.
    #[tokio::test(start_paused = true)]
    async fn who_asks_at_the_same_time_or_a_moment_later_gets_the_same_answer() {
        let (answers, asked) = (Answers::default(), Cell::new(0));
        let (shared, count) = (&answers, &asked);
        let ask = || async move {
            let question = async {
                sleep(Duration::from_secs(1)).await;
                count.set(count.get() + 1);
                Ok(Served::Nowhere)
            };
            shared.clone().of(&WIDGETS, question).await
        };
        let both = join(ask(), ask()).await;
        assert_eq!(both, (Ok(Served::Nowhere), Ok(Served::Nowhere)));
        assert_eq!(asked.get(), 1, "they share one question");
        let newer = answers.of(&NEWER, ready(Ok(Served::Unknown))).await;
        assert_eq!(newer, Ok(Served::Unknown), "it is another version");
        answers.forget(&NEWER);
        let newer = answers.of(&NEWER, ready(Ok(Served::Here))).await;
        assert_eq!(newer, Ok(Served::Here), "the former answer was forgotten");
        advance(KEPT_FOR).await;
        let here = answers.of(&WIDGETS, ready(Ok(Served::Here))).await;
        assert_eq!(here, Ok(Served::Here), "the answer is too old");
    }
}
