//! Migrations, planned by comparing what the lock says a database looks like with what `crds.toml` wants. Pure: texts
//! in, texts out. What runs the migrations, and where, is not known here.

mod migration;

mod schema;

mod diff;

mod script;

mod chain;

pub use chain::{SUM, hash, read};
pub use diff::diff;
pub use migration::{ALLOW, Migration, STEP, is_name};
pub(crate) use migration::{parse_compatible, parse_file_name};
pub use schema::{DesiredSchema, Existing, ExistingColumn, ExistingKey, Extracted, Schema};
pub use script::{Block, Line, Script};

use std::collections::BTreeMap;

use crate::artifact::{Artifacts, RelativePath};
use crate::diag::{Collector, messages};
use crate::dialect::{self, Step};
use crate::lock::{Lock, Structure};
use crate::lower::Lowered;
use crate::model::{ColumnName, Model};
use crate::source::{MIGRATIONS, Sources};
use crate::spec::Spec;

/// Options of the next migration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MigrationOptions {
    /// Its name; `None`: named after its steps.
    pub name: Option<String>,
    /// Findings of the lint that are allowed in it, each `<code>: <reason>`.
    pub allowed: Vec<String>,
}

/// The next migration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Next {
    /// Its name, compatibility and checksum.
    pub migration: Migration,
    /// What it does, in order.
    pub steps: Vec<Step>,
}

/// Reports everything that keeps the next migration from being planned, and returns those that are there.
pub fn check(sources: &Sources, lock: &Lock, found: &mut Collector) -> Vec<Migration> {
    let planned = chain::read(sources, found);
    if let Some(last) = planned.last().filter(|_| found.is_empty())
        && !lock.structure.is_sealed_by(last.number, &last.checksum)
    {
        let span = lock.structure.seal.as_ref().and_then(|seal| seal.span);
        found.push(messages::lock_of_another_migration(&last.stem(), span));
    }
    planned
}

/// The steps from what is planned so far to what the model wants.
pub fn pending(model: &Model, lock: &Lock, planned: &[Migration]) -> Vec<Step> {
    // A lock of the days before migrations has facts that no migration leads to.
    let old = if planned.is_empty() {
        Schema::default()
    } else {
        Schema::of(&lock.structure)
    };
    diff(&old, &DesiredSchema::of(&model.kinds))
}

/// What to tell a person who builds while steps are pending.
pub fn reminder(pending: &[Step]) -> Option<String> {
    let count = match pending.len() {
        0 => return None,
        1 => "1 step".to_owned(),
        count => format!("{count} steps"),
    };
    Some(format!(
        "crds.toml is ahead of schema/migrations by {count}: run `kindex plan` (with `--dry-run` to see them)"
    ))
}

/// What the next migration adds to a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addition {
    /// The migration.
    pub next: Next,
    /// The files of all migrations and their sum, those of the new one among them.
    pub files: Artifacts,
    /// What the database looks like once it has run.
    pub structure: Structure,
}

/// The next migration for `steps`, at least one, which lead to the model.
pub fn add(
    steps: Vec<Step>,
    options: &MigrationOptions,
    planned: &[Migration],
    model: &Model,
    sources: &Sources,
) -> Addition {
    let last = planned.last();
    let number = last.map_or(1, |last| last.number + 1);
    let named = options.name.clone();
    let name = named.unwrap_or_else(|| migration::suggest_name(&steps, number));
    let compatible = migration::compatible(&steps, number, last.map(|last| last.compatible));
    let mut texts = texts(sources);
    for dialect in dialect::ALL {
        let text = migration::render((number, &name), compatible, &steps, &options.allowed, dialect);
        texts.insert(migration::file_name(number, &name, dialect), text);
    }
    let (sum, checksum) = chain::sum(&texts);
    texts.insert(SUM.to_owned(), sum);
    let mut structure = Structure::of(&model.kinds);
    structure.seal(number, &checksum);
    let migration = Migration {
        number,
        name,
        compatible,
        dialects: dialect::ALL.to_vec(),
        checksum,
    };
    Addition {
        next: Next { migration, steps },
        files: artifacts(texts),
        structure,
    }
}

/// The same sources with a sum of the files as they are.
pub fn summed(sources: &Sources) -> Sources {
    let (sum, _) = chain::sum(&texts(sources));
    let mut summed = sources.clone();
    summed.add_migration(SUM, sum);
    summed
}

/// The same facts, tied to the last of these migrations.
pub fn sealed(structure: &Structure, planned: &[Migration]) -> Structure {
    let mut structure = structure.clone();
    if let Some(last) = planned.last() {
        structure.seal(last.number, &last.checksum);
    }
    structure
}

/// The files of all migrations and their sum.
pub fn files(sources: &Sources) -> Artifacts {
    artifacts(texts(sources))
}

/// The files beside the migrations, by name.
fn texts(sources: &Sources) -> BTreeMap<String, String> {
    let files = sources.migrations().iter();
    let texts = files.map(|(name, file)| (name.clone(), sources.text(*file).to_owned()));
    texts.collect()
}

fn artifacts(texts: BTreeMap<String, String>) -> Artifacts {
    let texts = texts.into_iter();
    texts
        .map(|(name, text)| (RelativePath::new(format!("{MIGRATIONS}/{name}")), text))
        .collect()
}

/// Reports every `was` of a new column that names no column of the last migration. It is probably misspelled, and the
/// column would be added and the old one dropped.
pub(crate) fn warn_of_unknown_was(spec: &Spec, lowered: &Lowered, found: &mut Collector) {
    let locked = &lowered.lock.structure.columns;
    for (kind, spec) in lowered.model.kinds.iter().zip(&spec.kinds) {
        let Some(known) = locked.get(&kind.table) else { continue };
        for column in kind.columns.iter().filter(|column| !known.contains_key(&column.name)) {
            let Some(was) = column.was.as_ref().filter(|was| !known.contains_key(*was)) else {
                continue;
            };
            let base = column.group.as_ref().map_or(&column.name, |group| &group.name);
            let text = spec.columns.iter().find(|spec| base == spec.name.value.as_str());
            if let Some(text) = text.and_then(|spec| spec.was.as_ref()) {
                found.push(messages::was_unknown(
                    text,
                    was.as_str(),
                    known.keys().map(ColumnName::as_str),
                ));
            }
        }
    }
}
