//! Bounds the history: forgets revisions that were replaced before the newest N mutations. Refuses to touch
//! anything that is live, or that a retained event needs as its "before".

use sqlx::SqliteConnection;

/// Moves the floor up to `newest - history_max` and deletes what lies beneath it. Returns the floor that then holds.
///
/// A revision goes when the one that replaced it is at or below the new floor; a tombstone goes with its own version.
pub(super) async fn compact(
    connection: &mut SqliteConnection,
    floor: u64,
    newest: u64,
    history_max: u64,
) -> Result<u64, sqlx::Error> {
    let target = newest.saturating_sub(history_max);
    if target <= floor {
        return Ok(floor);
    }
    let (low, high) = (floor.cast_signed(), target.cast_signed());
    sqlx::query(
        "DELETE FROM revisions WHERE rv IN (SELECT previous FROM revisions WHERE rv > ?1 AND rv <= ?2 AND previous IS NOT NULL)",
    )
    .bind(low)
    .bind(high)
    .execute(&mut *connection)
    .await?;
    sqlx::query("DELETE FROM revisions WHERE rv > ?1 AND rv <= ?2 AND change = 2")
        .bind(low)
        .bind(high)
        .execute(&mut *connection)
        .await?;
    sqlx::query("UPDATE position SET floor = ?1 WHERE id = 0")
        .bind(high)
        .execute(&mut *connection)
        .await?;
    Ok(target)
}
