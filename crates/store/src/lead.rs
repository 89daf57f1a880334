//! Which key a page in order of uid begins with, where labels and columns are asked for together. Each key has the
//! uids of its entries in order, so that reading ends when the page is full, and costs the entries that are passed
//! over on the way: the fewer, the rarer what leads and the more frequent the rest. The engines do not reckon with
//! that end: they collect everything that one key finds, and sort it. So the rarest is asked for, and leads.

use kindex_model::kind::{Key, Kind};
use kindex_model::value::Value;
use kindex_query::Select;

use super::StoreError;
use super::cells::param;
use super::connections::failure;
use super::dialect::Dialect;
use super::driver::{Cells, Driver, Param};
use super::select_sql::Lead;
use super::sql::kept;
use super::sql_store::SqlStore;

/// Entries at which counting ends on an engine that does not estimate.
const COUNT_MAX: u32 = 5_000;

/// A way to begin, and the entries of a key that it would read at most.
#[derive(Debug)]
struct Candidate {
    lead: Lead,
    table: String,
    key: String,
    /// Values of the key's first columns.
    fixed: Vec<(&'static str, Value)>,
}

/// The ways in which a page may begin; none where that is left to the engine.
fn candidates(select: &Select) -> Vec<Candidate> {
    let kind = select.kind();
    let Some(fixed) = select.fixed_columns() else {
        return Vec::new();
    };
    let through = kind.keys.iter().find(|key| reach(key, &fixed) == key.columns.len());
    let labels = select.labels.iter().enumerate().filter_map(|(number, label)| {
        let [value] = label.values.as_slice() else { return None };
        let table = format!("{}_labels", kind.table);
        Some(Candidate {
            lead: Lead::Label { number, through },
            key: format!("{table}_key_value"),
            table,
            fixed: vec![
                ("key", Value::Text(label.key.clone())),
                ("value", Value::Text(value.clone())),
            ],
        })
    });
    let mut candidates: Vec<Candidate> = labels.collect();
    if select.order.is_empty() && !candidates.is_empty() {
        candidates.extend(kind.keys.iter().filter_map(|key| of_key(kind, key, &fixed)));
        return candidates;
    }
    Vec::new()
}

/// A key of the main table as a candidate. One that has further columns does not have the uids in order: what it finds
/// is for the engine to sort.
fn of_key(kind: &'static Kind, key: &'static Key, fixed: &[(&'static str, Value)]) -> Option<Candidate> {
    let served = reach(key, fixed);
    let values = key.columns[..served].iter().filter_map(|column| {
        let found = fixed.iter().find(|(name, _)| name == column)?;
        Some(found.clone())
    });
    let lead = if served == key.columns.len() {
        Lead::Key(key)
    } else {
        Lead::Engine
    };
    (served > 0).then(|| Candidate {
        lead,
        table: kind.table.to_owned(),
        key: key.name.to_owned(),
        fixed: values.collect(),
    })
}

/// How many of a key's first columns are fixed.
fn reach(key: &Key, fixed: &[(&'static str, Value)]) -> usize {
    let is_fixed = |column: &&&str| fixed.iter().any(|(name, _)| name == *column);
    key.columns.iter().take_while(is_fixed).count()
}

/// Asks how many entries each candidate has: a row for each, in order.
fn question(dialect: Dialect, candidates: &[Candidate]) -> (String, Vec<Value>) {
    let parts = candidates.iter().map(|candidate| {
        let fixed: Vec<String> = candidate
            .fixed
            .iter()
            .map(|(name, _)| format!("`{name}` = ?"))
            .collect();
        let entries = format!(
            "SELECT 1 FROM `{}`{} WHERE {}",
            candidate.table,
            dialect.walk(&candidate.key),
            fixed.join(" AND ")
        );
        match dialect {
            Dialect::MySql => entries,
            Dialect::Sqlite => format!("SELECT COUNT(*) FROM ({entries} LIMIT {COUNT_MAX})"),
        }
    });
    let parts = parts.collect::<Vec<_>>().join(" UNION ALL ");
    let values = candidates.iter().flat_map(|candidate| &candidate.fixed);
    let sql = match dialect {
        Dialect::MySql => format!("{} {parts}", dialect.explain()),
        Dialect::Sqlite => parts,
    };
    (sql, values.map(|(_, value)| value.clone()).collect())
}

impl<D: Driver> SqlStore<D> {
    /// How a page of the query begins: one question more where there is a choice. Every way has the same order, so
    /// that each page may choose anew.
    pub(super) async fn lead(&self, select: &Select) -> Result<Lead, StoreError> {
        let mut candidates = candidates(select);
        if candidates.len() < 2 {
            return Ok(candidates.pop().map_or(Lead::Engine, |only| only.lead));
        }
        let failed = |error| failure::<D>(select.kind().name, error);
        let dialect = self.connections.driver.dialect();
        let (sql, values) = question(dialect, &candidates);
        let params: Vec<Param<'_>> = values.iter().map(param).collect();
        let rows = self.connections.query(kept(sql), &params).await.map_err(failed)?;
        let entries = |row: &D::Row| match dialect {
            Dialect::MySql => D::plan_step(row).map(|step| step.rows.unwrap_or(0)),
            Dialect::Sqlite => row.int(0).map(i64::unsigned_abs),
        };
        let mut rarest = None;
        for (candidate, row) in candidates.iter().zip(&rows) {
            let entries = entries(row).map_err(failed)?;
            if rarest.is_none_or(|(fewest, _)| entries < fewest) {
                rarest = Some((entries, candidate.lead));
            }
        }
        Ok(rarest.map_or(Lead::Engine, |(_, lead)| lead))
    }
}
