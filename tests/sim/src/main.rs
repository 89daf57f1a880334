//! The command line of the simulation. Knows how to ask and how to print.

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::{Parser, ValueEnum};
use kindex_sim::ground::Parts;
use kindex_sim::run::{COVERED_FROM, run, tell};

/// Plays simulated histories of the ingester and checks its rules after every step.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  kindex-sim --seeds 20000          play the seeds 0 to 19999
  kindex-sim --seed 17              tell the story of one seed
  kindex-sim --seed 17 --parts all  the same with the production's client and store")]
struct Arguments {
    /// How many seeds to play.
    #[arg(long, default_value_t = 2_000, conflicts_with = "seed")]
    seeds: u64,
    /// The first of them.
    #[arg(long, default_value_t = 0, conflicts_with = "seed")]
    from: u64,
    /// Tells the story of this seed alone.
    #[arg(long)]
    seed: Option<u64>,
    /// Which parts are production's; one seed in ten has all of them where this is not said.
    #[arg(long)]
    parts: Option<Which>,
    /// Prints nothing but the seed that broke a rule.
    #[arg(long)]
    quiet: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Which {
    /// The controller, its decisions, and what carries out its outputs.
    Controller,
    /// The Kubernetes client and the SQL store on SQLite as well.
    All,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let parts = arguments.parts.map(|which| match which {
        Which::Controller => Parts::Controller,
        Which::All => Parts::All,
    });
    if arguments.quiet {
        std::panic::set_hook(Box::new(|_| {}));
    }
    match arguments.seed {
        Some(seed) => tell_one(seed, parts),
        None => play_many(&arguments, parts),
    }
}

fn tell_one(seed: u64, parts: Option<Parts>) -> ExitCode {
    let (history, story) = tell(seed, parts);
    println!("{story}");
    if history.wrong.is_some() {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

fn play_many(arguments: &Arguments, parts: Option<Parts>) -> ExitCode {
    let shown = AtomicU64::new(0);
    let step = (arguments.seeds / 20).max(1);
    let progress = |done: u64| {
        if !arguments.quiet && done / step > shown.load(Ordering::Relaxed) {
            shown.store(done / step, Ordering::Relaxed);
            eprintln!("{done} of {} seeds", arguments.seeds);
        }
    };
    let report = run(arguments.from, arguments.seeds, parts, &progress);
    if let Some(seed) = report.failed {
        if arguments.quiet {
            println!("{seed}");
            return ExitCode::FAILURE;
        }
        return tell_one(seed, parts);
    }
    if arguments.quiet {
        return ExitCode::SUCCESS;
    }
    println!("{report}");
    let gaps = report.coverage.gaps();
    if parts.is_none() && arguments.seeds >= COVERED_FROM && !gaps.is_empty() {
        println!("{}", gaps.join("\n"));
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
