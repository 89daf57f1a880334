//! Where other services are.

use std::path::PathBuf;

use http::Request;
use kindex_model::causes::chain;
use kindex_model::reference::Service;
use kube::Client;
use kube::client::{Body, ClientBuilder};
use kube::config::{Config, KubeConfigOptions};
use serde_json::json;
use tower::util::{AndThenLayer, MapRequestLayer};

use super::token::TokenFile;
use crate::connect::with_http_code;

/// Where a service is, and how it is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// What it is called.
    pub name: String,
    /// URL of its API, without a slash at the end.
    pub url: String,
    /// File with the certificates (PEM) that its own may be from; `None`: those of the machine.
    pub ca_file: Option<String>,
    /// File with the token that it is asked with.
    pub token_file: Option<String>,
}

impl From<&Service> for Address {
    fn from(service: &Service) -> Self {
        Self {
            name: service.name.to_owned(),
            url: service.address.trim_end_matches('/').to_owned(),
            ca_file: service.ca_file.map(str::to_owned),
            token_file: service.token_file.map(str::to_owned),
        }
    }
}

impl Address {
    /// The service at another URL. Without TLS, the token is sent to nobody.
    pub fn move_to(&mut self, url: &str) {
        url.trim_end_matches('/').clone_into(&mut self.url);
        if !self.url.starts_with("https://") {
            (self.ca_file, self.token_file) = (None, None);
        }
    }

    /// A client of it, which reads its files again: certificates and tokens are renewed.
    ///
    /// # Errors
    /// What is wrong with the address or the files.
    pub async fn client(&self) -> Result<Client, String> {
        let file = serde_json::from_value(json!({
            "current-context": "peer",
            "clusters": [{"name": "peer", "cluster": {"server": self.url, "certificate-authority": self.ca_file}}],
            "users": [{"name": "peer", "user": {}}],
            "contexts": [{"name": "peer", "context": {"cluster": "peer", "user": "peer"}}],
        }));
        let file = file.map_err(|error| error.to_string())?;
        let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await;
        let mut config = config.map_err(|error| chain(&error))?;
        config.default_retry = false;
        config.root_cert_file = self.ca_file.clone().map(PathBuf::from);
        let client = ClientBuilder::try_from(config).map_err(|error| chain(&error))?;
        let client = client.with_layer(&AndThenLayer::new(with_http_code));
        let Some(token) = &self.token_file else {
            return Ok(client.build());
        };
        let token = TokenFile::open(token)?;
        let signed = MapRequestLayer::new(move |request: Request<Body>| token.sign(request));
        Ok(client.with_layer(&signed).build())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_sent_over_tls_alone() {
        let address = Address {
            name: "region".to_owned(),
            url: "https://region".to_owned(),
            ca_file: Some("ca".to_owned()),
            token_file: Some("token".to_owned()),
        };
        let mut moved = address.clone();
        moved.move_to("https://elsewhere/");
        assert_eq!(
            (moved.url.as_str(), &moved.token_file),
            ("https://elsewhere", &address.token_file)
        );
        moved.move_to("http://127.0.0.1:1");
        assert_eq!((moved.ca_file, moved.token_file), (None, None));
    }
}
