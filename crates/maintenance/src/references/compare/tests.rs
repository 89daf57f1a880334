//! Every sort of difference, and what is none.

use kindex_model::reference::{Named, OnDelete, Reference, Target};

use super::*;

const GROUP: &str = "x.example.com";
const HOLDER: &str = "7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce";

const fn kind(name: &'static str, singular: &'static str, references: &'static [Reference]) -> Kind {
    Kind {
        name,
        group: GROUP,
        version: "v1",
        singular,
        references,
        ..Kind::EMPTY
    }
}

static NETWORK: Kind = kind("Network", "network", &[]);
static NOTE: Kind = kind("Note", "note", &[]);
static CLUSTER: Kind = kind(
    "Cluster",
    "cluster",
    &[Reference {
        name: "network",
        targets: &[Target {
            service: None,
            group: GROUP,
            kind: "Network",
        }],
        kind_column: None,
        path: &["spec", "network"],
        named: Named::Name,
        columns: &[],
        owned: false,
        on_delete: OnDelete::Block,
    }],
);

fn place(name: &str) -> FullName {
    (GROUP, "Network", "n".to_owned(), name.to_owned())
}

fn known(kind: &'static Kind, name: &str) -> Known {
    Known {
        kind,
        namespace: "n".to_owned(),
        name: name.to_owned(),
        version: 1,
        leaving: false,
        archived: false,
        releases: false,
        restored_from: None,
        has_deletion_finalizer: true,
        names: Vec::new(),
        references: BTreeSet::new(),
    }
}

/// A cluster that names the network `a`, which has its reference.
fn sound() -> Everything {
    let reference = ReferenceName::new("Cluster", GROUP, HOLDER).expect("a name");
    let cluster = Known {
        names: vec![("network", place("a"))],
        ..known(&CLUSTER, "c")
    };
    let network = Known {
        references: BTreeSet::from([reference]),
        ..known(&NETWORK, "a")
    };
    Everything {
        kinds: vec![&CLUSTER, &NETWORK, &NOTE],
        objects: BTreeMap::from([(HOLDER.to_owned(), cluster), ("a".to_owned(), network)]),
        ..Everything::default()
    }
}

fn found(all: &Everything) -> Vec<(Class, String)> {
    let differences = compare(all).into_iter();
    differences
        .map(|difference| (difference.class, difference.detail))
        .collect()
}

fn classes(all: &Everything) -> Vec<Class> {
    found(all).into_iter().map(|(class, _)| class).collect()
}

#[test]
fn fields_and_references_that_agree_are_no_difference() {
    assert!(compare(&sound()).is_empty());
    let mut all = sound();
    all.objects.remove("a");
    all.objects.get_mut(HOLDER).expect("it is there").names.clear();
    assert!(compare(&all).is_empty(), "a field may name nothing");
}

#[test]
fn a_field_whose_target_lacks_the_reference_is_a_difference_where_somebody_places_them() {
    let mut all = sound();
    all.objects.get_mut("a").expect("it is there").references.clear();
    let detail = format!("cluster n/c names it in network, and it lacks cluster.{GROUP}/{HOLDER}");
    assert_eq!(found(&all), [(Class::ReferenceMissing, detail)]);
    for object in all.objects.values_mut() {
        object.has_deletion_finalizer = false;
    }
    assert!(compare(&all).is_empty(), "nobody places them");
    for leaving in [HOLDER, "a"] {
        let mut all = sound();
        all.objects.get_mut("a").expect("it is there").references.clear();
        all.objects.get_mut(leaving).expect("it is there").leaving = true;
        assert!(compare(&all).is_empty(), "{leaving} is being deleted");
    }
    let mut all = sound();
    all.objects.get_mut("a").expect("it is there").references.clear();
    all.objects.get_mut(HOLDER).expect("it is there").archived = true;
    assert!(compare(&all).is_empty(), "a deletion finds it by its field");
}

#[test]
fn a_reference_of_a_holder_that_is_gone_or_names_another_is_a_difference() {
    let mut all = sound();
    all.objects.remove(HOLDER);
    assert_eq!(classes(&all), [Class::HolderMissing]);
    let mut all = sound();
    all.objects.insert("b".to_owned(), known(&NETWORK, "b"));
    all.objects.get_mut(HOLDER).expect("it is there").names = vec![("network", place("b"))];
    let detail = format!("it has cluster.{GROUP}/{HOLDER}, and cluster n/c names Network b");
    assert!(
        found(&all).contains(&(Class::HolderElsewhere, detail)),
        "{:?}",
        found(&all)
    );
    assert_eq!(classes(&all).len(), 2, "and the other one lacks it");
    all.objects.get_mut(HOLDER).expect("it is there").leaving = true;
    assert!(compare(&all).is_empty(), "it releases what it held");
    for (change, holds) in IN_ARCHIVE {
        let mut all = sound();
        let holder = all.objects.get_mut(HOLDER).expect("it is there");
        holder.names = vec![("network", place("b"))];
        change(holder);
        all.objects.insert("b".to_owned(), known(&NETWORK, "b"));
        let left = holds.then_some(Class::HolderElsewhere);
        assert_eq!(classes(&all), Vec::from_iter(left), "archived ones follow nobody");
    }
}

#[test]
fn who_holds_without_a_declared_field_or_is_of_another_service_is_not_judged() {
    let other = "00000000-f1cc-4f3b-b1c0-232ae8d852ce";
    let mut all = sound();
    let mut add = |kind: &str, group: &str, uid: &str| {
        let name = ReferenceName::new(kind, group, uid).expect("a name");
        all.objects.get_mut("a").expect("it is there").references.insert(name);
    };
    add("Note", GROUP, other);
    add("Server", "other.example.com", other);
    all.objects.insert(other.to_owned(), known(&NOTE, "o"));
    assert!(compare(&all).is_empty());
    let foreign = all.foreign();
    assert_eq!(foreign.len(), 1);
    assert_eq!(
        (foreign[0].0.group(), foreign[0].1.name.as_str()),
        ("other.example.com", "a")
    );
}

#[test]
fn rows_of_what_is_gone_are_differences() {
    let mut all = sound();
    let name = format!("cluster.{GROUP}/{HOLDER}");
    all.orphaned_references.insert(("Network", "gone".to_owned(), name));
    all.orphaned_tombstones.insert(("Network", "gone".to_owned()));
    assert_eq!(classes(&all), [Class::OrphanedReference, Class::OrphanedTombstone]);
}

#[test]
fn what_changes_in_between_is_another_difference() {
    let mut all = sound();
    all.objects.remove(HOLDER);
    let before = compare(&all);
    all.objects.get_mut("a").expect("it is there").version = 2;
    assert_ne!(before, compare(&all));
}

#[test]
fn what_an_object_of_another_service_bears_is_compared_as_far_as_that_says_so() {
    assert!(sound().named_elsewhere().is_empty(), "it is of these kinds");
    let mut all = sound();
    all.objects.remove("a");
    let network: FullName = ("region.example.com", "Network", "n".to_owned(), "a".to_owned());
    all.objects.get_mut(HOLDER).expect("it is there").names = vec![("network", network.clone())];
    assert_eq!(all.named_elsewhere(), BTreeSet::from([network.clone()]));
    assert!(compare(&all).is_empty(), "nobody has said what it has");
    all.elsewhere.insert(network.clone(), with_references(&[]));
    let detail = format!("cluster n/c names it in network, and it lacks cluster.{GROUP}/{HOLDER}");
    assert_eq!(found(&all), [(Class::ReferenceMissing, detail)]);
    let leaving = ReferencedState {
        leaving: true,
        ..with_references(&[])
    };
    all.elsewhere.insert(network.clone(), leaving);
    assert!(compare(&all).is_empty(), "it takes no new references");
    all.elsewhere.insert(network, with_references(&[HOLDER]));
    assert!(compare(&all).is_empty());
}

/// The network `a` of the region, which has the references of clusters with these uids.
fn with_references(holders: &[&str]) -> ReferencedState {
    let names = holders
        .iter()
        .map(|uid| ReferenceName::new("Cluster", GROUP, uid).expect("a name"));
    ReferencedState {
        uid: "u".to_owned(),
        leaving: false,
        references: names.collect(),
    }
}

fn in_region(name: &str) -> FullName {
    ("region.example.com", "Network", "n".to_owned(), name.to_owned())
}

/// Clusters that may name networks of a region.
static HOSTED: Kind = Kind {
    references: &[Reference {
        name: "network",
        targets: &[Target {
            service: None,
            group: "region.example.com",
            kind: "Network",
        }],
        kind_column: None,
        path: &["spec", "network"],
        named: Named::Name,
        columns: &[],
        owned: false,
        on_delete: OnDelete::Block,
    }],
    ..kind("Cluster", "cluster", &[])
};

/// A cluster that names the network `a` of the region, which has its reference.
fn hosted() -> Everything {
    let cluster = Known {
        names: vec![("network", in_region("a"))],
        ..known(&HOSTED, "c")
    };
    Everything {
        kinds: vec![&HOSTED, &NOTE],
        objects: BTreeMap::from([(HOLDER.to_owned(), cluster)]),
        elsewhere: BTreeMap::from([(in_region("a"), with_references(&[HOLDER]))]),
        ..Everything::default()
    }
}

/// Makes a holder another one.
type Change = fn(&mut Known);

/// How an archived holder may be, and whether it holds what it names: simply archived; archived by a deletion in the
/// cluster, as all of them are that were immutable; deleted out of the archive.
const IN_ARCHIVE: [(Change, bool); 3] = [
    (|holder| holder.archived = true, true),
    (|holder| (holder.archived, holder.leaving) = (true, true), true),
    (|holder| (holder.archived, holder.releases) = (true, true), false),
];

#[test]
fn an_archived_holder_needs_its_reference_at_another_service_until_it_is_deleted() {
    for (change, needs) in IN_ARCHIVE {
        let mut all = hosted();
        change(all.objects.get_mut(HOLDER).expect("it is there"));
        assert_eq!(!all.named_elsewhere().is_empty(), needs);
        assert!(compare(&all).is_empty(), "it is there");
        all.elsewhere.insert(in_region("a"), with_references(&[]));
        let detail = format!("archived cluster n/c names it in network, and it lacks cluster.{GROUP}/{HOLDER}");
        let missing = needs.then_some((Class::ReferenceMissing, detail));
        assert_eq!(found(&all), missing.into_iter().collect::<Vec<_>>());
        all.elsewhere.clear();
        all.absent.insert(in_region("a"));
        assert!(compare(&all).is_empty(), "an archived one dangles for good");
    }
    let mut all = hosted();
    all.objects.get_mut(HOLDER).expect("it is there").leaving = true;
    assert!(
        all.named_elsewhere().is_empty(),
        "whether it is archived is not known yet"
    );
}

#[test]
fn a_reference_at_another_service_of_a_holder_that_names_another_object_was_left_behind() {
    let moved = || {
        let mut all = hosted();
        all.objects.get_mut(HOLDER).expect("it is there").names = vec![("network", in_region("b"))];
        all.elsewhere.insert(in_region("b"), with_references(&[HOLDER]));
        all
    };
    let detail = |holder: &str| format!("it has cluster.{GROUP}/{HOLDER}, and {holder} n/c names Network b");
    assert_eq!(found(&moved()), [(Class::HolderElsewhere, detail("cluster"))]);
    let difference = compare(&moved()).remove(0);
    let at = (difference.service, difference.kind, &*difference.name, &*difference.uid);
    assert_eq!(at, (Some("region.example.com"), "Network", "a", "u"));
    for (change, holds) in IN_ARCHIVE {
        let mut all = moved();
        change(all.objects.get_mut(HOLDER).expect("it is there"));
        let left = holds.then(|| (Class::HolderElsewhere, detail("archived cluster")));
        assert_eq!(found(&all), left.into_iter().collect::<Vec<_>>());
    }
    let mut all = moved();
    let holder = all.objects.get_mut(HOLDER).expect("it is there");
    (holder.leaving, holder.releases) = (true, true);
    assert!(compare(&all).is_empty(), "it releases what it held");
}

#[test]
fn a_reference_at_another_service_of_a_holder_that_is_gone_was_left_behind() {
    let mut all = hosted();
    all.objects.clear();
    let detail = format!("it has cluster.{GROUP}/{HOLDER}, and there is no such cluster");
    assert_eq!(
        found(&all),
        [(Class::HolderMissing, detail)],
        "also if nobody places any"
    );
    all.unserved.insert((GROUP, "Cluster"));
    assert!(compare(&all).is_empty(), "which clusters there are is not known");
    let mut all = hosted();
    let name = ReferenceName::new("Cluster", "z.example.com", HOLDER).expect("a name");
    all.elsewhere.get_mut(&in_region("a")).expect("it is there").references = BTreeSet::from([name]);
    all.objects.clear();
    assert!(compare(&all).is_empty(), "it is of another service");
}

/// Its own service looks its objects up by fields; whoever holds without a field does so on purpose.
#[test]
fn who_holds_at_another_service_without_a_declared_field_is_not_judged() {
    let mut all = hosted();
    let name = ReferenceName::new("Note", GROUP, "00000000-f1cc-4f3b-b1c0-232ae8d852ce").expect("a name");
    all.objects.insert(name.uid().to_owned(), known(&NOTE, "o"));
    let network = all.elsewhere.get_mut(&in_region("a")).expect("it is there");
    network.references.insert(name);
    assert!(compare(&all).is_empty());
}

#[test]
fn the_reference_of_a_restored_holder_stands_in_until_the_new_object_has_placed_its_own() {
    const NEW: &str = "11c215ab-f1cc-4f3b-b1c0-232ae8d852ce";
    let restored = |holders: &[&str], named: &str| {
        let mut all = hosted();
        let mut holder = all.objects.remove(HOLDER).expect("it is there");
        holder.restored_from = Some(HOLDER.to_owned());
        holder.names = vec![("network", in_region(named))];
        all.objects.insert(NEW.to_owned(), holder);
        all.elsewhere.insert(in_region("a"), with_references(holders));
        classes(&all)
    };
    assert_eq!(restored(&[HOLDER], "a"), [Class::ReferenceMissing]);
    assert_eq!(restored(&[HOLDER, NEW], "a"), [Class::HolderMissing]);
    assert_eq!(restored(&[HOLDER], "b"), [Class::HolderMissing]);
    assert_eq!(restored(&[NEW], "a"), []);
}

#[test]
fn a_live_holder_that_names_what_does_not_exist_is_a_difference() {
    let dangling = |target: &str| {
        let detail = format!("it names {target} in network, which does not exist");
        [(Class::Dangling, detail)]
    };
    let mut all = sound();
    all.objects.remove("a");
    assert_eq!(found(&all), dangling("Network n/a"));
    let differences = compare(&all);
    let holder = (differences[0].kind, &*differences[0].name, &*differences[0].uid);
    assert_eq!(holder, ("Cluster", "c", HOLDER));
    all.unserved.insert((GROUP, "Network"));
    assert!(compare(&all).is_empty(), "which networks there are is not known");
    all.unserved.clear();
    let leaves: [Change; 2] = [|holder| holder.leaving = true, |holder| holder.archived = true];
    for leave in leaves {
        let mut all = sound();
        all.objects.remove("a");
        leave(all.objects.get_mut(HOLDER).expect("it is there"));
        assert!(compare(&all).is_empty(), "it holds nothing there any more");
    }
    let mut all = sound();
    all.objects.remove("a");
    all.objects.get_mut(HOLDER).expect("it is there").has_deletion_finalizer = false;
    assert!(compare(&all).is_empty(), "nobody acts on declared fields");
}

#[test]
fn what_a_service_does_not_have_is_dangling_and_what_it_says_nothing_of_is_not() {
    let mut all = sound();
    all.objects.remove("a");
    let network: FullName = ("region.example.com", "Network", "n".to_owned(), "a".to_owned());
    all.objects.get_mut(HOLDER).expect("it is there").names = vec![("network", network.clone())];
    assert!(compare(&all).is_empty(), "its service has not answered");
    all.absent.insert(network);
    let detail = "it names Network n/a of region.example.com in network, which does not exist";
    assert_eq!(found(&all), [(Class::Dangling, detail.to_owned())]);
}

#[test]
fn what_is_archived_or_being_deleted_exists() {
    let changes: [Change; 2] = [|target| target.archived = true, |target| target.leaving = true];
    for change in changes {
        let mut all = sound();
        change(all.objects.get_mut("a").expect("it is there"));
        assert!(compare(&all).is_empty());
    }
}
