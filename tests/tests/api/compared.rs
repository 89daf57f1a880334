//! References as `kindex verify` compares them: from and on objects that no cluster has, and on those of other
//! services.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kindex_generated::kinds::model;
use kindex_kube_client::kube_cluster::KubeCluster;
use kindex_maintenance::references::{
    Difference, ListedPage, PeerApi, PeerFailure, ReferencedObject, ReferencedState, Report, verify,
};
use kindex_maintenance::retries::RetryBudget;
use kindex_maintenance::sides::Sides;
use kindex_model::kind::Kind;
use kindex_model::reference::{Named, OnDelete, Reference, Service, Target};
use kindex_model::reference_name::ReferenceName;
use kindex_store::progress::NoProgress;
use serde_json::{Value, json};

use super::stage::{MODELS, Stage, manifest, send};

const PROJECTS: &str = "/apis/michelangelo.api/v2/namespaces/default/projects";
const NOBODY: &str = "model.michelangelo.api/00000000-f1cc-4f3b-b1c0-232ae8d852ce";

static REGION: Service = Service {
    name: "region",
    group: "region.example.com",
    cluster_scoped: &[],
    plurals: &[],
    refers_to: &[],
    address: "http://127.0.0.1:1",
    ca_file: None,
    token_file: None,
};
const NETWORK: Reference = Reference {
    name: "network",
    targets: &[Target {
        service: Some(&REGION),
        group: "region.example.com",
        kind: "Network",
    }],
    kind_column: None,
    path: &["spec", "source"],
    named: Named::Name,
    columns: &[],
    owned: false,
    on_delete: OnDelete::Block,
};
/// Models that name networks of another service.
static HOLDERS: Kind = Kind {
    references: &[NETWORK],
    ..model::KIND
};
static KINDS: &[&Kind] = &[&HOLDERS];

/// An object of another service that it shows to nobody.
const REFUSED: &str = "refused";

/// What another service says of each of its other objects, and how often it was asked.
struct Says(Result<Option<ReferencedState>, PeerFailure>, AtomicUsize);

impl Says {
    fn of(said: Result<Option<ReferencedState>, PeerFailure>) -> Self {
        Self(said, AtomicUsize::new(0))
    }
}

impl PeerApi for Says {
    async fn look(&self, at: &ReferencedObject) -> Result<Option<ReferencedState>, PeerFailure> {
        self.1.fetch_add(1, Ordering::SeqCst);
        match at.name.as_str() {
            REFUSED => Err(PeerFailure {
                why: "nobody may read it".to_owned(),
                is_silent: false,
            }),
            _ => self.0.clone(),
        }
    }

    async fn list(&self, _: &'static str, _: &'static str, _: Option<&str>) -> Result<ListedPage, PeerFailure> {
        Ok(ListedPage::default())
    }
}

async fn verified(stage: &Stage, others: &Says) -> Report {
    let registry = stage.ground.registry();
    let sides = Sides {
        platform: registry.platform,
        cluster: Arc::new(KubeCluster::new(stage.ground.config()).unwrap()),
        storage: stage.store.clone(),
    };
    let settle = Duration::from_millis(200);
    let report = verify(&sides, &registry, others, settle, RetryBudget::default(), &NoProgress).await;
    report.unwrap()
}

fn found(report: &Report) -> Vec<String> {
    let shown = |one: &Difference| format!("{} {}: {}", one.kind, one.name, one.class);
    report.differences.iter().map(shown).collect()
}

fn reference(kind: &str, object: &Value) -> String {
    let uid = object["metadata"]["uid"].as_str().unwrap();
    format!("{kind}.michelangelo.api/{uid}")
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_that_no_cluster_has_are_known_as_holders_and_as_held() {
    let stage = Stage::with_sql_only_projects().await;
    let project = async |name: &str| {
        let body = json!({"apiVersion": "michelangelo.api/v2", "kind": "Project", "metadata": {"name": name}});
        let (code, created) = send(&stage.api, "POST", PROJECTS, &body).await;
        assert_eq!(code, 201, "{created}");
        reference("project", &created)
    };
    let place = async |object: &str, reference: &str| {
        let path = format!("/api/v1/{object}/references/{reference}");
        let (code, answer) = send(&stage.api, "PUT", &path, &Value::Null).await;
        assert_eq!(code, 200, "{answer}");
    };
    let model = reference("model", &stage.create("m", json!({}), json!({})).await);
    let (a, b) = (project("a").await, project("b").await);
    place("models/default/m", &a).await;
    place("projects/default/a", &model).await;
    let nobody = Says::of(Ok(None));
    let report = verified(&stage, &nobody).await;
    assert!(report.differences.is_empty(), "{report:?}");
    assert_eq!((report.objects, report.references), (3, 2));

    place("models/default/m", &b).await;
    place("projects/default/a", NOBODY).await;
    let (code, answer) = send(&stage.api, "DELETE", &format!("{PROJECTS}/b"), &Value::Null).await;
    assert_eq!(code, 200, "{answer}");
    let report = verified(&stage, &nobody).await;
    assert_eq!(
        found(&report),
        ["Model m: holder-missing", "Project a: holder-missing"],
        "{report:?}"
    );
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reference_that_an_object_of_another_service_lacks_is_a_difference() {
    let stage = Stage::of_kinds(KINDS).await;
    let metadata = json!({"name": "m", "finalizers": ["michelangelo.api/deletion"]});
    let body = manifest(metadata, json!({"source": "blue"}));
    let (code, created) = send(&stage.cluster, "POST", MODELS, &body).await;
    assert_eq!(code, 201, "{created}");
    let held: ReferenceName = reference("model", &created).parse().unwrap();
    let with_references = |references: BTreeSet<ReferenceName>, leaving: bool| {
        Says::of(Ok(Some(ReferencedState {
            uid: "n".to_owned(),
            leaving,
            references,
        })))
    };
    let report = verified(&stage, &with_references(BTreeSet::new(), false)).await;
    assert_eq!(found(&report), ["Network blue: reference-missing"], "{report:?}");
    for others in [
        with_references(BTreeSet::from([held]), false),
        with_references(BTreeSet::new(), true),
    ] {
        let report = verified(&stage, &others).await;
        assert!(report.differences.is_empty(), "{report:?}");
    }
    let report = verified(&stage, &Says::of(Ok(None))).await;
    assert_eq!(found(&report), ["Model m: dangling"], "{report:?}");
    let why = "the region does not answer";
    let silent = Says::of(Err(PeerFailure {
        why: why.to_owned(),
        is_silent: true,
    }));
    let report = verified(&stage, &silent).await;
    assert!(report.differences.is_empty(), "{report:?}");
    assert_eq!(report.unanswered, [why]);
    // Both sides are read more than once then.
    let path = format!("/api/v1/models/default/m/references/{NOBODY}");
    let (code, answer) = send(&stage.api, "PUT", &path, &Value::Null).await;
    assert_eq!(code, 200, "{answer}");
    let report = verified(&stage, &silent).await;
    assert_eq!(found(&report), ["Model m: holder-missing"], "{report:?}");
    assert_eq!(report.unanswered, [why]);
    assert_eq!(silent.1.load(Ordering::SeqCst), 6, "three times in each run");
    stage.end().await;
}

/// As if one object that nobody may read hid what is found of the others.
#[tokio::test(flavor = "multi_thread")]
async fn what_another_service_refuses_to_show_hides_nothing_of_its_other_objects() {
    let stage = Stage::of_kinds(KINDS).await;
    for (name, network) in [("m", "blue"), ("n", REFUSED)] {
        let metadata = json!({"name": name, "finalizers": ["michelangelo.api/deletion"]});
        let body = manifest(metadata, json!({"source": network}));
        let (code, created) = send(&stage.cluster, "POST", MODELS, &body).await;
        assert_eq!(code, 201, "{created}");
    }
    let report = verified(&stage, &Says::of(Ok(None))).await;
    assert_eq!(found(&report), ["Model m: dangling"], "{report:?}");
    assert_eq!(report.unanswered, ["nobody may read it"]);
    stage.end().await;
}
