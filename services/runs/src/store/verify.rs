//! Proves that ledger, chunks and counters agree: reads all of the file and reports what does not.

use kindex_series::{Stats, batch, chunk};
use sqlx::{SqliteConnection, SqlitePool};

use super::error::StoreError;
use super::row::row;

/// What was looked at, and what is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Runs.
    pub runs: u64,
    /// Rows of the ledger.
    pub batches: u64,
    /// Chunks.
    pub chunks: u64,
    /// Points in the bodies of batches and chunks.
    pub points: u64,
    /// What is wrong, one sentence each.
    pub findings: Vec<String>,
}

row! {
    struct RunRow {
        run_no: i64,
        run_id: String,
        status: i64,
        sequence_next: i64,
        points_accepted: i64,
        points_forgotten: i64,
        points_compacted: i64,
        points_replaced: i64,
        metrics: i64,
        metric_max: i64,
    }
}

row! {
    struct BatchRow {
        arrival_no: i64,
        apply_ordinal: Option<i64>,
        sequence: Option<i64>,
        state: i64,
        accepted: i64,
        body: Option<Vec<u8>>,
    }
}

row! {
    struct ChunkRow {
        chunk_no: i64,
        metric_no: i64,
        step_min: i64,
        step_max: i64,
        time_min: i64,
        time_max: i64,
        n: i64,
        n_finite: i64,
        min_bits: i64,
        max_bits: i64,
        sum_bits: i64,
        first_bits: i64,
        last_bits: i64,
        body: Vec<u8>,
    }
}

/// Rows that are read at once.
const ROWS: i64 = 256;

/// Reads all, as of one commit.
///
/// # Errors
///
/// Where the file cannot be read.
pub async fn verify(readers: &SqlitePool) -> Result<Report, StoreError> {
    let mut snapshot = readers.begin().await?;
    let mut report = Report::default();
    let said: Vec<String> = sqlx::query_scalar("PRAGMA integrity_check")
        .fetch_all(&mut *snapshot)
        .await?;
    report.findings.extend(
        said.into_iter()
            .filter(|said| said != "ok")
            .map(|said| format!("SQLite: {said}")),
    );
    let runs: Vec<RunRow> = sqlx::query_as(
        "SELECT run_no, run_id, status, sequence_next, points_accepted, points_forgotten, points_compacted, \
         points_replaced, (SELECT count(*) FROM metric_name WHERE metric_name.run_no = run.run_no) AS metrics, \
         (SELECT coalesce(max(metric_no), 0) FROM metric_name WHERE metric_name.run_no = run.run_no) AS metric_max \
         FROM run",
    )
    .fetch_all(&mut *snapshot)
    .await?;
    for run in &runs {
        report.runs += 1;
        verify_run(&mut snapshot, run, &mut report).await?;
    }
    orphans(&mut snapshot, &mut report).await?;
    Ok(report)
}

/// Sums over the ledger of a run.
#[derive(Default)]
struct Ledger {
    accepted: i64,
    compacted: i64,
}

async fn verify_run(connection: &mut SqliteConnection, run: &RunRow, report: &mut Report) -> Result<(), StoreError> {
    let ledger = verify_batches(connection, run, report).await?;
    let in_chunks = verify_chunks(connection, run, report).await?;
    let sums = [
        (
            "points_accepted",
            run.points_accepted,
            "ledger",
            ledger.accepted + run.points_forgotten,
        ),
        (
            "points_compacted",
            run.points_compacted,
            "ledger",
            ledger.compacted + run.points_forgotten,
        ),
        (
            "points_compacted",
            run.points_compacted,
            "chunks",
            in_chunks + run.points_replaced,
        ),
        ("number of metrics", run.metrics, "list of metrics", run.metric_max),
    ];
    for (counter, counted, of, sum) in sums {
        if counted != sum {
            report.findings.push(format!(
                "Run {}: {counter} is {counted}, the {of} has {sum}.",
                run.run_id
            ));
        }
    }
    Ok(())
}

async fn verify_batches(
    connection: &mut SqliteConnection,
    run: &RunRow,
    report: &mut Report,
) -> Result<Ledger, StoreError> {
    let mut ledger = Ledger::default();
    let mut last = 0;
    loop {
        let rows: Vec<BatchRow> = sqlx::query_as(
            "SELECT arrival_no, apply_ordinal, sequence, state, accepted, body \
             FROM batch LEFT JOIN batch_body USING (arrival_no) \
             WHERE run_no = ?1 AND arrival_no > ?2 ORDER BY arrival_no LIMIT ?3",
        )
        .bind(run.run_no)
        .bind(last)
        .bind(ROWS)
        .fetch_all(&mut *connection)
        .await?;
        let Some(newest) = rows.last() else {
            return Ok(ledger);
        };
        last = newest.arrival_no;
        for row in &rows {
            report.batches += 1;
            ledger.accepted += row.accepted;
            ledger.compacted += if row.state == 3 { row.accepted } else { 0 };
            if let Err(what) = check_batch(run, row, report) {
                let finding = format!("Run {}: batch {}: {what}.", run.run_id, row.arrival_no);
                report.findings.push(finding);
            }
        }
    }
}

fn check_batch(run: &RunRow, row: &BatchRow, report: &mut Report) -> Result<(), String> {
    let is_held = row.state == 1;
    let is_well_formed = match row.state {
        1 => row.apply_ordinal.is_none() && row.body.is_some() && row.sequence >= Some(run.sequence_next),
        2 => row.apply_ordinal.is_some() && row.body.is_some(),
        3 => row.apply_ordinal.is_some() && row.body.is_none(),
        _ => false,
    };
    if !is_well_formed {
        return Err(format!("state {} does not fit its columns", row.state));
    }
    if is_held && run.status != 1 {
        return Err("it is held, but the run is not running".to_owned());
    }
    let Some(body) = &row.body else {
        return Ok(());
    };
    let body = batch::decode(body).map_err(|error| error.to_string())?;
    let of_metric = |name: &u32| body.numbers.get(*name as usize).copied().unwrap_or(0);
    let accepted = body.columns.names.iter().filter(|name| of_metric(name) != 0).count() as i64;
    report.points += accepted as u64;
    if accepted != row.accepted {
        return Err(format!("it has {accepted} points, not {}", row.accepted));
    }
    if body.numbers.iter().any(|number| i64::from(*number) > run.metrics) {
        return Err("it has a metric that is not listed".to_owned());
    }
    Ok(())
}

async fn verify_chunks(
    connection: &mut SqliteConnection,
    run: &RunRow,
    report: &mut Report,
) -> Result<i64, StoreError> {
    let mut points = 0;
    let mut last = (0, i64::MIN);
    // The last step of the chunk before, of the same metric.
    let mut end: Option<(i64, i64)> = None;
    loop {
        let rows: Vec<ChunkRow> = sqlx::query_as(
            "SELECT chunk_no, metric_no, step_min, step_max, time_min, time_max, n, n_finite, min_bits, max_bits, \
             sum_bits, first_bits, last_bits, body FROM chunk \
             WHERE run_no = ?1 AND (metric_no, step_min) > (?2, ?3) ORDER BY metric_no, step_min LIMIT ?4",
        )
        .bind(run.run_no)
        .bind(last.0)
        .bind(last.1)
        .bind(ROWS)
        .fetch_all(&mut *connection)
        .await?;
        let Some(newest) = rows.last() else {
            return Ok(points);
        };
        last = (newest.metric_no, newest.step_min);
        for row in &rows {
            report.chunks += 1;
            points += row.n;
            let is_apart = end.is_none_or(|(metric, step)| metric != row.metric_no || step < row.step_min);
            end = Some((row.metric_no, row.step_max));
            let checked = match check_chunk(row, report) {
                Ok(()) if !is_apart => Err("it has steps of the chunk before".to_owned()),
                Ok(()) if row.metric_no > run.metrics => Err("its metric is not listed".to_owned()),
                checked => checked,
            };
            if let Err(what) = checked {
                let finding = format!("Run {}: chunk {}: {what}.", run.run_id, row.chunk_no);
                report.findings.push(finding);
            }
        }
    }
}

fn check_chunk(row: &ChunkRow, report: &mut Report) -> Result<(), String> {
    let series = chunk::Decoder::default()
        .decode(&row.body)
        .map_err(|error| error.to_string())?;
    report.points += series.len() as u64;
    let value = |bits: i64| f64::from_bits(bits as u64);
    let stored = Stats {
        count: row.n as u64,
        finite: row.n_finite as u64,
        min: value(row.min_bits),
        max: value(row.max_bits),
        sum: value(row.sum_bits),
        first_bits: row.first_bits as u64,
        last_bits: row.last_bits as u64,
        step_min: row.step_min,
        step_max: row.step_max,
        time_min: row.time_min,
        time_max: row.time_max,
    };
    match Stats::of(&series) == Some(stored) {
        true => Ok(()),
        false => Err("its statistics are not those of its points".to_owned()),
    }
}

/// Rows of no run, except of those that were deleted and are being cleaned up.
async fn orphans(connection: &mut SqliteConnection, report: &mut Report) -> Result<(), StoreError> {
    const TABLES: [(&str, &str); 4] = [
        (
            "batch",
            "SELECT count(*) FROM batch WHERE run_no NOT IN \
             (SELECT run_no FROM run UNION SELECT run_no FROM deleted_run)",
        ),
        (
            "batch_body",
            "SELECT count(*) FROM batch_body WHERE arrival_no NOT IN (SELECT arrival_no FROM batch)",
        ),
        (
            "chunk",
            "SELECT count(*) FROM chunk WHERE run_no NOT IN \
             (SELECT run_no FROM run UNION SELECT run_no FROM deleted_run)",
        ),
        (
            "metric_name",
            "SELECT count(*) FROM metric_name WHERE run_no NOT IN \
             (SELECT run_no FROM run UNION SELECT run_no FROM deleted_run)",
        ),
    ];
    for (table, statement) in TABLES {
        let count: i64 = sqlx::query_scalar(statement).fetch_one(&mut *connection).await?;
        if count > 0 {
            report.findings.push(format!("{count} rows of {table} are of no run."));
        }
    }
    Ok(())
}
