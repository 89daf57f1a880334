//! `kindex get` and `kindex query` as a person asks them, on every engine.

use std::process::{Command, Output};

use jiff::Timestamp;
use kindex_generated::kinds::{model, pipeline_run};
use kindex_model::kind::Kind;
use kindex_model::object::Object;
use kindex_model::projection::Version;
use kindex_query::{Life, Revive};
use kindex_store::{Address, MetadataStorage, RowWrite};
use kindex_tests::databases::mariadb::Flavor;
use kindex_tests::databases::{engines, patient};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::text_of;

const FAILED: &str = "state=PIPELINE_RUN_STATE_FAILED";

/// Writes twelve runs in two namespaces: every third failed; r11 is deleted.
pub(crate) fn fill(address: &Address) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let store = kindex_store::open(address, kindex_generated::registry(), &patient());
        let store = store.expect("an address");
        store.prepare().await.expect("prepared");
        for number in 0..12_i64 {
            let text = run(number);
            write(&*store, &pipeline_run::KIND, &text, number).await;
        }
        let deleted = RowWrite::SoftDelete { uid: "uid-11".into() };
        let done = store.write(&pipeline_run::KIND, &[deleted], at(12)).await;
        done.expect("deleted");
        let text = json!({
            "apiVersion": "michelangelo.api/v2", "kind": "Model",
            "metadata": metadata("uid-model", "prod", "fraud", 1),
            "spec": {"algorithm": "xgboost", "trainingFramework": "sklearn"},
        });
        write(&*store, &model::KIND, &text, 0).await;
        store.close().await;
    });
}

/// A database with runs, and `kindex` to query it.
struct Database {
    address: String,
    /// Where `kindex` runs.
    directory: TempDir,
}

impl Database {
    fn filled(address: &Address) -> Self {
        fill(address);
        Self {
            address: address.to_string(),
            directory: tempfile::tempdir().expect("a temporary directory"),
        }
    }

    fn run(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_kindex"))
            .args(args)
            .args(["--database", &self.address])
            .current_dir(self.directory.path())
            .output()
            .expect("kindex runs")
    }

    /// What it prints, once it succeeds.
    fn stdout(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {}", text_of(&output.stderr));
        text_of(&output.stdout)
    }

    /// The names that it prints, in their order.
    fn names(&self, args: &[&str]) -> String {
        let text = self.stdout(&[args, &["-o", "name"]].concat());
        let names = text.lines().map(|line| line.split_once('/').expect("kind/name").1);
        names.collect::<Vec<_>>().join(" ")
    }

    /// What it prints on stderr when it is called wrongly.
    fn refused(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {output:?}");
        text_of(&output.stderr)
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).expect("in range")
}

fn metadata(uid: &str, namespace: &str, name: &str, number: i64) -> Value {
    json!({
        "uid": uid, "namespace": namespace, "name": name, "resourceVersion": (number + 1).to_string(),
        "creationTimestamp": at(number).to_string(),
    })
}

fn run(number: i64) -> Value {
    let namespace = if number % 4 == 3 { "test" } else { "prod" };
    let mut metadata = metadata(&format!("uid-{number:02}"), namespace, &format!("r{number:02}"), number);
    metadata["labels"] = match number % 3 {
        0 => json!({"team": "fraud"}),
        1 => json!({"team": "risk", "old": ""}),
        _ => json!({}),
    };
    let state = if number % 3 == 0 { "FAILED" } else { "SUCCEEDED" };
    json!({
        "apiVersion": "michelangelo.api/v2", "kind": "PipelineRun", "metadata": metadata,
        "spec": {"actor": {"name": format!("actor{}", number % 2)}},
        "status": {"state": format!("PIPELINE_RUN_STATE_{state}")},
    })
}

async fn write(store: &dyn MetadataStorage, kind: &'static Kind, text: &Value, second: i64) {
    let object = Object::parse_str(&text.to_string()).expect("an object");
    let write = RowWrite::Store {
        version: Version::project(kind, object),
        life: Life::Live,
        revive: Revive::Never,
    };
    store.write(kind, &[write], at(second)).await.expect("written");
}

#[test]
fn a_person_asks_every_engine() {
    for engine in engines(&[Flavor::Plain]) {
        println!("on {}", engine.name);
        everything(&Database::filled(&engine.address));
    }
}

fn everything(database: &Database) {
    selectors_and_conditions_narrow(database);
    pages_go_on_and_foreign_tokens_do_not(database);
    a_scan_is_reported_and_a_plan_shown(database);
    errors_are_explained(database);
    named_queries_are_listed_and_run(database);
    the_past_is_listed(database);
    nothing_found_is_reported(database);
}

fn selectors_and_conditions_narrow(database: &Database) {
    let get = |more: &[&str]| database.names(&[&["get", "pipelineruns"], more].concat());
    assert_eq!(get(&["-n", "test"]), "r03 r07");
    assert_eq!(get(&["-A", "-l", "team=fraud"]), get(&["-l", "team=fraud"]));
    for wrong in [&["pipelineruns", "-A", "-n", "test"][..], &["pipelinerun/r03", "-A"]] {
        database.refused(&[&["get"], wrong].concat());
    }
    assert_eq!(get(&["-n", "test", "--deleted"]), "r03 r07 r11");
    assert_eq!(get(&["-n", "prod", "-l", "team in (fraud,risk),!old"]), "r00 r06 r09");
    assert_eq!(get(&["-n", "prod", "-l", "team!=fraud,!old"]), "r02 r05 r08");
    assert_eq!(get(&["-l", "team", "-l", "old", "-n", "test"]), "r07");
    assert_eq!(
        get(&[
            "--field-selector",
            "metadata.name!=r00,metadata.namespace=prod",
            "--where",
            FAILED
        ]),
        "r06 r09"
    );
    assert_eq!(
        get(&["-n", "prod", "--where", FAILED, "--sort", "update_time:desc"]),
        "r09 r06 r00"
    );
    assert_eq!(
        get(&[
            "--where",
            FAILED,
            "--where",
            "create_time>=2023-11-14T22:13:26Z",
            "--sort",
            "name:desc"
        ]),
        "r09 r06"
    );
    let nested = r#"state in (PIPELINE_RUN_STATE_FAILED) and
        (name = r00 or (actor = "actor1" and not name like 'r0%9'))"#;
    assert_eq!(get(&["--where", nested]), "r00 r03");
    let count = database.stdout(&["get", "pipelineruns", "--where", FAILED, "--count"]);
    assert_eq!(count, "4\n");
    let wide = database.stdout(&["get", "pipelineruns", "-n", "test", "--where", FAILED, "-o", "wide"]);
    let lines: Vec<&str> = wide.lines().collect();
    assert_eq!(lines.len(), 2, "{wide}");
    assert!(
        lines[0].contains("EXCEPTION_TYPE") && lines[1].contains("PIPELINE_RUN_STATE_FAILED"),
        "{wide}"
    );
}

fn pages_go_on_and_foreign_tokens_do_not(database: &Database) {
    let all = [
        "get",
        "pipelineruns",
        "--sort",
        "create_time:desc",
        "--limit",
        "4",
        "-o",
        "json",
    ];
    let (mut names, mut token) = (Vec::new(), String::new());
    for _ in 0..3 {
        let more: &[&str] = if token.is_empty() { &[] } else { &["--continue", &token] };
        let list: Value = serde_json::from_str(&database.stdout(&[&all[..], more].concat())).expect("JSON");
        let items = list["items"].as_array().expect("items").iter();
        names.extend(items.map(|item| item["metadata"]["name"].as_str().expect("a name").to_owned()));
        token = list["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
    }
    assert_eq!(names.join(" "), "r10 r09 r08 r07 r06 r05 r04 r03 r02 r01 r00");
    assert_eq!(token, "", "the last page");

    let output = database.run(&["get", "pipelineruns", "-n", "prod", "--limit", "2"]);
    let stderr = text_of(&output.stderr);
    let token = stderr
        .trim()
        .strip_prefix("more rows: --continue ")
        .expect("another page")
        .to_owned();
    let next = database.names(&[
        "get",
        "pipelineruns",
        "-n",
        "prod",
        "--limit",
        "2",
        "--continue",
        &token,
    ]);
    assert_eq!(next, "r02 r04");
    let foreign = database.refused(&["get", "pipelineruns", "-n", "test", "--continue", &token]);
    assert!(
        foreign.contains("continue token: it goes on with another query"),
        "{foreign}"
    );
    let forged = database.refused(&["get", "pipelineruns", "-n", "prod", "--continue", "x' OR 1=1"]);
    assert!(
        forged.contains("continue token: not one that a page came with") && forged.contains("hint:"),
        "{forged}"
    );
}

fn a_scan_is_reported_and_a_plan_shown(database: &Database) {
    let output = database.run(&["get", "pipelineruns", "--where", "actor=actor0", "-o", "name"]);
    assert_eq!(text_of(&output.stdout).lines().count(), 6);
    assert_eq!(
        text_of(&output.stderr),
        "note: this reads all rows of PipelineRun: no key starts with actor\n  \
         hint: `key = true` on column actor of [kinds.PipelineRun] in crds.toml makes it fast\n"
    );
    let lacking = database.run(&["get", "pipelineruns", "-l", "!old"]);
    assert!(
        text_of(&lacking.stderr).contains("labels have a key for `a=b` and `a in (…)` alone"),
        "{lacking:?}"
    );
    let narrowed = database.run(&["get", "pipelineruns", "-n", "prod", "--where", "actor=actor0"]);
    assert_eq!(text_of(&narrowed.stderr), "", "the namespace has a key");
    let sorted = database.run(&["get", "pipelineruns", "--sort", "update_time"]);
    assert!(
        text_of(&sorted.stderr).contains("this sorts all rows of PipelineRun"),
        "{sorted:?}"
    );
    let plan = database.stdout(&["get", "pipelineruns", "-l", "team=fraud", "--explain"]);
    assert!(
        plan.starts_with("SELECT t.`uid`") && plan.contains("= fraud\n"),
        "{plan}"
    );
    assert!(plan.contains("pipelinerun_labels"), "{plan}");
    let meant = database.run(&["get", "pipelineruns", "--where", "state=FAILED"]);
    assert!(
        text_of(&meant.stderr).contains("hint: state=PIPELINE_RUN_STATE_FAILED"),
        "{meant:?}"
    );
}

fn errors_are_explained(database: &Database) {
    for (flags, words) in [
        (["-l", "a in b"], "unable to parse requirement: found 'b' expected: '('"),
        (
            ["-l", "team=x'; DROP TABLE pipelinerun; --"],
            "a valid label must be an empty string or consist of",
        ),
        (
            ["--field-selector", "spec.nothing=a"],
            "field label not supported: spec.nothing",
        ),
        (
            ["--where", "color=red"],
            "PipelineRun has no column \"color\": one of pipeline_namespace, ",
        ),
        (["--where", "state"], "expected one of ="),
        (["--where", "create_time>soon"], "\"soon\" is not a time"),
        (["--sort", "state:down"], "expected asc or desc after the colon"),
        (["--limit", "0"], "0 is not in 1..=100000"),
    ] {
        let stderr = database.refused(&[&["get", "pipelineruns"], &flags[..]].concat());
        assert!(stderr.contains(words), "{flags:?}: {stderr}");
    }
    let stderr = database.refused(&["get", "pipelineruns", "--where", "state=A or (color = red)"]);
    assert!(
        stderr.ends_with("\n  state=A or (color = red)\n              ^\n"),
        "{stderr}"
    );
    let output = database.run(&["get", "pipelineruns", "--where", "state=A or namespace=b"]);
    assert!(
        text_of(&output.stderr).contains("no one key serves each side of the `or`"),
        "{output:?}"
    );
    let stderr = database.refused(&["get", "pipelinerun/r00", "-n", "prod", "-l", "team"]);
    assert!(stderr.contains("one object is shown by its name alone"), "{stderr}");
    assert_eq!(
        database.stdout(&["get", "pipelineruns", "--count"]),
        "11\n",
        "nothing was dropped"
    );
}

fn named_queries_are_listed_and_run(database: &Database) {
    let list = database.stdout(&["query"]);
    assert!(
        list.starts_with("NAME ") && list.contains("failed-runs ") && list.contains("namespace=TEXT"),
        "{list}"
    );
    let list: Value = serde_json::from_str(&database.stdout(&["query", "-o", "json"])).expect("JSON");
    assert_eq!(list[0]["parameters"], json!([{"name": "namespace", "type": "text"}]));

    let failed = ["query", "failed-runs", "-p", "namespace=prod"];
    assert_eq!(database.names(&failed), "r09 r06 r00");
    assert_eq!(database.names(&[&failed[..], &["--limit", "1"]].concat()), "r09");
    assert_eq!(database.stdout(&[&failed[..], &["--count"]].concat()), "3\n");
    let plan = database.stdout(&[&failed[..], &["--explain"]].concat());
    assert!(
        plan.contains("= PIPELINE_RUN_STATE_FAILED\n") && plan.contains("= prod\n"),
        "{plan}"
    );
    assert_eq!(
        database.names(&["query", "models-by-algorithm", "-p", "algorithm=xgboost"]),
        "fraud"
    );
    assert_eq!(
        database.names(&["query", "failed-runs", "-p", "namespace=prod' OR '1'='1"]),
        ""
    );

    for (flags, words) in [
        (
            &["nothing"][..],
            "there is no query \"nothing\": one of failed-runs, models-by-algorithm",
        ),
        (&["failed-runs"], "query failed-runs: parameter namespace is missing"),
        (
            &["failed-runs"],
            "hint: as in: kindex query failed-runs -p namespace=TEXT",
        ),
        (
            &["failed-runs", "-p", "ns=prod"],
            "query failed-runs has no parameter \"ns\": one of namespace",
        ),
        (
            &["failed-runs", "-p", "namespace"],
            "parameter \"namespace\" has no `=`",
        ),
        (
            &["failed-runs", "-p", "namespace=a", "-p", "namespace=b"],
            "parameter namespace is given twice",
        ),
    ] {
        let stderr = database.refused(&[&["query"], flags].concat());
        assert!(stderr.contains(words), "{flags:?}: {stderr}");
    }
}

fn the_past_is_listed(database: &Database) {
    let stored = at(0).to_string();
    assert_eq!(database.names(&["get", "models", "--at", &stored]), "fraud");
    assert_eq!(database.names(&["get", "models", "-n", "test", "--at", &stored]), "");
    assert_eq!(database.names(&["get", "models", "--at", &at(-1).to_string()]), "");
    let table = database.stdout(&["get", "models", "-n", "prod", "--at", &stored]);
    assert!(table.contains("xgboost") && table.contains("live"), "{table}");
    let stderr = database.refused(&["get", "pipelineruns", "--at", &stored]);
    assert!(
        stderr.contains("PipelineRun keeps no history")
            && stderr.contains("`history = true` under [kinds.PipelineRun] in crds.toml"),
        "{stderr}"
    );
    for more in [&["-l", "team"][..], &["--deleted"], &["--sort", "name"], &["--count"]] {
        let stderr = database.refused(&[&["get", "models", "--at", &stored], more].concat());
        assert!(
            stderr.contains("the past is listed by namespace alone"),
            "{more:?}: {stderr}"
        );
    }
    let stderr = database.refused(&["get", "models", "--at", &stored, "--continue", "x' OR 1=1"]);
    assert!(
        stderr.contains("continue token: not one that a page came with"),
        "{stderr}"
    );
}

fn nothing_found_is_reported(database: &Database) {
    for (args, stderr) in [
        (&["get", "models", "-n", "nowhere"][..], "No models found.\n"),
        (&["get", "models", "-n", "nowhere", "-o", "name"], "No models found.\n"),
        (
            &["query", "failed-runs", "-p", "namespace=nowhere"],
            "No pipelineruns found.\n",
        ),
    ] {
        let output = database.run(args);
        assert!(
            output.status.success() && output.stdout.is_empty(),
            "{args:?}: {output:?}"
        );
        assert_eq!(text_of(&output.stderr), stderr, "{args:?}");
    }
    let list: Value =
        serde_json::from_str(&database.stdout(&["get", "models", "-n", "nowhere", "-o", "json"])).expect("JSON");
    assert_eq!(list["items"], json!([]), "a program reads a list");
}
