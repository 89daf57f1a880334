//! Kubernetes clients: for a kubeconfig file, for the environment, and for the
//! embedded cluster.

use std::path::Path;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{ApiResource, DynamicObject};
use kube::{Api, Client, Config};

use kindex_runtime::kind::Kind;

use crate::error::{CommandError, CommandResult, chain};

/// A way into a cluster: the client for single calls, and the configuration for those
/// who make a client of their own.
#[derive(Clone)]
pub(crate) struct Access {
    /// For single calls.
    pub(crate) client: Client,
    /// Address and credentials.
    pub(crate) config: Config,
}

impl Access {
    fn new(config: Config) -> Result<Self, kube::Error> {
        Ok(Self {
            client: Client::try_from(config.clone())?,
            config,
        })
    }
}

/// The cluster that a kubeconfig file names.
pub(crate) async fn from_file(path: &Path) -> CommandResult<Access> {
    let unusable = |error: &dyn std::error::Error| {
        CommandError::usage(format_args!("{}: {}", path.display(), chain(error)))
            .hint("name a kubeconfig file with a current context, or start `kindex up` first")
    };
    let kubeconfig = Kubeconfig::read_from(path).map_err(|error| unusable(&error))?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .map_err(|error| unusable(&error))?;
    Access::new(config).map_err(|error| unusable(&error))
}

/// The cluster of the environment: KUBECONFIG, ~/.kube/config, or the pod's own.
pub(crate) async fn from_environment() -> CommandResult<Access> {
    let absent = |error: &dyn std::error::Error| {
        CommandError::usage(format_args!("no cluster: {}", chain(error)))
            .hint("name one with --kubeconfig PATH, or run `kindex up` for an embedded one")
    };
    let config = Config::infer().await.map_err(|error| absent(&error))?;
    Access::new(config).map_err(|error| absent(&error))
}

/// How kube-rs addresses a kind.
pub(crate) fn api_resource(kind: &Kind) -> ApiResource {
    ApiResource {
        group: kind.group.to_owned(),
        version: kind.version.to_owned(),
        api_version: kind.api_version(),
        kind: kind.name.to_owned(),
        plural: kind.plural.to_owned(),
    }
}

/// All objects of a kind, in whatever namespace.
pub(crate) fn all(client: &Client, kind: &Kind) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &api_resource(kind))
}
