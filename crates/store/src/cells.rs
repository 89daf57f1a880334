//! Rows of the main table, read from cells in the order that statements select.

use jiff::Timestamp;
use kindex_model::kind::{Column, Kind};
use kindex_model::object::{Metadata, Object, ResourceVersion, Uid};
use kindex_model::projection::ContentHash;
use kindex_model::row_version::RowVersion;
use kindex_model::value::Value;
use kindex_query::{Life, Stored};

use crate::driver::{Cells, Param};
use crate::error::StoreError;
use crate::row::{Arrival, RowState, row_version};

/// A row as it was found under its lock.
#[derive(Clone, Debug)]
pub(super) struct FoundRow {
    pub(super) arrival: Arrival,
    pub(super) uid: Uid,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) res_version: RowVersion,
    pub(super) hash: Option<ContentHash>,
    pub(super) delete_time: Option<Timestamp>,
    pub(super) evicted_time: Option<Timestamp>,
    /// `group/version` of the stored text.
    pub(super) group_ver: String,
}

impl FoundRow {
    pub(super) fn life(&self) -> Life {
        life(self.delete_time, self.evicted_time)
    }
}

impl From<FoundRow> for RowState {
    fn from(row: FoundRow) -> Self {
        Self {
            life: row.life(),
            arrival: row.arrival,
            uid: row.uid,
            namespace: row.namespace,
            name: row.name,
            res_version: row.res_version,
            hash: row.hash,
        }
    }
}

/// Reads what `KindSql::states` and `KindSql::scan` select.
pub(super) fn found_row(row: &impl Cells) -> Result<FoundRow, sqlx::Error> {
    let (delete_time, evicted_time) = (row.time(6)?, row.time(7)?);
    Ok(FoundRow {
        arrival: Arrival(row.int(0)?),
        uid: Uid::from(row.text(1)?.as_str()),
        namespace: row.text(2)?,
        name: row.text(3)?,
        res_version: row_version(life(delete_time, evicted_time), res_version(row, 4)?),
        hash: row.bytes(5)?.as_deref().and_then(ContentHash::from_bytes),
        delete_time,
        evicted_time,
        group_ver: row.text(8)?,
    })
}

/// Whether a row has these values in these columns, the first of which is at a place in what was selected.
pub(super) fn holds<'a>(
    row: &impl Cells,
    first: usize,
    columns: impl Iterator<Item = (&'a Column, &'a Value)>,
) -> bool {
    let has_it = |(at, (column, value)): (usize, (&Column, &Value))| {
        row.value(first + at, column.ty)
            .is_ok_and(|held| held == as_stored(value))
    };
    columns.enumerate().all(has_it)
}

/// A flag comes back as the number that it is stored as.
fn as_stored(value: &Value) -> Value {
    match value {
        Value::Bool(flag) => Value::Int(i64::from(*flag)),
        other => other.clone(),
    }
}

/// `group/version` of an object whose kind has this one. The items of a list do not repeat it.
pub(super) fn group_ver<'a>(metadata: &'a Metadata, own: &'a str) -> &'a str {
    match metadata.api_version.as_str() {
        "" => own,
        said => said,
    }
}

pub(super) fn life(delete_time: Option<Timestamp>, evicted_time: Option<Timestamp>) -> Life {
    match (delete_time, evicted_time) {
        (Some(_), _) => Life::Deleted,
        (None, Some(_)) => Life::Archived,
        (None, None) => Life::Live,
    }
}

/// Reads the number of a version. Other programs may have written larger ones than ours, up to the 64 bits of the
/// column's type: they come as negative numbers.
pub(super) fn res_version(row: &impl Cells, index: usize) -> Result<ResourceVersion, sqlx::Error> {
    Ok(ResourceVersion(row.int(index)?.cast_unsigned()))
}

/// Reads the version of a row that is archived or deleted.
pub(super) fn version_of_gone(row: &impl Cells, index: usize) -> Result<RowVersion, sqlx::Error> {
    Ok(RowVersion::unpack(res_version(row, index)?))
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
    let group_ver = row.text(5).map_err(unreadable)?;
    let object = Object::parse_str(&text).map_err(|error| corrupt(&uid, error.to_string()))?;
    Ok(Stored {
        // The items of a list need not say their version; the column does.
        object: object.or_in(&group_ver),
        life: life(delete_time, evicted_time),
        update_time: row.time(2).map_err(unreadable)?,
        delete_time,
        evicted_time,
        replaced_by: None,
    })
}

pub(super) fn param(value: &Value) -> Param<'_> {
    match value {
        Value::Null => Param::Null,
        Value::Bool(flag) => Param::Bool(*flag),
        Value::Int(number) => Param::Int(*number),
        Value::UInt(number) => Param::UInt(*number),
        Value::Double(number) => Param::Double(*number),
        Value::Text(text) => Param::Text(text),
        Value::Time(time) => Param::Time(*time),
    }
}
