//! Gives entries to objects that were there before their kind had `events = true`. A replay is complete from the first
//! moment, because every program fills before it begins its work. Knows no dialect.

use jiff::Timestamp;
use kindex_model::kind::Kind;
use kindex_model::object::Object;

use crate::connections::{InTransaction, failure};
use crate::driver::{Cells, Driver, Limits, Param, Raw};
use crate::error::StoreError;
use crate::sql_store::{BOOKKEEPING, SqlStore};
use crate::statements::{LIST_MAX, outbox as sql, padded_list};
use crate::write::{Event, OutboxWork, advance, append, end};

/// Objects of one step.
const ROWS: i64 = 200;

/// One step, which finds in the database how far the others came. Several programs that fill at once take turns.
struct Fill<'a>(OutboxWork<'a>);

/// How far the entries of a kind are.
#[derive(Clone, Copy)]
enum Stage {
    /// Entries and marks may be there from an earlier time of `events = true`, and are not current.
    Stale,
    /// All rows up to this one have entries.
    After(i64),
    Complete,
}

impl Stage {
    /// Reads what [`sql::fills`] selects.
    fn read(row: &impl Cells) -> Result<Self, sqlx::Error> {
        Ok(match (row.time(2)?, row.int_or_null(1)?) {
            (Some(_), _) => Self::Complete,
            (None, Some(after)) => Self::After(after),
            (None, None) => Self::Stale,
        })
    }
}

/// An object that has no entry.
struct Found {
    uid: String,
    namespace: String,
    name: String,
    deletion: Option<Timestamp>,
}

impl<D: Driver> InTransaction<D> for Fill<'_> {
    /// Whether nothing is left to do.
    type Done = bool;

    fn kind(&self) -> &'static str {
        self.0.kind.name
    }

    async fn run(&self, connection: &mut Raw<D>, _: Limits) -> Result<bool, sqlx::Error> {
        // From here on nobody else changes the outbox of this kind. What is read is all that has been numbered.
        let position = advance::<D>(connection, &self.0, 0).await?;
        match self.stage::<D>(connection).await? {
            Stage::Complete => Ok(true),
            Stage::Stale => self.drop_stale::<D>(connection).await.map(|()| false),
            Stage::After(place) => self.fill::<D>(connection, place, position).await,
        }
    }
}

impl Fill<'_> {
    async fn stage<D: Driver>(&self, connection: &mut Raw<D>) -> Result<Stage, sqlx::Error> {
        for row in D::query(connection, sql::fills(self.0.spelling), &[]).await? {
            if row.text(0)? == self.0.kind.name {
                return Stage::read(&row);
            }
        }
        Ok(Stage::Stale)
    }

    /// The marks go first: who reads on from one of them would miss what was not written meanwhile.
    async fn drop_stale<D: Driver>(&self, connection: &mut Raw<D>) -> Result<(), sqlx::Error> {
        let kind = Param::Text(self.0.kind.name);
        let mut left = false;
        let marks = D::query(connection, sql::oldest_marks(self.0.spelling), &[kind]).await?;
        if let Some(last) = marks.last() {
            D::execute(connection, sql::drop_marks(), &[kind, Param::Int(last.int(0)?)]).await?;
            left = true;
        }
        let entries = D::query(connection, sql::some_entries(), &[kind]).await?;
        let uids = entries.iter().map(|row| row.text(0)).collect::<Result<Vec<_>, _>>()?;
        if !uids.is_empty() {
            debug_assert!(uids.len() <= LIST_MAX, "as many as one list holds");
            let uids: Vec<&str> = uids.iter().map(String::as_str).collect();
            let mut params = vec![kind];
            params.extend(padded_list(&uids));
            let statement = sql::drop_entries(self.0.spelling, params.len() - 1);
            D::execute(connection, statement, &params).await?;
            left = true;
        }
        if left {
            return Ok(());
        }
        self.note::<D>(connection, Param::Int(i64::MIN), Param::Null).await
    }

    async fn fill<D: Driver>(&self, connection: &mut Raw<D>, after: i64, position: u64) -> Result<bool, sqlx::Error> {
        let kind = Param::Text(self.0.kind.name);
        let statement = sql::without_entry(self.0.spelling, self.0.kind);
        let rows = D::query(
            connection,
            statement,
            &[kind, kind, Param::Int(after), Param::Int(ROWS)],
        )
        .await?;
        let Some(last) = rows.last() else {
            // A reader can begin here even where there is no object yet.
            end::<D>(connection, &self.0, position).await?;
            let complete = Param::Time(self.0.now);
            self.note::<D>(connection, Param::Null, complete).await?;
            return Ok(true);
        };
        let last = Param::Int(last.int(0)?);
        let found = rows.iter().map(found).collect::<Result<Vec<_>, _>>()?;
        let events: Vec<Event<'_>> = found.iter().map(Found::event).collect();
        self.note::<D>(connection, last, Param::Null).await?;
        append::<D>(connection, &self.0, &events).await?;
        Ok(false)
    }

    async fn note<D: Driver>(
        &self,
        connection: &mut Raw<D>,
        after: Param<'_>,
        complete: Param<'_>,
    ) -> Result<(), sqlx::Error> {
        let params = [after, complete, Param::Text(self.0.kind.name)];
        D::execute(connection, sql::note_fill(), &params).await.map(drop)
    }
}

impl Found {
    fn event(&self) -> Event<'_> {
        Event {
            uid: &self.uid,
            namespace: &self.namespace,
            name: &self.name,
            deletion: self.deletion,
            erased: false,
        }
    }
}

/// A live object says itself that it is being deleted. One whose text cannot be read is there all the same.
fn found(row: &impl Cells) -> Result<Found, sqlx::Error> {
    let live = row.text_or_null(4)?.and_then(|text| Object::parse_str(&text).ok());
    Ok(Found {
        uid: row.text(1)?,
        namespace: row.text(2)?,
        name: row.text(3)?,
        deletion: match live {
            Some(object) => object.metadata.deletion_timestamp,
            None => row.time(5)?,
        },
    })
}

impl<D: Driver> SqlStore<D> {
    /// Completes the outbox of each kind with `events = true`, and notes of the others that it is not kept any more.
    pub(crate) async fn fill_outbox(&self) -> Result<(), StoreError> {
        let failed = |error| failure::<D>(BOOKKEEPING, error);
        let spelling = self.connections.driver.spelling();
        let rows = self
            .connections
            .query(sql::fills(spelling), &[])
            .await
            .map_err(failed)?;
        for kind in self.registry.kinds {
            let mut stage = Stage::Stale;
            for row in &rows {
                if row.text(0).map_err(failed)? == kind.name {
                    stage = Stage::read(row).map_err(failed)?;
                }
            }
            match (kind.events, stage) {
                (true, Stage::Complete) | (false, Stage::Stale) => {}
                (true, Stage::Stale | Stage::After(_)) => self.fill_kind(kind).await?,
                (false, Stage::Complete | Stage::After(_)) => {
                    let params = [Param::Null, Param::Null, Param::Text(kind.name)];
                    self.change(kind, sql::note_fill(), &params).await?;
                }
            }
        }
        Ok(())
    }

    async fn fill_kind(&self, kind: &Kind) -> Result<(), StoreError> {
        tracing::info!(kind = kind.name, "giving entries in the outbox to all objects");
        let spelling = self.connections.driver.spelling();
        loop {
            let fill = Fill(OutboxWork {
                kind,
                spelling,
                now: Timestamp::now(),
                draw: self.draw,
            });
            let complete = self.connections.transact(&fill).await;
            if complete.map_err(|error| failure::<D>(kind.name, error))? {
                return Ok(());
            }
        }
    }

    /// Whether the outbox of a kind has all objects.
    pub(crate) async fn is_filled(&self, kind: &Kind) -> Result<bool, StoreError> {
        let failed = |error| failure::<D>(kind.name, error);
        let statement = sql::fills(self.connections.driver.spelling());
        for row in self.connections.query(statement, &[]).await.map_err(failed)? {
            if row.text(0).map_err(failed)? == kind.name {
                return Ok(matches!(Stage::read(&row).map_err(failed)?, Stage::Complete));
            }
        }
        Ok(false)
    }
}
