//! Emitted text, feature by feature: each directory holds a small declaration and the files that follow from it as
//! snapshots. That the text also runs, compiles and is accepted is tested elsewhere.

use std::path::PathBuf;

use kindex_codegen::artifact::{Artifacts, RelativePath};

fn directory(case: &str) -> PathBuf {
    let package = std::env::var("CARGO_MANIFEST_DIR").expect("cargo runs the tests");
    [&package, "tests", "golden", case].iter().collect()
}

fn emit(case: &str) -> Artifacts {
    let generated = kindex_codegen::generate(&directory(case));
    generated.unwrap_or_else(|mistakes| panic!("{mistakes}")).artifacts
}

fn text<'a>(artifacts: &'a Artifacts, path: &str) -> &'a str {
    let path = RelativePath::new(path);
    artifacts.get(&path).unwrap_or_else(|| panic!("{path} is not emitted"))
}

/// Compares the emitted files with the snapshots of the case.
fn check(case: &str, paths: &[&str]) {
    let artifacts = emit(case);
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(directory(case));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for path in paths {
            insta::assert_snapshot!(path.replace('/', "."), text(&artifacts, path));
        }
    });
}

#[test]
fn columns_of_every_type_with_keys() {
    check(
        "columns",
        &[
            "schema/ingester_schema.sql",
            "schema/mysql_schema.sql",
            "schema/sqlite_schema.sql",
            "generated/src/kinds/job/kind.rs",
            "generated/src/kinds/job/query.rs",
            "docs/reference/sql.md",
        ],
    );
}

/// Kubernetes selects by texts, integers and bools alone, and by eight fields of a version. An int64 may be a text, as
/// in the JSON of protobuf.
#[test]
fn the_first_eight_scalars_of_keys_are_selectable() {
    let artifacts = emit("selectable");
    let manifest = text(&artifacts, "schema/crds/jobs.yaml");
    let (_, after) = manifest.split_once("selectableFields:\n").expect("selectable fields");
    let paths = after.lines().map_while(|line| line.trim().strip_prefix("- jsonPath: "));
    let expected = ["owner", "urgent", "priority"].map(|field| format!(".spec.{field}"));
    let expected = expected.into_iter().chain([".status.phase".to_owned()]);
    let expected = expected.chain(["a", "b", "c", "d"].map(|field| format!(".spec.{field}")));
    assert_eq!(paths.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
}

#[test]
fn the_registry_of_two_kinds() {
    check(
        "schema",
        &[
            "generated/src/registry.rs",
            "generated/src/kinds/mod.rs",
            "generated/src/kinds/leaf/mod.rs",
            "generated/src/kinds/leaf/kind.rs",
        ],
    );
}

#[test]
fn schemas_of_every_shape() {
    check("schema", &["schema/crds/shapes.yaml", "schema/crds/leaves.yaml"]);
}

#[test]
fn names_and_columns_are_the_same_for_kubectl_and_for_kindex() {
    check("printer", &["schema/crds/jobs.yaml", "generated/src/kinds/job/kind.rs"]);
}

#[test]
fn named_queries_become_functions() {
    check(
        "queries",
        &["generated/src/kinds/job/query.rs", "generated/src/kinds/job/mod.rs"],
    );
}

#[test]
fn a_message_that_no_kind_uses_is_a_type_without_json() {
    check("unused_message", &["generated/src/types/shared/request.rs"]);
}

#[test]
fn a_service_with_and_without_a_status() {
    check(
        "schema",
        &[
            "schema/proto/platform/shapes_svc.proto",
            "schema/proto/platform/leaf_svc.proto",
        ],
    );
}

#[test]
fn roles_of_kinds_with_and_without_a_status() {
    check(
        "schema",
        &[
            "schema/rbac/api.yaml",
            "schema/rbac/edit.yaml",
            "schema/rbac/ingester.yaml",
            "schema/rbac/ingester-leases.yaml",
            "schema/rbac/view.yaml",
            "schema/rbac/api-aggregated.yaml",
            "schema/rbac/view-archive.yaml",
            "schema/rbac/edit-archive.yaml",
            "schema/aggregation.yaml",
        ],
    );
}

#[test]
fn the_chart_has_the_same_manifests_to_the_byte() {
    let artifacts = emit("schema");
    let (ours, charts) = ("schema/rbac/", "deploy/helm/kindex/files/rbac/");
    let below = |directory| {
        let files = artifacts.iter();
        files.filter_map(move |(path, text)| Some((path.as_str().strip_prefix(directory)?, text)))
    };
    assert_eq!(below(ours).count(), 8);
    assert!(below(ours).eq(below(charts)));
    let aggregation = |directory: &str| text(&artifacts, &format!("{directory}/aggregation.yaml"));
    assert_eq!(aggregation("schema"), aggregation("deploy/helm/kindex/files"));
}

#[test]
fn the_roles_name_kinds_whose_crds_are_of_others() {
    let artifacts = emit("foreign_crd");
    for role in ["api", "edit", "ingester", "view"] {
        let role = text(&artifacts, &format!("schema/rbac/{role}.yaml"));
        assert!(role.contains("- guests\n"), "{role}");
    }
}

#[test]
fn a_crd_of_others_is_never_emitted() {
    check("foreign_crd", &["generated/src/kinds/guest/kind.rs"]);
    let artifacts = emit("foreign_crd");
    let registry = text(&artifacts, "generated/src/registry.rs");
    assert!(registry.contains("include_str!(\"../../guest.yaml\")"), "{registry}");
    let crds = emit("foreign_crd")
        .into_keys()
        .filter(|path| path.as_str().starts_with("schema/crds/"));
    assert_eq!(crds.count(), 0);
}

#[test]
fn the_scripts_that_operators_know_are_the_same_to_the_byte() {
    let artifacts = emit("columns");
    let authoritative = text(&artifacts, "schema/ingester_schema.sql");
    for copy in [
        "schema/complete_ingester_schema.sql",
        "deploy/helm/kindex/files/schema/mysql-init-schema.sql",
    ] {
        assert_eq!(text(&artifacts, copy), authoritative, "{copy}");
    }
}

#[test]
fn every_run_emits_the_same_bytes() {
    for case in ["columns", "schema", "queries", "foreign_crd", "printer"] {
        let run = || kindex_codegen::generate(&directory(case)).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let first = run();
        assert!(!first.descriptors.is_empty(), "{case}");
        assert!((0..3).all(|_| run() == first), "{case}");
    }
}
