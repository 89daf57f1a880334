//! The schema files. Which tables there are and how they are spelt is decided in `dialect`; this file knows headings
//! and where the files lie.

use askama::Template;

use super::schema_init;
use crate::artifact::{Artifacts, HEADER, RelativePath};
use crate::dialect::{self, Table, mysql, sqlite};
use crate::model::Model;

/// The files that operators know from Michelangelo: the authoritative one, its complete copy, and the one that the
/// chart mounts. They are the same to the byte.
const INIT_FILES: [&str; 3] = [
    "schema/ingester_schema.sql",
    "schema/complete_ingester_schema.sql",
    "deploy/helm/kindex/files/schema/mysql-init-schema.sql",
];

/// The same tables in whatever database the connection is in: what the program itself applies.
pub(super) const MYSQL_FILE: &str = "schema/mysql_schema.sql";
/// The tables in SQLite.
pub(super) const SQLITE_FILE: &str = "schema/sqlite_schema.sql";

/// Three copies of the script that also creates the database, and one file of tables for each dialect.
pub(super) fn emit(model: &Model) -> Artifacts {
    let init = mysql_init(model);
    let copies = INIT_FILES.map(|path| (RelativePath::new(path), init.clone()));
    let tables = [
        (RelativePath::new(MYSQL_FILE), mysql_tables(model)),
        (RelativePath::new(SQLITE_FILE), sqlite_tables(model)),
    ];
    let mut files: Artifacts = copies.into_iter().chain(tables).collect();
    files.extend(schema_init::emit(&init));
    files
}

fn mysql_init(model: &Model) -> String {
    let title = "Creates Kindex's database and its tables on MySQL and MariaDB. May be run again at any time.";
    let database = model.platform.database.as_str();
    render(model, title, Some(database), mysql::create_table)
}

fn mysql_tables(model: &Model) -> String {
    let title = "Kindex's tables on MySQL and MariaDB, in the database that the connection is in.";
    render(model, title, None, mysql::create_table)
}

fn sqlite_tables(model: &Model) -> String {
    let title = "Kindex's tables on SQLite.\n\
                 Times are text in UTC with six digits of a second, such as 2026-01-31T12:00:00.000000Z.";
    render(model, title, None, sqlite::create_table)
}

#[derive(Template)]
#[template(path = "schema.sql.txt", escape = "none")]
struct SchemaFile<'a> {
    header: &'static str,
    title: &'a str,
    database: Option<&'a str>,
    kinds: usize,
    kind_tables: usize,
    own_tables: usize,
    rule: String,
    sections: Vec<PrintedSection>,
}

struct PrintedSection {
    heading: String,
    doc: String,
    statements: Vec<String>,
}

fn render(model: &Model, title: &str, database: Option<&str>, create_table: fn(&Table) -> String) -> String {
    let sections = dialect::sections(model);
    let tables: usize = sections.iter().map(|section| section.tables.len()).sum();
    let kind_tables = model.kinds.len() * dialect::TABLES_OF_A_KIND;
    let file = SchemaFile {
        header: HEADER,
        title,
        database,
        kinds: model.kinds.len(),
        kind_tables,
        own_tables: tables - kind_tables,
        rule: "-".repeat(77),
        sections: sections
            .into_iter()
            .map(|section| PrintedSection {
                heading: section.heading,
                doc: section.doc,
                statements: section.tables.iter().map(create_table).collect(),
            })
            .collect(),
    };
    let mut text = file.render().expect("the template writes into a string");
    text.push('\n');
    text
}
