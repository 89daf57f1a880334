//! A kind of another service: its objects with the references on them, as their service shows and changes them.

use std::time::Duration;

use http::{Method, Request};
use kube::core::{ApiResource, Status};
use kube::{Client, discovery};
use serde_json::Value;
use tokio::sync::OnceCell;
use tokio::time::timeout;

use super::address::Address;
use super::answer::{Unanswered, path, topic};
use crate::classify::chain;
use crate::{ClusterError, ObjectName};

/// How long a service may take for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// A kind, and where its service is.
pub struct ForeignKind {
    group: String,
    kind: String,
    address: Address,
    /// What is known of it once its service has answered.
    resource: OnceCell<Resource>,
}

/// How a service serves a kind.
pub struct Resource {
    /// A client of the service.
    pub client: Client,
    /// What the kind is called there.
    pub api: ApiResource,
}

impl Resource {
    /// The topic of the kind's events: `networks.region.example.com`.
    pub fn topic(&self) -> String {
        topic(&self.api)
    }
}

impl ForeignKind {
    /// The kind of the service at this address. Asks nothing yet.
    pub fn new(group: &str, kind: &str, address: Address) -> Self {
        Self {
            group: group.to_owned(),
            kind: kind.to_owned(),
            address,
            resource: OnceCell::new(),
        }
    }

    /// Where its service is.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// `the service region at https://region.example.com:6443`.
    pub fn place(&self) -> String {
        format!("the service {} at {}", self.address.name, self.address.url)
    }

    /// What the service says of an object and the references on it at this moment; `None` where it has no such object.
    ///
    /// # Errors
    /// Where the service does not say whether there is one.
    pub async fn references(&self, object: &ObjectName) -> Result<Option<Value>, ClusterError> {
        match self.ask(Method::GET, object, None).await {
            Ok(answer) => Ok(Some(answer)),
            Err(unanswered) if unanswered.is_absence(object) => Ok(None),
            Err(unanswered) => Err(self.why(unanswered)),
        }
    }

    /// Places a reference, and gives back what the service says of the object. That it is there already is success.
    ///
    /// # Errors
    /// [`ClusterError::Conflict`] where the object is being deleted, [`ClusterError::NotFound`] where there is none.
    pub async fn place_reference(&self, object: &ObjectName, reference: &str) -> Result<Value, ClusterError> {
        match self.ask(Method::PUT, object, Some(reference)).await {
            Ok(answer) => Ok(answer),
            Err(Unanswered::Status(status)) if status.code == 409 => {
                Err(ClusterError::Conflict(status.message.clone()))
            }
            Err(unanswered) if unanswered.is_absence(object) => Err(ClusterError::NotFound(format!(
                "{} {object} at {}",
                self.kind,
                self.place()
            ))),
            Err(unanswered) => Err(self.why(unanswered)),
        }
    }

    /// Releases a reference. That it or its object is not there is success.
    ///
    /// # Errors
    /// Where the service does not say that it is released.
    pub async fn release_reference(&self, object: &ObjectName, reference: &str) -> Result<(), ClusterError> {
        match self.ask(Method::DELETE, object, Some(reference)).await {
            Ok(_) => Ok(()),
            Err(unanswered) if unanswered.is_absence(object) => Ok(()),
            Err(unanswered) => Err(self.why(unanswered)),
        }
    }

    /// How the service calls the kind. Asked once: a kind keeps its plural.
    ///
    /// # Errors
    /// Where the service does not answer, or serves no such kind.
    pub async fn resource(&self) -> Result<&Resource, ClusterError> {
        let asked = self.resource.get_or_try_init(|| async {
            let client = self.address.client().await.map_err(|why| self.unclear(&why))?;
            let group = self.within(discovery::group(&client, &self.group)).await?;
            let found = group.recommended_kind(&self.kind);
            let (api, _) = found.ok_or_else(|| self.unclear(&format!("it has no kind {}", self.kind)))?;
            Ok(Resource { client, api })
        });
        asked.await
    }

    /// What the service answers in time.
    ///
    /// # Errors
    /// Where it does not, or refuses.
    pub async fn within<T>(&self, asked: impl Future<Output = Result<T, kube::Error>>) -> Result<T, ClusterError> {
        match timeout(ANSWER_TIMEOUT, asked).await {
            Ok(answer) => answer.map_err(|error| self.failed(error)),
            Err(_) => Err(self.late()),
        }
    }

    /// The service does not answer, for this reason.
    pub fn unclear(&self, why: &str) -> ClusterError {
        ClusterError::Retryable {
            cause: "unavailable",
            retry_after: None,
            message: format!("{} does not answer: {why}", self.place()),
        }
    }

    async fn ask(&self, method: Method, object: &ObjectName, reference: Option<&str>) -> Result<Value, Unanswered> {
        let resource = self.resource().await?;
        let path = path(&resource.topic(), object, reference);
        let request = Request::builder().method(method).uri(path).body(Vec::new());
        let request = request.map_err(|error| ClusterError::Refused(error.to_string()))?;
        match timeout(ANSWER_TIMEOUT, resource.client.request::<Value>(request)).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(kube::Error::Api(status))) => Err(Unanswered::Status(status)),
            Ok(Err(error)) => Err(self.failed(error).into()),
            Err(_) => Err(self.late().into()),
        }
    }

    /// Nothing follows from an answer that is none of this object.
    fn why(&self, unanswered: Unanswered) -> ClusterError {
        match unanswered {
            Unanswered::Status(status) => self.refused(&status),
            Unanswered::Other(error) => error,
        }
    }

    fn failed(&self, error: kube::Error) -> ClusterError {
        match error {
            kube::Error::Api(status) => self.refused(&status),
            other => self.unclear(&chain(&other)),
        }
    }

    fn refused(&self, status: &Status) -> ClusterError {
        match status.code {
            404 | 408 | 409 | 429 | 500.. => self.unclear(&status.message),
            _ => ClusterError::Refused(format!("{}: {}", self.place(), status.message)),
        }
    }

    fn late(&self) -> ClusterError {
        self.unclear("no answer in time")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_refusal_is_not_tried_again_and_an_outage_is() {
        let said = |code: u16| {
            let status = json!({"code": code, "message": "", "details": {"name": "blue"}});
            Unanswered::Status(serde_json::from_value(status).expect("a status"))
        };
        let address = Address {
            name: "region".to_owned(),
            url: "http://region".to_owned(),
            ca_file: None,
            token_file: None,
        };
        let networks = ForeignKind::new("region.example.com", "Network", address);
        let why = networks.why(said(503));
        assert!(matches!(why, ClusterError::Retryable { .. }), "{why}");
        assert!(matches!(networks.why(said(403)), ClusterError::Refused(_)));
    }
}
