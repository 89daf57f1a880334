//! The SQLite schema on SQLite.

use kindex_codegen::dialect::StorageType;
use kindex_codegen::model::SqlType;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Executor, Row, SqliteConnection};

use super::catalog::{Described, assert_same, wanted};
use super::{shipped, shipped_model, text};

async fn database() -> SqliteConnection {
    let options = SqliteConnectOptions::new().in_memory(true);
    options.connect().await.expect("an empty database")
}

async fn apply(connection: &mut SqliteConnection) {
    let script = text(shipped(), "schema/sqlite_schema.sql");
    let done = connection.execute(sqlx::raw_sql(AssertSqlSafe(script))).await;
    done.expect("SQLite takes the schema");
}

#[tokio::test]
async fn sqlite_has_every_table_as_the_model_has_it() {
    let mut connection = database().await;
    apply(&mut connection).await;
    assert_same(&found(&mut connection).await, &wanted(&shipped_model(), reported));
}

#[tokio::test]
async fn the_sqlite_schema_may_be_applied_again() {
    let mut connection = database().await;
    apply(&mut connection).await;
    let first = found(&mut connection).await;
    apply(&mut connection).await;
    assert_same(&found(&mut connection).await, &first);
}

#[tokio::test]
async fn sqlite_refuses_what_is_no_json_and_what_has_another_type() {
    let mut connection = database().await;
    apply(&mut connection).await;
    let insert = |json: &str, tier: &str| {
        format!(
            "INSERT INTO project (uid, group_ver, namespace, name, res_version, create_time, json, tier) \
             VALUES ('u', 'g/v', 'n', 'n', 1, '2026-01-31T12:00:00.000000Z', {json}, {tier})"
        )
    };
    for wrong in [insert("'{'", "1"), insert("'{}'", "'first'")] {
        let done = connection.execute(AssertSqlSafe(wrong.clone())).await;
        assert!(done.is_err(), "{wrong}");
    }
    let done = connection.execute(AssertSqlSafe(insert("'{}'", "1"))).await;
    done.expect("right values are stored");
}

/// How SQLite tells a type.
fn reported(ty: StorageType) -> String {
    let word = match ty {
        StorageType::Sql(sql) => match sql {
            SqlType::Double => "REAL",
            SqlType::BigIntUnsigned | SqlType::Decimal(_, _) => "ANY",
            SqlType::TinyInt | SqlType::SmallInt | SqlType::Int | SqlType::BigInt | SqlType::Boolean => "INTEGER",
            SqlType::VarChar(_)
            | SqlType::Text
            | SqlType::MediumText
            | SqlType::LongText
            | SqlType::DateTime(_)
            | SqlType::Date => "TEXT",
        },
        StorageType::Bytes | StorageType::Hash => "BLOB",
        StorageType::Json => "TEXT",
        StorageType::RowId | StorageType::Version => "INTEGER",
    };
    word.to_owned()
}

pub(crate) async fn found(connection: &mut SqliteConnection) -> Vec<Described> {
    let names = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name";
    let mut tables = Vec::new();
    for row in sqlx::query(names).fetch_all(&mut *connection).await.expect("tables") {
        let name: String = row.get(0);
        tables.push(describe(connection, name).await);
    }
    tables
}

async fn describe(connection: &mut SqliteConnection, name: String) -> Described {
    let columns = sqlx::query("SELECT name, type, \"notnull\", pk FROM pragma_table_info(?)")
        .bind(&name)
        .fetch_all(&mut *connection)
        .await
        .expect("columns");
    let mut primary_key: Vec<(i64, String)> = columns
        .iter()
        .map(|row| (row.get("pk"), row.get("name")))
        .filter(|(position, _)| *position > 0)
        .collect();
    primary_key.sort();
    let indexes = sqlx::query(
        "SELECT l.name AS \"key\", i.name AS \"column\" FROM pragma_index_list(?) AS l, pragma_index_info(l.name) AS i \
         WHERE l.origin = 'c' ORDER BY l.name, i.seqno",
    )
    .bind(&name)
    .fetch_all(connection)
    .await
    .expect("keys");
    let mut keys: Vec<(String, Vec<String>)> = Vec::new();
    for row in indexes {
        let (key, column): (String, String) = (row.get("key"), row.get("column"));
        match keys.last_mut() {
            Some((last, columns)) if *last == key => columns.push(column),
            _ => keys.push((key, vec![column])),
        }
    }
    Described {
        name,
        columns: columns
            .iter()
            .map(|row| (row.get("name"), row.get("type"), row.get("notnull")))
            .collect(),
        primary_key: primary_key.into_iter().map(|(_, name)| name).collect(),
        keys,
    }
}
