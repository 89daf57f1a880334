//! Tables that an older program made have its check on the text: `kindex migrate` gives them that of new tables, and
//! names the rows that keep it from that.

use kindex_harness::require::passed_over;
use kindex_store::progress::NoProgress;
use kindex_store::{MigrateError, MigrateOptions, Migrated};

use super::backend::Backend;
use super::second_connection::SecondConnection;
use super::widget::{at, widget};

scenarios!(
    a_new_table_has_the_check_that_is_wanted,
    the_check_of_an_older_program_is_replaced,
    rows_that_break_the_check_are_named_and_hold_up_no_other_table,
);

const SCHEMA: &str = include_str!("widget.mysql.sql");
const BROKEN: &str = r#"{"broken}"#;

/// As the first release made a main table.
fn as_it_was(table: &str) -> String {
    let begin = SCHEMA
        .find(&format!("CREATE TABLE IF NOT EXISTS `{table}` ("))
        .expect("a table");
    let text = SCHEMA[begin..].split_once(';').expect("a statement").0;
    let (columns, check) = text.split_once(",\n    CONSTRAINT").expect("a check");
    let (_, end) = check.split_once('\n').expect("its line");
    let json = "`json` LONGTEXT NOT NULL";
    let checked = format!(r#"{json} CHECK (`json` LIKE '{{"%}}' OR JSON_VALID(`json`))"#);
    format!("{}\n{end}", columns.replacen(json, &checked, 1))
}

/// A database of the first release, with a row; `None` where the engine's check never changed.
async fn older(backend: &Backend) -> Option<()> {
    if !backend.had_another_check() {
        passed_over("the engine's tables have had one check all along");
        return None;
    }
    for table in ["widget", "keepsake"] {
        backend.rows(&format!("DROP TABLE `{table}`")).await?;
        backend.rows(&as_it_was(table)).await?;
    }
    backend.write(widget("u1", "n1", 1).live(), at(0)).await;
    Some(())
}

async fn migrate(backend: &Backend) -> Result<Vec<Migrated>, MigrateError> {
    backend.store.migrate(&MigrateOptions::default(), &NoProgress).await
}

/// The steps of a dry run.
async fn pending(backend: &Backend) -> Vec<String> {
    let pending = backend.store.pending().await.expect("read");
    pending.into_iter().map(|step| step.step).collect()
}

/// Writes a text beside the store, with the names that the row of `u1` has otherwise.
async fn by_hand(backend: &Backend, table: &str, uid: &str, text: &str) -> Result<(), String> {
    let connection = SecondConnection::open(backend).await;
    let mut connection = connection.expect("the older tables were made beside the store");
    let statement = format!(
        "INSERT INTO `{table}` (`uid`, `group_ver`, `namespace`, `name`, `res_version`, `create_time`, `json`) \
         VALUES (?, 'g/v1', 'ns', ?, 1, NOW(6), ?)"
    );
    let name = format!("name-of-{uid}");
    let done = connection.change(&statement, &[uid, &name, text]).await;
    connection.close().await;
    done.map_err(|error| error.to_string())
}

async fn a_new_table_has_the_check_that_is_wanted(backend: Backend) {
    assert_eq!(pending(&backend).await, [""; 0]);
    assert_eq!(migrate(&backend).await.expect("nothing to do"), []);
}

async fn the_check_of_an_older_program_is_replaced(backend: Backend) {
    if older(&backend).await.is_none() {
        return;
    }
    assert!(backend.poison("nobody").await, "somebody else's check");
    let steps = ["renew the check of widget", "renew the check of keepsake"];
    assert_eq!(pending(&backend).await, steps);
    by_hand(&backend, "widget", "u2", BROKEN)
        .await
        .expect("the old check takes it");
    backend.rows("DELETE FROM widget WHERE uid = 'u2'").await;

    migrate(&backend).await.expect("migrated");
    assert_eq!(pending(&backend).await, [""; 0], "once");
    for table in ["widget", "keepsake"] {
        by_hand(&backend, table, "u2", BROKEN)
            .await
            .expect_err("the new one does not");
        by_hand(&backend, table, "u3", "{}")
            .await
            .expect("what is JSON is taken");
    }
    assert!(backend.state("u1").await.is_some(), "rows stay");
    let poisoned = [widget("u4", "nobody", 4).live()];
    let refused = backend.store.write(&super::widget::WIDGET, &poisoned, at(1)).await;
    refused.expect_err("the check of others stays");
}

async fn rows_that_break_the_check_are_named_and_hold_up_no_other_table(backend: Backend) {
    if older(&backend).await.is_none() {
        return;
    }
    for number in 2..14 {
        let uid = format!("u{number}");
        by_hand(&backend, "widget", &uid, BROKEN)
            .await
            .expect("the old check takes it");
    }
    let error = migrate(&backend).await.expect_err("rows break it");
    assert!(matches!(error, MigrateError::Broken(_)), "{error:?}");
    let message = error.to_string();
    for part in [
        "widget.json: 12 rows",
        "uid `u2`, ns/name-of-u2",
        "uid `u11`",
        "…",
        "SELECT * FROM `widget`",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert!(
        !message.contains("uid `u1`") && !message.contains("keepsake"),
        "{message}"
    );
    assert_eq!(
        pending(&backend).await,
        ["renew the check of widget"],
        "the other table has its check"
    );
    backend.write(widget("u20", "n20", 20).live(), at(1)).await;

    backend.rows("DELETE FROM widget WHERE json = '{\"broken}'").await;
    migrate(&backend).await.expect("nothing is in the way");
    assert_eq!(pending(&backend).await, [""; 0]);
}
