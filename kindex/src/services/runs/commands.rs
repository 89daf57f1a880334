//! The commands beside `serve`.

use clap::Subcommand;
use kindex_commands::error::CommandResult;

use super::key::KeyCommand;
use super::questions::{self, Question};
use crate::services::row::Group;

/// The commands about runs.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// Make, list and revoke API keys, where the service keeps its files.
    #[command(subcommand)]
    Key(KeyCommand),
    /// Ask a running service.
    #[command(flatten)]
    Question(Question),
}

impl Group for RunsCommand {
    const ABOUT: &'static str = "Serve runs of training jobs, and manage what is kept of them";

    async fn run(self) -> CommandResult {
        match self {
            Self::Key(key) => key.run().await,
            Self::Question(question) => questions::run(&question).await,
        }
    }
}
