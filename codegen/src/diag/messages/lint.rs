//! What the lint has to say: not mistakes, but what may hurt.

use crate::diag::Diagnostic;
use crate::source::{Place, Text};

const ALLOW: &str = "where this is meant, plan the migration with `--allow CODE='reason'`, or write \
                     `-- kindex:allow CODE: reason` into the step and run `kindex plan --rehash`";

fn allow(diagnostic: Diagnostic, code: &str) -> Diagnostic {
    diagnostic.help(ALLOW.replace("CODE", code))
}

pub(crate) fn table_dropped(table: &str, place: Place) -> Diagnostic {
    let title = format!("dropping `{table}` removes objects that may live nowhere else");
    let diagnostic = Diagnostic::at(place, title)
        .help("archived and deleted objects exist only in SQL: save what you need first, such as with mysqldump");
    allow(diagnostic, "K101")
}

pub(crate) fn history_dropped(table: &str, place: Place) -> Diagnostic {
    let title = format!("dropping `{table}` removes every earlier version of its objects");
    let diagnostic = Diagnostic::at(place, title).help("save the table first if anybody may ask for the past");
    allow(diagnostic, "K102")
}

pub(crate) fn column_dropped(table: &str, column: &str, place: Place) -> Diagnostic {
    let title = format!("dropping `{table}`.`{column}` breaks every query and program that names it");
    let diagnostic = Diagnostic::at(place, title)
        .help("no value is lost: the objects' `json` has them, and a column declared again is filled from there")
        .help("declared with `was`, a column keeps its values under a new name");
    allow(diagnostic, "K103")
}

pub(crate) fn column_made_anew(table: &str, column: &str, place: Place) -> Diagnostic {
    let title = format!("`{table}`.`{column}` is made anew: values that its new type cannot hold become NULL");
    let diagnostic = Diagnostic::at(place, title)
        .help("until the fill is through, rows that it has not reached have NULL as well")
        .help("a column of another name beside the old one can be filled before anybody reads it");
    allow(diagnostic, "K201")
}

pub(crate) fn too_many_instant_changes(table: &str, most: u32, place: Place) -> Diagnostic {
    let title = format!(
        "MySQL refuses this step: {most} columns of `{table}` were added or dropped instantly since its rows were \
         written last"
    );
    Diagnostic::at(place, title)
        .help("before it ran anywhere: write `ALGORITHM=INPLACE, LOCK=NONE` instead of `ALGORITHM=INSTANT` into this")
        .help("step and run `kindex plan --rehash`; the table is then written anew, and can be written meanwhile")
}

pub(crate) fn depends_on_rows(verb: &str, word: &str, place: Place) -> Diagnostic {
    let title = format!("{word} makes this {verb} fail where rows do not suit it");
    let diagnostic = Diagnostic::at(place, title)
        .label("edited by hand: extracted columns may be NULL and repeat")
        .help("leave it away: an absent field is NULL, and deleted objects keep their rows");
    allow(diagnostic, "K202")
}

pub(crate) fn column_renamed(table: &str, from: &str, to: &str, place: Place) -> Diagnostic {
    let title = format!("programs that write `{table}`.`{from}` fail once it is `{to}`");
    let diagnostic = Diagnostic::at(place, title)
        .help("stop older programs before this migration, or add the new column now and drop the old one later");
    allow(diagnostic, "K301")
}

pub(crate) fn path_changed(table: &str, column: &str, before: &str, path: &str, place: Place) -> Diagnostic {
    let title = format!("`{table}`.`{column}` is read from `{path}`: older programs go on writing `{before}` into it");
    let diagnostic =
        Diagnostic::at(place, title).help("stop older programs before this migration, or give the column another name");
    allow(diagnostic, "K302")
}

pub(crate) fn promise_broken(compatible: u32, number: u32, place: Place, step: Place) -> Diagnostic {
    let title = format!("programs of schema {compatible} are said to go on writing, and cannot");
    Diagnostic::at(place, title)
        .related(step, "they do not know of this")
        .help(format!(
            "write `-- compatible: {number}` and run `kindex plan --rehash`"
        ))
}

pub(crate) fn renaming_copies(table: &str, engines: &[&str], place: Place) -> Diagnostic {
    let title = format!(
        "renaming a column of `{table}` copies the table on {}, and nothing can be written meanwhile",
        engines.join(" and ")
    );
    let diagnostic = Diagnostic::at(place, title)
        .help("without `was` the column is added and filled and the old one dropped, which never blocks");
    allow(diagnostic, "K401")
}

pub(crate) fn changing_copies(table: &str, column: &str, engines: &[&str], place: Place) -> Diagnostic {
    let title = format!(
        "changing the type of `{table}`.`{column}` copies the table on {}, and nothing can be written meanwhile",
        engines.join(" and ")
    );
    let diagnostic = Diagnostic::at(place, title)
        .help("a column of another name is added and filled without blocking; drop the old one with a later migration");
    allow(diagnostic, "K401")
}

pub(crate) fn may_lock(verb: &str, asked: Option<&str>, place: Place) -> Diagnostic {
    let title = match asked {
        Some(word) => format!("{word} lets nobody write while the server is at this {verb}"),
        None => format!("this {verb} names no algorithm, so that a server may copy the table without a word"),
    };
    let diagnostic = Diagnostic::at(place, title).help("restore the statement as `kindex plan` wrote it");
    allow(diagnostic, "K402")
}

pub(crate) fn key_redundant(key: &str, other: &str, place: Place) -> Diagnostic {
    let title = format!("the key `{key}` holds nothing that the key `{other}` does not begin with");
    Diagnostic::at(place, title)
        .help("remove `key`: every key costs room and time with each write, and queries take the other one")
}

pub(crate) fn reference_without_key(column: &str, on_delete: &str, place: Place) -> Diagnostic {
    let title = format!("`on_delete = \"{on_delete}\"` looks for holders by `{column}`, which has no key");
    Diagnostic::at(place, title)
        .label("every deletion of the named object reads the whole table")
        .help(format!(
            "declare the column with a key: {column} = {{ path = …, key = true }}"
        ))
}

pub(crate) fn key_long(key: &str, bytes: usize, place: Place) -> Diagnostic {
    let title = format!("the key `{key}` is {bytes} bytes long, of the 3,072 that InnoDB takes");
    Diagnostic::at(place, title)
        .label("servers with pages of 8 KiB take 1,536")
        .help("shorten its columns with `sql`: VARCHAR(255) has room for every name in Kubernetes")
}

pub(crate) fn row_nearly_full(kind: &Text, bytes: usize) -> Diagnostic {
    let title = format!(
        "the columns of kind {} take {bytes} bytes of a row's 60,000",
        kind.value
    );
    Diagnostic::at(kind.place, title).help(
        "set shorter lengths with `sql`, or `sql = \"TEXT\"` for columns without a key, before a column does not fit",
    )
}

pub(crate) fn key_on_bool(key: &str, column: &str, place: Place) -> Diagnostic {
    let title = format!("the key `{key}` tells two sorts of rows apart");
    Diagnostic::at(place, title).help(format!(
        "an engine reads the table rather than half of a key; remove `key` unless one value of `{column}` is rare"
    ))
}

pub(crate) fn query_sorts(query: &str, place: Place) -> Diagnostic {
    let title = format!("query \"{query}\" sorts all rows that it finds before it returns the first");
    Diagnostic::at(place, title)
        .label("the limit saves none of that work")
        .help("sort by the column that follows in the key, narrow the query further, or leave the order to the caller")
}

pub(crate) fn query_by_bool(query: &str, place: Place) -> Diagnostic {
    let title = format!("query \"{query}\" is narrowed by a bool alone");
    Diagnostic::at(place, title).help("add an equality with the first column of another key")
}

pub(crate) fn old_name_spent(was: &Text, column: &str) -> Diagnostic {
    let title = format!("column \"{column}\" has been renamed: its old name has done its work");
    Diagnostic::at(was.place, title).help("remove `was`")
}

pub(crate) fn allowed_without_reason(place: Place) -> Diagnostic {
    Diagnostic::at(place, "a finding is let pass without a reason")
        .help("say why, for whoever reads this next: `K103: nobody reads the column since March`")
}

pub(crate) fn allows_nothing(is_known: bool, place: Place) -> Diagnostic {
    if is_known {
        return Diagnostic::at(place, "nothing is let pass here").help("remove it: what it was for is gone");
    }
    Diagnostic::at(place, "this names no code of the lint").help("codes look like K103")
}
