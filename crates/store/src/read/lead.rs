//! Chooses the leading key of a page in order of uid, for queries by labels and columns together. Each key has the uids
//! of its entries in order, so reading stops when the page is full, and costs the entries that are skipped on the way:
//! the fewer, the rarer the leading condition. Engines do not take this limit into account: they would collect and sort
//! everything that one key finds. So the rarest condition is determined first, and its key leads.

use kindex_model::kind::{Key, Kind};
use kindex_model::tables::Side;
use kindex_model::value::Value;
use kindex_query::Select;

use crate::cells::param;
use crate::connections::failure;
use crate::dialect::{Spelling, WalkedKey};
use crate::driver::{Driver, Param};
use crate::error::StoreError;
use crate::sql_store::SqlStore;
use crate::statements::kept;
use crate::statements::writer::Lead;

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
        Some(Candidate {
            lead: Lead::Label { number, through },
            table: kind.tables().side(Side::Labels),
            key: kind.tables().label_key(),
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
fn question(spelling: &'static dyn Spelling, candidates: &[Candidate]) -> (String, Vec<Value>) {
    let parts = candidates.iter().map(|candidate| {
        let fixed: Vec<String> = candidate
            .fixed
            .iter()
            .map(|(name, _)| format!("[{name}] = ?"))
            .collect();
        format!(
            "SELECT 1 FROM [{}]{} WHERE {}",
            candidate.table,
            spelling.walk(WalkedKey::Named(&candidate.key)),
            fixed.join(" AND ")
        )
    });
    let parts: Vec<String> = parts.collect();
    let values = candidates.iter().flat_map(|candidate| &candidate.fixed);
    (
        spelling.entries(&parts),
        values.map(|(_, value)| value.clone()).collect(),
    )
}

impl<D: Driver> SqlStore<D> {
    /// How a page of the query begins: one question more where there is a choice. Every way has the same order, so
    /// that each page may choose anew.
    pub(crate) async fn lead(&self, select: &Select) -> Result<Lead, StoreError> {
        let mut candidates = candidates(select);
        if candidates.len() < 2 {
            return Ok(candidates.pop().map_or(Lead::Engine, |only| only.lead));
        }
        let failed = |error| failure::<D>(select.kind().name, error);
        let spelling = self.connections.driver.spelling();
        let (sql, values) = question(spelling, &candidates);
        let params: Vec<Param<'_>> = values.iter().map(param).collect();
        let rows = self.connections.query(kept(sql), &params).await.map_err(failed)?;
        let mut rarest = None;
        for (candidate, row) in candidates.iter().zip(&rows) {
            let entries = D::entries(row).map_err(failed)?;
            if rarest.is_none_or(|(fewest, _)| entries < fewest) {
                rarest = Some((entries, candidate.lead));
            }
        }
        Ok(rarest.map_or(Lead::Engine, |(_, lead)| lead))
    }
}
