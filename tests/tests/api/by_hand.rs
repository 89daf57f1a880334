//! Changes in the SQLite file of a stage, past every program of Kindex.

use sqlx::Connection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};

use super::stage::Stage;

/// The database of the stage.
pub(super) async fn connect(stage: &Stage) -> SqliteConnection {
    let path = stage.ground.directory.path().join("kindex.db");
    let options = SqliteConnectOptions::new().filename(path);
    SqliteConnection::connect_with(&options).await.unwrap()
}

/// Runs one statement.
pub(super) async fn alter(stage: &Stage, statement: &'static str) {
    let mut sqlite = connect(stage).await;
    sqlx::query(statement).execute(&mut sqlite).await.unwrap();
    sqlite.close().await.unwrap();
}
