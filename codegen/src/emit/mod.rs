//! One emitter per output. An emitter is a pure function of the model that returns files; it decides nothing that a
//! person could have declared and touches no disk.

mod api_service;

mod crd;

mod json_schema;

mod made_proto;

mod proto_service;

mod descriptors;

mod graph;

mod rbac;

mod reference_policy;

mod rust;

mod migrations;

mod rust_types;

mod indexed;

mod references;

mod kind_table;

mod named_queries;

mod query;

mod schema_init;

mod sql;

mod registry;

mod versions;

mod kinds;

mod sql_reference;

use std::thread;

use crate::artifact::Artifacts;
use crate::model::Model;
use crate::plan::Migration;
use rust_types::placement::Placement;

pub use descriptors::descriptors;

/// Runs every emitter, side by side: none reads what another one writes.
pub fn all(model: &Model, planned: &[Migration]) -> Artifacts {
    let placement = Placement::new(model);
    let placement = &placement;
    let emitters: [&(dyn Fn() -> Artifacts + Sync); 14] = [
        &|| rust_types::emit(model, placement),
        &|| indexed::emit(model, placement),
        &|| kinds::emit(model, placement),
        &json_schema::emit,
        &|| migrations::emit(planned),
        &|| made_proto::emit(model),
        &|| sql::emit(model),
        &|| crd::emit(model),
        &|| rbac::emit(model),
        &|| reference_policy::emit(model),
        &|| api_service::emit(model),
        &|| proto_service::emit(model),
        &|| sql_reference::emit(model),
        &|| graph::emit(model),
    ];
    thread::scope(|scope| {
        let running = emitters.map(|emit| scope.spawn(emit));
        let done = running.map(|emitter| emitter.join().expect("an emitter does not panic"));
        done.into_iter().flatten().collect()
    })
}
