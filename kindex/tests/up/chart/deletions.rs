//! Deletions that the ingester carries out: of objects with its annotation, and of whole collections.

use kindex_model::kind::Kind;

use super::{Alice, Container, Release, SAMPLES, kindex_samples_backwards, kinds, wait_for_sql};

/// Sets the annotation by which the ingester deletes, on an object of each kind.
pub(super) fn mark_every_sample(alice: &Alice) {
    let samples = kindex_samples_backwards();
    let deleting = format!("{}=true", kindex_generated::registry().platform.deleting);
    alice.kubectl(&["annotate", "-f", "-", &deleting], &samples);
    alice.kubectl(&["wait", "--for=delete", "--timeout=240s", "-f", "-"], &samples);
}

/// Whole collections, whose dependents are to go first: a deletion by the cluster, which the finalizer holds.
pub(super) fn clear_every_kind(release: &Release, alice: &Alice, at_work: &[&Container]) {
    for kind in kinds() {
        let Kind {
            group, version, plural, ..
        } = kind;
        let path = format!("/apis/{group}/{version}/namespaces/{SAMPLES}/{plural}?propagationPolicy=Foreground");
        alice.kubectl(&["delete", "--raw", &path], "");
        let live = format!(
            "SELECT COUNT(*) FROM michelangelo.{} WHERE delete_time IS NULL",
            kind.table
        );
        wait_for_sql(release, at_work, &live);
    }
}
