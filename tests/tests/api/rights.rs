//! The callers' own rights: with live and with archived objects alike, and nothing is told to who has none.

use std::sync::atomic::Ordering;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use kindex_harness::wait::eventually;
use kindex_query::Life;
use kindex_serve::listen::FrontProxy;
use kube::client::Body;
use kube::{Client, Config};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};

use super::auth_proxy::ROBOT;
use super::stage::{CERTIFICATE, FINAL, KEY, MODELS, Stage, manifest, model, names, send_with};

/// One request with a token, and more headers.
async fn ask_as(
    stage: &Stage,
    user: &str,
    method: &str,
    path: &str,
    body: &Value,
    more: &[(&str, &str)],
) -> (u16, Value) {
    let token = format!("Bearer {user}-token");
    let media = if method == "PATCH" {
        "application/merge-patch+json"
    } else {
        "application/json"
    };
    let mut headers = vec![("authorization", token.as_str()), ("content-type", media)];
    headers.extend_from_slice(more);
    let text = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    send_with(&stage.api, method, path, &headers, text).await
}

async fn create(stage: &Stage, user: &str, namespace: &str, name: &str, annotations: Value) {
    let path = MODELS.replace("default", namespace);
    let body = manifest(
        json!({"name": name, "annotations": annotations}),
        json!({"algorithm": "one"}),
    );
    let (code, answer) = ask_as(stage, user, "POST", &path, &body, &[]).await;
    assert_eq!(code, 201, "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_anonymous_caller_learns_nothing() {
    let stage = Stage::with_rights().await;
    for headers in [
        &[][..],
        &[("authorization", "Bearer nonsense")],
        &[("authorization", "Basic cm9vdDo=")],
    ] {
        for path in [
            MODELS.to_owned(),
            model("a"),
            format!("{MODELS}?watch=true"),
            format!("{MODELS}?at=2026-01-01T00:00:00Z"),
        ] {
            let (code, refused) = send_with(&stage.api, "GET", &path, headers, String::new()).await;
            assert_eq!((code, &refused["message"]), (401, &json!("Unauthorized")), "{path}");
        }
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_without_rights_is_not_there() {
    let stage = Stage::with_rights().await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}});
    let (code, answer) = ask_as(&stage, "root", "POST", "/api/v1/namespaces", &namespace, &[]).await;
    assert_eq!(code, 201, "{answer}");
    create(&stage, "jane", "default", "mine", json!({FINAL: "true"})).await;
    create(&stage, "root", "other", "theirs", json!({FINAL: "true"})).await;
    stage.wait_until_archived("mine").await;
    let other = MODELS.replace("default", "other");
    let (code, _) = ask_as(&stage, "root", "GET", &format!("{other}/theirs"), &Value::Null, &[]).await;
    assert_eq!(code, 200);

    let body = manifest(json!({"name": "theirs"}), json!({}));
    for (method, path, body) in [
        ("GET", format!("{other}/theirs"), &Value::Null),
        ("GET", format!("{other}/theirs?includeDeleted=true"), &Value::Null),
        ("GET", format!("{other}/theirs?at=2126-01-01T00:00:00Z"), &Value::Null),
        ("GET", format!("{other}/no-such"), &Value::Null),
        ("GET", other.clone(), &Value::Null),
        ("GET", format!("{other}?at=2126-01-01T00:00:00Z"), &Value::Null),
        ("GET", format!("{other}?watch=true"), &Value::Null),
        ("GET", "/apis/michelangelo.api/v2/models".to_owned(), &Value::Null),
        (
            "GET",
            "/apis/michelangelo.api/v2/models?watch=true".to_owned(),
            &Value::Null,
        ),
        ("GET", format!("{other}?continue=e30"), &Value::Null),
        ("POST", other.clone(), &body),
        ("PUT", format!("{other}/theirs"), &body),
        (
            "PATCH",
            format!("{other}/theirs"),
            &json!({"spec": {"algorithm": "two"}}),
        ),
        ("DELETE", format!("{other}/theirs"), &Value::Null),
        ("DELETE", other.clone(), &Value::Null),
        // In her own namespace she may not do this.
        ("PATCH", model("mine"), &json!({"spec": {"algorithm": "two"}})),
        ("DELETE", MODELS.to_owned(), &Value::Null),
    ] {
        let (code, refused) = ask_as(&stage, "jane", method, &path, body, &[]).await;
        assert_eq!(
            (code, &refused["reason"]),
            (403, &json!("Forbidden")),
            "{method} {path}: {refused}"
        );
        let message = refused["message"].as_str().unwrap_or_default();
        assert!(message.contains("User \"jane\" cannot"), "{message}");
    }
    let (code, mine) = ask_as(&stage, "jane", "GET", &model("mine"), &Value::Null, &[]).await;
    assert_eq!((code, &mine["spec"]["algorithm"]), (200, &json!("one")), "{mine}");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_right_to_delete_is_enough_to_delete() {
    let stage = Stage::with_rights().await;
    create(&stage, "jane", "default", "live", json!({})).await;
    create(&stage, "jane", "default", "gone", json!({FINAL: "true"})).await;
    stage.wait_until_archived("gone").await;
    for name in ["live", "gone"] {
        let (code, answer) = ask_as(&stage, "jane", "DELETE", &model(name), &Value::Null, &[]).await;
        assert_eq!(code, 200, "{answer}");
    }
    stage.wait_until_deleted("live").await;
    assert_eq!(stage.life("gone").await, Some(Life::Deleted));
    let passed = stage.ground.proxy.passed.lock().unwrap().clone();
    assert!(
        passed.iter().all(|request| request.starts_with("jane create")),
        "{passed:?}"
    );
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_clusters_word_counts_for_a_while() {
    let stage = Stage::with_rights().await;
    let reviews = async |user: &str, path: &str| {
        let before = stage.ground.proxy.reviews.load(Ordering::SeqCst);
        ask_as(&stage, user, "GET", path, &Value::Null, &[]).await;
        stage.ground.proxy.reviews.load(Ordering::SeqCst) - before
    };
    assert_eq!(reviews("jane", MODELS).await, 2, "the token and the right");
    assert_eq!(reviews("jane", MODELS).await, 0);
    assert_eq!(reviews("jane", &model("a")).await, 1, "another right");
    assert_eq!(reviews("root", MODELS).await, 2, "another token");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_a_browser_get_nothing_of_a_server_without_credentials() {
    let stage = Stage::on_sqlite().await;
    for (name, value, expected) in [
        ("host", "127.0.0.1:6482", 200),
        ("host", "localhost", 200),
        ("host", "[::1]:80", 200),
        ("host", "evil.example.com", 403),
        ("host", "127.0.0.1.evil.example.com:80", 403),
        ("origin", "http://evil.example.com", 403),
    ] {
        let (code, answer) = send_with(&stage.api, "GET", MODELS, &[(name, value)], String::new()).await;
        assert_eq!(code, expected, "{name}: {value}: {answer}");
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_act_as_another_has_the_others_rights() {
    let stage = Stage::with_rights().await;
    let other = MODELS.replace("default", "other");
    let as_user = |user: &'static str| [("impersonate-user", user), ("impersonate-group", "people")];
    let (code, _) = ask_as(&stage, "root", "GET", MODELS, &Value::Null, &as_user("jane")).await;
    assert_eq!(code, 200);
    let (code, refused) = ask_as(&stage, "root", "GET", &other, &Value::Null, &as_user("jane")).await;
    assert_eq!(code, 403, "{refused}");
    let (code, refused) = ask_as(&stage, "jane", "GET", MODELS, &Value::Null, &as_user("root")).await;
    assert_eq!(code, 403, "{refused}");
    assert!(
        refused["message"].as_str().unwrap().contains("cannot impersonate"),
        "{refused}"
    );
    for more in [
        &[("impersonate-user", "jane"), ("impersonate-extra-scopes", "all")][..],
        &[("impersonate-user", "jane"), ("impersonate-uid", "7")],
        &[("impersonate-group", "people")],
    ] {
        let (code, refused) = ask_as(&stage, "root", "GET", MODELS, &Value::Null, more).await;
        let message = refused["message"].as_str().unwrap_or_default();
        assert!(
            code == 403 && message.contains("cannot impersonate"),
            "{more:?}: {refused}"
        );
    }
    stage.end().await;

    let stage = Stage::on_sqlite().await;
    let (code, refused) = ask_as(&stage, "root", "GET", MODELS, &Value::Null, &as_user("jane")).await;
    assert_eq!(code, 403, "a server with its own rights acts as nobody else: {refused}");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_act_as_a_user_may_not_for_that_take_a_group() {
    let stage = Stage::with_rights().await;
    let (user, group) = (("impersonate-user", "jane"), ("impersonate-group", "people"));
    let robot = ("impersonate-user", "system:serviceaccount:default:jane");
    for (headers, expected) in [
        (&[user][..], 200),
        (&[user, group], 403),
        (&[user, ("impersonate-group", "system:masters")], 403),
        (&[user, ("impersonate-group", "system:authenticated")], 403),
        (&[("impersonate-user", "root")], 403),
        (&[robot], 403),
        (&[group], 403),
    ] {
        let (code, answer) = ask_as(&stage, "deputy", "GET", MODELS, &Value::Null, headers).await;
        assert_eq!(code, expected, "{headers:?}: {answer}");
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_act_as_a_service_account_may_as_that_one_alone() {
    let stage = Stage::with_rights().await;
    for (user, expected) in [
        (ROBOT, 200),
        ("system:serviceaccount:other:robot", 403),
        ("system:serviceaccount:default:crane", 403),
        ("robot", 403),
    ] {
        let headers = [("impersonate-user", user)];
        let (code, answer) = ask_as(&stage, "warden", "GET", MODELS, &Value::Null, &headers).await;
        assert_eq!(code, expected, "{user}: {answer}");
    }
    stage.end().await;
}

/// What somebody wants to do, as the cluster is asked.
fn attributes(verb: &str, [group, version, resource]: [&str; 3], namespace: &str, name: &str) -> Value {
    json!({"verb": verb, "group": group, "version": version, "resource": resource, "subresource": "",
        "namespace": namespace, "name": name})
}

/// What the cluster is asked of somebody.
fn review(user: &str, groups: &[&str], attributes: Value) -> Value {
    json!({"user": user, "uid": "", "groups": groups, "resourceAttributes": attributes})
}

/// What it was asked since the last look.
fn reviewed(stage: &Stage) -> Vec<Value> {
    std::mem::take(&mut *stage.ground.proxy.reviewed.lock().unwrap())
}

const OF_MODELS: [&str; 3] = ["michelangelo.api", "v2", "models"];

#[tokio::test(flavor = "multi_thread")]
async fn the_cluster_is_asked_with_all_that_is_known_of_the_deed() {
    let stage = Stage::with_rights().await;
    let status = format!("{}/status", model("a"));
    let mut of_status = attributes("patch", OF_MODELS, "default", "a");
    of_status["subresource"] = "status".into();
    for (method, path, body, expected) in [
        (
            "GET",
            model("a"),
            Value::Null,
            attributes("get", OF_MODELS, "default", "a"),
        ),
        ("PATCH", status, json!({}), of_status),
        (
            "GET",
            "/apis/michelangelo.api/v2/models".to_owned(),
            Value::Null,
            attributes("list", OF_MODELS, "", ""),
        ),
        (
            "GET",
            "/apis/michelangelo.api/v2/models?watch=true&timeoutSeconds=1&resourceVersion=1".to_owned(),
            Value::Null,
            attributes("watch", OF_MODELS, "", ""),
        ),
        (
            "DELETE",
            format!("{MODELS}?labelSelector=a%3Db"),
            Value::Null,
            attributes("deletecollection", OF_MODELS, "default", ""),
        ),
    ] {
        ask_as(&stage, "root", method, &path, &body, &[]).await;
        assert_eq!(
            reviewed(&stage),
            [review("root", &["people"], expected)],
            "{method} {path}"
        );
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cluster_is_asked_with_all_that_is_known_of_the_caller() {
    let stage = Stage::with_rights().await;
    let list = || attributes("list", OF_MODELS, "default", "");
    // The groups of a service account follow from its name, and all who are somebody are authenticated.
    let robot = [("impersonate-user", ROBOT)];
    ask_as(&stage, "warden", "GET", MODELS, &Value::Null, &robot).await;
    let groups = [
        "system:serviceaccounts",
        "system:serviceaccounts:default",
        "system:authenticated",
    ];
    let accounts = ["", "v1", "serviceaccounts"];
    let impersonate = attributes("impersonate", accounts, "default", "robot");
    assert_eq!(
        reviewed(&stage),
        [
            review("warden", &["people"], impersonate),
            review(ROBOT, &groups, list())
        ]
    );
    // What is allowed to a user with a group is another question than without it.
    let jane = [("impersonate-user", "jane"), ("impersonate-group", "people")];
    for (headers, groups) in [
        (&jane[..], &["people", "system:authenticated"][..]),
        (&jane[..1], &["system:authenticated"]),
    ] {
        ask_as(&stage, "root", "GET", MODELS, &Value::Null, headers).await;
        assert_eq!(reviewed(&stage).last(), Some(&review("jane", groups, list())));
    }

    let headers = [
        ("x-remote-user", "jane"),
        ("x-remote-uid", "7"),
        ("x-remote-group", "risk"),
        ("x-remote-extra-scopes", "one"),
    ];
    let aggregated = MODELS.replace("/apis/", "/apis/archive.");
    send_with(
        &secure(&stage, Some(FIRST)),
        "GET",
        &aggregated,
        &headers,
        String::new(),
    )
    .await;
    let mut expected = review("jane", &["risk"], list());
    expected["uid"] = "7".into();
    expected["extra"] = json!({"scopes": ["one"]});
    assert_eq!(reviewed(&stage), [expected]);
    stage.end().await;
}

/// A client over TLS that shows this certificate, or none.
pub(super) fn secure(stage: &Stage, shown: Option<[&str; 2]>) -> Client {
    let mut config = Config::new(format!("https://{}", stage.secure).parse().unwrap());
    let root = CertificateDer::from_pem_slice(CERTIFICATE.as_bytes()).unwrap();
    config.root_cert = Some(vec![root.to_vec()]);
    config.default_retry = false;
    if let Some([certificate, key]) = shown {
        config.auth_info.client_certificate_data = Some(BASE64_STANDARD.encode(certificate));
        config.auth_info.client_key_data = Some(BASE64_STANDARD.encode(key).into());
    }
    Client::try_from(config).unwrap()
}

/// Those of the front proxy, and of the one that follows it.
pub(super) const FIRST: [&str; 2] = [CERTIFICATE, KEY];
const SECOND: [&str; 2] = [include_str!("tls/second.crt"), include_str!("tls/second.key")];

#[tokio::test(flavor = "multi_thread")]
async fn another_front_proxy_is_believed_without_a_restart_and_the_former_no_longer() {
    let stage = Stage::with_rights().await;
    create(&stage, "root", "default", "a", json!({})).await;
    let aggregated = MODELS.replace("/apis/", "/apis/archive.");
    // 0 where there is no connection.
    let code = async |client: &Client| {
        let request = http::Request::get(&aggregated).header("x-remote-user", "jane");
        let sent = client.send(request.body(Body::empty()).unwrap()).await;
        sent.map_or(0, |response| response.status().as_u16())
    };
    let proxy = secure(&stage, Some(FIRST));
    assert_eq!(code(&proxy).await, 200);
    assert_ne!(code(&secure(&stage, Some(SECOND))).await, 200);
    let next = FrontProxy::new(SECOND[0], vec!["kindex second".to_owned()]).unwrap();
    stage.tls.take_front_proxy(next).unwrap();
    assert_eq!(code(&secure(&stage, Some(SECOND))).await, 200);
    // Over the connection that it had as over a new one.
    eventually("the end of its connection", async || code(&proxy).await != 200).await;
    assert_ne!(code(&secure(&stage, Some(FIRST))).await, 200);
    assert_eq!(code(&secure(&stage, None)).await, 401, "who shows none is somebody");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_that_say_who_asks_count_from_the_front_proxy_alone() {
    let stage = Stage::with_rights().await;
    create(&stage, "root", "default", "a", json!({})).await;
    let aggregated = MODELS.replace("/apis/", "/apis/archive.");
    let get = async |client: &Client, path: &str, user: &str| {
        let headers = [("x-remote-user", user), ("x-remote-group", "system:authenticated")];
        send_with(client, "GET", path, &headers, String::new()).await
    };
    let (proxy, stranger) = (secure(&stage, Some(FIRST)), secure(&stage, None));
    let (code, list) = get(&proxy, &aggregated, "jane").await;
    assert_eq!((code, names(&list)), (200, vec!["a"]), "{list}");
    let (code, refused) = get(&proxy, &aggregated, "nobody").await;
    assert_eq!(code, 403, "{refused}");
    for path in [MODELS, "/api/v1/namespaces/default/secrets"] {
        let (code, refused) = get(&proxy, path, "root").await;
        assert_eq!(code, 404, "what is not aggregated is not passed on: {refused}");
    }
    for path in [MODELS, &aggregated] {
        let (code, refused) = get(&stranger, path, "root").await;
        assert_eq!(code, 401, "{refused}");
    }
    stage.end().await;
}
