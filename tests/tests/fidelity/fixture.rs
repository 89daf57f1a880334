//! The fixture `tests/fixtures/traps`: a platform of one kind with a field of every shape. What is generated from it is
//! checked in beside it, so that a change of an emitter shows in review, and is compiled into these tests.

use kindex_codegen::artifact::{self, Mode};
use kindex_model::wire::{Decoded, Root, decode};
use kindex_tests::types::trap::{TrapSpec, TrapStatus};
use serde_json::{Value as Json, json};

use super::{oracle, traps};

/// Reads an object with this spec.
pub fn read(spec: Json) -> Decoded<Root<TrapSpec, TrapStatus>> {
    decode(&json!({ "spec": spec }).to_string())
}

/// The spec, read without any problem.
pub fn spec(json: Json) -> TrapSpec {
    let decoded = read(json.clone());
    assert_eq!(decoded.problems, [], "{json}");
    decoded
        .value
        .and_then(|root| root.spec)
        .expect("no problem, hence a spec")
}

/// The spec as it is written back.
pub fn written(json: Json) -> Json {
    serde_json::to_value(spec(json)).expect("everything has a JSON form")
}

/// The spec as prost-reflect reads it from the bytes.
pub fn on_the_wire(json: Json) -> Json {
    use prost::Message;
    let message = oracle::TRAPS.get_message_by_name("traps.v1.TrapSpec");
    oracle::decode(message.expect("the fixture's message"), &spec(json).encode_to_vec())
}

#[test]
fn the_checked_in_output_is_current() {
    let artifacts = match kindex_codegen::generate(&traps()) {
        Ok(generated) => generated.artifacts,
        Err(errors) => panic!("{errors}"),
    };
    let differences = artifact::sync(&traps(), &artifacts, Mode::Check).expect("readable");
    let command = "cargo run -- generate --root tests/fixtures/traps";
    assert!(differences.is_empty(), "{}", artifact::explain(&differences, command));
}
