//! The runs service of the chart as a process: it starts with the keys of its Secret, makes others while it is at work,
//! and knows them and its runs when it is started again.

use kindex_harness::helm;
use kindex_harness::require::require;
use kindex_harness::scrape;
use serde_json::Value;

use super::pod::{Pod, Volumes};
use crate::process::wait_for;

const ADMIN: &str = "0123456789abcdef0123456789abcdef";

/// The Secret of the values file.
struct Keys;

impl Volumes for Keys {
    fn config_map(&self, name: &str) -> Vec<(String, String)> {
        panic!("it needs no ConfigMap {name}")
    }

    fn secret(&self, name: &str, key: &str) -> String {
        match (name, key) {
            ("kindex-runs", "admin-key") => format!("{ADMIN}\n"),
            ("kindex-runs", "signing-secrets") => "s".repeat(32),
            other => panic!("no Secret {other:?}"),
        }
    }
}

fn manifest() -> Value {
    let values = ["--set=runs.enabled=true", "--set=runs.options.allowPlaintext=true"];
    let mut manifests = helm::template(&values).expect("rendered").into_iter();
    manifests.find(|it| it["kind"] == "StatefulSet").expect("a StatefulSet")
}

#[test]
fn runs_of_the_chart_starts_with_the_keys_of_its_secret_and_keeps_what_it_makes() {
    if !require("helm", helm::installed()) {
        return;
    }
    let pod = Pod::of(&manifest(), "kindex-runs-0", &Keys, None);
    let made = [
        "runs",
        "key",
        "create",
        "--user",
        "ana",
        "--project",
        "vision",
        "--scopes",
        "ingest,query",
    ];
    let mut container = pod.start(&Keys);
    wait_for("readiness", || container.is_ready());
    let (code, _) = scrape::get(container.address("grpc"), "/health").expect("it answers");
    assert_eq!(code, 200, "each address takes REST");
    let (created, secret) = container.exec(&made, &Keys);
    assert!(created, "{secret}");
    let secret = secret
        .lines()
        .find(|line| line.starts_with("mlrun_"))
        .expect("a secret")
        .to_owned();

    for _ in 0..2 {
        let url = format!("http://{}", container.address("rest"));
        let list = |key: &str| {
            let args = ["runs", "list", "--project", "vision", "--url", &url, "--api-key", key];
            container.exec(&args, &Keys)
        };
        for key in [ADMIN, secret.as_str()] {
            let (answered, said) = list(key);
            assert!(answered, "{said}");
        }
        let (answered, said) = list("mlrun_unknown");
        assert!(!answered && said.contains("unknown, expired or revoked"), "{said}");
        let (agreed, said) = container.exec(&["runs", "verify"], &Keys);
        assert!(agreed, "{said}");
        assert!(!container.log().contains(ADMIN) && !container.log().contains(&secret));
        container = container.restart(&Keys);
        wait_for("readiness", || container.is_ready());
    }
    container.stop();
}
