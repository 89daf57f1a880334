//! Kindex's own tables beyond what the ingester asks of them: the state of long work,
//! refused objects with all that is recorded, the first checkpoint, the database's clock.

use jiff::Timestamp;
use kindex_model::checkpoint::Checkpoint;
use kindex_model::kind::Kind;
use kindex_model::object::ResourceVersion;

use crate::connections::{Connections, failure};
use crate::driver::{Cells, Driver, Param, Statement};
use crate::error::StoreError;
use crate::statements::{bookkeeping, fixed};
use crate::write::number;

pub(super) async fn state<D: Driver>(
    connections: &Connections<D>,
    kind: &Kind,
    name: &str,
) -> Result<Option<String>, StoreError> {
    let failed = |error| failure::<D>(kind.name, error);
    let statement = fixed("SELECT [value] FROM [kindex_state] WHERE [kind] = ? AND [name] = ?");
    let params = [Param::Text(kind.name), Param::Text(name)];
    let rows = connections.query(statement, &params).await.map_err(failed)?;
    rows.first().map(|row| row.text(0)).transpose().map_err(failed)
}

pub(super) async fn save_state<D: Driver>(
    connections: &Connections<D>,
    kind: &Kind,
    name: &str,
    value: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    let statement = bookkeeping::save_state(connections.driver.spelling());
    let params = [
        Param::Text(kind.name),
        Param::Text(name),
        Param::Text(value),
        Param::Time(now),
    ];
    change(connections, kind, statement, &params).await
}

pub(super) async fn forget_state<D: Driver>(
    connections: &Connections<D>,
    kind: &Kind,
    name: &str,
) -> Result<(), StoreError> {
    let statement = fixed("DELETE FROM [kindex_state] WHERE [kind] = ? AND [name] = ?");
    change(
        connections,
        kind,
        statement,
        &[Param::Text(kind.name), Param::Text(name)],
    )
    .await
}

pub(super) async fn save_first_checkpoint<D: Driver>(
    connections: &Connections<D>,
    kind: &Kind,
    version: ResourceVersion,
    now: Timestamp,
) -> Result<(), StoreError> {
    let statement = bookkeeping::checkpoint_if_absent(connections.driver.spelling());
    let params = [
        Param::Text(kind.name),
        number(Checkpoint::Settled(version).pack()),
        Param::Time(now),
    ];
    change(connections, kind, statement, &params).await
}

async fn change<D: Driver>(
    connections: &Connections<D>,
    kind: &Kind,
    statement: Statement,
    params: &[Param<'_>],
) -> Result<(), StoreError> {
    let changed = connections.execute(statement, params).await;
    changed.map(drop).map_err(|error| failure::<D>(kind.name, error))
}

pub(super) async fn clock<D: Driver>(connections: &Connections<D>) -> Result<Timestamp, StoreError> {
    let failed = |error| failure::<D>("kindex", error);
    let statement = fixed(connections.driver.spelling().clock());
    let rows = connections.query(statement, &[]).await.map_err(failed)?;
    let row = rows.first().expect("a select without tables has one row");
    let time = row.time(0).map_err(failed)?;
    Ok(time.expect("the clock is not NULL"))
}
