//! Reading whole rows with their sides. Takes every cell as it is: a value that the
//! column should not hold is noted, for finding such values is what this is for.

use std::collections::{BTreeMap, BTreeSet};

use kindex_model::kind::{ColumnType, Kind};
use kindex_model::object::Uid;
use kindex_model::tables::Side;
use kindex_model::value::Value;

use crate::connections::{Connections, failure};
use crate::driver::{Cells, Driver, Param, Statement};
use crate::error::StoreError;
use crate::maintenance::sql::{IMAGE_LEADING, IMAGE_TIMES};
use crate::maintenance::{RowImage, SideRow, sql};
use crate::statements::{LIST_MAX, padded_list};

pub(super) async fn read<D: Driver>(
    connections: &Connections<D>,
    kind: &Kind,
    uids: &[Uid],
) -> Result<Vec<RowImage>, StoreError> {
    let failed = |error| failure::<D>(kind.name, error);
    let mut names: Vec<&str> = uids.iter().map(|uid| &*uid.0).collect();
    names.sort_unstable();
    names.dedup();
    let mut images = Vec::with_capacity(names.len());
    for chunk in names.chunks(LIST_MAX) {
        let params = padded_list(chunk);
        let statement = sql::image(connections.driver.spelling(), kind, params.len());
        let rows = connections.query(statement, &params).await.map_err(failed)?;
        let mut labels = sides(connections, kind, Side::Labels, &params).await?;
        let mut annotations = sides(connections, kind, Side::Annotations, &params).await?;
        for row in &rows {
            let mut image = image(kind, row).map_err(failed)?;
            image.labels = labels.remove(&image.uid).unwrap_or_default();
            image.annotations = annotations.remove(&image.uid).unwrap_or_default();
            images.push(image);
        }
    }
    Ok(images)
}

/// Side rows by the uid of their object.
async fn sides<D: Driver>(
    connections: &Connections<D>,
    kind: &Kind,
    side: Side,
    uids: &[Param<'_>],
) -> Result<BTreeMap<String, Vec<SideRow>>, StoreError> {
    let failed = |error| failure::<D>(kind.name, error);
    let statement = sql::sides(connections.driver.spelling(), kind, side, uids.len());
    let rows = connections.query(statement, uids).await;
    let mut found: BTreeMap<String, Vec<SideRow>> = BTreeMap::new();
    for row in rows.map_err(failed)? {
        let owner = row.text(0).map_err(failed)?;
        let key = row.text(1).map_err(failed)?;
        let value = row.text_or_null(2).map_err(failed)?;
        found.entry(owner).or_default().push((key, value));
    }
    Ok(found)
}

/// Reads what [`sql::image`] selects.
fn image(kind: &Kind, row: &impl Cells) -> Result<RowImage, sqlx::Error> {
    let mut notes = Notes::default();
    let mut image = RowImage {
        uid: row.text(0)?,
        group_ver: notes.take(IMAGE_LEADING[1], row.text(1)),
        namespace: notes.take(IMAGE_LEADING[2], row.text(2)),
        name: notes.take(IMAGE_LEADING[3], row.text(3)),
        res_version: notes.take(IMAGE_LEADING[4], row.int(4)),
        proto: notes.take(IMAGE_LEADING[5], row.bytes(5)),
        text: notes.take(IMAGE_LEADING[6], row.text(6)),
        content_hash: notes.take(IMAGE_LEADING[7], row.bytes(7)),
        ..RowImage::default()
    };
    let times = [
        &mut image.create_time,
        &mut image.update_time,
        &mut image.delete_time,
        &mut image.evicted_time,
    ];
    let first = IMAGE_LEADING.len();
    for ((time, column), index) in times.into_iter().zip(IMAGE_TIMES).zip(first..) {
        *time = notes.take(column, row.time(index));
    }
    let first = first + IMAGE_TIMES.len();
    for (column, index) in kind.columns.iter().zip(first..) {
        let value = row.value(index, column.ty).map(|value| Some(flagged(column.ty, value)));
        image
            .columns
            .push(notes.take(column.name, value).unwrap_or(Value::Null));
    }
    image.unreadable = notes.0;
    Ok(image)
}

/// A flag is stored as a number; anything but 0 and 1 is somebody else's.
fn flagged(ty: ColumnType, value: Value) -> Value {
    match (ty, value) {
        (ColumnType::Bool, Value::Int(0)) => Value::Bool(false),
        (ColumnType::Bool, Value::Int(1)) => Value::Bool(true),
        (_, value) => value,
    }
}

/// What could not be read.
#[derive(Default)]
struct Notes(Vec<(&'static str, String)>);

impl Notes {
    fn take<T: Default>(&mut self, column: &'static str, cell: Result<T, sqlx::Error>) -> T {
        cell.unwrap_or_else(|error| {
            self.0.push((column, error.to_string()));
            T::default()
        })
    }
}

pub(super) async fn side_owners<D: Driver>(
    connections: &Connections<D>,
    kind: &Kind,
    after: Option<&Uid>,
    limit: u32,
) -> Result<Vec<Uid>, StoreError> {
    let failed = |error| failure::<D>(kind.name, error);
    let mut params: Vec<Param<'_>> = after.iter().map(|uid| Param::Text(&uid.0)).collect();
    params.push(Param::Int(limit.into()));
    let mut owners = BTreeSet::new();
    for side in [Side::Labels, Side::Annotations] {
        let statement = sql::side_owners(kind, side, after.is_none());
        for row in connections.query(statement, &params).await.map_err(failed)? {
            owners.insert(Uid::from(row.text(0).map_err(failed)?.as_str()));
        }
    }
    // Of the table whose page is full, nothing is known beyond its last uid; no uid of the union's
    // first `limit` lies there.
    Ok(owners.into_iter().take(limit as usize).collect())
}

/// Which of these uids a statement selects.
pub(super) async fn among<D: Driver>(
    connections: &Connections<D>,
    kind: &Kind,
    uids: &[Uid],
    statement: impl Fn(&Kind, usize) -> Statement,
) -> Result<Vec<Uid>, StoreError> {
    let failed = |error| failure::<D>(kind.name, error);
    let names: Vec<&str> = uids.iter().map(|uid| &*uid.0).collect();
    let mut found = Vec::new();
    for chunk in names.chunks(LIST_MAX) {
        let params = padded_list(chunk);
        let rows = connections.query(statement(kind, params.len()), &params).await;
        for row in rows.map_err(failed)? {
            found.push(Uid::from(row.text(0).map_err(failed)?.as_str()));
        }
    }
    Ok(found)
}
