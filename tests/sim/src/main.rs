//! The command line of the simulation: parses arguments and prints results.

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use std::{fmt, io};

use clap::{Args, Parser, Subcommand, ValueEnum};
use kindex_sim::harness::Parts;
use kindex_sim::hunt::{chosen, directories, hunt};
use kindex_sim::run::{COVERED_FROM, Failed, play_with_log, run};

/// Plays simulated histories of the ingester and checks its rules after every step.
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples:
  kindex-sim --seeds 20000          play the seeds 0 to 19999
  kindex-sim --seed 17              print the log of one seed
  kindex-sim --seed 17 --parts all  the same with the production client and store
  kindex-sim mutate                 plant bugs, and count the seeds until each is found")]
struct Arguments {
    #[command(flatten)]
    play: Play,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Args)]
struct Play {
    /// How many seeds to play.
    #[arg(long, default_value_t = 2_000, conflicts_with = "seed")]
    seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 0, conflicts_with = "seed")]
    from: u64,
    /// Play only this seed, and print its log.
    #[arg(long)]
    seed: Option<u64>,
    /// Which parts are production code [default: all of them in one seed of ten].
    #[arg(long)]
    parts: Option<PartsArgument>,
    /// Print only the seed that broke a rule, and the rule.
    #[arg(long)]
    quiet: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Plant bugs one by one in a copy of the code, and report after how many seeds each is found.
    Mutate {
        /// The names of the bugs [default: all of tests/sim/mutations.toml].
        names: Vec<String>,
        /// After how many seeds a bug counts as not found.
        #[arg(long, default_value_t = 20_000)]
        seeds: u64,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum PartsArgument {
    /// The controller, its decisions, and the code that carries out its outputs.
    Controller,
    /// Also the Kubernetes client and the SQL store on SQLite.
    All,
}

impl From<PartsArgument> for Parts {
    fn from(which: PartsArgument) -> Self {
        match which {
            PartsArgument::Controller => Self::Controller,
            PartsArgument::All => Self::All,
        }
    }
}

impl fmt::Display for PartsArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Controller => "controller",
            Self::All => "all",
        })
    }
}

fn main() -> ExitCode {
    let Arguments { play, command } = Arguments::parse();
    let held = match (command, play.seed) {
        (Some(Command::Mutate { names, seeds }), _) => mutate(&names, seeds).unwrap_or_else(|error| {
            eprintln!("{error}");
            false
        }),
        (None, Some(seed)) => play_one(seed, play.parts),
        (None, None) => play_many(&play),
    };
    if held { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Whether all rules held.
fn play_one(seed: u64, parts: Option<PartsArgument>) -> bool {
    let (history, log) = play_with_log(seed, parts.map(Parts::from));
    println!("{log}");
    if history.wrong.is_some() {
        let parts = parts.map_or(String::new(), |parts| format!(" --parts {parts}"));
        println!("\nreplay: cargo run -p kindex-sim -- --seed {seed}{parts}");
    }
    history.wrong.is_none()
}

/// Whether all rules held, and every fault met every step that it can meet.
fn play_many(play: &Play) -> bool {
    if play.quiet {
        std::panic::set_hook(Box::new(|_| {}));
    }
    let shown = AtomicU64::new(0);
    let step = (play.seeds / 20).max(1);
    let progress = |done: u64| {
        if !play.quiet && done / step > shown.load(Ordering::Relaxed) {
            shown.store(done / step, Ordering::Relaxed);
            eprintln!("{done} of {} seeds", play.seeds);
        }
    };
    let parts = play.parts.map(Parts::from);
    let report = run(play.from, play.seeds, parts, &progress);
    match report.failed {
        Some(Failed { seed, rule }) if play.quiet => {
            println!("{seed} {rule}");
            return false;
        }
        Some(Failed { seed, rule }) => {
            eprintln!("seed {seed}: {rule}");
            return play_one(seed, play.parts);
        }
        None if play.quiet => return true,
        None => println!("{report}"),
    }
    let gaps = report.coverage.gaps();
    let covered = parts.is_some() || play.seeds < COVERED_FROM || gaps.is_empty();
    if !covered {
        println!("{}", gaps.join("\n"));
    }
    covered
}

/// Whether every bug was found.
fn mutate(names: &[String], seeds: u64) -> io::Result<bool> {
    let directories = directories()?;
    let mutations = chosen(&directories, names)?;
    let mut table = Vec::new();
    for (index, mutation) in mutations.iter().enumerate() {
        let began = Instant::now();
        eprintln!(
            "{} of {}: {}: {}",
            index + 1,
            mutations.len(),
            mutation.name,
            mutation.bug
        );
        let hunted = hunt(&directories, mutation, seeds)?;
        eprintln!("{hunted} ({} s)", began.elapsed().as_secs());
        table.push(hunted);
    }
    println!("{:<40} {:>7}  rule that it breaks", "bug", "seeds");
    table.iter().for_each(|hunted| println!("{hunted}"));
    Ok(table.iter().all(|hunted| hunted.found.is_some()))
}
