//! Random objects of a message, as Kubernetes would show them: canonical texts, and no zero where a field has no
//! presence, so that everything must come back as it was.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use prost_reflect::{Cardinality, EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use serde_json::{Map, Value as Json, json};

const DEPTH_MAX: usize = 6;
/// SQL holds times from here on; what comes before has its own tests.
const YEAR_1000: i64 = -30_610_224_000;
/// 9999-12-30, which every library knows.
const LAST_DAY: i64 = 253_402_128_000;
const WORDS: [&str; 6] = ["a", "zwei", "ünï→", "\"quoted\\\"", " line\n", "0"];

/// An object of the root message `root`; the same seed gives the same object.
pub fn object(root: &MessageDescriptor, seed: u64) -> Json {
    let mut random = Random(StdRng::seed_from_u64(seed));
    let mut members = Map::new();
    for field in root.fields().filter(|field| field.name() != "type_meta") {
        let Kind::Message(message) = field.kind() else {
            panic!("{root:?} is not a root message")
        };
        members.insert(field.json_name().to_owned(), random.members(&message, 0));
    }
    let metadata = &mut members["metadata"];
    metadata["name"] = json!("an-object");
    metadata["namespace"] = json!("a-namespace");
    metadata["uid"] = json!("6b0f3f2c");
    metadata["resourceVersion"] = json!("42");
    members.insert("kind".to_owned(), json!(root.name()));
    members.insert("apiVersion".to_owned(), json!("group/v1"));
    Json::Object(members)
}

struct Random(StdRng);

impl Random {
    fn members(&mut self, message: &MessageDescriptor, depth: usize) -> Json {
        let mut members = Map::new();
        for field in message.fields() {
            let is_synthetic = |it: &prost_reflect::OneofDescriptor| it.is_synthetic();
            let in_oneof = field.containing_oneof().filter(|it| !is_synthetic(it));
            let wanted = match &in_oneof {
                Some(oneof) => {
                    let taken = oneof.fields().any(|it| members.contains_key(it.json_name()));
                    !taken && self.0.random_bool(1.0 / oneof.fields().len() as f64)
                }
                None => self.0.random_bool(0.7),
            };
            let too_deep = depth >= DEPTH_MAX && matches!(field.kind(), Kind::Message(_));
            if wanted && !too_deep {
                let json = self.field(&field, depth);
                // null in a oneof means that the member is not set.
                if !(in_oneof.is_some() && json.is_null()) {
                    members.insert(field.json_name().to_owned(), json);
                }
            }
        }
        Json::Object(members)
    }

    fn field(&mut self, field: &FieldDescriptor, depth: usize) -> Json {
        let count = self.0.random_range(1..=3);
        if field.is_map() {
            let Kind::Message(entry) = field.kind() else {
                panic!("a map is made of entries")
            };
            let (key, value) = (entry.map_entry_key_field(), entry.map_entry_value_field());
            let entries = (0..count).map(|_| {
                let key = match self.single(&key.kind(), true, depth) {
                    Json::String(text) => text,
                    other => other.to_string(),
                };
                (key, self.single(&value.kind(), true, depth + 1))
            });
            return Json::Object(entries.collect());
        }
        if field.cardinality() == Cardinality::Repeated {
            let items = (0..count).map(|_| self.single(&field.kind(), true, depth + 1));
            return items.collect();
        }
        self.single(&field.kind(), field.supports_presence(), depth + 1)
    }

    fn single(&mut self, kind: &Kind, may_be_zero: bool, depth: usize) -> Json {
        for _ in 0..100 {
            let json = self.any_single(kind, depth);
            let is_zero = json == json!(0) || json == json!(0.0) || json == json!("") || json == json!(false);
            let is_first = matches!(kind, Kind::Enum(it) if json == json!(it.default_value().name()));
            if may_be_zero || !(is_zero || is_first) {
                return json;
            }
        }
        panic!("{kind:?} has no value but zero")
    }

    fn any_single(&mut self, kind: &Kind, depth: usize) -> Json {
        match kind {
            Kind::Double | Kind::Float => json!(f64::from(self.0.random_range(-400..400)) / 4.0),
            Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => json!(self.0.random::<i32>()),
            Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => json!(self.0.random::<i64>()),
            Kind::Uint32 | Kind::Fixed32 => json!(self.0.random::<u32>()),
            Kind::Uint64 | Kind::Fixed64 => json!(self.0.random::<u64>()),
            Kind::Bool => json!(self.0.random::<bool>()),
            Kind::String => self.word(),
            Kind::Bytes => self.bytes(),
            Kind::Enum(it) => self.enum_name(it),
            Kind::Message(it) => self.message(it, depth),
        }
    }

    fn word(&mut self) -> Json {
        json!(WORDS.choose(&mut self.0).expect("not empty"))
    }

    fn bytes(&mut self) -> Json {
        let len = self.0.random_range(0..9);
        let bytes: Vec<u8> = (0..len).map(|_| self.0.random()).collect();
        json!(STANDARD.encode(bytes))
    }

    fn enum_name(&mut self, descriptor: &EnumDescriptor) -> Json {
        let names: Vec<String> = descriptor.values().map(|it| it.name().to_owned()).collect();
        json!(names.choose(&mut self.0).expect("not empty"))
    }

    fn message(&mut self, message: &MessageDescriptor, depth: usize) -> Json {
        let wrapped = |kind: &Kind, random: &mut Self| random.any_single(kind, depth);
        match message.full_name() {
            "google.protobuf.Timestamp" => json!(self.time(&[0, 3, 6, 9])),
            "k8s.io.apimachinery.pkg.apis.meta.v1.Time" => json!(self.time(&[0])),
            "k8s.io.apimachinery.pkg.apis.meta.v1.MicroTime" => {
                json!(self.time_with(6))
            }
            "google.protobuf.Duration" => self.duration(),
            "google.protobuf.Struct" => self.free_object(depth),
            "google.protobuf.ListValue" => self.free_list(depth),
            "google.protobuf.Value" => self.free(depth),
            "google.protobuf.Any" => {
                let mut any = json!({ "@type": format!("type.googleapis.com/{}", self.0.random::<u8>()) });
                let value = self.bytes();
                if value != json!("") {
                    any["value"] = value;
                }
                any
            }
            "google.protobuf.Empty" => json!({}),
            "google.protobuf.FieldMask" => json!("plain,twoWords.inner"),
            "google.protobuf.BoolValue" => wrapped(&Kind::Bool, self),
            "google.protobuf.BytesValue" => wrapped(&Kind::Bytes, self),
            "google.protobuf.StringValue" => wrapped(&Kind::String, self),
            "google.protobuf.DoubleValue" => wrapped(&Kind::Double, self),
            "google.protobuf.Int64Value" => wrapped(&Kind::Int64, self),
            "k8s.io.apimachinery.pkg.api.resource.Quantity" => json!("500m"),
            "k8s.io.apimachinery.pkg.apis.meta.v1.FieldsV1" => {
                json!({ "f:spec": { "f:name": {} } })
            }
            "k8s.io.apimachinery.pkg.util.intstr.IntOrString" => match self.0.random() {
                true => json!(self.0.random::<i32>()),
                false => self.word(),
            },
            _ => {
                let mut json = self.members(message, depth + 1);
                if message.get_field_by_name("type_meta").is_some() {
                    // An object within an object shows its kind as every object does.
                    json.as_object_mut().expect("members").remove("typeMeta");
                    json["kind"] = json!("Inner");
                }
                json
            }
        }
    }

    fn time(&mut self, digits: &[usize]) -> String {
        let digits = *digits.choose(&mut self.0).expect("not empty");
        self.time_with(digits)
    }

    /// The last digit is not 0, so that no shorter text means the same.
    fn time_with(&mut self, digits: usize) -> String {
        let second = self.0.random_range(YEAR_1000..LAST_DAY);
        let second = jiff::Timestamp::from_second(second).expect("in range");
        let fraction = self.fraction(digits);
        format!("{}{fraction}Z", second.strftime("%Y-%m-%dT%H:%M:%S"))
    }

    fn fraction(&mut self, digits: usize) -> String {
        match digits {
            0 => String::new(),
            digits => {
                let number = self.0.random_range(0..10_u32.pow(digits as u32 - 1)) * 10;
                format!(".{:0digits$}", number + self.0.random_range(1..10))
            }
        }
    }

    fn duration(&mut self) -> Json {
        let sign = ["", "-"].choose(&mut self.0).expect("not empty");
        let digits = *[3, 6, 9].choose(&mut self.0).expect("not empty");
        let seconds = self.0.random_range(0..315_576_000_000_u64);
        json!(format!("{sign}{seconds}{}s", self.fraction(digits)))
    }

    fn free(&mut self, depth: usize) -> Json {
        match self.0.random_range(0..7) {
            0 => Json::Null,
            1 => json!(self.0.random::<bool>()),
            2 => json!(self.0.random_range(-(1_i64 << 53)..=(1 << 53))),
            3 => json!(f64::from(self.0.random::<i32>()) + 0.5),
            4 if depth < DEPTH_MAX => self.free_list(depth + 1),
            5 if depth < DEPTH_MAX => self.free_object(depth + 1),
            _ => self.word(),
        }
    }

    fn free_list(&mut self, depth: usize) -> Json {
        let count = self.0.random_range(0..4);
        (0..count).map(|_| self.free(depth + 1)).collect()
    }

    fn free_object(&mut self, depth: usize) -> Json {
        let count = self.0.random_range(0..4);
        let entries = (0..count).map(|at| (format!("key{at}"), self.free(depth + 1)));
        Json::Object(entries.collect())
    }
}
