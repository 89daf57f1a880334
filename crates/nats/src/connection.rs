//! The connection to a server: who asks, whom it trusts, and whether the server can do what is needed. A connection
//! comes back by itself after a cut.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_nats::connection::State;
use async_nats::jetstream::context::AccountErrorKind;
use async_nats::jetstream::{self, Context, ErrorCode};
use async_nats::{Auth, AuthError, ConnectErrorKind, ConnectOptions, ServerAddr};
use percent_encoding::percent_decode_str;

/// Longest wait for an answer of the server.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// Where a server is, and how it is asked.
#[derive(Clone, Debug)]
pub struct Server {
    /// `nats://`, or `tls://`; user and password, or a token, may be in it.
    pub address: String,
    /// The file with a token; read again at each connection.
    pub token_file: Option<PathBuf>,
    /// Certificates (PEM) to trust instead of the machine's.
    pub ca_file: Option<PathBuf>,
}

impl Server {
    /// A server whose address says everything.
    pub fn at(address: &str) -> Self {
        Self {
            address: address.to_owned(),
            token_file: None,
            ca_file: None,
        }
    }

    /// The address without user and password.
    pub fn shown(&self) -> String {
        match (self.address.split_once("://"), self.address.rsplit_once('@')) {
            (_, None) => self.address.clone(),
            (Some((scheme, _)), Some((_, host))) => format!("{scheme}://{host}"),
            (None, Some((_, host))) => host.to_owned(),
        }
    }

    fn parsed(&self) -> Result<ServerAddr, ConnectionError> {
        let parsed = self.address.parse();
        parsed.map_err(|_| ConnectionError::Address { address: self.shown() })
    }

    fn options(&self) -> Result<ConnectOptions, ConnectionError> {
        for path in self.token_file.iter().chain(&self.ca_file) {
            std::fs::read(path).map_err(|source| ConnectionError::File {
                path: path.clone(),
                source,
            })?;
        }
        let address = self.parsed()?;
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let mut options = match (self.token_file.clone(), address.username(), address.password()) {
            (Some(path), ..) => ConnectOptions::with_auth_callback(move |_| token(path.clone())),
            (None, Some(user), Some(password)) => {
                ConnectOptions::with_user_and_password(decoded(user), decoded(password))
            }
            (None, Some(token), None) => ConnectOptions::with_token(decoded(token)),
            (None, None, _) => ConnectOptions::new(),
        };
        if let Some(path) = &self.ca_file {
            options = options.add_root_certificates(path.clone());
        }
        Ok(options.name("kindex").request_timeout(Some(ANSWER_MAX)))
    }
}

async fn token(path: PathBuf) -> Result<Auth, AuthError> {
    let read = tokio::fs::read_to_string(&path).await;
    let token = read.map_err(|error| AuthError::new(format!("{}: {error}", path.display())))?;
    let mut auth = Auth::new();
    auth.token = Some(token.trim().to_owned());
    Ok(auth)
}

/// A connection that comes back by itself.
#[derive(Clone, Debug)]
pub struct Connection {
    pub(crate) context: Context,
}

/// Why a server cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    /// The text is no address.
    #[error("{address:?} is not the address of a NATS server, such as nats://127.0.0.1:4222")]
    Address {
        /// The text.
        address: String,
    },
    /// A file of a token or of certificates cannot be read.
    #[error("{}: {source}", path.display())]
    File {
        /// Where it should be.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The server lets nobody in with these credentials, or shows a certificate that is not trusted.
    #[error("the NATS server at {address} refuses the connection: {source}")]
    Refused {
        /// Where.
        address: String,
        /// Why.
        source: async_nats::ConnectError,
    },
    /// Nobody answers. Another attempt may find a server.
    #[error("no NATS server answers at {address}: {source}")]
    Away {
        /// Where.
        address: String,
        /// Why.
        source: async_nats::ConnectError,
    },
    /// The server keeps nothing.
    #[error("the NATS server at {address} has no JetStream for this account")]
    NoJetStream {
        /// Where.
        address: String,
    },
    /// The server is too old for tombstones that end.
    #[error("the NATS server at {address} is of version {version}: 2.11 or newer is needed")]
    Version {
        /// Where.
        address: String,
        /// What it says that it is.
        version: String,
    },
}

impl Connection {
    /// Connects to a server that may be away: it is then tried again and again, and calls fail meanwhile.
    ///
    /// # Errors
    /// Those of [`reach`](Self::reach) that another attempt would meet as well.
    pub async fn open(server: &Server) -> Result<Self, ConnectionError> {
        match Self::reach(server).await {
            Err(ConnectionError::Away { address, source }) => {
                tracing::warn!(address, error = %source, "The NATS server does not answer; retrying");
                let options = server.options()?.retry_on_initial_connect();
                let client = options.connect(server.parsed()?).await;
                let client = client.map_err(|source| ConnectionError::Away { address, source })?;
                Ok(Self {
                    context: jetstream::new(client),
                })
            }
            reached => reached,
        }
    }

    /// Connects to a server that is there, and finds out whether it has what is needed.
    ///
    /// # Errors
    /// Every [`ConnectionError`].
    pub async fn reach(server: &Server) -> Result<Self, ConnectionError> {
        let address = server.shown();
        let client = server.options()?.connect(server.parsed()?).await;
        let client = client.map_err(|source| failed(address.clone(), source))?;
        if !client.is_server_compatible(2, 11, 0) {
            let version = client.server_info().version;
            return Err(ConnectionError::Version { address, version });
        }
        let context = jetstream::new(client);
        match context.query_account().await.map_err(|error| error.kind()) {
            Err(AccountErrorKind::JetStreamUnavailable) => Err(ConnectionError::NoJetStream { address }),
            Err(AccountErrorKind::JetStream(error)) if is_off(error.error_code()) => {
                Err(ConnectionError::NoJetStream { address })
            }
            // Whether the rights are enough is seen at the streams: the account itself need not be readable.
            Ok(_) | Err(AccountErrorKind::TimedOut | AccountErrorKind::JetStream(_) | AccountErrorKind::Other) => {
                Ok(Self { context })
            }
        }
    }

    /// A number of this life of the connection; `None` while it is cut.
    pub(crate) fn life(&self) -> Option<u64> {
        let client = self.context.client();
        match client.connection_state() {
            State::Connected => Some(client.statistics().connects.load(Ordering::Relaxed)),
            State::Pending | State::Disconnected => None,
        }
    }
}

fn is_off(code: ErrorCode) -> bool {
    code == ErrorCode::JETSTREAM_NOT_ENABLED || code == ErrorCode::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT
}

fn failed(address: String, source: async_nats::ConnectError) -> ConnectionError {
    match source.kind() {
        ConnectErrorKind::ServerParse => ConnectionError::Address { address },
        ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Tls => {
            ConnectionError::Refused { address, source }
        }
        // A certificate that is not trusted ends the handshake as any other cut would.
        ConnectErrorKind::Io if is_tls(&source) => ConnectionError::Refused { address, source },
        ConnectErrorKind::Dns | ConnectErrorKind::TimedOut | ConnectErrorKind::Io | ConnectErrorKind::MaxReconnects => {
            ConnectionError::Away { address, source }
        }
    }
}

/// Whether the two sides spoke, and did not agree on who the other one is.
fn is_tls(error: &async_nats::ConnectError) -> bool {
    let io = std::error::Error::source(error).and_then(|source| source.downcast_ref::<std::io::Error>());
    io.is_some_and(|io| io.kind() == std::io::ErrorKind::InvalidData)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_message_has_a_password() {
        for (address, shown) in [
            ("nats://ada:secret@db:4222", "nats://db:4222"),
            ("token@db:4222", "db:4222"),
            ("nats://db:4222", "nats://db:4222"),
        ] {
            assert_eq!(Server::at(address).shown(), shown);
        }
        let wrong = Server::at("nats://ada:secret@").parsed();
        assert!(
            !wrong
                .map_or_else(|error| error.to_string(), |_| String::new())
                .contains("secret")
        );
    }
}
