//! Messages in the JSON of proto3, with the names that the files have: for the calls that only `mlrun.v1` knows.

use std::sync::LazyLock;

use prost::Message;
use prost_reflect::{DescriptorPool, DeserializeOptions, DynamicMessage, MessageDescriptor, SerializeOptions};
use serde_json::Value;

use crate::refusal::{Code, Refusal};
use crate::wire::DESCRIPTORS;

static POOL: LazyLock<DescriptorPool> =
    LazyLock::new(|| DescriptorPool::decode(DESCRIPTORS).expect("the descriptors are those of the build"));

fn descriptor(name: &str) -> MessageDescriptor {
    let message = POOL.get_message_by_name(&format!("mlrun.v1.{name}"));
    message.expect("the message is one of the files")
}

/// A message as JSON: whole numbers are numbers, and what has its default is there.
pub(super) fn to_json(name: &str, message: &impl Message) -> Value {
    let mut dynamic = DynamicMessage::new(descriptor(name));
    dynamic
        .merge(&*message.encode_to_vec())
        .expect("a message reads what it wrote");
    let options = SerializeOptions::new()
        .stringify_64_bit_integers(false)
        .use_proto_field_name(true)
        .skip_default_fields(false);
    let json = dynamic.serialize_with_options(serde_json::value::Serializer, &options);
    json.unwrap_or_default()
}

/// JSON as a message.
///
/// # Errors
/// What is no such message. Fields that it does not have are left alone, as with all requests.
pub(super) fn from_json<M: Message + Default>(name: &str, json: Value) -> Result<M, Refusal> {
    let options = DeserializeOptions::new().deny_unknown_fields(false);
    let invalid = |error: &dyn std::fmt::Display| {
        let message = format!("the body is not such a request: {error}");
        Refusal::new(Code::InvalidArgument, "INVALID_FIELD", message)
    };
    let dynamic = DynamicMessage::deserialize_with_options(descriptor(name), json, &options);
    let dynamic = dynamic.map_err(|error| invalid(&error))?;
    M::decode(&*dynamic.encode_to_vec()).map_err(|error| invalid(&error))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::wire::v1::{CreateArtifactUploadRequest, MetricStats};

    #[test]
    fn messages_have_the_names_of_the_files_in_json() {
        let request: CreateArtifactUploadRequest = from_json(
            "CreateArtifactUploadRequest",
            json!({
                "metadata": {"name": "a", "type": "ARTIFACT_TYPE_MODEL", "size_bytes": "5", "created_at": "1970-01-01T00:00:01Z"},
                "expected_size_bytes": 5, "unknown": {},
            }),
        )
        .expect("a request");
        let metadata = request.metadata.clone().expect("metadata");
        assert_eq!(
            (metadata.r#type, metadata.size_bytes, request.expected_size_bytes),
            (1, 5, 5)
        );
        let shown = to_json("CreateArtifactUploadRequest", &request);
        assert_eq!(shown["metadata"]["size_bytes"], 5);
        assert_eq!(shown["metadata"]["type"], "ARTIFACT_TYPE_MODEL");
        let refused = from_json::<CreateArtifactUploadRequest>("CreateArtifactUploadRequest", json!({"metadata": 5}));
        assert_eq!(refused.expect_err("refused").reason, "INVALID_FIELD");
    }

    #[test]
    fn doubles_that_json_lacks_are_strings() {
        let stats = MetricStats {
            min: f64::NAN,
            max: f64::INFINITY,
            ..MetricStats::default()
        };
        let shown = to_json("MetricStats", &stats);
        assert_eq!((&shown["min"], &shown["max"]), (&json!("NaN"), &json!("Infinity")));
    }
}
