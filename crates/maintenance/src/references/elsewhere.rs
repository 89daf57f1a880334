//! Asks other services what their objects bear of our holders. In the first reading, all objects of the kinds that
//! fields may name, a page at a time: nothing else leads to a reference that was left behind. In later readings, those
//! alone that fields name or that bore such a reference.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::join_all;
use kindex_model::kind::Registry;
use kindex_store::progress::Progress;

use super::compare::{Everything, FullName};
use super::{LookFailure, OtherServices, ReferencedObject, ReferencedState};

/// Objects that another service is asked about at once.
const LOOKED_AT_ONCE: usize = 8;

/// What stays known of other services from one reading to the next.
#[derive(Debug, Default)]
pub(super) struct Inquiry {
    /// Whether their objects were listed.
    is_listed: bool,
    /// Those that bore references of our holders then.
    bearers: BTreeSet<FullName>,
    /// Why kinds could not be listed to the end.
    unlisted: BTreeSet<String>,
    /// Why services have not answered, by their groups: they are asked nothing more.
    silent: BTreeMap<&'static str, String>,
}

impl Inquiry {
    /// Asks what is needed for a comparison. A service that is silent is asked no more.
    pub(super) async fn ask(
        &mut self,
        all: &mut Everything,
        registry: &Registry,
        others: &impl OtherServices,
        progress: &dyn Progress,
    ) {
        // Nobody places references of declared fields otherwise. What was left behind is left behind all the same.
        let named = match all.is_placed() {
            true => all.named_elsewhere(),
            false => BTreeSet::new(),
        };
        if !self.is_listed {
            self.is_listed = true;
            for (group, kind) in kinds_elsewhere(registry) {
                if self.silent.contains_key(group) {
                    continue;
                }
                progress.begin(kind, None);
                if let Err(failure) = self.list(all, &named, (group, kind), others).await {
                    self.unlisted.insert(failure.why.clone());
                    self.note(all, group, failure);
                }
            }
        }
        all.unanswered.extend(self.unlisted.iter().cloned());
        let places = named.union(&self.bearers);
        let unread = places.filter(|place| !all.elsewhere.contains_key(*place));
        let unread: Vec<FullName> = unread.cloned().collect();
        // They are in the order of their groups.
        for places in unread.chunk_by(|one, other| one.0 == other.0) {
            self.look(all, places, others).await;
        }
    }

    /// Reads all objects of a kind, and keeps those that bear references of our holders or that fields name.
    async fn list(
        &mut self,
        all: &mut Everything,
        named: &BTreeSet<FullName>,
        (group, kind): (&'static str, &'static str),
        others: &impl OtherServices,
    ) -> Result<(), LookFailure> {
        let mut token: Option<String> = None;
        loop {
            let page = others.list(group, kind, token.as_deref()).await?;
            let places = page.objects.into_iter();
            let places: Vec<FullName> = places.map(|(namespace, name)| (group, kind, namespace, name)).collect();
            for places in places.chunks(LOOKED_AT_ONCE) {
                for (place, answer) in places.iter().zip(looked_at(places, others).await) {
                    // It may be gone since it was listed.
                    let Some(found) = answer? else {
                        continue;
                    };
                    let found = of_ours(all, found);
                    let is_bearer = !found.references.is_empty();
                    if is_bearer {
                        self.bearers.insert(place.clone());
                    }
                    if is_bearer || named.contains(place) {
                        all.elsewhere.insert(place.clone(), found);
                    }
                }
            }
            token = page.next;
            if token.is_none() {
                return Ok(());
            }
        }
    }

    /// Reads objects of one service one by one.
    async fn look(&mut self, all: &mut Everything, places: &[FullName], others: &impl OtherServices) {
        for places in places.chunks(LOOKED_AT_ONCE) {
            let group = places[0].0;
            if let Some(why) = self.silent.get(group) {
                all.unanswered.insert(why.clone());
                return;
            }
            for (place, answer) in places.iter().zip(looked_at(places, others).await) {
                match answer {
                    Ok(Some(found)) => {
                        let found = of_ours(all, found);
                        all.elsewhere.insert(place.clone(), found);
                    }
                    Ok(None) => {
                        all.absent.insert(place.clone());
                    }
                    Err(failure) => self.note(all, group, failure),
                }
            }
        }
    }

    fn note(&mut self, all: &mut Everything, group: &'static str, failure: LookFailure) {
        let LookFailure { why, is_silent } = failure;
        if is_silent {
            self.silent.insert(group, why.clone());
        }
        all.unanswered.insert(why);
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
async fn looked_at(
    places: &[FullName],
    others: &impl OtherServices,
) -> Vec<Result<Option<ReferencedState>, LookFailure>> {
    let objects: Vec<ReferencedObject> = places.iter().map(referenced_at).collect();
    join_all(objects.iter().map(|object| others.look(object))).await
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
