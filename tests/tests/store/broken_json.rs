//! What the column of texts takes: every object as deep as clusters have them, and from others nothing that is no
//! JSON. What the store itself is given was read as JSON before.

use kindex_runtime::object::{Object, Uid};
use kindex_runtime::store::{Address, SqlitePlace};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};

use super::backend::Backend;
use super::widget::{WIDGET, Widget, at, widget};
use serde_json::{Value, json};

scenarios!(objects_of_any_depth_are_stored, nobody_stores_a_broken_text,);

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
        let Some(mut door) = Door::open(&backend).await else {
            return;
        };
        for text in broken(&object.text()) {
            let shown: String = text.chars().take(80).collect();
            assert!(Object::parse_str(&text).is_err(), "{shown}");
            assert!(!door.takes(&object.uid, &text).await, "{levels} levels: {shown}");
        }
        let right: Value = json!({"by": "hand", "metadata": {"name": "n"}});
        assert!(door.takes(&object.uid, &right.to_string()).await, "a right one is");
        door.close().await;
    }
}

/// A connection beside the store.
enum Door {
    Sqlite(sqlx::SqliteConnection),
    MySql(sqlx::MySqlConnection),
}

impl Door {
    async fn open(backend: &Backend) -> Option<Self> {
        backend.rows("SELECT 1").await?;
        match &backend.address {
            Address::Sqlite(SqlitePlace::Memory) => None,
            Address::Sqlite(SqlitePlace::File(path)) => {
                let options = SqliteConnectOptions::new().filename(path);
                Some(Self::Sqlite(options.connect().await.expect("the file opens")))
            }
            Address::MySql(options) => Some(Self::MySql(options.connect().await.expect("the server is up"))),
        }
    }

    /// Whether the row may have this text, by a change of the text alone.
    async fn takes(&mut self, uid: &str, text: &str) -> bool {
        let change = "UPDATE widget SET json = ? WHERE uid = ?";
        match self {
            Self::Sqlite(connection) => {
                let query = sqlx::query(change).bind(text).bind(uid);
                query.execute(connection).await.is_ok()
            }
            Self::MySql(connection) => {
                let query = sqlx::query(change).bind(text).bind(uid);
                query.execute(connection).await.is_ok()
            }
        }
    }

    async fn close(self) {
        match self {
            Self::Sqlite(connection) => connection.close().await.expect("closed"),
            Self::MySql(connection) => connection.close().await.expect("closed"),
        }
    }
}
