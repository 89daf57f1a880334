//! One scenario's world: a cluster, `kindex up` configured as a controllermgr is, and a MariaDB
//! server that can be taken away.

use std::fs;
use std::path::PathBuf;

use kindex_harness::mariadb::MariaDb;
use kindex_harness::require::require;
use kindex_harness::scrape::Scrape;
use kindex_harness::wait::wait_until;
use serde_json::Value;
use sqlx::mysql::MySqlConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, Row as _};
use tempfile::TempDir;

use crate::process::{Running, kubectl_is_there, wait_for};
use crate::site::Site;
use crate::text_of;

/// A Model, as an API server writes it that adds the finalizer to what it creates.
pub(super) const WITH_FINALIZER: &str = r#"
apiVersion: michelangelo.api/v2
kind: Model
metadata: {name: test-model, namespace: default, labels: {team: risk}, finalizers: [michelangelo/Ingester]}
spec: {algorithm: xgboost, trainingFramework: sklearn, owner: {name: ada}}
"#;

/// The scenarios are those of an ingester: nobody else puts finalizers on objects.
const ALONE: &str = "--deletion=false";

/// Waits for all that a machine with much to do still has to do.
pub(super) const STATUS: [&str; 4] = ["status", "--wait", "--timeout", "240"];

/// The 13 kinds.
pub(super) const KINDS: [&str; 13] = [
    "Project",
    "ModelFamily",
    "Model",
    "Pipeline",
    "PipelineRun",
    "InferenceServer",
    "Revision",
    "Cluster",
    "RayCluster",
    "RayJob",
    "TriggerRun",
    "Deployment",
    "SparkJob",
];

/// A scenario under way.
pub(super) struct Stage {
    pub(super) run: Running,
    pub(super) server: MariaDb,
    directory: TempDir,
}

impl Stage {
    /// Starts everything, with more lines under `metadataStorage`; `None` where a component is missing that nobody
    /// asked for.
    pub(super) fn start(site: &Site, more: &str) -> Option<Self> {
        let stage = Self::begin(site, |directory, port| on(directory, port, more))?;
        stage.wait_until_ready();
        Some(stage)
    }

    /// The same with the ingester switched off.
    pub(super) fn switched_off(site: &Site) -> Option<Self> {
        Self::begin(site, |directory, _| off(directory))
    }

    fn begin(site: &Site, config: impl FnOnce(&TempDir, u16) -> PathBuf) -> Option<Self> {
        if !kubectl_is_there() || !require("mariadb", MariaDb::installed()) {
            return None;
        }
        let directory = tempfile::tempdir().expect("a temporary directory");
        let server = MariaDb::start(&["--innodb-flush-log-at-trx-commit=0"]);
        let config = config(&directory, server.port);
        let run = Running::start_on(site, &[ALONE, "--config", &config.display().to_string()]);
        Some(Self { run, server, directory })
    }

    /// Restarts with both stanzas, and more flags.
    pub(super) fn enable(&mut self, flags: &[&str]) {
        let config = on(&self.directory, self.server.port, "").display().to_string();
        self.run.kill();
        self.run.restart_with(&[&[ALONE, "--config", &config], flags].concat());
        self.wait_until_ready();
    }

    pub(super) fn wait_until_ready(&self) {
        wait_for("readiness", || self.run.request("/readyz").0 == 200);
    }

    /// Restarts without them: a cluster and no ingester.
    pub(super) fn disable(&mut self) {
        let config = off(&self.directory).display().to_string();
        self.run.kill();
        self.run.restart_with(&[ALONE, "--config", &config]);
    }

    /// A command of kindex on both sides.
    pub(super) fn command(&self, args: &[&str]) -> (Option<i32>, String, String) {
        let address = format!("mysql://root@127.0.0.1:{}/michelangelo", self.server.port);
        let output = self.run.command(&[args, &["--database", &address]].concat());
        (output.status.code(), text_of(&output.stdout), text_of(&output.stderr))
    }

    /// What such a command reports of all kinds; it has to succeed.
    pub(super) fn report(&self, args: &[&str]) -> Vec<Value> {
        let (code, stdout, stderr) = self.command(&[args, &["--output", "json"]].concat());
        assert_eq!(code, Some(0), "{args:?}: {stdout}{stderr}");
        serde_json::from_str(&stdout).expect("a list")
    }

    /// One value of the database, as text; `None` where there is no row, or NULL.
    pub(super) fn sql(&self, query: &str) -> Option<String> {
        self.on_server(query, async |mut connection, text| {
            let row = sqlx::raw_sql(text).fetch_optional(&mut connection).await?;
            connection.close().await?;
            row.map_or(Ok(None), |row| row.try_get_unchecked(0))
        })
    }

    /// Executes SQL, as anybody could.
    pub(super) fn execute(&self, statement: &str) {
        self.on_server(statement, async |mut connection, text| {
            sqlx::raw_sql(text).execute(&mut connection).await?;
            connection.close().await
        });
    }

    fn on_server<T>(
        &self,
        text: &str,
        query: impl AsyncFnOnce(sqlx::MySqlConnection, sqlx::AssertSqlSafe<String>) -> sqlx::Result<T>,
    ) -> T {
        let options = MySqlConnectOptions::new()
            .host("127.0.0.1")
            .port(self.server.port)
            .username("root")
            .database("michelangelo");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let answered = runtime.expect("a runtime").block_on(async {
            let connection = options.connect().await?;
            query(connection, sqlx::AssertSqlSafe(text.to_owned())).await
        });
        answered.unwrap_or_else(|error| panic!("{text}: {error}; the log:\n{}", self.run.log()))
    }

    /// How many rows of a table are live, of `SELECT COUNT(*) … WHERE delete_time IS NULL`.
    pub(super) fn live(&self, table: &str) -> u64 {
        let count = self.sql(&format!(
            "SELECT CAST(COUNT(*) AS CHAR) FROM {table} WHERE delete_time IS NULL"
        ));
        count.expect("a count").parse().expect("a number")
    }

    /// A column of the Model's row, as text.
    pub(super) fn of_row(&self, column: &str) -> Option<String> {
        self.sql(&format!("SELECT CAST({column} AS CHAR) FROM model"))
    }

    pub(super) fn wait_for_row(&self) {
        wait_for("the row", || self.live("model") == 1);
    }

    /// The Model as the cluster has it; `None` where it is gone.
    pub(super) fn object(&self) -> Option<Value> {
        let args = ["get", "model", "test-model", "--ignore-not-found", "-o", "json"];
        serde_json::from_str(&self.run.kubectl(&args, "")).ok()
    }

    pub(super) fn is_terminating(&self) -> bool {
        self.object()
            .is_some_and(|object| object["metadata"]["deletionTimestamp"].is_string())
    }

    pub(super) fn wait_until_gone(&self) {
        wait_for("the object to go", || self.object().is_none());
    }

    /// kubectl, with the words apart.
    pub(super) fn kubectl(&self, words: &str) -> String {
        let words: Vec<&str> = words.split_whitespace().collect();
        self.run.kubectl(&words, "")
    }

    pub(super) fn wait_for_log(&self, text: &str) {
        wait_until(&format!("{text:?} in the log"), || {
            let log = self.run.log();
            if log.contains(text) { Ok(()) } else { Err(log) }
        });
    }

    /// Rows that were written of a kind, by what became of them.
    pub(super) fn written(&self, kind: &str, result: &str) -> f64 {
        let scrape = Scrape::parse(&self.run.request("/metrics").1);
        let written = scrape
            .samples
            .iter()
            .filter(|sample| sample.name == "kindex_ingester_written_total");
        let found = written.filter(|sample| sample.labels["kind"] == kind && sample.labels["result"] == result);
        found.map(|sample| sample.value).sum()
    }
}

fn on(directory: &TempDir, port: u16, more: &str) -> PathBuf {
    let text = format!(
        "metadataStorage:\n  enableMetadataStorage: true\n{more}\n\
         mysql:\n  host: 127.0.0.1\n  port: {port}\n  user: root\n  database: michelangelo\n  \
         maxOpenConns: 25\n  maxIdleConns: 5\n  connMaxLifetime: 5m\n\
         ingester:\n  concurrentReconciles: 2\n  requeuePeriod: 1s\n"
    );
    write(directory, "on.yaml", &text)
}

fn off(directory: &TempDir) -> PathBuf {
    write(directory, "off.yaml", "ingester:\n  concurrentReconciles: 2\n")
}

fn write(directory: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = directory.path().join(name);
    fs::write(&path, text).expect("writable");
    path
}
