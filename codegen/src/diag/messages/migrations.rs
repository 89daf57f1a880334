//! Mistakes about migrations: files that are not as they were planned, and names of columns that were.

use super::suggestion;
use crate::diag::Diagnostic;
use crate::source::{Place, Text};

const REHASH: &str = "after an edit on purpose, of a migration that ran nowhere yet, run `kindex plan --rehash`";

pub(crate) fn sum_line(line: &str, place: Place) -> Diagnostic {
    let conflict = ["<<<<<<<", "=======", ">>>>>>>"]
        .iter()
        .any(|mark| line.starts_with(mark));
    if conflict {
        return Diagnostic::at(place, "a merge conflict was left among the migrations").help(
            "two branches planned a migration of the same number: keep the files of the branch that was merged first, \
             delete those of the other, take migrations.sum and crds.lock of the first, and run `kindex plan`",
        );
    }
    Diagnostic::at(place, "this line names no migration")
        .help("a line is the name of a file, a space, and a hash of 64 hexadecimal digits; `kindex plan` writes it")
}

pub(crate) fn migration_edited(file: &str, expected: &str, found: &str, place: Place) -> Diagnostic {
    Diagnostic::at(place, format!("{file} is not as it was planned"))
        .label(format!("expected {expected}"))
        .help(format!("the file's hash is {found}"))
        .help("restore the file: databases where it ran would never learn of the edit")
        .help(REHASH)
}

pub(crate) fn migration_missing(file: &str, place: Place) -> Diagnostic {
    Diagnostic::at(place, format!("{file} is missing"))
        .label("planned as this")
        .help("restore the file")
        .help("to take the last migration back, which ran nowhere yet, restore crds.lock and migrations.sum as well")
}

pub(crate) fn migration_not_in_the_sum(file: &str, place: Place) -> Diagnostic {
    Diagnostic::at(place, format!("{file} is not in migrations.sum"))
        .help("delete the file; migrations are written by `kindex plan`")
        .help(REHASH)
}

pub(crate) fn migration_out_of_order(file: &str, wanted: &str, place: Place) -> Diagnostic {
    Diagnostic::at(place, format!("{file} is out of order"))
        .label(format!("{wanted} should stand here"))
        .help("each number has a file for each dialect, in order and without gaps; restore migrations.sum")
}

/// `place`: the line of the lock that names a migration, if there is one.
pub(crate) fn lock_of_another_migration(last: &str, place: Option<Place>) -> Diagnostic {
    let title = format!("schema/crds.lock does not have the columns and keys that {last} leads to");
    let diagnostic = match place {
        Some(place) => Diagnostic::at(place, title).label("these facts changed since they were planned"),
        None => Diagnostic::nowhere(title),
    };
    diagnostic
        .help(
            "after a merge, take the whole file of the branch whose migration was kept, build, and run `kindex plan`: \
             lines of the other branch would pass for planned",
        )
        .help("where the facts are known to be right, run `kindex plan --rehash`")
}

pub(crate) fn was_is_own_name(was: &Text) -> Diagnostic {
    Diagnostic::at(
        was.place,
        format!("column \"{}\" was called so before and is now", was.value),
    )
    .help("`was` is the name that the column had; remove it, or give the column its new name")
}

pub(crate) fn was_still_exists(was: &Text, column: &str, first: Place) -> Diagnostic {
    Diagnostic::at(was.place, format!("`{column}` still is a column of its own"))
        .related(first, "declared here")
        .help("a column has been renamed when its old name is gone; remove `was`, or the other column")
}

pub(crate) fn was_twice(was: &Text, first: Place) -> Diagnostic {
    Diagnostic::at(was.place, format!("two columns were \"{}\"", was.value))
        .related(first, "the first one")
        .help("a column can be renamed once; declare the other one without `was`, and it is filled anew")
}

pub(crate) fn was_unknown<'a>(was: &Text, column: &str, known: impl Iterator<Item = &'a str>) -> Diagnostic {
    let title = format!("no migration has made a column `{column}`");
    let mut diagnostic = Diagnostic::at(was.place, title);
    diagnostic.help.extend(suggestion(column, known, "the columns were"));
    diagnostic.help("without its old name, a column is added, and filled, and the old one is dropped")
}
