//! A kind made by hand and the SQL of queries over it.

#![expect(unreachable_pub, reason = "the macro declares what a generated module exports")]

use jiff::Timestamp;
use kindex_model::kind::Kind;
use kindex_model::value::Value;

use crate::dialect::Dialect;
use crate::statement::Statement;
use crate::statements::select::ToSql;

pub(crate) static KIND: Kind = Kind {
    name: "Run",
    group: "test.kindex",
    version: "v1",
    plural: "runs",
    singular: "run",
    table: "run",
    ..Kind::EMPTY
};

/// As an enum of a message.
pub enum Phase {
    Running,
}

impl Phase {
    fn as_str_name(&self) -> &'static str {
        match self {
            Self::Running => "PHASE_RUNNING",
        }
    }

    fn from_str_name(name: &str) -> Option<Self> {
        (name == "PHASE_RUNNING").then_some(Self::Running)
    }
}

kindex_query::typed_query! {
    /// A query over runs.
    pub struct Query of KIND;
    columns {
        /// Has a key.
        keyed phase PHASE "phase": names(super::Phase);
        /// Has a key.
        keyed pipeline_namespace PIPELINE_NAMESPACE "pipeline_namespace": text;
        /// Second in its key.
        unkeyed pipeline_name PIPELINE_NAME "pipeline_name": text;
        /// No key.
        unkeyed note NOTE "note": text;
        /// Named as a method that every query has.
        unkeyed limit_column LIMIT "limit": value(i64);
        /// No key.
        unkeyed end_time END_TIME "end_time": value(jiff::Timestamp);
    }
    pairs {
        /// Namespace and name.
        pipeline: pipeline_namespace, pipeline_name;
    }
}

fn query() -> Query {
    Query::all()
}

fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}

#[test]
fn a_narrowed_query_selects_the_json_of_matching_rows() {
    let query = query()
        .phase()
        .eq(Phase::Running)
        .label("team", "fraud")
        .note()
        .ne("x")
        .live()
        .order_by(constants::UPDATE_TIME)
        .desc()
        .limit(50);
    assert_eq!(
        query.to_sql(Dialect::MySql),
        Statement {
            sql: "SELECT t.`uid`, t.`json`, CAST(t.`update_time` AS CHAR), CAST(t.`delete_time` AS CHAR), \
                  CAST(t.`evicted_time` AS CHAR), t.`group_ver`, CAST(t.`update_time` AS CHAR), t.`uid` \
                  FROM `run` AS t \
                  JOIN `run_labels` AS l0 ON l0.`obj_uid` = t.`uid` AND l0.`key` = ? AND LENGTH(l0.`key`) = ? \
                  AND l0.`value` = ? AND LENGTH(l0.`value`) = ? \
                  WHERE t.`phase` = ? AND t.`note` <> ? AND t.`delete_time` IS NULL \
                  ORDER BY t.`update_time` DESC, t.`uid` DESC LIMIT ?"
                .to_owned(),
            values: vec![
                text("team"),
                Value::Int(4),
                text("fraud"),
                Value::Int(5),
                text("PHASE_RUNNING"),
                text("x"),
                Value::Int(50)
            ],
        }
    );
}

#[test]
fn both_halves_of_a_field_are_compared_at_once() {
    let statement = query().pipeline("ns", "train").to_sql(Dialect::Sqlite);
    let condition = " WHERE t.`pipeline_namespace` = ? AND t.`pipeline_name` = ? ORDER BY +t.`uid` ASC LIMIT ?";
    assert!(statement.sql.ends_with(condition));
    assert_eq!(statement.values, [text("ns"), text("train"), Value::Int(500)]);
}

#[test]
fn the_newest_rows_and_an_accepted_scan_may_run() {
    let newest = query().newest(3).live().to_sql(Dialect::MySql).sql;
    let order = "ORDER BY t.`create_time` DESC, t.`uid` DESC LIMIT ?";
    assert!(newest.ends_with(&format!("WHERE t.`delete_time` IS NULL {order}")));
    let scan = query().note().is_not_null().allow_scan();
    let sql = scan.limit_column().gt(7).to_sql(Dialect::MySql).sql;
    assert!(sql.contains(" WHERE t.`note` IS NOT NULL AND t.`limit` > ? "));
}

#[test]
fn wildcards_in_a_prefix_are_searched_as_they_are() {
    let prefix = |spelling| {
        let statement = query().namespace().starts_with("a_%*[").to_sql(spelling);
        (statement.sql, statement.values[0].clone())
    };
    let (sql, value) = prefix(Dialect::MySql);
    assert!(sql.contains(" WHERE t.`namespace` LIKE ? "));
    assert_eq!(value, text("a\\_\\%*[%"));
    let (sql, value) = prefix(Dialect::Sqlite);
    assert!(sql.contains(" WHERE t.`namespace` GLOB ? "));
    assert_eq!(value, text("a_%[*][[]*"));
}

#[test]
fn sqlite_never_walks_the_key_of_rows_that_are_not_deleted() {
    let statement = query().newest(3).live().to_sql(Dialect::Sqlite);
    assert!(statement.sql.contains(" WHERE +t.`delete_time` IS NULL "));
}

#[test]
fn sqlite_walks_the_primary_key_only_where_a_scan_is_accepted() {
    let order = |sql: String| sql.rsplit("ORDER BY ").next().map(str::to_owned);
    let narrowed = query().delete_time().ge(Timestamp::UNIX_EPOCH);
    let walk = Some("t.`uid` ASC LIMIT ?".to_owned());
    let sort = Some("+t.`uid` ASC LIMIT ?".to_owned());
    assert_eq!(order(narrowed.to_sql(Dialect::Sqlite).sql), sort);
    assert_eq!(order(narrowed.to_sql(Dialect::MySql).sql), walk);
    assert_eq!(order(narrowed.allow_scan().to_sql(Dialect::Sqlite).sql), walk);
}

#[test]
fn one_of_nothing_matches_nothing() {
    let statement = query().phase().one_of([]).to_sql(Dialect::MySql);
    assert!(statement.sql.contains(" WHERE FALSE ORDER "));
    assert_eq!(statement.values, [Value::Int(500)]);
}

#[test]
fn a_name_that_the_enum_does_not_know_can_be_queried() {
    let statement = query().phase().by_name().eq("PHASE_PAUSED").to_sql(Dialect::MySql);
    assert_eq!(statement.values[0], text("PHASE_PAUSED"));
}

#[test]
fn labels_and_annotations_without_a_key_are_looked_up_beside_the_row() {
    let statement = query()
        .create_time()
        .ge(Timestamp::UNIX_EPOCH)
        .has_label("team")
        .annotation("note", "why")
        .to_sql(Dialect::Sqlite);
    assert!(statement.sql.contains(
        "WHERE t.`create_time` >= ? \
         AND EXISTS (SELECT 1 FROM `run_labels` AS s WHERE s.`obj_uid` = t.`uid` AND +s.`key` = ?) \
         AND EXISTS (SELECT 1 FROM `run_annotations` AS s WHERE s.`obj_uid` = t.`uid` \
         AND +s.`key` = ? AND s.`value` = ?)"
    ));
    let first = Value::Time(Timestamp::UNIX_EPOCH);
    assert_eq!(statement.values[..4], [first, text("team"), text("note"), text("why")]);
}

#[test]
fn orders_follow_each_other_as_they_were_given() {
    let statement = query()
        .namespace()
        .one_of(["a", "b"])
        .order_by(constants::END_TIME)
        .desc()
        .order_by(constants::NAME)
        .asc()
        .order_by(constants::END_TIME)
        .asc()
        .to_sql(Dialect::MySql);
    let order = "ORDER BY t.`end_time` DESC, t.`name` ASC, t.`uid` ASC LIMIT ?";
    assert!(
        statement
            .sql
            .ends_with(&format!("WHERE t.`namespace` IN (?, ?) {order}"))
    );
}

#[test]
fn columns_come_before_those_of_the_order_and_no_text_of_an_object_is_read() {
    let rows = query()
        .phase()
        .eq(Phase::Running)
        .order_by(constants::UPDATE_TIME)
        .desc();
    let rows = rows.select((constants::NAME, constants::PHASE, constants::LIMIT));
    let sql = rows.to_sql(Dialect::MySql).sql;
    let head = "SELECT t.`name`, t.`phase`, t.`limit`, CAST(t.`update_time` AS CHAR), t.`uid` FROM `run` AS t WHERE ";
    assert!(sql.starts_with(head), "{sql}");
}

#[test]
fn a_cell_is_read_by_the_type_of_its_column() {
    use kindex_query::Column;
    assert_eq!(column::note::read(Value::Null), Some(None));
    assert_eq!(column::note::read(text("x")), Some(Some("x".to_owned())));
    assert_eq!(column::limit_column::read(Value::Int(7)), Some(Some(7)));
    assert_eq!(column::limit_column::read(text("7")), None);
    assert_eq!(kindex_query::column::uid::read(Value::Null), None, "every row has one");
    let phase = |name| column::phase::read(text(name)).flatten().expect("a name");
    assert!(matches!(phase("PHASE_RUNNING").known(), Some(Phase::Running)));
    assert!(phase("PHASE_PAUSED").known().is_none());
    assert_eq!(phase("PHASE_PAUSED").as_str(), "PHASE_PAUSED");
}
