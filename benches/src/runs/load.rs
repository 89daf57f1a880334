//! How batches are sent: each sender one after the other for as long as it takes, or all at a rate whatever the answers
//! do.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

/// Before a batch that was refused for want of room is sent again.
const PAUSE: Duration = Duration::from_millis(5);

/// Why a batch was not stored.
#[derive(Debug)]
pub enum Refused {
    /// The server has no room at the moment.
    Full,
    /// It will not be stored.
    Failed(String),
}

/// What one call came to.
pub type Answer = Pin<Box<dyn Future<Output = Result<(), Refused>> + Send>>;

/// Sends batches of one run.
pub trait Sender: Send + 'static {
    /// Makes the next batch; the future sends it.
    fn next(&mut self) -> Answer;

    /// Makes the batch of before once more.
    fn again(&mut self) -> Answer;

    /// Points of a batch.
    fn points(&self) -> usize;
}

/// What was answered in a time.
#[derive(Debug, Default)]
pub struct Answered {
    /// Points that are stored.
    pub points: usize,
    /// How long that took.
    pub took: Duration,
    /// How often the server had no room.
    pub full: usize,
}

impl Answered {
    /// Points a second.
    pub fn rate(&self) -> f64 {
        self.points as f64 / self.took.as_secs_f64()
    }
}

/// Has each sender send one batch after the other: for a time, or a number of batches.
///
/// # Errors
/// Where a batch fails.
pub async fn closed<S: Sender>(senders: Vec<S>, time: Duration, batches: usize) -> Result<Answered, String> {
    let begun = Instant::now();
    let mut tasks = JoinSet::new();
    for sender in senders {
        tasks.spawn(one_after_the_other(sender, begun + time, batches));
    }
    let mut answered = Answered::default();
    while let Some(done) = tasks.join_next().await {
        let (points, full) = done.map_err(|error| error.to_string())??;
        answered.points += points;
        answered.full += full;
    }
    answered.took = begun.elapsed();
    Ok(answered)
}

async fn one_after_the_other<S: Sender>(mut sender: S, end: Instant, batches: usize) -> Result<(usize, usize), String> {
    let (mut points, mut full) = (0, 0);
    for _ in 0..batches {
        if Instant::now() >= end {
            break;
        }
        let mut outcome = sender.next().await;
        while let Err(Refused::Full) = outcome {
            full += 1;
            tokio::time::sleep(PAUSE).await;
            outcome = sender.again().await;
        }
        match outcome {
            Ok(()) => points += sender.points(),
            Err(Refused::Full) => {}
            Err(Refused::Failed(why)) => return Err(why),
        }
    }
    Ok((points, full))
}

/// Sends a batch every `every`, by the senders in turn, whether those before were answered or not; the times from when
/// each was due to its answer. `sent` hears of each, with the sender's place and when it was due.
///
/// # Errors
/// Where a batch fails.
pub async fn open<S: Sender>(
    mut senders: Vec<S>,
    every: Duration,
    time: Duration,
    mut sent: impl FnMut(usize, Instant) + Send + 'static,
) -> Result<Vec<Duration>, String> {
    let handle = tokio::runtime::Handle::current();
    // A thread of its own sleeps more exactly than a task.
    let pacing = std::thread::spawn(move || {
        let mut calls = Vec::new();
        let begun = Instant::now();
        let count = (time.as_nanos() / every.as_nanos()) as u32;
        for number in 0..count {
            let due = begun + every * number;
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            let place = number as usize % senders.len();
            let answer = senders[place].next();
            sent(place, due);
            calls.push(handle.spawn(async move { answer.await.map(|()| due.elapsed()) }));
        }
        calls
    });
    let calls = tokio::task::spawn_blocking(move || pacing.join()).await;
    let calls = calls
        .map_err(|error| error.to_string())?
        .map_err(|_| "the pacing thread panicked".to_owned())?;
    let mut times = Vec::with_capacity(calls.len());
    for call in calls {
        let outcome = call.await.map_err(|error| error.to_string())?;
        times.push(outcome.map_err(|refused| format!("{refused:?}"))?);
    }
    Ok(times)
}
