//! What Kubernetes defines is implemented once: paths, verbs, selectors and parameters of requests, the reasons of
//! refusals, what becomes of dependents, conversion reviews and tables are in `crates/kube-api` alone, and which
//! cluster it is, and which 404 says that an object is not there, in `crates/kube-client`.

use super::expect_none;
use super::files::File;
use super::rust::Rust;
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
fn paths_verbs_and_selectors_of_kubernetes_are_spelled_in_kube_api_alone() {
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

/// What one place implements.
struct Concept {
    /// How the paths of the files begin that may spell it.
    home: &'static str,
    /// The texts that it has, by themselves or in quotes within a longer one, such as one in JSON.
    words: &'static [&'static str],
    /// What the code of a second implementation has.
    code: &'static [&'static str],
    /// Other files that spell it, each with the reason.
    elsewhere: &'static [(&'static str, &'static str)],
}

/// What a refusal means follows from its reason, its code and its causes: `Outcome` says it.
const REFUSALS: Concept = Concept {
    home: HOME,
    words: &[
        "AlreadyExists",
        "BadRequest",
        "Conflict",
        "Expired",
        "Forbidden",
        "Gone",
        "InternalError",
        "Invalid",
        "MethodNotAllowed",
        "NamespaceTerminating",
        "NotAcceptable",
        "NotFound",
        "RequestEntityTooLarge",
        "ServerTimeout",
        "ServiceUnavailable",
        "Timeout",
        "TooManyRequests",
        "Unauthorized",
        "UnsupportedMediaType",
    ],
    code: &[
        ".code == 4",
        ".code != 4",
        ".code, 4",
        ".code == 5",
        ".code >= ",
        "match refusal.code {",
        "match status.code {",
        // Those of the client library take a webhook's denial for what it says.
        ".is_already_exists()",
        "status.is_conflict()",
        "refusal.is_conflict()",
        "error.is_conflict()",
    ],
    elsewhere: &[
        ("codegen/src/emit/reference_policy.rs", "the policy says why it refuses"),
        ("services/deletion/src/notice.rs", "it is the reason of an event"),
        ("services/migrator/src/run/mod.rs", "it is the reason of a condition"),
        ("services/runs/src/front/refused.rs", "runs have codes of their own"),
        ("services/runs/src/grpc/stream.rs", "runs have codes of their own"),
    ],
};

const PARAMETERS: Concept = Concept {
    home: HOME,
    words: &[
        "allowWatchBookmarks",
        "dryRun",
        "fieldManager",
        "fieldValidation",
        "gracePeriodSeconds",
        "orphanDependents",
        "propagationPolicy",
        "resourceVersionMatch",
        "sendInitialEvents",
        "timeoutSeconds",
    ],
    code: &[],
    elsewhere: &[(
        "services/cluster/src/openapi/schemas.rs",
        "they are fields of DeleteOptions",
    )],
};

const DEPENDENTS: Concept = Concept {
    home: HOME,
    words: &["Background", "Foreground", "Orphan"],
    code: &["enum Propagation"],
    elsewhere: &[],
};

const REVIEWS: Concept = Concept {
    home: HOME,
    words: &["ConversionReview"],
    code: &["struct ConversionReview"],
    elsewhere: &[],
};

/// The bookmark that ends the initial events of a watch, and the metadata of lists.
const LISTS: Concept = Concept {
    home: HOME,
    words: &["k8s.io/initial-events-end"],
    code: &["struct ListMeta"],
    elsewhere: &[("crates/model/src/wire/meta.rs", "it is a field of messages")],
};

/// Tables, whole, from their heads on and as events of a watch.
const TABLES: Concept = Concept {
    home: HOME,
    words: &["Table", "columnDefinitions"],
    code: &[],
    elsewhere: &[],
};

const LEASES: Concept = Concept {
    home: HOME,
    words: &["coordination.k8s.io"],
    code: &[],
    elsewhere: &[("codegen/src/emit/rbac.rs", "roles are about leases")],
};

const CONDITIONS: Concept = Concept {
    home: HOME,
    words: &["True", "False", "lastTransitionTime"],
    code: &["enum ConditionStatus"],
    elsewhere: &[
        (
            "crates/model/src/phases.rs",
            "it writes phases in the form of conditions",
        ),
        (
            "services/deletion/src/conditions.rs",
            "each kind may spell conditions in its own way",
        ),
    ],
};

/// A Status that was received is read once.
const STATUS: Concept = Concept {
    home: HOME,
    words: &[],
    code: &["struct Status {"],
    elsewhere: &[],
};

const PATCHES: Concept = Concept {
    home: HOME,
    words: &[],
    code: &["json_patch::"],
    elsewhere: &[],
};

const SCOPES: Concept = Concept {
    home: HOME,
    words: &["Namespaced"],
    code: &[],
    elsewhere: &[
        ("codegen/src/emit/kind_table.rs", "it is a name in Rust"),
        ("codegen/src/grammar.rs", "crds.toml has it"),
        (
            "codegen/src/model/kind.rs",
            "the generator depends on no part of the server",
        ),
    ],
};

/// The namespace whose uid says which cluster it is.
const IDENTITY: Concept = Concept {
    home: "crates/kube-client/src/identity.rs",
    words: &["kube-system"],
    code: &[],
    elsewhere: &[
        ("codegen/src/emit/rbac.rs", "the role may get the namespace"),
        (
            "kindex/src/front_proxy.rs",
            "the certificates of the front proxy are in it",
        ),
        ("services/cluster/src/builtin/mod.rs", "a cluster begins with it"),
        ("services/cluster/src/mutate/delete.rs", "it cannot be deleted"),
    ],
};

/// An object is absent where a 404 names it: what stands before a cluster answers 404, too. `look_up` and
/// `Outcome::Absent` say so.
const ABSENCES: Concept = Concept {
    home: "crates/kube-client/src/",
    words: &[],
    code: &[
        ".get_opt(",
        ".get_metadata_opt(",
        "Outcome::is_not_found",
        "outcome.is_not_found()",
    ],
    elsewhere: &[
        (
            "kindex/src/samples.rs",
            "nothing depends on the status of a sample that has left the cluster",
        ),
        (
            "services/migrator/src/certificate/secret.rs",
            "the Secret is read again",
        ),
        (
            "services/migrator/src/cluster/mod.rs",
            "each definition is looked up before one is installed",
        ),
    ],
};

static CONCEPTS: [Concept; 13] = [
    REFUSALS, PARAMETERS, DEPENDENTS, REVIEWS, LISTS, TABLES, LEASES, CONDITIONS, STATUS, PATCHES, SCOPES, IDENTITY,
    ABSENCES,
];

impl Concept {
    /// Where a file spells it outside of tests: lines from zero, each with what is there.
    fn spelled(&self, file: &File, rust: &Rust) -> Vec<(usize, String)> {
        let texts = rust.texts.iter().map(|(line, text)| (*line, text.as_str()));
        let texts = texts.filter(|(_, text)| text.split('"').any(|part| self.words.contains(&part)));
        let lines = rust.code.lines().enumerate();
        let code = lines.flat_map(|(line, code)| {
            let parts = self.code.iter().filter(move |part| code.contains(**part));
            parts.map(move |part| (line, *part))
        });
        let spelled = texts.chain(code).filter(|(line, _)| !is_test(file, rust, *line));
        spelled.map(|(line, what)| (line, what.to_owned())).collect()
    }

    /// What a file has of it that is elsewhere already.
    fn repeated(&self, file: &File, rust: &Rust) -> Vec<String> {
        let is_free = file.path.starts_with(self.home) || self.elsewhere.iter().any(|(path, _)| *path == file.path);
        let spelled = if is_free { Vec::new() } else { self.spelled(file, rust) };
        let finding = |(line, what): (usize, String)| file.finding(line, &format!("`{what}`: {} has it", self.home));
        spelled.into_iter().map(finding).collect()
    }
}

#[test]
fn a_concept_of_kubernetes_is_implemented_once() {
    let mut findings = Vec::new();
    for concept in &CONCEPTS {
        for (file, rust) in RUST_FILES.iter() {
            findings.extend(concept.repeated(file, rust));
        }
        for (path, _) in concept.elsewhere {
            let found = RUST_FILES.iter().find(|(file, _)| file.path == *path);
            if found.is_none_or(|(file, rust)| concept.spelled(file, rust).is_empty()) {
                findings.push(format!("{path}: needs no exception any more"));
            }
        }
    }
    expect_none(findings);
}

/// As if the rule looked at nothing, or at what tests say.
#[test]
fn a_second_implementation_is_found() {
    let repeated = |path: &str, text: &str| {
        let file = File {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let rust = Rust::parse(text).expect("Rust");
        let all = CONCEPTS.iter().flat_map(|concept| concept.repeated(&file, &rust));
        all.count()
    };
    for planted in [
        r#"fn f(reason: &str) -> bool { reason == "AlreadyExists" }"#,
        "fn f(status: &Status) -> bool { status.code == 409 }",
        "fn f(status: &Status) -> bool { matches!(status.code, 404 | 409) }",
        "fn f(status: &Status) -> bool { match status.code { 404 => true, _ => false } }",
        "fn f(refusal: &Refusal) -> bool { match refusal.code { 404 => true, _ => false } }",
        "fn f(status: &Status) -> bool { status.code >= 500 }",
        "fn f(status: &Status) -> bool { status.is_already_exists() }",
        "fn f(status: &Status) -> bool { status.is_conflict() }",
        "fn f(error: &Status) -> bool { error.is_conflict() }",
        r#"fn f(query: &Query) -> Option<&str> { query.get("propagationPolicy") }"#,
        "enum Propagation { Background }",
        "struct ConversionReview { uid: String }",
        r#"const END: &str = "k8s.io/initial-events-end";"#,
        "struct ListMeta { rv: u64 }",
        r#"const KIND: &str = "Table";"#,
        r#"fn f(table: &mut Value) { table["columnDefinitions"] = Value::Null; }"#,
        r#"const HEAD: &str = "{\"kind\":\"Table\",\"rows\":[";"#,
        r#"fn f(path: &ResourcePath) -> bool { path.group == "coordination.k8s.io" }"#,
        r#"fn f(condition: &Condition) -> bool { condition.status == "True" }"#,
        "struct Status { code: u16 }",
        "fn f(old: &mut Value, patch: &Value) { json_patch::merge(old, patch) }",
        r#"fn f(spec: &Value) -> bool { spec["scope"] == "Namespaced" }"#,
        r#"const OF_THE_CLUSTER: &str = "kube-system";"#,
        "async fn f(api: &Api<Node>, name: &str) -> bool { api.get_opt(name).await.is_ok() }",
        "fn f(error: &kube::Error) -> bool { outcome(error).is_some_and(Outcome::is_not_found) }",
    ] {
        assert_eq!(repeated("services/new/src/lib.rs", planted), 1, "{planted}");
        let tested = format!("#[cfg(test)]\nmod tests {{\n{planted}\n}}\n");
        assert_eq!(repeated("services/new/src/lib.rs", &tested), 0, "{tested}");
    }
    for other in [
        "fn f(status: &Status) -> bool { outcome_of(status).is_conflict() }",
        "fn f(refusal: &Refusal) -> bool { refusal.outcome().is_conflict() }",
        "fn f(status: &tonic::Status) -> bool { match status.code() { Code::NotFound => true, _ => false } }",
    ] {
        assert_eq!(repeated("services/new/src/lib.rs", other), 0, "{other}");
    }
    let home = "const CODES: [u16; 1] = [404]; fn f(status: &Status) -> bool { status.code == 409 }";
    assert_eq!(repeated("crates/kube-api/src/status/outcome.rs", home), 0);
}
