//! What users and other controllers do to the cluster, at random.

use jiff::Timestamp;
use rand::rngs::StdRng;
use rand::{RngExt, seq::IndexedRandom};

use super::cluster::{SimCluster, SimObject};
use super::{DELETING, FINALIZER, FOREIGN_FINALIZER, IMMUTABLE, POISON_VALUE};

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// Does one thing and says what.
pub fn act(cluster: &mut SimCluster, now: Timestamp, rng: &mut StdRng) -> String {
    let name = *NAMES.choose(rng).expect("names");
    let value = rng.random_range(0..100);
    match rng.random_range(0..100) {
        0..35 if !cluster.objects.contains_key(name) => {
            let guarded = rng.random_bool(0.8);
            cluster.create(name, value, guarded);
            format!("user creates {name} (guarded: {guarded})")
        }
        0..50 => {
            cluster.update(name, false, |object| object.value = value);
            format!("user sets {name} to {value}")
        }
        50..58 => {
            let label = format!("l{}", value % 3);
            cluster.update(name, false, |object| {
                if object.labels.remove(&label).is_none() {
                    object.labels.insert(label, value.to_string());
                }
            });
            format!("user relabels {name}")
        }
        58..66 => {
            annotate(cluster, name, IMMUTABLE, "true");
            format!("user marks {name} immutable")
        }
        66..68 => {
            annotate(cluster, name, IMMUTABLE, "false");
            format!("user takes the mark off {name}")
        }
        68..76 => {
            annotate(cluster, name, DELETING, "true");
            format!("the API server marks {name} for deletion")
        }
        76..88 => {
            cluster.delete(name, now, false);
            format!("user deletes {name}")
        }
        88..91 => {
            cluster.update(name, false, toggle_foreign_finalizer);
            format!("somebody toggles a finalizer on {name}")
        }
        91..93 => {
            cluster.update(name, false, |object| object.finalizers.retain(|f| f != FINALIZER));
            format!("somebody strips our finalizer from {name}")
        }
        93..96 => {
            cluster.update(name, false, |object| object.value = POISON_VALUE);
            format!("user poisons {name}")
        }
        _ => {
            cluster.delete(name, now, false);
            cluster.create(name, value, true);
            format!("user recreates {name}")
        }
    }
}

/// Ends what would stand in the way of convergence: poison, and others' finalizers.
pub fn tidy_up(cluster: &mut SimCluster) {
    for name in NAMES {
        cluster.update(name, false, |object| {
            object.finalizers.retain(|f| f != FOREIGN_FINALIZER);
            if object.value == POISON_VALUE {
                object.value = 1;
            }
        });
    }
}

fn annotate(cluster: &mut SimCluster, name: &str, annotation: &str, value: &str) {
    cluster.update(name, false, |object| {
        object.annotations.insert(annotation.to_owned(), value.to_owned());
    });
}

/// A terminating object takes no new finalizers.
fn toggle_foreign_finalizer(object: &mut SimObject) {
    let before = object.finalizers.len();
    object.finalizers.retain(|f| f != FOREIGN_FINALIZER);
    if object.finalizers.len() == before && object.deleted_at.is_none() {
        object.finalizers.push(FOREIGN_FINALIZER.to_owned());
    }
}
