//! `kindex purge`: permanently deletes rows that the retention rules of crds.toml allow to be removed.

use kindex_maintenance::purge::{Mode, Options, Purged, purge};
use kindex_model::kind::{Kind, Registry, Retention};
use kindex_store::StoreError;

use crate::cli::{Form, PurgeArgs};
use crate::error::{CommandError, CommandResult, chain};
use crate::output::{document, table};
use crate::platform::Platform;
use crate::progress::Bar;
use crate::{database, say, sides};

/// Goes through kind after kind and prints what went.
pub async fn run(platform: &Platform, args: &PurgeArgs) -> CommandResult {
    let registry = &platform.registry;
    let rules = rules(registry, &args.kinds)?;
    let store = sides::store(registry, &args.store)?;
    if args.dry_run {
        database::outlasting(&store).await?;
    } else {
        // An older program made no table for the texts before a conversion, which go with their rows.
        let prepared = store.prepare().await;
        prepared.map_err(|error| CommandError::failure(chain(&error)))?;
    }
    let bar = Bar::new();
    let mut purged = Vec::new();
    for (kind, rule) in rules {
        let gone = purge(store.as_ref(), kind, rule, &options(platform, kind, args), &bar).await;
        purged.push(gone.map_err(|error| interrupted(&error))?);
    }
    store.close().await;
    if !purged.is_empty() || args.output != Form::Table {
        say::print(render(&purged, args)?)?;
    }
    purged.iter().filter_map(skipped).for_each(say::note);
    if purged.is_empty() {
        say::note(format_args!(
            "No kind has a retention rule: [kinds.X.retention] in crds.toml makes one."
        ));
    }
    Ok(())
}

/// What the flags ask for, of a kind that may have a cleanup.
fn options(platform: &Platform, kind: &Kind, args: &PurgeArgs) -> Options {
    let mut cleaned_up = platform.cleanups.all().map(|(kind, _)| kind);
    Options {
        mode: if args.dry_run { Mode::DryRun } else { Mode::Remove },
        has_outside: cleaned_up.any(|other| (other.group, other.name) == (kind.group, kind.name)),
        has_deletion: args.deletion,
        ..Options::default()
    }
}

/// The kinds with a rule; one that is named must have one.
fn rules(registry: &Registry, names: &[String]) -> CommandResult<Vec<(&'static Kind, &'static Retention)>> {
    let kinds = sides::kinds(registry, names)?;
    if let Some(kind) = kinds.iter().find(|kind| kind.retention.is_none() && !names.is_empty()) {
        return Err(
            CommandError::usage(format_args!("{} has no retention rule", kind.name)).hint(format_args!(
                "[kinds.{}.retention] in crds.toml makes one: keep_days, keep_last_per_namespace, states",
                kind.name
            )),
        );
    }
    let with_rule = |kind: &'static Kind| kind.retention.as_ref().map(|rule| (kind, rule));
    Ok(kinds.into_iter().filter_map(with_rule).collect())
}

fn interrupted(error: &StoreError) -> CommandError {
    database::interrupted(
        error,
        "run the same command again: what is gone stays gone, and it goes on",
    )
}

/// What is said of archived objects that stay although the rule lets them go.
fn skipped(purged: &Purged) -> Option<String> {
    (purged.skipped > 0).then(|| {
        format!(
            "note: archived objects of {} that are not deleted: {}. Somebody began to use them or changed them, or \
             their texts cannot be read, which `kindex verify` shows.",
            purged.kind, purged.skipped
        )
    })
}

fn render(purged: &[Purged], args: &PurgeArgs) -> CommandResult<String> {
    if args.output != Form::Table {
        return document(&purged, args.output);
    }
    let rows = purged.iter().map(|kind| {
        let time = |time: Option<jiff::Timestamp>| time.map_or("-".to_owned(), |time| time.to_string());
        vec![
            kind.kind.to_owned(),
            kind.rule.clone(),
            kind.deleted.to_string(),
            kind.evicted.to_string(),
            kind.requested.to_string(),
            time(kind.oldest),
            time(kind.newest),
        ]
    });
    let [deleted, archived, requested] = match args.dry_run {
        true => ["deleted, would go", "archived, would go", "archived, would be deleted"],
        false => ["deleted, gone", "archived, gone", "archived, being deleted"],
    };
    let heads = ["kind", "rule", deleted, archived, requested, "oldest", "newest"];
    Ok(table(&heads, rows))
}

#[cfg(test)]
mod tests {
    use kindex_deletion::cleanup::{Answer, Cleanup, CleanupError, Cleanups, Deleted, async_trait};
    use kindex_generated::kinds::model;

    use super::*;

    /// All that are deleted may go.
    static MODELS: Kind = Kind {
        retention: Some(Retention {
            keep_days: None,
            keep_last_per_namespace: None,
            state_column: None,
            states: &[],
            evicted: false,
        }),
        ..model::KIND
    };
    /// These alone have a cleanup.
    static OTHERS: Kind = Kind {
        name: "Other",
        ..model::KIND
    };
    static KINDS: [&Kind; 1] = [&MODELS];

    /// Nothing is ever left outside.
    struct Nothing;

    #[async_trait]
    impl Cleanup for Nothing {
        async fn clean_up(&self, _: &Deleted) -> Result<Answer, CleanupError> {
            Ok(Answer::Gone)
        }
    }

    fn platform(cleanups: Cleanups) -> Platform {
        Platform {
            registry: Registry {
                kinds: &KINDS,
                ..kindex_generated::registry()
            },
            samples: &[],
            cleanups,
        }
    }

    fn args(dry_run: bool, database: Option<String>) -> PurgeArgs {
        PurgeArgs {
            kinds: Vec::new(),
            dry_run,
            deletion: false,
            output: Form::Table,
            store: crate::cli::StoreArgs {
                config: None,
                data_dir: crate::cli::DataDirArg { data_dir: ".".into() },
                database: crate::cli::DatabaseArg { database },
            },
        }
    }

    /// As if the same command went on there later.
    #[tokio::test]
    async fn a_dry_run_on_a_database_without_tables_says_that_it_may_be_the_wrong_one() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let database = format!("sqlite:{}", file.path().display());
        let refused = run(&platform(Cleanups::none()), &args(true, Some(database))).await;
        let said = refused.expect_err("there is no table").to_string();
        assert!(said.contains("no such table"), "{said}");
        let hint = "\n  hint: is this the right --database, and has `kindex up` run on it?";
        assert!(said.ends_with(hint), "{said}");
    }

    /// As if a flag were lost on the way, or the row of an object went before its cleanup was called.
    #[test]
    fn a_purge_follows_its_flags_and_knows_which_kinds_have_a_cleanup() {
        let cleaned_up = platform(Cleanups::none().with(&OTHERS, Nothing));
        for (kind, has_outside) in [(&MODELS, false), (&OTHERS, true)] {
            for (dry_run, mode) in [(false, Mode::Remove), (true, Mode::DryRun)] {
                for deletion in [false, true] {
                    let flags = PurgeArgs {
                        deletion,
                        ..args(dry_run, None)
                    };
                    let found = options(&cleaned_up, kind, &flags);
                    let found = (found.mode, found.has_outside, found.has_deletion);
                    assert_eq!(found, (mode, has_outside, deletion), "{}", kind.name);
                }
            }
        }
    }

    #[test]
    fn a_dry_run_says_what_would_go_and_by_which_rule() {
        let purged = [Purged {
            kind: "Job",
            rule: "keep 30 days; deleted".to_owned(),
            deleted: 12,
            evicted: 0,
            requested: 3,
            skipped: 2,
            oldest: jiff::Timestamp::from_second(0).ok(),
            newest: None,
        }];
        let note = skipped(&purged[0]).expect("two stay");
        assert!(note.contains("of Job that are not deleted: 2."), "{note}");
        let none = Purged {
            skipped: 0,
            ..purged[0].clone()
        };
        assert_eq!(skipped(&none), None);
        let text = render(&purged, &args(true, None)).expect("a table");
        let (head, line) = text.split_once('\n').expect("two lines");
        let columns = "DELETED, WOULD GO   ARCHIVED, WOULD GO   ARCHIVED, WOULD BE DELETED";
        assert!(head.contains(columns), "{head}");
        assert_eq!(
            line.split_whitespace().collect::<Vec<_>>().join(" "),
            "Job keep 30 days; deleted 12 0 3 1970-01-01T00:00:00Z -"
        );
        assert!(
            render(&purged, &args(false, None))
                .expect("a table")
                .contains("DELETED, GONE")
        );
    }
}
