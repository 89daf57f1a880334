//! The keys that crds.toml declares are the keys that engines use: each of them, each named query
//! and each form of a list is explained over tables full of rows, on SQLite, MariaDB and MySQL. A
//! full scan fails, and a sort does where the key has the order.

use std::collections::BTreeMap;

use kindex_generated::registry;
use kindex_model::kind::{Column, ColumnType, Kind};
use kindex_model::value::Value;
use kindex_query::{LabelSelector, Reach, Select};
use kindex_store::{Access, Address, Dialect, MetadataStorage, Plan, SqliteLocation};
use kindex_tests::databases::mariadb::{self, Flavor};
use kindex_tests::databases::{mysql, patient, sqlite};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor};

use super::work::{self, MANY, MANY_ROWS};

/// How many all others have.
const SOME_ROWS: u32 = 1_000;
const UID: [(&str, ColumnType); 1] = [("uid", ColumnType::Text { chars: 64 })];

#[tokio::test]
async fn sqlite_uses_the_keys_that_are_declared() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("plans.db");
    everything(&sqlite::file(path)).await;
}

#[tokio::test]
async fn mariadb_uses_the_keys_that_are_declared() {
    if let Some(database) = mariadb::database(Flavor::Plain) {
        everything(&database.address()).await;
    }
}

#[tokio::test]
async fn mysql_uses_the_keys_that_are_declared() {
    if let Some(database) = mysql::database() {
        everything(&database.address()).await;
    }
}

async fn everything(address: &Address) {
    let store = kindex_store::open(address, registry(), &patient()).expect("an address");
    let store = &*store;
    store.prepare().await.expect("prepared");
    let script: String = registry()
        .kinds
        .iter()
        .map(|kind| filling(store.dialect(), kind))
        .collect();
    run(address, &script).await;
    let mut errors = Vec::new();
    for kind in registry().kinds {
        keys(store, kind, &mut errors).await;
        conditions(store, kind, &mut errors).await;
        lists(store, kind, &mut errors).await;
    }
    leads(store, &mut errors).await;
    work::selectors(store, address, &mut errors).await;
    work::after_statistics(store, address, &mut errors).await;
    named_queries(store, &mut errors).await;
    a_scan_and_a_sort_are_seen(store).await;
    assert!(errors.is_empty(), "{}", errors.join("\n"));
    store.close().await;
}

/// Equality in all columns of a key: the key finds the rows, and has them by uid on InnoDB.
async fn keys(store: &dyn MetadataStorage, kind: &'static Kind, errors: &mut Vec<String>) {
    for key in kind.keys {
        let mut select = Select::all(kind);
        for column in key.columns {
            let own = kind.columns.iter().find(|known| known.name == *column);
            let value = match own.map(|column| column.ty) {
                Some(ColumnType::Text { .. }) => "v7",
                Some(ColumnType::Int32 | ColumnType::Int64 | ColumnType::UInt64 | ColumnType::Double) => "7",
                Some(ColumnType::Bool) => "true",
                Some(ColumnType::Time) => "2024-01-01",
                None if column.ends_with("_time") => "2024-01-01",
                None => "ns7",
            };
            select.filter_by(&format!("{column}={value}")).expect("a condition");
        }
        let plan = store.explain(&select, None).await.expect("a plan");
        let found = plan.steps.iter().find(|step| step.table.as_deref() == Some("t"));
        let found = found.is_some_and(|step| step.access == Access::Search && step.key.as_deref() == Some(key.name));
        if !found {
            errors.push(reported(&format!("{}: not by {}", kind.name, key.name), &plan));
        }
        let may_sort = match store.dialect() {
            Dialect::MySql => false,
            Dialect::Sqlite => true,
        };
        judge(&format!("{} by {}", kind.name, key.name), &plan, may_sort, errors);
    }
}

/// Conditions on a column of texts that a key starts with, in the forms that narrow: not on the one kind that has so
/// many rows that a part of them may come faster by walking all.
async fn conditions(store: &dyn MetadataStorage, kind: &'static Kind, errors: &mut Vec<String>) {
    let first = |column: &&Column| kind.keys.iter().any(|key| key.columns[0] == column.name);
    let text = |column: &&Column| matches!(column.ty, ColumnType::Text { .. });
    for column in kind.columns.iter().filter(first).filter(text) {
        let name = column.name;
        for condition in [
            format!("{name} in (v7, v8)"),
            format!("{name}=v7 or {name}=v8"),
            format!("{name} like 'v7%'"),
            format!("({name}=v7 and name=n7) or ({name}=v8 and not name like 'n%8')"),
        ] {
            let mut select = Select::all(kind);
            select.filter_by(&condition).expect("a condition");
            assert!(matches!(select.reach(), Reach::Key(_)), "{condition}");
            let plan = store.explain(&select, None).await.expect("a plan");
            if kind.name != MANY {
                judge(&format!("{}: {condition}", kind.name), &plan, true, errors);
            }
        }
    }
}

/// The lists of `kindex get`, their first pages and later ones.
async fn lists(store: &dyn MetadataStorage, kind: &'static Kind, errors: &mut Vec<String>) {
    let form = |namespace: Option<&str>, label: &str, order: &[&str]| {
        let mut select = Select::all(kind);
        select
            .filter_by_labels(&LabelSelector::parse(label).expect("a selector"))
            .expect("small enough");
        for column in order {
            select.order_by(column).expect("a column");
        }
        namespace.inspect(|namespace| select.in_namespace(namespace));
        select.filter_by("delete_time is null").expect("a condition");
        select.limit(10);
        if namespace.is_none() && label.is_empty() {
            select.allow_scan();
        }
        select
    };
    let mut past = form(None, "", &["namespace", "name"]);
    past.filter_by("delete_time is null or delete_time > 2026-11-01")
        .expect("a condition");
    for (name, select, may_sort) in [
        ("the past", past, false),
        ("all", form(None, "", &["namespace", "name"]), false),
        ("a namespace", form(Some("ns7"), "", &["name"]), false),
        ("the newest", form(None, "", &["create_time:desc"]), false),
        ("a label", form(None, "team=team7", &[]), false),
        ("labels", form(None, "team in (team7,team8),tier=t1,!old", &[]), false),
        ("a label in a namespace", form(Some("ns7"), "team=team7", &[]), false),
    ] {
        let name = format!("{}: {name}", kind.name);
        let plan = store.explain(&select, None).await.expect("a plan");
        judge(&name, &plan, may_sort, errors);
        let page = store.select(&select, None).await.expect("a page");
        if let Some(token) = page.continue_token {
            let plan = store.explain(&select, Some(&token)).await.expect("a plan");
            judge(&format!("{name}, the second page"), &plan, may_sort, errors);
        }
    }
}

/// What is rarer leads, and nothing is sorted: 2,000 rows have the team, 4,000 the state, 66,666 the tier, and
/// 10,000 the namespace, whose key has them in another order.
async fn leads(store: &dyn MetadataStorage, errors: &mut Vec<String>) {
    let kind = registry().find(MANY).expect("a kind");
    for (label, condition, first, may_sort) in [
        ("team=team7", "state=v7", "l0", false),
        ("tier=t1", "state=v7", "k", false),
        ("tier=t1,team=team7", "state=v7", "l1", false),
        ("team=team7", "namespace=ns7", "l0", false),
        ("tier=t1", "uid=u10000007", "t", true),
    ] {
        let mut select = Select::all(kind);
        select
            .filter_by_labels(&LabelSelector::parse(label).expect("a selector"))
            .expect("small enough");
        select.filter_by(condition).expect("a condition");
        select.filter_by("delete_time is null").expect("a condition");
        select.limit(7);
        let (mut found, mut token) = (Vec::new(), None);
        for _ in 0..2 {
            let name = format!("{label}, {condition}");
            let plan = store.explain(&select, token.as_deref()).await.expect("a plan");
            judge(&name, &plan, may_sort, errors);
            let tables: Vec<_> = plan.steps.iter().filter_map(|step| step.table.as_deref()).collect();
            if tables.first() != Some(&first) {
                errors.push(reported(&format!("{name}: does not begin with {first}"), &plan));
            }
            let page = store.project(&select, &UID, token.as_deref()).await.expect("a page");
            found.extend(page.items.into_iter().flatten());
            token = page.continue_token;
            if token.is_none() {
                break;
            }
        }
        let wanted = (0..MANY_ROWS)
            .filter(|n| n % 10 != 0 && label.split(',').chain([condition]).all(|text| has(*n, text)))
            .map(|n| Value::Text(format!("u{}", 10_000_000 + n)));
        assert_eq!(found, wanted.take(14).collect::<Vec<_>>(), "{label}, {condition}");
    }
}

/// Whether the row of this number was filled so: `team=team7`.
fn has(n: u32, text: &str) -> bool {
    let (name, value) = text.split_once('=').expect("an equality");
    let number: u32 = value.trim_start_matches(char::is_alphabetic).parse().expect("a number");
    match name {
        "team" => n % 100 == number,
        "tier" => n % 3 == number,
        "state" => n % 50 == number,
        "namespace" => n % 20 == number,
        "uid" => n + 10_000_000 == number,
        other => panic!("{other} is not filled by number"),
    }
}

/// What the judge is there for, in a query that no key serves.
async fn a_scan_and_a_sort_are_seen(store: &dyn MetadataStorage) {
    let mut select = Select::all(registry().find(MANY).expect("a kind"));
    select.filter_by("actor=v7").expect("a condition");
    select.order_by("update_time").expect("a column");
    select.allow_scan();
    let plan = store.explain(&select, None).await.expect("a plan");
    let mut errors = Vec::new();
    judge("unkeyed", &plan, false, &mut errors);
    assert_eq!(errors.len(), 2, "{plan:?}");
}

/// Each of them is narrowed by a key, and may sort what that finds.
async fn named_queries(store: &dyn MetadataStorage, errors: &mut Vec<String>) {
    for query in registry().queries {
        let parameters = query
            .parameters()
            .into_iter()
            .map(|name| (name.to_owned(), "ns7".to_owned()));
        let parameters: BTreeMap<String, String> = parameters.collect();
        let select = Select::named(query, &parameters).expect("parameters are texts");
        let plan = store.explain(&select, None).await.expect("a plan");
        judge(query.name, &plan, true, errors);
    }
}

fn judge(name: &str, plan: &Plan, may_sort: bool, errors: &mut Vec<String>) {
    if plan.steps.iter().any(|step| step.access == Access::Scan) {
        errors.push(reported(&format!("{name}: a full scan"), plan));
    }
    if !may_sort && plan.steps.iter().any(|step| step.sorts) {
        errors.push(reported(&format!("{name}: a sort"), plan));
    }
}

fn reported(error: &str, plan: &Plan) -> String {
    let steps: Vec<&str> = plan.steps.iter().map(|step| step.text.as_str()).collect();
    format!("{error}\n  {}\n  {}", steps.join("; "), plan.statement.sql)
}

/// The labels of each row of a number: key, value, and which rows have it.
const LABELS: [(&str, &str, &str); 4] = [
    ("team", "CONCAT('team', n % 100)", "TRUE"),
    ("tier", "CONCAT('t', n % 3)", "TRUE"),
    ("owner", "CONCAT('o', n % 1000)", "TRUE"),
    ("grade", "CONCAT('g', n % 10)", "n % 7 <> 0"),
];

/// Fills the tables of a kind: twenty namespaces, every tenth row deleted, a hundred teams.
fn filling(dialect: Dialect, kind: &Kind) -> String {
    let rows = if kind.name == MANY { MANY_ROWS } else { SOME_ROWS };
    let time = |shift: u32| match dialect {
        Dialect::MySql => format!("FROM_UNIXTIME(1700000000 + {shift} + n)"),
        Dialect::Sqlite => format!("strftime('%Y-%m-%dT%H:%M:%f000Z', 1700000000 + {shift} + n, 'unixepoch')"),
    };
    let mut columns = vec![
        "uid",
        "group_ver",
        "namespace",
        "name",
        "res_version",
        "create_time",
        "update_time",
    ];
    columns.extend(["delete_time", "json"]);
    let mut values = vec![
        "CONCAT('u', 10000000 + n)".to_owned(),
        "'g/v'".to_owned(),
        "CONCAT('ns', n % 20)".to_owned(),
        "CONCAT('n', n)".to_owned(),
        "n".to_owned(),
        time(0),
        time(1000),
        format!("CASE WHEN n % 10 = 0 THEN {} END", time(2000)),
        format!(
            "'{}'",
            r#"{"metadata": {"uid": "u", "name": "n", "resourceVersion": "1"}}"#
        ),
    ];
    for column in kind.columns {
        columns.push(column.name);
        values.push(match column.ty {
            ColumnType::Text { .. } => "CONCAT('v', n % 50)".to_owned(),
            ColumnType::Int32 | ColumnType::Int64 | ColumnType::UInt64 | ColumnType::Double => "n % 50".to_owned(),
            ColumnType::Bool => "n % 2".to_owned(),
            ColumnType::Time => time(3000),
        });
    }
    let columns: Vec<String> = columns.iter().map(|column| format!("`{column}`")).collect();
    let (table, numbers) = (kind.table, numbers(rows));
    let labels: String = LABELS
        .iter()
        .map(|(key, value, condition)| {
            format!(
                "INSERT INTO `{table}_labels` (`obj_uid`, `key`, `value`) {numbers} \
                 SELECT CONCAT('u', 10000000 + n), '{key}', {value} FROM numbers WHERE {condition};\n"
            )
        })
        .collect();
    let analyze = match dialect {
        Dialect::MySql => format!("ANALYZE TABLE `{table}`, `{table}_labels`;\n"),
        Dialect::Sqlite => String::new(),
    };
    format!(
        "INSERT INTO `{table}` ({}) {numbers} SELECT {} FROM numbers;\n{labels}{analyze}",
        columns.join(", "),
        values.join(", ")
    )
}

/// `n` from 0 up, so many: one digit and zeros.
fn numbers(rows: u32) -> String {
    let digits = rows.to_string();
    let (first, zeros) = digits.split_at(1);
    assert!(zeros.chars().all(|zero| zero == '0'), "{rows}");
    let names: Vec<String> = (0..zeros.len()).map(|digit| format!("d{digit}")).collect();
    let tables: String = names.iter().map(|name| format!(", digits AS {name}")).collect();
    let terms: String = names
        .iter()
        .enumerate()
        .map(|(power, name)| format!(" + {name}.d * 1{}", "0".repeat(power)))
        .collect();
    let ten: Vec<String> = (0..10).map(|digit| format!("SELECT {digit} AS d")).collect();
    format!(
        "WITH digits AS ({}), numbers AS (SELECT h.d * 1{zeros}{terms} AS n FROM digits AS h{tables} WHERE h.d < {first})",
        ten.join(" UNION ALL "),
    )
}

async fn run(address: &Address, script: &str) {
    let script = || sqlx::raw_sql(AssertSqlSafe(script.to_owned()));
    match address {
        Address::Sqlite(SqliteLocation::File(path)) => {
            let mut connection = SqliteConnectOptions::new()
                .filename(path)
                .connect()
                .await
                .expect("a file");
            connection.execute(script()).await.expect("SQLite takes the rows");
            connection.close().await.expect("closed");
        }
        Address::Sqlite(SqliteLocation::Memory) => unreachable!("no second connection reaches it"),
        Address::MySql(options) => {
            let mut connection = options.connect().await.expect("the server answers");
            connection.execute(script()).await.expect("the server takes the rows");
            connection.close().await.expect("closed");
        }
    }
}
