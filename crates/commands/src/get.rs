//! `kindex get`: what SQL holds of a kind, live, archived and deleted.

use jiff::Timestamp;
use kindex_model::kind::{Kind, Platform, Registry};
use kindex_model::object::Uid;
use kindex_query::{LabelSelector, Reach, Select, Stored};
use kindex_store::{AsOf, History, ListAt, MetadataStorage, Objects};

use crate::cli::{AnswerArgs, GetArgs};
use crate::error::{CommandError, CommandResult, chain};
use crate::listing::{self, failed};
use crate::moment::Time;
use crate::own_version;
use crate::say;
use crate::show;
use crate::target::{Target, kind_and_name, with_history};

/// Reads the rows and prints them.
pub async fn run(registry: &Registry, args: &GetArgs, store: &dyn MetadataStorage) -> CommandResult {
    let platform = &registry.platform;
    let (kind, name) = kind_and_name(registry, &args.kind, args.name.as_deref())?;
    if args.at.at.is_some() {
        with_history(registry, kind)?;
    }
    if name.is_some() && args.all_namespaces {
        return Err(CommandError::usage("one object has one namespace").hint("say -n NAMESPACE, or leave out the name"));
    }
    if let Some(uid) = &args.uid {
        if name.is_some() || !args.filter.is_empty() {
            return Err(CommandError::usage("a uid names one object").hint("leave out the name and all selectors"));
        }
        let row = by_uid(kind, &Uid::from(uid.as_str()), store).await?;
        let row = own_version::row(platform, kind, row);
        say::print(show::object(kind, &row, args.answer.output, Timestamp::now())?)?;
        return Ok(());
    }
    let Some(name) = name else {
        if let Some(Time(time)) = args.at.at {
            return list_at(platform, kind, args, time, store).await;
        }
        return listing::answer(platform, select(kind, args)?, &args.answer, store).await;
    };
    let AnswerArgs {
        continue_token,
        count,
        explain,
        output,
        ..
    } = &args.answer;
    if !args.filter.is_empty() || continue_token.is_some() || *count || *explain {
        return Err(CommandError::usage("one object is shown by its name alone")
            .hint("leave out the name, or the selectors, conditions, --sort, --continue, --count and --explain"));
    }
    let namespace = args.namespace.as_deref().unwrap_or("default");
    let row = one(&Target::new(kind, namespace, name), args, store).await?;
    let row = own_version::row(platform, kind, row);
    say::print(show::object(kind, &row, *output, Timestamp::now())?)?;
    Ok(())
}

/// The objects that were there at a moment. Conditions are about the present, and so is every key.
async fn list_at(
    platform: &Platform,
    kind: &'static Kind,
    args: &GetArgs,
    time: Timestamp,
    store: &dyn History,
) -> CommandResult {
    let answer = &args.answer;
    if !args.filter.is_empty() || args.deleted || answer.count || answer.explain {
        return Err(
            CommandError::usage("the past is listed by namespace alone, without deleted objects")
                .hint("leave out the selectors, conditions, --sort, --deleted, --count and --explain"),
        );
    }
    let wanted = ListAt {
        time,
        namespace: args.namespace.clone(),
        limit: answer.limit.unwrap_or_default(),
    };
    let page = store.list_at(kind, &wanted, answer.continue_token.as_deref()).await;
    listing::print(platform, kind, page.map_err(|error| failed(&error))?, answer.output)
}

/// The object of a uid; says on stderr what has become of one whose name another object took.
async fn by_uid(kind: &'static Kind, uid: &Uid, store: &dyn Objects) -> CommandResult<Stored> {
    let found = store.get_by_id(kind, uid).await.map_err(|error| failed(&error))?;
    let row = found.ok_or_else(|| CommandError::failure(format_args!("{} with uid {uid}: not stored", kind.name)))?;
    if let (Some(by), Some(time)) = (&row.replaced_by, row.delete_time) {
        say::note(format_args!(
            "replaced at {time}: {by} took its name in the cluster\n\
             help: `kindex restore {} --uid {uid} --as NEW-NAME` creates it again under another name",
            kind.singular
        ));
    }
    Ok(row)
}

async fn one(target: &Target<'_>, args: &GetArgs, store: &dyn MetadataStorage) -> CommandResult<Stored> {
    let Target { kind, namespace, name } = *target;
    if let Some(Time(time)) = args.at.at {
        let found = store.version_at(kind, namespace, name, time).await;
        return stored_as_of(target, found.map_err(|error| failed(&error))?, time);
    }
    let found = if args.deleted {
        let rows = store.rows_of_name(kind, namespace, name).await;
        rows.map(|rows| rows.into_iter().next())
    } else {
        store.get_by_name(kind, namespace, name).await
    };
    found.map_err(|error| failed(&error))?.ok_or_else(|| {
        CommandError::failure(format_args!("{target}: not stored"))
            .hint("another namespace? name it with -n; a deleted object is shown with --deleted")
    })
}

/// What stood under the name then; the reason where nothing did.
pub(crate) fn stored_as_of(target: &Target<'_>, found: AsOf, time: Timestamp) -> CommandResult<Stored> {
    match found {
        AsOf::Stored(stored) => Ok(stored),
        AsOf::NotYet { first } => Err(
            CommandError::failure(format_args!("{target}: not stored yet at {time}"))
                .hint(format_args!("the first version that is kept was seen at {first}")),
        ),
        AsOf::Deleted { at, last } => {
            let version = last.object.metadata.resource_version;
            let deleted = CommandError::failure(format_args!("{target}: deleted at {at}, and not there at {time}"));
            Err(deleted.hint(format_args!(
                "its last version was {version}; ask for a time before its deletion"
            )))
        }
        AsOf::Unknown => {
            Err(CommandError::failure(format_args!("{target}: never stored"))
                .hint("another namespace? name it with -n"))
        }
    }
}

/// The query that the flags ask for. Without `--sort` rows come by namespace and name where the key on those
/// serves the query, and else by uid: that is how a key holds rows that are equal in it.
fn select(kind: &'static Kind, args: &GetArgs) -> CommandResult<Select> {
    let mut select = Select::all(kind);
    let refused = |error: &dyn std::error::Error| CommandError::usage(chain(error));
    for selector in &selectors(&args.filter.selector)? {
        let filtered = select.filter_by_labels(selector);
        filtered.map_err(|error| CommandError::usage(chain(&error)))?;
    }
    for text in &args.filter.field_selector {
        select.filter_by_fields(text).map_err(|error| refused(&error))?;
    }
    for text in &args.filter.conditions {
        select.filter_by(text).map_err(|error| refused(&error))?;
    }
    for text in &args.filter.sort {
        select.order_by(text).map_err(|error| refused(&error))?;
    }
    let order: &[&str] = match select.reach() {
        Reach::InOrder | Reach::Scan(_) | Reach::Alternatives if args.filter.sort.is_empty() => match args.namespace {
            Some(_) => &["name"],
            None => &["namespace", "name"],
        },
        Reach::InOrder | Reach::Scan(_) | Reach::Alternatives | Reach::Key(_) | Reach::Label | Reach::Sort(_) => &[],
    };
    for column in order {
        select.order_by(column).map_err(|error| refused(&error))?;
    }
    if let Some(namespace) = &args.namespace {
        select.in_namespace(namespace);
    }
    if !args.deleted {
        select.without("delete_time");
    }
    Ok(select)
}

/// Label selectors as they were typed, all of which must match.
pub(crate) fn selectors(texts: &[String]) -> CommandResult<Vec<LabelSelector>> {
    let parse = |text: &String| {
        LabelSelector::parse(text)
            .map_err(|error| CommandError::usage(chain(&error)).hint(format_args!("in the selector {text:?}")))
    };
    texts.iter().map(parse).collect()
}
