//! Rows of objects that are no longer in the cluster: finding them, and removing them
//! with all their parts. A live row is out of reach of everything in this file.

use jiff::Timestamp;
use kindex_model::kind::Kind;
use kindex_model::object::Uid;
use kindex_query::Life;

use crate::cells::version_of_gone;
use crate::connections::{Connections, InTransaction, failure};
use crate::conversion;
use crate::dialect::Spelling;
use crate::driver::{Cells, Driver, Limits, Param, Raw};
use crate::error::StoreError;
use crate::maintenance::sql_gone::GoneSql;
use crate::maintenance::{Gone, GoneRow, sql_gone};
use crate::row::Arrival;
use crate::statements::{LIST_MAX, padded_list, references};
use crate::write::{Event, OutboxWork, append, forget};

/// A row that is to be removed.
struct RemovableRow {
    uid: String,
    namespace: String,
    name: String,
    is_deleted: bool,
}

impl RemovableRow {
    fn read(row: &impl Cells) -> Result<Self, sqlx::Error> {
        Ok(Self {
            uid: row.text(0)?,
            namespace: row.text(1)?,
            name: row.text(2)?,
            is_deleted: row.time(3)?.is_some(),
        })
    }

    /// A row that was marked deleted has its tombstone, or had it long ago.
    fn event(&self, now: Timestamp) -> Option<Event<'_>> {
        let event = Event {
            uid: &self.uid,
            namespace: &self.namespace,
            name: &self.name,
            deletion: None,
            erased: false,
        };
        (!self.is_deleted).then(|| event.erased(now))
    }
}

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
    params.extend([Param::Text(kind.name); 2]);
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
    params.extend([Param::Text(kind.name); 2]);
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
    let (deleted, archived) = (time(5)?, time(6)?);
    let life = if deleted.is_some() {
        Life::Deleted
    } else {
        Life::Archived
    };
    let gone_time = deleted.or(archived);
    Ok(GoneRow {
        arrival: Arrival(row.int(0)?),
        uid: Uid::from(row.text(1)?.as_str()),
        namespace: row.text(2)?,
        name: row.text(3)?,
        res_version: version_of_gone(row, 4)?,
        life,
        gone_time: gone_time.ok_or_else(|| sqlx::Error::Decode("a row that is not gone".into()))?,
    })
}

/// In one transaction, repeated while it loses against other writers.
pub(super) async fn remove<D: Driver>(
    connections: &Connections<D>,
    work: &OutboxWork<'static>,
    gone: &Gone,
    uids: &[Uid],
) -> Result<Vec<Uid>, StoreError> {
    let mut removed = Vec::new();
    let mut sorted: Vec<&str> = uids.iter().map(|uid| &*uid.0).collect();
    // The order of all writers, so that two of them never wait for each other.
    sorted.sort_unstable();
    for chunk in sorted.chunks(LIST_MAX) {
        let removal = Removal {
            work,
            sql: gone.sql(connections, work.kind),
            gone,
            uids: chunk,
        };
        let uids = connections.transact(&removal).await;
        removed.extend(uids.map_err(|error| failure::<D>(work.kind.name, error))?);
    }
    Ok(removed)
}

struct Removal<'a> {
    work: &'a OutboxWork<'static>,
    sql: GoneSql,
    gone: &'a Gone,
    uids: &'a [&'a str],
}

impl<D: Driver> InTransaction<D> for Removal<'_> {
    /// Those that were removed.
    type Done = Vec<Uid>;

    fn kind(&self) -> &'static str {
        self.work.kind.name
    }

    /// The condition is asked once more under the rows' locks: what has come back to life stays.
    async fn run(&self, connection: &mut Raw<D>, _: Limits) -> Result<Vec<Uid>, sqlx::Error> {
        let (kind, spelling) = (self.work.kind, self.sql.spelling());
        let mut params = self.gone.params();
        let list = padded_list(self.uids);
        params.extend(&list);
        let rows = D::query(connection, self.sql.lock(list.len()), &params).await?;
        let mut found = rows.iter().map(RemovableRow::read).collect::<Result<Vec<_>, _>>()?;
        found.sort_unstable_by(|a, b| a.uid.cmp(&b.uid));
        let names: Vec<&str> = found.iter().map(|row| row.uid.as_str()).collect();
        let held = held::<D>(connection, kind, spelling, &names).await?;
        let waiting = waiting::<D>(connection, kind, spelling, &names).await?;
        found.retain(|row| !held.contains(&row.uid) && (row.is_deleted || !waiting.contains(&row.uid)));
        if found.is_empty() {
            return Ok(Vec::new());
        }
        let names: Vec<&str> = found.iter().map(|row| row.uid.as_str()).collect();
        let list = padded_list(&names);
        for statement in sql_gone::remove(spelling, kind, list.len()) {
            D::execute(connection, statement, &list).await?;
        }
        forget::<D>(connection, kind, spelling, &names).await?;
        conversion::forget::<D>(connection, kind, spelling, &names).await?;
        let mut params = vec![Param::Text(kind.name)];
        params.extend(list);
        let statement = references::forget_tombstones(spelling, params.len() - 1);
        D::execute(connection, statement, &params).await?;
        // One that was deleted in the cluster has released what it held, or left it to an operator.
        let archived = found.iter().filter(|row| !row.is_deleted);
        let archived: Vec<&str> = archived.map(|row| row.uid.as_str()).collect();
        if !archived.is_empty() {
            let list = padded_list(&archived);
            let statement = references::release_held_by(spelling, list.len());
            D::execute(connection, statement, &list).await?;
        }
        if kind.events {
            let events: Vec<Event<'_>> = found.iter().filter_map(|row| row.event(self.work.now)).collect();
            append::<D>(connection, self.work, &events).await?;
        }
        Ok(found.iter().map(|row| Uid::from(row.uid.as_str())).collect())
    }
}

/// Those of these rows, which are locked, that references hold.
async fn held<D: Driver>(
    connection: &mut Raw<D>,
    kind: &Kind,
    spelling: &'static dyn Spelling,
    uids: &[&str],
) -> Result<Vec<String>, sqlx::Error> {
    if uids.is_empty() {
        return Ok(Vec::new());
    }
    let mut params = vec![Param::Text(kind.name)];
    params.extend(padded_list(uids));
    let statement = references::counts(spelling, params.len() - 1);
    let rows = D::query(connection, statement, &params).await?;
    rows.iter().map(|row| row.text(0)).collect()
}

/// Those of these rows, which are locked, whose objects are being deleted in the archive.
async fn waiting<D: Driver>(
    connection: &mut Raw<D>,
    kind: &Kind,
    spelling: &'static dyn Spelling,
    uids: &[&str],
) -> Result<Vec<String>, sqlx::Error> {
    if uids.is_empty() {
        return Ok(Vec::new());
    }
    let mut params = vec![Param::Text(kind.name)];
    params.extend(padded_list(uids));
    let statement = references::tombstones(spelling, params.len() - 1);
    let rows = D::query(connection, statement, &params).await?;
    rows.iter().map(|row| row.text(0)).collect()
}
