//! What a service is: a part of Kindex that runs until it is stopped. It has a command of its own, and `kindex up` may
//! run it beside the ingester. Knows none of them.

use std::net::SocketAddr;
use std::sync::Arc;

use futures::future::BoxFuture;
use kindex_commands::client::Access;
use kindex_commands::data_dir::DataDir;
use kindex_commands::database::OpenedStorage;
use kindex_commands::error::{CommandError, CommandResult};
use kindex_commands::install::ClusterOwner;
use kindex_commands::platform::Platform;
use kube::Client;
use tokio_util::sync::CancellationToken;

use crate::health::Health;
use crate::limits::LimitArgs;

/// What a service works on: for its command as flags and files say, in `kindex up` that of the whole run.
pub(crate) struct Context<'a> {
    /// The kinds, and what the program does for them.
    pub(crate) platform: &'a Platform,
    /// The cluster.
    pub(crate) access: Access,
    /// The database.
    pub(crate) storage: OpenedStorage,
    /// The kinds that no cluster has, for all of its parts, since each API follows every change; `None` where there are
    /// none, or no database.
    pub(crate) sql_only: Option<Client>,
    /// Where it registers what it counts.
    pub(crate) metrics: prometheus::Registry,
    /// What its listeners may take.
    pub(crate) limits: LimitArgs,
    /// Where the whole run keeps its files; none for a command that keeps nothing.
    pub(crate) data_dir: Option<DataDir>,
}

/// A service that has read what it was told and taken its addresses.
///
/// # Expected flow
/// Its command calls [`for_command`](Self::for_command), takes the address of its health, and then calls
/// [`start`](Self::start). `kindex up` calls [`check`](Self::check) and later [`for_up`](Self::for_up) for every
/// service, and starts those that there are.
///
/// # Assumptions
/// Only `start` spawns anything. Its command takes the addresses before anything is at work, so whatever is wrong ends
/// the process with nothing at work. In `kindex up`, the cluster and the ingester are at work by then, and no service.
pub(crate) trait Service: Sized + 'static {
    /// The name of its command.
    const NAME: &'static str;

    /// The flags of its command, whose comment is the command's help.
    type Args: clap::Args;

    /// Its flags of `kindex up`.
    type UpArgs: clap::Args;

    /// Where `/healthz`, `/readyz` and `/metrics` of its command are.
    fn health_addr(args: &Self::Args) -> SocketAddr;

    /// The service of its command, with the addresses that it has taken.
    ///
    /// # Errors
    /// What the flags, files and addresses have wrong.
    async fn for_command(platform: &Platform, args: Self::Args) -> CommandResult<Self>;

    /// Refuses flags of `kindex up` that are wrong in this cluster whatever they meet there, before the run makes
    /// anything.
    ///
    /// # Errors
    /// What the flags have wrong.
    fn check(_platform: &Platform, _owner: ClusterOwner, _args: &Self::UpArgs) -> CommandResult {
        Ok(())
    }

    /// The service of `kindex up`, with the addresses that it has taken; `None` where it has no part in that.
    ///
    /// # Errors
    /// As [`for_command`](Self::for_command).
    async fn for_up(_context: &Context<'_>, _args: Self::UpArgs) -> CommandResult<Option<Self>> {
        Ok(None)
    }

    /// What people do with it; `None` where they do nothing.
    ///
    /// # Errors
    /// An address that the system does not tell.
    fn announcement(&self) -> CommandResult<Option<Announcement>> {
        Ok(None)
    }

    /// Begins to work.
    ///
    /// # Errors
    /// What only shows now, with nothing at work.
    fn start(self, stop: CancellationToken) -> CommandResult<Running>;
}

/// Where a service is, and how it is used.
pub(crate) struct Announcement {
    /// Its address.
    pub(crate) url: String,
    /// What can be typed in another terminal.
    pub(crate) step: String,
}

/// A service at work.
pub(crate) struct Running {
    /// Where it registered what it counts: that of its context.
    pub(crate) metrics: prometheus::Registry,
    /// Whether it does its work; `None` where somebody beside it answers for it.
    pub(crate) health: Option<Arc<dyn Health>>,
    /// Ends once it was told to stop and what was under way has ended.
    pub(crate) until_stopped: BoxFuture<'static, ()>,
    /// Why its command must stop, where that only shows while it works; `None` where nothing can.
    pub(crate) failure: Option<BoxFuture<'static, CommandError>>,
}
