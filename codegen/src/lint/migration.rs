//! Rules about migrations: what is lost, what depends on the rows, what older programs cannot use, what blocks. Read
//! from the files, so that edits by hand are seen. What a migration does is read in the reference dialect, which has
//! every step, and what people made of its statements in the file of each dialect.

use std::collections::BTreeSet;

use super::code::Code;
use super::{Found, MigrationFile};
use crate::diag::messages;
use crate::dialect::{Dialect, Lock, Verb};
use crate::model::{HistoryColumn, SideTable, SqlType};
use crate::plan::{Block, Script, parse_compatible};
use crate::source::{FileId, Span};

/// Everything to be said about what a migration does. These are the dialects that it has a file of.
pub(super) fn check(migration: &MigrationFile<'_>, dialects: &[&dyn Dialect], found: &mut Vec<Found>) {
    let MigrationFile { file, text, number, .. } = *migration;
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
                let engines: Vec<&str> = dialects.iter().flat_map(|dialect| dialect.renaming_copies()).collect();
                if !engines.is_empty() {
                    say(Code::K401, messages::renaming_copies(block.table, &engines, span));
                }
            }
            Verb::ChangeColumn => {
                let types = types(block);
                let engines = dialects.iter().flat_map(|dialect| dialect.changing_copies(types));
                let engines: Vec<&str> = engines.collect();
                if !engines.is_empty() {
                    let diagnostic = messages::changing_copies(block.table, block.object, &engines, span);
                    say(Code::K401, diagnostic);
                }
            }
            Verb::Fill => moved(block, span, &mut say),
            Verb::CreateTable | Verb::DropKey | Verb::AddColumn | Verb::RenameKey | Verb::AddKey => {}
        }
    }
    promise(&script, file, text, number, found);
}

/// What no planned statement has, in the words of the file's own dialect. A table that the migration creates has no
/// rows that could refuse a key.
pub(super) fn check_edits(migration: &MigrationFile<'_>, found: &mut Vec<Found>) {
    let MigrationFile {
        file, text, dialect, ..
    } = *migration;
    let mut created = BTreeSet::new();
    for block in Script::parse(text).blocks {
        let Some(verb) = block.verb else { continue };
        if verb == Verb::CreateTable {
            created.insert(block.table);
        }
        let span = Span::new(file, block.range.clone());
        let refused = dialect.refused_by_rows(verb, &block.statement);
        if let Some(words) = refused.filter(|_| !created.contains(block.table)) {
            found.push(Found {
                code: Code::K202,
                diagnostic: messages::depends_on_rows(verb.as_str(), words, span),
            });
        }
        if let Some(lock) = dialect.locks(verb, &block.statement) {
            let asked = match lock {
                Lock::Asked(clause) => Some(clause),
                Lock::NotRuledOut => None,
            };
            found.push(Found {
                code: Code::K402,
                diagnostic: messages::may_lock(verb.as_str(), asked, span),
            });
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::{MySql, Sqlite};
    use crate::source::Sources;

    const RENAME: &str = "-- step: rename-column t a b\nALTER TABLE `t` RENAME COLUMN `a` TO `b`;\n";
    const CHANGE: &str = "-- step: change-column t a\n-- INT → BIGINT\nALTER TABLE `t` MODIFY COLUMN `a` BIGINT;\n";

    /// What is said of a migration with this text: codes and titles.
    fn said(
        text: &str,
        dialect: &'static dyn Dialect,
        see: impl Fn(&MigrationFile<'_>, &mut Vec<Found>),
    ) -> Vec<String> {
        let mut sources = Sources::of_crds("");
        let file = sources.add("a migration", text);
        let migration = MigrationFile {
            file,
            text,
            number: 2,
            dialect,
        };
        let mut found = Vec::new();
        see(&migration, &mut found);
        let found = found.iter();
        found
            .map(|found| format!("{} {}", found.code, found.diagnostic.title()))
            .collect()
    }

    /// As if the reference dialect knew what is copied on all products.
    #[test]
    fn each_dialect_says_what_its_products_copy() {
        let copied = |text: &str, dialects: &[&dyn Dialect]| {
            let said = said(text, &MySql, |migration, found| check(migration, dialects, found));
            let copied = said.into_iter().find(|said| said.starts_with("K401"));
            copied.unwrap_or_default()
        };
        for text in [RENAME, CHANGE] {
            assert_eq!(copied(text, &[&Sqlite]), "", "{text}");
            let one = copied(text, &[&Sqlite, &MySql]);
            assert!(one.contains("on MySQL"), "{one}");
            // The same dialect once more stands for one that there is not yet.
            let two = copied(text, &[&MySql, &MySql]);
            assert_eq!(two.matches("MySQL").count(), 2, "{two}");
        }
    }

    /// As if every file were one of the reference dialect.
    #[test]
    fn an_edit_is_judged_by_the_dialect_of_its_file() {
        let unique = "-- step: add-key t a\nCREATE UNIQUE INDEX `a` ON `t` (`a`);\n";
        let of = |text: &str, dialect: &'static dyn Dialect| said(text, dialect, check_edits);
        let found = of(unique, &Sqlite);
        assert_eq!(found, ["K202 with UNIQUE, this add-key fails if a row violates it"]);
        assert_eq!(of(unique, &MySql).len(), 2, "a lock is not ruled out");
        let created = format!("-- step: create-table t\nCREATE TABLE `t` (`a` TEXT);\n{unique}");
        assert!(of(&created, &Sqlite).is_empty(), "a table without rows");
    }
}
