//! Limits of the server, and which requests are let in within them. Health needs no place, leases and the ingester have
//! places of their own, and all others share theirs by address and program.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hyper::header;
use hyper::http::request::Parts;
use kindex_kube_api::patch::PatchType;
use kindex_kube_api::request::{self, Target};
use kindex_kube_api::size::OBJECT_BYTES_MAX;
use kindex_kube_api::status::Status;
use kindex_serve::admission::{AdmissionPolicy, Candidate, Denied, Lane};
use kindex_serve::body::{self, BodyError};
use kindex_serve::budget::Budget;
use kindex_serve::listen::{ConnectionLimits, Peer};
use kindex_serve::watches::WatchLimits;

use crate::access::{self, Holder, Tokens};

/// So much of a program's name tells it from others.
const PROGRAM_MAX_BYTES: usize = 64;

/// Limits of a cluster.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections, and how fast what comes on them has to come.
    pub connections: ConnectionLimits,
    /// Bytes of the bodies of all requests in flight together; of leases and of the ingester as many beside these.
    pub body_bytes: usize,
    /// Requests at once, a watch until it has begun.
    pub requests: usize,
    /// The same for leases, and for the ingester.
    pub requests_aside: usize,
    /// How long a request waits for its place.
    pub queue_timeout: Duration,
    /// All watches together.
    pub watches: WatchLimits,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: ConnectionLimits::default(),
            body_bytes: 128 * 1024 * 1024,
            requests: 400,
            requests_aside: 50,
            queue_timeout: Duration::from_secs(10),
            // Half of the store's readers.
            watches: WatchLimits {
                beginnings: 2,
                ..WatchLimits::default()
            },
        }
    }
}

/// Whose requests share places.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Caller {
    address: IpAddr,
    /// Shared: each request clones its caller several times.
    program: Arc<str>,
    holder: Holder,
}

impl Caller {
    /// Programs of one machine are told apart by what they call themselves, which gives them nothing but a share: the
    /// ingester is told by its token.
    pub(crate) fn new(address: IpAddr, user_agent: Option<&str>, holder: Holder) -> Self {
        let agent = user_agent.unwrap_or_default();
        let program = agent.split(['/', ' ']).next().unwrap_or_default();
        Self {
            address,
            program: Arc::from(&program[..program.floor_char_boundary(PROGRAM_MAX_BYTES)]),
            holder,
        }
    }
}

/// A request of a part of this process, which shows no token: an extension that no connection brings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InternalRequest(pub(crate) Holder);

/// Classes of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestClass {
    Health,
    Leases,
    Ingester,
    Other,
}

impl RequestClass {
    fn of(target: &Target, caller: &Caller) -> Self {
        match target {
            Target::Health => Self::Health,
            Target::Resource(path) if path.is_lease() => Self::Leases,
            _ if caller.holder == Holder::Ingester => Self::Ingester,
            _ => Self::Other,
        }
    }
}

/// The admission policy of a cluster that is found at an address.
pub(crate) struct ClusterAdmissionPolicy {
    tokens: Tokens,
    address: SocketAddr,
    health: Lane<Caller>,
    leases: Lane<Caller>,
    ingester: Lane<Caller>,
    others: Lane<Caller>,
}

impl ClusterAdmissionPolicy {
    pub(crate) fn new(limits: &Limits, tokens: Tokens, address: SocketAddr) -> Self {
        let bodies = Budget::new(limits.body_bytes);
        let bodies_aside = Budget::new(limits.body_bytes);
        Self {
            tokens,
            address,
            health: Lane::unlimited(&bodies),
            leases: Lane::new(limits.requests_aside, limits.queue_timeout, &bodies_aside),
            ingester: Lane::new(limits.requests_aside, limits.queue_timeout, &bodies_aside),
            others: Lane::new(limits.requests, limits.queue_timeout, &bodies),
        }
    }

    fn caller(&self, head: &Parts) -> Result<Caller, Status> {
        let peer = head.extensions.get::<Peer>().map(|peer| peer.address);
        let holder = match head.extensions.get::<InternalRequest>() {
            Some(InternalRequest(holder)) => *holder,
            None => access::check(&self.tokens, self.address, head)?,
        };
        let agent = head.headers.get(header::USER_AGENT);
        let agent = agent.and_then(|agent| agent.to_str().ok());
        Ok(Caller::new(peer.unwrap_or(self.address.ip()), agent, holder))
    }

    fn lane(&self, class: RequestClass) -> &Lane<Caller> {
        match class {
            RequestClass::Health => &self.health,
            RequestClass::Leases => &self.leases,
            RequestClass::Ingester => &self.ingester,
            RequestClass::Other => &self.others,
        }
    }
}

impl AdmissionPolicy for ClusterAdmissionPolicy {
    type Caller = Caller;
    type Refusal = Status;

    async fn candidate(&self, head: &Parts) -> Result<Candidate<'_, Caller>, Status> {
        let caller = self.caller(head)?;
        let target = request::parse_path(head.uri.path());
        let has_body = matches!(target, Target::Resource(_)) && body::is_expected(&head.method);
        Ok(Candidate {
            lane: self.lane(RequestClass::of(&target, &caller)),
            caller,
            body_bytes_max: has_body.then_some(OBJECT_BYTES_MAX),
        })
    }

    /// Copies of a JSON patch make as much as the largest body may bring.
    fn weight(&self, head: &Parts, body: &[u8]) -> usize {
        const PATCH: &[u8] = PatchType::Json.media_type().as_bytes();
        const COPY: &[u8] = b"\"copy\"";
        let content_type = head.headers.get(header::CONTENT_TYPE);
        let is_patch = content_type.is_some_and(|value| value.as_bytes().starts_with(PATCH));
        match is_patch && body.windows(COPY.len()).any(|part| part == COPY) {
            true => OBJECT_BYTES_MAX,
            false => body.len(),
        }
    }

    fn refuse(&self, _head: &Parts, why: Denied) -> Status {
        match why {
            Denied::Body(BodyError::TooLarge(limit)) => Status::too_large(limit),
            Denied::Body(error @ BodyError::TooSlow) => Status::too_slow(error.to_string()),
            Denied::Body(BodyError::Broken(error)) => Status::bad_request(format!("error reading the body: {error}")),
            Denied::Body(BodyError::NoRoom(_)) | Denied::Full(_) | Denied::RateExceeded(_) => {
                Status::too_many_requests(format!("{why}; try again"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_one_address_are_told_apart_by_name_and_not_by_version() {
        let caller = |agent| Caller::new(IpAddr::from([127, 0, 0, 1]), agent, Holder::Anybody);
        assert_eq!(caller(Some("kubectl/v1.33 (linux)")), caller(Some("kubectl/v1.34")));
        assert_ne!(caller(Some("kubectl/v1.33")), caller(Some("helm/v3")));
        assert_eq!(caller(Some("")), caller(None));
    }

    #[test]
    fn the_ingester_has_places_of_its_own_by_its_token_and_by_no_name() {
        let agent = Some("kindex-ingester/0.1");
        let class = |holder| {
            let caller = Caller::new(IpAddr::from([127, 0, 0, 1]), agent, holder);
            RequestClass::of(&Target::Root, &caller)
        };
        assert_eq!(class(Holder::Anybody), RequestClass::Other);
        assert_eq!(class(Holder::Ingester), RequestClass::Ingester);
    }
}
