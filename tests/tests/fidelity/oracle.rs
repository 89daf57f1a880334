//! Message bytes to Kubernetes JSON, written against prost-reflect alone: what the typed messages are held against.

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use prost_reflect::{
    DescriptorPool, DynamicMessage, EnumDescriptor, FieldDescriptor, Kind, MapKey, MessageDescriptor, ReflectMessage,
    SerializeOptions, Value,
};
use serde_json::{Map, Value as Json, json};

/// The descriptors of the shipped kinds.
pub static SHIPPED: LazyLock<DescriptorPool> = LazyLock::new(|| pool(&super::root()));

/// The descriptors of the fixture.
pub static TRAPS: LazyLock<DescriptorPool> = LazyLock::new(|| pool(&super::traps()));

fn pool(root: &std::path::Path) -> DescriptorPool {
    let lowered = match kindex_codegen::lower(root) {
        Ok(lowered) => lowered,
        Err(errors) => panic!("{errors}"),
    };
    DescriptorPool::from_file_descriptor_set(lowered.model.descriptors).expect("compiled by protox")
}

/// Decodes `bytes` as `message` and writes them as an API server would show the object.
pub fn decode(message: MessageDescriptor, bytes: &[u8]) -> Json {
    let decoded = DynamicMessage::decode(message, bytes).expect("bytes of the message");
    object(&decoded)
}

fn object(message: &DynamicMessage) -> Json {
    assert_eq!(
        message.unknown_fields().count(),
        0,
        "bytes that {} does not know",
        message.descriptor().full_name()
    );
    let get = |name: &str| {
        let value = message.get_field_by_name(name);
        value.expect("a field of the message").into_owned()
    };
    match message.descriptor().full_name() {
        "google.protobuf.Any" => any(&get("type_url"), &get("value")),
        "k8s.io.apimachinery.pkg.apis.meta.v1.Time" => {
            json!(time(&get("seconds"), &get("nanos"), 0))
        }
        "k8s.io.apimachinery.pkg.apis.meta.v1.MicroTime" => {
            json!(time(&get("seconds"), &get("nanos"), 6))
        }
        "k8s.io.apimachinery.pkg.api.resource.Quantity" => json!(get("string").as_str()),
        "k8s.io.apimachinery.pkg.apis.meta.v1.FieldsV1" => {
            serde_json::from_slice(get("Raw").as_bytes().expect("bytes")).expect("JSON text")
        }
        "k8s.io.apimachinery.pkg.util.intstr.IntOrString" => match get("type").as_i64() {
            Some(0) => json!(get("intVal").as_i32()),
            _ => json!(get("strVal").as_str()),
        },
        name if name.starts_with("google.protobuf.") => {
            let options = SerializeOptions::new().stringify_64_bit_integers(false);
            message
                .serialize_with_options(serde_json::value::Serializer, &options)
                .expect("protojson")
        }
        _ => members(message),
    }
}

fn members(message: &DynamicMessage) -> Json {
    let mut members = Map::new();
    for (field, value) in message.fields() {
        let json = field_json(&field, value);
        match json {
            // Kubernetes shows the members of the type meta in the object itself.
            Json::Object(inner) if field.name() == "type_meta" => members.extend(inner),
            json => {
                members.insert(field.json_name().to_owned(), json);
            }
        }
    }
    Json::Object(members)
}

fn field_json(field: &FieldDescriptor, value: &Value) -> Json {
    match value {
        Value::List(items) => items.iter().map(|it| single(&field.kind(), it)).collect(),
        Value::Map(entries) => {
            let Kind::Message(entry) = field.kind() else {
                panic!("a map is made of entries")
            };
            let kind = entry.map_entry_value_field().kind();
            let entry = |(key, value): (&MapKey, &Value)| (map_key(key), single(&kind, value));
            Json::Object(entries.iter().map(entry).collect())
        }
        value => single(&field.kind(), value),
    }
}

fn map_key(key: &MapKey) -> String {
    match key {
        MapKey::Bool(key) => key.to_string(),
        MapKey::I32(key) => key.to_string(),
        MapKey::I64(key) => key.to_string(),
        MapKey::U32(key) => key.to_string(),
        MapKey::U64(key) => key.to_string(),
        MapKey::String(key) => key.clone(),
    }
}

fn single(kind: &Kind, value: &Value) -> Json {
    match (kind, value) {
        (Kind::Enum(descriptor), Value::EnumNumber(number)) => enum_name(descriptor, *number),
        (_, Value::Message(message)) => object(message),
        (_, Value::Bytes(bytes)) => json!(STANDARD.encode(bytes)),
        (_, Value::String(text)) => json!(text),
        (_, Value::Bool(flag)) => json!(flag),
        (_, Value::I32(number)) => json!(number),
        (_, Value::I64(number)) => json!(number),
        (_, Value::U32(number)) => json!(number),
        (_, Value::U64(number)) => json!(number),
        (_, Value::F32(number)) => json!(number),
        (_, Value::F64(number)) => json!(number),
        (kind, value) => panic!("{value:?} is not a single {kind:?}"),
    }
}

fn enum_name(descriptor: &EnumDescriptor, number: i32) -> Json {
    match descriptor.get_value(number) {
        Some(value) => json!(value.name()),
        None => json!(number),
    }
}

fn any(type_url: &Value, value: &Value) -> Json {
    let mut members = Map::new();
    let (type_url, value) = (type_url.as_str(), value.as_bytes());
    if let Some(type_url) = type_url.filter(|text| !text.is_empty()) {
        members.insert("@type".to_owned(), json!(type_url));
    }
    if let Some(value) = value.filter(|bytes| !bytes.is_empty()) {
        members.insert("value".to_owned(), json!(STANDARD.encode(value)));
    }
    Json::Object(members)
}

fn time(seconds: &Value, nanos: &Value, digits: usize) -> String {
    let (seconds, nanos) = (seconds.as_i64(), nanos.as_i32());
    let (seconds, nanos) = (seconds.expect("int64"), nanos.expect("int32"));
    let time = jiff::Timestamp::new(seconds, nanos).expect("a time");
    match digits {
        0 => time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        _ => time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string(),
    }
}

/// Equality that does not tell `1` from `1.0`.
pub fn same(left: &Json, right: &Json) -> bool {
    match (left, right) {
        (Json::Number(left), Json::Number(right)) => {
            left == right || left.as_f64() == right.as_f64() && (left.is_f64() || right.is_f64())
        }
        (Json::Array(left), Json::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Json::Object(left), Json::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .all(|(key, value)| right.get(key).is_some_and(|other| same(value, other)))
        }
        (left, right) => left == right,
    }
}
