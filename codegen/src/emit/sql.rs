//! The schema files. Which tables there are and how they are spelled is decided in `dialect`; this file knows headings
//! and where the files lie.

use askama::Template;

use super::schema_init;
use crate::artifact::{Artifacts, HEADER, RelativePath};
use crate::dialect::{self, Dialect, InitScript};
use crate::model::Model;

/// The tables in whatever database the connection is in: what the program itself applies.
pub(super) fn schema_file(dialect: &dyn Dialect) -> String {
    format!("schema/{}_schema.sql", dialect.word())
}

/// A file of tables for each dialect, and for those of servers the script that also creates the database.
pub(super) fn emit(model: &Model) -> Artifacts {
    let mut files = Artifacts::new();
    for dialect in dialect::ALL {
        let tables = render(model, dialect, dialect.schema_title(), None);
        files.insert(RelativePath::new(schema_file(dialect)), tables);
        if let Some(script) = dialect.init_script(model.platform.database.as_str()) {
            files.extend(init_files(model, dialect, &script));
        }
    }
    files
}

/// The script under each of its names, and what runs it.
fn init_files(model: &Model, dialect: &dyn Dialect, script: &InitScript) -> Artifacts {
    let text = render(model, dialect, script.title, Some(&script.create_database));
    let copies = script.paths.iter();
    let mut files: Artifacts = copies.map(|path| (RelativePath::new(*path), text.clone())).collect();
    files.extend(schema_init::emit(script.runner, &text));
    files
}

#[derive(Template)]
#[template(path = "schema.sql.txt", escape = "none")]
struct SchemaFile<'a> {
    header: &'static str,
    title: &'a str,
    create_database: Option<&'a str>,
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

fn render(model: &Model, dialect: &dyn Dialect, title: &str, create_database: Option<&str>) -> String {
    let sections = dialect::sections(model);
    let tables: usize = sections.iter().map(|section| section.tables.len()).sum();
    let kind_tables = model.kinds.len() * dialect::TABLES_OF_A_KIND;
    let file = SchemaFile {
        header: HEADER,
        title,
        create_database,
        kinds: model.kinds.len(),
        kind_tables,
        own_tables: tables - kind_tables,
        rule: "-".repeat(77),
        sections: sections
            .into_iter()
            .map(|section| PrintedSection {
                heading: section.heading,
                doc: section.doc,
                statements: section.tables.iter().map(|table| dialect.create_table(table)).collect(),
            })
            .collect(),
    };
    let mut text = file.render().expect("the template writes into a string");
    text.push('\n');
    text
}
