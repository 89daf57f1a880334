//! What goes in comes out: texts to the byte, times to the microsecond, labels as
//! Kubernetes compares them, sizes up to what an API server accepts.

use jiff::Timestamp;
use kindex_model::object::Uid;
use kindex_query::{Life, Revive};
use kindex_store::{ListQuery, RowWrite, Written};
use serde_json::json;

use super::backend::Backend;
use super::widget::{WIDGET, Widget, at, project, widget};

scenarios!(
    every_column_type_is_stored_and_null_where_absent,
    numbers_and_key_order_come_back_as_they_were,
    labels_that_differ_in_a_byte_stay_distinct,
    the_longest_label_key_fits,
    the_largest_annotations_and_objects_fit,
    dates_before_1970_and_in_the_year_9999,
    group_and_version_of_an_object_follow_it,
);

async fn text_of(backend: &Backend, uid: &str) -> String {
    let stored = backend.store.get_by_id(&WIDGET, &Uid::from(uid)).await;
    stored.expect("readable").expect("stored").object.text().to_owned()
}

fn row(cells: &[Option<&str>]) -> Vec<Vec<Option<String>>> {
    vec![cells.iter().map(|cell| cell.map(str::to_owned)).collect()]
}

async fn every_column_type_is_stored_and_null_where_absent(backend: Backend) {
    let full = widget("u1", "a", 7)
        .spec(json!({"group": "g", "order": -5, "key": "9007199254740993", "rank": 0.5}))
        .status(json!({"ready": false, "endTime": "2024-01-02T03:04:05.678901234+01:00"}));
    let empty = widget("u2", "b", 8);
    backend.write_all(&[full.live(), empty.live()], at(3)).await;
    let columns = "`group`, `order`, `key`, `rank`, `ready`";
    let read = |uid| format!("SELECT {columns} FROM widget WHERE uid = '{uid}'");
    if let Some(found) = backend.rows(&read("u1")).await {
        let wanted = ["g", "-5", "9007199254740993", "0.5", "0"].map(Some);
        assert_eq!(found, row(&wanted));
        assert_eq!(backend.rows(&read("u2")).await, Some(row(&[None; 5])));
    }
    let times = "SELECT replace(create_time, 'T', ' '), replace(update_time, 'T', ' '), \
                 replace(end_time, 'T', ' '), delete_time, evicted_time, length(content_hash), \
                 length(proto) FROM widget WHERE uid = 'u1'";
    if let Some(found) = backend.rows(times).await {
        let zone = backend.end_of_times();
        let time = |text: &str| Some(format!("{text}{zone}"));
        let proto = full.project().proto.as_ref().map(|bytes| bytes.len().to_string());
        let wanted = vec![
            time("2024-02-29 12:34:56.000000"),
            time("2023-11-14 22:13:23.123456"),
            // Cut off, not rounded.
            time("2024-01-02 02:04:05.678901"),
            None,
            None,
            Some("32".to_owned()),
            proto,
        ];
        assert_eq!(found, vec![wanted]);
    }
}

async fn numbers_and_key_order_come_back_as_they_were(backend: Backend) {
    let spec =
        r#"{"z":1e400,"a":123456789012345678901234567890,"m":1.10,"e":"\u0000é\ud83d\ude00","b":[ ],"neg":-0.0}"#;
    let text = widget("u1", "a", 1)
        .text()
        .replace(r#""spec":{}"#, &format!(r#""spec": {spec} "#));
    let write = RowWrite::Store {
        version: project(&text),
        life: Life::Live,
        revive: Revive::Never,
    };
    assert_eq!(backend.write(write, at(0)).await, Written::Inserted);
    assert_eq!(text_of(&backend, "u1").await, text);
}

async fn labels_that_differ_in_a_byte_stay_distinct(backend: Backend) {
    let labeled = [
        ("u1", "team", "fraud"),
        ("u2", "team", "Fraud"),
        ("u3", "team", "fraud "),
        ("u4", "team", "fráud"),
        ("u5", "Team", "fraud"),
    ];
    for (uid, key, value) in labeled {
        backend.write(widget(uid, uid, 1).label(key, value).live(), at(0)).await;
    }
    for (uid, key, value) in labeled {
        let query = ListQuery {
            labels: vec![(key.to_owned(), value.to_owned())],
            ..ListQuery::default()
        };
        let found = backend.store.list(&WIDGET, &query).await.expect("listed");
        let uids: Vec<&str> = found.iter().map(|stored| &*stored.object.metadata.uid.0).collect();
        assert_eq!(uids, [uid], "{key}={value:?}");
    }
    let both = widget("u6", "u6", 1)
        .label("case", "1")
        .label("Case", "2")
        .label("case ", "3");
    backend.write(both.live(), at(0)).await;
    if let Some(found) = backend
        .rows("SELECT COUNT(*) FROM widget_labels WHERE obj_uid = 'u6'")
        .await
    {
        assert_eq!(found, row(&[Some("3")]));
    }
}

async fn the_longest_label_key_fits(backend: Backend) {
    let key = format!("{}/{}", "p".repeat(253), "n".repeat(63));
    assert_eq!(key.len(), 317);
    let value = "v".repeat(63);
    let object = widget("u1", "a", 1).label(&key, &value).annotation(&key, "");
    backend.write(object.live(), at(0)).await;
    let wanted = row(&[Some(key.as_str()), Some(value.as_str())]);
    if let Some(found) = backend.rows("SELECT `key`, `value` FROM widget_labels").await {
        assert_eq!(found, wanted);
    }
}

async fn the_largest_annotations_and_objects_fit(backend: Backend) {
    let annotated = widget("u1", "a", 1).annotation("n", &"é".repeat(128 * 1024));
    backend.write(annotated.live(), at(0)).await;
    let bytes = backend.bytes_type();
    let size = format!("SELECT SUM(length(CAST(`value` AS {bytes}))) FROM widget_annotations");
    if let Some(found) = backend.rows(&size).await {
        assert_eq!(found, row(&[Some("262144")]));
    }
    // More than one statement can hold at the server's 16 MiB a packet.
    let large: Vec<Widget> = (0..8)
        .map(|number| {
            let filler = "0123456789abcdef".repeat(98_304);
            widget(&format!("big{number}"), &format!("big{number}"), 2).spec(json!({"f": filler}))
        })
        .collect();
    let batch: Vec<RowWrite> = large.iter().map(Widget::live).collect();
    let written = backend.write_all(&batch, at(0)).await;
    assert!(written.iter().all(|written| *written == Written::Inserted));
    for object in &large {
        assert!(text_of(&backend, &object.uid).await == object.text(), "{}", object.uid);
    }
}

async fn dates_before_1970_and_in_the_year_9999(backend: Backend) {
    for (uid, text) in [
        ("u1", "1969-12-31T23:59:59.000001Z"),
        ("u2", "1000-01-01T00:00:00Z"),
        ("u3", "9999-12-30T21:59:59.999999Z"),
    ] {
        let object = widget(uid, uid, 1).status(json!({"endTime": text}));
        let instant: Timestamp = text.parse().expect("a time");
        backend.write(object.live(), instant).await;
        let stored = backend.store.get_by_id(&WIDGET, &Uid::from(uid)).await;
        let stored = stored.expect("readable").expect("stored");
        assert_eq!(stored.update_time, Some(instant));
    }
    let ordered = "SELECT uid FROM widget ORDER BY end_time";
    if let Some(found) = backend.rows(ordered).await {
        let uids: Vec<_> = found.into_iter().flatten().flatten().collect();
        assert_eq!(uids, ["u2", "u1", "u3"]);
    }
    // Beyond the last instant that the runtime can hold.
    let beyond = widget("u4", "u4", 1).status(json!({"endTime": "9999-12-31T23:59:59Z"}));
    assert_eq!(beyond.project().problems.len(), 1);
    assert_eq!(backend.write(beyond.live(), at(0)).await, Written::Inserted);
}

async fn group_and_version_of_an_object_follow_it(backend: Backend) {
    let store = |text: &str| RowWrite::Store {
        version: project(text),
        life: Life::Live,
        revive: Revive::Never,
    };
    let in_v2 = |text: String| text.replace("test.kindex/v1", "test.kindex/v2");
    let silent = |text: String| text.replace(r#""apiVersion":"test.kindex/v1","#, "");
    backend.write(store(&in_v2(widget("u1", "a", 1).text())), at(0)).await;
    let read = "SELECT group_ver FROM widget";
    if let Some(found) = backend.rows(read).await {
        assert_eq!(found, row(&[Some("test.kindex/v2")]));
        backend.write(store(&silent(widget("u1", "a", 2).text())), at(0)).await;
        assert_eq!(backend.rows(read).await, Some(row(&[Some("test.kindex/v1")])));
    }
}
