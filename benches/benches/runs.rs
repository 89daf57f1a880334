//! The runs service beside MLflow: `kindex runs serve` and MLflow's tracking server on SQLite as processes of their
//! own, load over gRPC and JSON, all on this machine. Rounds are interleaved; what fails is reported, and the rest goes
//! on.
//!
//! The environment scales it down: `KINDEX_BENCH_ROUNDS` (3), `KINDEX_BENCH_SECONDS` (10) of load at the highest rate,
//! `KINDEX_BENCH_PACED_SECONDS` (20) at 100,000 points a second, `KINDEX_BENCH_POINTS` (100000) of a curve,
//! `KINDEX_BENCH_RUNS` (1000) open runs, `KINDEX_BENCH_CALLS` (20000) of `log`. `KINDEX_BENCH_PARTS` names the parts to
//! measure, with commas: throughput, paced, reading, space, memory, log; all without it. MLflow comes from
//! `benches/mlflow/install target/tools/mlflow`.

use std::future::Future;
use std::process::ExitCode;
use std::time::Duration;

use kindex_benches::child::become_kindex;
use kindex_benches::figures::{Rates, machine, percentile, setting};
use kindex_benches::runs::mlflow::Mlflow;
use kindex_benches::runs::targets::{ResultTable, Target};
use kindex_benches::runs::throughput::Transport;
use kindex_benches::runs::{log_call, paced, reading, space, throughput};

/// Batches of each run before the size of the file is taken.
const FILE_BATCHES: usize = 20;
/// Batches of each of the open runs.
const OPEN_BATCHES: usize = 5;

fn main() -> ExitCode {
    if let Some(code) = become_kindex() {
        return code;
    }
    println!("{}\n", machine());
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let mut bench = Bench::default();
    runtime.block_on(bench.measure());
    bench.table.print();
    ExitCode::SUCCESS
}

fn seconds(name: &str, default: usize) -> Duration {
    Duration::from_secs(setting(name, default) as u64)
}

fn is_asked_for(part: &str) -> bool {
    let parts = std::env::var("KINDEX_BENCH_PARTS").unwrap_or_default();
    parts.is_empty() || parts.split(',').any(|name| name.trim() == part)
}

/// What a part comes to; a panic is a failure of the part alone.
async fn attempt<T: Send + 'static>(
    work: impl Future<Output = Result<T, String>> + Send + 'static,
) -> Result<T, String> {
    tokio::spawn(work).await.map_err(|error| error.to_string())?
}

fn milliseconds(times: &[Duration], percent: usize) -> f64 {
    percentile(times, percent).as_secs_f64() * 1e3
}

/// What the rounds of one kind of load found.
#[derive(Default)]
struct Rounds {
    rate: Rates,
    of_processor: Rates,
    compacted: Rates,
    backlog: Rates,
    start: Rates,
    failed: Option<String>,
}

#[derive(Default)]
struct PacedRounds {
    answers_p50: Rates,
    answers_p99: Rates,
    visible_p95: Rates,
    backlog: Rates,
    failed: Option<String>,
}

#[derive(Default)]
struct MlflowRounds {
    rate: Rates,
    of_processor: Rates,
    points: usize,
    failed: Option<String>,
}

#[derive(Default)]
struct Bench {
    table: ResultTable,
    loads: [Rounds; 3],
    paced: [PacedRounds; 2],
    mlflow: MlflowRounds,
}

/// The loads at the highest rate, with their targets: multiples of MLflow, points a second, and points a second of
/// processor time.
static LOADS: [(&str, Transport, &str, f64, f64, f64); 3] = [
    ("gRPC, normal", Transport::Grpc, "normal", 200.0, 1e6, 1.5e6),
    ("gRPC, full", Transport::Grpc, "full", 100.0, 5e5, 1.5e6),
    ("JSON, normal", Transport::Json, "normal", 60.0, 3e5, 7e5),
];

/// The loads at 100,000 points a second, with the targets of the median and the 99th percentile.
static PACED: [(&str, Target, f64); 2] = [("normal", Target::AtMost(3.0), 25.0), ("full", Target::None, 60.0)];

impl Bench {
    async fn measure(&mut self) {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let mlflow = Mlflow::start(folder.path()).await;
        if let Err(why) = &mlflow {
            eprintln!("{why}");
            self.table.failed("MLflow", why);
        }
        let mlflow = mlflow.ok().map(std::sync::Arc::new);
        for round in 0..setting("KINDEX_BENCH_ROUNDS", 3) {
            eprintln!("round {}", round + 1);
            self.round(round, mlflow.as_ref()).await;
        }
        self.show_loads();
        self.show_paced();
        let file = match &mlflow {
            Some(mlflow) if self.mlflow.points > 0 => Some(mlflow.file_bytes() as f64 / self.mlflow.points as f64),
            _ => None,
        };
        if is_asked_for("reading") {
            self.read(mlflow).await;
        }
        if is_asked_for("space") {
            self.space(file).await;
        }
        if is_asked_for("memory") {
            self.memory().await;
        }
        if is_asked_for("log") {
            self.log().await;
        }
    }

    /// All loads once, in an order that alternates.
    async fn round(&mut self, round: usize, mlflow: Option<&std::sync::Arc<Mlflow>>) {
        let time = seconds("KINDEX_BENCH_SECONDS", 10);
        let mut order: Vec<usize> = (0..LOADS.len() + 1).collect();
        if !round.is_multiple_of(2) {
            order.reverse();
        }
        for place in order.into_iter().filter(|_| is_asked_for("throughput")) {
            if let Some((_, transport, durability, ..)) = LOADS.get(place) {
                match attempt(throughput::measure(*transport, durability, time)).await {
                    Ok(measured) => self.loads[place].add(&measured),
                    Err(why) => self.loads[place].failed = Some(why),
                }
            } else if let Some(mlflow) = mlflow.cloned() {
                match attempt(async move { throughput::measure_mlflow(&mlflow, time).await }).await {
                    Ok(measured) => self.mlflow.add(measured),
                    Err(why) => self.mlflow.failed = Some(why),
                }
            }
        }
        let time = seconds("KINDEX_BENCH_PACED_SECONDS", 20);
        for ((durability, ..), rounds) in PACED.into_iter().zip(&mut self.paced) {
            if is_asked_for("paced") {
                match attempt(paced::measure(durability, time)).await {
                    Ok(measured) => rounds.add(&measured),
                    Err(why) => rounds.failed = Some(why),
                }
            }
        }
    }

    fn show_loads(&mut self) {
        let (table, mlflow) = (&mut self.table, &self.mlflow);
        table.trouble("MLflow", mlflow.failed.as_ref());
        table.rounds("MLflow, points a second", "", &mlflow.rate, Target::None);
        let what = "MLflow, points a second of processor time";
        table.rounds(what, "", &mlflow.of_processor, Target::None);
        for ((what, _, _, times, rate, of_processor), rounds) in LOADS.into_iter().zip(&self.loads) {
            table.trouble(what, rounds.failed.as_ref());
            let mut line = |figure: &str, unit: &str, rates: &Rates, target: Target| {
                table.rounds(&format!("{what}: {figure}"), unit, rates, target);
            };
            line("points a second", "", &rounds.rate, Target::AtLeast(rate));
            let against = rounds.rate.against(&mlflow.rate);
            line("against MLflow", "times", &against, Target::AtLeast(times));
            let target = Target::AtLeast(of_processor);
            line("points a second of processor time", "", &rounds.of_processor, target);
            line("points compacted a second", "", &rounds.compacted, Target::None);
            line("points that wait for compaction", "", &rounds.backlog, Target::None);
            let target = Target::AtMost(2.0);
            line("start after kill -9, of 10 M points", "s", &rounds.start, target);
        }
    }

    fn show_paced(&mut self) {
        let table = &mut self.table;
        for ((durability, p50, p99), rounds) in PACED.into_iter().zip(&self.paced) {
            let what = format!("100,000 points a second, {durability}");
            table.trouble(&what, rounds.failed.as_ref());
            let mut line = |figure: &str, unit: &str, rates: &Rates, target: Target| {
                table.rounds(&format!("{what}: {figure}"), unit, rates, target);
            };
            line("answers p50", "ms", &rounds.answers_p50, p50);
            line("answers p99", "ms", &rounds.answers_p99, Target::AtMost(p99));
            line("visible p95", "ms", &rounds.visible_p95, Target::AtMost(100.0));
            line("points that wait for compaction", "", &rounds.backlog, Target::None);
        }
    }

    async fn read(&mut self, mlflow: Option<std::sync::Arc<Mlflow>>) {
        let points = setting("KINDEX_BENCH_POINTS", 100_000);
        let history = match mlflow {
            Some(mlflow) => attempt(async move { reading::measure_mlflow(&mlflow, points).await }).await,
            None => Err("there is no MLflow".to_owned()),
        };
        let what = format!("MLflow's history of {points} points, p50");
        match &history {
            Ok(times) => self.table.once(&what, "ms", milliseconds(times, 50), Target::None),
            Err(why) => self.table.failed(&what, why),
        }
        match attempt(reading::measure(points)).await {
            Ok(read) => {
                let one = milliseconds(&read.one, 95);
                self.table.once(
                    &format!("{points} points as 1,000, p95"),
                    "ms",
                    one,
                    Target::AtMost(20.0),
                );
                if let Ok(times) = &history {
                    let share = one / milliseconds(times, 50);
                    self.table.once(
                        "the same as a share of MLflow's history",
                        "",
                        share,
                        Target::AtMost(0.1),
                    );
                }
                let what = format!("50 series of {} points as 1,000, p95", read.many_points);
                self.table
                    .once(&what, "ms", milliseconds(&read.many, 95), Target::AtMost(100.0));
            }
            Err(why) => self.table.failed("reading", &why),
        }
    }

    async fn space(&mut self, mlflow_file: Option<f64>) {
        let points = setting("KINDEX_BENCH_POINTS", 100_000);
        match attempt(space::chunks(points)).await {
            Ok(sizes) => {
                for (((name, _), size), target) in space::SHAPES.iter().zip(sizes).zip([12.0, 6.0, 4.0, 3.0]) {
                    let what = format!("sealed, bytes a point, {name}");
                    self.table.once(&what, "", size, Target::AtMost(target));
                }
            }
            Err(why) => self.table.failed("sealed, bytes a point", &why),
        }
        let batches = FILE_BATCHES.min(points / 1_000).max(1);
        match attempt(space::whole_file(batches)).await {
            Ok(size) => {
                let target = mlflow_file.map_or(Target::None, |theirs| Target::AtMost(theirs / 20.0));
                self.table.once("whole file, noise, bytes a point", "", size, target);
            }
            Err(why) => self.table.failed("whole file", &why),
        }
        match mlflow_file {
            Some(size) => self.table.once("MLflow's file, bytes a point", "", size, Target::None),
            None => self.table.failed("MLflow's file", "no points were stored there"),
        }
    }

    async fn memory(&mut self) {
        let runs = setting("KINDEX_BENCH_RUNS", 1_000);
        let what = format!("peak memory, {runs} open runs");
        match attempt(space::memory(runs, OPEN_BATCHES)).await {
            Ok(bytes) => {
                let mebibytes = bytes / f64::from(1 << 20);
                self.table.once(&what, "MiB", mebibytes, Target::AtMost(256.0));
            }
            Err(why) => self.table.failed(&what, &why),
        }
    }

    async fn log(&mut self) {
        let calls = setting("KINDEX_BENCH_CALLS", 20_000);
        let measured = tokio::task::spawn_blocking(move || log_call::measure(calls)).await;
        match measured
            .map_err(|error| error.to_string())
            .and_then(|measured| measured)
        {
            Ok(lines) => {
                for line in lines {
                    let is_mere = line.server == "nothing";
                    let what = format!("log(), server {}, p99; {} points dropped", line.server, line.dropped);
                    let target = if is_mere { Target::None } else { Target::AtMost(20.0) };
                    self.table.once(&what, "us", line.p99_us, target);
                }
            }
            Err(why) => self.table.failed("log()", &why),
        }
    }
}

impl Rounds {
    fn add(&mut self, measured: &throughput::Throughput) {
        self.rate.push(measured.rate);
        self.of_processor.push(measured.rate_of_processor);
        self.compacted.push(measured.compacted);
        self.backlog.push(measured.backlog);
        self.start.push(measured.start);
    }
}

impl PacedRounds {
    fn add(&mut self, measured: &paced::Paced) {
        self.answers_p50.push(milliseconds(&measured.answers, 50));
        self.answers_p99.push(milliseconds(&measured.answers, 99));
        self.visible_p95.push(milliseconds(&measured.visible, 95));
        self.backlog.push(measured.backlog);
    }
}

impl MlflowRounds {
    fn add(&mut self, (rate, of_processor, points): (f64, f64, usize)) {
        self.rate.push(rate);
        self.of_processor.push(of_processor);
        self.points += points;
    }
}
