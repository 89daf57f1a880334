//! Rules about migrations: what is lost, what depends on the rows, what older programs cannot bear, what blocks. Read
//! from the files, so that edits by hand are seen; the MySQL form has every step.

use super::Found;
use super::code::Code;
use crate::diag::messages;
use crate::dialect::mysql::online::{self, Algorithm, Engine};
use crate::dialect::{Form, StorageType};
use crate::model::{HistoryColumn, SideTable, SqlType};
use crate::plan::{Block, Script, parse_compatible};
use crate::source::{FileId, Place};

/// Everything to be said about the migration in `file`, which has that number.
pub(super) fn check(file: FileId, text: &str, number: u32, found: &mut Vec<Found>) {
    let script = Script::parse(text);
    for (index, block) in script.blocks.iter().enumerate() {
        let place = Place::new(file, block.range.clone());
        let mut say = |code, diagnostic| found.push(Found { code, diagnostic });
        match block.verb {
            "drop-table" => dropped_table(block, &script, place, &mut say),
            "drop-column" => {
                let later = &script.blocks[index..];
                let is_made_anew = later
                    .iter()
                    .any(|other| other.verb == "add-column" && is_same(other, block));
                if is_made_anew {
                    say(Code::K201, messages::column_made_anew(block.table, block.object, place));
                } else {
                    say(Code::K103, messages::column_dropped(block.table, block.object, place));
                }
            }
            "rename-column" => {
                let (from, to) = block.object.split_once(' ').unwrap_or((block.object, ""));
                say(Code::K301, messages::column_renamed(block.table, from, to, place));
                let engines = copying(online::rename);
                say(Code::K401, messages::renaming_copies(block.table, &engines, place));
            }
            "change-column" => {
                let engines = copying(|engine| changed(block, engine));
                if !engines.is_empty() {
                    let diagnostic = messages::changing_copies(block.table, block.object, &engines, place);
                    say(Code::K401, diagnostic);
                }
            }
            "fill" => moved(block, place, &mut say),
            _ => {}
        }
        statement(block, place, &mut say);
    }
    promise(&script, file, text, number, found);
}

fn is_same(one: &Block<'_>, other: &Block<'_>) -> bool {
    one.table == other.table && one.object == other.object
}

/// Side tables and histories that go with their table are part of its finding.
fn dropped_table(
    block: &Block<'_>,
    script: &Script<'_>,
    place: Place,
    say: &mut impl FnMut(Code, crate::diag::Diagnostic),
) {
    let suffixes = SideTable::ALL.map(SideTable::suffix);
    let beside = suffixes.into_iter().chain([HistoryColumn::SUFFIX]);
    let mut mains = beside.filter_map(|suffix| block.table.strip_suffix(suffix)?.strip_suffix('_'));
    let is_dropped = |main: &str| {
        let mut drops = script.blocks.iter().filter(|block| block.verb == "drop-table");
        drops.any(|drop| drop.table == main)
    };
    match mains.next() {
        Some(main) if is_dropped(main) => {}
        Some(_) if block.table.ends_with(HistoryColumn::SUFFIX) => {
            say(Code::K102, messages::history_dropped(block.table, place));
        }
        Some(_) | None => say(Code::K101, messages::table_dropped(block.table, place)),
    }
}

/// The engines on which a step copies the table.
fn copying(algorithm: impl Fn(Engine) -> Algorithm) -> Vec<&'static str> {
    let engines = Engine::ALL.into_iter();
    engines
        .filter(|engine| algorithm(*engine) == Algorithm::Copy)
        .map(Engine::name)
        .collect()
}

/// By the types in the note `-- INT → BIGINT`; without it, the worst is taken for granted.
fn changed(block: &Block<'_>, engine: Engine) -> Algorithm {
    let types = block.comments.iter().find_map(|(_, comment)| {
        let (from, to) = comment.strip_prefix("-- ")?.split_once(" → ")?;
        Some((SqlType::parse(from)?, SqlType::parse(to)?))
    });
    types.map_or(Algorithm::Copy, |(from, to)| {
        let from = Form::Ours(StorageType::Sql(from));
        online::change(&from, StorageType::Sql(to), engine)
    })
}

fn moved(block: &Block<'_>, place: Place, say: &mut impl FnMut(Code, crate::diag::Diagnostic)) {
    let notes = block.comments.iter();
    let paths = notes.flat_map(|(_, comment)| comment.trim_start_matches("-- ").split("; "));
    let columns = block.object.split(',');
    for (column, path) in columns.zip(paths) {
        if let Some((path, before)) = path.split_once(", before ") {
            say(
                Code::K302,
                messages::path_changed(block.table, column, before, path, place),
            );
        }
    }
}

/// What a planned statement never has.
fn statement(block: &Block<'_>, place: Place, say: &mut impl FnMut(Code, crate::diag::Diagnostic)) {
    let words: Vec<String> = block
        .statement
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '='))
        .map(str::to_ascii_uppercase)
        .filter(|word| !word.is_empty())
        .collect();
    let has = |word: &str| words.iter().any(|known| known == word);
    let has_pair = |first: &str, second: &str| words.windows(2).any(|pair| pair[0] == first && pair[1] == second);
    let refuses_rows = match block.verb {
        "add-key" => has("UNIQUE").then_some("UNIQUE"),
        "add-column" | "change-column" => has_pair("NOT", "NULL").then_some("NOT NULL"),
        _ => None,
    };
    if let Some(word) = refuses_rows {
        say(Code::K202, messages::depends_on_rows(block.verb, word, place));
    }
    let locks = ["ALGORITHM=COPY", "LOCK=EXCLUSIVE", "LOCK=SHARED"];
    let asked = locks.into_iter().find(|lock| has(lock));
    let is_open = matches!(
        block.verb,
        "add-column" | "drop-column" | "add-key" | "drop-key" | "rename-key"
    ) && !words.iter().any(|word| word.starts_with("ALGORITHM="));
    if asked.is_some() || is_open {
        say(Code::K402, messages::may_lock(block.verb, asked, place));
    }
}

/// A number of programs that may go on writing must not be lower than the steps allow.
fn promise(script: &Script<'_>, file: FileId, text: &str, number: u32, found: &mut Vec<Found>) {
    let Some(compatible) = parse_compatible(text).filter(|compatible| *compatible < number) else {
        return;
    };
    let breaks = |block: &&Block<'_>| {
        let moved = block.comments.iter().any(|(_, comment)| comment.contains(", before "));
        matches!(block.verb, "drop-table" | "drop-column" | "rename-column") || (block.verb == "fill" && moved)
    };
    if let Some(block) = script.blocks.iter().find(breaks) {
        let line = script.comments.iter().find(|(_, line)| line.contains("compatible:"));
        let range = line.map_or(block.range.clone(), |(range, _)| range.clone());
        let other = Place::new(file, block.range.clone());
        found.push(Found {
            code: Code::K303,
            diagnostic: messages::promise_broken(compatible, number, Place::new(file, range), other),
        });
    }
}
