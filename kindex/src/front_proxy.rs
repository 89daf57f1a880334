//! What a cluster says of its front proxy: the ConfigMap that kube-apiserver keeps for servers behind it.
//! <https://kubernetes.io/docs/tasks/extend-kubernetes/configure-aggregation-layer/>

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kindex_api::server::FrontProxy;
use kube::{Api, Client};

use crate::error::{CommandError, CommandResult, chain};

const NAMESPACE: &str = "kube-system";
const NAME: &str = "extension-apiserver-authentication";
const AUTHORITY: &str = "requestheader-client-ca-file";
const NAMES: &str = "requestheader-allowed-names";

/// Whom to believe.
pub(crate) async fn read(client: &Client) -> CommandResult<FrontProxy> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let found = maps.get(NAME).await.map_err(|error| {
        CommandError::failure(format_args!("ConfigMap {NAMESPACE}/{NAME}: {error}")).hint(
            "the server's account needs the Role extension-apiserver-authentication-reader of namespace kube-system",
        )
    })?;
    parse(&found.data.unwrap_or_default())
}

fn parse(data: &BTreeMap<String, String>) -> CommandResult<FrontProxy> {
    let wrong = |key: &str, why: &str| {
        CommandError::failure(format_args!("ConfigMap {NAMESPACE}/{NAME}: {key}: {why}"))
            .hint("start kube-apiserver with --requestheader-client-ca-file, or Kindex without --aggregated")
    };
    let authority = data.get(AUTHORITY).ok_or_else(|| wrong(AUTHORITY, "is not there"))?;
    let names = match data.get(NAMES) {
        Some(text) => serde_json::from_str(text).map_err(|error| wrong(NAMES, &error.to_string()))?,
        None => Vec::new(),
    };
    FrontProxy::new(authority, names).map_err(|error| wrong(AUTHORITY, &chain(&error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_without_a_front_proxy_is_told_what_it_lacks() {
        let told = |data: &[(&str, &str)]| {
            let data = data.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
            parse(&data.collect())
                .err()
                .map(|error| error.to_string())
                .unwrap_or_default()
        };
        assert!(told(&[]).contains("requestheader-client-ca-file: is not there"));
        assert!(told(&[(AUTHORITY, "x"), (NAMES, "x")]).contains("requestheader-allowed-names: "));
        assert!(told(&[(AUTHORITY, "x"), (NAMES, "[]")]).contains("requestheader-client-ca-file: "));
    }
}
