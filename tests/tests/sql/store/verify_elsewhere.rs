//! References at another service in `verify`, over every database: an archived holder that lacks one, and those that
//! were left behind there. What is right is not reported, and silence is no difference.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use kindex_maintenance::references::{
    Class, ListedPage, PeerApi, PeerFailure, ReferencedObject, ReferencedState, Report, verify,
};
use kindex_maintenance::retries::RetryBudget;
use kindex_maintenance::sides::Sides;
use kindex_model::object::{ResourceVersion, Uid};
use kindex_model::reference_name::ReferenceName;
use kindex_store::ReadVersion;
use kindex_store::progress::NoProgress;
use serde_json::json;

use super::backend::Backend;
use super::restored_holders::{HOSTED, HOSTED_KINDS, registry};
use super::shelf::Shelf;
use super::widget::{REGISTRY, Widget, at, soft_delete, widget};

scenarios!(
    what_is_held_at_another_service_as_fields_say_is_no_difference,
    an_archived_holder_whose_reference_is_missing_there_is_reported_until_it_is_deleted,
    a_holder_is_compared_however_deeply_it_is_nested,
    a_reference_there_of_a_holder_that_names_another_object_is_reported,
    a_reference_there_of_a_holder_that_is_gone_is_reported_though_nobody_places_any,
    what_a_holder_releases_meanwhile_is_no_difference,
    a_service_that_is_silent_or_refuses_is_a_note,
    what_cannot_be_listed_or_read_hides_nothing_else,
    the_reference_of_the_object_that_a_holder_was_restored_from_stands_in_for_its_own,
);

const LIVE: &str = "7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce";
const ARCHIVED: &str = "11c215ab-f1cc-4f3b-b1c0-232ae8d852ce";
const GONE: &str = "00000000-f1cc-4f3b-b1c0-232ae8d852ce";
/// Objects of a page.
const PAGE: usize = 2;

/// A service with networks, by their names, each with the uids of the widgets that hold it.
#[derive(Default)]
struct Region {
    networks: BTreeMap<&'static str, BTreeSet<&'static str>>,
    /// What a look-up of the network `blue` shows from the second one on, if it is something else then.
    later: Option<BTreeSet<&'static str>>,
    /// Whether everything is refused, or nothing comes from the service at all.
    refuses: Option<bool>,
    /// The same of lists alone.
    refuses_lists: Option<bool>,
    /// A network that nobody may read.
    secret: Option<&'static str>,
    lists: AtomicU32,
    looks: AtomicU32,
    /// Those at `blue`.
    looks_at_blue: AtomicU32,
}

impl Region {
    fn of(networks: &[(&'static str, &[&'static str])]) -> Self {
        let networks = networks.iter();
        let networks = networks.map(|(name, holders)| (*name, holders.iter().copied().collect()));
        Self {
            networks: networks.collect(),
            ..Self::default()
        }
    }
}

fn refusal(refuses: Option<bool>) -> Result<(), PeerFailure> {
    refuses.map_or(Ok(()), |is_silent| {
        let why = "region is away".to_owned();
        Err(PeerFailure { why, is_silent })
    })
}

impl PeerApi for Region {
    async fn look(&self, at: &ReferencedObject) -> Result<Option<ReferencedState>, PeerFailure> {
        self.looks.fetch_add(1, Ordering::SeqCst);
        refusal(self.refuses.or((self.secret == Some(&*at.name)).then_some(false)))?;
        assert_eq!(
            (at.group, at.kind, &*at.namespace),
            ("region.example.com", "Network", "shop")
        );
        let mut holders = self.networks.get(at.name.as_str());
        if at.name == "blue" && self.looks_at_blue.fetch_add(1, Ordering::SeqCst) > 0 {
            holders = self.later.as_ref().or(holders);
        }
        Ok(holders.map(|holders| ReferencedState {
            uid: at.name.clone(),
            leaving: false,
            references: holders.iter().map(|uid| reference(uid)).collect(),
        }))
    }

    async fn list(
        &self,
        group: &'static str,
        kind: &'static str,
        token: Option<&str>,
    ) -> Result<ListedPage, PeerFailure> {
        self.lists.fetch_add(1, Ordering::SeqCst);
        refusal(self.refuses.or(self.refuses_lists))?;
        assert_eq!((group, kind), ("region.example.com", "Network"));
        let from: usize = token.map_or(0, |token| token.parse().expect("a token of ours"));
        let names = self.networks.keys().skip(from).take(PAGE);
        let next = from + PAGE;
        Ok(ListedPage {
            objects: names.map(|name| ("shop".to_owned(), (*name).to_owned())).collect(),
            next: (next < self.networks.len()).then(|| next.to_string()),
        })
    }
}

fn reference(uid: &str) -> ReferenceName {
    ReferenceName::new("Widget", "test.kindex", uid).expect("a name")
}

/// A widget that names a network.
fn holder(uid: &str, network: &str) -> Widget {
    let named = widget(uid, &format!("w-{}", &uid[..4]), 70).spec(json!({"group": network}));
    Widget {
        finalizers: vec!["test.kindex/deletion".to_owned()],
        ..named
    }
}

/// Archives one that was deleted in the cluster for that.
async fn archive(backend: &Backend, holder: Widget) {
    let archived = Widget {
        deletion: Some("2024-03-01T00:00:00Z".to_owned()),
        ..holder.annotation("test/Immutable", "true")
    };
    backend.write(archived.archived(), at(1)).await;
}

/// A live holder of the network `blue` and an archived one of `red`.
async fn holders(backend: &Backend) -> Arc<Shelf> {
    archive(backend, holder(ARCHIVED, "red")).await;
    let shelf = Arc::new(Shelf::default());
    shelf.put(&holder(LIVE, "blue"));
    backend.write(holder(LIVE, "blue").live(), at(1)).await;
    shelf
}

async fn report(backend: &Backend, shelf: &Arc<Shelf>, region: &Region) -> Report {
    let sides = Sides {
        platform: REGISTRY.platform,
        cluster: shelf.clone(),
        storage: backend.store.clone(),
    };
    let (budget, settle) = (RetryBudget(Duration::ZERO), Duration::from_millis(1));
    let report = verify(&sides, &registry(&HOSTED_KINDS), region, settle, budget, &NoProgress).await;
    report.expect("both sides answer")
}

/// Each difference, with the network that it is about.
async fn differing(backend: &Backend, shelf: &Arc<Shelf>, region: &Region) -> Vec<(Class, String)> {
    let report = report(backend, shelf, region).await;
    assert_eq!((report.unsettled, report.unanswered.len()), (0, 0));
    let differences = report.differences.into_iter();
    let found = differences.map(|difference| {
        assert_eq!(difference.service, Some("region.example.com"));
        (difference.class, difference.name)
    });
    found.collect()
}

async fn what_is_held_at_another_service_as_fields_say_is_no_difference(backend: Backend) {
    let shelf = holders(&backend).await;
    let region = Region::of(&[
        ("blue", &[LIVE]),
        ("green", &[]),
        ("grey", &[]),
        ("pink", &[]),
        ("red", &[ARCHIVED]),
    ]);
    assert_eq!(differing(&backend, &shelf, &region).await, []);
    assert_eq!(region.lists.load(Ordering::SeqCst), 3, "one page after the other");
    assert_eq!(region.looks.load(Ordering::SeqCst), 5, "each network once");
}

/// As if a deletion there knew the fields of what is archived here.
async fn an_archived_holder_whose_reference_is_missing_there_is_reported_until_it_is_deleted(backend: Backend) {
    let shelf = holders(&backend).await;
    let region = Region::of(&[("blue", &[LIVE]), ("green", &[]), ("red", &[])]);
    let missing = (Class::ReferenceMissing, "red".to_owned());
    assert_eq!(differing(&backend, &shelf, &region).await, [missing]);
    assert_eq!(region.lists.load(Ordering::SeqCst), 2, "they are listed once");
    let read = [ReadVersion {
        uid: Uid::from(ARCHIVED),
        version: ResourceVersion(70),
    }];
    let made = backend.store.make_tombstones(&HOSTED, &read, at(2)).await;
    assert_eq!(made.expect("an answer").len(), 1);
    assert_eq!(differing(&backend, &shelf, &region).await, []);
    let held = Region::of(&[("blue", &[LIVE]), ("red", &[ARCHIVED])]);
    assert_eq!(differing(&backend, &shelf, &held).await, [], "it releases it at last");
}

/// As if one that is too deep for a value named nothing: the archived one lacked no reference, and that of the live one
/// were left behind.
async fn a_holder_is_compared_however_deeply_it_is_nested(backend: Backend) {
    archive(&backend, holder(ARCHIVED, "red").nested()).await;
    let live = holder(LIVE, "blue").nested();
    let shelf = Arc::new(Shelf::default());
    shelf.put(&live);
    backend.write(live.live(), at(1)).await;
    let region = Region::of(&[("blue", &[LIVE]), ("red", &[])]);
    let missing = (Class::ReferenceMissing, "red".to_owned());
    assert_eq!(differing(&backend, &shelf, &region).await, [missing]);
}

async fn a_reference_there_of_a_holder_that_names_another_object_is_reported(backend: Backend) {
    let shelf = holders(&backend).await;
    let region = Region::of(&[
        ("blue", &[LIVE]),
        ("green", &[LIVE, ARCHIVED]),
        ("grey", &[]),
        ("pink", &[ARCHIVED]),
        ("red", &[ARCHIVED]),
    ]);
    let left = |name: &str| (Class::HolderElsewhere, name.to_owned());
    let found = differing(&backend, &shelf, &region).await;
    assert_eq!(found, [left("green"), left("green"), left("pink")]);
    assert_eq!(
        region.looks.load(Ordering::SeqCst),
        9,
        "what no reference of ours is on is read once"
    );
}

async fn a_reference_there_of_a_holder_that_is_gone_is_reported_though_nobody_places_any(backend: Backend) {
    let shelf = Arc::new(Shelf::default());
    backend.write(holder(GONE, "blue").live(), at(1)).await;
    backend.write(soft_delete(GONE), at(2)).await;
    let region = Region::of(&[("blue", &[GONE]), ("red", &[])]);
    let left = (Class::HolderMissing, "blue".to_owned());
    assert_eq!(differing(&backend, &shelf, &region).await, [left]);
    assert!(!report(&backend, &shelf, &region).await.placed);
}

/// As if what changes while services are asked were a difference.
async fn what_a_holder_releases_meanwhile_is_no_difference(backend: Backend) {
    let shelf = holders(&backend).await;
    let region = Region {
        later: Some(BTreeSet::from([LIVE])),
        ..Region::of(&[("blue", &[LIVE, ARCHIVED]), ("red", &[ARCHIVED])])
    };
    assert_eq!(differing(&backend, &shelf, &region).await, []);
    assert_eq!(region.looks_at_blue.load(Ordering::SeqCst), 2, "it was read once more");
}

async fn a_service_that_is_silent_or_refuses_is_a_note(backend: Backend) {
    let shelf = holders(&backend).await;
    for (is_silent, looks, lists) in [(true, 6, 0), (false, 2, 1)] {
        let region = Region {
            refuses: Some(is_silent),
            ..Region::of(&[("blue", &[GONE])])
        };
        let report = report(&backend, &shelf, &region).await;
        assert_eq!(report.differences, []);
        assert_eq!(report.unanswered, ["region is away"]);
        assert_eq!(report.unlisted, ["region is away"]);
        // Each of those that fields name is asked for, and three times where nothing comes. A silent one is not listed.
        assert_eq!(region.looks.load(Ordering::SeqCst), looks);
        assert_eq!(region.lists.load(Ordering::SeqCst), lists);
    }
}

/// As if nothing could be said of a service that does not show everything.
async fn what_cannot_be_listed_or_read_hides_nothing_else(backend: Backend) {
    let shelf = holders(&backend).await;
    let missing = |network: &str| (Class::ReferenceMissing, network.to_owned());
    let without_lists = |is_silent| Region {
        refuses_lists: Some(is_silent),
        ..Region::of(&[("blue", &[]), ("green", &[LIVE]), ("red", &[ARCHIVED])])
    };
    for region in [without_lists(true), without_lists(false)] {
        assert_eq!(differing(&backend, &shelf, &region).await, [missing("blue")]);
        assert_eq!(report(&backend, &shelf, &region).await.unlisted, ["region is away"]);
    }
    let with_secret = Region {
        secret: Some("brown"),
        ..Region::of(&[("blue", &[]), ("brown", &[]), ("pink", &[LIVE]), ("red", &[ARCHIVED])])
    };
    let left = (Class::HolderElsewhere, "pink".to_owned());
    assert_eq!(differing(&backend, &shelf, &with_secret).await, [missing("blue"), left]);
    // What was not read in the first reading is not known in the others either.
    assert_eq!(
        report(&backend, &shelf, &with_secret).await.unlisted,
        ["region is away"]
    );
}

/// As if its reference were of nobody.
async fn the_reference_of_the_object_that_a_holder_was_restored_from_stands_in_for_its_own(backend: Backend) {
    let shelf = Arc::new(Shelf::default());
    let restored = || holder(LIVE, "blue").annotation(REGISTRY.platform.restored_from, GONE);
    shelf.put(&restored());
    backend.write(restored().live(), at(1)).await;
    let region = Region::of(&[("blue", &[GONE])]);
    let missing = (Class::ReferenceMissing, "blue".to_owned());
    assert_eq!(differing(&backend, &shelf, &region).await, [missing]);
}
