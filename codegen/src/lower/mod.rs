//! From the declaration as written to the model: every rule is checked here, every default filled in, every order
//! decided. Stages push errors and carry on, so that one run finds them all.

mod reserved;
mod storage_version;
mod types;

mod names;
mod protos;
mod shape;

mod inline;
mod manifest;

mod draft;
mod made;

mod services;

mod messages;
mod recursion;

mod keys;
mod path;
mod renames;

mod columns;
mod references;
mod retention;
mod sql_only;
mod versions;

mod kinds;

pub(crate) mod deletion;

mod query_text;

mod queries;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use crate::diag::Collector;
use crate::lock::Lock;
use crate::model::Model;
use crate::source::{FileId, Sources};
use crate::spec::Spec;

/// What a run without errors leads to.
#[derive(Debug)]
pub struct Lowered {
    /// What the emitters read.
    pub model: Model,
    /// What the next run must know of this one.
    pub lock: Lock,
}

/// CRD manifests by the path written in `crds.toml`.
pub type Manifests = BTreeMap<String, FileId>;

/// Checks `spec` and turns it into a model. `None` means that errors were found.
pub fn lower(
    spec: &Spec,
    manifests: &Manifests,
    sources: &Sources,
    old_lock: &Lock,
    found: &mut Collector,
) -> Option<Lowered> {
    let platform = names::platform(spec.platform.as_ref(), found);
    let mut protos = protos::compile(sources, found);
    let mut lock = old_lock.clone();
    let drafts = draft::drafts(spec, &platform, manifests, sources, found);
    let made = made::make(&drafts, &mut protos, &mut lock, found);
    let descriptors = protos.descriptors();
    let (mut messages, enums) = messages::read(&descriptors);
    recursion::mark(&mut messages);
    let services = services::lower(spec, &drafts, found);
    let known = kinds::Known {
        made: &made,
        messages: &messages,
        enums: &enums,
        complete: protos.complete,
        services: services.clone(),
    };
    let kinds = kinds::lower(&drafts, known, found);
    deletion::refuse_waits(&kinds, &services, spec, found);
    deletion::refuse_scopes(&kinds, spec, found);
    versions::refuse_removed(&kinds, spec, old_lock, found);
    let declared = draft::declared(&drafts);
    let queries = queries::lower(&spec.queries, &kinds, &declared, &enums, found);
    if !found.is_empty() {
        return None;
    }
    lock.record(&kinds);
    let model = Model {
        platform,
        kinds,
        services,
        messages,
        enums,
        queries,
        descriptors,
        declared: lock.declared().collect(),
        made_protos: made.into_texts(),
    };
    Some(Lowered { model, lock })
}
