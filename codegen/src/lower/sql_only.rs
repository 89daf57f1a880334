//! Kinds that no cluster has: what of a declaration only a cluster gives a meaning.

use crate::diag::{Collector, messages as errors};
use crate::spec::KindSpec;

/// Whether a cluster has the objects of a kind.
pub(super) fn has_cluster(spec: &KindSpec) -> bool {
    spec.cluster.is_none_or(|flag| flag.value)
}

/// Refuses what has no meaning without a cluster.
pub(super) fn check(spec: &KindSpec, found: &mut Collector) {
    if has_cluster(spec) {
        return;
    }
    if let Some(crd) = &spec.crd {
        found.push(errors::without_cluster(&spec.name, "crd", crd.span));
    }
    if let Some(flag) = spec.immutable.filter(|flag| flag.value) {
        found.push(errors::without_cluster(&spec.name, "immutable", flag.span));
    }
    if let Some(storage) = &spec.storage {
        found.push(errors::without_cluster(&spec.name, "storage", storage.span));
    }
    let flag = spec.retention.as_ref().and_then(|rule| rule.evicted);
    if let Some(flag) = flag.filter(|flag| flag.value) {
        found.push(errors::without_cluster(&spec.name, "evicted", flag.span));
    }
}
