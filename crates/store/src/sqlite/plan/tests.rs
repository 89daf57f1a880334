//! Plans for the statements of a kind, without statistics.

use kindex_model::kind::{Key, Kind};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Executor, Row};

use crate::dialect::Dialect;
use crate::engines::spelling;
use crate::statements::{KindSql, ListFilter};

/// Nearly every row is one that is not deleted: the key of `delete_time` finds nothing.
#[tokio::test]
async fn no_read_of_rows_that_are_not_deleted_walks_the_key_of_delete_time() {
    const KEY: Key = Key {
        name: "thing_namespace_name",
        columns: &["namespace", "name"],
    };
    const TABLES: &str = "CREATE TABLE thing (seq INTEGER NOT NULL PRIMARY KEY, uid TEXT NOT NULL UNIQUE, namespace TEXT NOT NULL, \
         name TEXT NOT NULL, res_version INTEGER NOT NULL, json TEXT NOT NULL, update_time TEXT, \
         group_ver TEXT NOT NULL, delete_time TEXT, evicted_time TEXT) STRICT; \
         CREATE INDEX thing_delete_time ON thing (delete_time, uid); \
         CREATE INDEX thing_namespace_name ON thing (namespace, name, uid)";
    let kind = Kind {
        name: "Thing",
        group: "test",
        version: "v1",
        plural: "things",
        singular: "thing",
        table: "thing",
        keys: &[KEY],
        ..Kind::EMPTY
    };
    let memory = SqliteConnectOptions::new().in_memory(true);
    let mut connection = memory.connect().await.expect("an empty database");
    connection.execute(TABLES).await.expect("created");
    let sql = KindSql::new(spelling(Dialect::Sqlite), &kind);
    let filter = ListFilter {
        namespace: true,
        after: false,
        include_deleted: false,
        labels: 0,
    };
    for statement in [sql.list(filter), sql.by_name(), sql.namesakes(10)] {
        let explain = format!(
            "EXPLAIN QUERY PLAN {}",
            statement.text(spelling(Dialect::Sqlite)).as_str()
        );
        let plan = connection.fetch_all(AssertSqlSafe(explain)).await.expect("a plan");
        let plan: Vec<String> = plan.iter().map(|step| step.get("detail")).collect();
        let walked = plan.iter().find(|step| step.contains("thing"));
        let walked = walked.unwrap_or_else(|| panic!("{plan:?}"));
        assert!(walked.contains("INDEX thing_namespace_name (namespace=?"), "{plan:?}");
    }
}
