//! Deleting what is archived itself, with kubectl against `kindex up`: its holders are deleted with it or are waited
//! for, and it goes last, over kills in between. On SQLite and on MariaDB.

use std::process::Output;

use kindex_harness::mariadb::MariaDb;
use kindex_harness::require::require;
use kindex_harness::wait::wait_until;
use sqlx::mysql::MySqlConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, Row as _};

use super::process::{Running, kubectl_is_there, wait_for};
use super::text_of;

const PIPELINE: &str = "
apiVersion: michelangelo.api/v2
kind: Pipeline
metadata: {name: p, namespace: default}
spec: {type: PIPELINE_TYPE_TRAIN}
";
const MODEL: &str = "
apiVersion: michelangelo.api/v2
kind: Model
metadata: {name: m, namespace: default}
spec: {algorithm: a}
";
const REFERENCES: &str = "/api/v1/pipelines/default/p/references";

/// `kindex up`, with the server of its database where that is no file.
struct Stage {
    run: Running,
    /// The flag that names the database, where it needs one.
    database: Vec<String>,
    server: Option<MariaDb>,
}

impl Stage {
    fn start(server: Option<MariaDb>) -> Self {
        let address = |server: &MariaDb| format!("mysql://root@127.0.0.1:{}/kindex", server.port);
        let database = server.as_ref().map(address);
        let database = database.map_or_else(Vec::new, |address| vec!["--database".to_owned(), address]);
        let mut flags = vec!["--blocked-after", "1"];
        flags.extend(database.iter().map(String::as_str));
        let run = Running::start(&flags);
        wait_for("the tables", || run.request("/readyz").0 == 200);
        Self { run, database, server }
    }

    /// A command of kindex on the database.
    fn command(&self, args: &[&str]) -> Output {
        let database = self.database.iter().map(String::as_str);
        let args: Vec<&str> = args.iter().copied().chain(database).collect();
        self.run.command(&args)
    }

    /// How many rows of a table meet a condition.
    fn count(&self, table: &str, condition: &str) -> u64 {
        let sql = format!("SELECT CAST(COUNT(*) AS CHAR) FROM {table} WHERE {condition}");
        let count = match &self.server {
            Some(server) => text_on(server, &sql),
            None => self.run.text(&sql),
        };
        count.parse().expect("a number")
    }
}

/// One text of the database on a server.
fn text_on(server: &MariaDb, sql: &str) -> String {
    let options = MySqlConnectOptions::new()
        .host("127.0.0.1")
        .port(server.port)
        .username("root")
        .database("kindex");
    let read = async {
        let mut connection = options.connect().await?;
        let row = sqlx::query(sqlx::AssertSqlSafe(sql)).fetch_one(&mut connection).await?;
        connection.close().await?;
        let text: String = row.try_get_unchecked(0)?;
        Ok::<_, sqlx::Error>(text)
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(read).expect(sql)
}

fn run_of_pipeline(name: &str) -> String {
    format!(
        "apiVersion: michelangelo.api/v2\nkind: PipelineRun\n\
         metadata: {{name: {name}, namespace: default}}\n\
         spec: {{pipeline: {{namespace: default, name: p}}}}\n"
    )
}

/// A run that holds the pipeline, and is one of another pipeline by now.
fn move_away(run: &Running) {
    run.kubectl(&["create", "-f", "-"], &run_of_pipeline("moved"));
    hold(run, "pipelinerun", "moved");
    run.kubectl(&["apply", "-f", "-"], &PIPELINE.replace("name: p,", "name: q,"));
    let other = r#"{"spec":{"pipeline":{"name":"q"}}}"#;
    run.kubectl(&["patch", "pipelinerun", "moved", "--type=merge", "-p", other], "");
    wait_for("the reference on the other pipeline", || {
        let finalizers = run.kubectl(&["get", "pipeline", "q", "-o", "jsonpath={.metadata.finalizers}"], "");
        finalizers.contains("pipelinerun.michelangelo.api/")
    });
}

fn server(run: &Running) -> String {
    format!("http://{}", run.api().expect("it says where"))
}

/// Lets an object of the cluster hold the pipeline.
fn hold(run: &Running, resource: &str, name: &str) {
    let uid = run.kubectl(&["get", resource, name, "-o", "jsonpath={.metadata.uid}"], "");
    let path = format!("{REFERENCES}/{resource}.michelangelo.api/{uid}");
    run.kubectl(&["--server", &server(run), "replace", "--raw", &path, "-f", "-"], "{}");
}

fn phase(run: &Running) -> String {
    let path = r"jsonpath={.metadata.annotations.michelangelo\.api/deletion-phase}";
    let server = server(run);
    run.kubectl(
        &[
            "--server",
            &server,
            "get",
            "pipeline",
            "p",
            "--ignore-not-found",
            "-o",
            path,
        ],
        "",
    )
}

/// A pipeline in the archive, with a run there, a live one, and a live model, which all hold it.
fn archived(server: Option<MariaDb>) -> Stage {
    let stage = Stage::start(server);
    let run = &stage.run;
    run.kubectl(&["apply", "-f", "-"], PIPELINE);
    run.kubectl(&["create", "-f", "-"], &run_of_pipeline("archived"));
    let path = "jsonpath={.metadata.finalizers}";
    wait_for("its reference", || {
        let finalizers = run.kubectl(&["get", "pipeline", "p", "-o", path], "");
        finalizers.contains("pipelinerun.michelangelo.api/")
    });
    run.kubectl(
        &["annotate", "pipelinerun", "archived", "michelangelo/Immutable=true"],
        "",
    );
    wait_for("the run to be archived", || {
        stage.count("pipelinerun", "evicted_time IS NOT NULL") == 1 && stage.count("kindex_reference", "1 = 1") == 1
    });
    run.kubectl(&["annotate", "pipeline", "p", "michelangelo/Immutable=true"], "");
    wait_for("the pipeline to be archived", || {
        run.kubectl(&["get", "pipelines", "-o", "name"], "").trim().is_empty()
            && stage.count("pipeline", "evicted_time IS NOT NULL") == 1
    });
    run.kubectl(&["create", "-f", "-"], &run_of_pipeline("live"));
    run.kubectl(&["create", "-f", "-"], MODEL);
    hold(run, "pipelinerun", "live");
    hold(run, "model", "m");
    assert_eq!(stage.count("kindex_reference", "kind = 'Pipeline'"), 3);
    stage
}

#[test]
fn an_archived_pipeline_takes_its_runs_along_and_waits_for_a_model_over_kills() {
    if kubectl_is_there() {
        walk(archived(None));
    }
}

#[test]
fn an_archived_pipeline_of_mariadb_takes_its_runs_along_and_waits_for_a_model_too() {
    if kubectl_is_there() && require("mariadb", MariaDb::installed()) {
        walk(archived(Some(MariaDb::start(&["--innodb-flush-log-at-trx-commit=0"]))));
    }
}

fn walk(mut stage: Stage) {
    move_away(&stage.run);
    assert_eq!(stage.count("kindex_reference", "kind = 'Pipeline'"), 4);
    let api = server(&stage.run);
    let deletion = ["--server", &api, "delete", "pipeline", "p", "--wait=false"];
    stage.run.kubectl(&deletion, "");
    stage.run.kill();
    stage.run.restart();
    wait_for("the live run to go, and the other one to stay", || {
        let left = stage.run.kubectl(&["get", "pipelineruns", "-o", "name"], "");
        left.trim() == "pipelinerun.michelangelo.api/moved"
    });
    wait_for("SQL to know", || {
        stage.count("pipelinerun", "delete_time IS NOT NULL") == 2
    });
    wait_for("the row of the model to be left", || {
        stage.count("kindex_reference", "1 = 1") == 1 && phase(&stage.run) == "DELETING"
    });
    wait_for("the event", || {
        let events = stage
            .run
            .kubectl(&["get", "events", "-o", "jsonpath={.items[*].message}"], "");
        events.contains("still in use by model.michelangelo.api default/m")
    });
    let why = text_of(&stage.command(&["why", "pipeline/p"]).stdout);
    assert!(why.contains("model/default/m  Live"), "{why}");
    assert!(why.contains("\nIts deletion so far:\n  Deleting "), "{why}");
    assert_eq!(
        stage.count("pipeline", "name = 'p' AND delete_time IS NULL"),
        1,
        "it waits"
    );

    stage.run.kubectl(&["delete", "model", "m", "--wait=false"], "");
    stage.run.kill();
    stage.run.restart();
    wait_for("the pipeline to go", || {
        stage.count("pipeline", "delete_time IS NOT NULL") == 1
    });
    assert_eq!(stage.count("kindex_tombstone", "1 = 1"), 0);
    assert_eq!(stage.count("kindex_reference", "1 = 1"), 0);
    // The model goes from the cluster and in SQL after it has let go of the pipeline.
    wait_until("equality", || {
        let verified = stage.command(&["verify", "--settle", "0.2"]);
        let is_equal = verified.status.success();
        is_equal.then_some(()).ok_or_else(|| text_of(&verified.stdout))
    });
}
