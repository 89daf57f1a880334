//! Appends events to the outbox, as the last thing of the transaction that changes the rows, and drops the oldest
//! tombstones and marks. Knows no engine.

use jiff::{SignedDuration, Timestamp};
use kindex_model::kind::Kind;

use crate::dialect::Spelling;
use crate::driver::{Cells, Driver, Param, Raw};
use crate::statements::{LIST_MAX, outbox as sql, padded_list};
use crate::write::batch::{Batch, recurring};
use crate::write::events::Event;
use crate::write::feed::{number, position};

/// How long tombstones and marks are kept.
pub const TOMBSTONES_KEPT: SignedDuration = SignedDuration::from_hours(7 * 24);
/// Marks that are further back go earlier: a reader who lacks more changes than this replays as fast.
const POSITIONS_KEPT: u64 = 10_000_000;
/// Old tombstones and marks are looked for each time that a kind has so many more changes.
const POSITIONS_BETWEEN: u64 = 250;
/// Entries in one statement: some 1,000 bytes each at most.
const ROWS_MAX: usize = 512;

/// To what events are appended.
pub(crate) struct OutboxWork<'a> {
    pub(crate) kind: &'a Kind,
    pub(crate) spelling: &'static dyn Spelling,
    pub(crate) now: Timestamp,
    /// Draws the stamp.
    pub(crate) draw: fn() -> u64,
}

impl<D: Driver> Batch<'_, D> {
    /// As [`append`].
    pub(crate) async fn append_to_outbox(&mut self, events: &[Event<'_>]) -> Result<(), sqlx::Error> {
        let work = OutboxWork {
            kind: self.work.kind,
            spelling: self.work.sql.spelling(),
            now: self.work.now,
            draw: self.work.draw,
        };
        append::<D>(self.connection, &work, events).await
    }
}

/// Numbers the events of a transaction and stores them with the mark that ends it. Must come last before the commit,
/// because other writers wait for the numbers: positions are committed in their order only if no transaction numbers
/// its events before others that commit sooner.
pub(crate) async fn append<D: Driver>(
    connection: &mut Raw<D>,
    work: &OutboxWork<'_>,
    events: &[Event<'_>],
) -> Result<(), sqlx::Error> {
    let Some(count) = u64::try_from(events.len()).ok().filter(|count| *count > 0) else {
        return Ok(());
    };
    let kind = Param::Text(work.kind.name);
    let last = advance::<D>(connection, work, count).await?;
    let first = last - count;
    let mut place = first;
    let mut rest = events;
    while !rest.is_empty() {
        let (now, later) = rest.split_at(recurring(rest.len().min(ROWS_MAX)));
        let mut params = Vec::with_capacity(now.len() * 7);
        for event in now {
            place += 1;
            params.extend([
                kind,
                Param::Text(event.uid),
                number(place),
                Param::Text(event.namespace),
                Param::Text(event.name),
                event.deletion.map_or(Param::Null, Param::Time),
                if event.erased {
                    Param::Time(work.now)
                } else {
                    Param::Null
                },
            ]);
        }
        D::execute(connection, sql::store(work.spelling, now.len()), &params).await?;
        rest = later;
    }
    end::<D>(connection, work, last).await?;
    for _ in first / POSITIONS_BETWEEN..last / POSITIONS_BETWEEN {
        if !drop_old::<D>(connection, work, last).await? {
            break;
        }
    }
    Ok(())
}

/// Takes so many positions, and says which is the last. Until the transaction ends nobody else takes any.
pub(crate) async fn advance<D: Driver>(
    connection: &mut Raw<D>,
    work: &OutboxWork<'_>,
    count: u64,
) -> Result<u64, sqlx::Error> {
    let kind = Param::Text(work.kind.name);
    D::execute(connection, sql::advance(work.spelling), &[kind, number(count)]).await?;
    let rows = D::query(connection, sql::position(), &[kind]).await?;
    let last = rows.first().map(|row| position(row, 0)).transpose()?;
    Ok(last.ok_or(sqlx::Error::RowNotFound)?.0)
}

/// Marks the end of a transaction.
pub(crate) async fn end<D: Driver>(
    connection: &mut Raw<D>,
    work: &OutboxWork<'_>,
    last: u64,
) -> Result<(), sqlx::Error> {
    let stamp = Param::Int((work.draw)().cast_signed());
    let params = [Param::Text(work.kind.name), number(last), stamp, Param::Time(work.now)];
    D::execute(connection, sql::mark(work.spelling), &params).await?;
    Ok(())
}

/// Drops some of what is old, and says whether there may be more. A tombstone goes after all marks before it: whoever
/// reads on from a mark that is left misses none.
async fn drop_old<D: Driver>(connection: &mut Raw<D>, work: &OutboxWork<'_>, last: u64) -> Result<bool, sqlx::Error> {
    let kind = Param::Text(work.kind.name);
    let before = work.now.saturating_sub(TOMBSTONES_KEPT).unwrap_or(Timestamp::MIN);
    let marks = D::query(connection, sql::oldest_marks(work.spelling), &[kind]).await?;
    let mut dropped = None;
    let mut oldest = last;
    for mark in &marks {
        let place = position(mark, 0)?.0;
        let is_old = mark.time(1)?.is_some_and(|time| time < before) || place + POSITIONS_KEPT < last;
        if !is_old || place >= last {
            oldest = place;
            break;
        }
        dropped = Some(place);
    }
    if let Some(place) = dropped {
        D::execute(connection, sql::drop_marks(), &[kind, number(place)]).await?;
        oldest = oldest.min(place + 1);
    }
    let params = [kind, Param::Time(before), number(oldest)];
    let found = D::query(connection, sql::old_tombstones(), &params).await?;
    let found = found.iter().map(|row| row.text(0)).collect::<Result<Vec<_>, _>>()?;
    if !found.is_empty() {
        let uids: Vec<&str> = found.iter().map(String::as_str).collect();
        let mut params = vec![kind];
        params.extend(padded_list(&uids));
        let statement = sql::drop_entries(work.spelling, params.len() - 1);
        D::execute(connection, statement, &params).await?;
    }
    Ok(dropped.is_some() || found.len() >= LIST_MAX)
}
