//! Databases as Michelangelo's own ingester makes and fills them: its 39 tables with the types, keys
//! and collation of its schema file, and rows with all values in its words. Knows nothing of Kindex.

use serde_json::Value;
use sqlx::mysql::MySqlConnection;
use sqlx::{AssertSqlSafe, Executor};

/// A main table: name, extracted columns, keys on these.
type Main = (&'static str, &'static [Column], &'static [Key]);
/// Name, type, and the path that its value is read from.
type Column = (&'static str, &'static str, &'static [&'static str]);
/// Name and columns.
type Key = (&'static str, &'static str);

const NAME: &str = "VARCHAR(255)";

/// In the order of its schema file. Numbers and flags are kept as text.
const TABLES: [Main; 13] = [
    (
        "model",
        &[
            ("algorithm", NAME, &["spec", "algorithm"]),
            ("training_framework", NAME, &["spec", "trainingFramework"]),
            ("owner", NAME, &["spec", "owner", "name"]),
            ("source", NAME, &["spec", "source"]),
            ("description", "VARCHAR(768)", &["spec", "description"]),
            ("model_kind", NAME, &["spec", "kind"]),
            ("package_type", NAME, &["spec", "packageType"]),
            ("revision_id", NAME, &["spec", "revisionId"]),
            (
                "src_pipeline_run_namespace",
                NAME,
                &["spec", "sourcePipelineRun", "namespace"],
            ),
            ("src_pipeline_run_name", NAME, &["spec", "sourcePipelineRun", "name"]),
            ("model_family_namespace", NAME, &["spec", "modelFamily", "namespace"]),
            ("model_family_name", NAME, &["spec", "modelFamily", "name"]),
            (
                "feature_eval_report_namespace",
                NAME,
                &["spec", "featureEvaluationReport", "namespace"],
            ),
            (
                "feature_eval_report_name",
                NAME,
                &["spec", "featureEvaluationReport", "name"],
            ),
            (
                "performance_eval_report_namespace",
                NAME,
                &["spec", "performanceEvaluationReport", "namespace"],
            ),
            (
                "performance_eval_report_name",
                NAME,
                &["spec", "performanceEvaluationReport", "name"],
            ),
            (
                "feature_quality_report_namespace",
                NAME,
                &["spec", "featureQualityReport", "namespace"],
            ),
            (
                "feature_quality_report_name",
                NAME,
                &["spec", "featureQualityReport", "name"],
            ),
            (
                "explainability_report_namespace",
                NAME,
                &["spec", "explainabilityReport", "namespace"],
            ),
            (
                "explainability_report_name",
                NAME,
                &["spec", "explainabilityReport", "name"],
            ),
        ],
        &[("model_algorithm", "`algorithm`"), ("model_owner", "`owner`")],
    ),
    ("modelfamily", &[("model_family_name", NAME, &["spec", "name"])], &[]),
    (
        "pipeline",
        &[
            ("owner", NAME, &["spec", "owner", "name"]),
            ("pipeline_type", NAME, &["spec", "type"]),
        ],
        &[("pipeline_owner", "`owner`")],
    ),
    (
        "pipelinerun",
        &[
            ("pipeline_namespace", NAME, &["spec", "pipeline", "namespace"]),
            ("pipeline_name", NAME, &["spec", "pipeline", "name"]),
            ("revision_namespace", NAME, &["spec", "revision", "namespace"]),
            ("revision_name", NAME, &["spec", "revision", "name"]),
            (
                "resume_pipeline_run_namespace",
                NAME,
                &["spec", "resume", "pipelineRun", "namespace"],
            ),
            (
                "resume_pipeline_run_name",
                NAME,
                &["spec", "resume", "pipelineRun", "name"],
            ),
            ("state", NAME, &["status", "state"]),
            ("actor", NAME, &["spec", "actor", "name"]),
            ("end_time", "DATETIME", &[]),
            ("exception_type", NAME, &["status", "exceptionType"]),
        ],
        &[
            ("pipelinerun_pipeline", "`pipeline_namespace`, `pipeline_name`"),
            ("pipelinerun_state", "`state`"),
        ],
    ),
    (
        "deployment",
        &[
            ("state", NAME, &["status", "state"]),
            ("target_definition_type", NAME, &["spec", "definition", "type"]),
            (
                "current_revision_namespace",
                NAME,
                &["status", "currentRevision", "namespace"],
            ),
            ("current_revision_name", NAME, &["status", "currentRevision", "name"]),
            ("deletion_requested_timestamp", "DATETIME", &[]),
        ],
        &[("deployment_state", "`state`")],
    ),
    (
        "inferenceserver",
        &[("state", NAME, &["status", "state"])],
        &[("inferenceserver_state", "`state`")],
    ),
    ("project", &[("tier", NAME, &["spec", "tier"])], &[]),
    (
        "revision",
        &[
            ("base_resource_namespace", NAME, &["spec", "baseResource", "namespace"]),
            ("base_resource_name", NAME, &["spec", "baseResource", "name"]),
            ("base_type", NAME, &["spec", "baseType", "kind"]),
            ("commit_branch", NAME, &["spec", "commit", "branch"]),
            ("git_ref", NAME, &["spec", "commit", "gitRef"]),
            ("owner", NAME, &["spec", "owner", "name"]),
        ],
        &[(
            "revision_base_resource",
            "`base_resource_namespace`, `base_resource_name`",
        )],
    ),
    ("cluster", &[], &[]),
    ("raycluster", &[], &[]),
    ("rayjob", &[], &[]),
    ("sparkjob", &[], &[]),
    (
        "triggerrun",
        &[
            ("pipeline_namespace", NAME, &["spec", "pipeline", "namespace"]),
            ("pipeline_name", NAME, &["spec", "pipeline", "name"]),
            ("revision_namespace", NAME, &["spec", "revision", "namespace"]),
            ("revision_name", NAME, &["spec", "revision", "name"]),
            ("state", NAME, &["status", "state"]),
            ("auto_flip", NAME, &["spec", "autoFlip"]),
        ],
        &[
            ("triggerrun_pipeline", "`pipeline_namespace`, `pipeline_name`"),
            ("triggerrun_state", "`state`"),
        ],
    ),
];

/// Its main tables.
pub fn tables() -> impl Iterator<Item = &'static str> {
    TABLES.iter().map(|(table, ..)| *table)
}

/// The statements of its schema file, for the database that is in use.
pub fn schema() -> Vec<String> {
    TABLES.iter().flat_map(statements).collect()
}

fn statements((table, columns, keys): &Main) -> [String; 3] {
    let mut lines: Vec<String> = [
        "`uid` VARCHAR(255) NOT NULL",
        "`group_ver` VARCHAR(255) NOT NULL",
        "`namespace` VARCHAR(255) NOT NULL",
        "`name` VARCHAR(255) NOT NULL",
        "`res_version` BIGINT UNSIGNED NOT NULL",
        "`create_time` DATETIME NOT NULL",
        "`update_time` DATETIME",
        "`delete_time` DATETIME",
        "`proto` MEDIUMBLOB",
        "`json` JSON",
    ]
    .map(str::to_owned)
    .into();
    lines.extend(columns.iter().map(|(name, ty, _)| format!("`{name}` {ty}")));
    lines.push("PRIMARY KEY (`uid`)".to_owned());
    lines.push(format!("KEY `{table}_namespace_name` (`namespace`, `name`)"));
    lines.push(format!("KEY `{table}_create_time` (`create_time`)"));
    lines.extend(keys.iter().map(|(name, columns)| format!("KEY `{name}` ({columns})")));
    let side = |suffix: &str, value: &str, keys: &str| {
        let name = format!("{table}_{suffix}");
        let lines = [
            "`id` BIGINT NOT NULL AUTO_INCREMENT".to_owned(),
            "`obj_uid` VARCHAR(255) NOT NULL".to_owned(),
            "`key` VARCHAR(255) NOT NULL".to_owned(),
            format!("`value` {value}"),
            "PRIMARY KEY (`id`)".to_owned(),
            format!("KEY `{name}_uid` (`obj_uid`){keys}"),
        ];
        create(&name, &lines)
    };
    [
        create(table, &lines),
        side(
            "labels",
            "VARCHAR(63)",
            &format!(",\n    KEY `{table}_labels_key_value` (`key`, `value`)"),
        ),
        side("annotations", "TEXT", ""),
    ]
}

fn create(table: &str, lines: &[String]) -> String {
    format!(
        "CREATE TABLE IF NOT EXISTS `{table}` (\n    {}\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 \
         COLLATE=utf8mb4_unicode_ci",
        lines.join(",\n    ")
    )
}

/// A row as its ingester writes it.
pub struct Row<'a> {
    /// The main table.
    pub table: &'a str,
    /// The object as it serializes it: no managed fields, no default values.
    pub object: &'a Value,
    /// Its message.
    pub proto: Option<Vec<u8>>,
    /// When it was marked deleted.
    pub delete_time: Option<&'a str>,
}

impl Row<'_> {
    /// Writes the row with its labels and annotations.
    ///
    /// # Panics
    /// Where the database refuses it.
    pub async fn insert(&self, connection: &mut MySqlConnection) {
        let (_, columns, _) = TABLES
            .iter()
            .find(|(table, ..)| *table == self.table)
            .expect("a main table");
        let metadata = &self.object["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let created = text(&metadata["creationTimestamp"]).replace('T', " ").replace('Z', "");
        let names: String = columns.iter().map(|(name, ..)| format!(", `{name}`")).collect();
        let marks = ", ?".repeat(columns.len());
        let sql = format!(
            "INSERT INTO `{}` (uid, group_ver, namespace, name, res_version, create_time, update_time, delete_time, \
             proto, json{names}) VALUES (?, 'michelangelo.api/v2', ?, ?, ?, ?, '2026-03-01 10:00:00', ?, ?, ?{marks})",
            self.table
        );
        let mut insert = sqlx::query(AssertSqlSafe(sql))
            .bind(text(&metadata["uid"]))
            .bind(text(&metadata["namespace"]))
            .bind(text(&metadata["name"]))
            .bind(text(&metadata["resourceVersion"]))
            .bind(created)
            .bind(self.delete_time)
            .bind(self.proto.clone())
            .bind(self.object.to_string());
        for (name, _, path) in *columns {
            insert = insert.bind(self.cell(name, path));
        }
        insert.execute(&mut *connection).await.expect("the row is taken");
        for side in ["labels", "annotations"] {
            let sql = format!(
                "INSERT INTO `{}_{side}` (obj_uid, `key`, value) VALUES (?, ?, ?)",
                self.table
            );
            for (key, value) in metadata[side].as_object().into_iter().flatten() {
                let insert = sqlx::query(AssertSqlSafe(sql.clone()));
                let insert = insert.bind(text(&metadata["uid"])).bind(key).bind(text(value));
                insert.execute(&mut *connection).await.expect("the side row is taken");
            }
        }
    }

    /// Text of everything; an unset enum by its first name, an unset string as empty.
    fn cell(&self, name: &str, path: &[&str]) -> Option<String> {
        let (first, rest) = path.split_first()?;
        let value = rest.iter().fold(&self.object[*first], |value, step| &value[*step]);
        Some(match value {
            Value::String(text) => text.clone(),
            Value::Bool(flag) => u8::from(*flag).to_string(),
            Value::Number(number) => number.to_string(),
            Value::Null if name == "state" => format!("{}_STATE_INVALID", self.table.to_uppercase()),
            Value::Null | Value::Array(_) | Value::Object(_) => String::new(),
        })
    }
}

/// Makes the tables in a database of that name, which is made too and stays in use.
///
/// # Panics
/// Where the server refuses a statement.
pub async fn create_database(connection: &mut MySqlConnection, name: &str) {
    let database = [
        format!("CREATE DATABASE IF NOT EXISTS `{name}` CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci"),
        format!("USE `{name}`"),
    ];
    for statement in database.into_iter().chain(schema()) {
        let done = connection.execute(sqlx::raw_sql(AssertSqlSafe(statement))).await;
        done.expect("the server takes the statement");
    }
}
