//! What the column of texts takes: every object as deep as clusters have them, and from others nothing that is no
//! JSON. What the store itself is given was read as JSON before.

use kindex_harness::require::passed_over;
use kindex_maintenance::sides::Sides;
use kindex_maintenance::verify::{Class, Difference, Finding, Options, verify};
use kindex_model::object::{Object, Uid};
use kindex_store::progress::NoProgress;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::backend::Backend;
use super::second_connection::SecondConnection;
use super::shelf::Shelf;
use super::widget::{REGISTRY, WIDGET, Widget, at, widget};

scenarios!(
    objects_of_any_depth_are_stored,
    nobody_stores_a_broken_text,
    verify_finds_the_broken_text_that_a_server_takes,
);

/// Levels around the limits of MariaDB's reader, MySQL's and, at last, SQLite's.
const DEPTHS: [usize; 8] = [1, 29, 30, 31, 98, 99, 100, 990];

fn deep(uid: &str, levels: usize) -> Widget {
    let inner = (0..levels).fold(json!("{[\"}"), |inner, level| match level % 2 {
        0 => json!({"a": inner, "b": {}}),
        _ => json!([[], inner]),
    });
    widget(uid, uid, 1).spec(json!({ "free": inner }))
}

/// What no engine's reader of JSON takes, whatever it begins and ends with. MariaDB's passes over an unknown escape and
/// over a number that ends early.
fn broken(whole: &str) -> Vec<String> {
    let ends = [
        "{\"broken}",
        "{\"broken\"}",
        "{\"a\": }",
        "{\"a\": 1,}",
        "{\"a\" 1}",
        "{\"a\": 01}",
        "{\"a\": tru}",
        "{\"a\": [1}",
        "{\"a\": [1]]}",
        "{\"a\": \"\\u12\"}",
        "{\"a\": 'b'}",
        "{\"a\": 1}{}",
        "{\"a\": 1} x",
        "{\"\": \"}",
        "{a: 1}",
        "{",
        "",
        "null x",
    ];
    let mut broken: Vec<String> = ends.map(str::to_owned).into();
    // Objects that lost something, deep ones as well.
    broken.push(whole[..whole.len() - 1].to_owned());
    broken.push(whole.replacen(':', "", 1));
    broken.push(whole.replacen('}', "", 1));
    broken.push(whole.replacen('"', "", 1));
    broken.push(format!("{whole}}}"));
    broken
}

async fn objects_of_any_depth_are_stored(backend: Backend) {
    for (number, levels) in DEPTHS.into_iter().enumerate() {
        let object = deep(&format!("u{number}"), levels);
        backend.write(object.live(), at(0)).await;
        let uids = [Uid::from(object.uid.as_str())];
        let images = backend.store.row_images(&WIDGET, &uids).await.expect("read");
        assert_eq!(images[0].text, object.text(), "{levels} levels, to the byte");
        // What changes the row and not the text is held to the same.
        let gone = [super::widget::soft_delete(&object.uid)];
        backend.write_all(&gone, at(1)).await;
    }
}

async fn nobody_stores_a_broken_text(backend: Backend) {
    for levels in [1, 40, 200] {
        let object = deep(&format!("u{levels}"), levels);
        backend.write(object.live(), at(0)).await;
        let Some(mut connection) = SecondConnection::open(&backend).await else {
            return;
        };
        for text in broken(&object.text()) {
            let shown: String = text.chars().take(80).collect();
            assert!(Object::parse_str(&text).is_err(), "{shown}");
            assert!(
                !takes(&mut connection, &object.uid, &text).await,
                "{levels} levels: {shown}"
            );
        }
        let right: Value = json!({"by": "hand", "metadata": {"name": "n"}});
        assert!(
            takes(&mut connection, &object.uid, &right.to_string()).await,
            "a right one is"
        );
        connection.close().await;
    }
}

/// What MariaDB's reader passes over inside of an object, and no other does.
const PASSED_OVER: [&str; 5] = [r#""\x""#, "1.", "-", "1e", r#""\u00e9\q""#];

async fn verify_finds_the_broken_text_that_a_server_takes(backend: Backend) {
    let Some(mut connection) = SecondConnection::open(&backend).await else {
        return passed_over("a database in memory can be opened by nobody but its store");
    };
    for (number, value) in PASSED_OVER.into_iter().enumerate() {
        let uid = format!("u{number}");
        let object = widget(&uid, &uid, 1).spec(json!({"free": "here"}));
        // No object is in the cluster that would tell.
        backend.write(object.archived(), at(0)).await;
        let text = object.text().replacen("\"here\"", value, 1);
        assert!(Object::parse_str(&text).is_err(), "{text}");
        let taken = takes(&mut connection, &uid, &text).await;
        let found = found(&backend).await;
        assert_eq!(found.contains(&uid), taken, "{text}: {found:?}");
    }
    connection.close().await;
}

/// Uids of rows whose texts are no objects.
async fn found(backend: &Backend) -> Vec<String> {
    let sides = Sides {
        platform: REGISTRY.platform,
        cluster: Arc::new(Shelf::default()),
        storage: backend.store.clone(),
    };
    let options = Options {
        settle: Duration::from_millis(5),
        ..Options::default()
    };
    let mut uids = Vec::new();
    let mut take = |finding: Finding| {
        let no_object = |one: &Difference| one.class == Class::Payload && one.detail.contains("is not a valid object");
        uids.extend(finding.differences.iter().any(no_object).then_some(finding.uid));
    };
    let checked = verify(&sides, &WIDGET, &options, &NoProgress, &mut take).await;
    checked.expect("both sides answer");
    uids
}

/// Whether the row may have this text, by a change of the text alone.
async fn takes(connection: &mut SecondConnection, uid: &str, text: &str) -> bool {
    let change = "UPDATE widget SET json = ? WHERE uid = ?";
    connection.change(change, &[text, uid]).await.is_ok()
}
