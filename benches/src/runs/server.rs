//! The runs service as a process of its own, with a folder, and what it says of itself.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use kindex_harness::ports;
use kindex_harness::scrape::{self, Scrape};
use sqlx::SqlitePool;

use crate::child::{Kindex, Usage, usage};

const START_MAX: Duration = Duration::from_secs(120);
const STOP_MAX: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(2);

/// A running service. Dropping it is a `kill -9`.
pub struct Server {
    kindex: Kindex,
    folder: PathBuf,
    /// Of gRPC.
    pub grpc: SocketAddr,
    /// Of REST.
    pub rest: SocketAddr,
    health: SocketAddr,
    /// From the start of the process to its first answer.
    pub start: Duration,
}

impl Server {
    /// Starts it on a folder and waits for its first answer.
    ///
    /// # Errors
    /// Where it ends, or does not answer in time.
    pub async fn start(folder: &Path, durability: &str) -> Result<Self, String> {
        let address = || SocketAddr::from((Ipv4Addr::LOCALHOST, ports::reserve()));
        let (grpc, rest, health) = (address(), address(), address());
        let text = [grpc, rest, health].map(|address| address.to_string());
        let begun = Instant::now();
        let mut kindex = Kindex::start(&[
            "runs",
            "serve",
            "--data-dir",
            &folder.display().to_string(),
            "--durability",
            durability,
            "--grpc-addr",
            &text[0],
            "--rest-addr",
            &text[1],
            "--health-addr",
            &text[2],
        ]);
        while !matches!(scrape::get(rest, "/health"), Ok((200, _))) {
            if let Some(status) = kindex.ended() {
                return Err(format!("kindex runs serve ended: {status}"));
            }
            if begun.elapsed() > START_MAX {
                return Err("kindex runs serve does not answer".to_owned());
            }
            tokio::time::sleep(POLL).await;
        }
        Ok(Self {
            kindex,
            folder: folder.to_owned(),
            grpc,
            rest,
            health,
            start: begun.elapsed(),
        })
    }

    /// Ends it as an operator does, so that it writes its log back.
    ///
    /// # Errors
    /// Where it does not end.
    pub async fn stop(&mut self) -> Result<(), String> {
        let process = self.kindex.id().to_string();
        let asked = Command::new("kill").args(["-TERM", &process]).status();
        asked.map_err(|error| error.to_string())?;
        let begun = Instant::now();
        while self.kindex.ended().is_none() {
            if begun.elapsed() > STOP_MAX {
                return Err("kindex runs serve does not end".to_owned());
            }
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }

    /// What the process used so far.
    pub fn usage(&self) -> Usage {
        usage(self.kindex.id()).unwrap_or_default()
    }

    /// Points that are stored and not in chunks.
    ///
    /// # Errors
    /// Where it does not say.
    pub fn backlog(&self) -> Result<f64, String> {
        let (_, text) = scrape::get(self.health, "/metrics").map_err(|error| error.to_string())?;
        Ok(Scrape::parse(&text).sum("kindex_runs_backlog_points"))
    }

    /// Its file, to read.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub async fn file(&self) -> Result<SqlitePool, String> {
        file(&self.folder).await
    }

    /// Waits until all runs that have ended have their last encoding.
    ///
    /// # Errors
    /// Where that takes too long.
    pub async fn sealed(&self, wait_max: Duration) -> Result<(), String> {
        const UNSEALED: &str = "SELECT count(*) FROM run WHERE is_sealed = 0 AND status IN (2, 3, 5)";
        let begun = Instant::now();
        let file = self.file().await?;
        loop {
            let left: i64 = sqlx::query_scalar(UNSEALED).fetch_one(&file).await.map_err(text)?;
            if left == 0 {
                return Ok(());
            }
            if begun.elapsed() > wait_max {
                return Err(format!("{left} runs still do not have their last encoding"));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

/// The file in a folder, to read.
///
/// # Errors
/// Where it cannot be read.
pub async fn file(folder: &Path) -> Result<SqlitePool, String> {
    kindex_runs::store::readers(folder)
        .await
        .map_err(|error| error.to_string())
}

/// Points that all answers were for, by the file in a folder.
///
/// # Errors
/// Where it cannot be read.
pub async fn stored_points(folder: &Path) -> Result<usize, String> {
    let file = file(folder).await?;
    let points: i64 = sqlx::query_scalar("SELECT coalesce(sum(points_accepted), 0) FROM run")
        .fetch_one(&file)
        .await
        .map_err(text)?;
    file.close().await;
    Ok(points as usize)
}

/// Bytes of the file in a folder, with its log.
pub fn file_bytes(folder: &Path) -> u64 {
    let bytes = |name: &str| std::fs::metadata(folder.join(name)).map_or(0, |metadata| metadata.len());
    bytes("runs.db") + bytes("runs.db-wal")
}

/// An error as it says itself.
pub fn text(error: sqlx::Error) -> String {
    error.to_string()
}
