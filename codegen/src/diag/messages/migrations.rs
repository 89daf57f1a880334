//! Errors about migrations: files that were edited, missing or out of order, and old names of columns.

use super::suggestion;
use crate::diag::Diagnostic;
use crate::source::{Span, Text};

const REHASH: &str = "after an intended edit of a migration that ran nowhere yet, run `kindex plan --rehash`";

pub(crate) fn sum_line(line: &str, span: Span) -> Diagnostic {
    let conflict = ["<<<<<<<", "=======", ">>>>>>>"]
        .iter()
        .any(|mark| line.starts_with(mark));
    if conflict {
        return Diagnostic::at(span, "a merge conflict was left among the migrations").help(
            "two branches planned a migration of the same number: keep the files of the branch that was merged first, \
             delete those of the other, take migrations.sum and crds.lock of the first, and run `kindex plan`",
        );
    }
    Diagnostic::at(span, "this line names no migration")
        .help("a line is the name of a file, a space, and a hash of 64 hexadecimal digits; `kindex plan` writes it")
}

pub(crate) fn migration_edited(file: &str, expected: &str, found: &str, span: Span) -> Diagnostic {
    Diagnostic::at(span, format!("{file} was edited after it was planned"))
        .label(format!("expected {expected}"))
        .help(format!("the file's hash is {found}"))
        .help("restore the file: databases that already ran it would not get the edit")
        .help(REHASH)
}

pub(crate) fn migration_missing(file: &str, span: Span) -> Diagnostic {
    Diagnostic::at(span, format!("{file} is missing"))
        .label("planned as this")
        .help("restore the file")
        .help("to undo the last migration before it ran anywhere, restore crds.lock and migrations.sum as well")
}

pub(crate) fn migration_not_in_the_sum(file: &str, span: Span) -> Diagnostic {
    Diagnostic::at(span, format!("{file} is not in migrations.sum"))
        .help("delete the file; migrations are written by `kindex plan`")
        .help(REHASH)
}

pub(crate) fn migration_out_of_order(file: &str, wanted: &str, span: Span) -> Diagnostic {
    Diagnostic::at(span, format!("{file} is out of order"))
        .label(format!("{wanted} should stand here"))
        .help("each number has a file for each dialect, in order and without gaps; restore migrations.sum")
}

pub(crate) fn migration_without_a_dialect(file: &str, span: Span) -> Diagnostic {
    Diagnostic::at(span, format!("{file} is not in migrations.sum"))
        .label("it should stand below this")
        .help("a dialect of one migration is in all that follow; restore the file and migrations.sum")
}

/// `span`: the line of the lock that names a migration, if there is one.
pub(crate) fn lock_of_another_migration(last: &str, span: Option<Span>) -> Diagnostic {
    let title = format!("schema/crds.lock does not have the columns and keys that {last} leads to");
    let diagnostic = match span {
        Some(span) => Diagnostic::at(span, title).label("these facts changed since they were planned"),
        None => Diagnostic::nowhere(title),
    };
    diagnostic
        .help(
            "after a merge, take the whole file of the branch whose migration was kept, build, and run `kindex plan`: \
             lines of the other branch would count as planned",
        )
        .help("if the facts are known to be right, run `kindex plan --rehash`")
}

pub(crate) fn was_is_own_name(was: &Text) -> Diagnostic {
    Diagnostic::at(was.span, format!("column \"{}\" already has this name", was.value))
        .help("`was` is the name that the column had; remove it, or give the column its new name")
}

pub(crate) fn was_still_exists(was: &Text, column: &str, first: Span) -> Diagnostic {
    Diagnostic::at(was.span, format!("`{column}` still is a column of its own"))
        .related(first, "declared here")
        .help("a column has been renamed when its old name is gone; remove `was`, or the other column")
}

pub(crate) fn was_twice(was: &Text, first: Span) -> Diagnostic {
    Diagnostic::at(was.span, format!("`was = \"{}\"` is set on two columns", was.value))
        .related(first, "the first one")
        .help("a column can be renamed once; declare the other one without `was`, and it is filled anew")
}

pub(crate) fn was_unknown<'a>(was: &Text, column: &str, known: impl Iterator<Item = &'a str>) -> Diagnostic {
    let title = format!("no migration has created a column `{column}`");
    let mut diagnostic = Diagnostic::at(was.span, title);
    diagnostic.help.extend(suggestion(column, known, "the columns were"));
    diagnostic.help("without its old name, a column is added, and filled, and the old one is dropped")
}
