//! One emitter per output. An emitter is a pure function of the model that returns files; it decides nothing that a
//! person could have declared and touches no disk.

mod crd;
mod indexed;
mod json_schema;
mod kind_table;
mod kinds;
mod made_proto;
mod proto_service;
mod query;
mod registry;
mod rust;
mod rust_types;
mod sql;
mod sql_reference;

use crate::artifact::Artifacts;
use crate::model::Model;

/// Runs every emitter.
pub fn all(model: &Model) -> Artifacts {
    let mut artifacts = Artifacts::new();
    artifacts.extend(json_schema::emit());
    artifacts.extend(made_proto::emit(model));
    artifacts.extend(sql::emit(model));
    artifacts.extend(crd::emit(model));
    artifacts.extend(rust_types::emit(model));
    artifacts.extend(indexed::emit(model));
    artifacts.extend(kinds::emit(model));
    artifacts.extend(proto_service::emit(model));
    artifacts.extend(sql_reference::emit(model));
    artifacts
}
