//! What is there after an adoption: the tables of an empty database, and every row with every value.

use kindex_generated::registry;
use kindex_maintenance::verify::compare;
use kindex_model::kind::{ColumnType, Kind};
use kindex_model::object::{Object, Uid};
use kindex_model::projection::{ContentHash, Version};
use kindex_query::Life;
use kindex_store::progress::NoProgress;
use kindex_store::{AdoptOptions, MigrationState, RowImage};

use super::fixture::{Reference, STATES, object, uid};
use crate::schema::server::{Product, on_servers};

on_servers!(
    the_tables_are_those_of_an_empty_database,
    every_row_is_there_with_every_value,
    a_kind_that_was_archived_as_a_whole_is_named,
    the_rows_of_all_pages_are_taken_up,
    text_compares_by_its_bytes_afterwards,
    a_table_of_ours_that_lost_a_column_gets_it_back_filled,
    what_somebody_added_stays,
);

async fn adopt(reference: &Reference) -> kindex_store::Adopted {
    let adopted = reference.store().adopt(&AdoptOptions::default(), &NoProgress).await;
    adopted.unwrap_or_else(|error| panic!("{error}"))
}

async fn the_tables_are_those_of_an_empty_database(product: Product) {
    let Some(mut reference) = Reference::filled(product).await else {
        return;
    };
    let pending = reference.store().adoption().await.expect("it can be taken up");
    let adopted = adopt(&reference).await;
    let kinds = registry().kinds;
    let histories = kinds.iter().filter(|kind| kind.history).count();
    assert_eq!(
        pending.len(),
        39 + histories + 13,
        "a statement for each table, and the rows of each kind"
    );
    assert_eq!((adopted.statements, adopted.kinds.len()), (39 + histories, 13));
    let taken_up = reference.catalog().await;
    reference
        .execute("CREATE DATABASE IF NOT EXISTS fresh; USE fresh")
        .await;
    let schema = registry().schema("mysql").expect("a dialect of the generator");
    reference.execute(schema).await;
    let fresh = reference.catalog().await;
    for (taken_up, fresh) in taken_up.iter().zip(&fresh) {
        assert_eq!(taken_up, fresh);
    }
    assert_eq!(taken_up.len(), fresh.len());
    let store = reference.store();
    assert_eq!(store.migration_state().await.expect("read"), MigrationState::Current);
    store.prepare().await.expect("a program of ours writes to it");
    let again = adopt(&reference).await;
    assert_eq!((again.statements, again.kinds.len()), (0, 0), "nothing is left to do");
}

async fn image(reference: &Reference, kind: &'static Kind, state: &str) -> RowImage {
    let images = reference
        .store()
        .row_images(kind, &[Uid::from(uid(kind, state).as_str())])
        .await;
    let mut images = images.expect("rows are read");
    images.pop().expect("no row was lost")
}

async fn every_row_is_there_with_every_value(product: Product) {
    let Some(reference) = Reference::filled(product).await else {
        return;
    };
    adopt(&reference).await;
    for kind in registry().kinds {
        for state in STATES {
            let row = image(&reference, kind, state).await;
            let expected = object(kind, state);
            let text: serde_json::Value = serde_json::from_str(&row.text).expect("JSON");
            assert_eq!(text, expected, "the text, whatever the server did to its spelling");
            let version = Version::project(kind, Object::parse_str(&row.text).expect("an object"));
            assert_eq!(row.columns.len(), version.columns.len());
            let times =
                [row.update_time, row.delete_time, row.evicted_time].map(|time| time.map(|time| time.to_string()));
            let (updated, deleted) = (
                Some("2026-03-01T10:00:00Z".to_owned()),
                Some("2026-04-01T00:00:00Z".to_owned()),
            );
            let found = compare(kind, &registry().platform, None, Some(&row));
            match state {
                "live" => {
                    assert_eq!(times, [updated, None, None]);
                    assert_eq!(row.content_hash, None, "the ingester writes it once more");
                }
                "deleted" => assert_eq!(times, [updated, deleted, None]),
                _ => assert_eq!(times, [updated.clone(), None, updated]),
            }
            if state == "live" {
                continue;
            }
            assert_eq!(found, [], "{}: nobody writes it again", kind.name);
            let hash = row.content_hash.as_deref().and_then(ContentHash::from_bytes);
            assert_eq!(hash, Some(version.hash));
        }
    }
}

async fn a_kind_that_was_archived_as_a_whole_is_named(product: Product) {
    let Some(reference) = Reference::filled(product).await else {
        return;
    };
    let [first, second, ..] = registry().kinds else {
        panic!("there are kinds")
    };
    let options = AdoptOptions {
        archived: vec![first.name],
        // The rows of a kind are several pages.
        page_rows: Some(2),
        ..AdoptOptions::default()
    };
    let adopted = reference.store().adopt(&options, &NoProgress).await.expect("taken up");
    assert_eq!((adopted.kinds[0].evicted, adopted.kinds[1].evicted), (2, 1));
    assert_eq!(image(&reference, first, "live").await.life(), Life::Archived);
    assert_eq!(image(&reference, first, "deleted").await.life(), Life::Deleted);
    assert_eq!(image(&reference, second, "live").await.life(), Life::Live);
}

async fn the_rows_of_all_pages_are_taken_up(product: Product) {
    let Some(mut reference) = Reference::empty(product).await else {
        return;
    };
    let kind = registry().kinds[0];
    // Not in the order of their uids.
    for number in [4, 1, 6, 3, 0, 5, 2] {
        let mut object = object(kind, "deleted");
        object["metadata"]["uid"] = format!("uid-{number}").into();
        object["metadata"]["name"] = format!("name-{number}").into();
        reference.insert(kind, "deleted", &object).await;
    }
    let options = AdoptOptions {
        page_rows: Some(2),
        ..AdoptOptions::default()
    };
    let adopted = reference.store().adopt(&options, &NoProgress).await.expect("taken up");
    let counts = &adopted.kinds[0];
    assert_eq!((counts.rows, counts.changed, counts.unread), (7, 7, 0));
    let whole = format!("SELECT COUNT(*) FROM `{}` WHERE `content_hash` IS NOT NULL", kind.table);
    assert_eq!(reference.rows(&whole).await, [[Some("7".to_owned())]]);
}

async fn text_compares_by_its_bytes_afterwards(product: Product) {
    let Some(mut reference) = Reference::filled(product).await else {
        return;
    };
    let question = "SELECT COUNT(*) FROM project_labels WHERE `key` = 'team'";
    assert_eq!(reference.rows(question).await, [[Some("6".to_owned())]]);
    adopt(&reference).await;
    assert_eq!(reference.rows(question).await, [[Some("3".to_owned())]]);
}

async fn a_table_of_ours_that_lost_a_column_gets_it_back_filled(product: Product) {
    let Some(mut reference) = Reference::filled(product).await else {
        return;
    };
    adopt(&reference).await;
    let kinds = registry().kinds;
    let numbered = |kind: &&&Kind| kind.columns.iter().any(|column| column.ty == ColumnType::Int32);
    let kind = kinds.iter().find(numbered).expect("a kind with a number");
    let column = kind
        .columns
        .iter()
        .find(|column| column.ty == ColumnType::Int32)
        .expect("found above");
    reference
        .execute(&format!("ALTER TABLE `{}` DROP COLUMN `{}`", kind.table, column.name))
        .await;
    let adopted = adopt(&reference).await;
    assert_eq!(adopted.statements, 1);
    let filled = reference
        .rows(&format!(
            "SELECT COUNT(*) FROM `{}` WHERE `{}` = 10",
            kind.table, column.name
        ))
        .await;
    assert_eq!(filled, [[Some("3".to_owned())]]);
}

async fn what_somebody_added_stays(product: Product) {
    let Some(mut reference) = Reference::filled(product).await else {
        return;
    };
    reference
        .execute("ALTER TABLE project ADD COLUMN remark VARCHAR(20) DEFAULT 'mine', ADD KEY project_remark (remark)")
        .await;
    reference.execute("CREATE TABLE notes (id INT PRIMARY KEY)").await;
    adopt(&reference).await;
    let rows = reference.rows("SELECT DISTINCT remark FROM project").await;
    assert_eq!(rows, [[Some("mine".to_owned())]]);
    assert_eq!(
        reference.rows("SELECT COUNT(*) FROM notes").await,
        [[Some("0".to_owned())]]
    );
    reference.store().prepare().await.expect("it is in nobody's way");
}
