//! Completion scripts for shells, which know the kinds of this program.

use clap::CommandFactory as _;
use clap::builder::PossibleValuesParser;
use clap_complete::Shell;
use kindex_commands::error::CommandResult;
use kindex_commands::say;
use kindex_model::kind::Registry;

use crate::cli::Cli;

/// Prints the script of a shell.
pub(crate) fn run(registry: &Registry, shell: Shell) -> CommandResult {
    say::print(String::from_utf8_lossy(&script(registry, shell)))
}

fn script(registry: &Registry, shell: Shell) -> Vec<u8> {
    let kinds: Vec<&'static str> = registry.kinds.iter().map(|kind| kind.plural).collect();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut with_kinds(Cli::command(), &kinds), "kindex", &mut script);
    script
}

/// Offers the kinds wherever a command takes one.
fn with_kinds(command: clap::Command, kinds: &[&'static str]) -> clap::Command {
    let command = command.mut_args(|arg| match arg.get_id().as_str() {
        "kind" | "kinds" => arg.value_parser(PossibleValuesParser::new(kinds.iter().copied())),
        _ => arg,
    });
    command.mut_subcommands(|below| with_kinds(below, kinds))
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;

    #[test]
    fn every_shell_knows_the_kinds() {
        let registry = kindex_generated::registry();
        for shell in Shell::value_variants() {
            let script = script(&registry, *shell);
            let script = String::from_utf8(script).expect("text");
            // No script of elvish or powershell completes values.
            let knows = !matches!(shell, Shell::Elvish | Shell::PowerShell);
            assert_eq!(script.contains("pipelineruns"), knows, "{shell}");
        }
    }
}
