//! What Kubernetes defines of requests is spelt once: its paths, verbs and selectors are in `crates/kube-api` alone.

use super::expect_none;
use super::sources::{RUST_FILES, is_test};

const HOME: &str = "crates/kube-api/";

/// Other files that spell it, each with the reason.
const ELSEWHERE: &[(&str, &str)] = &[
    (
        "services/api/src/rest/references.rs",
        "references are a subresource of Kindex",
    ),
    (
        "services/cluster/src/openapi/paths.rs",
        "a template has braces, which a path escapes",
    ),
];

/// Whether a text is a part of a request that Kubernetes defines. `/api/v1/…` is the API of Kindex.
fn is_of_kubernetes(text: &str) -> bool {
    [
        "/api",
        "/apis",
        "apis",
        "labelSelector",
        "fieldSelector",
        "deletecollection",
    ]
    .contains(&text)
        || text.starts_with("/apis/")
        || text.contains("/namespaces/")
        || text.starts_with("application/") && text.contains("-patch+")
}

#[test]
fn paths_verbs_and_selectors_of_kubernetes_are_spelt_in_kube_api_alone() {
    let mut findings = Vec::new();
    let mut unused: Vec<&str> = ELSEWHERE.iter().map(|(path, _)| *path).collect();
    for (file, rust) in RUST_FILES.iter().filter(|(file, _)| !file.path.starts_with(HOME)) {
        let texts = rust.texts.iter().filter(|(_, text)| is_of_kubernetes(text));
        let found: Vec<_> = texts.filter(|(line, _)| !is_test(file, rust, *line)).collect();
        if ELSEWHERE.iter().any(|(path, _)| *path == file.path) {
            unused.retain(|path| *path != file.path || found.is_empty());
            continue;
        }
        findings.extend(
            found
                .iter()
                .map(|(line, text)| file.finding(*line, &format!("`{text}`: {HOME} has it"))),
        );
        for (line, code) in rust.code.lines().enumerate() {
            if ["struct LabelSelector", "struct FieldSelector"]
                .iter()
                .any(|one| code.contains(one))
            {
                findings.push(file.finding(line, &format!("a selector: {HOME} has it")));
            }
        }
    }
    findings.extend(unused.iter().map(|path| format!("{path}: needs no exception any more")));
    expect_none(findings);
}

#[test]
fn a_part_of_a_request_is_known() {
    for text in [
        "/apis",
        "/apis/{group}/{version}",
        "labelSelector",
        "/api/v1/namespaces/{name}/pods",
        "application/merge-patch+json",
    ] {
        assert!(is_of_kubernetes(text), "{text}");
    }
    for text in [
        "/api/v1/runs",
        "namespaces",
        "api",
        "k8s.io/apimachinery/pkg/apis/meta/v1/x.proto",
        "application/json",
    ] {
        assert!(!is_of_kubernetes(text), "{text}");
    }
}
