//! `kindex plan`: shows the steps to the schema that crds.toml wants and writes them as a migration. What the steps are
//! is decided in `kindex-codegen`.

use std::path::Path;

use kindex_codegen::artifact::{self, Artifacts, Mode};
use kindex_codegen::diag::Diagnostics;
use kindex_codegen::dialect::{self, REFERENCE, Step};
use kindex_codegen::lint::Code;
use kindex_codegen::plan::{Migration, MigrationOptions, Next};
use serde::Serialize;

use crate::cli::{Form, PlanArgs};
use crate::error::{CommandError, CommandResult, chain};
use crate::{color, output, say};

/// Plans, or takes the files as they are.
pub fn run(args: &PlanArgs) -> CommandResult {
    needs_declaration(&args.root)?;
    if args.rehash {
        return rehash(args);
    }
    if let Some(name) = args.name.as_deref().filter(|name| !kindex_codegen::plan::is_name(name)) {
        return Err(CommandError::usage(format_args!("{name:?} is not a migration name"))
            .hint("lower-case letters, digits and underscores, a letter first: model_budget"));
    }
    let allowed = args
        .allowed
        .iter()
        .map(|words| allowance(words))
        .collect::<CommandResult<_>>()?;
    let options = MigrationOptions {
        name: args.name.clone(),
        allowed,
    };
    let planned = kindex_codegen::plan(&args.root, &options).map_err(refused)?;
    for warning in &planned.warnings {
        say::note(format_args!("warning: {warning}"));
    }
    if !args.dry_run {
        write(&args.root, &planned.artifacts)?;
    }
    say::print(report(planned.next.as_ref(), args)?)?;
    match planned.next {
        Some(next) if args.exit_code => Err(pending(&next, args.dry_run)),
        Some(_) | None => Ok(()),
    }
}

/// Says where crds.toml was looked for.
pub(crate) fn needs_declaration(root: &Path) -> CommandResult {
    if root.join("crds.toml").is_file() {
        return Ok(());
    }
    Err(CommandError::usage(format_args!("no crds.toml in {}", root.display()))
        .hint("run this where crds.toml is, or name the directory with --root DIR"))
}

/// `K103=reason` as it stands in a migration.
fn allowance(words: &str) -> CommandResult<String> {
    let (code, reason) = words.split_once('=').unwrap_or((words, ""));
    let wrong = |why: &str| {
        CommandError::usage(format_args!("--allow {words}: {why}"))
            .hint("name a code of `kindex lint` and give the reason to allow it: --allow K103='nobody reads it'")
    };
    let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    match Code::of_name(code) {
        None => Err(wrong("no such code")),
        Some(_) if reason.is_empty() => Err(wrong("no reason")),
        Some(code) => Ok(format!("{code}: {reason}")),
    }
}

fn rehash(args: &PlanArgs) -> CommandResult {
    let artifacts = kindex_codegen::rehash(&args.root).map_err(refused)?;
    let mode = if args.dry_run { Mode::DryRun } else { Mode::Write };
    let differences = artifact::sync(&args.root, &artifacts, mode);
    let differences = differences.map_err(|error| CommandError::failure(chain(&error)))?;
    for difference in &differences {
        say::print(difference)?;
    }
    if differences.is_empty() {
        say::line("every migration is as it was planned")?;
    }
    Ok(())
}

fn refused(errors: Diagnostics) -> CommandError {
    say::note(errors.text(color::of_stderr()));
    CommandError::failure("nothing was written")
}

fn write(root: &Path, artifacts: &Artifacts) -> CommandResult {
    match artifact::sync(root, artifacts, Mode::Write) {
        Ok(_) => Ok(()),
        Err(error) => Err(CommandError::failure(chain(&error))),
    }
}

fn pending(next: &Next, dry_run: bool) -> CommandError {
    let stem = next.migration.stem();
    if dry_run {
        return CommandError::pending(format_args!("{} is to be planned", stem)).hint("run `kindex plan`");
    }
    CommandError::pending(format_args!("{} was planned", stem)).hint("look at the files and commit them")
}

/// What a program reads.
#[derive(Serialize)]
struct Document<'a> {
    migration: Option<DocumentMigration<'a>>,
    steps: Vec<DocumentStep>,
}

#[derive(Serialize)]
struct DocumentMigration<'a> {
    number: u32,
    name: &'a str,
    compatible: u32,
    checksum: &'a str,
    files: Vec<String>,
    written: bool,
}

#[derive(Serialize)]
struct DocumentStep {
    step: &'static str,
    table: String,
    object: String,
    detail: String,
    additive: bool,
}

fn report(next: Option<&Next>, args: &PlanArgs) -> CommandResult<String> {
    if args.output == Form::Table {
        return Ok(table(next, args.dry_run));
    }
    let migration = next.map(|next| DocumentMigration {
        number: next.migration.number,
        name: &next.migration.name,
        compatible: next.migration.compatible,
        checksum: &next.migration.checksum,
        files: dialect::ALL.map(|dialect| next.migration.path(dialect)).into(),
        written: !args.dry_run,
    });
    let steps = next.into_iter().flat_map(|next| &next.steps);
    let steps = steps.map(|step| DocumentStep {
        step: step.verb().as_str(),
        table: step.table().to_string(),
        object: step.object(),
        detail: detail(step),
        additive: step.is_additive(),
    });
    let document = Document {
        migration,
        steps: steps.collect(),
    };
    output::document(&document, args.output)
}

fn table(next: Option<&Next>, dry_run: bool) -> String {
    let Some(Next { migration, steps }) = next else {
        return "nothing to plan: the migrations lead to what crds.toml wants\n".to_owned();
    };
    let row = |step: &Step| {
        vec![
            step.verb().to_string(),
            step.table().to_string(),
            step.object(),
            detail(step),
        ]
    };
    let mut text = output::table(&["step", "table", "what", "detail"], steps.iter().map(row));
    let done = if dry_run { "would be planned" } else { "planned" };
    text.push_str(&format!("\n{} {done}: {}\n", migration.stem(), suits(migration)));
    if !dry_run {
        for dialect in dialect::ALL {
            text.push_str(&format!("  {}\n", migration.path(dialect)));
        }
    }
    text
}

/// What a person wants to know of a step besides its name, with types in the words of crds.toml.
fn detail(step: &Step) -> String {
    step.detail(|ty, required| REFERENCE.column_type(ty, required))
}

/// Which programs may run beside the new ones.
fn suits(migration: &Migration) -> String {
    match migration.compatible {
        own if own == migration.number => "programs built before it must not write once it has run".to_owned(),
        compatible => format!("programs built for schema {compatible} or later may go on writing"),
    }
}
