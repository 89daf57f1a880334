//! How many statements a batch costs, by the server's own log: their number depends on the
//! sorts of change in a batch, never on its size. The log is a MariaDB's.

use std::collections::BTreeSet;
use std::sync::Arc;

use kindex_harness::mariadb::MariaDb;
use kindex_model::kind::Kind;
use kindex_model::object::Uid;
use kindex_model::reference_name::ReferenceName;
use kindex_store::{Address, MetadataStorage, MySqlFields, PoolConfig, RowWrite};
use kindex_tests::databases::mariadb::available;
use kindex_tests::databases::{patient, server_options};
use serde_json::json;
use sqlx::mysql::MySqlConnectOptions;

use super::backend::mysql_rows;
use super::widget::{KEEPSAKE, NOTICE, REGISTRY, WIDGET, Widget, at, soft_delete, widget};

/// The account of the store: what others ask the server is not counted.
const ACCOUNT: &str = "counted";

/// Statements of each sort.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Statements {
    transactions: u64,
    selects: u64,
    inserts: u64,
    updates: u64,
    deletes: u64,
}

impl Statements {
    /// What opens and closes a connection or a transaction is no statement of these sorts.
    fn of(log: &[String]) -> Self {
        let mut found = Self::default();
        for statement in log {
            match statement.split_whitespace().next() {
                Some("START") => found.transactions += 1,
                Some("SELECT") => found.selects += 1,
                Some("INSERT") => found.inserts += 1,
                Some("UPDATE") => found.updates += 1,
                Some("DELETE") => found.deletes += 1,
                _ => {}
            }
        }
        found
    }
}

fn objects(count: usize, version: u64) -> Vec<Widget> {
    (0..count)
        .map(|index| {
            let name = format!("u{index:03}");
            widget(&name, &name, version)
                .label("l", "1")
                .label("m", "2")
                .annotation("n", "1")
        })
        .collect()
}

/// What a connection asks once is asked before anything is counted.
async fn warm_up(store: &dyn MetadataStorage) {
    store.prepare().await.expect("prepared");
    store
        .count(&WIDGET)
        .await
        .expect("the server's limits are known from here");
    store
        .write(&WIDGET, &[widget("first", "first", 1).live()], at(0))
        .await
        .expect("written");
}

/// A server that logs what the account of the store executes.
struct Logged {
    _server: MariaDb,
    root: MySqlConnectOptions,
    store: Arc<dyn MetadataStorage>,
}

impl Logged {
    async fn start() -> Option<Self> {
        if !available() {
            return None;
        }
        let server = MariaDb::start(&["--log-output=TABLE", "--general-log=ON"]);
        let fields = MySqlFields {
            host: "127.0.0.1".to_owned(),
            port: server.port,
            user: ACCOUNT.to_owned(),
            database: "k".to_owned(),
            ..MySqlFields::default()
        };
        let root = server_options(&fields).username("root").database("mysql");
        let granted = format!("GRANT ALL ON *.* TO {ACCOUNT}@'127.0.0.1' IDENTIFIED BY ''");
        mysql_rows(&root, &granted).await;
        // One connection: another one would be opened, and would ask what each asks once, while the first is on its
        // way back to the pool.
        let pool = PoolConfig {
            max_open: 1,
            ..patient()
        };
        let store = kindex_store::open(&Address::mysql(&fields), REGISTRY, &pool).expect("an address");
        warm_up(&*store).await;
        Some(Self {
            _server: server,
            root,
            store,
        })
    }

    /// What a batch is executed by.
    async fn costs(&self, kind: &Kind, batch: &[RowWrite]) -> Vec<String> {
        self.forget().await;
        self.store.write(kind, batch, at(1)).await.expect("written");
        self.executed().await
    }

    async fn forget(&self) {
        mysql_rows(&self.root, "TRUNCATE TABLE general_log").await;
    }

    /// All since the log was emptied.
    async fn executed(&self) -> Vec<String> {
        // What an insert brings is long, and no text.
        let executed = format!(
            "SELECT IF(argument LIKE 'INSERT%', LEFT(argument, 200), argument) FROM general_log \
             WHERE user_host LIKE '{ACCOUNT}%' AND command_type IN ('Execute', 'Query')"
        );
        let rows = mysql_rows(&self.root, &executed).await;
        rows.into_iter().filter_map(|mut row| row.swap_remove(0)).collect()
    }

    /// Holds what a batch costs to what is expected, and shows the statements where they differ.
    async fn assert_costs(&self, kind: &Kind, batch: &[RowWrite], expected: Statements, what: &str) {
        let log = self.costs(kind, batch).await;
        assert_eq!(Statements::of(&log), expected, "{what}: {log:#?}");
    }

    /// The keys by which these statements find their rows, each with its command and table.
    async fn keys_walked(&self, log: &[String]) -> BTreeSet<(String, String)> {
        let mut walked = BTreeSet::new();
        let root = self.root.clone().database("k");
        for statement in log {
            let command = statement.split_whitespace().next().unwrap_or_default();
            if !["SELECT", "UPDATE", "DELETE"].contains(&command) {
                continue;
            }
            let plan = mysql_rows(&root, &format!("EXPLAIN {statement}")).await;
            let [_, _, Some(table), Some(access), _, Some(key), ..] = &plan[0][..] else {
                panic!("no key: {statement}: {plan:?}");
            };
            // An index may also be read from end to end.
            assert!(["range", "ref", "const"].contains(&&**access), "{statement}: {plan:?}");
            walked.insert((format!("{command} {table}"), key.clone()));
        }
        walked
    }
}

fn one_transaction(selects: u64, inserts: u64, updates: u64, deletes: u64) -> Statements {
    Statements {
        transactions: 1,
        selects,
        inserts,
        updates,
        deletes,
    }
}

fn live(objects: Vec<Widget>) -> Vec<RowWrite> {
    objects.iter().map(Widget::live).collect()
}

#[tokio::test]
async fn a_batch_costs_a_fixed_number_of_statements() {
    let Some(server) = Logged::start().await else {
        return;
    };
    // Numbers of rows with one octal digit go out in one statement; no number needs more than four.
    let status_only: Vec<Widget> = objects(256, 3)
        .into_iter()
        .map(|object| object.status(json!({"ready": true})))
        .collect();
    let relabeled = objects(256, 4).into_iter().map(|object| object.label("l", "3"));
    let all_sorts: Vec<RowWrite> = objects(256, 5)
        .into_iter()
        .enumerate()
        .map(|(index, object)| match index % 4 {
            0 => object.label("l", "4").annotation("n", "4").live(),
            1 => object.archived(),
            2 => soft_delete(&object.uid),
            _ => Widget {
                uid: format!("again-{index}"),
                ..object
            }
            .live(),
        })
        .collect();
    for (what, batch, expected) in [
        ("first writes", live(objects(256, 1)), one_transaction(2, 3, 0, 0)),
        ("the same again", live(objects(256, 1)), one_transaction(1, 0, 0, 0)),
        // As after the migration of a kind to another stored version.
        (
            "another version alone",
            live(objects(256, 2)),
            one_transaction(1, 1, 0, 0),
        ),
        ("status only", live(status_only), one_transaction(1, 1, 0, 0)),
        ("labels", live(relabeled.collect()), one_transaction(1, 2, 0, 1)),
        // Rows: new and changed; moved: deleted; names: looked up; side tables: two each.
        ("all sorts", all_sorts, one_transaction(2, 4, 1, 2)),
    ] {
        server.assert_costs(&WIDGET, &batch, expected, what).await;
    }
}

/// One insert for all versions of a batch, and one question whether rows hold a version that is not kept.
#[tokio::test]
async fn a_history_costs_one_statement_more_and_a_question_where_rows_change() {
    let Some(server) = Logged::start().await else {
        return;
    };
    for (what, batch, expected) in [
        ("first writes", live(objects(256, 1)), one_transaction(2, 4, 0, 0)),
        ("the same again", live(objects(256, 1)), one_transaction(1, 1, 0, 0)),
        ("another version", live(objects(256, 2)), one_transaction(2, 2, 0, 0)),
    ] {
        server.assert_costs(&KEEPSAKE, &batch, expected, what).await;
    }
}

/// Of objects that have references, an eviction stores them in one statement; all other writes cost what they did.
#[tokio::test]
async fn references_cost_one_statement_of_an_eviction() {
    let Some(server) = Logged::start().await else {
        return;
    };
    let archived = |objects: Vec<Widget>| -> Vec<RowWrite> {
        let archived = objects.iter().map(|object| object.archived());
        archived.collect()
    };
    let used = |version| {
        let held = objects(64, version).into_iter().map(|mut object| {
            let name = "cluster.example.com/7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce".to_owned();
            object.uid = format!("used-{}", object.uid);
            object.name = object.uid.clone();
            object.finalizers = vec![name];
            object
        });
        held.collect::<Vec<_>>()
    };
    for (what, batch, expected) in [
        ("without references", live(objects(64, 1)), one_transaction(2, 3, 0, 0)),
        ("with references", live(used(1)), one_transaction(2, 3, 0, 0)),
        (
            "archived without",
            archived(objects(64, 1)),
            one_transaction(1, 0, 1, 0),
        ),
        ("archived with", archived(used(1)), one_transaction(1, 1, 1, 0)),
    ] {
        server.assert_costs(&WIDGET, &batch, expected, what).await;
    }
}

/// What makes changes exclude each other on several nodes of a cluster is not written on one server.
#[tokio::test]
async fn a_reference_is_placed_and_released_by_one_statement() {
    let Some(server) = Logged::start().await else {
        return;
    };
    let archived = widget("u1", "u1", 1).archived();
    server.costs(&WIDGET, &[archived]).await;
    let (store, uid) = (&server.store, Uid::from("u1"));
    let name = ReferenceName::new("Cluster", "example.com", "h").expect("a name");
    server.forget().await;
    let placed = store.place_reference(&WIDGET, &uid, &name, "jane", at(2)).await;
    placed.expect("placed");
    // The row, its references and its tombstone are read.
    let log = server.executed().await;
    assert_eq!(Statements::of(&log), one_transaction(3, 1, 0, 0), "{log:#?}");
    server.forget().await;
    let released = store.release_reference(&WIDGET, &uid, &name, at(3)).await;
    released.expect("released");
    let log = server.executed().await;
    assert_eq!(Statements::of(&log), one_transaction(2, 0, 0, 1), "{log:#?}");
}

/// As if an object with many references were read as a whole to show a few of them.
#[tokio::test]
async fn the_first_references_on_an_object_are_found_by_their_key_and_no_more_rows_are_read() {
    let Some(server) = Logged::start().await else {
        return;
    };
    let archived = widget("u1", "u1", 1).archived();
    server.costs(&WIDGET, &[archived]).await;
    let (store, uid) = (&server.store, Uid::from("u1"));
    for holder in 0..40 {
        let name = ReferenceName::new("Cluster", "example.com", &format!("h{holder:02}")).expect("a name");
        let placed = store.place_reference(&WIDGET, &uid, &name, "jane", at(2)).await;
        placed.expect("placed");
    }
    server.forget().await;
    let first = store.first_references(&WIDGET, &uid, 2).await.expect("readable");
    assert_eq!(first.len(), 2);
    let mut log = server.executed().await;
    log.retain(|statement| statement.contains("kindex_reference"));
    assert!(matches!(&log[..], [only] if only.ends_with("LIMIT 2")), "{log:#?}");
    let key = ("SELECT kindex_reference".to_owned(), "PRIMARY".to_owned());
    assert_eq!(server.keys_walked(&log).await, BTreeSet::from([key]));
}

/// Counter, its value, entries and mark: after everything else, since others wait for the counter from then on. After
/// some hundred changes, old entries are looked for as well.
#[tokio::test]
async fn events_cost_four_statements_which_come_last_where_rows_change() {
    let Some(server) = Logged::start().await else {
        return;
    };
    let archived = |version| -> Vec<RowWrite> {
        let archived = objects(32, version).into_iter();
        archived.map(|object| object.archived()).collect()
    };
    for (what, batch, expected) in [
        ("first writes", live(objects(32, 1)), one_transaction(3, 6, 0, 0)),
        ("the same again", live(objects(32, 1)), one_transaction(1, 0, 0, 0)),
        ("another version", live(objects(32, 2)), one_transaction(2, 4, 0, 0)),
        ("archived", archived(2), one_transaction(1, 0, 1, 0)),
        ("back again", live(objects(32, 3)), one_transaction(2, 4, 0, 2)),
        // What the rows held is compared with what comes.
        (
            "archived with another version",
            archived(4),
            one_transaction(2, 1, 0, 0),
        ),
    ] {
        server.assert_costs(&NOTICE, &batch, expected, what).await;
    }
    let log = server.costs(&NOTICE, &live(objects(32, 5))).await;
    let changes = log
        .iter()
        .filter(|statement| statement.contains("kindex_outbox") || statement.contains("widget"));
    let tables: Vec<&str> = changes
        .filter_map(|statement| {
            statement
                .split(['`', ' '])
                .find(|word| word.starts_with("kindex_") || word.starts_with("widget"))
        })
        .collect();
    let last = [
        "kindex_outbox_counter",
        "kindex_outbox_counter",
        "kindex_outbox",
        "kindex_outbox_mark",
    ];
    assert!(tables.ends_with(&last), "{log:#?}");
}

/// The key that each statement of a batch walks, on tables so small that a scan would be cheaper: a scan would wait for
/// every row that another writer holds, and on a large table for the disk.
#[tokio::test]
async fn every_statement_of_a_batch_walks_a_key_even_in_a_small_table() {
    let Some(server) = Logged::start().await else {
        return;
    };
    let relabeled = |object: Widget| object.label("l", "2").annotation("n", "2");
    let all_sorts = |version| {
        let sorted = objects(8, version).into_iter().enumerate();
        sorted.map(move |(index, object)| match index % 4 {
            0 => relabeled(object).live(),
            1 => object.archived(),
            2 => soft_delete(&object.uid),
            _ => widget(&format!("again-{index}"), &object.name, version).live(),
        })
    };
    let of_a_kind = |kind: &str| {
        let table = kind.to_lowercase();
        let labels = format!("{table}_labels");
        let annotations = format!("{table}_annotations");
        [
            (format!("SELECT {table}"), format!("{table}_uid")),
            (format!("SELECT {table}"), format!("{table}_namespace_name")),
            (format!("UPDATE {table}"), format!("{table}_uid")),
            (format!("DELETE {labels}"), format!("{labels}_uid")),
            (format!("DELETE {annotations}"), format!("{annotations}_uid")),
        ]
    };
    for kind in [&WIDGET, &KEEPSAKE] {
        let mut expected = BTreeSet::from(of_a_kind(kind.name));
        server.costs(kind, &live(objects(8, 1))).await;
        let mut log = server.costs(kind, &all_sorts(2).collect::<Vec<_>>()).await;
        if kind.history {
            expected.insert(("UPDATE keepsake_history".to_owned(), "PRIMARY".to_owned()));
            // The same number with another text: the history begins anew.
            let anew = objects(1, 2).into_iter().map(|object| object.label("l", "9").live());
            log.extend(server.costs(kind, &anew.collect::<Vec<_>>()).await);
        }
        assert_eq!(server.keys_walked(&log).await, expected, "{log:#?}");
    }
}
