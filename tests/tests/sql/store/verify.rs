//! `verify` finds every class of difference that is planted into a database, and nothing
//! where nothing was planted.

use std::sync::Arc;
use std::time::Duration;

use kindex_maintenance::sides::Sides;
use kindex_maintenance::verify::{Checked, Class, Finding, Options, verify};
use kindex_query::{Life, Revive};
use kindex_store::progress::NoProgress;
use serde_json::json;

use super::backend::Backend;
use super::shelf::Shelf;
use super::widget::{REGISTRY, WIDGET, Widget, at, soft_delete, widget};

scenarios!(
    equal_sides_are_clean,
    finds_a_missing_row,
    finds_an_orphan,
    finds_a_row_that_is_deleted_while_its_object_is_there,
    finds_an_archived_row_whose_object_is_there,
    finds_another_version,
    finds_another_text,
    finds_a_text_that_is_no_object,
    finds_wrong_metadata,
    finds_every_wrong_column,
    finds_a_wrong_message,
    finds_labels_that_are_missing_extra_twice_or_other_ones,
    finds_annotations_that_are_missing_extra_twice_or_other_ones,
    finds_a_wrong_content_hash,
    finds_sides_without_a_row,
    finds_two_rows_of_one_name,
    a_damaged_only_copy_is_lost,
    a_change_on_its_way_is_no_difference,
    what_others_hold_differs_only_where_its_row_lacks_their_last_text,
    a_list_that_expires_begins_anew_and_reports_once,
    a_namespace_is_compared_alone,
    all_pages_of_both_sides_are_read,
);

fn thing(number: u64) -> Widget {
    let uid = format!("u{number}");
    widget(&uid, &uid, number + 10)
        .label("team", "risk")
        .label("tier", "1 ")
        .annotation("note", "é\u{1f600}")
        .spec(
            json!({"group": "g", "order": number, "key": "9007199254740993", "rank": 0.1,
            "size": "18446744073709551615"}),
        )
        .status(json!({"ready": true, "endTime": "2026-01-31T23:59:59.987654321Z"}))
}

/// Objects u0 to u5 with their rows, and rows of an archived and of a deleted object.
struct Sample {
    backend: Backend,
    shelf: Arc<Shelf>,
}

impl Sample {
    async fn new(backend: Backend) -> Self {
        let shelf = Arc::new(Shelf::default());
        for number in 0..6 {
            shelf.put(&thing(number));
            backend.write(thing(number).live(), at(0)).await;
        }
        backend.write(thing(6).archived(), at(1)).await;
        backend.write(thing(7).live(), at(1)).await;
        backend.write(soft_delete("u7"), at(2)).await;
        Self { backend, shelf }
    }

    /// Changes the database behind the store's back; false where nobody else can open it.
    async fn plant(&self, sql: &str) -> bool {
        self.backend.rows(sql).await.is_some()
    }

    async fn verify_with(&self, options: &Options) -> (Checked, Vec<Finding>) {
        let sides = Sides {
            platform: REGISTRY.platform,
            cluster: self.shelf.clone(),
            storage: self.backend.store.clone(),
        };
        let mut findings = Vec::new();
        let mut found = |finding| findings.push(finding);
        let checked = verify(&sides, &WIDGET, options, &NoProgress, &mut found).await;
        (checked.expect("both sides answer"), findings)
    }

    async fn verify(&self) -> (Checked, Vec<Finding>) {
        self.verify_with(&quick()).await
    }

    /// Uid and class of everything that is found, in order.
    async fn found(&self) -> Vec<(String, Class)> {
        let (_, findings) = self.verify().await;
        let mut pairs: Vec<(String, Class)> = findings
            .iter()
            .flat_map(|finding| finding.differences.iter().map(|one| (finding.uid.clone(), one.class)))
            .collect();
        pairs.sort();
        pairs
    }
}

fn quick() -> Options {
    Options {
        settle: Duration::from_millis(5),
        ..Options::default()
    }
}

fn of(uid: &str, classes: &[Class]) -> Vec<(String, Class)> {
    classes.iter().map(|class| (uid.to_owned(), *class)).collect()
}

async fn equal_sides_are_clean(backend: Backend) {
    let sample = Sample::new(backend).await;
    let (checked, findings) = sample.verify().await;
    assert_eq!(findings, []);
    assert_eq!((checked.objects, checked.rows, checked.differing), (6, 8, 0));
}

async fn finds_a_missing_row(backend: Backend) {
    let sample = Sample::new(backend).await;
    sample.shelf.put(&thing(8));
    assert_eq!(sample.found().await, of("u8", &[Class::Missing]));
}

async fn finds_an_orphan(backend: Backend) {
    let sample = Sample::new(backend).await;
    sample.shelf.take("u2");
    assert_eq!(sample.found().await, of("u2", &[Class::Orphan]));
}

async fn finds_a_row_that_is_deleted_while_its_object_is_there(backend: Backend) {
    let sample = Sample::new(backend).await;
    sample.shelf.put(&thing(7));
    assert_eq!(sample.found().await, of("u7", &[Class::Deleted]));
}

async fn finds_an_archived_row_whose_object_is_there(backend: Backend) {
    let sample = Sample::new(backend).await;
    sample.shelf.put(&thing(6));
    assert_eq!(sample.found().await, of("u6", &[Class::Evicted]));
}

async fn finds_another_version(backend: Backend) {
    let sample = Sample::new(backend).await;
    sample.shelf.put(&Widget {
        version: 99,
        ..thing(1)
    });
    assert_eq!(sample.found().await, of("u1", &[Class::Version]));
}

async fn finds_another_text(backend: Backend) {
    let sample = Sample::new(backend).await;
    sample.shelf.put(&thing(1).spec(json!({"group": "other"})));
    assert_eq!(sample.found().await, of("u1", &[Class::Payload]));
}

async fn finds_a_text_that_is_no_object(backend: Backend) {
    let sample = Sample::new(backend).await;
    if sample
        .plant("UPDATE `widget` SET `json` = '{}' WHERE `uid` = 'u1'")
        .await
    {
        assert_eq!(sample.found().await, of("u1", &[Class::Payload, Class::Payload]));
    }
}

async fn finds_wrong_metadata(backend: Backend) {
    let sample = Sample::new(backend).await;
    for (change, classes) in [
        ("`group_ver` = 'g/v9'", &[Class::Metadata][..]),
        ("`namespace` = 'other'", &[Class::Metadata]),
        ("`name` = 'other'", &[Class::Metadata]),
        ("`create_time` = '2001-01-01 00:00:00.000000'", &[Class::Metadata]),
        ("`res_version` = 3", &[Class::Version, Class::Metadata]),
    ] {
        let sql = format!("UPDATE `widget` SET {change} WHERE `uid` = 'u1'");
        if sample.plant(&sql).await {
            assert_eq!(sample.found().await, of("u1", classes), "{change}");
            sample.plant("DELETE FROM `widget` WHERE `uid` = 'u1'").await;
            sample.plant("DELETE FROM `widget_labels` WHERE `obj_uid` = 'u1'").await;
            sample
                .plant("DELETE FROM `widget_annotations` WHERE `obj_uid` = 'u1'")
                .await;
            sample.backend.write(thing(1).live(), at(3)).await;
        }
    }
}

async fn finds_every_wrong_column(backend: Backend) {
    let sample = Sample::new(backend).await;
    for (column, wrong, right) in [
        ("group", "'other'", "'g'"),
        ("group", "NULL", "'g'"),
        ("order", "7", "6"),
        ("key", "9007199254740992", "9007199254740993"),
        ("rank", "0.35", "0.1"),
        ("size", "18446744073709551614", "'18446744073709551615'"),
        ("size", "7", "'18446744073709551615'"),
        ("ready", "0", "1"),
        ("ready", "2", "1"),
        (
            "end_time",
            "'2026-01-31 23:59:58.987654'",
            "'2026-01-31 23:59:59.987654'",
        ),
    ] {
        let set = |value: &str| format!("UPDATE `widget` SET `{column}` = {value} WHERE `uid` = 'u6'");
        if sample.plant(&set(wrong)).await {
            assert_eq!(sample.found().await, of("u6", &[Class::Column]), "{column} = {wrong}");
            sample.plant(&set(right)).await;
            assert_eq!(sample.found().await, [], "{column} = {right}");
        }
    }
}

async fn finds_a_wrong_message(backend: Backend) {
    let sample = Sample::new(backend).await;
    if sample
        .plant("UPDATE `widget` SET `proto` = NULL WHERE `uid` = 'u1'")
        .await
    {
        assert_eq!(sample.found().await, of("u1", &[Class::Proto]));
    }
}

async fn finds_labels_that_are_missing_extra_twice_or_other_ones(backend: Backend) {
    sides_are_compared(backend, "widget_labels", "team", Class::Label).await;
}

async fn finds_annotations_that_are_missing_extra_twice_or_other_ones(backend: Backend) {
    sides_are_compared(backend, "widget_annotations", "note", Class::Annotation).await;
}

async fn sides_are_compared(backend: Backend, table: &str, key: &str, class: Class) {
    let sample = Sample::new(backend).await;
    let row = format!("`obj_uid` = 'u1' AND `key` = '{key}'");
    let kept = format!(
        "(SELECT kept FROM (SELECT `value` AS kept FROM `{table}` WHERE `obj_uid` = 'u0' \
         AND `key` = '{key}') AS good)"
    );
    for (plant, undo) in [
        (
            format!("INSERT INTO `{table}` (`obj_uid`, `key`, `value`) VALUES ('u1', 'Team', 'risk')"),
            format!("DELETE FROM `{table}` WHERE `obj_uid` = 'u1' AND `key` = 'Team'"),
        ),
        (
            format!("UPDATE `{table}` SET `value` = 'other' WHERE {row}"),
            format!("UPDATE `{table}` SET `value` = {kept} WHERE {row}"),
        ),
        (
            format!("UPDATE `{table}` SET `value` = NULL WHERE {row}"),
            format!("UPDATE `{table}` SET `value` = {kept} WHERE {row}"),
        ),
        (
            format!("DELETE FROM `{table}` WHERE {row}"),
            format!("INSERT INTO `{table}` (`obj_uid`, `key`, `value`) VALUES ('u1', '{key}', {kept})"),
        ),
        (
            format!("INSERT INTO `{table}` (`obj_uid`, `key`, `value`) VALUES ('u1', '{key}', {kept})"),
            "SELECT 1".to_owned(),
        ),
    ] {
        if !sample.plant(&plant).await {
            return;
        }
        assert_eq!(sample.found().await, of("u1", &[class]), "{plant}");
        if undo != "SELECT 1" {
            sample.plant(&undo).await;
            assert_eq!(sample.found().await, [], "{undo}");
        }
    }
}

async fn finds_a_wrong_content_hash(backend: Backend) {
    let sample = Sample::new(backend).await;
    if sample
        .plant("UPDATE `widget` SET `content_hash` = NULL WHERE `uid` = 'u1'")
        .await
    {
        let other = "UPDATE `widget` SET `content_hash` = (SELECT kept FROM (SELECT `content_hash` AS kept FROM \
             `widget` WHERE `uid` = 'u0') AS good) WHERE `uid` = 'u2'";
        sample.plant(other).await;
        let expected = [of("u1", &[Class::ContentHash]), of("u2", &[Class::ContentHash])];
        assert_eq!(sample.found().await, expected.concat());
    }
}

async fn finds_sides_without_a_row(backend: Backend) {
    let sample = Sample::new(backend).await;
    if sample
        .plant("INSERT INTO `widget_labels` (`obj_uid`, `key`, `value`) VALUES ('u9', 'a', 'b')")
        .await
    {
        sample
            .plant("INSERT INTO `widget_annotations` (`obj_uid`, `key`, `value`) VALUES ('a', 'a', 'b')")
            .await;
        let expected = [of("a", &[Class::OrphanedSides]), of("u9", &[Class::OrphanedSides])];
        assert_eq!(sample.found().await, expected.concat());
    }
}

async fn finds_two_rows_of_one_name(backend: Backend) {
    let sample = Sample::new(backend).await;
    let again = widget("v6", "u6", 30);
    sample.shelf.put(&again);
    sample.backend.write(again.live(), at(3)).await;
    assert_eq!(sample.found().await, [], "the writer closes the older one");
    if sample
        .plant("UPDATE `widget` SET `delete_time` = NULL WHERE `uid` = 'u6'")
        .await
    {
        let expected = [of("u6", &[Class::Namesake]), of("v6", &[Class::Namesake])];
        assert_eq!(sample.found().await, expected.concat());
    }
}

async fn a_damaged_only_copy_is_lost(backend: Backend) {
    let sample = Sample::new(backend).await;
    if sample
        .plant("UPDATE `widget` SET `json` = '{}' WHERE `uid` = 'u6'")
        .await
    {
        let (checked, findings) = sample.verify().await;
        assert_eq!((checked.lost, findings.len()), (1, 1));
        assert!(findings[0].lost);
    }
}

/// What differs in the list, and no more when it is asked for.
async fn a_change_on_its_way_is_no_difference(backend: Backend) {
    let sample = Sample::new(backend).await;
    let newer = Widget {
        version: 99,
        ..thing(1)
    };
    // The row has a version that came after the list, and the object is asked for once more.
    sample.backend.write(newer.live(), at(3)).await;
    sample.shelf.before_get(move |shelf| shelf.put(&newer));
    assert_eq!(sample.found().await, []);
    // In the list without a row, and gone.
    sample.shelf.put(&thing(8));
    sample.shelf.before_get(|shelf| shelf.take("u8"));
    assert_eq!(sample.found().await, []);
    // Not in the list, and created since.
    sample.backend.write(thing(9).live(), at(3)).await;
    sample.shelf.before_get(|shelf| shelf.put(&thing(9)));
    assert_eq!(sample.found().await, []);
}

async fn what_others_hold_differs_only_where_its_row_lacks_their_last_text(backend: Backend) {
    let sample = Sample::new(backend).await;
    let mut held = thing(7);
    held.version = 40;
    held.deletion = Some("2026-01-01T00:00:00Z".to_owned());
    sample.shelf.put(&held);
    assert_eq!(sample.found().await, of("u7", &[Class::Version]));
    sample
        .backend
        .write(held.store(Life::Deleted, Revive::Never), at(3))
        .await;
    assert_eq!(sample.found().await, []);
}

async fn a_list_that_expires_begins_anew_and_reports_once(backend: Backend) {
    let sample = Sample::new(backend).await;
    let many: Vec<Widget> = (100..1_200).map(thing).collect();
    many.iter().for_each(|widget| sample.shelf.put(widget));
    let writes: Vec<_> = many.iter().skip(1).map(Widget::live).collect();
    sample.backend.write_all(&writes, at(3)).await;
    *sample.shelf.expired.lock().unwrap() = 2;
    let (checked, findings) = sample.verify().await;
    assert_eq!((checked.objects, checked.rows, findings.len()), (1_106, 1_107, 1));
    assert_eq!(findings[0].uid, "u100");
}

/// Differences that only later pages have: of the list, of the rows, of rows beside them, of what is read again.
async fn all_pages_of_both_sides_are_read(backend: Backend) {
    let sample = Sample::new(backend).await;
    let orphans: Vec<_> = (10..17).map(|number| thing(number).live()).collect();
    sample.backend.write_all(&orphans, at(3)).await;
    (20..27).for_each(|number| sample.shelf.put(&thing(number)));
    let mut expected: Vec<(String, Class)> = (10..17).map(|number| (format!("u{number}"), Class::Orphan)).collect();
    expected.extend((20..27).map(|number| (format!("u{number}"), Class::Missing)));
    for number in 30..37 {
        let sql = format!("INSERT INTO `widget_labels` (`obj_uid`, `key`, `value`) VALUES ('u{number}', 'a', 'b')");
        if sample.plant(&sql).await {
            expected.push((format!("u{number}"), Class::OrphanedSides));
        }
    }
    for rows in [[2, 2], [1, 1], [2, 5], [1000, 1000]] {
        let [page_rows, scan_rows] = rows;
        let options = Options {
            page_rows,
            scan_rows,
            ..quick()
        };
        let (checked, findings) = sample.verify_with(&options).await;
        let mut found: Vec<(String, Class)> = findings
            .iter()
            .flat_map(|finding| finding.differences.iter().map(|one| (finding.uid.clone(), one.class)))
            .collect();
        found.sort();
        assert_eq!(found, expected, "pages of {rows:?}");
        assert_eq!((checked.objects, checked.rows), (13, 15), "pages of {rows:?}");
    }
}

async fn a_namespace_is_compared_alone(backend: Backend) {
    let sample = Sample::new(backend).await;
    sample.shelf.take("u2");
    // Nobody knows the namespace of what has no row.
    sample
        .plant("INSERT INTO `widget_labels` (`obj_uid`, `key`, `value`) VALUES ('u9', 'a', 'b')")
        .await;
    for (namespace, objects, rows, differing) in [("shop", 5, 8, 1), ("Shop", 0, 0, 0)] {
        let options = Options {
            namespace: Some(namespace.to_owned()),
            ..quick()
        };
        let (checked, _) = sample.verify_with(&options).await;
        let counted = (checked.objects, checked.rows, checked.differing);
        assert_eq!(counted, (objects, rows, differing), "{namespace}");
    }
}
