//! Migrations on a database with rows in it: run, broken off between any two statements, run by
//! several at once, and refused.

use std::sync::Arc;

use kindex_model::kind::{Column, ColumnType, Key, Kind, Migration, Registry};
use kindex_query::{Life, Revive};
use kindex_store::progress::NoProgress;
use kindex_store::{Address, MetadataStorage, MigrateError, MigrateOptions, MigrationState, StoreError};
use kindex_tests::databases::patient;
use serde_json::json;

use super::backend::Backend;
use super::widget::{PARTS, REGISTRY, at, widget};

scenarios!(
    a_new_column_is_filled_in_every_row,
    a_run_that_broke_off_anywhere_is_gone_on_with,
    rows_that_an_older_program_wrote_since_are_filled_again,
    several_that_migrate_at_once_agree,
    pages_of_two_are_filled_to_the_last_row,
    a_text_that_is_no_object_keeps_its_columns_and_holds_up_no_other_row,
    a_step_that_fails_is_named_and_what_came_before_it_stays,
    an_edited_migration_is_refused,
    an_engine_begins_with_the_schema_of_the_day_on_which_it_came,
    a_database_made_by_the_schema_script_is_taken_up,
);

/// What the tables of the harness are.
const INITIAL: Migration = Migration {
    number: 1,
    name: "initial",
    compatible: 1,
    texts: &[("mysql", "-- 0001_initial\n"), ("sqlite", "-- 0001_initial\n")],
    checksum: "one",
};

/// A column of every type, a key, and the values for the rows that are there.
const WIDER: Migration = Migration {
    number: 2,
    name: "wider",
    compatible: 2,
    texts: &[
        (
            "mysql",
            "-- step: add-column widget tint\nALTER TABLE `widget` ADD COLUMN `tint` VARCHAR(64) AFTER `end_time`;\n\
             -- step: add-column widget small\nALTER TABLE `widget` ADD COLUMN `small` INT;\n\
             -- step: add-column widget large\nALTER TABLE `widget` ADD COLUMN `large` BIGINT;\n\
             -- step: add-column widget weight\nALTER TABLE `widget` ADD COLUMN `weight` DOUBLE;\n\
             -- step: add-column widget shiny\nALTER TABLE `widget` ADD COLUMN `shiny` BOOLEAN;\n\
             -- step: add-column widget due\nALTER TABLE `widget` ADD COLUMN `due` DATETIME(6);\n\
             -- step: add-key widget widget_tint\nALTER TABLE `widget` ADD KEY `widget_tint` (`tint`);\n\
             -- step: fill widget tint,small,large,weight,shiny,due\n",
        ),
        (
            "sqlite",
            "-- step: add-column widget tint\nALTER TABLE `widget` ADD COLUMN `tint` TEXT;\n\
             -- step: add-column widget small\nALTER TABLE `widget` ADD COLUMN `small` INTEGER;\n\
             -- step: add-column widget large\nALTER TABLE `widget` ADD COLUMN `large` INTEGER;\n\
             -- step: add-column widget weight\nALTER TABLE `widget` ADD COLUMN `weight` REAL;\n\
             -- step: add-column widget shiny\nALTER TABLE `widget` ADD COLUMN `shiny` INTEGER;\n\
             -- step: add-column widget due\nALTER TABLE `widget` ADD COLUMN `due` TEXT;\n\
             -- step: add-key widget widget_tint\nCREATE INDEX `widget_tint` ON `widget` (`tint`);\n\
             -- step: fill widget tint,small,large,weight,shiny,due\n",
        ),
    ],
    checksum: "two",
};

/// Its last step names a column that is not there.
const BROKEN: Migration = Migration {
    number: 3,
    name: "broken",
    compatible: 3,
    texts: &[
        (
            "mysql",
            "-- step: add-column widget last\nALTER TABLE `widget` ADD COLUMN `last` INT;\n\
             -- step: drop-key widget widget_tint\nALTER TABLE `widget` DROP KEY `widget_nothing`;\n",
        ),
        (
            "sqlite",
            "-- step: add-column widget last\nALTER TABLE `widget` ADD COLUMN `last` INTEGER;\n\
             -- step: drop-key widget widget_tint\nDROP INDEX `widget_nothing`;\n",
        ),
    ],
    checksum: "three",
};

const fn column(name: &'static str, path: &'static [&'static str], ty: ColumnType) -> Column {
    Column {
        name,
        path,
        ty,
        own_namespace: false,
    }
}

const NEW_COLUMNS: [Column; 6] = [
    column("tint", &["spec", "tint"], ColumnType::Text { chars: 64 }),
    column("small", &["spec", "small"], ColumnType::Int32),
    column("large", &["spec", "large"], ColumnType::Int64),
    column("weight", &["spec", "weight"], ColumnType::Double),
    column("shiny", &["spec", "shiny"], ColumnType::Bool),
    column("due", &["spec", "due"], ColumnType::Time),
];

fn program(migrations: &'static [Migration]) -> Registry {
    Registry { migrations, ..REGISTRY }
}

/// The kind as it is once `WIDER` has run.
pub(super) fn newer_program(migrations: &'static [Migration]) -> Registry {
    let columns = [PARTS.columns, &NEW_COLUMNS].concat();
    let keys = [
        PARTS.keys,
        &[Key {
            name: "widget_tint",
            columns: &["tint"],
        }],
    ]
    .concat();
    let kind: &'static Kind = Box::leak(Box::new(Kind {
        columns: Box::leak(columns.into_boxed_slice()),
        keys: Box::leak(keys.into_boxed_slice()),
        ..PARTS
    }));
    Registry {
        kinds: Box::leak(Box::new([kind])),
        migrations,
        ..REGISTRY
    }
}

const OLD: &[Migration] = &[INITIAL];
pub(super) const NEW: &[Migration] = &[INITIAL, WIDER];

pub(super) fn open(backend: &Backend, registry: Registry) -> Arc<dyn MetadataStorage> {
    kindex_store::open(&backend.address, registry, &patient()).expect("the address is right")
}

/// A database of the old program with rows in every state; `None` where nobody else can open it.
pub(super) async fn with_rows(backend: &Backend, rows: u64) -> Option<()> {
    backend.rows("SELECT 1").await?;
    open(backend, program(OLD)).prepare().await.expect("taken up");
    let lives = [Life::Live, Life::Archived, Life::Deleted];
    let writes: Vec<_> = (1..=rows)
        .map(|row| {
            let spec = json!({"tint": format!("t{row}"), "small": row, "large": (row * 10_000_000_000).to_string(),
                "weight": row as f64 / 4.0, "shiny": row % 2 == 0, "due": "2026-11-01T12:00:00Z"});
            let life = lives[usize::try_from(row).expect("small") % 3];
            widget(&format!("u{row:04}"), &format!("n{row}"), row)
                .spec(spec)
                .store(life, Revive::Never)
        })
        .collect();
    backend.write_all(&writes, at(0)).await;
    Some(())
}

pub(super) async fn migrate(store: &Arc<dyn MetadataStorage>) -> Result<(usize, u64), MigrateError> {
    let migrated = store.migrate(&MigrateOptions::default(), &NoProgress).await?;
    let steps = migrated.iter().map(|migration| migration.steps).sum();
    Ok((steps, migrated.iter().map(|migration| migration.rows_filled).sum()))
}

pub(super) async fn expect_filled(backend: &Backend, rows: u64) {
    let sql = "SELECT uid, tint, small, large, weight, shiny, replace(replace(due, 'T', ' '), 'Z', '') \
               FROM widget ORDER BY uid";
    let found = backend.rows(sql).await.expect("not in memory");
    let wanted: Vec<Vec<Option<String>>> = (1..=rows)
        .map(|row| {
            let weight = row as f64 / 4.0;
            let weight = match &backend.address {
                // A whole number of SQLite's reads as one with a point.
                Address::Sqlite(_) if weight.fract() == 0.0 => format!("{weight:.1}"),
                Address::Sqlite(_) | Address::MySql(_) => weight.to_string(),
            };
            vec![
                format!("u{row:04}"),
                format!("t{row}"),
                row.to_string(),
                (row * 10_000_000_000).to_string(),
                weight,
                u8::from(row % 2 == 0).to_string(),
                "2026-11-01 12:00:00.000000".to_owned(),
            ]
        })
        .map(|cells| cells.into_iter().map(Some).collect())
        .collect();
    assert_eq!(found, wanted);
}

async fn a_new_column_is_filled_in_every_row(backend: Backend) {
    if with_rows(&backend, 450).await.is_none() {
        return;
    }
    let new = open(&backend, newer_program(NEW));
    let refused = new.prepare().await.expect_err("the database is older");
    assert!(refused.to_string().contains("kindex migrate"), "{refused}");
    let pending = new.pending().await.expect("read");
    assert_eq!(
        (pending.len(), pending[7].step.as_str()),
        (8, "fill widget: tint, small, large, weight, shiny, due")
    );
    assert_eq!(migrate(&new).await.expect("migrated"), (8, 450));
    expect_filled(&backend, 450).await;
    assert_eq!(new.migration_state().await.expect("read"), MigrationState::Current);
    new.prepare().await.expect("current");
    assert_eq!(migrate(&new).await.expect("nothing to do"), (0, 0));
    let refused = open(&backend, program(OLD))
        .prepare()
        .await
        .expect_err("the database is newer");
    assert!(refused.to_string().contains("newer program"), "{refused}");
}

async fn a_run_that_broke_off_anywhere_is_gone_on_with(backend: Backend) {
    if with_rows(&backend, 30).await.is_none() {
        return;
    }
    let new = open(&backend, newer_program(NEW));
    migrate(&new).await.expect("migrated");
    // The effects stay, and what is remembered is any part of them: as after a crash between a
    // statement and its note.
    for done in 0..8 {
        let forget = format!("UPDATE kindex_migrations SET steps_done = {done}, finish_time = NULL WHERE number = 2");
        backend.rows(&forget).await;
        backend.rows("UPDATE widget SET tint = NULL WHERE uid > 'u0010'").await;
        let interrupted = new.prepare().await.expect_err("it is under way");
        assert!(interrupted.to_string().contains("did not finish"), "{interrupted}");
        assert_eq!(
            migrate(&new).await.expect("gone on with"),
            (8 - done, 20),
            "after {done} steps"
        );
        expect_filled(&backend, 30).await;
    }
    let found = backend
        .rows("SELECT CAST(seq AS CHAR) FROM widget WHERE uid = 'u0025'")
        .await;
    let place = found.expect("a database on disk")[0][0].clone().expect("a number");
    backend
        .rows(&format!(
            "UPDATE kindex_migrations SET steps_done = 7, fill_after = {place}, finish_time = NULL WHERE number = 2"
        ))
        .await;
    backend.rows("UPDATE widget SET tint = NULL WHERE uid > 'u0025'").await;
    assert_eq!(
        migrate(&new).await.expect("gone on with"),
        (1, 5),
        "from the row on where it was"
    );
    expect_filled(&backend, 30).await;
}

async fn rows_that_an_older_program_wrote_since_are_filled_again(backend: Backend) {
    if with_rows(&backend, 20).await.is_none() {
        return;
    }
    let new = open(&backend, newer_program(NEW));
    migrate(&new).await.expect("migrated");
    // What is left of a row that a program stored which knows none of the columns.
    backend
        .rows("UPDATE widget SET tint = NULL, weight = NULL WHERE uid > 'u0015'")
        .await;
    let refill = MigrateOptions {
        refill: true,
        ..MigrateOptions::default()
    };
    let refilled = new.migrate(&refill, &NoProgress).await.expect("filled");
    let rows: Vec<u64> = refilled.iter().map(|migration| migration.rows_filled).collect();
    assert_eq!(rows, [5]);
    expect_filled(&backend, 20).await;
}

async fn pages_of_two_are_filled_to_the_last_row(backend: Backend) {
    if with_rows(&backend, 9).await.is_none() {
        return;
    }
    let options = MigrateOptions {
        page_rows: Some(2),
        ..MigrateOptions::default()
    };
    let migrated = open(&backend, newer_program(NEW)).migrate(&options, &NoProgress).await;
    let rows: u64 = migrated.expect("migrated").iter().map(|done| done.rows_filled).sum();
    assert_eq!(rows, 9);
    expect_filled(&backend, 9).await;
}

/// A text that somebody changed by hand.
async fn a_text_that_is_no_object_keeps_its_columns_and_holds_up_no_other_row(backend: Backend) {
    if with_rows(&backend, 5).await.is_none() {
        return;
    }
    let by_hand = "UPDATE widget SET json = '{\"by\": \"hand\"}' WHERE uid = 'u0003'";
    backend.rows(by_hand).await;
    let (_, filled) = migrate(&open(&backend, newer_program(NEW))).await.expect("migrated");
    assert_eq!(filled, 4);
    let left = backend.rows("SELECT uid FROM widget WHERE tint IS NULL").await;
    assert_eq!(left, Some(vec![vec![Some("u0003".to_owned())]]));
}

async fn several_that_migrate_at_once_agree(backend: Backend) {
    if with_rows(&backend, 250).await.is_none() {
        return;
    }
    let stores: Vec<_> = (0..4).map(|_| open(&backend, newer_program(NEW))).collect();
    for done in futures::future::join_all(stores.iter().map(migrate)).await {
        done.expect("each of them finds it done at the end");
    }
    expect_filled(&backend, 250).await;
    assert_eq!(
        stores[0].migration_state().await.expect("read"),
        MigrationState::Current
    );
}

async fn a_step_that_fails_is_named_and_what_came_before_it_stays(backend: Backend) {
    if with_rows(&backend, 3).await.is_none() {
        return;
    }
    const WITH_BROKEN: &[Migration] = &[INITIAL, WIDER, BROKEN];
    let new = open(&backend, newer_program(WITH_BROKEN));
    let error = migrate(&new).await.expect_err("a key is not there");
    assert!(matches!(error, MigrateError::Step { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("0003_broken") && text.contains("widget_tint"), "{text}");
    expect_filled(&backend, 3).await;
    assert_eq!(
        new.migration_state().await.expect("read"),
        MigrationState::Behind { first: 2 }
    );
    assert_eq!(
        new.pending().await.expect("read").len(),
        1,
        "the first step of the broken one has run"
    );
}

async fn an_edited_migration_is_refused(backend: Backend) {
    if with_rows(&backend, 1).await.is_none() {
        return;
    }
    const EDITED: &[Migration] = &[
        Migration {
            checksum: "edited",
            ..INITIAL
        },
        WIDER,
    ];
    let new = open(&backend, newer_program(EDITED));
    let error = migrate(&new).await.expect_err("another history");
    assert!(matches!(error, MigrateError::Refused(_)), "{error:?}");
    let error = new.prepare().await.expect_err("another history");
    assert!(
        matches!(error, StoreError::Schema(_)) && error.to_string().contains("migration 1"),
        "{error}"
    );
}

/// The migrations that were planned before the engine's dialect was there have no text for it.
async fn an_engine_begins_with_the_schema_of_the_day_on_which_it_came(backend: Backend) {
    const BEFORE: Migration = Migration { texts: &[], ..INITIAL };
    if with_rows(&backend, 9).await.is_none() {
        return;
    }
    backend.rows("DELETE FROM kindex_migrations").await;
    open(&backend, program(&[BEFORE])).prepare().await.expect("made");
    let new = open(&backend, newer_program(&[BEFORE, WIDER]));
    assert_eq!(migrate(&new).await.expect("migrated"), (8, 9));
    expect_filled(&backend, 9).await;
    let refill = MigrateOptions {
        refill: true,
        ..MigrateOptions::default()
    };
    new.migrate(&refill, &NoProgress).await.expect("nothing lacks a text");
    // One that has to run is refused without it.
    const LATER: Migration = Migration { texts: &[], ..BROKEN };
    let newest = open(&backend, newer_program(&[BEFORE, WIDER, LATER]));
    let refused = migrate(&newest).await.expect_err("no text");
    assert!(refused.to_string().contains("0003_broken has no text for"), "{refused}");
}

async fn a_database_made_by_the_schema_script_is_taken_up(backend: Backend) {
    // The harness prepared the tables with a program that knows no migration.
    if backend.rows("SELECT 1").await.is_none() {
        return;
    }
    let new = open(&backend, program(OLD));
    assert_eq!(new.migration_state().await.expect("read"), MigrationState::Untracked);
    assert_eq!(migrate(&new).await.expect("taken up"), (0, 0));
    assert_eq!(new.migration_state().await.expect("read"), MigrationState::Current);
    // Tables that lack a column are not, whoever made them.
    backend.rows("DELETE FROM kindex_migrations").await;
    let wider = open(&backend, newer_program(NEW));
    let error = migrate(&wider).await.expect_err("the column is not there");
    assert!(error.to_string().contains("`widget`"), "{error}");
    assert_eq!(wider.migration_state().await.expect("read"), MigrationState::Untracked);
}
