//! `kindex runs key`: API keys, in the folder of the service, which may be at work meanwhile.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use jiff::Timestamp;
use kindex_commands::error::{CommandError, CommandResult, chain};
use kindex_commands::output::table;
use kindex_commands::say;
use kindex_runs::domain::{ProjectName, nanos, timestamp};
use kindex_runs::keys::{Key, KeyStore, NewKey, Scopes, Secret};
use kindex_runs::service::Folder;
use kindex_runs::validate;
use kindex_runs::wire::v1::ProjectId;

use super::DATA_DIR;

const DAY_NS: i64 = 24 * 3600 * 1_000_000_000;

/// The commands about keys.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Make a key and print its secret, which is shown this once.
    #[command(after_help = "\
Examples:
  kindex runs key create --user ana --project vision --scopes ingest,query
  kindex runs key create --user ops --scopes admin --expires-days 30")]
    Create(CreateArgs),
    /// Show all keys, without their secrets.
    #[command(after_help = "Examples:\n  kindex runs key list")]
    List(KeysArgs),
    /// Revoke a key, for good. A server that is at work refuses it within a second.
    #[command(after_help = "Examples:\n  kindex runs key revoke 1f2e3d4c")]
    Revoke(RevokeArgs),
}

/// Where the keys are.
#[derive(Clone, Debug, Args)]
pub(crate) struct KeysArgs {
    /// Directory of the runs service.
    #[arg(long, env = "KINDEX_RUNS_DATA_DIR", value_name = "DIR", default_value = DATA_DIR)]
    data_dir: PathBuf,
}

/// Flags of `kindex runs key create`.
#[derive(Clone, Debug, Args)]
pub(crate) struct CreateArgs {
    /// Where the keys are.
    #[command(flatten)]
    place: KeysArgs,

    /// Who gets it: the user of the runs that it opens.
    #[arg(long, value_name = "NAME")]
    user: String,

    /// The only project that it is for; default: all of them.
    #[arg(long, value_name = "PROJECT")]
    project: Option<String>,

    /// What it allows: ingest, query and admin, with commas between them.
    #[arg(long, value_name = "SCOPES")]
    scopes: Scopes,

    /// Expires after this many days; default: never.
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u16).range(1..))]
    expires_days: Option<u16>,
}

/// Flags of `kindex runs key revoke`.
#[derive(Clone, Debug, Args)]
pub(crate) struct RevokeArgs {
    /// Where the keys are.
    #[command(flatten)]
    place: KeysArgs,

    /// The key, as `kindex runs key list` names it.
    id: String,
}

impl KeyCommand {
    pub(super) async fn run(self) -> CommandResult {
        let now = nanos(Timestamp::now()).unwrap_or_default();
        match self {
            Self::Create(args) => create(args, now).await,
            Self::List(place) => list(&place, now).await,
            Self::Revoke(args) => revoke(&args, now).await,
        }
    }
}

async fn create(args: CreateArgs, now: i64) -> CommandResult {
    let project = args.project.map(|value| checked(&value)).transpose()?;
    let of = NewKey {
        user: args.user,
        project,
        scopes: args.scopes,
        expires_at: args.expires_days.map(|days| now + i64::from(days) * DAY_NS),
    };
    let secret = Secret::new(rand::random());
    let key = Key::new(of, &secret, rand::random(), now);
    let store = open(&args.place.data_dir).await?;
    store
        .insert(&key)
        .await
        .map_err(|error| CommandError::failure(chain(&error)))?;
    say::line(secret.reveal())?;
    say::note(format_args!(
        "key {} for {}; the secret is not stored and not shown again",
        key.id, key.of.user
    ));
    Ok(())
}

/// Makes the text of a file an API key that allows everything, unless it was made one before: what was revoked since
/// stays revoked.
///
/// # Errors
/// A file that cannot be read or holds a key that could be guessed, and a folder that cannot be used.
pub(super) async fn ensure_admin(folder: &Path, file: &Path) -> CommandResult {
    let text = std::fs::read_to_string(file)
        .map_err(|error| CommandError::usage(format_args!("--admin-key-file {}: {error}", file.display())))?;
    let secret = Secret::given(&text).map_err(|error| {
        CommandError::usage(format_args!("--admin-key-file {}: {error}", file.display()))
            .hint("for example: openssl rand -hex 32")
    })?;
    let of = NewKey {
        user: "admin".to_owned(),
        project: None,
        scopes: Scopes::ALL,
        expires_at: None,
    };
    let now = nanos(Timestamp::now()).unwrap_or_default();
    let key = Key::new(of, &secret, rand::random(), now);
    let failed = |error| CommandError::failure(chain(&error));
    let store = open(folder).await?;
    let known = store.all().await.map_err(failed)?;
    if known.iter().all(|known| known.hash != key.hash) {
        store.insert(&key).await.map_err(failed)?;
    }
    Ok(())
}

fn checked(project: &str) -> CommandResult<ProjectName> {
    let project = ProjectId {
        value: project.to_owned(),
    };
    validate::project(Some(&project)).map_err(|refusal| CommandError::usage(refusal.message))
}

async fn list(place: &KeysArgs, now: i64) -> CommandResult {
    let keys = open(&place.data_dir).await?.all().await;
    let keys = keys.map_err(|error| CommandError::failure(chain(&error)))?;
    let rows = keys.iter().map(|key| {
        let state = match (key.revoked_at, key.of.expires_at) {
            (Some(_), _) => "revoked",
            (None, Some(end)) if end <= now => "expired",
            (None, _) => "valid",
        };
        let expires = key
            .of
            .expires_at
            .map_or_else(|| "-".to_owned(), |end| timestamp(end).to_string());
        vec![
            key.id.clone(),
            key.of.user.clone(),
            key.of
                .project
                .as_ref()
                .map_or("*", |project| project.as_str())
                .to_owned(),
            key.of.scopes.to_string(),
            state.to_owned(),
            timestamp(key.created_at).to_string(),
            expires,
        ]
    });
    let heads = ["id", "user", "project", "scopes", "state", "created", "expires"];
    say::print(table(&heads, rows))
}

async fn revoke(args: &RevokeArgs, now: i64) -> CommandResult {
    let store = open(&args.place.data_dir).await?;
    let revoked = store.revoke(&args.id, now).await;
    match revoked.map_err(|error| CommandError::failure(chain(&error)))? {
        true => say::line(format_args!("{} is revoked", args.id)),
        false => Err(CommandError::failure(format_args!("there is no valid key {}", args.id))
            .hint("kindex runs key list shows all keys")),
    }
}

async fn open(folder: &Path) -> CommandResult<KeyStore> {
    let failed = |error: &dyn std::error::Error| {
        CommandError::failure(chain(error)).hint("--data-dir names the directory of the runs service")
    };
    let folder = Folder::open(folder).map_err(|error| failed(&error))?;
    KeyStore::open(&folder.keys()).await.map_err(|error| failed(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn keys(folder: &Path) -> Vec<Key> {
        open(folder).await.expect("a folder").all().await.expect("keys")
    }

    #[tokio::test]
    async fn the_key_of_a_file_is_made_once_and_stays_revoked() {
        let parent = tempfile::tempdir().expect("a folder");
        let (folder, file) = (parent.path().join("runs"), parent.path().join("key"));
        std::fs::write(&file, format!("{}\n", "k".repeat(32))).expect("written");
        ensure_admin(&folder, &file).await.expect("made");
        ensure_admin(&folder, &file).await.expect("known");
        let [key] = &keys(&folder).await[..] else {
            panic!("not one key");
        };
        assert_eq!((key.of.scopes, key.revoked_at), (Scopes::ALL, None));
        assert!(
            open(&folder)
                .await
                .expect("a folder")
                .revoke(&key.id, 5)
                .await
                .expect("revoked")
        );
        ensure_admin(&folder, &file).await.expect("known");
        assert_eq!(keys(&folder).await[0].revoked_at, Some(5));
    }

    #[tokio::test]
    async fn a_file_whose_key_could_be_guessed_makes_none() {
        let parent = tempfile::tempdir().expect("a folder");
        let (folder, file) = (parent.path().join("runs"), parent.path().join("key"));
        for text in [None, Some("short\n")] {
            if let Some(text) = text {
                std::fs::write(&file, text).expect("written");
            }
            let error = ensure_admin(&folder, &file).await.expect_err("refused").to_string();
            assert!(error.contains("--admin-key-file"), "{error}");
            assert!(!folder.exists());
        }
    }
}
