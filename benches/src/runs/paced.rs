//! 100,000 points a second, whatever the answers do: a batch of 1,000 points every 10 ms, of 100 runs in turn. How long
//! after it was due each is answered, and how long after it was due a point of every tenth batch can be read. Runs have
//! different numbers of points from the beginning, so that one of them is due to be compacted at any time.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use kindex_runs::wire::v1::{GetMetricsRequest, RunId};
use tokio::task::JoinSet;

use super::grpc::{Client, Unary};
use super::load::{Sender as _, open};
use super::server::Server;
use super::template::{BATCH_POINTS, METRICS, STEP_MIN, metric};
use super::throughput::RUNS;

/// Between two batches.
const EVERY: Duration = Duration::from_millis(10);
/// Of so many batches one is looked for.
const LOOKED_FOR: usize = 10;
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(1);
const LOOK_MAX: Duration = Duration::from_secs(30);
/// Batches of the run with the most of them at the beginning: about as many as are compacted together.
const BATCHES_BEFORE: usize = 50;

/// What one measurement comes to.
#[derive(Debug)]
pub struct Paced {
    /// From when a batch is due to its answer.
    pub answers: Vec<Duration>,
    /// From when a batch is due to the first read with its points.
    pub visible: Vec<Duration>,
    /// Points that wait for compaction at the end.
    pub backlog: f64,
}

/// Measures the service.
///
/// # Errors
/// Where it fails.
pub async fn measure(durability: &str, time: Duration) -> Result<Paced, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let server = Server::start(folder.path(), durability).await?;
    let client = Client::new(server.grpc);
    let runs = client.open_runs("paced", RUNS).await?;
    let mut senders = Unary::all(server.grpc, &runs);
    for (place, sender) in senders.iter_mut().enumerate() {
        for _ in 0..batches_before(place) {
            sender.next().await.map_err(|refused| format!("{refused:?}"))?;
        }
    }
    let (look, mut looked_for) = tokio::sync::mpsc::unbounded_channel();
    let mut sent = 0_usize;
    let hear = move |place: usize, due: Instant| {
        if sent.is_multiple_of(LOOKED_FOR) {
            let batches = batches_before(place) + sent / RUNS;
            let step = STEP_MIN + (batches * BATCH_POINTS / METRICS) as i64;
            // Nobody looks any more where a look has failed.
            let _unheard = look.send((place, due, step));
        }
        sent += 1;
    };
    let visible = Arc::new(Mutex::new(Vec::new()));
    let reader = Client::new(server.grpc);
    let looking = {
        let (visible, runs) = (Arc::clone(&visible), runs.clone());
        tokio::spawn(async move {
            let mut looks = JoinSet::new();
            while let Some((place, due, step)) = looked_for.recv().await {
                let (reader, visible, run) = (reader.clone(), Arc::clone(&visible), runs[place].clone());
                looks.spawn(async move {
                    let found = seen(&reader, run, step, due).await?;
                    visible.lock().expect("nobody panics while adding").push(found);
                    Ok::<_, String>(())
                });
            }
            while let Some(done) = looks.join_next().await {
                done.map_err(|error| error.to_string())??;
            }
            Ok::<_, String>(())
        })
    };
    let answers = open(senders, EVERY, time, hear).await?;
    looking.await.map_err(|error| error.to_string())??;
    let visible = std::mem::take(&mut *visible.lock().expect("nobody panics while adding"));
    Ok(Paced {
        answers,
        visible,
        backlog: server.backlog()?,
    })
}

fn batches_before(place: usize) -> usize {
    place * BATCHES_BEFORE / RUNS
}

/// Looks until the point of a step is there.
async fn seen(client: &Client, run: String, step: i64, due: Instant) -> Result<Duration, String> {
    let request = GetMetricsRequest {
        run_ids: vec![RunId { value: run }],
        metric_names: vec![metric(0)],
        min_step: Some(step),
        max_step: Some(step),
        ..GetMetricsRequest::default()
    };
    while client.metrics(&request).await?.1 == 0 {
        if due.elapsed() > LOOK_MAX {
            return Err(format!("a point was not to be read {LOOK_MAX:?} after it was due"));
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(due.elapsed())
}
