//! Finding rows in another version, one range of the primary key after the other. The range is found first, so that no
//! statement reads on and on where hardly a row is in another version.

use kindex_model::kind::Kind;
use kindex_model::object::Uid;
use kindex_model::projection::ContentHash;

use crate::cells::version_of_gone;
use crate::connections::{Connections, failure};
use crate::conversion::{OtherVersionPage, OtherVersionRow, sql};
use crate::driver::{Cells, Driver, Param};
use crate::error::StoreError;
use crate::row::Arrival;

/// The text among the cells of a row.
const TEXT: usize = 7;

pub(super) async fn read<D: Driver>(
    connections: &Connections<D>,
    kind: &'static Kind,
    after: Option<Arrival>,
    until: Option<Arrival>,
    limit: u32,
) -> Result<OtherVersionPage, StoreError> {
    let failed = |error| failure::<D>(kind.name, error);
    let spelling = connections.driver.spelling();
    let first = Param::Int(after.map_or(i64::MIN, |after| after.0));
    let last = Param::Int(until.map_or(i64::MAX, |until| until.0));
    let params = [first, last, Param::Int(limit.into())];
    let window = connections.query(sql::window(spelling, kind), &params).await;
    let window = window.map_err(failed)?;
    let window = window.first().expect("an aggregate has one row");
    let Some(end) = window.int_or_null(0).map_err(failed)? else {
        return Ok(OtherVersionPage::default());
    };
    let mut page = OtherVersionPage {
        last: Some(Arrival(end)),
        walked: window.int(1).map_err(failed)?.unsigned_abs(),
        rows: Vec::new(),
    };
    let own = kind.api_version();
    let params = [first, Param::Int(end), Param::Text(&own)];
    let statement = sql::other_versions(spelling, kind);
    let found = connections.query_page(statement, &params, &[TEXT]).await;
    let mut found = found.map_err(failed)?;
    if found.are_cut {
        found.rows.pop();
    }
    page.rows = found
        .rows
        .iter()
        .map(other_row)
        .collect::<Result<_, _>>()
        .map_err(failed)?;
    if found.are_cut {
        page.last = page.rows.last().map(|row| row.arrival);
        page.walked = page.rows.len() as u64;
    }
    Ok(page)
}

/// Reads what [`sql::other_versions`] selects.
fn other_row(row: &impl Cells) -> Result<OtherVersionRow, sqlx::Error> {
    Ok(OtherVersionRow {
        arrival: Arrival(row.int(0)?),
        uid: Uid::from(row.text(1)?.as_str()),
        namespace: row.text(2)?,
        name: row.text(3)?,
        group_ver: row.text(4)?,
        res_version: version_of_gone(row, 5)?,
        hash: row.bytes(6)?.as_deref().and_then(ContentHash::from_bytes),
        text: row.text(TEXT)?,
    })
}
