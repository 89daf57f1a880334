//! The rules by which the store of runs decides, as the command line says them.

use clap::Args;
use kindex_runs::ledger::{ReorderRules, RetentionRules};
use kindex_runs::lifecycle::SilenceRules;
use kindex_runs::store::Settings;

const RULES: &str = "Rules of the store";
const SECOND_NS: i64 = 1_000_000_000;
const HOUR_NS: i64 = 3600 * SECOND_NS;
const MIB: usize = 1024 * 1024;

/// When a run has crashed, how long batches are remembered and held, and what is kept in memory.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct RuleArgs {
    /// Seconds without a call after which a run is marked as crashed.
    #[arg(long, help_heading = RULES, env = "KINDEX_RUNS_CRASH_AFTER_SECONDS", value_name = "SECONDS")]
    #[arg(default_value = "300", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    crash_after: u32,

    /// Hours for which the id of a batch is remembered; those of runs that can be resumed, for seven days.
    #[arg(long, help_heading = RULES, env = "KINDEX_RUNS_BATCH_ID_HOURS", value_name = "HOURS")]
    #[arg(default_value = "24", value_parser = clap::value_parser!(u32).range(1..=8760))]
    batch_id_hours: u32,

    /// Seconds that a batch waits for those before it in its sequence.
    #[arg(long, help_heading = RULES, env = "KINDEX_RUNS_REORDER_WAIT_SECONDS", value_name = "SECONDS")]
    #[arg(default_value = "30", value_parser = clap::value_parser!(u32).range(1..=3600))]
    reorder_wait: u32,

    /// Batches of a run that wait at once; one more releases all.
    #[arg(long, help_heading = RULES, env = "KINDEX_RUNS_REORDER_BATCHES", value_name = "N")]
    #[arg(default_value = "100", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    reorder_batches: u32,

    /// Missing batches before one that waits; where more are missing, it does not wait.
    #[arg(long, help_heading = RULES, env = "KINDEX_RUNS_REORDER_GAP", value_name = "N")]
    #[arg(default_value = "1000", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    reorder_gap: u32,

    /// Memory for the newest batches, which are read from there.
    #[arg(long, help_heading = RULES, env = "KINDEX_RUNS_TAIL_MIB", value_name = "MIB")]
    #[arg(default_value = "64", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    tail_mib: u32,
}

impl RuleArgs {
    /// The settings of the store by these rules.
    pub(super) fn settings(self) -> Settings {
        Settings {
            reorder: ReorderRules {
                batches_max: size(self.reorder_batches),
                wait: i64::from(self.reorder_wait) * SECOND_NS,
                gap_max: i64::from(self.reorder_gap),
            },
            silence: SilenceRules {
                crash_after: i64::from(self.crash_after) * SECOND_NS,
                ..SilenceRules::default()
            },
            retention: RetentionRules {
                kept: i64::from(self.batch_id_hours) * HOUR_NS,
                ..RetentionRules::default()
            },
            tail_bytes_max: size(self.tail_mib).saturating_mul(MIB),
            ..Settings::default()
        }
    }
}

fn size(of: u32) -> usize {
    usize::try_from(of).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        rules: RuleArgs,
    }

    fn settings(flags: &[&str]) -> Result<Settings, clap::Error> {
        let flags = Flags::try_parse_from([&["serve"], flags].concat())?;
        Ok(flags.rules.settings())
    }

    #[test]
    fn rules_are_those_of_the_store_unless_flags_say_otherwise() {
        let (usual, store) = (settings(&[]).expect("flags"), Settings::default());
        assert_eq!(
            (usual.reorder, usual.silence, usual.retention, usual.tail_bytes_max),
            (store.reorder, store.silence, store.retention, store.tail_bytes_max)
        );
        let flags =
            "--crash-after 10 --batch-id-hours 2 --reorder-wait 1 --reorder-batches 3 --reorder-gap 4 --tail-mib 5";
        let flags: Vec<&str> = flags.split(' ').collect();
        let set = settings(&flags).expect("flags");
        assert_eq!(
            (set.silence.crash_after, set.retention.kept),
            (10 * SECOND_NS, 2 * HOUR_NS)
        );
        let reorder = ReorderRules {
            batches_max: 3,
            wait: SECOND_NS,
            gap_max: 4,
        };
        assert_eq!((set.reorder, set.tail_bytes_max), (reorder, 5 * MIB));
    }

    #[test]
    fn rules_beyond_their_bounds_are_refused() {
        for (flag, bounds) in [
            ("--crash-after", [0, 86_401]),
            ("--batch-id-hours", [0, 8761]),
            ("--reorder-wait", [0, 3601]),
            ("--reorder-batches", [0, 10_001]),
            ("--reorder-gap", [0, 1_000_001]),
            ("--tail-mib", [0, 65_537]),
        ] {
            for beyond in bounds {
                let error = settings(&[flag, &beyond.to_string()]).expect_err("refused").to_string();
                assert!(error.contains(flag), "{error}");
            }
        }
    }
}
