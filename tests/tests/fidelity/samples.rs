//! The manifests in `samples/`: one for each kind, and nothing in them that the message does not know.

use std::collections::BTreeSet;
use std::fs;

use kindex_generated::registry;
use serde_json::Value as Json;

use super::{oracle, root};

/// The manifests in order of application, without the namespace.
fn samples() -> Vec<(String, Json)> {
    let directory = root().join("samples");
    let files = fs::read_dir(directory)
        .expect("samples are there")
        .map(|entry| entry.expect("readable").path());
    let mut paths: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|it| it == "yaml"))
        .collect();
    paths.sort();
    let read = |path: std::path::PathBuf| {
        let text = fs::read_to_string(&path).expect("readable");
        let json: Json = serde_saphyr::from_str(&text).expect("YAML");
        (path.display().to_string(), json)
    };
    paths
        .into_iter()
        .map(read)
        .filter(|(_, json)| json["kind"] != "Namespace")
        .collect()
}

#[test]
fn every_kind_has_one() {
    let kinds: BTreeSet<&str> = registry().kinds.iter().map(|kind| kind.name).collect();
    let samples = samples();
    let sampled: BTreeSet<&str> = samples.iter().filter_map(|(_, json)| json["kind"].as_str()).collect();
    assert_eq!(sampled, kinds);
    assert_eq!(samples.len(), kinds.len());
}

#[test]
fn every_field_is_known_to_the_message() {
    for (path, sample) in samples() {
        let kind = registry()
            .find(sample["kind"].as_str().expect("a kind"))
            .expect("a kind of ours");
        assert_eq!(sample["apiVersion"], kind.api_version(), "{path}");
        let encoded = (kind.encode)(&sample.to_string());
        assert_eq!(encoded.problems, [], "{path}");
        let message = format!("michelangelo.api.v2.{}", kind.name);
        let message = oracle::SHIPPED
            .get_message_by_name(&message)
            .expect("a message of ours");
        let known = oracle::decode(message, &encoded.proto.expect("it fits"));
        let expected = without_false(sample);
        assert!(
            oracle::same(&known, &expected),
            "{path}\nknown: {known}\nwritten: {expected}"
        );
    }
}

/// `false` in a field without presence is not on the wire.
fn without_false(json: Json) -> Json {
    match json {
        Json::Object(members) => {
            let kept = members.into_iter().filter(|(_, json)| *json != Json::Bool(false));
            Json::Object(kept.map(|(name, json)| (name, without_false(json))).collect())
        }
        Json::Array(items) => items.into_iter().map(without_false).collect(),
        other => other,
    }
}
