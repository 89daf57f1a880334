//! Many rows at once, made by the server itself from a sequence of numbers: as many objects of about
//! 2 KiB as wanted, in order of time and random order of uid. States are Zipf-distributed over eight, the first one on
//! 37 % of the rows; the label `size` is on 100,000, 10,000, 1,000, 100 and 10 rows, and on every
//! fiftieth of the rest.

use std::time::{Duration, Instant};

use sqlx::mysql::MySqlConnection;
use sqlx::{AssertSqlSafe, Executor as _, Row as _};
use tokio::time::sleep;

use crate::objects::objects;

/// The states, the most frequent one first.
pub const STATES: [&str; 8] = [
    "SUCCEEDED",
    "FAILED",
    "RUNNING",
    "PENDING",
    "KILLED",
    "SKIPPED",
    "PAUSED",
    "LOST",
];

/// A server with so few pages to write is at rest.
const FEW_PAGES: i64 = 200;
const SETTLING_MAX: Duration = Duration::from_secs(600);

/// How many rows have the label `size` with the value of that number.
pub const SIZES: [usize; 5] = [100_000, 10_000, 1_000, 100, 10];

/// The uid of the object of that number.
pub fn uid(number: usize) -> String {
    format!("{:08x}-{number:08}", scattered(number))
}

/// The name of the object of that number, in namespace `team-<number % 50>`.
pub fn name(number: usize) -> String {
    format!("run-{number:08}")
}

/// A permutation of the 32-bit numbers without order; the server computes the same.
fn scattered(number: usize) -> u32 {
    let number = u32::try_from(number).expect("fewer than 2^32 rows");
    number.wrapping_mul(2_654_435_761)
}

/// Fills the empty tables of the kind with rows 0 to `count`.
///
/// # Errors
/// As the server says.
pub async fn fill(connection: &mut MySqlConnection, count: usize) -> Result<(), sqlx::Error> {
    let last = count - 1;
    let uids = format!(
        "SELECT seq AS n, CONCAT(LPAD(LOWER(HEX((seq * 2654435761) % 4294967296)), 8, '0'), '-', LPAD(seq, 8, '0')) \
         AS uid FROM seq_0_to_{last} ORDER BY 1"
    );
    let filler: String = objects(1, 1).created[0]
        .object
        .text()
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .collect();
    let state = zipf("CRC32(n) % 1000");
    let json = format!(
        "CONCAT('{{\"apiVersion\":\"bench.kindex/v1\",\"kind\":\"Run\",\"metadata\":{{\"namespace\":\"team-', n % 50, \
         '\",\"name\":\"run-', LPAD(n, 8, '0'), '\",\"uid\":\"', uid, '\",\"resourceVersion\":\"1\",\
         \"creationTimestamp\":\"2024-05-06T06:00:00Z\"}},\"spec\":{{\"owner\":\"user-', n % 200, \
         '\",\"pipeline\":{{\"namespace\":\"shared\",\"name\":\"pipeline-', n % 500, '\"}},\"parameters\":\"{filler}\"}},\
         \"status\":{{\"state\":\"', {state}, '\"}}}}')"
    );
    let rows = format!(
        "INSERT INTO run (uid, group_ver, namespace, name, res_version, create_time, update_time, json, \
         pipeline_namespace, pipeline_name, state) SELECT uid, 'bench.kindex/v1', CONCAT('team-', n % 50), \
         CONCAT('run-', LPAD(n, 8, '0')), 1, FROM_UNIXTIME(1700000000 + n), FROM_UNIXTIME(1700000000 + n), {json}, \
         'shared', CONCAT('pipeline-', n % 500), {state} FROM ({uids}) AS numbered"
    );
    let labels = format!(
        "INSERT INTO run_labels (obj_uid, `key`, `value`) SELECT uid, 'size', {} FROM ({uids}) AS numbered",
        size()
    );
    for statement in [rows, labels, "ANALYZE TABLE run, run_labels".to_owned()] {
        connection.execute(AssertSqlSafe(statement)).await?;
    }
    Ok(())
}

/// Waits until the server has written what it holds: a server at work on its past says little about questions.
///
/// # Errors
/// As the server says.
pub async fn settle(connection: &mut MySqlConnection) -> Result<(), sqlx::Error> {
    connection.execute("SET GLOBAL innodb_max_dirty_pages_pct = 0").await?;
    let began = Instant::now();
    while began.elapsed() < SETTLING_MAX {
        let dirty = "SELECT CAST(VARIABLE_VALUE AS SIGNED) FROM information_schema.GLOBAL_STATUS \
                     WHERE VARIABLE_NAME = 'INNODB_BUFFER_POOL_PAGES_DIRTY'";
        let pages: i64 = connection.fetch_one(dirty).await?.get(0);
        if pages < FEW_PAGES {
            break;
        }
        sleep(Duration::from_millis(500)).await;
    }
    connection.execute("SET GLOBAL innodb_max_dirty_pages_pct = 90").await?;
    Ok(())
}

/// The state of a row by a number from 0 to 999: the share of the k-th is proportional to 1/k.
fn zipf(number: &str) -> String {
    let harmonic: f64 = (1..=8).map(|rank| 1.0 / f64::from(rank)).sum();
    let mut below = 0.0;
    let mut cases = String::from("CASE");
    for (rank, state) in (1..=8).zip(STATES) {
        below += 1000.0 / (f64::from(rank) * harmonic);
        cases.push_str(&format!(" WHEN {number} < {below:.3} THEN '{state}'"));
    }
    cases + " ELSE 'LOST' END"
}

fn size() -> String {
    let mut below = 0;
    let mut cases = String::from("CASE");
    for size in SIZES {
        below += size;
        cases.push_str(&format!(" WHEN n < {below} THEN '{size}'"));
    }
    cases + " ELSE CONCAT('rest-', n % 50) END"
}
