//! What users and other controllers do to the cluster. An action is a value, so that a
//! history can be replayed without some of its actions.

use std::fmt;

use jiff::Timestamp;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, seq::IndexedRandom};

use super::cluster::SimCluster;
use super::object::SimObject;
use super::thing::{DELETING, FINALIZER, FOREIGN_FINALIZER, IMMUTABLE, POISON_LABEL, POISON_VALUE, REFERENCES};

/// The names of objects. Few, so that they are reused.
pub const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// What is done to the object of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionKind {
    /// It is created, with our finalizer or without, and so with that of another controller.
    Create {
        /// Its value.
        value: u64,
        /// Whether it holds our finalizer.
        has_finalizer: bool,
        /// Whether it holds that of another controller.
        held: bool,
    },
    /// Its value is changed.
    SetValue(u64),
    /// A label is set, changed or removed.
    Relabel(u64),
    /// An annotation that means nothing to us is set, changed or removed.
    Annotate(u64),
    /// The Immutable annotation is set to this.
    MarkImmutable(bool),
    /// The deleting annotation is set.
    MarkDeleting,
    /// It is deleted as the API server deletes what is final: with the deleting annotation and our finalizer, unless it
    /// is terminating.
    MarkAndDelete,
    /// It is deleted.
    Delete,
    /// The finalizer of another controller comes, or goes.
    ToggleForeignFinalizer,
    /// One of [`REFERENCES`] is placed, unless it is terminating.
    PlaceReference(usize),
    /// One of [`REFERENCES`] is released.
    ReleaseReference(usize),
    /// Our finalizer is removed by a user.
    StripFinalizer,
    /// Its value becomes one that the database rejects.
    PoisonRow,
    /// It gets a label that the database rejects.
    PoisonLabel,
    /// What the database rejects is removed.
    Cure,
    /// It is deleted, and another one of its name created at once.
    Recreate {
        /// The value of the new one.
        value: u64,
    },
}

/// One action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserAction {
    /// Which of [`NAMES`].
    pub name: usize,
    /// What is done.
    pub what: ActionKind,
}

impl fmt::Display for UserAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "user: {:?} {}", self.what, NAMES[self.name])
    }
}

impl UserAction {
    /// Draws one, of which so many in a thousand are poison.
    pub fn draw(rng: &mut Xoshiro256PlusPlus, poison_permille: u32) -> Self {
        let name = rng.random_range(0..NAMES.len());
        let value = rng.random_range(0..100);
        if rng.random_range(0..1000) < poison_permille {
            let what = *[ActionKind::PoisonRow, ActionKind::PoisonLabel, ActionKind::Cure]
                .choose(rng)
                .expect("some");
            return Self { name, what };
        }
        let what = match rng.random_range(0..100) {
            0..28 => ActionKind::Create {
                value,
                has_finalizer: rng.random_bool(0.8),
                held: rng.random_bool(0.25),
            },
            28..32 => ActionKind::PlaceReference(usize::from(value.is_multiple_of(2))),
            32..36 => ActionKind::ReleaseReference(usize::from(value.is_multiple_of(2))),
            36..42 => ActionKind::SetValue(value),
            42..49 => ActionKind::Relabel(value),
            49..55 => ActionKind::Annotate(value),
            55..58 => ActionKind::ToggleForeignFinalizer,
            58..66 => ActionKind::MarkImmutable(true),
            66..68 => ActionKind::MarkImmutable(false),
            68..72 => ActionKind::MarkDeleting,
            72..75 => ActionKind::MarkAndDelete,
            75..87 => ActionKind::Delete,
            87..91 => ActionKind::ToggleForeignFinalizer,
            91..93 => ActionKind::StripFinalizer,
            93..95 => ActionKind::Cure,
            _ => ActionKind::Recreate { value },
        };
        Self { name, what }
    }

    /// Performs the action if it is possible. Returns whether anything changed.
    pub fn perform(self, cluster: &mut SimCluster, now: Timestamp) -> bool {
        let name = NAMES[self.name];
        let before = cluster.version;
        match self.what {
            ActionKind::Create {
                value,
                has_finalizer,
                held,
            } => {
                let ours = has_finalizer.then_some(FINALIZER);
                let finalizers: Vec<&str> = ours.into_iter().chain(held.then_some(FOREIGN_FINALIZER)).collect();
                cluster.create_held(name, value, &finalizers);
            }
            ActionKind::Delete => {
                cluster.delete(name, now, false);
            }
            ActionKind::MarkAndDelete => mark_and_delete(cluster, name, now),
            ActionKind::Recreate { value } => {
                cluster.delete(name, now, false);
                cluster.create(name, value, true);
            }
            ActionKind::SetValue(_)
            | ActionKind::Relabel(_)
            | ActionKind::Annotate(_)
            | ActionKind::MarkImmutable(_)
            | ActionKind::MarkDeleting
            | ActionKind::ToggleForeignFinalizer
            | ActionKind::PlaceReference(_)
            | ActionKind::ReleaseReference(_)
            | ActionKind::StripFinalizer
            | ActionKind::PoisonRow
            | ActionKind::PoisonLabel
            | ActionKind::Cure => cluster.update(name, false, |object| self.change(object)),
        }
        cluster.version != before
    }

    fn change(self, object: &mut SimObject) {
        match self.what {
            ActionKind::SetValue(value) => object.value = value,
            ActionKind::Relabel(value) => toggle(&mut object.labels, &format!("l{}", value % 3), value),
            ActionKind::Annotate(value) => toggle(&mut object.annotations, &format!("note{}", value % 2), value),
            ActionKind::MarkImmutable(marked) => {
                object.annotations.insert(IMMUTABLE.to_owned(), marked.to_string());
            }
            ActionKind::MarkDeleting => {
                object.annotations.insert(DELETING.to_owned(), "true".to_owned());
            }
            ActionKind::ToggleForeignFinalizer => toggle_foreign_finalizer(object),
            ActionKind::PlaceReference(index) => place_reference(object, REFERENCES[index]),
            ActionKind::ReleaseReference(index) => {
                object.finalizers.retain(|finalizer| finalizer != REFERENCES[index]);
            }
            ActionKind::StripFinalizer => object.finalizers.retain(|finalizer| finalizer != FINALIZER),
            ActionKind::PoisonRow => object.value = POISON_VALUE,
            ActionKind::PoisonLabel => {
                object.labels.insert(POISON_LABEL.to_owned(), POISON_LABEL.to_owned());
            }
            ActionKind::Cure => cure(object),
            ActionKind::Create { .. }
            | ActionKind::Delete
            | ActionKind::MarkAndDelete
            | ActionKind::Recreate { .. } => {
                unreachable!("not a change of an object")
            }
        }
    }
}

/// Two requests, between which an ingester may have received nothing.
fn mark_and_delete(cluster: &mut SimCluster, name: &str, now: Timestamp) {
    let object = cluster.objects.get(name);
    if object.is_none_or(|object| object.deleted_at.is_some()) {
        return;
    }
    cluster.update(name, false, |object| {
        object.annotations.insert(DELETING.to_owned(), "true".to_owned());
        if !object.has_finalizer() {
            object.finalizers.push(FINALIZER.to_owned());
        }
    });
    cluster.delete(name, now, false);
}

/// Removes what prevents convergence: content that the database rejects, finalizers of others, and references.
pub fn tidy_up(cluster: &mut SimCluster) {
    for name in NAMES {
        cluster.update(name, false, |object| {
            let stays = |finalizer: &str| finalizer != FOREIGN_FINALIZER && !REFERENCES.contains(&finalizer);
            object.finalizers.retain(|finalizer| stays(finalizer));
            cure(object);
        });
    }
}

fn cure(object: &mut SimObject) {
    object.labels.remove(POISON_LABEL);
    if object.value == POISON_VALUE {
        object.value = 1;
    }
}

/// One time in four it goes, if it is there; else it has this value.
fn toggle(map: &mut std::collections::BTreeMap<String, String>, key: &str, value: u64) {
    if value.is_multiple_of(4) {
        map.remove(key);
    } else {
        map.insert(key.to_owned(), value.to_string());
    }
}

/// A terminating object takes no new finalizers.
fn toggle_foreign_finalizer(object: &mut SimObject) {
    let before = object.finalizers.len();
    object.finalizers.retain(|finalizer| finalizer != FOREIGN_FINALIZER);
    if object.finalizers.len() == before && object.deleted_at.is_none() {
        object.finalizers.push(FOREIGN_FINALIZER.to_owned());
    }
}

/// A terminating object takes no new references either.
fn place_reference(object: &mut SimObject, name: &str) {
    let is_there = object.finalizers.iter().any(|finalizer| finalizer == name);
    if !is_there && object.deleted_at.is_none() {
        object.finalizers.push(name.to_owned());
    }
}
