//! The certificate that Kindex makes for its conversion webhook, on a kube-apiserver that asks the webhook.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kindex_harness::controlplane::ControlPlane;
use kindex_harness::wait::eventually;
use kindex_migrator::certificate::{Address, CertificateRotator, SecretName};
use kindex_model::kind::{Kind, Platform, Registry};
use kindex_tests::trials::{KIND, PLATFORM};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::cluster::definitions;

const GROUP: &str = "certified.dev";
const DEFINITION: &str = "trials.certified.dev";
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Longer than any test.
const NEVER: Duration = Duration::from_secs(86_400);

/// A definition of its own: other tests on this server ask another webhook.
static CERTIFIED: Kind = Kind { group: GROUP, ..KIND };

const REGISTRY: Registry = Registry {
    platform: Platform {
        group: GROUP,
        version: "v2",
        ..PLATFORM
    },
    kinds: &[&CERTIFIED],
    ..Registry::EMPTY
};

async fn client(plane: &ControlPlane) -> Client {
    let kubeconfig = Kubeconfig::read_from(plane.kubeconfig()).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    Client::try_from(config.expect("a configuration")).expect("a client")
}

fn name(name: &str) -> SecretName {
    SecretName {
        namespace: "default".to_owned(),
        name: name.to_owned(),
    }
}

fn trials(client: &Client, version: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk(GROUP, version, KIND.name);
    Api::default_namespaced_with(client.clone(), &ApiResource::from_gvk_with_plural(&kind, KIND.plural))
}

fn secrets(client: &Client) -> Api<Secret> {
    Api::default_namespaced(client.clone())
}

/// Installs the definition as it is emitted: its webhook is a Service that is not there, and it lists no authority.
async fn install(client: &Client) {
    let mut manifest: Value = serde_saphyr::from_str(KIND.manifest).expect("YAML");
    manifest["metadata"]["name"] = DEFINITION.into();
    manifest["spec"]["group"] = GROUP.into();
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &definitions());
    let patch = Patch::Apply(&manifest);
    api.patch(DEFINITION, &PatchParams::apply("tests").force(), &patch)
        .await
        .expect("applied");
    eventually("trials are served", async || {
        trials(client, "v2").list(&ListParams::default()).await.is_ok()
    })
    .await;
}

async fn authorities(client: &Client) -> String {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &definitions());
    let found = api.get(DEFINITION).await.expect("the definition");
    let config = &found.data["spec"]["conversion"]["webhook"]["clientConfig"];
    assert_eq!(config.get("service"), None, "{config}");
    config["caBundle"].as_str().unwrap_or_default().to_owned()
}

/// Replicas of a webhook behind one address, each of which keeps the certificate.
struct Webhook {
    address: Address,
    _stop: DropGuard,
}

impl Webhook {
    async fn start(client: &Client, secret: &str, every: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("https://{}/convert", listener.local_addr().expect("an address"));
        let address = Address::Url(url.parse().expect("a URL"));
        let rotator = || {
            CertificateRotator::new(
                client.clone(),
                name(secret),
                address.clone(),
                vec![DEFINITION.to_owned()],
            )
        };
        let (one, other) = (rotator(), rotator());
        let (tls, others) = tokio::join!(one.tls(), other.tls());
        let (tls, others) = (tls.expect("a certificate"), others.expect("the same one"));
        let stop = CancellationToken::new();
        tokio::spawn(one.follow(tls.clone(), every, stop.clone()));
        tokio::spawn(other.follow(others, every, stop.clone()));
        tokio::spawn(kindex_migrator::serve(listener, Some(tls), REGISTRY, stop.clone()));
        Self {
            address,
            _stop: stop.drop_guard(),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kube_apiserver_believes_the_certificate_that_kindex_makes() {
    let Some(plane) = ControlPlane::shared() else {
        return;
    };
    let client = client(plane).await;
    install(&client).await;
    let webhook = Webhook::start(&client, "webhook", LOOK_EVERY).await;

    let old = json!({"apiVersion": "certified.dev/v1", "kind": "Trial", "metadata": {"name": "old"},
                     "spec": {"method": "xgboost", "hours": 2}});
    let old: DynamicObject = serde_json::from_value(old).expect("an object");
    eventually("a trial is converted and stored", async || {
        let created = trials(&client, "v1").create(&PostParams::default(), &old).await;
        created.is_ok()
    })
    .await;
    let stored = trials(&client, "v2").get("old").await.expect("in the other version");
    assert_eq!(stored.data["spec"]["algorithm"], "xgboost");

    let first = authorities(&client).await;
    let secret = secrets(&client).get("webhook").await.expect("the Secret");
    assert_eq!(secret.type_.as_deref(), Some("kubernetes.io/tls"));
    assert_eq!(json!(secret.data.expect("data")["ca.crt"]), first);

    secrets(&client)
        .delete("webhook", &DeleteParams::default())
        .await
        .expect("deleted");
    eventually("another authority is listed", async || {
        authorities(&client).await != first
    })
    .await;
    eventually("conversions go on with it", async || {
        trials(&client, "v1").get("old").await.is_ok()
    })
    .await;
    assert!(matches!(webhook.address, Address::Url(_)));

    drop(webhook);
    let _webhook = Webhook::start(&client, "webhook", NEVER).await;
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &definitions());
    api.delete(DEFINITION, &DeleteParams::default()).await.expect("deleted");
    eventually("the definition is gone", async || {
        api.get_opt(DEFINITION).await.expect("an answer").is_none()
    })
    .await;
    install(&client).await;
    eventually("a definition that is created again asks the webhook", async || {
        let found = api.get(DEFINITION).await.expect("the definition");
        let config = &found.data["spec"]["conversion"]["webhook"]["clientConfig"];
        config.get("url").is_some() && config.get("caBundle").is_some()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_of_others_is_left_alone() {
    let Some(plane) = ControlPlane::shared() else {
        return;
    };
    let client = client(plane).await;
    let foreign = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "foreign"},
                         "stringData": {"tls.crt": "theirs"}});
    let foreign: Secret = serde_json::from_value(foreign).expect("a Secret");
    let created = secrets(&client).create(&PostParams::default(), &foreign).await;
    let created = created.expect("created");
    let address = Address::Url("https://127.0.0.1:1/convert".parse().expect("a URL"));
    let rotator = CertificateRotator::new(client.clone(), name("foreign"), address, Vec::new());
    let error = rotator.tls().await.err().expect("refused").to_string();
    assert!(error.contains("default/foreign") && error.contains("ca.key"), "{error}");
    let after = secrets(&client).get("foreign").await.expect("still there");
    assert_eq!(after.metadata.resource_version, created.metadata.resource_version);
}
