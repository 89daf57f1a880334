//! Rows of the main table, read from cells and laid out as parameters. Knows the
//! order of columns that `sql` writes, and nothing about when to write.

use jiff::Timestamp;
use kindex_model::kind::Kind;
use kindex_model::object::{Object, ResourceVersion, Uid};
use kindex_model::projection::{ContentHash, Version, create_time};
use kindex_model::value::Value;
use kindex_query::{Life, Stored};

use super::driver::{Cells, Param};
use super::plan::{FoundRow, NewRow};
use super::sql::Side;
use super::{Arrival, StoreError};

/// Reads what `KindSql::states` and `KindSql::scan` select.
pub(super) fn found_row(row: &impl Cells) -> Result<FoundRow, sqlx::Error> {
    Ok(FoundRow {
        arrival: Arrival(row.int(0)?),
        uid: Uid::from(row.text(1)?.as_str()),
        namespace: row.text(2)?,
        name: row.text(3)?,
        res_version: res_version(row, 4)?,
        hash: row.bytes(5)?.as_deref().and_then(ContentHash::from_bytes),
        delete_time: row.time(6)?,
        evicted_time: row.time(7)?,
    })
}

/// Reads a version. Other programs may have written larger ones than ours, up to the 64 bits of the
/// column's type: they come as negative numbers.
pub(super) fn res_version(row: &impl Cells, index: usize) -> Result<ResourceVersion, sqlx::Error> {
    Ok(ResourceVersion(row.int(index)?.cast_unsigned()))
}

/// Reads what `KindSql::by_name`, `by_id` and `list` select.
pub(super) fn stored(kind: &Kind, row: &impl Cells) -> Result<Stored, StoreError> {
    let corrupt = |uid: &str, message: String| StoreError::Corrupt {
        kind: kind.name.to_owned(),
        uid: uid.to_owned(),
        message,
    };
    let uid = row.text(0).map_err(|error| corrupt("?", error.to_string()))?;
    let unreadable = |error: sqlx::Error| corrupt(&uid, error.to_string());
    let delete_time = row.time(3).map_err(unreadable)?;
    let evicted_time = row.time(4).map_err(unreadable)?;
    let text = row.text(1).map_err(unreadable)?;
    Ok(Stored {
        object: Object::parse_str(&text).map_err(|error| corrupt(&uid, error.to_string()))?,
        life: match (delete_time, evicted_time) {
            (Some(_), _) => Life::Deleted,
            (None, Some(_)) => Life::Evicted,
            (None, None) => Life::Live,
        },
        update_time: row.time(2).map_err(unreadable)?,
        delete_time,
        evicted_time,
        replaced_by: None,
    })
}

/// A row of the main table with what its parameters borrow.
pub(super) struct MainRow<'a> {
    new: &'a NewRow<'a>,
    group_ver: &'a str,
    hash: [u8; 32],
    now: Timestamp,
}

impl<'a> MainRow<'a> {
    pub(super) fn new(new: &'a NewRow<'a>, kind_group_ver: &'a str, now: Timestamp) -> Self {
        let said = new.version.object.metadata.api_version.as_str();
        Self {
            new,
            // The items of a list do not repeat it.
            group_ver: if said.is_empty() { kind_group_ver } else { said },
            hash: new.version.hash.to_bytes(),
            now,
        }
    }

    /// In the order of `sql::main_columns`, after the place of the row that is replaced.
    pub(super) fn params(&self) -> Vec<Param<'_>> {
        let version = self.new.version;
        let metadata = &version.object.metadata;
        let mut params = Vec::with_capacity(version.columns.len() + 13);
        params.extend(self.new.arrival.map(|arrival| Param::Int(arrival.0)));
        params.extend([
            Param::Text(&metadata.uid.0),
            Param::Text(self.group_ver),
            Param::Text(&metadata.namespace),
            Param::Text(&metadata.name),
            // Below 2^63 by construction.
            Param::Int(metadata.resource_version.0.cast_signed()),
            Param::Time(create_time(metadata)),
            Param::Time(self.now),
            time_or_null(self.new.delete_time),
            version.proto.as_deref().map_or(Param::Null, Param::Bytes),
            Param::Text(version.object.text()),
        ]);
        params.extend(version.columns.iter().map(param));
        params.extend([time_or_null(self.new.evicted_time), Param::Bytes(&self.hash)]);
        params
    }
}

fn time_or_null(time: Option<Timestamp>) -> Param<'static> {
    time.map_or(Param::Null, Param::Time)
}

pub(super) fn param(value: &Value) -> Param<'_> {
    match value {
        Value::Null => Param::Null,
        Value::Bool(flag) => Param::Bool(*flag),
        Value::Int(number) => Param::Int(*number),
        Value::Double(number) => Param::Double(*number),
        Value::Text(text) => Param::Text(text),
        Value::Time(time) => Param::Time(*time),
    }
}

/// The rows of a side table for one version.
pub(super) fn side_rows(side: Side, version: &Version) -> impl Iterator<Item = [Param<'_>; 3]> {
    let metadata = &version.object.metadata;
    let map = match side {
        Side::Labels => &metadata.labels,
        Side::Annotations => &metadata.annotations,
    };
    map.iter()
        .map(|(key, value)| [Param::Text(&metadata.uid.0), Param::Text(key), Param::Text(value)])
}
