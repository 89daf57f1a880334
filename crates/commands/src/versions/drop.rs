//! `kindex versions drop`: a version that nothing is stored in leaves `status.storedVersions`, and the lock notes it.

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::path::Path;

use kindex_codegen::lock::dropped;
use kindex_kube_client::Identity;
use kindex_migrator::cluster::Cluster;
use kindex_migrator::cluster::prune::{Pruned, prune};
use kindex_migrator::cluster::survey::identity;
use kindex_migrator::verdict::Side;
use kindex_model::kind::{Kind, Registry};

use super::sources::{KindVersions, Sources, resource};
use crate::cli::DropVersionArgs;
use crate::error::{CommandError, CommandResult, chain};
use crate::say;
use crate::target::kind_of;

/// How often a decision is made again because somebody else wrote the definition meanwhile.
const ATTEMPTS_MAX: u32 = 5;

/// Decides, prunes under the condition that nothing changed since, and notes it.
pub(super) async fn run(registry: &Registry, args: &DropVersionArgs) -> CommandResult {
    let kind = kind_of(registry, &args.kind)?;
    if args.version == kind.version {
        let message = format!("{} is the own version of kind {}", args.version, kind.name);
        return Err(CommandError::usage(message).hint("give the kind another version first"));
    }
    args.lock.as_deref().map_or(Ok(()), check_readable)?;
    let sources = Sources::open(registry, &args.sides).await?;
    let dropped = async {
        // Before anything is changed: who may not ask for it gets no half of a drop.
        let cluster = match &sources.cluster {
            Side::Answered(cluster) => uid(cluster).await?,
            Side::LeftOut | Side::Unasked => None,
        };
        let remaining = drop_version(registry, kind, &args.version, &sources).await?;
        sources.drop_kept(kind, &args.version).await?;
        Ok((remaining, cluster))
    };
    let dropped: CommandResult<_> = dropped.await;
    sources.close().await;
    let (remaining, cluster) = dropped?;
    let listed = match remaining {
        Some(remaining) => format!("status.storedVersions is [{}]", remaining.join(", ")),
        None => format!("status.storedVersions does not list {}", args.version),
    };
    say::line(format_args!("{}: {listed}", kind.name))?;
    note(kind, args, cluster.as_deref())
}

/// What remains in the list; `None` where the version was not in it.
async fn drop_version(
    registry: &Registry,
    kind: &'static Kind,
    version: &str,
    sources: &Sources,
) -> CommandResult<Option<Vec<String>>> {
    for _ in 0..ATTEMPTS_MAX {
        let surveys = sources.surveys().await?;
        let versions = sources.of(kind, &surveys).await?;
        check_known(registry, &versions, version)?;
        let reasons: Vec<String> = versions.against(version).iter().map(ToString::to_string).collect();
        if !reasons.is_empty() {
            let message = format!("{} {version} is not safe to drop: {}", kind.name, reasons.join("; "));
            return Err(CommandError::failure(message)
                .hint("nothing was changed; docs/src/how-to/drop-a-version.md says what to do about each reason"));
        }
        let (Side::Answered(cluster), Some(survey)) = (&sources.cluster, versions.survey()) else {
            return Ok(None);
        };
        match prune(cluster, &resource(kind), survey, version).await {
            Ok(Pruned::Done(remaining)) => return Ok(Some(remaining)),
            Ok(Pruned::NotListed) => return Ok(None),
            Ok(Pruned::Overtaken) => say::note("note: the definition changed meanwhile; deciding again"),
            Err(error) => {
                return Err(CommandError::failure(chain(&error))
                    .hint("may you patch customresourcedefinitions/status of this cluster?"));
            }
        }
    }
    let name = kind.crd_name();
    Err(CommandError::failure(format_args!(
        "{name} changed {ATTEMPTS_MAX} times while it was decided on"
    ))
    .hint("nothing was changed; who else writes its status?"))
}

/// A version that nobody ever had is a typing error.
fn check_known(registry: &Registry, versions: &KindVersions<'_>, version: &str) -> CommandResult {
    let kind = versions.kind;
    let mut ever = registry.declared.iter().filter(|declared| declared.kind == kind.name);
    let known = versions.versions();
    if ever.any(|declared| declared.version == version) || known.iter().any(|name| name == version) {
        return Ok(());
    }
    Err(
        CommandError::usage(format_args!("kind {} never had a version {version}", kind.name))
            .hint(format_args!("its versions are {}", known.join(", "))),
    )
}

async fn uid(cluster: &Cluster) -> CommandResult<Option<String>> {
    let hint = "may you get the namespace kube-system?";
    match identity(cluster).await {
        Ok(Identity::Known(uid)) => Ok(Some(uid.to_string())),
        Ok(Identity::Absent) => Ok(None),
        Ok(Identity::Hidden) => {
            let failure =
                "the API server does not let you read which cluster it is, which the note of the version names";
            Err(CommandError::failure(failure).hint(hint))
        }
        Err(error) => Err(CommandError::failure(chain(&error)).hint(hint)),
    }
}

/// A lock that can be read: found out before anything is changed.
fn check_readable(path: &Path) -> CommandResult {
    let wrong = |why: &dyn std::fmt::Display| {
        CommandError::usage(format_args!("{}: {why}", path.display())).hint("name the schema/crds.lock with --lock")
    };
    if !path.is_file() {
        return Err(wrong(&"no such file"));
    }
    let text = read_locked(path).map_err(|error| wrong(&error))?;
    dropped::read(&text).map_err(|error| wrong(&error))?;
    Ok(())
}

fn note(kind: &Kind, args: &DropVersionArgs, cluster: Option<&str>) -> CommandResult {
    let api_version = format!("{}/{}", kind.group, args.version);
    let Some(path) = &args.lock else {
        let line = dropped::line(kind.name, &api_version, cluster);
        return say::line(format_args!(
            "once no other cluster stores it, add this line to schema/crds.lock:\n{line}"
        ));
    };
    note_in(path, |text| dropped::note(text, kind.name, &api_version, cluster)).map_err(|error| {
        let line = dropped::line(kind.name, &api_version, cluster);
        CommandError::failure(format_args!("{}: {error}", path.display()))
            .hint(format_args!("the version is dropped; add this line: {line}"))
    })?;
    say::line(format_args!(
        "noted in {}; remove the version from crds.toml",
        path.display()
    ))
}

/// The text of a file that nobody is writing to.
fn read_locked(path: &Path) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    file.lock_shared()?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(text)
}

/// Changes the text of a file as one step beside other drops: each waits for the lock on the file until the one before
/// has written. The file itself is rewritten, since a lock on one that a rename replaces would hold nobody back.
fn note_in(path: &Path, noted: impl FnOnce(&str) -> String) -> std::io::Result<()> {
    let mut file = File::options().read(true).write(true).open(path)?;
    file.lock()?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    let noted = noted(&text);
    if noted == text {
        return Ok(());
    }
    // The new text is at least as long, so that no moment has an empty file.
    file.rewind()?;
    file.write_all(noted.as_bytes())?;
    file.set_len(noted.len() as u64)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_at_the_same_time_lose_no_line_of_each_other() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("crds.lock");
        std::fs::write(&path, "# head\nversion Trial a.b/v2 y=\n").expect("written");
        std::thread::scope(|scope| {
            for number in 0..16 {
                let (path, version) = (&path, format!("a.b/v1beta{number}"));
                scope.spawn(move || {
                    let noted = |text: &str| dropped::note(text, "Trial", &version, Some("u1"));
                    note_in(path, noted).expect("noted");
                });
            }
        });
        let text = std::fs::read_to_string(&path).expect("a lock");
        assert_eq!(text.matches("dropped Trial a.b/v1beta").count(), 16, "{text}");
        assert!(text.ends_with("\nversion Trial a.b/v2 y=\n"), "{text}");
    }
}
