//! `kindex versions`: in which versions objects are stored, whether an old one may be dropped, and what leads there.

mod sources;

mod show;

mod check;

mod migration;

mod convert;

mod drop;

use kindex_model::kind::Registry;

use crate::cli::{VersionsArgs, VersionsCommand};
use crate::error::CommandResult;

/// Does what was asked.
pub async fn run(registry: &Registry, args: &VersionsArgs) -> CommandResult {
    match &args.command {
        None => show::run(registry, &args.show).await,
        Some(VersionsCommand::Check(args)) => check::run(registry, args).await,
        Some(VersionsCommand::Start(args)) => migration::start(registry, args).await,
        Some(VersionsCommand::Stop(args)) => migration::stop(registry, args).await,
        Some(VersionsCommand::Convert(args)) => convert::run(registry, args).await,
        Some(VersionsCommand::Drop(args)) => drop::run(registry, args).await,
    }
}
