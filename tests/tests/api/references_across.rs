//! References of holders in another service: a model there names a project here, and a project here the model.

use kindex_api::operations::{Bounds, Caller, Node, ObjectKey, Peers};
use kindex_generated::kinds::{model, project};
use kindex_harness::wait::eventually;
use kindex_model::kind::Kind;
use kindex_model::reference::{Named, OnDelete, Reference, Service, Target};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use super::stage::{MODELS, Stage, client_of, send, serve};

const GROUP: &str = "michelangelo.api";
const PROJECTS: &str = "/apis/michelangelo.api/v2/namespaces/default/projects";

/// Where crds.toml says, nobody answers.
static IDENTITY: Service = Service {
    name: "identity",
    group: GROUP,
    cluster_scoped: &[],
    plurals: &[],
    refers_to: &[],
    address: "http://127.0.0.1:1",
    ca_file: None,
    token_file: None,
};
static REGION: Service = Service {
    name: "region",
    ..IDENTITY
};
const PROJECT: Reference = Reference {
    name: "project",
    targets: &[Target {
        service: Some(&IDENTITY),
        group: GROUP,
        kind: "Project",
    }],
    kind_column: None,
    path: &["spec", "source"],
    named: Named::Name,
    columns: &[],
    owned: false,
    on_delete: OnDelete::Cascade,
};
/// They name projects of the other service, and models that they begin with.
static OF_PROJECTS: Kind = Kind {
    references: &[
        PROJECT,
        Reference {
            name: "base",
            targets: &[Target {
                service: None,
                group: GROUP,
                kind: "Model",
            }],
            path: &["spec", "description"],
            on_delete: OnDelete::Block,
            ..PROJECT
        },
    ],
    ..model::KIND
};
/// They name models of the other service.
static OF_MODELS: Kind = Kind {
    references: &[Reference {
        name: "model",
        targets: &[Target {
            service: Some(&REGION),
            group: GROUP,
            kind: "Model",
        }],
        path: &["spec", "description"],
        ..PROJECT
    }],
    ..project::KIND
};
static REGION_KINDS: &[&Kind] = &[&OF_PROJECTS];
static IDENTITY_KINDS: &[&Kind] = &[&OF_MODELS];

/// The project `a` is held by the model `m` of the region, and that by the model `n` there and by the project `q`.
struct Both {
    region: Stage,
    identity: Stage,
    /// By which `m` holds others.
    held_by: String,
}

impl Both {
    async fn start() -> Self {
        let region = Stage::of_kinds(REGION_KINDS).await;
        let identity = Stage::of_kinds(IDENTITY_KINDS).await;
        create_project(&identity, "a", json!({})).await;
        let created = region.create("m", json!({}), json!({"source": "a"})).await;
        region.create("n", json!({}), json!({"description": "m"})).await;
        let held_by = reference("model", &created);
        let held_by_project = create_project(&identity, "q", json!({"description": "m"})).await;
        place(&identity.api, &format!("projects/default/a/references/{held_by}")).await;
        place(&region.api, &format!("models/default/m/references/{held_by_project}")).await;
        stored(&region, &OF_PROJECTS, &["m", "n"]).await;
        stored(&identity, &OF_MODELS, &["a", "q"]).await;
        Self {
            region,
            identity,
            held_by,
        }
    }

    fn peers(&self) -> Peers {
        Peers::default().at(GROUP, &format!("http://{}", self.region.address))
    }

    /// What holds the project.
    async fn tree(&self) -> Node {
        let key = ObjectKey {
            resource: (&OF_MODELS).into(),
            namespace: "default",
            name: "a",
        };
        let operations = self.identity.operations().with_peers(self.peers());
        let tree = operations.holders(&Caller::default(), &key, Bounds::default()).await;
        tree.expect("it is there")
    }

    async fn end(self) {
        self.identity.end().await;
        self.region.end().await;
    }
}

fn reference(kind: &str, object: &Value) -> String {
    format!("{kind}.{GROUP}/{}", object["metadata"]["uid"].as_str().unwrap())
}

/// The reference by which it holds others.
async fn create_project(identity: &Stage, name: &str, spec: Value) -> String {
    let body =
        json!({"apiVersion": "michelangelo.api/v2", "kind": "Project", "metadata": {"name": name}, "spec": spec});
    let (code, created) = send(&identity.api, "POST", PROJECTS, &body).await;
    assert_eq!(code, 201, "{created}");
    reference("project", &created)
}

async fn place(api: &Client, reference: &str) {
    let (code, answer) = send(api, "PUT", &format!("/api/v1/{reference}"), &Value::Null).await;
    assert_eq!(code, 200, "{answer}");
}

async fn stored(stage: &Stage, kind: &'static Kind, names: &[&str]) {
    for name in names {
        eventually("stored", async || {
            let rows = stage.store.rows_of_name(kind, "default", name).await.unwrap();
            !rows.is_empty()
        })
        .await;
    }
}

/// The warnings of a dry run of a deletion.
async fn tried(stage: &Stage, peers: Peers, path: &str) -> Vec<String> {
    let operations = stage.operations().with_peers(peers);
    let api = client_of(serve(operations, None, stage.ground.stop()).await);
    let request = http::Request::delete(format!("{path}?dryRun=All"));
    let response = api.send(request.body(Body::empty()).unwrap()).await.unwrap();
    let warnings = response.headers().get_all("warning").iter();
    warnings.map(|warning| warning.to_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_says_by_which_fields_its_object_holds_others() {
    let both = Both::start().await;
    let path = format!("/api/v1/references/{}?depth=1", both.held_by);
    let (code, said) = send(&both.region.api, "GET", &path, &Value::Null).await;
    let targets = json!([{"reference": "project", "path": "spec.source", "onDelete": "cascade", "group": GROUP,
        "kind": "Project", "namespace": "default", "name": "a"}]);
    assert_eq!((code, &said["targets"]), (200, &targets), "{said}");

    // Once it names another project, it is not by this field that it holds the former one.
    let (code, moved) = send(
        &both.region.cluster,
        "PATCH",
        &format!("{MODELS}/m"),
        &json!({"spec": {"source": "b"}}),
    )
    .await;
    assert_eq!(code, 200, "{moved}");
    eventually("the other name to be known", async || {
        both.tree().await.holders[0].how() == "reference"
    })
    .await;
    both.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_holder_of_another_service_goes_along_with_what_is_below_it_as_its_field_says() {
    let both = Both::start().await;
    let forecast = [
        "project/default/a: model/default/m would be deleted first (spec.source: cascade, reference)",
        "model/default/m: waits for model/default/n, which somebody has to delete (spec.description: block)",
        "model/default/m: project/default/q would be deleted first (spec.description: cascade, reference)",
    ];
    let tree = both.tree().await;
    assert_eq!(tree.forecast(), forecast);
    let roots: Vec<String> = tree
        .roots()
        .iter()
        .map(|root| format!("{}: {}", root.label(), root.reason()))
        .collect();
    assert_eq!(
        roots,
        [
            "model/default/n: nobody has deleted it",
            "project/default/q: is to be deleted with what it names, and is not yet",
        ]
    );

    // So says a dry run.
    let warnings = tried(&both.identity, both.peers(), &format!("{PROJECTS}/a")).await;
    assert_eq!(warnings.len(), forecast.len(), "{warnings:?}");
    for (warning, line) in warnings.iter().zip(forecast) {
        assert!(warning.contains(line), "{warnings:?}");
    }
    both.end().await;
}

/// Otherwise everybody who asks about an object with thousands of holders there waits for each of them.
#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_is_silent_is_asked_once_by_a_question() {
    let identity = Stage::of_kinds(IDENTITY_KINDS).await;
    create_project(&identity, "a", json!({})).await;
    for number in 0..3 {
        let holder = format!("cluster.compute.example.com/7f7a15ab-f1cc-4f3b-b1c0-{number:012}");
        place(&identity.api, &format!("projects/default/a/references/{holder}")).await;
    }
    let key = ObjectKey {
        resource: (&OF_MODELS).into(),
        namespace: "default",
        name: "a",
    };
    let nobody = Peers::default().at("compute.example.com", IDENTITY.address);
    let operations = identity.operations().with_peers(nobody);
    let tree = operations.holders(&Caller::default(), &key, Bounds::default()).await;
    let tree = tree.expect("it is there");
    let notes: Vec<&String> = tree.holders.iter().flat_map(|holder| &holder.notes).collect();
    let again = "the service compute.example.com was not asked again";
    let unasked = notes.iter().filter(|note| note.contains(again)).count();
    assert_eq!((notes.len(), unasked), (3, 2), "{notes:?}");
    assert!(!tree.is_whole());
    identity.end().await;
}

/// Otherwise a dry run of a collection waits for the service of holders once more for every eighth object.
#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_is_silent_is_not_asked_again_for_the_other_objects_of_a_collection() {
    let identity = Stage::of_kinds(IDENTITY_KINDS).await;
    for number in 0..12 {
        let project = format!("p{number:02}");
        create_project(&identity, &project, json!({})).await;
        let holder = format!("cluster.compute.example.com/7f7a15ab-f1cc-4f3b-b1c0-{number:012}");
        place(
            &identity.api,
            &format!("projects/default/{project}/references/{holder}"),
        )
        .await;
    }
    let nobody = Peers::default().at("compute.example.com", IDENTITY.address);
    let warnings = tried(&identity, nobody, PROJECTS).await;
    let count = |text: &str| warnings.iter().filter(|warning| warning.contains(text)).count();
    assert_eq!(count("the service compute.example.com "), 12, "{warnings:?}");
    // Eight are looked up at once, each of which may be asked about before one of them meets the silence.
    let unasked = count("the service compute.example.com was not asked again");
    assert!((4..12).contains(&unasked), "{warnings:?}");
    identity.end().await;
}

/// The service of `m` says that a cluster holds it; nobody here knows where clusters are.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_known_below_a_holder_of_another_service_is_noted() {
    let both = Both::start().await;
    let unknown = "cluster.compute.example.com/7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce";
    place(&both.region.api, &format!("models/default/m/references/{unknown}")).await;
    let tree = both.tree().await;
    assert!(!tree.is_whole());
    let lines = tree.forecast();
    let note = format!("{unknown}: no address of a service with the group compute.example.com is known");
    assert!(lines.contains(&note), "{lines:?}");
    both.end().await;
}
