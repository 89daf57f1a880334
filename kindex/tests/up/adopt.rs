//! A database of Michelangelo's own ingester under a cluster that holds its live objects, as an
//! operator upgrades it: look, adopt, go on.

use std::path::Path;
use std::process::Output;

use kindex_harness::mariadb::MariaDb;
use kindex_harness::mysql::MySql;
use kindex_harness::reference::{self, Row};
use kindex_harness::require::require;
use serde_json::{Value, json};
use sqlx::mysql::{MySqlConnectOptions, MySqlConnection};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Row as _};

use super::process::{Running, wait_for};
use super::text_of;

const DATABASE: &str = "michelangelo";

#[tokio::test(flavor = "multi_thread")]
async fn a_reference_database_is_upgraded_on_mariadb() {
    if require("mariadb", MariaDb::installed()) {
        let server = MariaDb::start(&["--innodb-flush-log-at-trx-commit=0"]);
        upgrade(server.port).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reference_database_is_upgraded_on_mysql() {
    if require("mysql", MySql::installed()) {
        let server = MySql::start(&["--innodb-flush-log-at-trx-commit=0"]);
        upgrade(server.port).await;
    }
}

async fn upgrade(port: u16) {
    let mut run = Running::samples_without_ingester();
    let mut connection = connect(port).await;
    plant(&mut connection, &run.data_dir().join("kindex.db")).await;
    let address = format!("mysql://root@127.0.0.1:{port}/{DATABASE}");
    let kindex = |run: &Running, args: &[&str]| run.command(&[args, &["--database", &address]].concat());

    let refused = kindex(&run, &["migrate"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        text_of(&refused.stderr).contains("kindex migrate --adopt"),
        "{}",
        text_of(&refused.stderr)
    );

    let drift = against(&address);
    assert_eq!(drift.status.code(), Some(2), "{}", text_of(&drift.stderr));
    let drift: Value = serde_json::from_slice(&drift.stdout).expect("JSON");
    let differences = drift["differences"].as_array().expect("a list");
    for (table, object, state) in [
        ("model", "column content_hash", "missing"),
        ("project", "column tier", "different"),
        ("pipeline_labels", "collation", "different"),
        ("pipelinerun", "key pipelinerun_delete_time", "missing"),
        ("model_history", "table", "missing"),
    ] {
        let found = differences
            .iter()
            .find(|it| it["table"] == table && it["object"] == object);
        assert_eq!(found.expect(object)["state"], state, "{table} {object}");
    }

    let dry = kindex(&run, &["migrate", "--adopt", "--dry-run"]);
    assert!(
        text_of(&dry.stdout).contains("change table model_labels"),
        "{}",
        text_of(&dry.stdout)
    );
    let adopted = kindex(&run, &["migrate", "--adopt", "-o", "json"]);
    assert!(adopted.status.success(), "{}", text_of(&adopted.stderr));
    let adopted: Value = serde_json::from_slice(&adopted.stdout).expect("JSON");
    let kinds = adopted["kinds"].as_array().expect("a list");
    assert_eq!(kinds.len(), 13);
    for kind in kinds {
        assert_eq!(
            (&kind["rows"], &kind["evicted"], &kind["unread"]),
            (&json!(3), &json!(1), &json!(0)),
            "{kind}"
        );
    }
    let same = against(&address);
    assert_eq!(same.status.code(), Some(0), "{}", text_of(&same.stdout));

    // The ingester takes it from here.
    run.restart_with(&["--database", &address]);
    let verify = |run: &Running| kindex(run, &["verify", "--settle", "0.05"]);
    wait_for("a clean verify", || verify(&run).status.success());
    for table in reference::tables() {
        let sql = format!(
            "SELECT CONCAT(SUM(delete_time IS NULL AND evicted_time IS NULL), SUM(evicted_time IS NOT NULL), \
             SUM(delete_time IS NOT NULL), SUM(content_hash IS NULL)) FROM `{table}`"
        );
        let row = sqlx::query(AssertSqlSafe(sql)).fetch_one(&mut connection).await;
        let counts: String = row.expect("counted").try_get_unchecked(0).expect("text");
        assert_eq!(
            counts, "1110",
            "{table}: a row live, one archived, one deleted, and all of them ours"
        );
    }
}

fn against(address: &str) -> Output {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_kindex"));
    command.args(["plan", "--exit-code", "-o", "json", "--root"]);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    command.args(["--against", address]).output().expect("kindex runs")
}

async fn connect(port: u16) -> MySqlConnection {
    let options = MySqlConnectOptions::new().host("127.0.0.1").username("root");
    let mut connection = options.port(port).connect().await.expect("the server answers");
    reference::create_database(&mut connection, DATABASE).await;
    connection
}

/// Of each object of the cluster a row as the reference has it, and two of objects that are gone:
/// one deleted, one archived with its mark.
async fn plant(connection: &mut MySqlConnection, cluster_rows: &Path) {
    let mut ours = SqliteConnectOptions::new()
        .filename(cluster_rows)
        .connect()
        .await
        .expect("it opens");
    for table in reference::tables() {
        let sql = AssertSqlSafe(format!("SELECT json, proto FROM `{table}`"));
        let row = sqlx::query(sql)
            .fetch_one(&mut ours)
            .await
            .expect("a sample of each kind");
        let mut live: Value = serde_json::from_str(row.get(0)).expect("JSON");
        // The reference's types know no managed fields, and its objects are written without their type.
        for (parent, field) in [("/metadata", "managedFields"), ("", "apiVersion"), ("", "kind")] {
            let parent = live.pointer_mut(parent).and_then(Value::as_object_mut);
            parent.expect("an object").remove(field);
        }
        let renamed = |state: &str| {
            let mut object = live.clone();
            object["metadata"]["name"] = json!(state);
            object["metadata"]["uid"] = json!(format!("{table}-{state}"));
            object
        };
        let mut archived = renamed("archived");
        archived["metadata"]["annotations"]["michelangelo/Immutable"] = json!("true");
        let deleted = renamed("deleted");
        for (object, delete_time) in [
            (&live, None),
            (&archived, None),
            (&deleted, Some("2026-04-01 00:00:00")),
        ] {
            let row = Row {
                table,
                object,
                proto: row.get(1),
                delete_time,
            };
            row.insert(connection).await;
        }
    }
}
