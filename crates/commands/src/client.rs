//! Kubernetes clients: for a kubeconfig file, for the environment, and for the
//! embedded cluster.

use std::path::Path;

use axum::http::{HeaderValue, Uri, header};
use kindex_api::operations::ClusterAccess;
use kindex_cluster::InProcess;
use kindex_kube_client::kube_cluster::KubeCluster;
use kindex_kube_client::{ClusterError, connect};
use kindex_model::kind::Kind;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{ApiResource, DynamicObject};
use kube::{Api, Client, Config};

use crate::error::{CommandError, CommandResult, chain};

/// A way into a cluster: the client for single calls, and the configuration for those
/// who make a client of their own.
#[derive(Clone)]
pub struct Access {
    /// For single calls.
    pub client: Client,
    /// Address and credentials.
    pub config: Config,
    /// Of a cluster in this process.
    own: Option<InProcess>,
}

impl Access {
    fn new(mut config: Config) -> Result<Self, kube::Error> {
        config.cluster_url = without_password(config.cluster_url);
        Ok(Self {
            client: connect(config.clone())?,
            config,
            own: None,
        })
    }

    /// The same cluster without a connection, since it is in this process.
    pub fn in_process(&self, own: InProcess) -> Self {
        Self {
            client: in_process(own.clone(), &self.config),
            config: self.config.clone(),
            own: Some(own),
        }
    }

    /// The cluster of a part of Kindex that calls itself so.
    pub fn of(&self, agent: &'static str) -> Result<KubeCluster, ClusterError> {
        if let Some(own) = &self.own {
            return Ok(KubeCluster::from(in_process(own.clone().named(agent), &self.config)));
        }
        let mut config = self.config.clone();
        let agent = HeaderValue::from_static(agent);
        config.headers.push((header::USER_AGENT, agent));
        KubeCluster::new(config)
    }

    /// A client for a part of Kindex that calls itself so, which repeats no request by itself.
    pub fn client_of(&self, agent: &'static str) -> Result<Client, kube::Error> {
        match &self.own {
            Some(own) => Ok(in_process(own.clone().named(agent), &self.config)),
            None => self.client_at(self.config.cluster_url.clone(), agent),
        }
    }

    /// The same for another address of the cluster.
    pub fn client_at(&self, address: Uri, agent: &'static str) -> Result<Client, kube::Error> {
        let mut config = self.config.clone();
        config.cluster_url = without_password(address);
        config.default_retry = false;
        config
            .headers
            .push((header::USER_AGENT, HeaderValue::from_static(agent)));
        connect(config)
    }

    /// Whether the cluster is in this process.
    pub fn is_own(&self) -> bool {
        self.own.is_some()
    }

    /// How an API server reaches the cluster.
    pub fn cluster_access(&self) -> ClusterAccess {
        match &self.own {
            Some(own) => ClusterAccess::in_process(self.config.clone(), in_process(own.clone(), &self.config)),
            None => self.config.clone().into(),
        }
    }
}

fn in_process(own: InProcess, config: &Config) -> Client {
    Client::new(own, config.default_namespace.clone())
}

/// An address without user and password, which would be told wherever the address is. The kubeconfig of the embedded
/// cluster has the password for kubectl, and for us the same as a token.
fn without_password(address: Uri) -> Uri {
    let bare = |authority: &str| authority.rsplit_once('@')?.1.parse().ok();
    let Some(authority) = address.authority().and_then(|authority| bare(authority.as_str())) else {
        return address;
    };
    let mut parts = address.clone().into_parts();
    parts.authority = Some(authority);
    Uri::from_parts(parts).unwrap_or(address)
}

/// The cluster that a kubeconfig file names.
pub async fn from_file(path: &Path) -> CommandResult<Access> {
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
        // Of the two reasons that it has, the kubeconfig's; who is in a pod knows it.
        let why = match error.source() {
            Some(kubeconfig) => chain(kubeconfig),
            None => chain(error),
        };
        CommandError::usage(format_args!("no cluster: {why}, and this is not a pod"))
            .hint("name one with --kubeconfig PATH, or run `kindex up` for an embedded one")
    };
    let config = Config::infer().await.map_err(|error| absent(&error))?;
    Access::new(config).map_err(|error| absent(&error))
}

/// The cluster of a kubeconfig file, or where none is named that of the environment.
pub async fn named(path: Option<&Path>) -> CommandResult<Access> {
    match path {
        Some(path) => from_file(path).await,
        None => from_environment().await,
    }
}

/// How kube-rs addresses a kind.
pub fn api_resource(kind: &Kind) -> ApiResource {
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

#[cfg(test)]
mod tests {
    use kindex_api::operations::{Operations, RightsOf};
    use kindex_cluster::Cluster;
    use kindex_generated::kinds::model;
    use kindex_kube_client::ReadApi as _;

    use super::*;
    use crate::install::{ClusterOwner, crds};

    /// Nobody listens at the address.
    #[tokio::test]
    async fn a_cluster_of_this_process_is_asked_without_a_connection() {
        let registry = kindex_generated::registry();
        let cluster = Cluster::ephemeral().await.expect("a cluster");
        let nowhere = Config::new("http://127.0.0.1:1".parse().expect("an address"));
        let own = cluster.in_process(([127, 0, 0, 1], 1).into());
        let access = Access::new(nowhere).expect("a client").in_process(own.clone());
        crds(&access.client, &registry, ClusterOwner::Kindex)
            .await
            .expect("models are served");
        let ingester = access.in_process(own.of_the_ingester());
        let part = ingester.of("a-part/1").expect("a cluster");
        assert!(part.list(&model::KIND, 10, None).await.expect("a page").is_empty());
        let operations = Operations::without_storage(registry, access.cluster_access(), "", RightsOf::Server);
        let unready = operations.expect("a client").not_ready().await;
        assert_eq!(unready, Vec::<String>::new());
    }

    #[test]
    fn an_address_is_shown_without_its_password() {
        for (address, reported) in [
            ("http://kindex:secret@127.0.0.1:6480", "http://127.0.0.1:6480/"),
            ("https://[::1]:6480/prefix", "https://[::1]:6480/prefix"),
        ] {
            let uri = address.parse().expect("an address");
            assert_eq!(without_password(uri).to_string(), reported);
        }
    }

    /// Errors of its clients name the address.
    #[tokio::test]
    async fn a_cluster_is_addressed_without_a_password() {
        let config = Config::new("http://kindex:secret@127.0.0.1:6480".parse().expect("an address"));
        let access = Access::new(config).expect("a client");
        assert_eq!(access.config.cluster_url.to_string(), "http://127.0.0.1:6480/");
    }
}
