//! Tables for people, in kubectl's manner: upper-case heads, three blanks
//! between columns, no frames; and documents for programs.

use std::borrow::Cow;

use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;

use crate::error::{CommandError, CommandResult, chain};
use crate::form::Form;

/// One document. A table is laid out by who knows its columns; as a document it is JSON.
pub fn document(value: &impl Serialize, form: Form) -> CommandResult<String> {
    let failed = |error: &dyn std::error::Error| CommandError::failure(chain(error));
    match form {
        Form::Json | Form::Table => Ok(serde_json::to_string_pretty(value).map_err(|error| failed(&error))? + "\n"),
        Form::Yaml => serde_saphyr::to_string(value).map_err(|error| failed(&error)),
    }
}

/// Lays out rows under heads.
pub fn table(heads: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table
        .load_preset(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(heads.iter().map(|head| head.to_uppercase()));
    for row in rows {
        table.add_row(row.iter().map(|cell| visible(cell)));
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 3));
    }
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// Lines that follow a table, after an empty one.
pub(crate) fn below_table(lines: &[String]) -> String {
    match lines.is_empty() {
        true => String::new(),
        false => format!("\n{}\n", lines.join("\n")),
    }
}

/// A text in one line, without anything that a terminal would obey: what users wrote into objects is shown to others.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let escaped = text.chars().map(|letter| match letter {
        control if control.is_control() => control.escape_debug().to_string(),
        letter => letter.to_string(),
    });
    Cow::Owned(escaped.collect())
}

/// A time span as kubectl shows ages: `12s`, `5m`, `3h`, `2d`.
pub fn age(since: Option<jiff::Timestamp>, now: jiff::Timestamp) -> String {
    let Some(since) = since else { return "<none>".to_owned() };
    let seconds = (now.as_second() - since.as_second()).max(0);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7200 => format!("{}m", seconds / 60),
        7200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_lines_end_without_blanks() {
        let text = table(
            &["kind", "rows"],
            [
                vec!["Model".into(), "1".into()],
                vec!["PipelineRun".into(), "12".into()],
            ],
        );
        assert_eq!(text, "KIND          ROWS\nModel         1\nPipelineRun   12\n");
    }

    #[test]
    fn what_a_terminal_would_obey_is_shown_as_text() {
        let text = table(&["name"], [vec!["\u{1b}[2Jred\nline\ttab \u{9b}1m größe".into()]]);
        assert_eq!(text, "NAME\n\\u{1b}[2Jred\\nline\\ttab \\u{9b}1m größe\n");
    }

    #[test]
    fn ages_use_the_largest_unit_that_still_says_something() {
        let now = jiff::Timestamp::from_second(1_000_000).expect("valid");
        let ago = |seconds: i64| {
            age(
                Some(jiff::Timestamp::from_second(1_000_000 - seconds).expect("valid")),
                now,
            )
        };
        assert_eq!(
            [ago(5), ago(119), ago(120), ago(7200), ago(172_800)],
            ["5s", "119s", "2m", "2h", "2d"]
        );
        assert_eq!(age(None, now), "<none>");
    }
}
