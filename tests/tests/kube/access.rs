//! Whom the embedded cluster answers: programs with its token, and no page of a browser.

use kindex_harness::kubectl;
use serde_json::{Value, json};

use super::cluster::TestCluster;
use super::kubectl::kubectl_is_there;
use super::refusals::send_plain;

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const HERE: &str = "Host: 127.0.0.1\r\n";
const JSON: &str = "Content-Type: application/json\r\n";

async fn code(cluster: &TestCluster, method: &str, path: &str, headers: &str, body: &str) -> (u16, String) {
    let (code, _, answer) = send_plain(cluster, method, path, headers, body).await;
    (code, answer)
}

#[tokio::test]
async fn nothing_but_health_is_answered_without_the_token() {
    let cluster = TestCluster::with_widgets().await;
    let object = json!({"metadata": {"name": "planted"}}).to_string();
    let wrong = "Authorization: Bearer nobodys-token\r\n";
    for (method, path, body) in [
        ("GET", SECRETS, ""),
        ("POST", CONFIG_MAPS, object.as_str()),
        ("DELETE", CONFIG_MAPS, ""),
        ("GET", "/api", ""),
        ("GET", "/version", ""),
        ("GET", "/openapi/v2", ""),
        ("GET", "/apis/example.com/v1/widgets?watch=true", ""),
        ("GET", "/nothing", ""),
    ] {
        for credentials in ["", wrong] {
            let headers = format!("{HERE}{JSON}{credentials}");
            let (code, answer) = code(&cluster, method, path, &headers, body).await;
            assert_eq!(code, 401, "{method} {path}: {answer}");
            let status: Value = serde_json::from_str(&answer).unwrap();
            let as_kubernetes_says_it = json!({"kind": "Status", "apiVersion": "v1", "metadata": {},
                "status": "Failure", "message": "Unauthorized", "reason": "Unauthorized", "code": 401});
            assert_eq!(status, as_kubernetes_says_it);
        }
    }
    for path in ["/healthz", "/livez", "/readyz"] {
        assert_eq!(code(&cluster, "GET", path, HERE, "").await, (200, "ok".to_owned()));
    }
}

#[tokio::test]
async fn a_page_of_a_browser_gets_nothing_even_with_the_token() {
    let cluster = TestCluster::empty().await;
    let token = cluster.server.authorization();
    let object = json!({"metadata": {"name": "planted"}}).to_string();
    let origin = "Origin: https://evil.example.com\r\n";
    for (method, path, headers, body) in [
        ("GET", SECRETS, "Host: rebound.example.com:6480\r\n".to_owned(), ""),
        ("GET", SECRETS, format!("{HERE}{origin}"), ""),
        ("GET", SECRETS, format!("{HERE}Sec-Fetch-Site: same-origin\r\n"), ""),
        ("POST", CONFIG_MAPS, format!("{HERE}{origin}"), object.as_str()),
        ("POST", CONFIG_MAPS, format!("{HERE}{JSON}{origin}"), object.as_str()),
        ("POST", CONFIG_MAPS, HERE.to_owned(), object.as_str()),
        (
            "OPTIONS",
            CONFIG_MAPS,
            format!("{HERE}{origin}Access-Control-Request-Method: PUT\r\n"),
            "",
        ),
    ] {
        for credentials in ["", token.as_str()] {
            let (code, answer) = code(&cluster, method, path, &format!("{headers}{credentials}"), body).await;
            assert_eq!(code, 403, "{method} {headers}: {answer}");
        }
    }
    let (_, list) = code(&cluster, "GET", CONFIG_MAPS, &format!("{HERE}{token}"), "").await;
    assert!(!list.contains("planted"), "{list}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_written_kubeconfig_has_what_kubectl_needs_and_no_other_user_does() {
    if !kubectl_is_there() {
        return;
    }
    let cluster = TestCluster::empty().await;
    let kubeconfig = cluster.path("kubeconfig");
    let request = |more: &[String]| {
        let mut command = kubectl::command(cluster.path(""));
        command.args(["get", "--raw", SECRETS]).args(more);
        command.env("KUBECONFIG", &kubeconfig);
        command.output().unwrap()
    };
    let (with, without) = tokio::task::block_in_place(|| {
        let without = [format!("--server={}", cluster.server.url())];
        (request(&[]), request(&without))
    });
    assert!(with.status.success(), "{}", String::from_utf8_lossy(&with.stderr));
    let refused = String::from_utf8_lossy(&without.stderr).into_owned();
    assert!(
        refused.contains("logged in") || refused.contains("Unauthorized"),
        "{refused}"
    );
}
