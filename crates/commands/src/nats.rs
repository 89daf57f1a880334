//! A NATS server on the command line: where it is and who asks, with errors for people.

use std::path::PathBuf;

use clap::Args;
use kindex_nats::{ConnectionError, Server};

use crate::error::{CommandError, chain};

/// Which server.
#[derive(Clone, Debug, Args)]
pub struct NatsArgs {
    /// The NATS server with JetStream, 2.11 or newer, as nats://HOST:PORT or tls://HOST:PORT; user and password before
    /// an @.
    #[arg(long, env = "KINDEX_NATS", value_name = "URL", hide_env_values = true)]
    nats: Option<String>,

    /// The file with the token for the NATS server; read again whenever the server is connected to.
    #[arg(long, env = "KINDEX_NATS_TOKEN_FILE", value_name = "FILE", requires = "nats")]
    nats_token_file: Option<PathBuf>,

    /// Certificates (PEM) to trust at the NATS server instead of those that the machine trusts.
    #[arg(long, env = "KINDEX_NATS_CA_FILE", value_name = "FILE", requires = "nats")]
    nats_ca_file: Option<PathBuf>,
}

impl NatsArgs {
    /// The server, where one is named.
    pub fn server(&self) -> Option<Server> {
        Some(Server {
            address: self.nats.clone()?,
            token_file: self.nats_token_file.clone(),
            ca_file: self.nats_ca_file.clone(),
        })
    }
}

/// What a person is told whose server cannot be used.
pub fn unusable(error: &ConnectionError) -> CommandError {
    let said = chain(error);
    match error {
        ConnectionError::Address { .. } => CommandError::usage(said).hint("write it as nats://HOST:PORT"),
        ConnectionError::File { .. } => {
            CommandError::usage(said).hint("--nats-token-file and --nats-ca-file name files that can be read")
        }
        ConnectionError::Refused { .. } => CommandError::usage(said).hint(
            "user and password are in the address, a token there or in the file of --nats-token-file; --nats-ca-file \
             names the certificates to trust",
        ),
        ConnectionError::Away { .. } => CommandError::failure(said).hint("does the NATS server run? --nats names it"),
        ConnectionError::NoJetStream { .. } => {
            CommandError::usage(said).hint("start it with --jetstream, and allow the account to use it")
        }
        ConnectionError::Version { .. } => CommandError::usage(said).hint("upgrade the NATS server"),
    }
}
