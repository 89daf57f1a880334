//! A move to an object of another service over TLS, with the certificates and the token of the files that crds.toml
//! names. Nobody else tries these files against a server that looks at them.

use kindex_api::operations::{Caller, Moved, NamedObject, ObjectKey, Operations, Peers, Refusal, RightsOf};
use kindex_generated::kinds::model;
use kindex_model::kind::{Kind, Registry};
use kindex_model::reference::Service;
use serde_json::{Value, json};

use super::moves_across::{HOLDERS, PROJECTS, REGION};
use super::stage::{CERTIFICATE, MODELS, Stage, manifest, send, send_with};

static OF_REGION: &[&Kind] = &[&model::KIND];
static OF_COMPUTE: &[&Kind] = &[&HOLDERS];

/// The certificate of nobody here.
const OTHER: &str = include_str!("tls/second.crt");
/// Who discovers what is there, and reads models.
const READER: &str = "only-get+list@apis+get@";
/// Who may speak for projects as well.
const SPEAKER: &str = "only-get+list@apis+get@+update/references@projects";

/// Models behind TLS, for whoever has rights to them, and a project of another service that names the model `a`.
struct TwoServices {
    region: Stage,
    compute: Stage,
    /// By which the project holds others.
    reference: String,
}

impl TwoServices {
    async fn start() -> Self {
        let region = Stage::proxied(RightsOf::Caller, |registry| registry.kinds = OF_REGION).await;
        for name in ["a", "b"] {
            let model = manifest(json!({"name": name}), json!({}));
            let (code, answer) = send(&region.cluster, "POST", MODELS, &model).await;
            assert_eq!(code, 201, "{answer}");
        }
        let compute = Stage::of_kinds(OF_COMPUTE).await;
        let project = json!({"apiVersion": "michelangelo.api/v2", "kind": "Project", "metadata": {"name": "p"},
            "spec": {"description": "a"}});
        let (code, created) = send(&compute.api, "POST", PROJECTS, &project).await;
        assert_eq!(code, 201, "{created}");
        let uid = created["metadata"]["uid"].as_str().unwrap();
        let reference = format!("project.{}/{uid}", REGION.group);
        Self {
            region,
            compute,
            reference,
        }
    }

    /// An API server of the project, with files of these texts for the region.
    fn operations(&self, certificates: &str, user: &str) -> Operations {
        let directory = tempfile::tempdir_in(self.compute.ground.directory.path())
            .unwrap()
            .keep();
        let file = |name: &str, text: &str| -> &'static str {
            let path = directory.join(name);
            std::fs::write(&path, text).unwrap();
            path.display().to_string().leak()
        };
        let service: &'static Service = Box::leak(Box::new(Service {
            address: format!("https://{}", self.region.secure).leak(),
            ca_file: Some(file("ca.crt", certificates)),
            token_file: Some(file("token", &format!("{user}-token"))),
            ..REGION
        }));
        let peers = Peers::of(&Registry {
            services: vec![service].leak(),
            ..Registry::EMPTY
        });
        self.compute.operations().with_peers(peers)
    }

    async fn try_to_move(&self, certificates: &str, user: &str) -> Result<Moved, Refusal> {
        let operations = self.operations(certificates, user);
        let to = NamedObject::of_peer(&REGION, "Model", "default", "b");
        let holder = ObjectKey {
            resource: (&HOLDERS).into(),
            namespace: "default",
            name: "p",
        };
        operations
            .move_holder(&Caller::default(), &holder, None, &to, false)
            .await
    }

    /// What the project names, and the references on the model that it moves to.
    async fn found(&self) -> (Value, Vec<String>) {
        let (_, project) = send(&self.compute.api, "GET", &format!("{PROJECTS}/p"), &Value::Null).await;
        let path = "/api/v1/models/default/b/references";
        let headers = [("authorization", "Bearer root-token")];
        let (code, answer) = send_with(&self.region.api, "GET", path, &headers, String::new()).await;
        assert_eq!(code, 200, "{answer}");
        let references = answer["references"].as_array().unwrap().iter();
        let references = references.map(|held| held["name"].as_str().unwrap().to_owned());
        (project["spec"]["description"].clone(), references.collect())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_is_asked_over_tls_with_the_files_that_crds_toml_names() {
    let both = TwoServices::start().await;
    let place = format!("the service region at https://{}", both.region.secure);
    for (certificates, user, said, why) in [
        (OTHER, SPEAKER, format!("{place} does not answer: "), "certificate"),
        (
            CERTIFICATE,
            READER,
            format!("{place}: "),
            "cannot update resource \"projects/references\"",
        ),
    ] {
        let refused = both.try_to_move(certificates, user).await.expect_err(why);
        let message = &refused.message;
        assert!(
            refused.code == 503 && message.starts_with(&said) && message.contains(why),
            "{why}: {refused}"
        );
        assert_eq!(both.found().await, (json!("a"), Vec::new()), "nothing was written");
    }
    both.try_to_move(CERTIFICATE, SPEAKER).await.expect("moved");
    assert_eq!(both.found().await, (json!("b"), vec![both.reference.clone()]));
    both.compute.end().await;
    both.region.end().await;
}
