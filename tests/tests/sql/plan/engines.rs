//! Planned migrations on real engines: a database that was made from one schema and migrated to another has the tables,
//! columns and keys of one that was made from the other, and its rows.

use kindex_codegen::dialect::{Dialect, MySql, Sqlite};
use kindex_codegen::plan::{DesiredSchema, diff};
use sqlx::mysql::MySqlConnection;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Executor, SqliteConnection};

use super::random::{Pair, made, pair};
use crate::schema::catalog::Described;
use crate::schema::server::{self, Product, on_servers};
use crate::schema::sqlite as catalog;

const SQLITE_PAIRS: u64 = 300;
const SERVER_PAIRS: u64 = 14;

on_servers!(a_migrated_server_is_as_a_fresh_one);

#[tokio::test]
async fn a_migrated_sqlite_database_is_as_a_fresh_one() {
    for seed in 0..SQLITE_PAIRS {
        let Pair { old, new } = pair(seed);
        let (mut migrated, mut fresh) = (empty().await, empty().await);
        make(&mut migrated, &old, &Sqlite, seed).await;
        insert(&mut migrated, &old, seed).await;
        for (step, statement) in Sqlite.spell(&diff(&made(&old), &new)) {
            let Some(statement) = statement else { continue };
            let done = migrated.execute(AssertSqlSafe(statement.clone())).await;
            done.unwrap_or_else(|error| panic!("seed {seed}, {step}: {statement}: {error}"));
        }
        make(&mut fresh, &new, &Sqlite, seed).await;
        let is = unordered(catalog::found(&mut migrated).await);
        assert_eq!(is, unordered(catalog::found(&mut fresh).await), "seed {seed}");
    }
}

async fn empty() -> SqliteConnection {
    let options = SqliteConnectOptions::new().in_memory(true);
    options.connect().await.expect("an empty database")
}

/// SQLite puts a new column at the end, and nothing reads columns by their place.
fn unordered(mut tables: Vec<Described>) -> Vec<Described> {
    for table in &mut tables {
        table.columns.sort();
    }
    tables
}

async fn make<C>(connection: &mut C, wanted: &DesiredSchema, dialect: &dyn Dialect, seed: u64)
where
    for<'c> &'c mut C: Executor<'c>,
{
    for table in &wanted.tables {
        let done = connection
            .execute(sqlx::raw_sql(AssertSqlSafe(dialect.create_table(table))))
            .await;
        done.unwrap_or_else(|error| panic!("seed {seed}, {}: {error}", table.name));
    }
}

/// A row in each main table, so that statements meet one.
async fn insert<C>(connection: &mut C, wanted: &DesiredSchema, seed: u64)
where
    for<'c> &'c mut C: Executor<'c>,
{
    for table in wanted.extracted.keys() {
        let statement = format!(
            "INSERT INTO {table} (uid, group_ver, namespace, name, res_version, create_time, json) \
             VALUES ('u', 'g/v', 'n', 'n', 1, '2026-01-31 12:00:00', '{{\"spec\":{{}}}}')"
        );
        let done = connection.execute(AssertSqlSafe(statement)).await;
        done.unwrap_or_else(|error| panic!("seed {seed}, {table}: {error}"));
    }
}

async fn a_migrated_server_is_as_a_fresh_one(product: Product) {
    let Some((database, mut connection)) = product.connect().await else {
        return;
    };
    for seed in 0..SERVER_PAIRS {
        let Pair { old, new } = pair(seed);
        let (migrated, fresh) = (
            format!("{}_m{seed}", database.name),
            format!("{}_f{seed}", database.name),
        );
        enter(&mut connection, &migrated).await;
        make(&mut connection, &old, &MySql, seed).await;
        insert(&mut connection, &old, seed).await;
        for (step, statement) in MySql.spell(&diff(&made(&old), &new)) {
            let Some(statement) = statement else { continue };
            let done = connection.execute(AssertSqlSafe(statement.clone())).await;
            done.unwrap_or_else(|error| panic!("seed {seed}, {step}: {statement}: {error}"));
        }
        enter(&mut connection, &fresh).await;
        make(&mut connection, &new, &MySql, seed).await;
        let is = server::found(&mut connection, &migrated).await;
        assert_eq!(is, server::found(&mut connection, &fresh).await, "seed {seed}");
    }
}

async fn enter(connection: &mut MySqlConnection, database: &str) {
    let script = format!("CREATE DATABASE {database}; USE {database};");
    let done = connection.execute(sqlx::raw_sql(AssertSqlSafe(script))).await;
    done.expect("a new database");
}
