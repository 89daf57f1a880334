//! The lint: finds what is valid but risky in migrations and the declaration. Offline and pure. Messages are in
//! `diag::messages`, allowances in `allow`.

mod code;

mod declaration;
mod migration;
mod row_versions;

mod allow;

pub use code::{Code, Level};

use crate::diag::{Diagnostic, Style};
use crate::dialect::{ALL, Dialect, REFERENCE};
use crate::lower::Lowered;
use crate::plan::parse_file_name;
use crate::source::{FileId, Sources};
use crate::spec::Spec;

/// A file of a migration.
#[derive(Debug, Clone, Copy)]
struct MigrationFile<'s> {
    file: FileId,
    text: &'s str,
    /// That of the migration.
    number: u32,
    /// The one in which the file is written.
    dialect: &'static dyn Dialect,
}

/// A finding before it is rendered.
struct Found {
    code: Code,
    diagnostic: Diagnostic,
}

/// All findings of a run, in the order of files and lines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// Findings that are not allowed.
    pub findings: Vec<Finding>,
    /// How many findings are allowed.
    pub allowed: usize,
    /// What must be planned before the whole declaration can be checked, on one line.
    pub reminder: Option<String>,
}

/// One finding, rendered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Its code.
    pub code: Code,
    /// Path of the file, relative to the root.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// What was found, on one line.
    pub message: String,
    /// What to do about it, one line each.
    pub help: Vec<String>,
    /// All of it for a person: place, code, message, the marked line, help.
    pub text: String,
    /// The same in colors.
    pub colored: String,
}

/// Checks every migration and the declaration.
pub(crate) fn lint(spec: &Spec, lowered: &Lowered, sources: &Sources) -> Report {
    let mut found = Vec::new();
    let migrations = migration_files(sources);
    for migration in &migrations {
        if migration.dialect == REFERENCE {
            let files = migrations.iter().filter(|other| other.number == migration.number);
            let dialects: Vec<&dyn Dialect> = files.map(|other| other.dialect).collect();
            migration::check(migration, &dialects, &mut found);
        }
        migration::check_edits(migration, &mut found);
    }
    for dialect in ALL {
        let files = migrations.iter().filter(|migration| migration.dialect == dialect);
        row_versions::check(
            dialect,
            files.map(|migration| (migration.file, migration.text)),
            &mut found,
        );
    }
    declaration::check(spec, &lowered.model, &lowered.lock.structure, &mut found);
    let crds = (sources.crds(), sources.text(sources.crds()));
    let allowed = allow::apply(&mut found, spec, crds, &migrations);
    found.sort_by_key(|found| (found.diagnostic.span(), found.code));
    Report {
        findings: found.into_iter().map(|found| render(found, sources)).collect(),
        allowed,
        reminder: None,
    }
}

/// The files of all migrations, in the order of their names.
fn migration_files(sources: &Sources) -> Vec<MigrationFile<'_>> {
    let files = sources.migrations().iter().filter_map(|(name, file)| {
        let (number, _, dialect) = parse_file_name(name)?;
        Some(MigrationFile {
            file: *file,
            text: sources.text(*file),
            number,
            dialect,
        })
    });
    files.collect()
}

fn render(found: Found, sources: &Sources) -> Finding {
    let Found { code, diagnostic } = found;
    let message = diagnostic.title().to_owned();
    let help = diagnostic.help_lines().to_vec();
    let span = diagnostic.span().expect("a finding points at a line");
    let (line, column) = sources.line_and_column(span);
    let page = format!("{code} is explained in {}", code.page());
    let coded = diagnostic.coded(code.as_str(), page);
    Finding {
        code,
        file: sources.file(span.file).path.clone(),
        line,
        column,
        message,
        help,
        text: coded.render(sources, Style::Plain),
        colored: coded.render(sources, Style::Colored),
    }
}
