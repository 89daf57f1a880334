//! `kindex restore` as it is typed, beside a running ingester: objects that were archived or
//! deleted are there again, and stay.

use kindex_harness::mariadb::MariaDb;
use kindex_harness::require::require;
use serde_json::{Value, json};

use super::process::{Running, kubectl_is_there, wait_for};
use super::site::{Site, on_clusters};
use super::text_of;

/// As kubectl names a kind that has a status and a history.
const KIND: &str = "deployments.michelangelo.api";

const DEPLOYMENT: &str = r#"
apiVersion: michelangelo.api/v2
kind: Deployment
metadata: {name: fraud, namespace: default, labels: {team: risk}}
spec: {desiredRevision: {name: fraud-1}}
"#;

/// Archived as well, and nobody asks for it.
const OF_OTHERS: &str = r#"
apiVersion: michelangelo.api/v2
kind: Deployment
metadata:
  name: churn
  namespace: default
  labels: {team: growth}
  annotations: {michelangelo/Immutable: "true"}
spec: {desiredRevision: {name: churn-1}}
"#;

/// A run with the flags that name its database.
struct Stage {
    run: Running,
    database: Vec<String>,
}

impl Stage {
    fn command(&self, args: &[&str]) -> std::process::Output {
        let database = self.database.iter().map(String::as_str);
        let args: Vec<&str> = args.iter().copied().chain(database).collect();
        self.run.command(&args)
    }

    fn report(&self, args: &[&str]) -> Vec<Value> {
        let output = self.command(&[args, &["--output", "json"]].concat());
        assert!(output.status.success(), "{args:?}: {}", text_of(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("a list")
    }

    /// What SQL says of the deployment, deleted or not.
    fn row(&self, more: &[&str]) -> String {
        text_of(
            &self
                .command(&[&["get", "deployments", "-l", "team=risk"], more].concat())
                .stdout,
        )
    }

    fn shown(&self) -> Value {
        let text = self.run.kubectl(&["get", KIND, "fraud", "-o", "json"], "");
        serde_json::from_str(&text).expect("an object")
    }

    fn is_gone(&self) -> bool {
        self.run.kubectl(&["get", KIND], "").is_empty()
    }
}

fn archive_of_others(stage: &Stage) {
    stage.run.kubectl(&["apply", "-f", "-"], OF_OTHERS);
    wait_for("the eviction of the other", || {
        let row = stage.command(&["get", "deployments", "-l", "team=growth"]);
        stage.is_gone() && text_of(&row.stdout).contains("archived")
    });
}

/// One walk over a database: archived, back, deleted, back as it was before.
fn walk(site: &Site, stage: &Stage) {
    let run = &stage.run;
    archive_of_others(stage);
    run.kubectl(&["apply", "-f", "-"], DEPLOYMENT);
    // A change by `kindex up` may otherwise come between those that are looked at.
    wait_for("the finalizers", || {
        let finalizers = stage.shown()["metadata"]["finalizers"].to_string();
        site.finalizers().iter().all(|finalizer| finalizers.contains(finalizer))
    });
    let status = r#"{"status":{"message":"rolled out"}}"#;
    let patch = ["patch", KIND, "fraud", "--subresource=status", "--type=merge"];
    run.kubectl(&[&patch[..], &["-p", status]].concat(), "");
    let first = stage.shown();
    assert_eq!(first["status"], json!({"message": "rolled out"}));
    // The history has the versions that were stored, and this one is asked for below.
    wait_for("the row", || {
        let row = stage.command(&["get", "deployment/fraud", "-o", "json"]).stdout;
        let row: Value = serde_json::from_slice(&row).unwrap_or_default();
        row["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    });
    run.kubectl(&["annotate", KIND, "fraud", "michelangelo/Immutable=true"], "");
    wait_for("the eviction", || {
        stage.is_gone() && stage.row(&[]).contains("archived")
    });

    let rehearsed = stage.report(&["restore", "deployment/fraud", "--dry-run"]);
    assert_eq!(
        (&rehearsed[0]["outcome"], &rehearsed[0]["was"]),
        (&json!("would-restore"), &json!("evicted"))
    );
    assert!(stage.is_gone(), "a dry run creates nothing");

    let restored = stage.report(&["restore", "deployments", "--archived", "-l", "team=risk"]);
    assert_eq!(restored.len(), 1);
    assert_eq!(
        (&restored[0]["outcome"], &restored[0]["uid"]),
        (&json!("restored"), &first["metadata"]["uid"])
    );
    let back = stage.shown();
    assert_eq!(back["metadata"]["uid"], restored[0]["newUid"]);
    assert_eq!((&back["spec"], &back["status"]), (&first["spec"], &first["status"]));
    let annotations = &back["metadata"]["annotations"];
    assert_eq!(annotations["michelangelo/RestoredFrom"], first["metadata"]["uid"]);
    assert_eq!(annotations["michelangelo/Immutable"], Value::Null);
    wait_for("a settled state", || {
        stage.command(&["verify", "--kind", "deployments"]).status.success()
    });
    assert!(!stage.row(&[]).contains("archived") && stage.row(&["--deleted"]).contains("deleted"));
    assert_eq!(stage.shown()["metadata"]["uid"], restored[0]["newUid"], "it stays");
    let again = stage.report(&["restore", "deployment/fraud"]);
    assert_eq!(again[0]["outcome"], "already-restored");

    // It has the finalizer, as the old one had: this waits for SQL.
    run.kubectl(&["delete", KIND, "fraud"], "");
    let version = first["metadata"]["resourceVersion"].as_str().expect("a version");
    let uid = first["metadata"]["uid"].as_str().expect("a uid");
    let past = stage.report(&["restore", "deployment", "--uid", uid, "--at", version]);
    assert_eq!(
        (&past[0]["outcome"], &past[0]["was"]),
        (&json!("restored"), &json!("deleted"))
    );
    assert_eq!(stage.shown()["spec"], first["spec"]);
    wait_for("a settled state", || {
        stage.command(&["verify", "--kind", "deployments"]).status.success()
    });
}

on_clusters!(
    an_object_comes_back_from_sqlite_and_stays,
    an_object_comes_back_from_mariadb_and_stays_beside_an_ingester_that_remembers_versions,
    a_name_that_is_taken_a_kind_without_history_and_nothing_named_are_said_so,
    an_object_comes_back_to_its_owner_or_without_it_and_is_not_collected,
    an_archived_object_whose_name_was_taken_is_found_by_uid_and_comes_back_under_another,
);

fn an_object_comes_back_from_sqlite_and_stays(site: &Site) {
    if kubectl_is_there() {
        let stage = Stage {
            run: Running::start_on(site, &[]),
            database: Vec::new(),
        };
        walk(site, &stage);
    }
}

fn an_object_comes_back_from_mariadb_and_stays_beside_an_ingester_that_remembers_versions(site: &Site) {
    if !kubectl_is_there() || !require("mariadb", MariaDb::installed()) {
        return;
    }
    let server = MariaDb::start(&[]);
    let address = format!("mysql://root@127.0.0.1:{}/kindex", server.port);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let config = directory.path().join("kindex.yaml");
    std::fs::write(&config, "metadataStorage: {enableResourceVersionCache: true}\n").expect("writable");
    let config = config.display().to_string();
    let stage = Stage {
        run: Running::start_on(site, &["--database", &address, "--config", &config]),
        database: vec!["--database".to_owned(), address],
    };
    walk(site, &stage);
}

fn a_name_that_is_taken_a_kind_without_history_and_nothing_named_are_said_so(site: &Site) {
    if !kubectl_is_there() {
        return;
    }
    let run = Running::start_on(site, &[]);
    run.kubectl(&["apply", "-f", "-"], super::MODEL);
    wait_for("the row", || run.get(&["models"]).contains("fraud"));
    let live = run.command(&["restore", "model/fraud"]);
    assert_eq!(live.status.code(), Some(1));
    assert!(
        text_of(&live.stdout).contains("it is in the cluster"),
        "{}",
        text_of(&live.stdout)
    );
    let unknown = run.command(&["restore", "model/nobody"]);
    assert!(text_of(&unknown.stderr).contains("never stored"));
    for wrong in [
        &["restore", "models"][..],
        &["restore", "model/fraud", "--evicted"],
        &["restore", "model/fraud", "-l", "team=risk"],
        &["restore", "pipeline/p", "--at", "7"],
    ] {
        assert_eq!(run.command(wrong).status.code(), Some(2), "{wrong:?}");
    }
}

fn an_archived_object_whose_name_was_taken_is_found_by_uid_and_comes_back_under_another(site: &Site) {
    if !kubectl_is_there() {
        return;
    }
    let run = Running::start_on(site, &[]);
    run.kubectl(&["apply", "-f", "-"], super::MODEL);
    let uid = run.kubectl(&["get", "model", "fraud", "-o", "jsonpath={.metadata.uid}"], "");
    wait_for("the row", || run.get(&["models"]).contains("fraud"));
    run.kubectl(&["annotate", "model", "fraud", "michelangelo/Immutable=true"], "");
    let names = || run.kubectl(&["get", "models", "-o", "name"], "");
    wait_for("the eviction", || names().is_empty());
    run.kubectl(&["apply", "-f", "-"], super::MODEL);
    let by_uid = || run.command(&["get", "models", "--uid", &uid]);
    wait_for("what happened", || {
        text_of(&by_uid().stderr).contains("took its name in the cluster")
    });
    let stderr = text_of(&by_uid().stderr);
    assert!(
        stderr.contains(&format!("`kindex restore model --uid {uid} --as NEW-NAME`")),
        "{stderr}"
    );
    let json = run.command(&["get", "models", "--uid", &uid, "-o", "json"]);
    let object: Value = serde_json::from_slice(&json.stdout).expect("the stored text");
    assert_eq!(object["metadata"]["uid"], *uid);

    let refused = run.command(&["restore", "models", "--uid", &uid]);
    assert_eq!(refused.status.code(), Some(1));
    let restored = run.command(&["restore", "models", "--uid", &uid, "--as", "fraud-before"]);
    assert!(restored.status.success(), "{}", text_of(&restored.stderr));
    assert_eq!(names().lines().count(), 2, "{}", names());
    let path = "jsonpath={.metadata.annotations.michelangelo/RestoredFrom}";
    assert_eq!(run.kubectl(&["get", "model", "fraud-before", "-o", path], ""), uid);
    let again = run.command(&["restore", "models", "--uid", &uid, "--as", "fraud-before"]);
    assert!(
        text_of(&again.stdout).contains("already restored"),
        "{}",
        text_of(&again.stdout)
    );
    let other = run.command(&["restore", "models", "--uid", &uid, "--as", "fraud"]);
    assert_eq!(other.status.code(), Some(1), "the name is taken");
}

fn an_object_comes_back_to_its_owner_or_without_it_and_is_not_collected(site: &Site) {
    if !kubectl_is_there() {
        return;
    }
    let stage = Stage {
        run: Running::start_on(site, &[]),
        database: Vec::new(),
    };
    let run = &stage.run;
    let uid_of = |kind: &str, name: &str| run.kubectl(&["get", kind, name, "-o", "jsonpath={.metadata.uid}"], "");
    let owners_of_fraud = || {
        let text = run.kubectl(&["get", "model", "fraud", "-o", "json"], "");
        let object: Value = serde_json::from_str(&text).expect("an object");
        object["metadata"]["ownerReferences"].clone()
    };
    let delete_both = || {
        // What has the finalizer and is in SQL cannot get lost: the collector does not wait for either.
        wait_for("both rows", || {
            let rows = [&["projects", "-o", "name"][..], &["models", "-o", "name"]].map(|args| run.get(args));
            !rows[0].is_empty() && rows[1].contains("fraud")
        });
        wait_for("both finalizers", || {
            let objects = run.kubectl(&["get", "projects,models", "-o", "json"], "");
            objects.matches("\"michelangelo/Ingester\"").count() == 2
        });
        run.kubectl(&["delete", "project", "p"], "");
        wait_for("the collection", || {
            run.kubectl(&["get", "models"], "").is_empty() && !run.get(&["models", "-o", "name"]).contains("fraud")
        });
    };
    let project =
        "apiVersion: michelangelo.api/v2\nkind: Project\nmetadata: {name: p, namespace: default}\nspec: {tier: 1}\n";
    run.kubectl(&["apply", "-f", "-"], project);
    let first = uid_of("project", "p");
    let owner = format!("ownerReferences: [{{apiVersion: michelangelo.api/v2, kind: Project, name: p, uid: {first}}}]");
    run.kubectl(
        &["apply", "-f", "-"],
        &super::MODEL.replace("name: fraud,", &format!("name: fraud, {owner},")),
    );
    delete_both();

    assert_eq!(stage.report(&["restore", "project/p"])[0]["outcome"], "restored");
    let restored = stage.report(&["restore", "models", "--deleted", "--since", "1h"]);
    assert_eq!(
        (&restored[0]["outcome"], &restored[0]["ownersLeftOut"]),
        (&json!("restored"), &Value::Null)
    );
    assert_eq!(owners_of_fraud()[0]["uid"], uid_of("project", "p"));
    delete_both();

    let alone = stage.report(&["restore", "model/fraud"]);
    assert_eq!(alone[0]["ownersLeftOut"][0]["owner"], "Project/p");
    assert_eq!(owners_of_fraud(), Value::Null);
    wait_for("a settled state", || {
        stage.command(&["verify", "--kind", "models"]).status.success()
    });
    assert_eq!(uid_of("model", "fraud"), alone[0]["newUid"].as_str().expect("a uid"));
}
