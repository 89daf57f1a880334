//! Which requests are let in: of one client so many a second; then by who sends them, before anything of their bodies
//! is read; then as a whole, and so many at once, whose places callers share. Whoever is rejected is told so, and
//! when to ask again.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::Response;
use kindex_kube_api::size::OBJECT_BYTES_MAX;
use kindex_kube_api::status::Status;
use kindex_serve::admission::{Admission, AdmissionPolicy, Candidate, Denied, Lane};
use kindex_serve::body::{self, BodyError};
use kindex_serve::budget::Budget;
use kindex_serve::gate::Gate;
use kindex_serve::listen::Peer;
use kindex_serve::rate::Rate;
use sha2::{Digest, Sha256};

use super::Limits;
use super::authentication::{Authenticator, CallerIdentity};
use super::request_class::RequestClass;
use crate::grpc;
use crate::metrics::{Metrics, Operation, RejectionReason};
use crate::operations::{Reason, Refusal};
use crate::rest::refused;

/// Requests whose senders are found out at once.
const AUTHENTICATIONS_MAX: usize = 64;

/// Whose requests are counted together.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Client {
    /// The hash of a token, or of the user whom kube-apiserver names.
    Named([u8; 32]),
    Address(Option<IpAddr>),
}

impl Client {
    fn of(head: &Parts) -> Self {
        let peer = head.extensions.get::<Peer>();
        let shown = match peer.is_some_and(|peer| peer.is_front_proxy) {
            true => head.headers.get("x-remote-user"),
            false => head.headers.get(header::AUTHORIZATION),
        };
        match shown {
            Some(shown) => Self::Named(Sha256::digest(shown.as_bytes()).into()),
            None => Self::Address(peer.map(|peer| peer.address)),
        }
    }
}

/// Who shares places: a user, or those at one address of whom no more is known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum AdmissionKey {
    User(String),
    Address(Option<IpAddr>),
}

impl AdmissionKey {
    fn of(caller: CallerIdentity, head: &Parts) -> Self {
        match caller {
            CallerIdentity::Named(name) => Self::User(name),
            CallerIdentity::Unnamed => Self::Address(head.extensions.get::<Peer>().map(|peer| peer.address)),
        }
    }
}

/// The admission policy of the API server.
struct ApiAdmissionPolicy {
    authenticator: Arc<dyn Authenticator>,
    rate: Option<Rate<Client>>,
    /// By address alone: nobody is known yet.
    authentications: Arc<Gate<AdmissionKey>>,
    health: Lane<AdmissionKey>,
    leases: Lane<AdmissionKey>,
    reads: Lane<AdmissionKey>,
    changes: Lane<AdmissionKey>,
    metrics: Metrics,
}

impl ApiAdmissionPolicy {
    fn new(limits: &Limits, authenticator: Arc<dyn Authenticator>, metrics: Metrics) -> Self {
        let bodies = Budget::new(limits.body_bytes);
        let bodies_aside = Budget::new(limits.body_bytes);
        Self {
            authenticator,
            rate: limits.requests_per_second.map(Rate::new),
            authentications: Gate::new(AUTHENTICATIONS_MAX, limits.grace),
            health: Lane::new(limits.aside, limits.grace, &bodies),
            leases: Lane::new(limits.aside, limits.grace, &bodies_aside),
            reads: Lane::new(limits.reads, limits.grace, &bodies),
            changes: Lane::new(limits.changes, limits.grace, &bodies),
            metrics,
        }
    }

    fn lane(&self, class: RequestClass) -> &Lane<AdmissionKey> {
        match class {
            RequestClass::Health => &self.health,
            RequestClass::Leases => &self.leases,
            RequestClass::Read => &self.reads,
            RequestClass::Change => &self.changes,
        }
    }

    async fn authenticate(&self, head: &Parts, class: RequestClass) -> Result<CallerIdentity, Refusal> {
        if let Some(rate) = &self.rate {
            rate.count(&Client::of(head))
                .map_err(|why| self.refuse(head, why.into()))?;
        }
        if class == RequestClass::Health {
            return Ok(CallerIdentity::Unnamed);
        }
        let place = self
            .authentications
            .enter(AdmissionKey::of(CallerIdentity::Unnamed, head))
            .await;
        let _place = place.map_err(|why| self.refuse(head, why.into()))?;
        self.authenticator.authenticate_request(head).await
    }
}

impl AdmissionPolicy for ApiAdmissionPolicy {
    type Caller = AdmissionKey;
    type Refusal = Refusal;

    async fn candidate(&self, head: &Parts) -> Result<Candidate<'_, AdmissionKey>, Refusal> {
        let class = RequestClass::of(head);
        let caller = self.authenticate(head, class).await?;
        Ok(Candidate {
            caller: AdmissionKey::of(caller, head),
            lane: self.lane(class),
            body_bytes_max: body_bytes_max(head),
        })
    }

    fn refuse(&self, head: &Parts, why: Denied) -> Refusal {
        let (counted, refusal) = match why {
            Denied::Full(_) => {
                let message = "too many requests in flight; try again";
                let refusal = Refusal::try_again(Reason::TooManyRequests, message);
                (Some(RejectionReason::InFlight), refusal)
            }
            Denied::RateExceeded(error) => {
                let message = format!("{error}; try again later");
                let refusal = Refusal::try_again(Reason::TooManyRequests, message);
                (Some(RejectionReason::Rate), refusal)
            }
            Denied::Body(error) => of_a_body(head, error),
        };
        if let Some(why) = counted {
            self.metrics.count_rejection(why);
        }
        refusal
    }
}

/// As much as a request may bring. A stream of messages is read by whoever answers it.
fn body_bytes_max(head: &Parts) -> Option<usize> {
    if grpc::is_streamed(head.uri.path()) || !body::is_expected(&head.method) {
        return None;
    }
    // What stands before a message counts beside it.
    let prefix_bytes = if grpc::is_grpc(&head.headers) {
        grpc::PREFIX_BYTES
    } else {
        0
    };
    Some(OBJECT_BYTES_MAX + prefix_bytes)
}

/// Why a body is not read, and as what that is counted.
fn of_a_body(head: &Parts, error: BodyError) -> (Option<RejectionReason>, Refusal) {
    match error {
        BodyError::TooSlow => (
            Some(RejectionReason::SlowBody),
            Status::too_slow(error.to_string()).into(),
        ),
        BodyError::NoRoom(_) => (
            Some(RejectionReason::BodyBytes),
            Refusal::try_again(Reason::TooManyRequests, format!("{error}; try again")),
        ),
        BodyError::TooLarge(_) if grpc::is_grpc(&head.headers) => (None, grpc::too_large()),
        BodyError::TooLarge(limit) => (None, Status::too_large(limit).into()),
        BodyError::Broken(error) => {
            let message = format!("error reading the body: {error}");
            (None, Refusal::bad_request(message))
        }
    }
}

/// What lets requests in, and counts them.
pub(super) struct ApiAdmission {
    admission: Admission<ApiAdmissionPolicy>,
    metrics: Metrics,
}

impl ApiAdmission {
    pub(super) fn new(limits: &Limits, authenticator: Arc<dyn Authenticator>, metrics: Metrics) -> Self {
        let policy = ApiAdmissionPolicy::new(limits, authenticator, metrics.clone());
        Self {
            admission: Admission::new(policy, limits.connections.body, limits.grace),
            metrics,
        }
    }
}

/// Lets a request in or turns it away, and counts it.
pub(super) async fn admit(State(admission): State<Arc<ApiAdmission>>, request: Request, next: Next) -> Response {
    let (mut head, mut body) = request.into_parts();
    let deadline = grpc::deadline(&head.headers);
    head.extensions.insert(deadline);
    let admitted = match deadline.bound(admission.admission.admit(&head, &mut body)).await {
        Ok(Ok(admitted)) => admitted,
        Ok(Err(refusal)) => {
            return match grpc::is_grpc(&head.headers) {
                true => grpc::refused(&refusal),
                false => refused(&refusal),
            };
        }
        Err(late) => return late.into_http::<Body>(),
    };
    if !grpc::is_streamed(head.uri.path()) {
        body = Body::from(admitted.body);
    }
    let began = Instant::now();
    let response = next.run(Request::from_parts(head, body)).await;
    // A watch takes none while it goes on.
    drop(admitted.permits);
    if let Some(operation) = response.extensions().get::<Operation>() {
        admission
            .metrics
            .answered(*operation, &code(&response), began.elapsed());
    }
    response
}

/// Of a gRPC answer its own code, where the head has it.
fn code(response: &Response) -> String {
    let grpc = response
        .headers()
        .get("grpc-status")
        .and_then(|code| code.to_str().ok());
    grpc.map_or_else(|| response.status().as_u16().to_string(), |code| format!("grpc {code}"))
}
