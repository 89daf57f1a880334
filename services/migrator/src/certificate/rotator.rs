//! Looks at the Secret and the definitions, and does what is due.

use std::path::PathBuf;
use std::time::Duration;

use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kindex_serve::listen::{Tls, TlsError};
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::{Config, Event};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, ResourceExt as _};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::definitions::{Address, publish, published};
use super::material::{Material, MaterialError};
use super::secret::{self, SecretName};
use super::step::{Step, step};
use crate::causes::chain;

/// Changes of definitions within this time are answered together, and somebody who undoes what is written here is not
/// answered more often.
const TOGETHER: Duration = Duration::from_secs(1);

/// How often a write is tried that another replica came before.
const TRIES_MAX: u32 = 5;

/// Why there is no certificate; the next look tries again.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// The Secret cannot be read or written.
    #[error("Secret {secret} cannot be read or written")]
    Secret {
        /// Which.
        secret: SecretName,
        /// Why.
        source: kube::Error,
    },
    /// The Secret is someone else's.
    #[error("Secret {0} has no ca.crt, ca.key, tls.crt and tls.key: Kindex did not make it, and leaves it alone")]
    Foreign(SecretName),
    /// Others write the Secret all the time.
    #[error("Secret {0} was written by others at each of {TRIES_MAX} tries")]
    Contended(SecretName),
    /// Definitions cannot be read or written.
    #[error("the CustomResourceDefinitions that ask the webhook cannot be read or written")]
    Definitions(#[source] kube::Error),
    /// Nothing can be made for this host.
    #[error(transparent)]
    Material(#[from] MaterialError),
    /// What was made cannot be served with.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// Makes the certificate of a webhook and renews it in time.
pub struct CertificateRotator {
    client: Client,
    secret: SecretName,
    address: Address,
    definitions: Vec<String>,
}

impl CertificateRotator {
    /// `definitions` are the names of those that ask the webhook.
    pub fn new(client: Client, secret: SecretName, address: Address, definitions: Vec<String>) -> Self {
        Self {
            client,
            secret,
            address,
            definitions,
        }
    }

    /// What to serve with: what the Secret holds, or what is made now. The definitions list its authority then.
    ///
    /// # Errors
    /// See [`CertificateError`].
    pub async fn tls(&self) -> Result<Tls, CertificateError> {
        let material = self.look().await?;
        let place = PathBuf::from(format!("Secret {}", self.secret));
        Ok(Tls::from_pem(&place, material.certificate.into(), material.key.into())?)
    }

    /// Looks `every` so often, and when a definition changes, and serves with what it finds, until cancelled. Without a
    /// cluster everything stays.
    pub async fn follow(self, tls: Tls, every: Duration, stop: CancellationToken) {
        let changed = Notify::new();
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.wake(&changed) => {}
            () = self.keep(&tls, every, &changed) => {}
        }
    }

    /// Tells of every change of a definition that asks the webhook.
    async fn wake(&self, changed: &Notify) {
        let definitions: Api<PartialObjectMeta<CustomResourceDefinition>> = Api::all(self.client.clone());
        let mut events = std::pin::pin!(watcher(definitions, Config::default()).default_backoff());
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Apply(object)) if self.definitions.contains(&object.name_any()) => changed.notify_one(),
                Ok(Event::InitDone) => changed.notify_one(),
                Ok(_) => {}
                Err(error) => tracing::debug!(error = chain(&error), "The watch of definitions begins again"),
            }
        }
    }

    async fn keep(&self, tls: &Tls, every: Duration, changed: &Notify) {
        loop {
            if timeout(every, changed.notified()).await.is_ok() {
                sleep(TOGETHER).await;
            }
            let looked = self.look().await;
            let taken = looked.and_then(|found| Ok(tls.take_pem(found.certificate.into(), found.key.into())?));
            match taken {
                Ok(false) => {}
                Ok(true) => tracing::info!(secret = %self.secret, "A new certificate is in use"),
                Err(error) => tracing::warn!(error = chain(&error), "The certificate of the webhook stays as it is"),
            }
        }
    }

    /// Does what is due, and lets the definitions list the authorities.
    async fn look(&self) -> Result<Material, CertificateError> {
        let material = self.renew().await?;
        let written = publish(&self.client, &self.definitions, &self.address, &material.authorities).await;
        let written = written.map_err(CertificateError::Definitions)?;
        if !written.is_empty() {
            let definitions = written.join(", ");
            tracing::info!(definitions, address = %self.address, "Definitions ask this webhook");
        }
        Ok(material)
    }

    async fn renew(&self) -> Result<Material, CertificateError> {
        let failed = |source| CertificateError::Secret {
            secret: self.secret.clone(),
            source,
        };
        for _ in 0..TRIES_MAX {
            let found = secret::read(&self.client, &self.secret).await.map_err(failed)?;
            let due = match &found {
                None => Material::make(&self.address.host(), Timestamp::now())?,
                Some(found) => {
                    let Some(material) = &found.material else {
                        return Err(CertificateError::Foreign(self.secret.clone()));
                    };
                    let due = self.due(material).await?;
                    if due == *material {
                        return Ok(due);
                    }
                    due
                }
            };
            if secret::write(&self.client, &self.secret, found, &due)
                .await
                .map_err(failed)?
            {
                tracing::info!(secret = %self.secret, host = self.address.host(), "A certificate was made");
                return Ok(due);
            }
        }
        Err(CertificateError::Contended(self.secret.clone()))
    }

    /// What should be stored.
    async fn due(&self, material: &Material) -> Result<Material, CertificateError> {
        let (host, now) = (self.address.host(), Timestamp::now());
        let published = published(&self.client, &self.definitions, &self.address, &material.authorities).await;
        let published = published.map_err(CertificateError::Definitions)?;
        let step = match material.stored(&host, published) {
            Ok(stored) => step(&stored, now),
            Err(error) => {
                tracing::warn!(%error, secret = %self.secret, "A certificate is made anew");
                Step::Both
            }
        };
        Ok(material.after(step, &host, now)?)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::{Arc, Mutex};

    use bytes::Bytes;
    use http::{Method, Request, Response};
    use http_body_util::BodyExt as _;
    use kube::client::Body;
    use serde_json::{Value, json};

    use super::*;

    /// What the cluster was sent, and the Secret that it has.
    #[derive(Default)]
    struct Sent {
        writes: Vec<String>,
        secret: Option<Bytes>,
    }

    impl Sent {
        /// Code and body for a request to the last part of its path. A webhook denies each change of `a`.
        fn answer(&mut self, method: &Method, at: &str, body: Bytes) -> (u16, Bytes) {
            let what = format!("{method} {at}");
            if method != Method::GET {
                self.writes.push(what.clone());
            }
            let text = |value: Value| Bytes::from(value.to_string());
            let refused = |code: u16, reason: &str, message: &str| {
                let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
                    "reason": reason, "message": message, "details": {"name": at}});
                (code, text(status))
            };
            match what.as_str() {
                "GET webhook" => match &self.secret {
                    Some(secret) => (200, secret.clone()),
                    None => refused(404, "NotFound", "secrets \"webhook\" not found"),
                },
                "POST secrets" => {
                    self.secret = Some(body.clone());
                    (201, body)
                }
                "PATCH a" => refused(403, "Forbidden", "admission webhook \"a.b.c\" denied the request: no"),
                "GET a" | "GET b" | "PATCH b" => {
                    let spec = json!({"conversion": {"strategy": "Webhook", "webhook": {"clientConfig": {}}}});
                    let found = json!({"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1",
                        "metadata": {"name": at}, "spec": spec});
                    (200, text(found))
                }
                other => panic!("nobody answers {other}"),
            }
        }
    }

    fn client(sent: &Arc<Mutex<Sent>>) -> Client {
        let sent = sent.clone();
        let answer = move |request: Request<Body>| {
            let sent = sent.clone();
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect().await.expect("a body").to_bytes();
                let at = parts.uri.path().rsplit('/').next().unwrap_or_default();
                let (code, said) = sent.lock().expect("no panic").answer(&parts.method, at, body);
                let response = Response::builder().status(code);
                Ok::<_, Infallible>(response.body(Body::from(said)).expect("an answer"))
            }
        };
        Client::new(tower::service_fn(answer), "default")
    }

    /// As if one definition that a webhook denies kept the certificate back from those that ask for it.
    #[tokio::test]
    async fn a_definition_that_is_denied_keeps_no_certificate_back() {
        let sent: Arc<Mutex<Sent>> = Arc::default();
        let keeper = |names: &[&str]| {
            let secret = "default/webhook".parse().expect("a Secret");
            let address = "default/kindex".parse().expect("a Service");
            let names = names.iter().map(|name| (*name).to_owned());
            CertificateRotator::new(client(&sent), secret, address, names.collect())
        };
        for look in ["the first look", "another look"] {
            let served = keeper(&["a", "b"]).tls().await;
            assert!(served.is_ok(), "{look}: {:?}", served.err());
        }
        let mut writes = std::mem::take(&mut sent.lock().expect("no panic").writes);
        writes.dedup();
        assert_eq!(writes, ["POST secrets", "PATCH a", "PATCH b", "PATCH a", "PATCH b"]);
        let alone = keeper(&["a"]).tls().await.err();
        assert!(matches!(alone, Some(CertificateError::Definitions(_))), "{alone:?}");
    }
}
