//! Colors of what people read: where a stream is a terminal, unless the environment says otherwise (`NO_COLOR`,
//! `CLICOLOR`, `TERM=dumb`), as clap decides for help and usage errors.

use std::io;

use anstream::{AutoStream, ColorChoice};
use kindex_codegen::diag::Style;

const RED: &str = "\u{1b}[1;31m";
const GREEN: &str = "\u{1b}[32m";
const YELLOW: &str = "\u{1b}[1;33m";
const CYAN: &str = "\u{1b}[1;36m";
const PLAIN: &str = "\u{1b}[0m";

/// How stdout is written.
pub(crate) fn of_stdout() -> Style {
    style(AutoStream::choice(&io::stdout()))
}

/// How stderr is written.
pub fn of_stderr() -> Style {
    style(AutoStream::choice(&io::stderr()))
}

fn style(choice: ColorChoice) -> Style {
    match choice {
        ColorChoice::Never => Style::Plain,
        ColorChoice::Auto | ColorChoice::AlwaysAnsi | ColorChoice::Always => Style::Colored,
    }
}

/// Colors the words with which errors, notes and their hints begin.
pub(crate) fn painted(text: &str, style: Style) -> String {
    match style {
        Style::Plain => text.to_owned(),
        Style::Colored => text.split_inclusive('\n').map(painted_line).collect(),
    }
}

fn painted_line(line: &str) -> String {
    const WORDS: [(&str, &str); 4] = [("error:", RED), ("warning:", YELLOW), ("note:", CYAN), ("hint:", GREEN)];
    let trimmed = line.trim_start();
    let indent = &line[..line.len() - trimmed.len()];
    for (word, color) in WORDS {
        if let Some(rest) = trimmed.strip_prefix(word) {
            return format!("{indent}{color}{word}{PLAIN}{rest}");
        }
    }
    line.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_words_at_the_beginning_of_a_line_are_colored() {
        let text = "error: no error: here\n  hint: try it\nrows\n";
        assert_eq!(painted(text, Style::Plain), text);
        assert_eq!(
            painted(text, Style::Colored),
            "\u{1b}[1;31merror:\u{1b}[0m no error: here\n  \u{1b}[32mhint:\u{1b}[0m try it\nrows\n"
        );
    }
}
