//! A kind of another service: its objects with the references on them, as their service shows and changes them.

use std::time::Duration;

use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use kindex_kube_api::status::Outcome;
use kindex_model::causes::chain;
use kube::client::Body;
use kube::core::{ApiResource, Status};
use kube::{Client, discovery};
use serde_json::Value;
use tokio::sync::OnceCell;
use tokio::time::{Instant, timeout};

use super::address::Address;
use super::answer::{About, Unanswered, path, topic};
use crate::classify::{is_unexplained, outcome_of};
use crate::{ClusterCause, ClusterError, ObjectName};

/// How long a service may take for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// A kind, and where its service is.
pub struct PeerKind {
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

impl PeerKind {
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
    pub fn service_description(&self) -> String {
        format!("the service {} at {}", self.address.name, self.address.url)
    }

    /// What the service says of an object and the references on it at this moment; `None` where it has no such object.
    ///
    /// # Errors
    /// Where the service does not say whether there is one.
    pub async fn references(&self, object: &ObjectName) -> Result<Option<Value>, ClusterError> {
        self.get(object, About::All).await
    }

    /// What the service says of an object at this moment; `None` where it has no such object. The references on it are
    /// not asked for.
    ///
    /// # Errors
    /// Where the service does not say whether there is one.
    pub async fn look(&self, object: &ObjectName) -> Result<Option<Value>, ClusterError> {
        self.get(object, About::Object).await
    }

    /// Places a reference, and gives back what the service says of the object. That it is there already is success.
    ///
    /// # Errors
    /// [`ClusterError::Conflict`] where the object is being deleted, [`ClusterError::NotFound`] where there is none.
    pub async fn place_reference(&self, object: &ObjectName, reference: &str) -> Result<Value, ClusterError> {
        self.put(object, About::One(reference)).await
    }

    /// Places a reference by a write in any case, so that no release which depends on an earlier version of the object
    /// takes it off.
    ///
    /// # Errors
    /// As [`place_reference`](Self::place_reference).
    pub async fn renew_reference(&self, object: &ObjectName, reference: &str) -> Result<Value, ClusterError> {
        self.put(object, About::Renewed(reference)).await
    }

    async fn put(&self, object: &ObjectName, about: About<'_>) -> Result<Value, ClusterError> {
        let answer = self.ask(Method::PUT, object, about).await;
        answer.map_err(|unanswered| self.not_placed(object, unanswered))
    }

    fn not_placed(&self, object: &ObjectName, unanswered: Unanswered) -> ClusterError {
        match unanswered {
            Unanswered::Status(status) if outcome_of(&status).is_conflict() => {
                ClusterError::Conflict(status.message.clone())
            }
            unanswered if unanswered.is_absence(object) => {
                ClusterError::NotFound(format!("{} {object} at {}", self.kind, self.service_description()))
            }
            unanswered => self.why(unanswered),
        }
    }

    /// Releases a reference; with a version, only if an object in the cluster has that still. That it or its object is
    /// not there is success.
    ///
    /// # Errors
    /// [`ClusterError::Conflict`] where the object has another version; else where the service does not say that it is
    /// released.
    pub async fn release_reference(
        &self,
        object: &ObjectName,
        reference: &str,
        at: Option<&str>,
    ) -> Result<(), ClusterError> {
        let about = at.map_or(About::One(reference), |at| About::At(reference, at));
        match self.ask(Method::DELETE, object, about).await {
            Ok(_) => Ok(()),
            Err(unanswered) => self.not_released(object, at, unanswered),
        }
    }

    fn not_released(&self, object: &ObjectName, at: Option<&str>, unanswered: Unanswered) -> Result<(), ClusterError> {
        match unanswered {
            Unanswered::Status(status) if at.is_some() && outcome_of(&status).is_conflict() => {
                Err(ClusterError::Conflict(status.message.clone()))
            }
            unanswered if unanswered.is_absence(object) => Ok(()),
            unanswered => Err(self.why(unanswered)),
        }
    }

    /// How the service calls the kind. Asked once: a kind keeps its plural.
    ///
    /// # Errors
    /// Where the service does not answer, or serves no such kind.
    pub async fn resource(&self) -> Result<&Resource, ClusterError> {
        let begun = Instant::now();
        let asked = self.resource.get_or_try_init(|| async {
            // One that has waited for another's failure would give up before the service can answer.
            if begun.elapsed() > ANSWER_TIMEOUT / 2 {
                return Err(self.late());
            }
            let client = self.address.client().await.map_err(|why| self.unclear(&why))?;
            let group = discovery::group(&client, &self.group).await;
            let group = group.map_err(|error| self.failed(error))?;
            let found = group.recommended_kind(&self.kind);
            let (api, _) = found.ok_or_else(|| self.unclear(&format!("it has no kind {}", self.kind)))?;
            Ok(Resource { client, api })
        });
        // That is also the time of those who wait while another one asks.
        match timeout(ANSWER_TIMEOUT, asked).await {
            Ok(answer) => answer,
            Err(_) => Err(self.late()),
        }
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
        self.unknown(ClusterCause::Unavailable, why)
    }

    fn unknown(&self, cause: ClusterCause, why: &str) -> ClusterError {
        ClusterError::Retryable {
            cause,
            retry_after: None,
            message: format!("{} does not answer: {why}", self.service_description()),
        }
    }

    async fn get(&self, object: &ObjectName, about: About<'_>) -> Result<Option<Value>, ClusterError> {
        match self.ask(Method::GET, object, about).await {
            Ok(answer) => Ok(Some(answer)),
            Err(unanswered) if unanswered.is_absence(object) => Ok(None),
            Err(unanswered) => Err(self.why(unanswered)),
        }
    }

    async fn ask(&self, method: Method, object: &ObjectName, about: About<'_>) -> Result<Value, Unanswered> {
        let resource = self.resource().await?;
        let path = path(&resource.topic(), object, about);
        let request = Request::builder().method(method).uri(path).body(Body::empty());
        let request = request.map_err(|error| ClusterError::Refused(error.to_string()))?;
        let answer = self.answer(&resource.client, request, about.answer_max_bytes());
        match timeout(ANSWER_TIMEOUT, answer).await {
            Ok(answer) => answer,
            Err(_) => Err(self.late().into()),
        }
    }

    /// As `Client::request`, but of an answer of this length at most.
    async fn answer(&self, client: &Client, request: Request<Body>, max_bytes: usize) -> Result<Value, Unanswered> {
        let response = client.send(request).await.map_err(|error| self.failed(error))?;
        let code = response.status();
        let body = Limited::new(response.into_body(), max_bytes).collect().await;
        let body = body.map_err(|error| {
            if error.is::<LengthLimitError>() {
                self.unclear(&format!("its answer has more than {max_bytes} bytes"))
            } else {
                self.unclear(&chain(&*error))
            }
        })?;
        let body = body.to_bytes();
        if code.is_client_error() || code.is_server_error() {
            return Err(Unanswered::Status(Box::new(status(code, &body))));
        }
        let answer = serde_json::from_slice(&body);
        answer.map_err(|error| self.unclear(&chain(&error)).into())
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
        // An expired token and a path that the service does not have are the same for every object.
        match outcome_of(status) {
            Outcome::AlreadyExists | Outcome::Conflict | Outcome::Absent | Outcome::Denied { again: true } => {
                self.unknown(ClusterCause::Unclear, &status.message)
            }
            Outcome::Unauthorized
            | Outcome::Unserved
            | Outcome::TooManyRequests
            | Outcome::Timeout
            | Outcome::Unavailable
            | Outcome::InternalError => self.unclear(&status.message),
            Outcome::Refused if is_unexplained(status) => self.unclear(&status.message),
            Outcome::Expired
            | Outcome::Forbidden
            | Outcome::NamespaceTerminating
            | Outcome::Invalid
            | Outcome::BadRequest
            | Outcome::Denied { again: false }
            | Outcome::Refused => ClusterError::Refused(format!("{}: {}", self.service_description(), status.message)),
        }
    }

    fn late(&self) -> ClusterError {
        self.unclear("no answer in time")
    }
}

/// A refusal. What stands between the service and us may refuse in a form of its own.
fn status(code: StatusCode, body: &[u8]) -> Status {
    let status: Status = serde_json::from_slice(body).unwrap_or_else(|_| {
        let text = String::from_utf8_lossy(body);
        Status::failure(text.trim(), "Failed to parse error data")
    });
    // It may be JSON that has no code.
    status.with_code(code.as_u16())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn networks() -> PeerKind {
        let address = Address {
            name: "region".to_owned(),
            url: "http://region".to_owned(),
            ca_file: None,
            token_file: None,
        };
        PeerKind::new("region.example.com", "Network", address)
    }

    fn said(code: u16) -> Unanswered {
        let status = json!({"code": code, "message": "", "details": {"name": "blue"}});
        Unanswered::Status(serde_json::from_value(status).expect("a status"))
    }

    #[test]
    fn a_refusal_is_not_tried_again_and_an_outage_is() {
        let why = networks().why(said(503));
        assert!(matches!(why, ClusterError::Retryable { .. }), "{why}");
        assert!(matches!(networks().why(said(403)), ClusterError::Refused(_)));
    }

    #[test]
    fn a_refusal_of_one_object_is_no_silence_of_its_service() {
        for code in [400, 403, 404, 409, 413, 422] {
            let why = networks().why(said(code));
            assert!(!why.is_silence(), "{code}: {why}");
        }
        // The client library knows no code of JSON that has none, such as a gateway's.
        for code in [0, 401, 408, 429, 500, 502, 503, 504] {
            let why = networks().why(said(code));
            assert!(why.is_silence(), "{code}: {why}");
        }
        assert!(networks().late().is_silence(), "nobody has answered");
    }

    fn denied(code: u16) -> Unanswered {
        let status = json!({
            "code": code,
            "message": "admission webhook \"a.b.c\" denied the request: networks \"blue\" not found",
            "details": {"name": "blue"},
        });
        Unanswered::Status(serde_json::from_value(status).expect("a status"))
    }

    /// As if a reference were released, or its object on its way, because a webhook did not find what it looked up.
    #[test]
    fn a_denial_says_nothing_of_the_object_nor_of_its_service() {
        let blue = ObjectName {
            namespace: "default".to_owned(),
            name: "blue".to_owned(),
        };
        for code in [404, 409, 503] {
            let placed = networks().not_placed(&blue, denied(code));
            let released = networks().not_released(&blue, None, denied(code));
            let released_at = networks().not_released(&blue, Some("7"), denied(code));
            let released = released.expect_err("it is not released");
            for why in [placed, released, released_at.expect_err("it is not released")] {
                let is_of_object = matches!(why, ClusterError::Conflict(_) | ClusterError::NotFound(_));
                assert!(!is_of_object, "{code}: {why}");
                assert!(!why.is_silence(), "{code}: {why}");
            }
        }
        assert!(matches!(
            networks().not_placed(&blue, said(409)),
            ClusterError::Conflict(_)
        ));
        assert!(matches!(
            networks().not_placed(&blue, said(404)),
            ClusterError::NotFound(_)
        ));
        assert!(networks().not_released(&blue, None, said(404)).is_ok());
    }

    /// A service of an older version has no such path, for any object.
    #[test]
    fn a_path_that_a_service_does_not_have_is_a_silence() {
        for body in ["404 page not found", r#"{"code": 404, "message": "", "details": {}}"#] {
            let unserved = status(StatusCode::NOT_FOUND, body.as_bytes());
            let why = networks().why(Unanswered::Status(Box::new(unserved)));
            assert!(why.is_silence(), "{body}: {why}");
        }
    }

    /// As if an object of the service were gone because a gateway relays, below a failure of its own, that another
    /// server has none.
    #[test]
    fn a_gateway_that_fails_says_nothing_of_an_object_whatever_it_relays() {
        let blue = ObjectName {
            namespace: "default".to_owned(),
            name: "blue".to_owned(),
        };
        let absence =
            json!({"code": 404, "reason": "NotFound", "message": "", "details": {"name": "blue"}}).to_string();
        let said = |code: u16| {
            let code = StatusCode::from_u16(code).expect("a code");
            Unanswered::Status(Box::new(status(code, absence.as_bytes())))
        };
        assert!(said(404).is_absence(&blue));
        for code in [500, 502, 503] {
            assert!(!said(code).is_absence(&blue), "{code}");
            assert!(networks().why(said(code)).is_silence(), "{code}");
        }
    }

    #[test]
    fn a_refusal_in_another_form_is_one_of_its_code() {
        let said = json!({"kind": "Status", "code": 404, "message": "gone", "details": {"name": "blue"}}).to_string();
        let read = status(StatusCode::NOT_FOUND, said.as_bytes());
        assert_eq!((read.code, read.message.as_str()), (404, "gone"));
        assert_eq!(read.details.map(|details| details.name).as_deref(), Some("blue"));
        let read = status(StatusCode::BAD_GATEWAY, b"<html>bad gateway</html>\n");
        assert_eq!((read.code, read.message.as_str()), (502, "<html>bad gateway</html>"));
        assert!(read.details.is_none());
        let read = status(
            StatusCode::SERVICE_UNAVAILABLE,
            br#"{"message": "no healthy upstream"}"#,
        );
        assert_eq!((read.code, read.message.as_str()), (503, "no healthy upstream"));
    }
}
