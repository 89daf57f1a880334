//! `kindex move`: lets a field of an object name another object, with the references in the order that keeps both
//! targets.

use kindex_api::operations::{Caller, Moved, ObjectKey, Operations, Refusal, RightsOf};
use kindex_model::kind::{Kind, Registry};

use crate::cli::{Form, MoveArgs};
use crate::error::{CommandError, CommandResult, chain};
use crate::target::{Target, kind_and_name};
use crate::{output, say, sides};

/// Moves, and prints what came of it.
pub(crate) async fn run(registry: &Registry, args: &MoveArgs) -> CommandResult {
    let to_namespace = args.to_namespace.as_ref().unwrap_or(&args.namespace);
    let holder = named(registry, &args.object, &args.namespace)?;
    let to = named(registry, &args.to, to_namespace)?;
    let store = sides::store(registry, &args.sides.store)?;
    let access = sides::answering(sides::cluster(&args.sides).await?).await?;
    let operations = Operations::new(*registry, access.behind(), store.clone(), RightsOf::Server);
    let operations = operations.map_err(|error| CommandError::usage(chain(&error)))?;
    let reference = args.reference.as_deref();
    let moved = operations
        .move_holder(&Caller::default(), &key(&holder), reference, &key(&to), args.dry_run)
        .await;
    drop(operations);
    store.close().await;
    let moved = moved.map_err(|refusal| failed(refusal, holder.kind))?;
    say::print(match args.output {
        Form::Json | Form::Yaml => output::document(&moved, args.output)?,
        Form::Table => sentence(&moved, args.dry_run),
    })
}

fn named<'a>(registry: &Registry, text: &'a str, namespace: &'a str) -> CommandResult<Target<'a>> {
    let (kind, name) = kind_and_name(registry, text, None)?;
    let name = name.ok_or_else(|| CommandError::usage(format_args!("which {}?", kind.name)).hint("say KIND/NAME"))?;
    Ok(Target::new(kind, namespace, name))
}

fn key<'a>(target: &Target<'a>) -> ObjectKey<'a> {
    ObjectKey {
        resource: target.kind.into(),
        namespace: target.namespace,
        name: target.name,
    }
}

fn failed(refusal: Refusal, holder: &Kind) -> CommandError {
    match refusal.code {
        400 => CommandError::usage(refusal),
        404 => CommandError::failure(refusal)
            .hint("another namespace? name it with -n, that of the target with --to-namespace"),
        409 => CommandError::failure(refusal).hint("nothing was moved; move it once nothing of it is being deleted"),
        422 => CommandError::failure(refusal).hint(format_args!(
            "the cluster does not take the change; `kubectl explain {}` shows what the field may be",
            holder.plural
        )),
        _ => CommandError::failure(refusal),
    }
}

fn sentence(moved: &Moved, dry_run: bool) -> String {
    let Moved {
        holder, path, from, to, ..
    } = moved;
    let names = if dry_run { "would name" } else { "names" };
    match from {
        _ if moved.unchanged => format!("{holder}: {path} names {to} already\n"),
        Some(from) => format!("{holder}: {path} {names} {to} instead of {from}\n"),
        None => format!("{holder}: {path} {names} {to}\n"),
    }
}
