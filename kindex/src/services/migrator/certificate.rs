//! The webhook's certificate: files that others keep, or a Secret that Kindex keeps.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use kindex_commands::error::{CommandError, CommandResult, chain};
use kindex_migrator::certificate::{Address, CertificateRotator, SecretName};
use kindex_model::kind::Registry;
use kindex_serve::listen::Tls;
use kube::Client;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How often the files of certificate and key are looked at.
const FILES_EVERY: Duration = Duration::from_secs(5);
/// How often the Secret and the definitions are looked at.
const SECRET_EVERY: Duration = Duration::from_secs(60);

/// Where the certificate is.
#[derive(Clone, Debug, Args)]
pub(super) struct CertificateArgs {
    /// The certificate, and those that lead from it to a root; read again when it changes.
    #[arg(long, env = "KINDEX_TLS_CERT", value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,

    /// The key of the certificate.
    #[arg(long, env = "KINDEX_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// The Secret in which Kindex keeps a certificate that it makes and renews itself. The CRDs of kinds in several
    /// versions get its authority and the address of the webhook.
    #[arg(
        long,
        env = "KINDEX_TLS_SECRET",
        value_name = "NAMESPACE/NAME",
        requires = "webhook_address",
        conflicts_with = "tls_cert"
    )]
    tls_secret: Option<SecretName>,

    /// Where API servers find the webhook: a Service, or the URL of /convert.
    #[arg(
        long,
        env = "KINDEX_WEBHOOK_ADDRESS",
        value_name = "NAMESPACE/NAME[:PORT]|URL",
        requires = "tls_secret"
    )]
    webhook_address: Option<Address>,
}

impl CertificateArgs {
    /// Whether Kindex keeps it, in a cluster.
    pub(super) fn is_kept(&self) -> bool {
        self.tls_secret.is_some()
    }
}

/// What connections are served with, and who keeps it.
pub(super) struct Certificate {
    tls: Tls,
    rotator: Option<CertificateRotator>,
}

impl Certificate {
    /// As the flags say. `client` is of the cluster with the Secret, where that is named.
    pub(super) async fn new(registry: &Registry, args: CertificateArgs, client: Option<Client>) -> CommandResult<Self> {
        if let (Some(certificate), Some(key)) = (&args.tls_cert, &args.tls_key) {
            let tls = Tls::read(certificate, key, None).map_err(|error| CommandError::usage(chain(&error)))?;
            return Ok(Self { tls, rotator: None });
        }
        let (Some(secret), Some(address), Some(client)) = (args.tls_secret, args.webhook_address, client) else {
            return Err(CommandError::usage("no certificate for the conversion webhook").hint(
                "name its files with --tls-cert and --tls-key, or let Kindex make one: \
                 --tls-secret NAMESPACE/NAME --webhook-address ADDRESS",
            ));
        };
        let several = registry.kinds.iter().filter(|kind| !kind.versions.is_empty());
        let definitions = several.map(|kind| kind.crd_name()).collect();
        let rotator = CertificateRotator::new(client, secret, address, definitions);
        let tls = rotator.tls().await.map_err(|error| {
            CommandError::failure(chain(&error)).hint(
                "the migrator's account must be allowed to get, create and update this Secret, and to get and patch \
                 the CRDs of its kinds",
            )
        })?;
        let rotator = Some(rotator);
        Ok(Self { tls, rotator })
    }

    /// What connections are served with. It is kept up to date until `stop`.
    pub(super) fn start(self, tasks: &TaskTracker, stop: &CancellationToken) -> Tls {
        match self.rotator {
            Some(rotator) => tasks.spawn(rotator.follow(self.tls.clone(), SECRET_EVERY, stop.clone())),
            None => tasks.spawn(self.tls.clone().follow(FILES_EVERY, stop.clone())),
        };
        self.tls
    }
}
