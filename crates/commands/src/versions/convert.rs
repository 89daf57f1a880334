//! `kindex versions convert`: brings the rows of archived and deleted objects to the version that their kind has now.

use kindex_maintenance::convert::{Converted, Mode, Options, Refusal, convert};
use kindex_model::kind::{Kind, Registry};
use kindex_store::StoreError;

use crate::cli::{ConvertArgs, Form};
use crate::error::{CommandError, CommandResult, chain};
use crate::output::{document, table};
use crate::progress::Bar;
use crate::{database, say, sides};

/// Goes through kind after kind and prints what was converted.
pub(crate) async fn run(registry: &Registry, args: &ConvertArgs) -> CommandResult {
    if args.rows_per_second.is_some_and(|rate| rate.is_nan() || rate <= 0.0) {
        return Err(CommandError::usage("--rows-per-second must be above 0"));
    }
    let kinds = kinds(registry, &args.kinds)?;
    let options = Options {
        mode: if args.dry_run { Mode::DryRun } else { Mode::Convert },
        rows_per_second: args.rows_per_second,
        ..Options::default()
    };
    let store = sides::store(registry, &args.store)?;
    if args.dry_run {
        database::outlasting(&store).await?;
    } else {
        // An older program made no table for the texts before.
        let prepared = store.prepare().await;
        prepared.map_err(|error| CommandError::failure(chain(&error)))?;
    }
    let bar = Bar::new();
    let mut converted = Vec::new();
    for kind in kinds {
        let done = convert(&store, &registry.platform, kind, &options, &bar).await;
        converted.push(done.map_err(|error| interrupted(&error))?);
    }
    store.close().await;
    if converted.is_empty() && args.output == Form::Table {
        say::note("No kind has several versions: [kinds.X.versions.v1] in crds.toml declares one.");
        return Ok(());
    }
    say::print(render(&converted, args)?)?;
    judge(&converted)
}

/// A kind of one version has nothing to convert, unless somebody asks.
fn kinds(registry: &Registry, names: &[String]) -> CommandResult<Vec<&'static Kind>> {
    let mut kinds = sides::kinds(registry, names)?;
    kinds.retain(|kind| !names.is_empty() || !kind.versions.is_empty());
    Ok(kinds)
}

fn interrupted(error: &StoreError) -> CommandError {
    database::interrupted(
        error,
        "run the same command again: what is converted stays so, and it goes on",
    )
}

fn render(converted: &[Converted], args: &ConvertArgs) -> CommandResult<String> {
    if args.output != Form::Table {
        return document(&converted, args.output);
    }
    let rows = converted.iter().map(|kind| {
        let numbers = [kind.rows, kind.converted, kind.superseded, kind.refused].map(|number| number.to_string());
        [vec![kind.kind.to_owned()], numbers.to_vec()].concat()
    });
    let done = if args.dry_run {
        "would be converted"
    } else {
        "converted"
    };
    let mut text = table(&["kind", "rows", done, "changed meanwhile", "refused"], rows);
    let refusals: Vec<&Refusal> = converted.iter().flat_map(|kind| &kind.refusals).collect();
    if !refusals.is_empty() {
        let rows = refusals.iter().map(|refusal| {
            let name = match refusal.namespace.as_str() {
                "" => refusal.name.clone(),
                namespace => format!("{namespace}/{}", refusal.name),
            };
            let Refusal { group_ver, uid, .. } = refusal;
            let [kind, path, reason] = [refusal.kind, &refusal.path, &refusal.reason].map(str::to_owned);
            vec![kind, name, uid.clone(), group_ver.clone(), path, reason]
        });
        text.push('\n');
        text.push_str(&table(&["kind", "object", "uid", "version", "path", "reason"], rows));
    }
    Ok(text)
}

fn judge(converted: &[Converted]) -> CommandResult {
    let superseded: u64 = converted.iter().map(|kind| kind.superseded).sum();
    if superseded > 0 {
        say::note(format_args!(
            "{superseded} rows were changed meanwhile and left alone: run the command again."
        ));
    }
    let refused: u64 = converted.iter().map(|kind| kind.refused).sum();
    let named: usize = converted.iter().map(|kind| kind.refusals.len()).sum();
    match refused {
        0 => Ok(()),
        _ => Err(CommandError::failure(format_args!(
            "{refused} rows stay in another version, which is not safe to drop; {named} of them are named above"
        ))
        .hint(
            "`kindex purge` removes rows that nobody needs; a function in crds.toml can convert what stands in the path",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{DataDirArg, DatabaseArg, StoreArgs};

    #[test]
    fn a_row_that_stays_is_named_with_its_path_and_reason() {
        let args = ConvertArgs {
            kinds: Vec::new(),
            dry_run: false,
            rows_per_second: None,
            output: Form::Table,
            store: StoreArgs {
                config: None,
                data_dir: DataDirArg { data_dir: ".".into() },
                database: DatabaseArg { database: None },
            },
        };
        let refusal = Refusal {
            kind: "Trial",
            namespace: "prod".to_owned(),
            name: "a".to_owned(),
            uid: "u1".to_owned(),
            group_ver: "g/v1".to_owned(),
            path: "spec.hours".to_owned(),
            reason: "not a number".to_owned(),
        };
        let converted = [Converted {
            kind: "Trial",
            rows: 9,
            converted: 7,
            superseded: 0,
            refused: 1,
            refused_versions: [("g/v1".to_owned(), 1)].into(),
            refusals: vec![refusal],
        }];
        let text = render(&converted, &args).expect("tables");
        let lines: Vec<String> = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(lines[1], "Trial 9 7 0 1");
        assert_eq!(lines[4], "Trial prod/a u1 g/v1 spec.hours not a number");
        let judged = judge(&converted).expect_err("one stays");
        assert!(
            judged.to_string().contains("1 rows stay in another version"),
            "{judged}"
        );
    }
}
