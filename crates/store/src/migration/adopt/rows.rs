//! Rows of another program become rows of ours, page by page: extracted columns are read anew from
//! the stored text, and what is in no cluster any more gets what the ingester would have written.
//! A row whose object may be in the cluster keeps no hash, by which the ingester knows that it has
//! to write it once more.

use std::time::Instant;

use kindex_model::kind::{Kind, Platform};
use kindex_model::object::Object;
use kindex_model::projection::Version;
use kindex_model::value::Value;
use tokio::time::sleep;

use crate::cells::param;
use crate::connections::failure;
use crate::driver::{Cells, Driver, Param, Purpose, begin};
use crate::error::StoreError;
use crate::migration::adopt::check::without_time_limit;
use crate::migration::adopt::{AdoptOptions, AdoptedKind, NUMBER, sql};
use crate::migration::sql::filled_up_to;
use crate::occupied::Occupied;
use crate::pace::Pace;
use crate::progress::Progress;
use crate::sql_store::SqlStore;

/// Rows of one transaction.
const PAGE_ROWS: u32 = 200;
/// Cells of a row before the extracted columns.
const LEADING: usize = 7;

/// A row as another program left it, and what its text says.
struct Found {
    seq: i64,
    version: i64,
    proto: Option<Vec<u8>>,
    /// Whether Kindex wrote it.
    ours: bool,
    deleted: bool,
    archived: bool,
    columns: Vec<Option<Value>>,
}

/// What is written to a row.
#[derive(Debug, PartialEq)]
struct RowUpdate {
    proto: Option<Vec<u8>>,
    hash: Option<[u8; 32]>,
    /// Whether it becomes the row of an archived object.
    evicts: bool,
    columns: Vec<Value>,
}

impl AdoptedKind {
    fn of(kind: &Kind) -> Self {
        Self {
            kind: kind.name,
            rows: 0,
            changed: 0,
            evicted: 0,
            unread: 0,
        }
    }
}

/// Takes up the rows of a kind from after the given place on.
pub(super) async fn take_up<D: Driver>(
    store: &SqlStore<D>,
    kind: &Kind,
    after: Option<i64>,
    options: &AdoptOptions,
    progress: &dyn Progress,
) -> Result<AdoptedKind, StoreError> {
    let failed = |error| failure::<D>(kind.name, error);
    let counted = without_time_limit(&store.connections, sql::count(kind.table), &[])
        .await
        .map_err(failed)?;
    let total = counted.first().map(|row| row.int(0)).transpose().map_err(failed)?;
    progress.begin(&format!("take up {}", kind.table), total.map(i64::unsigned_abs));
    let evict_all = options.archived.contains(&kind.name);
    let (began, mut pace) = (Instant::now(), Pace::new(options.rows_per_second));
    let page_rows = options.page_rows.unwrap_or(PAGE_ROWS).max(1);
    let mut after = after.unwrap_or(i64::MIN);
    let mut adopted = AdoptedKind::of(kind);
    loop {
        let page = sql::page(store.connections.driver.spelling(), kind);
        let params = [Param::Int(after), Param::Int(page_rows.into())];
        let rows = store.connections.query(page, &params).await.map_err(failed)?;
        let Some(last) = rows.last() else { break };
        after = last.int(0).map_err(failed)?;
        let mut updates = Vec::new();
        for row in &rows {
            let (found, text) = found(kind, row).map_err(failed)?;
            adopted.rows += 1;
            let Ok(object) = Object::parse_str(&text) else {
                adopted.unread += 1;
                continue;
            };
            let version = Version::project(kind, object);
            if let Some(update) = decide_update(&found, kind, &store.registry.platform, &version, evict_all) {
                adopted.evicted += u64::from(update.evicts);
                updates.push((found, update));
            }
        }
        adopted.changed += updates.len() as u64;
        write_updates(store, kind, &updates, after).await.map_err(failed)?;
        progress.advance(rows.len() as u64);
        sleep(pace.pass(rows.len(), began.elapsed())).await;
    }
    progress.end();
    Ok(adopted)
}

fn found(kind: &Kind, row: &impl Cells) -> Result<(Found, String), sqlx::Error> {
    let columns = kind.columns.iter().enumerate();
    let found = Found {
        seq: row.int(0)?,
        version: row.int(1)?,
        proto: row.bytes(3)?,
        ours: row.bytes(4)?.is_some(),
        deleted: row.int(5)? != 0,
        archived: row.int(6)? != 0,
        columns: columns
            .map(|(at, column)| row.value(at + LEADING, column.ty).ok())
            .collect(),
    };
    Ok((found, row.text(2)?))
}

/// Decides what is written to a row; `None` where it has it already.
fn decide_update(
    found: &Found,
    kind: &Kind,
    platform: &Platform,
    version: &Version,
    evict_all: bool,
) -> Option<RowUpdate> {
    let annotations = &version.object.metadata.annotations;
    let immutable = annotations.get(platform.immutable).is_some_and(|value| value == "true");
    let is_live = !found.deleted && !found.archived;
    let evicts = is_live && !found.ours && (evict_all || kind.immutable || immutable);
    // Nobody else will write such a row again.
    let is_final = !found.ours && (!is_live || evicts);
    let update = RowUpdate {
        proto: version
            .proto
            .clone()
            .filter(|proto| is_final && found.proto.as_ref() != Some(proto)),
        hash: is_final.then(|| version.hash.to_bytes()),
        evicts,
        columns: version.columns.clone(),
    };
    let held = found.columns.iter().zip(&update.columns);
    let is_current = held
        .into_iter()
        .all(|(held, said)| held.as_ref() == Some(&as_stored(said)));
    (!is_current || is_final).then_some(update)
}

/// A flag comes back as the number that it is stored as.
fn as_stored(value: &Value) -> Value {
    match value {
        Value::Bool(flag) => Value::Int(i64::from(*flag)),
        other => other.clone(),
    }
}

/// Writes a page, and how far it came, in one transaction.
async fn write_updates<D: Driver>(
    store: &SqlStore<D>,
    kind: &Kind,
    updates: &[(Found, RowUpdate)],
    after: i64,
) -> Result<(), sqlx::Error> {
    let mut connection = Occupied::<D>::new(store.connections.acquire(Purpose::Write).await?);
    let mut transaction = begin::<D>(&mut connection).await?;
    for (found, update) in updates {
        let mut params = vec![
            update.proto.as_deref().map_or(Param::Null, Param::Bytes),
            update.hash.as_ref().map_or(Param::Null, |hash| Param::Bytes(hash)),
            Param::Bool(update.evicts),
        ];
        params.extend(update.columns.iter().map(param));
        params.extend([Param::Int(found.seq), Param::Int(found.version)]);
        D::execute(&mut transaction, sql::take_up(kind), &params).await?;
    }
    let params = [Param::Int(after), Param::Int(NUMBER)];
    D::execute(&mut transaction, filled_up_to(), &params).await?;
    transaction.commit().await?;
    drop(connection.ended());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use kindex_model::kind::Encoded;

    const PLATFORM: Platform = Platform {
        group: "g",
        version: "v",
        immutable: "g/Immutable",
        ..Platform::EMPTY
    };

    fn kind(immutable: bool) -> Kind {
        Kind {
            name: "Model",
            group: "g",
            version: "v",
            plural: "models",
            singular: "model",
            table: "model",
            immutable,
            encode: |_| Encoded {
                proto: Some(vec![1]),
                problems: Vec::new(),
            },
            ..Kind::EMPTY
        }
    }

    /// What a row in that state gets: message, hash, eviction.
    fn given(ours: bool, state: &str, marked: bool, immutable: bool, evict_all: bool) -> Option<(bool, bool, bool)> {
        let mark = if marked {
            r#","annotations":{"g/Immutable":"true"}"#
        } else {
            ""
        };
        let text = format!(r#"{{"metadata":{{"name":"a","uid":"u","resourceVersion":"1"{mark}}}}}"#);
        let kind = kind(immutable);
        let version = Version::project(&kind, Object::parse_str(&text).expect("an object"));
        let found = Found {
            seq: 1,
            version: 1,
            proto: Some(vec![2]),
            ours,
            deleted: state == "deleted",
            archived: state == "archived",
            columns: Vec::new(),
        };
        let update = decide_update(&found, &kind, &PLATFORM, &version, evict_all)?;
        Some((update.proto.is_some(), update.hash.is_some(), update.evicts))
    }

    #[test]
    fn a_live_row_is_left_to_the_ingester() {
        assert_eq!(given(false, "live", false, false, false), None);
    }

    #[test]
    fn what_nobody_writes_again_is_made_whole() {
        assert_eq!(given(false, "deleted", false, false, false), Some((true, true, false)));
        assert_eq!(given(false, "archived", false, false, false), Some((true, true, false)));
    }

    #[test]
    fn what_its_program_took_out_of_the_cluster_is_archived() {
        for (marked, immutable, evict_all) in [(true, false, false), (false, true, false), (false, false, true)] {
            assert_eq!(
                given(false, "live", marked, immutable, evict_all),
                Some((true, true, true))
            );
            assert_eq!(
                given(false, "deleted", marked, immutable, evict_all),
                Some((true, true, false))
            );
        }
    }

    #[test]
    fn rows_of_ours_keep_what_they_have() {
        for state in ["live", "archived", "deleted"] {
            assert_eq!(given(true, state, true, true, true), None);
        }
    }
}
