//! Rules about migrations: what is lost, what depends on the rows, what older programs cannot use, what blocks. Read
//! from the files, so that edits by hand are seen; the reference dialect has every step.

use super::Found;
use super::code::Code;
use crate::diag::messages;
use crate::dialect::{Lock, REFERENCE, Verb};
use crate::model::{HistoryColumn, SideTable, SqlType};
use crate::plan::{Block, Script, parse_compatible};
use crate::source::{FileId, Span};

/// Everything to be said about the migration in `file`, which has that number.
pub(super) fn check(file: FileId, text: &str, number: u32, found: &mut Vec<Found>) {
    let script = Script::parse(text);
    for (index, block) in script.blocks.iter().enumerate() {
        let span = Span::new(file, block.range.clone());
        let mut say = |code, diagnostic| found.push(Found { code, diagnostic });
        let Some(verb) = block.verb else { continue };
        match verb {
            Verb::DropTable => dropped_table(block, &script, span, &mut say),
            Verb::DropColumn => {
                let later = &script.blocks[index..];
                let is_made_anew = later
                    .iter()
                    .any(|other| other.verb == Some(Verb::AddColumn) && is_same(other, block));
                if is_made_anew {
                    say(Code::K201, messages::column_recreated(block.table, block.object, span));
                } else {
                    say(Code::K103, messages::column_dropped(block.table, block.object, span));
                }
            }
            Verb::RenameColumn => {
                let (from, to) = block.object.split_once(' ').unwrap_or((block.object, ""));
                say(Code::K301, messages::column_renamed(block.table, from, to, span));
                let engines = REFERENCE.renaming_copies();
                say(Code::K401, messages::renaming_copies(block.table, &engines, span));
            }
            Verb::ChangeColumn => {
                let engines = REFERENCE.changing_copies(types(block));
                if !engines.is_empty() {
                    let diagnostic = messages::changing_copies(block.table, block.object, &engines, span);
                    say(Code::K401, diagnostic);
                }
            }
            Verb::Fill => moved(block, span, &mut say),
            Verb::CreateTable | Verb::DropKey | Verb::AddColumn | Verb::RenameKey | Verb::AddKey => {}
        }
        statement(verb, &block.statement, span, &mut say);
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
    span: Span,
    say: &mut impl FnMut(Code, crate::diag::Diagnostic),
) {
    let suffixes = SideTable::ALL.map(SideTable::suffix);
    let beside = suffixes.into_iter().chain([HistoryColumn::SUFFIX]);
    let mut mains = beside.filter_map(|suffix| block.table.strip_suffix(suffix)?.strip_suffix('_'));
    let is_dropped = |main: &str| {
        let mut drops = script.blocks.iter().filter(|block| block.verb == Some(Verb::DropTable));
        drops.any(|drop| drop.table == main)
    };
    match mains.next() {
        Some(main) if is_dropped(main) => {}
        Some(_) if block.table.ends_with(HistoryColumn::SUFFIX) => {
            say(Code::K102, messages::history_dropped(block.table, span));
        }
        Some(_) | None => say(Code::K101, messages::table_dropped(block.table, span)),
    }
}

/// From and to, as the note `-- INT → BIGINT` says.
fn types(block: &Block<'_>) -> Option<(SqlType, SqlType)> {
    block.comments.iter().find_map(|(_, comment)| {
        let (from, to) = comment.strip_prefix("-- ")?.split_once(" → ")?;
        Some((SqlType::parse(from)?, SqlType::parse(to)?))
    })
}

fn moved(block: &Block<'_>, span: Span, say: &mut impl FnMut(Code, crate::diag::Diagnostic)) {
    let notes = block.comments.iter();
    let paths = notes.flat_map(|(_, comment)| comment.trim_start_matches("-- ").split("; "));
    let columns = block.object.split(',');
    for (column, path) in columns.zip(paths) {
        if let Some((path, before)) = path.split_once(", before ") {
            say(
                Code::K302,
                messages::path_changed(block.table, column, before, path, span),
            );
        }
    }
}

/// What a planned statement never has.
fn statement(verb: Verb, statement: &str, span: Span, say: &mut impl FnMut(Code, crate::diag::Diagnostic)) {
    if let Some(words) = REFERENCE.refused_by_rows(verb, statement) {
        say(Code::K202, messages::depends_on_rows(verb.as_str(), words, span));
    }
    if let Some(lock) = REFERENCE.locks(verb, statement) {
        let asked = match lock {
            Lock::Asked(clause) => Some(clause),
            Lock::NotRuledOut => None,
        };
        say(Code::K402, messages::may_lock(verb.as_str(), asked, span));
    }
}

/// A number of programs that may go on writing must not be lower than the steps allow.
fn promise(script: &Script<'_>, file: FileId, text: &str, number: u32, found: &mut Vec<Found>) {
    let Some(compatible) = parse_compatible(text).filter(|compatible| *compatible < number) else {
        return;
    };
    let breaks = |block: &&Block<'_>| {
        let moved = block.comments.iter().any(|(_, comment)| comment.contains(", before "));
        match block.verb {
            Some(Verb::DropTable | Verb::DropColumn | Verb::RenameColumn) => true,
            Some(Verb::Fill) => moved,
            Some(
                Verb::CreateTable
                | Verb::DropKey
                | Verb::ChangeColumn
                | Verb::AddColumn
                | Verb::RenameKey
                | Verb::AddKey,
            )
            | None => false,
        }
    };
    if let Some(block) = script.blocks.iter().find(breaks) {
        let line = script.comments.iter().find(|(_, line)| line.contains("compatible:"));
        let range = line.map_or(block.range.clone(), |(range, _)| range.clone());
        let other = Span::new(file, block.range.clone());
        found.push(Found {
            code: Code::K303,
            diagnostic: messages::promise_broken(compatible, number, Span::new(file, range), other),
        });
    }
}
