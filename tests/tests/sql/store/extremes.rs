//! Values at and beyond what columns hold: each is stored to the byte, is NULL with a problem
//! that says so, or is refused. Nothing is cut in silence.

use kindex_harness::require::passed_over;
use kindex_model::object::{Object, ObjectError, ResourceVersion, Uid};
use kindex_model::row_version::RowVersion;
use kindex_query::{Life, Revive};
use kindex_store::{RowWrite, StoreError, Written};
use serde_json::json;

use super::backend::Backend;
use super::widget::{WIDGET, Widget, at, project, widget};

scenarios!(
    annotations_and_labels_hold_every_character,
    what_is_longer_than_its_column_is_refused_or_kept_whole,
    a_text_longer_than_its_extracted_column_is_null_with_a_problem,
    the_largest_version_is_stored_and_checked,
    a_row_with_a_version_beyond_64_signed_bits_is_never_overwritten,
    a_creation_time_that_does_not_fit_is_a_problem,
    one_object_with_everything_at_its_limit,
);

fn store(text: &str) -> RowWrite {
    RowWrite::Store {
        version: project(text),
        life: Life::Live,
        revive: Revive::Never,
    }
}

/// The side rows of one object, texts as hexadecimal digits: no client and no collation comes between.
async fn side_rows(backend: &Backend, side: &str, uid: &str) -> Option<Vec<(String, String)>> {
    let bytes = backend.bytes_type();
    let sql = format!(
        "SELECT HEX(CAST(`key` AS {bytes})), HEX(CAST(`value` AS {bytes})) FROM widget_{side} WHERE obj_uid = '{uid}'"
    );
    let rows = backend.rows(&sql).await?;
    let mut pairs: Vec<(String, String)> = rows
        .into_iter()
        .map(|mut row| (row.remove(0).expect("a key"), row.remove(0).expect("a value")))
        .collect();
    pairs.sort();
    Some(pairs)
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02X}")).collect()
}

async fn expect_sides(backend: &Backend, object: &Widget) {
    for (side, map) in [("labels", &object.labels), ("annotations", &object.annotations)] {
        let Some(found) = side_rows(backend, side, &object.uid).await else {
            continue;
        };
        let mut wanted: Vec<(String, String)> = map
            .iter()
            .map(|(key, value)| (hex(key), hex(value.as_str().expect("text"))))
            .collect();
        wanted.sort();
        assert!(found == wanted, "{side} of {}", object.uid);
    }
}

async fn text_of(backend: &Backend, uid: &str) -> Option<String> {
    let stored = backend.store.get_by_id(&WIDGET, &Uid::from(uid)).await;
    Some(stored.expect("readable")?.object.text().to_owned())
}

async fn annotations_and_labels_hold_every_character(backend: Backend) {
    let every_sort = "\u{0}a\u{0}\\'\"`%_?;--\t\r\n\u{7f}\u{85}é\u{2028}\u{fffd}\u{ffff}\u{1f600}\u{10ffff} \u{0}";
    let object = widget("u1", "a", 1)
        .annotation("plain", every_sort)
        .annotation("empty", "")
        .annotation("trailing ", " ")
        .annotation("trailing", "")
        .label("case", "A")
        .label("CASE", "a")
        .label("zero", "\u{0}")
        .label("zero\u{0}", "")
        .label("space", "x ")
        .label("space ", "x");
    assert_eq!(backend.write(object.live(), at(0)).await, Written::Inserted);
    expect_sides(&backend, &object).await;
    assert_eq!(text_of(&backend, "u1").await, Some(object.text()));
    // The same in other places: a change of one byte is one.
    let mut changed = object.annotation("empty", "\u{0}");
    changed.version = 2;
    assert_eq!(backend.write(changed.live(), at(1)).await, Written::Updated);
    expect_sides(&backend, &changed).await;
}

async fn what_is_longer_than_its_column_is_refused_or_kept_whole(backend: Backend) {
    let long = |length: usize| "x".repeat(length);
    let cases = [
        ("uid", widget(&long(65), "a", 1)),
        ("name", widget("u1", &long(256), 1)),
        ("label key", widget("u2", "b", 1).label(&long(318), "v")),
        ("label value", widget("u3", "c", 1).label("k", &long(64))),
        ("annotation key", widget("u4", "d", 1).annotation(&long(318), "v")),
    ];
    for (what, object) in cases {
        let good = widget("good", "good", 1);
        match backend.store.write(&WIDGET, &[good.live(), object.live()], at(0)).await {
            Ok(written) => {
                assert_eq!(written, [Written::Inserted; 2], "{what}");
                assert_eq!(text_of(&backend, &object.uid).await, Some(object.text()), "{what}");
                expect_sides(&backend, &object).await;
                let delete = "DELETE FROM widget WHERE uid = 'good'";
                if backend.rows(delete).await.is_none() {
                    return;
                }
            }
            Err(error) => {
                assert!(matches!(error, StoreError::Refused { .. }), "{what}: {error}");
                assert!(backend.limits_lengths(), "the engine has no lengths: {what}");
                assert_eq!(
                    text_of(&backend, "good").await,
                    None,
                    "{what}: a batch is all or nothing"
                );
            }
        }
    }
}

async fn a_text_longer_than_its_extracted_column_is_null_with_a_problem(backend: Backend) {
    let fits = widget("u1", "a", 1).spec(json!({"group": "é".repeat(64)}));
    let long = widget("u2", "b", 1).spec(json!({"group": "é".repeat(65), "order": 2_147_483_648_i64}));
    assert!(fits.project().problems.is_empty());
    let problems = long.project().problems.clone();
    let paths: Vec<&str> = problems.iter().map(|problem| problem.path.as_str()).collect();
    assert_eq!(paths, ["spec.group", "spec.order"]);
    backend.write_all(&[fits.live(), long.live()], at(0)).await;
    if let Some(found) = backend.rows("SELECT `group`, `order` FROM widget ORDER BY uid").await {
        assert_eq!(found, [[Some("é".repeat(64)), None], [None, None]]);
    }
    assert_eq!(text_of(&backend, "u2").await, Some(long.text()));
}

async fn the_largest_version_is_stored_and_checked(backend: Backend) {
    const LARGEST: u64 = i64::MAX.unsigned_abs();
    let newest = widget("u1", "a", LARGEST);
    assert_eq!(backend.write(newest.live(), at(0)).await, Written::Inserted);
    let state = backend.state("u1").await.expect("stored");
    assert_eq!(state.res_version, RowVersion::Cluster(ResourceVersion(LARGEST)));
    let older = widget("u1", "a", LARGEST - 1);
    assert_eq!(backend.write(older.live(), at(1)).await, Written::Superseded);
    for beyond in ["9223372036854775808", "18446744073709551616", "-1", "1e3", ""] {
        let text = newest.text().replace(&LARGEST.to_string(), beyond);
        let refused = Object::parse_str(&text);
        assert!(
            matches!(&refused, Err(ObjectError::ResourceVersion { text, .. }) if text == beyond),
            "{beyond:?}: {refused:?}"
        );
    }
}

async fn a_row_with_a_version_beyond_64_signed_bits_is_never_overwritten(backend: Backend) {
    if !backend.has_unsigned_versions() {
        return passed_over("the engine's integers end where Kubernetes' versions do");
    }
    let foreign = "INSERT INTO widget (uid, group_ver, namespace, name, res_version, create_time, json) \
                   VALUES ('u1', 'test.kindex/v1', 'shop', 'a', 18446744073709551615, '2024-01-01', '{}')";
    backend.rows(foreign).await;
    let state = backend.state("u1").await.expect("stored");
    assert_eq!(state.res_version, RowVersion::Cluster(ResourceVersion(u64::MAX)));
    let write = widget("u1", "a", 5).live();
    assert_eq!(backend.write(write, at(0)).await, Written::Superseded);
}

async fn a_creation_time_that_does_not_fit_is_a_problem(backend: Backend) {
    let created = "2024-02-29T12:34:56Z";
    for (uid, time, stored, problems) in [
        ("u1", "1969-12-31T23:59:59Z", "1969-12-31 23:59:59", 0),
        ("u2", "1000-01-01T00:00:00Z", "1000-01-01 00:00:00", 0),
        ("u3", "0999-12-31T23:59:59Z", "1970-01-01 00:00:00", 1),
        ("u4", "0001-01-01T00:00:00Z", "1970-01-01 00:00:00", 1),
    ] {
        let text = widget(uid, uid, 1).text().replace(created, time);
        assert_eq!(project(&text).problems.len(), problems, "{time}");
        assert_eq!(backend.write(store(&text), at(0)).await, Written::Inserted);
        let read = format!("SELECT replace(create_time, 'T', ' ') FROM widget WHERE uid = '{uid}'");
        if let Some(found) = backend.rows(&read).await {
            let found = found[0][0].as_deref().expect("never NULL");
            assert!(found.starts_with(stored), "{time}: {found}");
        }
    }
    // No time of the calendar that Kubernetes writes: the object as a whole is not one.
    let text = widget("u5", "u5", 1).text().replace(created, "10000-01-01T00:00:00Z");
    assert!(matches!(Object::parse_str(&text), Err(ObjectError::Json(_))));
}

/// What an API server accepts at most: 1.5 MiB in all, 256 KiB of annotations, keys of 317 characters.
async fn one_object_with_everything_at_its_limit(backend: Backend) {
    let key = |letter: &str| format!("{}/{}", letter.repeat(253), letter.repeat(63));
    let mut object = widget("u1", &"n".repeat(253), i64::MAX.unsigned_abs() - 1);
    for letter in ["a", "b", "c"] {
        object = object.label(&key(letter), &letter.repeat(63));
    }
    let annotations = 262_144 - 317;
    object = object.annotation(&key("z"), &"\u{0}".repeat(annotations));
    let filler = "\u{1f600}".repeat(100_000);
    // A NUL is six bytes of JSON.
    object = object.spec(json!({"f": filler, "group": "\u{0}"}));
    assert!(object.text().len() > 1_900_000);
    assert_eq!(backend.write(object.live(), at(0)).await, Written::Inserted);
    expect_sides(&backend, &object).await;
    assert!(text_of(&backend, "u1").await == Some(object.text()));
    if let Some(found) = backend.rows("SELECT HEX(`group`) FROM widget").await {
        assert_eq!(found, [[Some("00".to_owned())]]);
    }
    assert_eq!(backend.write(object.live(), at(1)).await, Written::Unchanged);
}
