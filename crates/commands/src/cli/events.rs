//! Flags of `kindex events`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use kindex_nats::Partitions;

use crate::nats::NatsArgs;

/// Form of what `kindex events` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EventForm {
    /// State, name, uid and time of the deletion.
    Text,
    /// The same in columns, below their names.
    Table,
    /// A JSON object a line, with the position after it.
    Json,
    /// The same as YAML: a document an event, with `---` between two.
    Yaml,
}

/// Flags of `kindex events`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct EventsArgs {
    /// The kind: Network, network, networks or a short name, each also as NAME.GROUP; or plural.group of another
    /// service's kind.
    pub kind: String,

    /// Keep printing changes until Ctrl-C.
    #[arg(short, long)]
    pub follow: bool,

    /// Start after this position instead of replaying all existing objects.
    #[arg(long, value_name = "POSITION")]
    pub from: Option<String>,

    /// Only objects that are being deleted or erased: those that wait for what holds them, and those that are gone.
    #[arg(long)]
    pub deleting: bool,

    /// Form of the output.
    #[arg(short, long, value_enum, default_value_t = EventForm::Text)]
    pub output: EventForm,

    /// Where the API server answers.
    #[arg(
        long,
        env = "KINDEX_API_URL",
        value_name = "URL",
        default_value = "http://127.0.0.1:6482"
    )]
    pub url: String,

    /// The file with the bearer token; read again whenever the server is connected to.
    #[arg(long, env = "KINDEX_API_TOKEN_FILE", value_name = "FILE")]
    pub token_file: Option<PathBuf>,

    /// Certificates (PEM) to trust instead of those that the machine trusts.
    #[arg(long, env = "KINDEX_API_CA_FILE", value_name = "FILE")]
    pub ca_file: Option<PathBuf>,

    /// The NATS server to follow instead of an API server.
    #[command(flatten)]
    pub server: NatsArgs,

    /// Only objects of these partitions of the stream in NATS, such as 0-3,7; default: all.
    #[arg(long, value_name = "NUMBERS", requires = "nats")]
    pub partitions: Option<Partitions>,
}

const EXAMPLES: &str = "\
A line an event. The position after the last one is printed on stderr at the end, for --from. A subscription that is cut
is resumed where it was, with a note on stderr; events may then be repeated, and none is missing. With --follow and
--from, a server that does not answer yet is waited for; otherwise the command ends if the first connection fails.

Exits 0 once all that exists is shown, or at Ctrl-C; 1 where the server refuses, does not answer, or does not know the
position any more; 2 when the command line is wrong.

Examples:
  kindex events network                              all networks, live and archived
  kindex events network --follow                     and what happens to them from now on
  kindex events network --deleting --follow          deletions alone
  kindex events network --follow -o table            in columns
  kindex events networks.region.example.com --url https://region.example.com:6443 --token-file token -o json
  kindex events networks.region.example.com --follow --nats tls://nats:4222 --nats-token-file token";
