//! How many statements a batch costs, by the server's own log: their number depends on the
//! sorts of change in a batch, never on its size.

use std::sync::Arc;

use kindex_model::kind::Kind;
use kindex_query::Life;
use kindex_store::{Address, MetadataStorage, MySqlFields, PoolConfig, RowWrite};
use kindex_tests::mariadb::MariaDb;
use serde_json::json;
use sqlx::mysql::MySqlConnectOptions;

use super::backend::mysql_rows;
use super::widget::{KEEPSAKE, REGISTRY, WIDGET, Widget, at, soft_delete, widget};
use crate::harness::database::patient;
use crate::harness::mariadb::available;

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
        let address = Address::mysql(&MySqlFields {
            host: "127.0.0.1".to_owned(),
            port: server.port,
            user: ACCOUNT.to_owned(),
            database: "k".to_owned(),
            ..MySqlFields::default()
        });
        let Address::MySql(account) = &address else {
            unreachable!("the address is a server's");
        };
        let root = account.as_ref().clone().username("root").database("mysql");
        let granted = format!("GRANT ALL ON *.* TO {ACCOUNT}@'127.0.0.1' IDENTIFIED BY ''");
        mysql_rows(&root, &granted).await;
        // One connection: another one would be opened, and would ask what each asks once, while the first is on its
        // way back to the pool.
        let pool = PoolConfig {
            max_open: 1,
            ..patient()
        };
        let store = kindex_store::open(&address, REGISTRY, &pool).expect("an address");
        warm_up(&*store).await;
        Some(Self {
            _server: server,
            root,
            store,
        })
    }

    /// Holds what a batch costs to what is expected, and shows the statements where they differ.
    async fn assert_costs(&self, kind: &Kind, batch: &[RowWrite], expected: Statements, what: &str) {
        mysql_rows(&self.root, "TRUNCATE TABLE general_log").await;
        self.store.write(kind, batch, at(1)).await.expect("written");
        let executed = format!(
            "SELECT LEFT(argument, 200) FROM general_log \
             WHERE user_host LIKE '{ACCOUNT}%' AND command_type IN ('Execute', 'Query')"
        );
        let rows = mysql_rows(&self.root, &executed).await;
        let log: Vec<String> = rows.into_iter().filter_map(|mut row| row.swap_remove(0)).collect();
        assert_eq!(Statements::of(&log), expected, "{what}: {log:#?}");
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
    let status_only: Vec<Widget> = objects(256, 2)
        .into_iter()
        .map(|object| object.status(json!({"ready": true})))
        .collect();
    let relabelled = objects(256, 3).into_iter().map(|object| object.label("l", "3"));
    let all_sorts: Vec<RowWrite> = objects(256, 4)
        .into_iter()
        .enumerate()
        .map(|(index, object)| match index % 4 {
            0 => object.label("l", "4").annotation("n", "4").live(),
            1 => object.store(Life::Evicted, false),
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
        ("status only", live(status_only), one_transaction(1, 1, 0, 0)),
        ("labels", live(relabelled.collect()), one_transaction(1, 2, 0, 1)),
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

/// The key that each locking statement walks, on a table so small that a scan would be cheaper:
/// a scan would wait for every row that another writer holds.
#[tokio::test]
async fn locking_statements_walk_a_key_even_in_a_small_table() {
    use crate::harness::mariadb::Flavour;
    use crate::store::backend::Backend;
    let Some(backend) = Backend::mariadb(Flavour::Plain).await else {
        return;
    };
    let batch: Vec<RowWrite> = objects(8, 1).iter().map(Widget::live).collect();
    backend.write_all(&batch, at(0)).await;
    let uids = "'u000','u001','u002','u003','u004','u005','u006'";
    let names = "('shop','u000'),('shop','u001'),('shop','u002'),('shop','u003')";
    for (statement, key) in [
        (
            format!("SELECT uid, content_hash FROM widget FORCE INDEX (`widget_uid`) WHERE uid IN ({uids}) FOR UPDATE"),
            "widget_uid",
        ),
        (
            format!(
                "SELECT uid, content_hash FROM widget FORCE INDEX (`widget_namespace_name`) WHERE (namespace, name) IN ({names}) AND delete_time IS NULL FOR UPDATE"
            ),
            "widget_namespace_name",
        ),
        (
            format!(
                "DELETE widget_labels FROM widget_labels FORCE INDEX (`widget_labels_uid`) WHERE obj_uid IN ({uids})"
            ),
            "widget_labels_uid",
        ),
        (
            format!("UPDATE widget FORCE INDEX (`widget_uid`) SET res_version = 0 WHERE uid IN ({uids})"),
            "widget_uid",
        ),
    ] {
        let plan = backend
            .rows(&format!("EXPLAIN {statement}"))
            .await
            .expect("not in memory");
        assert_eq!(plan[0][3].as_deref(), Some("range"), "{statement}: {plan:?}");
        assert_eq!(plan[0][5].as_deref(), Some(key), "{statement}: {plan:?}");
    }
}
