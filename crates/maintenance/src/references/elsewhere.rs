//! Asks other services what their objects have of our holders: of those that fields name, and, in the first reading, of
//! all objects of the kinds that fields may name, since nothing else leads to a reference that was left behind. Later
//! readings look again at those alone that had such a reference.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::future::join_all;
use kindex_model::kind::Registry;
use kindex_store::progress::Progress;
use tokio::time::sleep;

use super::compare::{Everything, FullName};
use super::{ListedPage, PeerApi, PeerFailure, ReferencedObject, ReferencedState};

/// Objects that another service is asked about at once.
const LOOKED_AT_ONCE: usize = 8;

/// How often a call is made that is not answered.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(500);

/// What stays known of other services from one reading to the next.
#[derive(Debug, Default)]
pub(super) struct PeersState {
    /// Whether their objects were listed.
    is_listed: bool,
    /// Those that had references of our holders.
    targets: BTreeSet<FullName>,
    /// Of which kinds not all objects were read, and why.
    unlisted: BTreeSet<String>,
    /// Why nothing is heard of kinds, by group and kind: nobody asks about these any more.
    silent: BTreeMap<(&'static str, &'static str), String>,
}

impl PeersState {
    /// Asks what is needed for a comparison: first about what fields name, which is compared even where nothing can be
    /// listed.
    pub(super) async fn ask(
        &mut self,
        all: &mut Everything,
        registry: &Registry,
        others: &impl PeerApi,
        progress: &dyn Progress,
    ) {
        // Nobody places references of declared fields otherwise. What was left behind is left behind all the same.
        let mut places = match all.is_placed() {
            true => all.named_elsewhere(),
            false => BTreeSet::new(),
        };
        places.extend(self.targets.iter().cloned());
        let places: Vec<FullName> = places.into_iter().collect();
        for of_kind in places.chunk_by(|one, other| (one.0, one.1) == (other.0, other.1)) {
            self.look(all, of_kind, others).await;
        }
        if !self.is_listed {
            self.is_listed = true;
            for kind in kinds_elsewhere(registry) {
                progress.begin(kind.1, None);
                self.walk(all, kind, others).await;
            }
        }
        all.unlisted.extend(self.unlisted.iter().cloned());
    }

    /// Reads all objects of a kind, and keeps those that have references of our holders. Their names come first: the
    /// token of a page expires while objects are read.
    async fn walk(&mut self, all: &mut Everything, (group, kind): (&'static str, &'static str), others: &impl PeerApi) {
        if let Some(why) = self.silent.get(&(group, kind)) {
            self.unlisted.insert(why.clone());
            return;
        }
        let unread = self.unread(all, (group, kind), others).await;
        for places in unread.chunks(LOOKED_AT_ONCE) {
            for (place, answer) in places.iter().zip(looked_at(places, others).await) {
                match answer {
                    Ok(Some(found)) => self.keep_target(all, place, found),
                    // It is gone since it was listed.
                    Ok(None) => {}
                    Err(failure) => {
                        self.unlisted.insert(failure.why.clone());
                        if failure.is_silent {
                            self.silent.insert((group, kind), failure.why);
                            return;
                        }
                    }
                }
            }
        }
    }

    /// The objects of a kind that were not asked about yet, as far as they can be listed.
    async fn unread(
        &mut self,
        all: &Everything,
        (group, kind): (&'static str, &'static str),
        others: &impl PeerApi,
    ) -> Vec<FullName> {
        let mut unread = Vec::new();
        let mut token: Option<String> = None;
        loop {
            let page = match listed((group, kind), token.as_deref(), others).await {
                Ok(page) => page,
                Err(failure) => {
                    self.unlisted.insert(failure.why);
                    return unread;
                }
            };
            let places = page.objects.into_iter();
            let places = places.map(|(namespace, name)| (group, kind, namespace, name));
            unread.extend(places.filter(|place| !all.elsewhere.contains_key(place) && !all.absent.contains(place)));
            token = page.next;
            if token.is_none() {
                return unread;
            }
        }
    }

    fn keep_target(&mut self, all: &mut Everything, place: &FullName, found: ReferencedState) {
        let found = of_ours(all, found);
        if !found.references.is_empty() {
            self.targets.insert(place.clone());
            all.elsewhere.insert(place.clone(), found);
        }
    }

    /// Reads objects of one kind one by one.
    async fn look(&mut self, all: &mut Everything, places: &[FullName], others: &impl PeerApi) {
        for places in places.chunks(LOOKED_AT_ONCE) {
            let kind = (places[0].0, places[0].1);
            if let Some(why) = self.silent.get(&kind) {
                all.unanswered.insert(why.clone());
                return;
            }
            for (place, answer) in places.iter().zip(looked_at(places, others).await) {
                match answer {
                    Ok(Some(found)) => {
                        let found = of_ours(all, found);
                        if !found.references.is_empty() {
                            self.targets.insert(place.clone());
                        }
                        all.elsewhere.insert(place.clone(), found);
                    }
                    Ok(None) => {
                        all.absent.insert(place.clone());
                    }
                    Err(failure) => {
                        all.unanswered.insert(failure.why.clone());
                        if failure.is_silent {
                            self.silent.insert(kind, failure.why);
                        }
                    }
                }
            }
        }
    }
}

/// The kinds of other services that fields may name so that their deletion waits: group and kind.
fn kinds_elsewhere(registry: &Registry) -> BTreeSet<(&'static str, &'static str)> {
    let references = registry.kinds.iter().flat_map(|kind| kind.references);
    let waiting = references.filter(|reference| reference.waits());
    let targets = waiting.flat_map(|reference| reference.targets);
    let foreign = targets.filter(|target| target.service.is_some());
    foreign.map(|target| (target.group, target.kind)).collect()
}

/// What a service says of its objects, in their order.
async fn looked_at(places: &[FullName], others: &impl PeerApi) -> Vec<Result<Option<ReferencedState>, PeerFailure>> {
    let looks = places.iter().map(|place| async move {
        let object = referenced_at(place);
        repeated(|| others.look(&object)).await
    });
    join_all(looks).await
}

async fn listed(
    (group, kind): (&'static str, &'static str),
    token: Option<&str>,
    others: &impl PeerApi,
) -> Result<ListedPage, PeerFailure> {
    repeated(|| others.list(group, kind, token)).await
}

/// An answer that does not come at once is asked for again: services are restarted.
async fn repeated<T, F: Future<Output = Result<T, PeerFailure>>>(
    mut call: impl FnMut() -> F,
) -> Result<T, PeerFailure> {
    for _ in 1..TRIES {
        match call().await {
            Err(failure) if failure.is_silent => sleep(PAUSE).await,
            answer => return answer,
        }
    }
    call().await
}

/// Without the references of others, of which there may be very many.
fn of_ours(all: &Everything, mut found: ReferencedState) -> ReferencedState {
    found.references.retain(|name| all.kind_of(name).is_some());
    found
}

fn referenced_at(place: &FullName) -> ReferencedObject {
    let (group, kind, namespace, name) = place.clone();
    ReferencedObject {
        kind,
        group,
        namespace,
        name,
    }
}
