//! Every verb of every kind, by its sample.

use kindex_harness::wait::eventually;
use kindex_model::kind::Kind;
use kindex_query::Life;
use prost_reflect::{DynamicMessage, SerializeOptions};
use serde_json::{Value, json};
use tonic::Code;

use super::client::Client;
use crate::api::stage::{Stage, send};

/// The samples, each with its kind.
fn samples() -> Vec<(&'static Kind, Value)> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../samples");
    let registry = kindex_generated::registry();
    let files = std::fs::read_dir(directory).unwrap().map(|file| file.unwrap().path());
    let mut found: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .flat_map(|path| {
            let text = std::fs::read_to_string(path).unwrap();
            serde_saphyr::from_multiple::<Value>(&text).unwrap()
        })
        .filter_map(|object| Some((registry.find(object["kind"].as_str()?)?, object)))
        .collect();
    found.sort_by_key(|(kind, _)| kind.name);
    assert_eq!(found.len(), registry.kinds.len(), "one for each kind");
    found
}

/// An object in the JSON of its message, as this client sends it.
fn message(client: &Client, kind: &Kind, object: &Value) -> Value {
    let bytes = (kind.encode)(&object.to_string()).proto.unwrap();
    let create = client.method(kind, "Create*");
    let field = create.input().get_field(1).unwrap();
    let message = DynamicMessage::decode(field.kind().as_message().unwrap().clone(), bytes.as_slice()).unwrap();
    let options = SerializeOptions::new().stringify_64_bit_integers(false);
    message
        .serialize_with_options(serde_json::value::Serializer, &options)
        .unwrap()
}

struct Walk<'a> {
    stage: &'a Stage,
    client: &'a Client,
    kind: &'static Kind,
    /// The JSON name of the field that has the object.
    field: String,
    namespace: String,
}

impl Walk<'_> {
    async fn object(&self, call: &str, object: &Value) -> Value {
        let mut answer = self
            .client
            .call(self.kind, call, json!({ &self.field: object }))
            .await
            .unwrap_or_else(|status| panic!("{call} of {}: {status:?}", self.kind.name));
        answer[&self.field].take()
    }

    fn at(&self, name: &str) -> Value {
        json!({"namespace": self.namespace, "name": name})
    }

    async fn list(&self, selector: &str) -> Value {
        let request = json!({"namespace": self.namespace, "listOptions": {"labelSelector": selector}});
        let mut answer = self.client.call(self.kind, "List*", request).await.unwrap();
        answer[format!("{}List", self.field)].take()
    }

    async fn is_gone(&self, name: &str) -> bool {
        let answer = self.client.call(self.kind, "Get*", self.at(name)).await;
        answer.is_err_and(|status| status.code() == Code::NotFound)
    }

    async fn is_stored_as_deleted(&self, name: &str) -> bool {
        let rows = self
            .stage
            .store
            .rows_of_name(self.kind, &self.namespace, name)
            .await
            .unwrap();
        rows.first().is_some_and(|row| row.life == Life::Deleted)
    }

    async fn walk(&self, sample: &Value) {
        let name = sample["metadata"]["name"].as_str().unwrap();
        let created = self.object("Create*", &message(self.client, self.kind, sample)).await;
        assert_eq!(created["typeMeta"]["kind"], self.kind.name);
        let finalizers = &created["metadata"]["finalizers"];
        assert!(
            finalizers.as_array().unwrap().contains(&json!("michelangelo/Ingester")),
            "{created}"
        );
        self.stored_as_sent(sample).await;

        let mut got = self.client.call(self.kind, "Get*", self.at(name)).await.unwrap();
        assert_eq!(got[&self.field]["spec"], created["spec"]);
        let version = got[&self.field]["metadata"]["resourceVersion"].clone();
        let request = json!({"namespace": self.namespace, "listOptions": {"resourceVersion": version}});
        let mut watch = self.client.watch(self.kind, request).await.unwrap();

        got[&self.field]["metadata"]["labels"] = json!({"walk": "one"});
        let updated = self.object("Update*", &got[&self.field]).await;
        assert_ne!(updated["metadata"]["resourceVersion"], version);
        let event = watch.next().await.unwrap().unwrap();
        assert_eq!(event["type"], "MODIFIED");
        assert_eq!(event[&self.field]["metadata"]["labels"], json!({"walk": "one"}));

        let stale = self.client.call(self.kind, "Update*", got).await.unwrap_err();
        assert_eq!(stale.code(), Code::FailedPrecondition, "{stale:?}");
        let mut changed = updated.clone();
        changed["metadata"]["labels"] = json!({"walk": "lost"});
        let with_status = self.object("Update*Status", &changed).await;
        assert_eq!(
            with_status["metadata"]["labels"],
            json!({"walk": "one"}),
            "only the status"
        );

        assert_eq!(self.list("walk=one").await["items"].as_array().unwrap().len(), 1);
        assert!(self.list("walk=two").await["items"].is_null());
        self.client.call(self.kind, "Delete*", self.at(name)).await.unwrap();
        self.gone(name).await;
        self.collection(sample).await;
    }

    /// What was sent as a message is what a manifest would have made of it.
    async fn stored_as_sent(&self, sample: &Value) {
        let Kind {
            group, version, plural, ..
        } = self.kind;
        let name = sample["metadata"]["name"].as_str().unwrap();
        let path = format!("/apis/{group}/{version}/namespaces/{}/{plural}/{name}", self.namespace);
        let (code, stored) = send(&self.stage.cluster, "GET", &path, &Value::Null).await;
        assert_eq!(code, 200, "{stored}");
        let spec = |object: &Value| {
            let text = json!({"spec": object["spec"]}).to_string();
            (self.kind.encode)(&text).proto.unwrap()
        };
        assert_eq!(spec(&stored), spec(sample), "{stored}");
    }

    async fn gone(&self, name: &str) {
        eventually(&format!("{} {name} is deleted", self.kind.name), async || {
            self.is_gone(name).await && self.is_stored_as_deleted(name).await
        })
        .await;
    }

    async fn collection(&self, sample: &Value) {
        for name in ["first", "second", "third"] {
            let mut object = sample.clone();
            let label = if name == "third" { "stays" } else { "goes" };
            object["metadata"] = json!({"name": name, "namespace": self.namespace, "labels": {"walk": label}});
            self.object("Create*", &message(self.client, self.kind, &object)).await;
        }
        let request = json!({"namespace": self.namespace, "listOptions": {"labelSelector": "walk=goes"}});
        self.client.call(self.kind, "Delete*Collection", request).await.unwrap();
        self.gone("first").await;
        self.gone("second").await;
        assert!(!self.is_gone("third").await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_verb_of_every_kind() {
    let stage = Stage::of_all_kinds().await;
    let client = Client::plain(stage.address).await;
    for (kind, sample) in samples() {
        let namespace = sample["metadata"]["namespace"].as_str().unwrap().to_owned();
        let object = json!({"kind": "Namespace", "metadata": {"name": namespace}});
        send(&stage.cluster, "POST", "/api/v1/namespaces", &object).await;
        let field = client.method(kind, "Create*").input().get_field(1).unwrap();
        let walk = Walk {
            stage: &stage,
            client: &client,
            kind,
            field: field.json_name().to_owned(),
            namespace,
        };
        walk.walk(&sample).await;
    }
    stage.end().await;
}

/// What this server reads and writes without knowing the messages.
#[test]
fn all_services_have_the_shapes_that_are_served() {
    let pool = prost_reflect::DescriptorPool::decode(kindex_generated::registry().descriptors).unwrap();
    let shapes = |service: &prost_reflect::ServiceDescriptor, kind: &str| -> Vec<String> {
        let mut shapes = Vec::new();
        for method in service.methods() {
            for (message, streams) in [
                (method.input(), method.is_client_streaming()),
                (method.output(), method.is_server_streaming()),
            ] {
                let fields = message.fields().map(|field| {
                    let object = field
                        .kind()
                        .as_message()
                        .is_some_and(|message| message.name().starts_with(kind));
                    let name = if object { "object" } else { field.name() };
                    let ty = field
                        .kind()
                        .as_message()
                        .map(|message| message.full_name().replace(kind, "*"));
                    format!("{}={name}:{ty:?}{}", field.number(), field.is_list())
                });
                let fields: Vec<String> = fields.collect();
                shapes.push(format!("{} {streams} {fields:?}", method.name().replace(kind, "*")));
            }
        }
        shapes
    };
    let mut known: Option<Vec<String>> = None;
    let mut count = 0;
    for kind in kindex_generated::registry().kinds {
        let name = format!("{}.{}.{}Service", kind.group, kind.version, kind.name);
        let service = pool.get_service_by_name(&name).unwrap_or_else(|| panic!("{name}"));
        let found = shapes(&service, kind.name);
        assert_eq!(&found, known.get_or_insert(found.clone()), "{name}");
        count += 1;
    }
    assert_eq!(count, pool.services().count());
}
