//! Random objects of every kind.

use std::fmt::Debug;

use kindex_model::indexed::IndexedObject;
use kindex_model::object::Object;
use kindex_model::projection::extract;
use kindex_model::wire::{Root, decode, encode_root};
use prost::Message;
use prost_reflect::DescriptorPool;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use super::{oracle, random};

const OBJECTS_PER_KIND: u64 = 60;

/// What generated types have in common.
trait Typed: Message + Default + Debug + Clone + PartialEq + Serialize + DeserializeOwned {}
impl<M: Message + Default + Debug + Clone + PartialEq + Serialize + DeserializeOwned> Typed for M {}

macro_rules! kinds {
    ($($module:ident: $kind:ident, $spec:ident, $status:ident;)*) => {$(
        #[test]
        fn $module() {
            use kindex_generated::types::$module::{$kind, $spec, $status};
            let message = concat!("michelangelo.api.v2.", stringify!($kind));
            check::<$kind, $spec, $status>(&oracle::SHIPPED, message);
        }
    )*};
}

kinds! {
    project: Project, ProjectSpec, ProjectStatus;
    model_family: ModelFamily, ModelFamilySpec, ModelFamilyStatus;
    model: Model, ModelSpec, ModelStatus;
    pipeline: Pipeline, PipelineSpec, PipelineStatus;
    pipeline_run: PipelineRun, PipelineRunSpec, PipelineRunStatus;
    inference_server: InferenceServer, InferenceServerSpec, InferenceServerStatus;
    revision: Revision, RevisionSpec, RevisionStatus;
    cluster: Cluster, ClusterSpec, ClusterStatus;
    ray_cluster: RayCluster, RayClusterSpec, RayClusterStatus;
    ray_job: RayJob, RayJobSpec, RayJobStatus;
    trigger_run: TriggerRun, TriggerRunSpec, TriggerRunStatus;
    deployment: Deployment, DeploymentSpec, DeploymentStatus;
    spark_job: SparkJob, SparkJobSpec, SparkJobStatus;
}

#[test]
fn every_shape_of_field() {
    use kindex_tests::types::trap::{Trap, TrapSpec, TrapStatus};
    check::<Trap, TrapSpec, TrapStatus>(&oracle::TRAPS, "traps.v1.Trap");
}

fn check<K, S, T>(pool: &DescriptorPool, message: &str)
where
    K: IndexedObject + Serialize + DeserializeOwned,
    S: Typed,
    T: Typed,
{
    let root = pool.get_message_by_name(message).expect("a root message");
    for seed in 0..OBJECTS_PER_KIND {
        let json = random::object(&root, seed);
        let text = json.to_string();
        let about = |what: &str| format!("{message}, seed {seed}: {what}\n{text}");

        let decoded = decode::<Root<S, T>>(&text);
        assert_eq!(decoded.problems, [], "{}", about("reading"));
        let typed = decoded.value.expect("no problem, hence a value");

        let written = serde_json::to_value(&typed).expect("everything has a JSON form");
        assert_eq!(written, json, "{}", about("JSON came back otherwise"));

        let bytes = encode_root::<S, T>(&text).proto.expect("it fits");
        assert_eq!(bytes, typed.encode_to_vec(), "{}", about("two encodings"));
        let reflected = oracle::decode(root.clone(), &bytes);
        assert!(
            oracle::same(&reflected, &json),
            "{}\nprost-reflect reads\n{reflected}",
            about("the bytes say something else"),
        );

        let merged = Root::<S, T>::decode(bytes.as_slice()).expect("our own bytes");
        assert!(same_typed(&merged, &typed), "{}", about("bytes came back otherwise"));

        check_root_type::<K>(&json, &about("as a typed client sees it"));
    }
}

/// Free JSON does not tell `1` from `1.0` once it was on the wire.
fn same_typed<M: Serialize>(left: &M, right: &M) -> bool {
    let json = |message: &M| serde_json::to_value(message).expect("everything has a JSON form");
    oracle::same(&json(left), &json(right))
}

/// The kube type of the kind reads the same spec and status, and the same columns as the ingester.
fn check_root_type<K>(json: &Json, about: &str)
where
    K: IndexedObject + Serialize + DeserializeOwned,
{
    let object: K = serde_json::from_value(json.clone()).expect(about);
    let written = serde_json::to_value(&object).expect("everything has a JSON form");
    for part in ["spec", "status"] {
        assert_eq!(written[part], json[part], "{part} {about}");
    }
    let mut problems = Vec::new();
    let stored = Object::parse_str(&json.to_string()).expect("it has an identity");
    let extracted = extract(K::COLUMNS, &stored, &mut problems);
    let pairs = object.get_indexed_key_value_pairs();
    let names: Vec<&str> = pairs.iter().map(|pair| pair.key).collect();
    let columns: Vec<&str> = K::COLUMNS.iter().map(|column| column.name).collect();
    assert_eq!(names, columns, "{about}");
    for (pair, extracted) in pairs.iter().zip(&extracted) {
        assert_eq!(pair.value, *extracted, "column {} {about}", pair.key);
    }
}
