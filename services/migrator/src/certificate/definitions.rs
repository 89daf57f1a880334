//! Where the definitions say that the webhook is, and whom they believe.

use std::fmt;
use std::str::FromStr;

use http::Uri;
use k8s_openapi::ByteString;
use kindex_kube_client::{Outcome, look_up, outcome};
use kube::api::{Object, Patch, PatchParams};
use kube::{Api, Client};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::secret::SecretName;
use crate::wire::definition;

/// Field manager of the patches.
const MANAGER: &str = "kindex-migrator";

/// Port of a Service that is named without one.
const HTTPS: u16 = 443;

/// How often a definition is patched that others write as well.
const TRIES_MAX: u32 = 5;

/// Where API servers find the webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A Service in the cluster.
    Service {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// Its port.
        port: u16,
    },
    /// A URL, for a webhook outside of the cluster.
    Url(Uri),
}

impl Address {
    /// The host that the certificate is for.
    pub fn host(&self) -> String {
        match self {
            Self::Service { namespace, name, .. } => format!("{name}.{namespace}.svc"),
            Self::Url(url) => {
                let host = url.host().unwrap_or_default();
                host.trim_start_matches('[').trim_end_matches(']').to_owned()
            }
        }
    }

    /// `spec.conversion.webhook.clientConfig`. The other one of `service` and `url` is taken out.
    fn client_config(&self, authorities: &str) -> Value {
        let ca_bundle = json!(ByteString(authorities.as_bytes().to_vec()));
        match self {
            Self::Service { namespace, name, port } => json!({
                "caBundle": ca_bundle,
                "service": {"namespace": namespace, "name": name, "port": port, "path": "/convert"},
                "url": null,
            }),
            Self::Url(url) => json!({"caBundle": ca_bundle, "url": url.to_string(), "service": null}),
        }
    }
}

impl FromStr for Address {
    type Err = String;

    /// `NAMESPACE/NAME`, `NAMESPACE/NAME:PORT`, or a URL that begins with `https://`.
    fn from_str(text: &str) -> Result<Self, String> {
        if text.starts_with("https://") {
            return url(text).map(Self::Url);
        }
        let (service, port) = match text.rsplit_once(':') {
            Some((service, port)) => (service, port.parse().map_err(|_| format!("\"{port}\" is not a port"))?),
            None => (text, HTTPS),
        };
        if port == 0 {
            return Err("0 is not a port of a Service".to_owned());
        }
        let SecretName { namespace, name } = service
            .parse()
            .map_err(|_| "a Service is named NAMESPACE/NAME or NAMESPACE/NAME:PORT, and a URL begins with https://")?;
        Ok(Self::Service { namespace, name, port })
    }
}

/// The URL that API servers are to ask: of `/convert`, as kube-apiserver takes it.
fn url(text: &str) -> Result<Uri, String> {
    let url: Uri = text.parse().map_err(|error| format!("no URL: {error}"))?;
    let has_user = url
        .authority()
        .is_some_and(|authority| authority.as_str().contains('@'));
    match url.path() {
        "/convert" if url.query().is_none() && !text.contains('#') && !has_user => Ok(url),
        _ => Err("the URL is https://HOST[:PORT]/convert, without user, query and fragment".to_owned()),
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Service { namespace, name, port } => write!(formatter, "Service {namespace}/{name}:{port}"),
            Self::Url(url) => write!(formatter, "{url}"),
        }
    }
}

type Definition = Object<Spec, Value>;

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Spec {
    #[serde(default)]
    conversion: Value,
}

/// Whether a definition asks this webhook and believes these authorities; `None` where it asks none.
fn is_published(spec: &Spec, address: &Address, authorities: &str) -> Option<bool> {
    if spec.conversion["strategy"] != "Webhook" {
        return None;
    }
    let found = &spec.conversion["webhook"]["clientConfig"];
    let wanted = address.client_config(authorities);
    let fields = wanted.as_object().into_iter().flatten();
    let mut differing = fields.filter(|(name, value)| found[name.as_str()] != **value);
    Some(differing.next().is_none())
}

/// Whether all these definitions, by name, list these authorities. One that is not there yet says nothing.
pub(super) async fn published(
    client: &Client,
    names: &[String],
    address: &Address,
    authorities: &str,
) -> Result<bool, kube::Error> {
    for name in names {
        if let Some(found) = look_up(&api(client), name).await?
            && is_published(&found.spec, address, authorities) == Some(false)
        {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Writes address and authorities into the definitions that ask a webhook and say otherwise; those that were written.
/// One that cannot be written is logged. It keeps no other one waiting, nor the certificate that the others ask for.
///
/// # Errors
/// The first of those that came, where no definition could be read and written.
pub(super) async fn publish(
    client: &Client,
    names: &[String],
    address: &Address,
    authorities: &str,
) -> Result<Vec<String>, kube::Error> {
    let (mut written, mut first, mut is_any_right) = (Vec::new(), None, false);
    for name in names {
        match publish_in(client, name, address, authorities).await {
            Ok(was_written) => {
                is_any_right = true;
                written.extend(was_written.then(|| name.clone()));
            }
            Err(error) => {
                tracing::warn!(definition = %name, %error, "A definition does not get the address of the webhook");
                first.get_or_insert(error);
            }
        }
    }
    match first {
        Some(error) if !is_any_right => Err(error),
        _ => Ok(written),
    }
}

/// Whether a definition was written.
async fn publish_in(client: &Client, name: &str, address: &Address, authorities: &str) -> Result<bool, kube::Error> {
    let mut written = false;
    for _ in 0..TRIES_MAX {
        let Some(patch) = due(client, name, address, authorities).await? else {
            break;
        };
        match api(client).patch(name, &parameters(), &Patch::Merge(patch)).await {
            Ok(_) => written = true,
            // What the other writer left is looked at.
            Err(error) if outcome(&error).is_some_and(Outcome::is_overtaken) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(written)
}

/// The patch that a definition lacks, on condition of what it is now.
async fn due(client: &Client, name: &str, address: &Address, authorities: &str) -> Result<Option<Value>, kube::Error> {
    let Some(found) = look_up(&api(client), name).await? else {
        return Ok(None);
    };
    if is_published(&found.spec, address, authorities) != Some(false) {
        return Ok(None);
    }
    Ok(Some(json!({
        "metadata": {"resourceVersion": found.metadata.resource_version},
        "spec": {"conversion": {"webhook": {"clientConfig": address.client_config(authorities)}}},
    })))
}

fn parameters() -> PatchParams {
    PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    }
}

fn api(client: &Client) -> Api<Definition> {
    Api::all_with(client.clone(), &definition::resource())
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::ready;
    use std::sync::{Arc, Mutex};

    use http::{Method, Request, Response};
    use kube::client::Body;

    use super::*;

    fn service() -> Address {
        Address::Service {
            namespace: "data".to_owned(),
            name: "kindex-migrator".to_owned(),
            port: 443,
        }
    }

    fn spec(conversion: Value) -> Spec {
        Spec { conversion }
    }

    #[test]
    fn a_certificate_is_for_the_host_that_is_asked() {
        assert_eq!(service().host(), "kindex-migrator.data.svc");
        for (url, host) in [
            ("https://127.0.0.1:8443/convert", "127.0.0.1"),
            ("https://[::1]:8443/convert", "::1"),
            ("https://kindex.example.com/convert", "kindex.example.com"),
        ] {
            assert_eq!(Address::Url(url.parse().expect("a URL")).host(), host);
        }
    }

    #[test]
    fn an_address_is_a_service_or_a_url() {
        let read = |text: &str| text.parse::<Address>();
        assert_eq!(read("data/kindex-migrator"), Ok(service()));
        let port = read("data/kindex-migrator:8443").expect("a Service");
        assert_eq!(port.to_string(), "Service data/kindex-migrator:8443");
        let url = "https://127.0.0.1:8443/convert";
        assert_eq!(read(url).expect("a URL").to_string(), url);
        let urls = [
            "https://a",
            "https://a/other",
            "https://u:p@a/convert",
            "https://a/convert?b",
            "https://a/convert#c",
        ];
        let others = ["", "kindex-migrator", "http://a/convert", "a/b:https", "a/b:0", "a/b/c"];
        for none in urls.into_iter().chain(others) {
            read(none).expect_err(none);
        }
    }

    #[test]
    fn only_definitions_with_a_webhook_are_written() {
        let none = spec(json!({"strategy": "None"}));
        assert_eq!(is_published(&none, &service(), "pem"), None);
        let empty = spec(json!({"strategy": "Webhook", "webhook": {"clientConfig": {}}}));
        assert_eq!(is_published(&empty, &service(), "pem"), Some(false));
    }

    #[test]
    fn another_service_or_authority_is_noticed() {
        let config = json!({
            "caBundle": "cGVt",
            "service": {"namespace": "data", "name": "kindex-migrator", "port": 443, "path": "/convert"},
        });
        let of = |config: &Value| {
            let webhook = spec(json!({"strategy": "Webhook", "webhook": {"clientConfig": config}}));
            is_published(&webhook, &service(), "pem")
        };
        assert_eq!(of(&config), Some(true));
        for (pointer, other) in [("/caBundle", "cGVuCg=="), ("/service/namespace", "kindex")] {
            let mut changed = config.clone();
            *changed.pointer_mut(pointer).expect("there") = json!(other);
            assert_eq!(of(&changed), Some(false), "{pointer}");
        }
    }

    /// As if a webhook that denies the change of one definition left a former authority in the others.
    #[tokio::test]
    async fn a_definition_that_cannot_be_written_keeps_no_other_waiting() {
        let patched = Arc::new(Mutex::new(Vec::new()));
        let seen = patched.clone();
        let answer = move |request: Request<Body>| {
            let name = request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
            let is_patch = request.method() == Method::PATCH;
            let (code, body) = if is_patch && name == "a" {
                let message = "admission webhook \"a.b.c\" denied the request: no";
                let denied = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403,
                    "reason": "Forbidden", "message": message});
                (403_u16, denied)
            } else {
                let spec = json!({"conversion": {"strategy": "Webhook", "webhook": {"clientConfig": {}}}});
                let found = json!({"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1",
                    "metadata": {"name": name}, "spec": spec});
                (200, found)
            };
            if is_patch {
                seen.lock().expect("no panic").push(name);
            }
            let response = Response::builder().status(code);
            let body = Body::from(body.to_string().into_bytes());
            ready(Ok::<_, Infallible>(response.body(body).expect("an answer")))
        };
        let client = Client::new(tower::service_fn(answer), "default");
        let names = ["a", "b"].map(ToOwned::to_owned);
        let written = publish(&client, &names, &service(), "pem").await;
        assert_eq!(written.expect("b lists the authority, and is to be answered"), ["b"]);
        let mut patched = patched.lock().expect("no panic").clone();
        patched.dedup();
        assert_eq!(patched, ["a", "b"]);
        let failed = publish(&client, &names[..1], &service(), "pem").await;
        let failed = failed.expect_err("nobody asks this webhook").to_string();
        assert!(failed.contains("denied the request"), "{failed}");
    }
}
