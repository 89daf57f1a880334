//! `kindex plan --against`: how a database differs from what crds.toml wants, and the statements
//! that would bring it there. Changes nothing.

use kindex_codegen::dialect;
use kindex_model::kind::Registry;
use kindex_store::Address;
use serde::Serialize;

use crate::cli::{Form, PlanArgs};
use crate::color;
use crate::database;
use crate::drift::{Difference, Drift, Statement};
use crate::error::{CommandError, CommandResult, chain};
use crate::output::{document, table};
use crate::plan::needs_declaration;
use crate::{say, sides};

/// Where the database is when the flag does not say.
const VARIABLE: &str = "KINDEX_DATABASE";

/// Compares and tells.
pub async fn run(registry: &Registry, args: &PlanArgs) -> CommandResult {
    needs_declaration(&args.root)?;
    let parsed = address(registry, args)?;
    if let Some(path) = parsed.file().filter(|path| !path.is_file()) {
        return Err(CommandError::usage(format_args!("no database at {}", path.display())));
    }
    let lowered = kindex_codegen::lower(&args.root).map_err(|errors| {
        say::note(errors.text(color::of_stderr()));
        CommandError::failure("nothing was compared")
    })?;
    let dialect = dialect::named(parsed.dialect()).expect("the generator has every dialect of the store");
    let store = database::open_at(registry, &parsed)?;
    let live = store.tables().await;
    store.close().await;
    let live = live.map_err(|error| CommandError::failure(chain(&error)))?;
    let drift = Drift::between(&live, &lowered, dialect);
    say::print(report(&drift, args, &parsed)?)?;
    if args.exit_code && !drift.differences.is_empty() {
        let message = format!("{parsed} differs from crds.toml in {} places", drift.differences.len());
        return Err(CommandError::pending(message).hint(
            "`kindex plan --against … --sql` prints the statements; `kindex migrate --adopt` takes up the tables of \
             another program",
        ));
    }
    Ok(())
}

/// The flag's, else the environment's, else that of the configuration file.
fn address(registry: &Registry, args: &PlanArgs) -> CommandResult<Address> {
    let named = args.against.as_deref().filter(|named| !named.is_empty());
    let named = named.map(str::to_owned).or_else(|| std::env::var(VARIABLE).ok());
    match (named, &args.config) {
        (Some(named), _) => database::parse(&named),
        (None, Some(path)) => sides::configured_address(registry, path).map(|(address, _)| address),
        (None, None) => Err(CommandError::usage(format_args!(
            "--against names no database, and {VARIABLE} is not set"
        ))
        .hint(
            "write --against sqlite:PATH, --against mysql://USER:PASSWORD@HOST:PORT/DATABASE, or --against --config FILE",
        )),
    }
}

/// What a program reads.
#[derive(Serialize)]
struct Document<'a> {
    database: String,
    differences: &'a [Difference],
    statements: Vec<Statement>,
}

fn report(drift: &Drift, args: &PlanArgs, address: &Address) -> CommandResult<String> {
    if args.sql {
        return Ok(script(&drift.statements()));
    }
    if args.output != Form::Table {
        let whole = Document {
            database: address.to_string(),
            differences: &drift.differences,
            statements: drift.statements(),
        };
        return document(&whole, args.output);
    }
    if drift.differences.is_empty() {
        return Ok(format!("{address} has the tables that crds.toml wants\n"));
    }
    let or_none = |text: &str| if text.is_empty() { "-" } else { text }.to_owned();
    let rows = drift.differences.iter().map(|it| {
        vec![
            it.table.clone(),
            it.object.clone(),
            it.state.as_str().to_owned(),
            or_none(&it.database),
            or_none(&it.wanted),
        ]
    });
    Ok(table(&["table", "what", "state", "database", "crds.toml"], rows))
}

/// For `mysql` and `sqlite3`.
fn script(statements: &[Statement]) -> String {
    let of = |statement: &Statement| match &statement.sql {
        Some(sql) => format!("-- {}\n{sql}\n", statement.step),
        None => format!(
            "-- {}: by `kindex migrate --adopt`, which reads them from the stored objects\n",
            statement.step
        ),
    };
    statements.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_has_the_dialect_of_every_address() {
        for text in ["sqlite:a.db", "sqlite::memory:", "mysql://u@h/d", "mariadb://u@h/d"] {
            let address: Address = text.parse().expect("an address");
            assert!(dialect::named(address.dialect()).is_some(), "{text}");
            assert!(address.to_string().starts_with(address.dialect()), "{text}");
        }
    }
}
