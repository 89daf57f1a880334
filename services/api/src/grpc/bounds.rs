//! What a gRPC request may cost: generated requests, with a budget of memory and allocations that follows from their
//! size. Seeds reproduce each of them.

use allocation_counter::measure;
use kindex_query::LabelSelector;
use kindex_query::Select;
use prost::Message;
use prost_types::{Any, ListValue, Value, value::Kind as Of};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use super::message::{Criterion, CriterionOperation, ListOptions, ListOptionsExt, ListRequest, OrderBy};
use super::{condition, list, reply};

const RUNS: u64 = 300;
/// What may be held for each byte of a message: two of them make an empty part of a hundred.
const HELD: u64 = 130;
/// What may be allocated, in all.
const ALLOCATED: u64 = 300;
/// What a refusal of the smallest takes.
const FIXED_BYTES: u64 = 64 * 1024;
/// One mistyped name is compared with every name that there is, and each comparison frees what it took.
const SUGGESTION_BYTES: u64 = 1024 * 1024;

fn size(random: &mut StdRng) -> usize {
    1 << random.random_range(0..16)
}

fn text(random: &mut StdRng) -> String {
    match random.random_range(0..4) {
        0 => "x".repeat(size(random)),
        1 => ".".repeat(size(random)),
        2 => "_a".repeat(size(random) / 2),
        _ => (*["name", "uid", "metadata.name", "a.b", ""]
            .choose(random)
            .expect("some"))
        .to_owned(),
    }
}

fn values(random: &mut StdRng) -> Any {
    let one = [
        Value { kind: None },
        Value {
            kind: Some(Of::BoolValue(false)),
        },
        Value {
            kind: Some(Of::StringValue(String::new())),
        },
        Value {
            kind: Some(Of::ListValue(ListValue {
                values: vec![Value::default(); 3],
            })),
        },
    ];
    let one = one.choose(random).expect("some").clone();
    let list = ListValue {
        values: vec![one; size(random) / 4],
    };
    Any {
        type_url: "type.googleapis.com/google.protobuf.ListValue".to_owned(),
        value: list.encode_to_vec(),
    }
}

fn operation(random: &mut StdRng, depth: usize) -> CriterionOperation {
    let criterion = Criterion {
        field_name: text(random),
        match_value: random.random_bool(0.5).then(|| values(random)),
        operator: random.random_range(0..13),
    };
    let inner = (depth > 0).then(|| operation(random, depth - 1));
    let empty = vec![CriterionOperation::default(); if depth == 0 { size(random) / 8 } else { 0 }];
    CriterionOperation {
        criterion: vec![criterion; random.random_range(0..3)],
        logical_operator: random.random_range(0..3),
        sub_operations: inner.into_iter().chain(empty).collect(),
    }
}

fn request(random: &mut StdRng) -> Vec<u8> {
    let order = OrderBy {
        field: text(random),
        dir: random.random_range(0..4),
    };
    let depth = random.random_range(0..40);
    let ext = ListOptionsExt {
        order_by: vec![order; random.random_range(0..20)],
        operation: random.random_bool(0.7).then(|| operation(random, depth)),
        pagination: None,
        returned_field_skip_list: vec![text(random); random.random_range(0..3)],
    };
    let options = ListOptions {
        label_selector: "a in (b),".repeat(size(random) / 9),
        field_selector: "metadata.name!=b,".repeat(size(random) / 17),
        ..ListOptions::default()
    };
    let mut message = ListRequest {
        namespace: "default".to_owned(),
        options: random.random_bool(0.5).then_some(options),
        ext: random.random_bool(0.7).then_some(ext),
    }
    .encode_to_vec();
    // Parts without anything in them: `ext`, and in it one of these by the other.
    if random.random_bool(0.3) {
        let field = [0x0a_u8, 0x12, 0x22].choose(random).copied().expect("some");
        let parts = [field, 0].repeat(size(random) / 2);
        message.push(0x1a);
        prost::encode_length_delimiter(parts.len(), &mut message).expect("a vector grows");
        message.extend(parts);
    }
    message
}

/// As far as a list goes before SQL is asked.
fn read(message: Vec<u8>) -> bool {
    let kind = &list::tests::KIND;
    let Ok(request) = reply::decode::<ListRequest>(message.into()) else {
        return false;
    };
    let Ok(options) = list::options(kind, &request.namespace, request.options.as_ref()) else {
        return false;
    };
    let Ok(ext) = request.ext.as_ref().map(condition::read).transpose() else {
        return false;
    };
    let mut select = Select::all(kind);
    if let Ok(labels) = LabelSelector::parse(&options.labels) {
        let _too_large = select.filter_by_labels(&labels);
    }
    let mut is_read = select.filter_by_fields(&options.fields).is_ok();
    if let Some(ext) = ext {
        is_read &= select.filter_by_operation(&ext.search.condition).is_ok();
        is_read &= ext.search.order.iter().all(|order| select.order_by(order).is_ok());
    }
    is_read
}

#[test]
fn no_generated_question_costs_more_than_its_bytes_are_worth() {
    let mut is_read = 0;
    for seed in 0..RUNS {
        let message = request(&mut StdRng::seed_from_u64(seed));
        let bytes = message.len() as u64;
        let mut outcome = false;
        let spent = measure(|| outcome = read(message));
        is_read += u64::from(outcome);
        assert!(
            spent.bytes_max <= FIXED_BYTES + HELD * bytes && spent.bytes_total <= SUGGESTION_BYTES + ALLOCATED * bytes,
            "seed {seed}: {spent:?} for {bytes} bytes"
        );
    }
    assert!((1..RUNS).contains(&is_read), "{is_read} of {RUNS} were understood");
}
