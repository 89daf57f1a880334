//! What users and other controllers do to the cluster. An action is a value, so that a
//! history can be told again without some of its actions.

use std::fmt;

use jiff::Timestamp;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, seq::IndexedRandom};

use super::cluster::SimCluster;
use super::object::SimObject;
use super::thing::{DELETING, FINALIZER, FOREIGN_FINALIZER, IMMUTABLE, POISON_LABEL, POISON_VALUE};

/// The names that objects have; few, so that they are used again.
pub const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// Something that is done to the object of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// It is created, with our finalizer or without, and so with that of another controller.
    Create {
        /// Its value.
        value: u64,
        /// Whether it holds our finalizer.
        guarded: bool,
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
    /// The API server asks for its deletion.
    MarkDeleting,
    /// It is deleted.
    Delete,
    /// The finalizer of another controller comes, or goes.
    ToggleForeignFinalizer,
    /// Somebody takes our finalizer away.
    StripFinalizer,
    /// The database will refuse its row.
    PoisonRow,
    /// The database will refuse one of its labels.
    PoisonLabel,
    /// What the database refuses is taken back.
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
    pub what: What,
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
            let what = *[What::PoisonRow, What::PoisonLabel, What::Cure]
                .choose(rng)
                .expect("some");
            return Self { name, what };
        }
        let what = match rng.random_range(0..100) {
            0..28 => What::Create {
                value,
                guarded: rng.random_bool(0.8),
                held: rng.random_bool(0.25),
            },
            28..42 => What::SetValue(value),
            42..49 => What::Relabel(value),
            49..55 => What::Annotate(value),
            55..58 => What::ToggleForeignFinalizer,
            58..66 => What::MarkImmutable(true),
            66..68 => What::MarkImmutable(false),
            68..75 => What::MarkDeleting,
            75..87 => What::Delete,
            87..91 => What::ToggleForeignFinalizer,
            91..93 => What::StripFinalizer,
            93..95 => What::Cure,
            _ => What::Recreate { value },
        };
        Self { name, what }
    }

    /// Does it, where it can be done. Says whether anything changed.
    pub fn perform(self, cluster: &mut SimCluster, now: Timestamp) -> bool {
        let name = NAMES[self.name];
        let before = cluster.version;
        match self.what {
            What::Create { value, guarded, held } => {
                let ours = guarded.then_some(FINALIZER);
                let finalizers: Vec<&str> = ours.into_iter().chain(held.then_some(FOREIGN_FINALIZER)).collect();
                cluster.create_held(name, value, &finalizers);
            }
            What::Delete => {
                cluster.delete(name, now, false);
            }
            What::Recreate { value } => {
                cluster.delete(name, now, false);
                cluster.create(name, value, true);
            }
            What::SetValue(_)
            | What::Relabel(_)
            | What::Annotate(_)
            | What::MarkImmutable(_)
            | What::MarkDeleting
            | What::ToggleForeignFinalizer
            | What::StripFinalizer
            | What::PoisonRow
            | What::PoisonLabel
            | What::Cure => cluster.update(name, false, |object| self.change(object)),
        }
        cluster.version != before
    }

    fn change(self, object: &mut SimObject) {
        match self.what {
            What::SetValue(value) => object.value = value,
            What::Relabel(value) => toggle(&mut object.labels, &format!("l{}", value % 3), value),
            What::Annotate(value) => toggle(&mut object.annotations, &format!("note{}", value % 2), value),
            What::MarkImmutable(marked) => {
                object.annotations.insert(IMMUTABLE.to_owned(), marked.to_string());
            }
            What::MarkDeleting => {
                object.annotations.insert(DELETING.to_owned(), "true".to_owned());
            }
            What::ToggleForeignFinalizer => toggle_foreign_finalizer(object),
            What::StripFinalizer => object.finalizers.retain(|finalizer| finalizer != FINALIZER),
            What::PoisonRow => object.value = POISON_VALUE,
            What::PoisonLabel => {
                object.labels.insert(POISON_LABEL.to_owned(), POISON_LABEL.to_owned());
            }
            What::Cure => cure(object),
            What::Create { .. } | What::Delete | What::Recreate { .. } => {
                unreachable!("not a change of an object")
            }
        }
    }
}

/// Ends what would stand in the way of convergence: poison, and others' finalizers.
pub fn tidy_up(cluster: &mut SimCluster) {
    for name in NAMES {
        cluster.update(name, false, |object| {
            object.finalizers.retain(|finalizer| finalizer != FOREIGN_FINALIZER);
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
