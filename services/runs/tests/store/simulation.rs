//! Random stories of runs, played on a real file under a virtual clock and held to the model: batches in any order,
//! sent again, with other content, statements and commits that fail, answers that are lost, restarts, compaction,
//! silence and ends. A seed plays the same story each time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kindex_runs::domain::{Batch, NewRun, PresentedToken, RunId, Status};
use kindex_runs::ledger::ReorderRules;
use kindex_runs::lifecycle::SilenceRules;
use kindex_runs::store::{Faults, SeriesRequest, Settings};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::model::{ModelAnswer, ModelRun};
use super::support::{Bench, MINUTE, SECOND, batch, end, new_run, params, quiet};

const NAMES: [&str; 3] = ["loss", "acc", "lr"];
const RUNS: [&str; 3] = ["a", "b", "c"];

struct Story {
    bench: Bench,
    chance: StdRng,
    /// The statement that fails.
    fault: Arc<AtomicU64>,
    rules: ReorderRules,
    silence: SilenceRules,
    runs: BTreeMap<&'static str, ModelRun>,
    sent: Vec<(&'static str, Batch)>,
    /// Since when the server listens, and when it looked last.
    listens: (i64, i64),
    log: Vec<String>,
}

impl Story {
    async fn begin(seed: u64) -> Self {
        let fault = Arc::new(AtomicU64::new(u64::MAX));
        let asked = Arc::clone(&fault);
        let rules = ReorderRules {
            batches_max: 3,
            wait: 30 * SECOND,
            gap_max: 6,
        };
        let bench = Bench::with(Settings {
            faults: Some(Faults(Arc::new(move |statement| {
                statement == asked.load(Ordering::SeqCst)
            }))),
            reorder: rules,
            compact_points: 12,
            compact_chunks: 1,
            cached_runs_max: 2,
            tail_bytes_max: 600,
            ..quiet()
        })
        .await;
        let listens = (bench.now(), bench.now());
        Self {
            bench,
            chance: StdRng::seed_from_u64(seed),
            fault,
            rules,
            silence: SilenceRules::default(),
            runs: BTreeMap::new(),
            sent: Vec::new(),
            listens,
            log: Vec::new(),
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.chance.random_range(0..bound)
    }

    fn pick_run(&mut self) -> &'static str {
        RUNS[self.below(3) as usize]
    }

    async fn step(&mut self) {
        match self.below(20) {
            0..=8 => self.log_new().await,
            9..=10 => self.log_again().await,
            11 => self.open().await,
            12 => self.finish().await,
            13..=14 => self.pass_time().await,
            15 => self.restart().await,
            16..=17 => self.compact().await,
            18 => self.set_params().await,
            _ => self.heartbeat().await,
        }
    }

    fn new_batch(&mut self, run: &'static str) -> Batch {
        let expected = self.runs.get(run).map_or(1, |run| run.expected);
        let sequence = match self.below(3) {
            0 => None,
            _ => Some(expected + self.below(9) as i64 - 1),
        };
        let points: Vec<(&str, i64, f64)> = (0..self.below(6))
            .map(|_| {
                (
                    NAMES[self.below(3) as usize],
                    self.below(40) as i64,
                    self.below(1000) as f64,
                )
            })
            .collect();
        let id = format!("batch-{}", self.sent.len());
        batch(run, &id, sequence, &points, self.bench.now())
    }

    async fn log_new(&mut self) {
        let run = self.pick_run();
        let sent = self.new_batch(run);
        self.sent.push((run, sent.clone()));
        self.log_batch(run, sent).await;
    }

    /// An old batch once more, or with other content.
    async fn log_again(&mut self) {
        if self.sent.is_empty() {
            return;
        }
        let at = self.below(self.sent.len() as u64) as usize;
        let (run, mut sent) = self.sent[at].clone();
        if self.below(4) == 0 {
            sent.payload_hash[0] ^= 1;
        }
        self.log_batch(run, sent).await;
    }

    async fn log_batch(&mut self, run: &'static str, sent: Batch) {
        self.log
            .push(format!("log {run} {} {:?}", sent.batch_id, sent.sequence));
        // A statement fails, or the commit; then it is sent again as it was.
        if self.below(4) == 0 {
            let statement = 1 + self.below(14);
            self.fault.store(statement, Ordering::SeqCst);
            let answer = self.bench.store.log(sent.clone()).await;
            self.fault.store(u64::MAX, Ordering::SeqCst);
            match answer {
                Ok(_) => drop(self.said(run, &sent)),
                Err(refusal) if refusal.reason == "STORE_UNAVAILABLE" => {}
                Err(_) => assert_eq!(self.said(run, &sent), ModelAnswer::Refused),
            }
        }
        let before = self.bench.store.log(sent.clone()).await;
        let said = match before {
            Ok(logged) if logged.is_duplicate() => ModelAnswer::Known,
            Ok(logged) => ModelAnswer::Stored(logged.accepted),
            Err(_) => ModelAnswer::Refused,
        };
        assert_eq!(said, self.said(run, &sent), "{:#?}", self.log);
        // The answer is lost with the server; the client sends the batch again.
        if said != ModelAnswer::Refused && self.below(8) == 0 {
            self.restart().await;
            let again = self.bench.store.log(sent.clone()).await.expect("it is known");
            assert!(again.is_duplicate(), "{:#?}", self.log);
            self.said(run, &sent);
        }
    }

    fn said(&mut self, run: &'static str, sent: &Batch) -> ModelAnswer {
        let (now, rules) = (self.bench.now(), self.rules);
        self.runs
            .get_mut(run)
            .map_or(ModelAnswer::Refused, |run| run.log(sent, now, &rules))
    }

    async fn open(&mut self) {
        let run = self.pick_run();
        let now = self.bench.now();
        let generation = self.runs.get(run).map_or(1, |run| run.generation) - self.below(4).saturating_sub(1) as i64;
        let has_token = self.below(2) == 0;
        let token = match has_token {
            false => PresentedToken::Absent,
            true => PresentedToken::Signed {
                run: RunId::new(run),
                generation,
            },
        };
        self.log.push(format!("open {run} {token:?}"));
        let opened = self.bench.store.init(NewRun { token, ..new_run(run) }).await;
        let counts = |known: &ModelRun| has_token && (known.shown..=known.generation).contains(&generation);
        let expected = match self.runs.get_mut(run) {
            None if has_token => None,
            None => {
                self.runs.insert(run, ModelRun::new(now));
                Some(1)
            }
            Some(known) if known.status.is_terminal() => None,
            Some(known) if known.status == Status::Crashed && !counts(known) => None,
            Some(known) => {
                if counts(known) {
                    known.shown = generation;
                    known.release_all();
                }
                known.status = Status::Running;
                known.generation += 1;
                known.last_seen = now;
                Some(known.generation)
            }
        };
        assert_eq!(opened.ok().map(|opened| opened.generation), expected, "{:#?}", self.log);
    }

    async fn finish(&mut self) {
        let run = self.pick_run();
        // Mostly runs go on.
        if self.below(4) != 0 {
            return;
        }
        let wanted = [Status::Finished, Status::Failed, Status::Killed][self.below(3) as usize];
        self.log.push(format!("finish {run} {wanted:?}"));
        let answer = self.bench.store.finish(end(run, wanted)).await;
        let now = self.bench.now();
        let is_done = match self.runs.get_mut(run) {
            None => false,
            Some(known) if known.status == Status::Crashed && wanted == Status::Finished => false,
            Some(known) if known.status.is_terminal() => known.status == wanted,
            Some(known) => {
                known.release_all();
                known.status = wanted;
                known.last_seen = now;
                true
            }
        };
        assert_eq!(answer.is_ok(), is_done, "{:#?}", self.log);
    }

    async fn pass_time(&mut self) {
        let by = match self.below(6) {
            0 => 6 * MINUTE,
            1 => 55 * SECOND,
            _ => self.below(20) as i64 * SECOND,
        };
        self.log.push(format!("{} seconds", by / SECOND));
        self.bench.advance(by);
        let now = self.bench.now();
        if now - self.listens.1 > self.silence.look_within {
            self.listens.0 = now;
        }
        self.listens.1 = now;
        self.bench.store.tick().await.expect("it looks at the clock");
        let limit = now - self.silence.crash_after;
        for run in self.runs.values_mut().filter(|run| run.status == Status::Running) {
            if run.is_due(now, &self.rules) {
                run.release_all();
            }
            if run.last_seen <= limit && self.listens.0 <= limit {
                run.release_all();
                run.status = Status::Crashed;
            }
        }
    }

    async fn restart(&mut self) {
        self.log.push("restart".to_owned());
        self.bench.restart().await;
        self.listens = (self.bench.now(), self.bench.now());
    }

    async fn compact(&mut self) {
        self.log.push("compact".to_owned());
        if self.below(3) == 0 {
            let statement = 1 + self.below(12);
            self.fault.store(statement, Ordering::SeqCst);
            // It may fail, and is done the next time.
            let _tried = self.bench.store.compact().await;
            self.fault.store(u64::MAX, Ordering::SeqCst);
        }
        self.bench.compact().await;
    }

    async fn set_params(&mut self) {
        let run = self.pick_run();
        let (name, value) = (format!("p{}", self.below(3)), format!("{}", self.below(3)));
        let stored = self.bench.store.params(params(run, &[(&name, &value)])).await.is_ok();
        let now = self.bench.now();
        let Some(known) = self.runs.get_mut(run) else {
            assert!(!stored);
            return;
        };
        let is_running = known.status == Status::Running;
        let is_repeat = known.params.get(&name) == Some(&value);
        assert_eq!(stored, is_running || is_repeat, "{:#?}", self.log);
        if is_running {
            known.last_seen = now;
            known.param(&name, &value);
        }
    }

    async fn heartbeat(&mut self) {
        let run = self.pick_run();
        let answer = self.bench.store.heartbeat(RunId::new(run)).await;
        let now = self.bench.now();
        let expected = match self.runs.get_mut(run) {
            Some(known) if known.status == Status::Running => {
                known.last_seen = now;
                Some(false)
            }
            Some(known) if known.status == Status::Crashed => Some(true),
            _ => None,
        };
        assert_eq!(answer.ok().map(|beat| beat.request_resync), expected, "{:#?}", self.log);
    }

    async fn check(&self) {
        for (id, run) in &self.runs {
            let id = RunId::new(*id);
            let read = self
                .bench
                .store
                .series(&id, SeriesRequest::default())
                .await
                .expect("read")
                .expect("there");
            let mut values = BTreeMap::new();
            for named in read {
                for at in 0..named.series.len() {
                    let key = (named.name.as_str().to_owned(), named.series.steps[at]);
                    values.insert(key, (named.series.times[at], named.series.bits[at]));
                }
            }
            assert_eq!(values, run.values, "run {id}: {:#?}", self.log);
            let row = self.bench.store.run(&id).await.expect("read").expect("there");
            assert_eq!(
                (row.status, row.points),
                (run.status, run.points),
                "run {id}: {:#?}",
                self.log
            );
            let params: BTreeMap<String, String> = row.params.into_iter().collect();
            assert_eq!(params, run.params, "run {id}");
        }
        self.bench.verify().await;
    }
}

async fn play(seed: u64, steps: u64) {
    let mut story = Story::begin(seed).await;
    for step in 0..steps {
        story.step().await;
        if step % 10 == 9 {
            story.check().await;
        }
    }
    story.check().await;
    story.restart().await;
    story.check().await;
}

/// More stories: `KINDEX_STORIES=1000 cargo test -p kindex-runs --test store simulation`.
#[tokio::test]
async fn every_story_ends_as_the_model_says() {
    let stories = std::env::var("KINDEX_STORIES").ok().and_then(|text| text.parse().ok());
    for seed in 0..stories.unwrap_or(40) {
        play(seed, 80).await;
    }
}
