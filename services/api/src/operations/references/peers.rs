//! Other services, asked about their own objects: whose references they are, and what holds them there. A service that
//! does not answer is no error here: it is a part of what is shown.

use std::collections::BTreeMap;
use std::time::Duration;

use http::Request;
use http_body_util::{BodyExt, Limited};
use kindex_kube_api::request::escaped;
use kindex_model::kind::Registry;
use kindex_model::reference::Service;
use kindex_model::reference_name::ReferenceName;
use kube::client::Body;
use kube::config::{
    AuthInfo, Cluster, Context, KubeConfigOptions, Kubeconfig, NamedAuthInfo, NamedCluster, NamedContext,
};
use kube::{Client, Config};

use super::tree::Node;

/// How long a service may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest answer that is read: one object, and what holds it.
const ANSWER_MAX_BYTES: usize = 16 * 1024 * 1024;

/// Where another service is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Peer {
    /// What it is called.
    name: String,
    /// URL of its API.
    address: String,
    /// File with the certificates that its certificate may be from.
    ca_file: Option<String>,
    /// File with the token that it is asked with.
    token_file: Option<String>,
}

/// The other services, by the groups of their kinds.
#[derive(Clone, Debug, Default)]
pub struct Peers(BTreeMap<String, Peer>);

impl Peers {
    /// Those that crds.toml declares.
    pub fn of(registry: &Registry) -> Self {
        let services = registry.services.iter().copied();
        let peers = services.map(|service| (service.group.to_owned(), service.into()));
        Self(peers.collect())
    }

    /// The same with the service of a group at this address, with the files that are known for it. Without TLS, the
    /// token is sent to nobody.
    #[must_use]
    pub fn at(mut self, group: &str, address: &str) -> Self {
        let peer = self.0.entry(group.to_owned()).or_insert_with(|| Peer {
            name: group.to_owned(),
            ..Peer::default()
        });
        address.trim_end_matches('/').clone_into(&mut peer.address);
        if !peer.address.starts_with("https://") {
            (peer.ca_file, peer.token_file) = (None, None);
        }
        self
    }

    /// What the service of a group is called; the group where it is not known.
    pub(in super::super) fn name_of(&self, group: &str) -> String {
        self.0
            .get(group)
            .map_or_else(|| group.to_owned(), |peer| peer.name.clone())
    }

    /// The holder of a reference as its service shows it, with those that hold it. The reason where that is not known.
    pub(in super::super) async fn ask(&self, reference: &ReferenceName) -> Result<Node, String> {
        let Some(peer) = self.0.get(reference.group()) else {
            return Err(format!(
                "no address of a service with the group {} is known",
                reference.group()
            ));
        };
        let asked = tokio::time::timeout(ANSWER_TIMEOUT, peer.ask(reference)).await;
        let answer = asked.unwrap_or_else(|_| Err(format!("not within {} s", ANSWER_TIMEOUT.as_secs())));
        answer.map_err(|why| format!("the service {} at {} does not say: {why}", peer.name, peer.address))
    }
}

impl From<&Service> for Peer {
    fn from(service: &Service) -> Self {
        Self {
            name: service.name.to_owned(),
            address: service.address.to_owned(),
            ca_file: service.ca_file.map(str::to_owned),
            token_file: service.token_file.map(str::to_owned),
        }
    }
}

impl Peer {
    async fn ask(&self, reference: &ReferenceName) -> Result<Node, String> {
        let client = self.client().await?;
        let reference = escaped(&reference.to_string());
        let request = Request::get(format!("/api/v1/references/{reference}?depth=1"));
        let request = request.body(Body::empty()).map_err(|error| error.to_string())?;
        let response = client.send(request).await.map_err(|error| chain(&error))?;
        let code = response.status();
        let body = Limited::new(response.into_body(), ANSWER_MAX_BYTES).collect().await;
        let body = body.map_err(|error| error.to_string())?.to_bytes();
        if code == http::StatusCode::NOT_FOUND {
            return Err("it has no such object".to_owned());
        }
        if !code.is_success() {
            return Err(format!("it answers {code}"));
        }
        serde_json::from_slice(&body).map_err(|error| format!("its answer is no tree: {error}"))
    }

    /// By a kubeconfig, since the files are read as those of one are.
    async fn client(&self) -> Result<Client, String> {
        let name = self.name.clone();
        let file = Kubeconfig {
            current_context: Some(name.clone()),
            clusters: vec![NamedCluster {
                name: name.clone(),
                cluster: Some(Cluster {
                    server: Some(self.address.clone()),
                    certificate_authority: self.ca_file.clone(),
                    ..Cluster::default()
                }),
                ..NamedCluster::default()
            }],
            auth_infos: vec![NamedAuthInfo {
                name: name.clone(),
                auth_info: Some(AuthInfo {
                    token_file: self.token_file.clone(),
                    ..AuthInfo::default()
                }),
                ..NamedAuthInfo::default()
            }],
            contexts: vec![NamedContext {
                name: name.clone(),
                context: Some(Context {
                    cluster: name.clone(),
                    user: Some(name),
                    ..Context::default()
                }),
                ..NamedContext::default()
            }],
            ..Kubeconfig::default()
        };
        let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await;
        let mut config = config.map_err(|error| chain(&error))?;
        config.default_retry = false;
        Client::try_from(config).map_err(|error| chain(&error))
    }
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let cause = error.to_string();
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
        source = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_sent_over_tls_alone() {
        let declared = Peer {
            name: "region".to_owned(),
            address: "https://region".to_owned(),
            ca_file: Some("ca".to_owned()),
            token_file: Some("token".to_owned()),
        };
        let peers = || Peers([("region.example.com".to_owned(), declared.clone())].into());
        let at = |address| peers().at("region.example.com", address).0["region.example.com"].clone();
        let moved = at("https://elsewhere/");
        assert_eq!(
            (moved.address.as_str(), &moved.token_file),
            ("https://elsewhere", &declared.token_file)
        );
        let moved = at("http://127.0.0.1:1");
        assert_eq!((moved.ca_file, moved.token_file), (None, None));
    }
}
