//! Losses that are made on purpose: the counter and `kindex verify` must see them, or the
//! zeros of the other scenarios would say nothing.

use kindex_model::kind::Kind;
use kindex_model::object::Uid;
use kindex_query::Life;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, Connection};

use super::database::{Database, file};
use super::judge::verify;
use super::objects;
use super::stage::{Setting, Stage};

const NAME: &str = "precious";

/// A stage without load, and one object with its row.
fn with_one_object() -> (Stage, &'static Kind, Uid) {
    let mut stage = Stage::begin(&Setting::on(Database::Sqlite));
    stage.ingester.start();
    stage.wait_until_ready();
    let kind = stage.registry.kinds[0];
    let uid = stage.create(kind, &objects::with_finalizer(kind, NAME, 0));
    stage.eventually("the row", |stage| life(stage, kind, &uid) == Some(Life::Live));
    (stage, kind, uid)
}

fn life(stage: &Stage, kind: &Kind, uid: &Uid) -> Option<Life> {
    let row = stage.runtime.block_on(stage.storage.get_by_id(kind, uid));
    row.expect("readable").map(|row| row.life)
}

fn delete_row(stage: &Stage, kind: &Kind, uid: &Uid) {
    let options = SqliteConnectOptions::new().filename(file(stage.directory.path()));
    stage.runtime.block_on(async {
        let mut connection = SqliteConnection::connect_with(&options).await.expect("the file opens");
        let statement = AssertSqlSafe(format!("DELETE FROM {} WHERE uid = ?", kind.table));
        let done = sqlx::query(statement).bind(&*uid.0).execute(&mut connection).await;
        assert_eq!(done.expect("deleted").rows_affected(), 1);
        connection.close().await.expect("closed");
    });
}

/// Takes our finalizer away and deletes: the object is gone at once.
fn force_out(stage: &Stage, kind: &Kind) {
    let api = objects::api(&stage.client, kind);
    stage.runtime.block_on(async {
        let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        let released = api.patch(NAME, &PatchParams::default(), &release).await;
        released.expect("the finalizer goes");
        api.delete(NAME, &DeleteParams::default())
            .await
            .expect("the object goes");
    });
}

#[test]
fn a_row_that_somebody_deletes_is_found_by_verify() {
    let (mut stage, kind, uid) = with_one_object();
    stage.eventually("equality", |stage| verify(stage).status.success());
    stage.ingester.kill();
    delete_row(&stage, kind, &uid);
    let found = verify(&stage);
    let report = String::from_utf8_lossy(&found.stdout);
    assert_eq!(found.status.code(), Some(1), "{report}");
    assert!(report.contains(NAME), "{report}");
}

#[test]
fn an_object_that_is_forced_out_before_sql_holds_it_counts_as_lost() {
    let (mut stage, kind, uid) = with_one_object();
    stage.ingester.kill();
    delete_row(&stage, kind, &uid);
    force_out(&stage, kind);
    assert_eq!(stage.ingester.lost(), 0.0);
    stage.ingester.start();
    stage.eventually("the loss", |stage| stage.ingester.lost() == 1.0);
}

#[test]
fn an_object_that_is_forced_out_while_its_row_is_there_is_not_lost() {
    let (mut stage, kind, uid) = with_one_object();
    stage.ingester.kill();
    force_out(&stage, kind);
    stage.ingester.start();
    stage.eventually("the row closed", |stage| life(stage, kind, &uid) == Some(Life::Deleted));
    assert_eq!(stage.ingester.lost(), 0.0);
    stage.eventually("equality", |stage| verify(stage).status.success());
}
