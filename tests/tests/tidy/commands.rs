//! The commands that the pages show are commands of the program: their names and their flags. Runs none of them.

use clap::{Command, CommandFactory as _};
use kindex::cli::Cli;

use super::expect_none;
use super::files::{File, all};

/// By which a command of ours begins.
const BEGINNINGS: [&str; 4] = ["$ kindex ", "`kindex ", "-- kindex ", "cargo run -- "];

/// What follows the name of the program, with the number of the line; a line that ends with `\` goes on.
fn commands(page: &File) -> Vec<(usize, String)> {
    let lines: Vec<&str> = page.text.lines().collect();
    let mut found = Vec::new();
    for (number, first) in lines.iter().enumerate() {
        let mut line = (*first).to_owned();
        let mut next = number + 1;
        while line.ends_with('\\') && next < lines.len() {
            line.truncate(line.len() - 1);
            line.push_str(lines[next].trim_start());
            next += 1;
        }
        for begin in BEGINNINGS {
            let parts = line.split(begin).skip(1);
            let ends = ['`', '|', ';', '#', '>', '<'];
            found.extend(parts.map(|rest| (number, rest.split(ends).next().unwrap_or_default().to_owned())));
        }
    }
    found
}

/// Why the program would not take these words; what stands for a value is anything.
fn refused(program: &Command, words: &str) -> Option<String> {
    let mut command = program;
    let mut words = words.split_whitespace().take_while(|word| *word != "--").peekable();
    while let Some(inner) = words.peek().and_then(|word| command.find_subcommand(word)) {
        command = inner;
        words.next();
    }
    let name = command.get_name();
    if std::ptr::eq(command, program) {
        let word = words.next().filter(|word| word.starts_with(char::is_lowercase))?;
        return Some(format!("there is no command `{word}`"));
    }
    let mut flags = words.filter(|word| word.starts_with('-') && !word.trim_matches('-').is_empty());
    let known = |flag: &str| {
        let flag = flag.split('=').next().unwrap_or(flag);
        let own = command.get_arguments().chain(program.get_arguments());
        let mut spelled = own.flat_map(|it| {
            let long = it.get_long().map(|long| format!("--{long}"));
            long.into_iter().chain(it.get_short().map(|short| format!("-{short}")))
        });
        spelled.any(|spelled| spelled == flag)
            || ["--help", "-h"].contains(&flag)
            || flag.trim_start_matches('-').parse::<f64>().is_ok()
    };
    let unknown = flags.find(|flag| !known(flag.trim_end_matches([',', '.', ')', ':'])))?;
    Some(format!("`kindex {name}` has no flag `{unknown}`"))
}

#[test]
fn every_command_of_the_pages_is_one_of_the_program() {
    let mut findings = Vec::new();
    let program = Cli::command();
    let pages = all(&[".md"]);
    // What changed may be about what is gone.
    for page in pages.iter().filter(|page| page.path != "CHANGELOG.md") {
        for (number, words) in commands(page) {
            findings.extend(refused(&program, &words).map(|why| page.finding(number, &why)));
        }
    }
    expect_none(findings);
}

#[test]
fn a_command_or_a_flag_that_is_gone_is_found() {
    let program = Cli::command();
    for known in [
        "purge --dry-run",
        "quarantine list --help",
        "get models -n a",
        "up --samples, as above",
        "<FLAG>",
    ] {
        assert_eq!(refused(&program, known), None, "{known}");
    }
    for (gone, why) in [
        ("prune --dry-run", "there is no command `prune`"),
        ("purge --dry", "`kindex purge` has no flag `--dry`"),
        ("quarantine list --drop=1", "`kindex list` has no flag `--drop=1`"),
    ] {
        assert_eq!(refused(&program, gone), Some(why.to_owned()), "{gone}");
    }
}
