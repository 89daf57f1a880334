//! The values of the chart: what cannot work is refused in words, and what there is has a place in the schema.

use serde_json::Value;

use super::chart::{helm_is_there, refused};
use super::manifest::documents;
use super::read;

/// Values that cannot work, and what says so.
const REFUSED: &[(&[&str], &str)] = &[
    (
        &["--set=ingester.replica=3"],
        "'/ingester': additional properties 'replica' not allowed",
    ),
    (
        &["--set=ingestr.replicas=3"],
        "'/ingestr': missing properties 'enabled', 'resources'",
    ),
    (&["--set=ingester.run=null"], "Upgrade with --reset-then-reuse-values"),
    (
        &["--set=ingester.mode=both"],
        "value must be one of 'leader', 'shards', 'alone'",
    ),
    (&["--set=config.mysql.port=70000"], "at '/config/mysql/port'"),
    (
        &["--set=config.metadataStorage.deletionDelay=soon"],
        "/config/metadataStorage/deletionDelay",
    ),
    (
        &["--set=config.mysql.password=secret"],
        "Put it into the Secret that database.existingSecret names",
    ),
    (
        &["--set=config.mysql.passwordFile=/a"],
        "Name the Secret and its keys in database instead",
    ),
    (&["--set=config.sqlite.path=/a"], "pods do not share files"),
    (
        &["--set=database.existingSecret="],
        "name the Secret with the database's user and password",
    ),
    (
        &["--set=ingester.mode=alone"],
        "Set mode leader or shards, or replicas 1",
    ),
    (&["--set=api.enabled=true"], "Name a Secret of type kubernetes.io/tls"),
    (
        &["--set=migrator.enabled=true,migrator.options.webhookOnly=true"],
        "has no rights to keep a certificate",
    ),
    (
        &[
            "--set=deletion.enabled=true,deletion.options.nats.url=nats://nats",
            "--set=database.enabled=false",
        ],
        "events are read from it",
    ),
    (
        &["--set=deletion.keys.natsToken=token"],
        "deletion.keys.natsToken and natsCa name keys",
    ),
    (
        &[
            "--set=deletion.options.notify.url=http://hooks",
            "--set=deletion.keys.existingSecret=hooks,deletion.keys.notifyToken=token",
        ],
        "for an https:// URL in deletion.options.notify.url",
    ),
    (
        &["--set=runs.enabled=true"],
        "set runs.options.allowPlaintext where a proxy has the certificate",
    ),
    (
        &["--set=runs.enabled=true,runs.options.allowPlaintext=true,runs.keys.existingSecret="],
        "runs.keys.existingSecret: name the Secret",
    ),
    (
        &["--set=runs.replicas=2"],
        "at '/runs/replicas': maximum: got 2, want 1",
    ),
    (
        &[
            "--set=api.enabled=true",
            "--set=api.tls.secretName=a",
            "--set=database.enabled=false",
        ],
        "there are no stored objects to serve",
    ),
];

#[test]
fn values_that_cannot_work_are_refused_with_what_to_do() {
    if !helm_is_there() {
        return;
    }
    for (values, reported) in REFUSED {
        let message = refused(values);
        assert!(message.contains(reported), "{values:?}: {message}");
    }
    let message = refused(&["--set=api.enabled=true,ingester.mode=alone"]);
    assert!(
        message.contains("tls.secretName") && message.contains("mode alone"),
        "all at once: {message}"
    );
}

#[test]
fn every_value_has_a_place_in_the_schema_of_values() {
    fn keys(value: &Value, schema: &Value, path: &str) -> Vec<String> {
        let Some(object) = value.as_object().filter(|_| schema["properties"].is_object()) else {
            return Vec::new();
        };
        // A service without keys of its own is one of the others.
        let others = schema["additionalProperties"].is_object();
        let unknown = |key: &String| schema["properties"][key].is_null() && !others;
        let missing = object
            .keys()
            .filter(|key| unknown(key))
            .map(|key| format!("{path}/{key}"));
        let below = object
            .iter()
            .flat_map(|(key, value)| keys(value, &schema["properties"][key], &format!("{path}/{key}")));
        missing.chain(below).collect()
    }
    let schema: Value = serde_json::from_str(&read("deploy/helm/kindex/values.schema.json")).expect("JSON");
    let values = &documents("deploy/helm/kindex/values.yaml")[0];
    assert_eq!(keys(values, &schema, ""), Vec::<String>::new());
}
