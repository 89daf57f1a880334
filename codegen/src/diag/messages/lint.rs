//! Messages of the lint: not errors, but risks.

use crate::diag::Diagnostic;
use crate::dialect::{Limit, RowFormatsMax};
use crate::source::{Span, Text};

const ALLOW: &str = "if this is intended, plan the migration with `--allow CODE='reason'`, or write \
                     `-- kindex:allow CODE: reason` into the step and run `kindex plan --rehash`";

fn allow(diagnostic: Diagnostic, code: &str) -> Diagnostic {
    diagnostic.help(ALLOW.replace("CODE", code))
}

pub(crate) fn table_dropped(table: &str, span: Span) -> Diagnostic {
    let title = format!("dropping `{table}` removes objects that may exist nowhere else");
    let diagnostic = Diagnostic::at(span, title)
        .help("archived and deleted objects exist only in SQL: save what you need first, such as with mysqldump");
    allow(diagnostic, "K101")
}

pub(crate) fn history_dropped(table: &str, span: Span) -> Diagnostic {
    let title = format!("dropping `{table}` removes every earlier version of its objects");
    let diagnostic = Diagnostic::at(span, title).help("save the table first if the history may be needed");
    allow(diagnostic, "K102")
}

pub(crate) fn column_dropped(table: &str, column: &str, span: Span) -> Diagnostic {
    let title = format!("dropping `{table}`.`{column}` breaks every query and program that names it");
    let diagnostic = Diagnostic::at(span, title)
        .help("no value is lost: the objects' `json` has them, and a column declared again is filled from there")
        .help("declared with `was`, a column keeps its values under a new name");
    allow(diagnostic, "K103")
}

pub(crate) fn column_recreated(table: &str, column: &str, span: Span) -> Diagnostic {
    let title =
        format!("`{table}`.`{column}` is dropped and added again: values that its new type cannot hold become NULL");
    let diagnostic = Diagnostic::at(span, title)
        .help("until the fill has finished, rows that it has not reached have NULL as well")
        .help("a new column with another name can be filled before anyone reads it");
    allow(diagnostic, "K201")
}

pub(crate) fn too_many_instant_changes(table: &str, most: RowFormatsMax, span: Span) -> Diagnostic {
    let RowFormatsMax { engine, count } = most;
    let title = format!(
        "{engine} refuses this step: {count} columns of `{table}` were added or dropped instantly since its rows were \
         written last"
    );
    Diagnostic::at(span, title)
        .help("before it ran anywhere: write `ALGORITHM=INPLACE, LOCK=NONE` instead of `ALGORITHM=INSTANT` into this")
        .help("step and run `kindex plan --rehash`; the table is then written anew, and can be written meanwhile")
}

pub(crate) fn depends_on_rows(verb: &str, word: &str, span: Span) -> Diagnostic {
    let title = format!("with {word}, this {verb} fails if a row violates it");
    let diagnostic = Diagnostic::at(span, title)
        .label("edited by hand: extracted columns may be NULL and repeat")
        .help("remove it: an absent field is NULL, and deleted objects keep their rows");
    allow(diagnostic, "K202")
}

pub(crate) fn column_renamed(table: &str, from: &str, to: &str, span: Span) -> Diagnostic {
    let title = format!("programs that write `{table}`.`{from}` fail once it is `{to}`");
    let diagnostic = Diagnostic::at(span, title)
        .help("stop older programs before this migration, or add the new column now and drop the old one later");
    allow(diagnostic, "K301")
}

pub(crate) fn path_changed(table: &str, column: &str, before: &str, path: &str, span: Span) -> Diagnostic {
    let title = format!("`{table}`.`{column}` is read from `{path}`: older programs go on writing `{before}` into it");
    let diagnostic =
        Diagnostic::at(span, title).help("stop older programs before this migration, or give the column another name");
    allow(diagnostic, "K302")
}

pub(crate) fn promise_broken(compatible: u32, number: u32, span: Span, step: Span) -> Diagnostic {
    let title = format!("programs of schema {compatible} are declared compatible, but can no longer write");
    Diagnostic::at(span, title)
        .related(step, "because of this step")
        .help(format!(
            "write `-- compatible: {number}` and run `kindex plan --rehash`"
        ))
}

pub(crate) fn renaming_copies(table: &str, engines: &[&str], span: Span) -> Diagnostic {
    let title = format!(
        "renaming a column of `{table}` copies the table on {} and blocks writes meanwhile",
        engines.join(" and ")
    );
    let diagnostic = Diagnostic::at(span, title)
        .help("without `was` the column is added and filled and the old one dropped, which never blocks");
    allow(diagnostic, "K401")
}

pub(crate) fn changing_copies(table: &str, column: &str, engines: &[&str], span: Span) -> Diagnostic {
    let title = format!(
        "changing the type of `{table}`.`{column}` copies the table on {} and blocks writes meanwhile",
        engines.join(" and ")
    );
    let diagnostic = Diagnostic::at(span, title)
        .help("a column of another name is added and filled without blocking; drop the old one with a later migration");
    allow(diagnostic, "K401")
}

pub(crate) fn may_lock(verb: &str, asked: Option<&str>, span: Span) -> Diagnostic {
    let title = match asked {
        Some(word) => format!("{word} blocks writes during this {verb}"),
        None => format!("this {verb} names no algorithm, so that a server may copy the table without a warning"),
    };
    let diagnostic = Diagnostic::at(span, title).help("restore the statement as `kindex plan` wrote it");
    allow(diagnostic, "K402")
}

pub(crate) fn key_redundant(key: &str, other: &str, span: Span) -> Diagnostic {
    let title = format!("the key `{key}` is a prefix of the key `{other}`");
    Diagnostic::at(span, title)
        .help("remove `key`: every key costs space and time with each write, and queries can use the other one")
}

pub(crate) fn reference_without_key(column: &str, on_delete: &str, span: Span) -> Diagnostic {
    let title = format!("`on_delete = \"{on_delete}\"` looks for holders by `{column}`, which has no key");
    Diagnostic::at(span, title)
        .label("every deletion of the named object reads the whole table")
        .help(format!(
            "declare the column with a key: {column} = {{ path = …, key = true }}"
        ))
}

pub(crate) fn key_long(key: &str, bytes: usize, span: Span) -> Diagnostic {
    let title = format!("the key `{key}` is {bytes} bytes long, of at most 3,072 in InnoDB");
    Diagnostic::at(span, title)
        .label("with pages of 8 KiB, at most 1,536")
        .help("shorten its columns with `sql`: VARCHAR(255) has room for every name in Kubernetes")
}

pub(crate) fn row_nearly_full(kind: &Text, bytes: usize, limit: Limit) -> Diagnostic {
    let Limit { most, products } = limit;
    let title = format!(
        "the columns of kind {} take {bytes} bytes of a row's {most} ({products})",
        kind.value
    );
    Diagnostic::at(kind.span, title).help(
        "set shorter lengths with `sql`, or `sql = \"TEXT\"` for columns without a key, before a column does not fit",
    )
}

pub(crate) fn key_on_bool(key: &str, column: &str, span: Span) -> Diagnostic {
    let title = format!("the key `{key}` distinguishes only two values");
    Diagnostic::at(span, title).help(format!(
        "an engine reads the table rather than half of a key; remove `key` unless one value of `{column}` is rare"
    ))
}

pub(crate) fn query_sorts(query: &str, span: Span) -> Diagnostic {
    let title = format!("query \"{query}\" sorts all rows that it finds before it returns the first");
    Diagnostic::at(span, title)
        .label("the limit does not avoid that")
        .help("sort by the column that follows in the key, narrow the query further, or leave the order to the caller")
}

pub(crate) fn query_by_bool(query: &str, span: Span) -> Diagnostic {
    let title = format!("query \"{query}\" is narrowed only by a bool");
    Diagnostic::at(span, title).help("add an equality with the first column of another key")
}

pub(crate) fn old_name_spent(was: &Text, column: &str) -> Diagnostic {
    let title = format!("column \"{column}\" has already been renamed: `was` is no longer needed");
    Diagnostic::at(was.span, title).help("remove `was`")
}

pub(crate) fn allowed_without_reason(span: Span) -> Diagnostic {
    Diagnostic::at(span, "a finding is allowed without a reason")
        .help("add the reason: `K103: the column is unused since March`")
}

pub(crate) fn allows_nothing(is_known: bool, span: Span) -> Diagnostic {
    if is_known {
        return Diagnostic::at(span, "this allows a finding that does not occur here").help("remove it");
    }
    Diagnostic::at(span, "unknown lint code").help("codes look like K103")
}
