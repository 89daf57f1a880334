//! Rows as parameters.

use jiff::Timestamp;
use kindex_model::projection::{Version, create_time};
use kindex_model::tables::Side;

use crate::cells::{group_ver, param};
use crate::driver::Param;
use crate::write::plan::NewRow;

/// A row of the main table with what its parameters borrow.
pub(crate) struct MainRow<'a> {
    new: &'a NewRow<'a>,
    group_ver: &'a str,
    hash: [u8; 32],
    now: Timestamp,
}

impl<'a> MainRow<'a> {
    pub(crate) fn new(new: &'a NewRow<'a>, kind_group_ver: &'a str, now: Timestamp) -> Self {
        Self {
            new,
            group_ver: group_ver(&new.version.object.metadata, kind_group_ver),
            hash: new.version.hash.to_bytes(),
            now,
        }
    }

    /// In the order of `statements::main_columns`, after the place of the row that is replaced.
    pub(crate) fn params(&self) -> Vec<Param<'_>> {
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
