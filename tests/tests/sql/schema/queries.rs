//! Typed queries on the shipped tables: the key that the type promises is the key that the engine takes.

use kindex_generated::kinds::{model, pipeline_run};
use kindex_model::value::Value;
use kindex_query::Timestamp;
use kindex_store::{Dialect, Statement, ToSql as _};
use pipeline_run::PipelineRunState;
use sqlx::mysql::MySqlArguments;
use sqlx::sqlite::{SqliteArguments, SqliteConnectOptions};
use sqlx::{Arguments, AssertSqlSafe, ConnectOptions, Executor, Row};

use super::server::{Product, on_servers, run};
use super::{shipped, text};

/// Queries that differ in how they are narrowed, with the key that serves them.
fn queries(dialect: Dialect) -> Vec<(Statement, &'static str)> {
    let runs = pipeline_run::query;
    let failed = PipelineRunState::Failed;
    vec![
        (
            runs().state().eq(failed).live().limit(50).to_sql(dialect),
            "pipelinerun_state",
        ),
        (
            runs().state().by_name().eq("FROM_THE_FUTURE").to_sql(dialect),
            "pipelinerun_state",
        ),
        (
            runs().actor().eq("ada").pipeline("ml", "train").to_sql(dialect),
            "pipelinerun_pipeline",
        ),
        (
            runs().namespace().eq("ml").name().starts_with("a_").to_sql(dialect),
            "pipelinerun_namespace_name",
        ),
        (
            runs().delete_time().ge(Timestamp::UNIX_EPOCH).to_sql(dialect),
            "pipelinerun_delete_time",
        ),
        (runs().newest(10).live().to_sql(dialect), "pipelinerun_create_time"),
        (
            runs().label("team", "fraud").live().to_sql(dialect),
            "pipelinerun_labels_key_value",
        ),
        (
            model::query()
                .owner()
                .one_of(["a", "b"])
                .order_by(model::UPDATE_TIME)
                .desc()
                .to_sql(dialect),
            "model_owner",
        ),
        (
            model::query().algorithm().starts_with("xg").to_sql(dialect),
            "model_algorithm",
        ),
    ]
}

#[tokio::test]
async fn sqlite_takes_the_key_that_the_type_promises() {
    let options = SqliteConnectOptions::new().in_memory(true);
    let mut connection = options.connect().await.expect("an empty database");
    let script = text(shipped(), "schema/sqlite_schema.sql");
    let done = connection.execute(sqlx::raw_sql(AssertSqlSafe(script))).await;
    done.expect("SQLite takes the schema");
    for (statement, key) in queries(Dialect::Sqlite) {
        let explain = format!("EXPLAIN QUERY PLAN {}", statement.sql);
        let mut arguments = SqliteArguments::default();
        for value in statement.values {
            let added = match value {
                Value::Text(text) => arguments.add(text),
                Value::Time(time) => arguments.add(time.to_string()),
                Value::Int(number) => arguments.add(number),
                Value::Null | Value::Bool(_) | Value::UInt(_) | Value::Double(_) => {
                    unreachable!("the queries bind text, times, lengths and limits")
                }
            };
            added.expect("a bound value");
        }
        let plan = sqlx::query_with(AssertSqlSafe(explain), arguments);
        let plan = plan.fetch_all(&mut connection).await.expect("a plan");
        let plan: Vec<String> = plan.iter().map(|row| row.get("detail")).collect();
        assert!(
            plan.iter().any(|step| step.contains(key)),
            "{}: {plan:?}",
            statement.sql
        );
    }
}

on_servers!(a_server_can_take_the_key_that_the_type_promises);

async fn a_server_can_take_the_key_that_the_type_promises(product: Product) {
    let Some((_database, mut connection)) = product.connect().await else {
        return;
    };
    let script = text(shipped(), "schema/mysql_schema.sql");
    run(&mut connection, &script).await;
    // A server looks at an empty table in any order.
    let fill = "INSERT INTO pipelinerun (uid, group_ver, namespace, name, res_version, create_time, json) \
                WITH RECURSIVE numbers AS (SELECT 1 n UNION ALL SELECT n + 1 FROM numbers WHERE n < 900), \
                parts AS (SELECT 1 part UNION ALL SELECT 2 UNION ALL SELECT 3) \
                SELECT CONCAT(part, '-', n), 'g/v', 'ml', CONCAT(part, '-', n), n, FROM_UNIXTIME(1700000000 + n), '{}' \
                FROM numbers, parts; ANALYZE TABLE pipelinerun";
    run(&mut connection, fill).await;
    for (statement, key) in queries(Dialect::MySql) {
        let explain = format!("EXPLAIN FORMAT = TRADITIONAL {}", statement.sql);
        let mut arguments = MySqlArguments::default();
        for value in statement.values {
            let added = match value {
                Value::Text(text) => arguments.add(text),
                Value::Time(time) => arguments.add(time.strftime("%Y-%m-%d %H:%M:%S").to_string()),
                Value::Int(number) => arguments.add(number),
                Value::Null | Value::Bool(_) | Value::UInt(_) | Value::Double(_) => {
                    unreachable!("the queries bind text, times, lengths and limits")
                }
            };
            added.expect("a bound value");
        }
        let plan = sqlx::query_with(AssertSqlSafe(explain), arguments);
        let plan = plan.fetch_all(&mut connection).await.expect("a plan");
        let keys: Vec<String> = plan
            .iter()
            .flat_map(|row| [row.get("possible_keys"), row.get("key")])
            .flat_map(|keys: Option<String>| keys)
            .collect();
        assert!(
            keys.iter().any(|keys| keys.contains(key)),
            "{}: {keys:?}",
            statement.sql
        );
    }
}
