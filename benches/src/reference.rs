//! The reference implementation's way to store one object, as a baseline: a transaction each,
//! every statement prepared anew, side rows deleted and inserted one by one.
//!
//! Into tables of its own, as its schema file has them. For L labels and A annotations:
//! 5 + L + A statements, 8 + 2 (L + A) round trips.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::try_join_all;
use jiff::Timestamp;
use kindex_model::projection::Version;
use kindex_model::value::Value;
use sqlx::mysql::{MySqlArguments, MySqlConnectOptions, MySqlDatabaseError};
use sqlx::query::Query;
use sqlx::{ConnectOptions as _, Connection as _, Executor as _, MySql, MySqlConnection};

use crate::objects::sql_time;

const UPSERT: &str = "INSERT INTO `run` (uid, group_ver, namespace, name, res_version, create_time, \
     update_time, proto, json, pipeline_namespace, pipeline_name, state, end_time) \
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON DUPLICATE KEY UPDATE \
     res_version = VALUES(res_version), update_time = VALUES(update_time), proto = VALUES(proto), \
     json = VALUES(json), pipeline_namespace = VALUES(pipeline_namespace), \
     pipeline_name = VALUES(pipeline_name), state = VALUES(state), end_time = VALUES(end_time)";

/// Its database, beside Kindex's.
pub const DATABASE: &str = "reference";

/// Its tables, empty.
///
/// # Errors
/// As the server says.
pub async fn prepare(connection: &mut MySqlConnection) -> Result<(), sqlx::Error> {
    let script = include_str!("reference.sql");
    for statement in [
        "DROP DATABASE IF EXISTS reference",
        "CREATE DATABASE reference",
        "USE reference",
        script,
    ] {
        connection.execute(sqlx::raw_sql(statement)).await?;
    }
    Ok(())
}

/// Stores all objects with so many workers, each on its own connection.
/// Says how often a deadlock was retried.
pub async fn store(
    options: &MySqlConnectOptions,
    objects: &[std::sync::Arc<Version>],
    workers: usize,
) -> Result<usize, sqlx::Error> {
    let next = AtomicUsize::new(0);
    let deadlocks = AtomicUsize::new(0);
    let worker = || async {
        let mut connection = options.connect().await?;
        while let Some(version) = objects.get(next.fetch_add(1, Ordering::Relaxed)) {
            while let Err(error) = upsert(&mut connection, version).await {
                if !is_deadlock(&error) {
                    return Err(error);
                }
                deadlocks.fetch_add(1, Ordering::Relaxed);
                connection.execute("ROLLBACK").await?;
            }
        }
        connection.close().await
    };
    try_join_all((0..workers).map(|_| worker())).await?;
    Ok(deadlocks.into_inner())
}

/// Stores one object.
pub async fn upsert(connection: &mut MySqlConnection, version: &Version) -> Result<(), sqlx::Error> {
    let metadata = &version.object.metadata;
    let uid = &*metadata.uid.0;
    connection.execute("START TRANSACTION").await?;
    let created = metadata.creation_timestamp.unwrap_or_default();
    let mut row = anew(UPSERT)
        .bind(uid)
        .bind(&metadata.api_version)
        .bind(&metadata.namespace)
        .bind(&metadata.name)
        .bind(metadata.resource_version.0)
        .bind(sql_time(created))
        .bind(sql_time(Timestamp::now()))
        .bind(version.proto.as_deref())
        .bind(version.object.text());
    for value in &version.columns {
        row = match value {
            Value::Null => row.bind(None::<String>),
            Value::Bool(flag) => row.bind(*flag),
            Value::Int(number) => row.bind(*number),
            Value::UInt(number) => row.bind(*number),
            Value::Double(number) => row.bind(*number),
            Value::Text(text) => row.bind(text),
            Value::Time(time) => row.bind(sql_time(*time)),
        };
    }
    row.execute(&mut *connection).await?;
    for (delete, insert, map) in [
        (
            "DELETE FROM run_labels WHERE obj_uid = ?",
            "INSERT INTO run_labels (obj_uid, `key`, `value`) VALUES (?, ?, ?)",
            &metadata.labels,
        ),
        (
            "DELETE FROM run_annotations WHERE obj_uid = ?",
            "INSERT INTO run_annotations (obj_uid, `key`, `value`) VALUES (?, ?, ?)",
            &metadata.annotations,
        ),
    ] {
        anew(delete).bind(uid).execute(&mut *connection).await?;
        for (key, value) in map {
            let row = anew(insert).bind(uid).bind(key).bind(value);
            row.execute(&mut *connection).await?;
        }
    }
    connection.execute("COMMIT").await?;
    Ok(())
}

/// Prepared, executed once and closed, as the reference's driver does with parameters.
fn anew(sql: &'static str) -> Query<'static, MySql, MySqlArguments> {
    sqlx::query(sql).persistent(false)
}

fn is_deadlock(error: &sqlx::Error) -> bool {
    let database = error.as_database_error();
    database
        .and_then(|error| error.try_downcast_ref::<MySqlDatabaseError>())
        .is_some_and(|error| error.number() == 1213)
}
