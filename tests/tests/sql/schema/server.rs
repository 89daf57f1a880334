//! The MySQL scripts on MariaDB and on MySQL.

use kindex_codegen::dialect::StorageType;
use kindex_codegen::model::SqlType;
use kindex_model::object::Object;
use kindex_model::projection::content_hash;
use kindex_tests::databases::Database;
use kindex_tests::databases::mariadb::{self, Flavor};
use kindex_tests::databases::mysql;
use sqlx::mysql::{MySqlConnectOptions, MySqlConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Executor, Row};

use super::catalog::{Described, assert_same, wanted};
use super::{shipped, shipped_model, text};

/// What a test of the scripts runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Product {
    MariaDb,
    MySql,
}

impl Product {
    /// `None` where the server is absent and not required.
    pub(crate) async fn connect(self) -> Option<(Database, MySqlConnection)> {
        let database = match self {
            Self::MariaDb => mariadb::database(Flavor::Plain),
            Self::MySql => mysql::database(),
        }?;
        let connection = connect(&database).await;
        Some((database, connection))
    }
}

/// Runs each test, `async fn(Product)`, on both servers.
macro_rules! on_servers {
    ($($name:ident),* $(,)?) => {
        mod on_mariadb {
            $(#[tokio::test] async fn $name() {
                super::$name(crate::schema::server::Product::MariaDb).await;
            })*
        }
        mod on_mysql {
            $(#[tokio::test] async fn $name() {
                super::$name(crate::schema::server::Product::MySql).await;
            })*
        }
    };
}
pub(crate) use on_servers;

on_servers!(
    a_server_has_every_table_as_the_model_has_it,
    the_authoritative_script_brings_its_own_database,
    names_keys_and_values_are_distinguished_by_case,
    objects_are_stored_and_what_is_no_json_is_refused,
);

/// A connection to an empty database of its own.
async fn connect(database: &Database) -> MySqlConnection {
    let options = MySqlConnectOptions::new()
        .host("127.0.0.1")
        .port(database.server.port)
        .username("root");
    let mut connection = options.connect().await.expect("the server answers");
    for statement in [
        format!("CREATE DATABASE {}", database.name),
        format!("USE {}", database.name),
    ] {
        let done = connection.execute(AssertSqlSafe(statement)).await;
        done.expect("a new database");
    }
    connection
}

pub(super) async fn run(connection: &mut MySqlConnection, script: &str) {
    let done = connection
        .execute(sqlx::raw_sql(AssertSqlSafe(script.to_owned())))
        .await;
    done.expect("the server takes the script");
}

async fn a_server_has_every_table_as_the_model_has_it(product: Product) {
    let Some((database, mut connection)) = product.connect().await else {
        return;
    };
    let script = text(shipped(), "schema/mysql_schema.sql");
    run(&mut connection, &script).await;
    let found = found(&mut connection, &database.name).await;
    assert_same(&found, &wanted(&shipped_model(), reported));
    run(&mut connection, &script).await;
    let again = self::found(&mut connection, &database.name).await;
    assert_same(&again, &found);
}

async fn the_authoritative_script_brings_its_own_database(product: Product) {
    let Some((_database, mut connection)) = product.connect().await else {
        return;
    };
    let script = text(shipped(), "schema/ingester_schema.sql");
    run(&mut connection, &script).await;
    let found = found(&mut connection, "michelangelo").await;
    assert_same(&found, &wanted(&shipped_model(), reported));
}

async fn names_keys_and_values_are_distinguished_by_case(product: Product) {
    let Some((database, mut connection)) = product.connect().await else {
        return;
    };
    run(&mut connection, &text(shipped(), "schema/mysql_schema.sql")).await;
    let others = sqlx::query(
        "SELECT CONCAT(table_name, '.', column_name) FROM information_schema.columns \
         WHERE table_schema = ? AND collation_name IS NOT NULL AND collation_name <> 'utf8mb4_bin'",
    )
    .bind(&database.name)
    .fetch_all(&mut connection)
    .await
    .expect("collations");
    let others: Vec<String> = others.iter().map(|row| row.get(0)).collect();
    assert_eq!(others, Vec::<String>::new());
}

async fn objects_are_stored_and_what_is_no_json_is_refused(product: Product) {
    let Some((_database, mut connection)) = product.connect().await else {
        return;
    };
    run(&mut connection, &text(shipped(), "schema/mysql_schema.sql")).await;
    let deep = |levels| "{\"a\":".repeat(levels) + "1" + &"}".repeat(levels);
    let hash = |text: &str| {
        let object = Object::parse_str(text).map(|object| content_hash(&object).to_bytes());
        object.unwrap_or([7; 32]).to_vec()
    };
    let kindex = |levels| {
        format!(
            r#"{{"metadata":{{"name":"a","uid":"b","resourceVersion":"1"}},"c":{}}}"#,
            deep(levels)
        )
    };
    let beyond = kindex(1).replace("1}}", "1e400}}");
    let cases = [
        ("{".to_owned(), None, false),
        ("none".to_owned(), None, false),
        ("{\"broken}".to_owned(), Some("{\"broken}".to_owned()), false),
        ("{}".to_owned(), None, true),
        ("{\"b\": 1, \"a\": 1.50}".to_owned(), None, true),
        (deep(31), None, true),
        // Deeper ones, and numbers beyond a double, with the hash of whoever has read the text.
        (beyond.clone(), Some(beyond), true),
        (deep(500), None, false),
        (kindex(500), None, false),
        (kindex(500), Some(kindex(400)), false),
        (kindex(500), Some(kindex(500)), true),
    ];
    for (number, (json, hashed, is_stored)) in cases.into_iter().enumerate() {
        let insert = "INSERT INTO project (uid, group_ver, namespace, name, res_version, create_time, json, content_hash) \
                      VALUES (?, 'g/v', 'n', 'n', 1, '2026-01-31 12:00:00', ?, ?)";
        let insert = sqlx::query(insert).bind(number.to_string()).bind(&json);
        let insert = insert.bind(hashed.map(|text| hash(&text)));
        let done = insert.execute(&mut connection).await;
        assert_eq!(done.is_ok(), is_stored, "{json}: {done:?}");
    }
}

/// How the servers tell a type, without the display widths that mean nothing.
fn reported(ty: StorageType) -> String {
    match ty {
        StorageType::Sql(SqlType::Boolean) => "tinyint(1)".to_owned(),
        StorageType::Sql(sql) => sql.to_string().to_lowercase().replace(", ", ","),
        StorageType::Version => "bigint unsigned".to_owned(),
        StorageType::Bytes => "longblob".to_owned(),
        StorageType::Hash => "binary(32)".to_owned(),
        StorageType::Json => "longtext".to_owned(),
        StorageType::RowId => "bigint".to_owned(),
    }
}

fn without_width(ty: String) -> String {
    let (word, rest) = ty.split_once('(').unwrap_or((&ty, ""));
    let is_integer = matches!(word, "smallint" | "int" | "bigint") || (word == "tinyint" && !rest.starts_with("1)"));
    match rest.split_once(')') {
        Some((_, after)) if is_integer => format!("{word}{after}"),
        _ => ty,
    }
}

pub(crate) async fn found(connection: &mut MySqlConnection, database: &str) -> Vec<Described> {
    let columns = sqlx::query(
        "SELECT table_name, column_name, CAST(column_type AS CHAR), is_nullable = 'NO' \
         FROM information_schema.columns WHERE table_schema = ? ORDER BY table_name, ordinal_position",
    )
    .bind(database)
    .fetch_all(&mut *connection)
    .await
    .expect("columns");
    let mut tables: Vec<Described> = Vec::new();
    for row in columns {
        let name: String = row.get(0);
        if tables.last().is_none_or(|table| table.name != name) {
            tables.push(Described {
                name,
                columns: Vec::new(),
                primary_key: Vec::new(),
                keys: Vec::new(),
            });
        }
        let table = tables.last_mut().expect("pushed above");
        let (column, ty, required): (String, String, bool) = (row.get(1), row.get(2), row.get(3));
        table.columns.push((column, without_width(ty), required));
    }
    for row in keys(connection, database).await {
        let (name, key, column): (String, String, String) = (row.get(0), row.get(1), row.get(2));
        let table = tables.iter_mut().find(|table| table.name == name);
        let table = table.expect("a key belongs to a table");
        match table.keys.last_mut() {
            _ if key == "PRIMARY" => table.primary_key.push(column),
            Some((last, columns)) if *last == key => columns.push(column),
            _ => table.keys.push((key, vec![column])),
        }
    }
    for table in &mut tables {
        table.keys.sort();
    }
    // The server's own order knows that `_` is a letter; ours compares bytes.
    tables.sort_by(|a, b| a.name.cmp(&b.name));
    tables
}

async fn keys(connection: &mut MySqlConnection, database: &str) -> Vec<sqlx::mysql::MySqlRow> {
    let keys = sqlx::query(
        "SELECT table_name, index_name, column_name FROM information_schema.statistics \
         WHERE table_schema = ? ORDER BY table_name, index_name, seq_in_index",
    );
    let rows = keys.bind(database).fetch_all(connection).await;
    rows.expect("keys")
}
