//! An embedded cluster in this process, and what its clients have to know: address and token.

use std::net::SocketAddr;

use kindex_cluster::{Cluster, ClusterOptions, Token};
use kube::Config;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Where a cluster is, and what it wants to be shown.
#[derive(Clone, Debug)]
pub struct Embedded {
    /// On loopback.
    pub address: SocketAddr,
    /// Of every request but those for health.
    pub token: Token,
    /// By which the ingester is known.
    pub ingester_token: Token,
}

impl Embedded {
    /// Serves a cluster on a free port until `shutdown` resolves; the task ends with it.
    ///
    /// # Panics
    /// Where the cluster cannot be opened or served.
    pub async fn serve(
        options: ClusterOptions,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> (Self, JoinHandle<()>) {
        let cluster = Cluster::with_options(options).await.expect("the cluster opens");
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("loopback has free ports");
        let here = Self {
            address: listener.local_addr().expect("bound"),
            token: cluster.token().clone(),
            ingester_token: cluster.ingester_token().clone(),
        };
        let serving = tokio::spawn(async move { cluster.serve(listener, shutdown).await.expect("the cluster serves") });
        (here, serving)
    }

    /// For clients of kube-rs.
    pub fn config(&self) -> Config {
        let mut config = Config::new(self.url().parse().expect("an address is a URL"));
        config.auth_info.token = Some(self.token.secret().to_owned().into());
        config
    }

    /// For kubectl and for programs of ours.
    pub fn kubeconfig(&self) -> String {
        kindex_cluster::kubeconfig(self.address, &self.token)
    }

    /// The line of a request that shows the token.
    pub fn authorization(&self) -> String {
        format!("Authorization: Bearer {}\r\n", self.token.secret())
    }

    /// Without credentials.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}
