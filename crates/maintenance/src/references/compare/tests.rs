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
        guarded: true,
        names: Vec::new(),
        references: BTreeSet::new(),
    }
}

/// A cluster that names the network `a`, which bears its reference.
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
        object.guarded = false;
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
    let detail = format!("it bears cluster.{GROUP}/{HOLDER}, and cluster n/c names Network b");
    assert!(
        found(&all).contains(&(Class::HolderElsewhere, detail)),
        "{:?}",
        found(&all)
    );
    assert_eq!(classes(&all).len(), 2, "and the other one lacks it");
    all.objects.get_mut(HOLDER).expect("it is there").leaving = true;
    assert!(compare(&all).is_empty(), "it releases what it held");
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
    let asked = BTreeMap::from([("region.example.com", BTreeSet::from([network.clone()]))]);
    assert_eq!(all.named_elsewhere(), asked);
    assert!(compare(&all).is_empty(), "nobody has said what it bears");
    let bears = |references: BTreeSet<ReferenceName>| {
        let (uid, leaving) = ("u".to_owned(), false);
        ReferencedState {
            uid,
            leaving,
            references,
        }
    };
    all.elsewhere.insert(network.clone(), bears(BTreeSet::new()));
    let detail = format!("cluster n/c names it in network, and it lacks cluster.{GROUP}/{HOLDER}");
    assert_eq!(found(&all), [(Class::ReferenceMissing, detail)]);
    let leaving = ReferencedState {
        leaving: true,
        ..bears(BTreeSet::new())
    };
    all.elsewhere.insert(network.clone(), leaving);
    assert!(compare(&all).is_empty(), "it takes no new references");
    let reference = ReferenceName::new("Cluster", GROUP, HOLDER).expect("a name");
    all.elsewhere.insert(network, bears(BTreeSet::from([reference])));
    assert!(compare(&all).is_empty());
    all.objects.get_mut(HOLDER).expect("it is there").archived = true;
    assert!(all.named_elsewhere().is_empty(), "it needs no reference");
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
    let leaves: [fn(&mut Known); 2] = [|holder| holder.leaving = true, |holder| holder.archived = true];
    for leave in leaves {
        let mut all = sound();
        all.objects.remove("a");
        leave(all.objects.get_mut(HOLDER).expect("it is there"));
        assert!(compare(&all).is_empty(), "it holds nothing there any more");
    }
    let mut all = sound();
    all.objects.remove("a");
    all.objects.get_mut(HOLDER).expect("it is there").guarded = false;
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
    let changes: [fn(&mut Known); 2] = [|target| target.archived = true, |target| target.leaving = true];
    for change in changes {
        let mut all = sound();
        change(all.objects.get_mut("a").expect("it is there"));
        assert!(compare(&all).is_empty());
    }
}
