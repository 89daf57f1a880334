//! `kindex generate`: what `generated/build.rs` does, without a cargo build.

use kindex_codegen::Generated;
use kindex_codegen::artifact::{self, Change, Difference, Mode};

use crate::cli::GenerateArgs;
use crate::error::{CommandError, CommandResult, chain};
use crate::{color, say};

/// Writes what changed, or shows what would.
pub fn run(args: &GenerateArgs) -> CommandResult {
    if !args.root.join("crds.toml").is_file() {
        return Err(
            CommandError::usage(format_args!("no crds.toml in {}", args.root.display()))
                .hint("run this where crds.toml is, or name the directory with --root DIR"),
        );
    }
    let Generated {
        artifacts, warnings, ..
    } = kindex_codegen::generate(&args.root).map_err(|errors| {
        say::note(errors.text(color::of_stderr()));
        CommandError::failure("nothing was emitted")
    })?;
    for warning in warnings {
        say::note(format_args!("warning: {warning}"));
    }
    let mode = if args.check { Mode::Check } else { Mode::Write };
    let differences =
        artifact::sync(&args.root, &artifacts, mode).map_err(|error| CommandError::failure(chain(&error)))?;
    if args.check && !differences.is_empty() {
        say::print(artifact::explain(&differences, "kindex generate"))?;
        return Err(CommandError::failure("emitted files are not those of crds.toml"));
    }
    report(&differences, artifacts.len())
}

fn report(differences: &[Difference], emitted: usize) -> CommandResult {
    for difference in differences {
        let done = match difference.change {
            Change::Missing => "new",
            Change::Stale => "changed",
            Change::Orphaned => "removed",
        };
        say::line(format_args!("{done:8} {}", difference.path))?;
    }
    say::line(format_args!("{emitted} files emitted, {} written", differences.len()))
}
