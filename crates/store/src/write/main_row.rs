//! What is bound for the rows of a version: that of the main table, and those of the side tables.

use jiff::Timestamp;
use kindex_model::projection::{Version, create_time};
use kindex_model::tables::Side;

use crate::cells::{group_ver, param};
use crate::driver::Param;
use crate::write::plan::NewRow;

/// The row of a version in the main table, in the order of `statements::main_columns`, after the place of the row that
/// is replaced. `own` is the kind's own `group/version`, and `hash` that of the version.
pub(crate) fn main_row<'p>(new: &'p NewRow<'_>, own: &'p str, hash: &'p [u8], now: Timestamp) -> Vec<Param<'p>> {
    let version = new.version;
    let metadata = &version.object.metadata;
    let mut params = Vec::with_capacity(version.columns.len() + 13);
    params.extend(new.arrival.map(|arrival| Param::Int(arrival.0)));
    params.extend([
        Param::Text(&metadata.uid.0),
        Param::Text(group_ver(metadata, own)),
        Param::Text(&metadata.namespace),
        Param::Text(&metadata.name),
        // Below 2^63 by construction.
        Param::Int(metadata.resource_version.0.cast_signed()),
        Param::Time(create_time(metadata)),
        Param::Time(now),
        time_or_null(new.delete_time),
        version.proto.as_deref().map_or(Param::Null, Param::Bytes),
        Param::Text(version.object.text()),
    ]);
    params.extend(version.columns.iter().map(param));
    params.extend([time_or_null(new.evicted_time), Param::Bytes(hash)]);
    params
}

fn time_or_null(time: Option<Timestamp>) -> Param<'static> {
    time.map_or(Param::Null, Param::Time)
}

/// The rows of a side table for one version.
pub(crate) fn side_rows(side: Side, version: &Version) -> impl Iterator<Item = [Param<'_>; 3]> {
    let metadata = &version.object.metadata;
    let map = match side {
        Side::Labels => &metadata.labels,
        Side::Annotations => &metadata.annotations,
    };
    map.iter()
        .map(|(key, value)| [Param::Text(&metadata.uid.0), Param::Text(key), Param::Text(value)])
}
