//! Kinds that no cluster has: what of a declaration only a cluster gives a meaning.

use super::draft::Draft;
use crate::diag::{Collector, messages as errors};
use crate::model::{KindName, OnDelete, Reference, ReferenceTarget};
use crate::spec::KindSpec;

/// Whether a cluster has the objects of a kind.
pub(super) fn has_cluster(spec: &KindSpec) -> bool {
    spec.cluster.is_none_or(|flag| flag.value)
}

/// The kinds of a file that no cluster has.
pub(super) fn names(drafts: &[Draft<'_>]) -> Vec<KindName> {
    let without = drafts.iter().filter(|draft| !has_cluster(draft.spec));
    without.map(|draft| draft.name.clone()).collect()
}

/// The references of a kind. Where the kinds that a column may name are not listed, and their deletion has an order,
/// those that no cluster has are none of them.
pub(super) fn among_clusters(mut references: Vec<Reference>, sql_only: &[KindName]) -> Vec<Reference> {
    for reference in &mut references {
        if let ReferenceTarget::KindIn {
            kinds, listed: false, ..
        } = &mut reference.target
            && reference.on_delete != OnDelete::Orphan
        {
            kinds.retain(|target| target.service.is_some() || !sql_only.contains(&target.kind));
        }
    }
    references
}

/// Refuses what has no meaning without a cluster, and deletions in an order that nobody would keep: it is kept by a
/// controller of the cluster.
pub(super) fn check(spec: &KindSpec, references: &[Reference], sql_only: &[KindName], found: &mut Collector) {
    if !has_cluster(spec) {
        if let Some(crd) = &spec.crd {
            found.push(errors::without_cluster(&spec.name, "crd", crd.span));
        }
        if let Some(flag) = spec.immutable.filter(|flag| flag.value) {
            found.push(errors::without_cluster(&spec.name, "immutable", flag.span));
        }
        if let Some(storage) = &spec.storage {
            found.push(errors::without_cluster(&spec.name, "storage", storage.span));
        }
        let evicted = spec.retention.as_ref().and_then(|rule| rule.evicted);
        if let Some(flag) = evicted.filter(|flag| flag.value) {
            found.push(errors::without_cluster(&spec.name, "evicted", flag.span));
        }
    }
    for (written, reference) in spec.references.iter().filter_map(|written| {
        let lowered = references.iter().find(|it| it.name.as_str() == written.name.value)?;
        Some((written, lowered))
    }) {
        let named = reference
            .target
            .kinds()
            .iter()
            .filter(|target| target.service.is_none());
        let named = named.map(|target| &target.kind).find(|kind| sql_only.contains(kind));
        let without = if has_cluster(spec) {
            named.map(KindName::as_str)
        } else {
            Some(spec.name.value.as_str())
        };
        if let (Some(without), true) = (without, reference.on_delete != OnDelete::Orphan) {
            let span = written.on_delete.as_ref().map_or(written.name.span, |text| text.span);
            found.push(errors::order_without_cluster(
                without,
                reference.on_delete.as_str(),
                span,
            ));
        }
    }
}
