//! A reference database with rows of every kind in every state, and what is asked of it afterwards.

use std::sync::Arc;

use kindex_generated::registry;
use kindex_harness::reference::{self, Row};
use kindex_model::kind::{ColumnType, Kind};
use kindex_store::MetadataStorage;
use kindex_tests::databases::mariadb::{self, Flavor};
use kindex_tests::databases::mysql;
use kindex_tests::databases::{Database, patient};
use serde_json::{Map, Value, json};
use sqlx::mysql::{MySqlConnectOptions, MySqlConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Row as _};

use crate::schema::server::Product;

/// The states that a row may be in.
pub(super) const STATES: [&str; 3] = ["live", "deleted", "immutable"];

/// A database of the reference's, and a connection to it.
pub(super) struct Reference {
    pub(super) database: Database,
    pub(super) connection: MySqlConnection,
}

impl Reference {
    /// The 39 tables, empty; `None` where the server is absent and not required.
    pub(super) async fn empty(product: Product) -> Option<Self> {
        let database = match product {
            Product::MariaDb => mariadb::database(Flavor::Plain),
            Product::MySql => mysql::database(),
        }?;
        let options = MySqlConnectOptions::new().host("127.0.0.1").username("root");
        let options = options.port(database.server.port).charset("utf8mb4");
        let mut connection = options.connect().await.expect("the server answers");
        reference::create_database(&mut connection, &database.name).await;
        Some(Self { database, connection })
    }

    /// The same with a row of every kind in every state.
    pub(super) async fn filled(product: Product) -> Option<Self> {
        let mut reference = Self::empty(product).await?;
        for kind in registry().kinds {
            for state in STATES {
                reference.insert(kind, state, &object(kind, state)).await;
            }
        }
        Some(reference)
    }

    pub(super) async fn insert(&mut self, kind: &Kind, state: &str, object: &Value) {
        let row = Row {
            table: kind.table,
            object,
            proto: Some((kind.encode)(&object.to_string()).proto.unwrap_or_else(|| vec![0, 255])),
            delete_time: (state == "deleted").then_some("2026-04-01 00:00:00"),
        };
        row.insert(&mut self.connection).await;
    }

    /// This program on the database.
    pub(super) fn store(&self) -> Arc<dyn MetadataStorage> {
        let store = kindex_store::open(&self.database.address(), registry(), &patient());
        store.expect("the address is right")
    }

    /// Cells as text.
    pub(super) async fn rows(&mut self, sql: &str) -> Vec<Vec<Option<String>>> {
        let rows = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        let rows = rows.fetch_all(&mut self.connection).await.expect(sql);
        let cells = |row: &sqlx::mysql::MySqlRow| {
            (0..row.len())
                .map(|at| row.try_get_unchecked::<Option<String>, _>(at).expect("text"))
                .collect()
        };
        rows.iter().map(cells).collect()
    }

    pub(super) async fn execute(&mut self, sql: &str) {
        let done = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
            .execute(&mut self.connection)
            .await;
        done.expect(sql);
    }

    /// Everything that the catalog says, but for the order of keys and the next row number.
    pub(super) async fn catalog(&mut self) -> Vec<String> {
        let mut reported = Vec::new();
        for row in self.rows("SHOW TABLES").await {
            let table = row[0].clone().expect("a name");
            let shown = self.rows(&format!("SHOW CREATE TABLE `{table}`")).await;
            let text = shown[0][1].clone().expect("a statement");
            let mut lines: Vec<String> = text.lines().map(|line| line.trim_end_matches(',').to_owned()).collect();
            let first_key = lines.iter().position(|line| line.trim_start().starts_with("KEY"));
            let last = lines.len() - 1;
            let keys = first_key.unwrap_or(last)..last;
            lines[keys].sort();
            let numbered = |word: &&str| !word.starts_with("AUTO_INCREMENT=");
            lines[last] = lines[last].split(' ').filter(numbered).collect::<Vec<_>>().join(" ");
            reported.push(lines.join("\n"));
        }
        reported
    }
}

pub(super) fn uid(kind: &Kind, state: &str) -> String {
    format!("{}-{state}", kind.table)
}

/// An object with a value in every column, as the reference's ingester serializes it: without what
/// has a default value, and the live ones without a type.
pub(super) fn object(kind: &Kind, state: &str) -> Value {
    let mut object = json!({
        "metadata": {
            "name": format!("{state}-é 日本"),
            "namespace": "prod",
            "uid": uid(kind, state),
            "resourceVersion": "42",
            "creationTimestamp": "2026-02-28T10:00:00Z",
            "finalizers": ["michelangelo/Ingester"],
            "labels": {"team": "fraud", "Team": "Fraud", "app/empty": ""},
            "annotations": {"note": "it's \"quoted\" \\ 😀"},
        },
    });
    if state == "immutable" {
        object["metadata"]["annotations"]["michelangelo/Immutable"] = json!("true");
    }
    if state != "live" {
        object["apiVersion"] = json!(kind.api_version());
        object["kind"] = json!(kind.name);
    }
    for column in kind.columns {
        put(&mut object, column.path, value(column.name, column.ty));
    }
    object
}

fn value(column: &str, ty: ColumnType) -> Value {
    match ty {
        ColumnType::Text { .. } => json!(format!("{column} Ä")),
        ColumnType::Int32 | ColumnType::Int64 | ColumnType::UInt64 => json!(10),
        ColumnType::Double => json!(0.5),
        ColumnType::Bool => json!(true),
        ColumnType::Time => json!("2026-03-01T09:00:00Z"),
    }
}

fn put(object: &mut Value, path: &[&str], value: Value) {
    let (last, parents) = path.split_last().expect("a path has a step");
    let mut at = object;
    for step in parents {
        let inner = at.as_object_mut().expect("an object").entry(*step);
        at = inner.or_insert_with(|| Value::Object(Map::new()));
    }
    at[*last] = value;
}
