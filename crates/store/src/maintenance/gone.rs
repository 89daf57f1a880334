//! Rows of objects that are no longer in the cluster: finding them, and removing them
//! with all their parts. A live row is out of reach of everything in this file.

use kindex_model::kind::Kind;
use kindex_model::object::Uid;
use kindex_query::Life;

use crate::calls::Step;
use crate::cells::res_version;
use crate::connections::{CONFLICTS_MAX, Connections, failure, pause};
use crate::conversion;
use crate::driver::{Cells, Driver, Fault, Param, Purpose, Raw, begin};
use crate::error::StoreError;
use crate::maintenance::sql_gone::GoneSql;
use crate::maintenance::{Gone, GoneRow, sql_gone};
use crate::row::{Arrival, row_version};
use crate::statements::{LIST_MAX, padded_list, references};
use crate::write::forget;

impl Gone {
    fn sql<D: Driver>(&self, connections: &Connections<D>, kind: &'static Kind) -> GoneSql {
        GoneSql::new(connections.driver.spelling(), kind, self)
    }

    /// In the order of the conditions.
    fn params(&self) -> Vec<Param<'_>> {
        let texts = [&self.namespace, &self.name].into_iter().flatten();
        let times = [self.since, self.before].into_iter().flatten();
        let states = self.states.iter().flat_map(|(_, values)| values.iter());
        texts
            .map(|text| Param::Text(text))
            .chain(times.map(Param::Time))
            .chain(states.map(|state| Param::Text(state)))
            .collect()
    }
}

pub(super) async fn page<D: Driver>(
    connections: &Connections<D>,
    kind: &'static Kind,
    gone: &Gone,
    after: Option<Arrival>,
    limit: u32,
) -> Result<Vec<GoneRow>, StoreError> {
    let mut params = gone.params();
    params.push(Param::Text(kind.name));
    params.push(Param::Int(after.map_or(i64::MIN, |after| after.0)));
    params.push(Param::Int(limit.into()));
    read(connections, kind, gone.sql(connections, kind).page(), &params).await
}

pub(super) async fn nth_newest<D: Driver>(
    connections: &Connections<D>,
    kind: &'static Kind,
    gone: &Gone,
    place: u32,
) -> Result<Vec<GoneRow>, StoreError> {
    let mut params = gone.params();
    params.push(Param::Text(kind.name));
    params.push(Param::Int(place.into()));
    read(connections, kind, gone.sql(connections, kind).nth_newest(), &params).await
}

async fn read<D: Driver>(
    connections: &Connections<D>,
    kind: &Kind,
    statement: crate::driver::Statement,
    params: &[Param<'_>],
) -> Result<Vec<GoneRow>, StoreError> {
    let failed = |error| failure::<D>(kind.name, error);
    let rows = connections.query(statement, params).await.map_err(failed)?;
    rows.iter().map(gone_row).collect::<Result<_, _>>().map_err(failed)
}

/// Reads what [`GoneSql`] selects.
fn gone_row(row: &impl Cells) -> Result<GoneRow, sqlx::Error> {
    let time = |index| row.time(index);
    let (deleted, evicted) = (time(5)?, time(6)?);
    let life = if deleted.is_some() {
        Life::Deleted
    } else {
        Life::Archived
    };
    let gone_time = deleted.or(evicted);
    Ok(GoneRow {
        arrival: Arrival(row.int(0)?),
        uid: Uid::from(row.text(1)?.as_str()),
        namespace: row.text(2)?,
        name: row.text(3)?,
        res_version: row_version(life, res_version(row, 4)?),
        life,
        gone_time: gone_time.ok_or_else(|| sqlx::Error::Decode("a row that is not gone".into()))?,
    })
}

/// In one transaction, repeated while it loses against other writers.
pub(super) async fn remove<D: Driver>(
    connections: &Connections<D>,
    kind: &'static Kind,
    gone: &Gone,
    uids: &[Uid],
) -> Result<Vec<Uid>, StoreError> {
    let mut removed = Vec::new();
    let mut sorted: Vec<&str> = uids.iter().map(|uid| &*uid.0).collect();
    // The order of all writers, so that two of them never wait for each other.
    sorted.sort_unstable();
    for chunk in sorted.chunks(LIST_MAX) {
        let mut conflicts = 0;
        loop {
            match remove_once(connections, kind, gone, chunk).await {
                Err(error) if matches!(D::classify(&error), Fault::Conflict(_)) && conflicts < CONFLICTS_MAX => {
                    conflicts += 1;
                    tokio::time::sleep(pause(conflicts)).await;
                }
                Err(error) => return Err(failure::<D>(kind.name, error)),
                Ok(uids) => {
                    removed.extend(uids);
                    break;
                }
            }
        }
    }
    Ok(removed)
}

async fn remove_once<D: Driver>(
    connections: &Connections<D>,
    kind: &'static Kind,
    gone: &Gone,
    uids: &[&str],
) -> Result<Vec<Uid>, sqlx::Error> {
    let mut connection = connections.acquire(Purpose::Write).await?;
    let sql = gone.sql(connections, kind);
    let under_way = connections.calls.begin(Step::Write, kind.name);
    let call = remove_on::<D>(&mut connection, kind, &sql, gone, uids);
    let answer = under_way.bound(connections.driver.call_timeout(), call).await;
    connections.settle(connection, answer)
}

/// The condition is asked once more under the rows' locks: what has come back to life stays.
async fn remove_on<D: Driver>(
    connection: &mut Raw<D>,
    kind: &'static Kind,
    sql: &GoneSql,
    gone: &Gone,
    uids: &[&str],
) -> Result<Vec<Uid>, sqlx::Error> {
    let mut transaction = begin::<D>(connection).await?;
    let mut params = gone.params();
    let list = padded_list(uids);
    params.extend(&list);
    let rows = D::query(&mut transaction, sql.lock(list.len()), &params).await?;
    let mut found = rows.iter().map(|row| row.text(0)).collect::<Result<Vec<_>, _>>()?;
    let held = held::<D>(&mut transaction, kind, &found).await?;
    found.retain(|uid| !held.contains(uid));
    if !found.is_empty() {
        let mut names: Vec<&str> = found.iter().map(String::as_str).collect();
        names.sort_unstable();
        let list = padded_list(&names);
        for statement in sql_gone::remove(sql.spelling(), kind, list.len()) {
            D::execute(&mut transaction, statement, &list).await?;
        }
        forget::<D>(&mut transaction, kind, &names).await?;
        conversion::forget::<D>(&mut transaction, kind, &names).await?;
        let mut params = vec![Param::Text(kind.name)];
        params.extend(list);
        D::execute(
            &mut transaction,
            references::forget_tombstones(params.len() - 1),
            &params,
        )
        .await?;
    }
    transaction.commit().await?;
    Ok(found.iter().map(|uid| Uid::from(uid.as_str())).collect())
}

/// Those of these rows, which are locked, that references hold.
async fn held<D: Driver>(connection: &mut Raw<D>, kind: &Kind, uids: &[String]) -> Result<Vec<String>, sqlx::Error> {
    if uids.is_empty() {
        return Ok(Vec::new());
    }
    let names: Vec<&str> = uids.iter().map(String::as_str).collect();
    let mut params = vec![Param::Text(kind.name)];
    params.extend(padded_list(&names));
    let rows = D::query(connection, references::counts(params.len() - 1), &params).await?;
    rows.iter().map(|row| row.text(0)).collect()
}
