//! What the server bears: connections, bodies, requests at once and watches. Health needs no place, leases and the
//! ingester have places of their own, and all others share theirs by address and program.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::Method;
use hyper::body::Incoming;
use kindex_serve::BodyPace;
use kindex_serve::body::{self, BodyError};
use kindex_serve::gate::{Gate, Place};
use kindex_serve::watches::WatchLimits;

use crate::request::Target;
use crate::status::Status;

/// The largest body that is read.
const BODY_MAX_BYTES: usize = 3 * 1024 * 1024;
/// What Kindex's ingester calls itself.
const INGESTER: &str = "kindex-ingester";
/// The group of leases.
const LEASES: &str = "coordination.k8s.io";
/// So much of a program's name tells it from others.
const PROGRAM_MAX_BYTES: usize = 64;

/// What a cluster bears.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at once; who comes later waits until one ends.
    pub connections: usize,
    /// A new connection whose first request takes longer is closed.
    pub first: Duration,
    /// A connection is closed whose next request has not come, or not as a whole up to its body, after so long.
    pub idle: Duration,
    /// How fast bodies have to come.
    pub body: BodyPace,
    /// Requests at once, a watch until it has begun.
    pub requests: usize,
    /// The same for leases, and for the ingester.
    pub requests_aside: usize,
    /// How long a request waits for its place.
    pub patience: Duration,
    /// All watches together.
    pub watches: WatchLimits,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 16_384,
            first: Duration::from_secs(10),
            idle: Duration::from_secs(120),
            body: BodyPace::default(),
            requests: 400,
            requests_aside: 50,
            patience: Duration::from_secs(10),
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
    program: String,
}

impl Caller {
    /// Programs of one machine are told apart by what they call themselves.
    pub(crate) fn new(address: IpAddr, user_agent: Option<&str>) -> Self {
        let agent = user_agent.unwrap_or_default();
        let program = agent.split(['/', ' ']).next().unwrap_or_default();
        Self {
            address,
            program: program.chars().take(PROGRAM_MAX_BYTES).collect(),
        }
    }
}

/// The places of requests.
pub(crate) struct Door {
    body: BodyPace,
    requests: Arc<Gate<Caller>>,
    leases: Arc<Gate<Caller>>,
    ingester: Arc<Gate<Caller>>,
}

impl Door {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            body: limits.body,
            requests: Gate::new(limits.requests, limits.patience),
            leases: Gate::new(limits.requests_aside, limits.patience),
            ingester: Gate::new(limits.requests_aside, limits.patience),
        }
    }

    /// The body of a request. What only reads has none, whatever is sent.
    pub(crate) async fn read(&self, method: &Method, incoming: Incoming) -> Result<Bytes, Status> {
        if matches!(*method, Method::GET | Method::HEAD) {
            return Ok(Bytes::new());
        }
        let whole = body::read(incoming, &self.body, BODY_MAX_BYTES).await;
        whole.map_err(|error| match error {
            BodyError::TooLarge(limit) => Status::too_large(limit),
            BodyError::TooSlow => Status::too_slow(error.to_string()),
            BodyError::Broken(error) => Status::bad_request(format!("error reading the body: {error}")),
        })
    }

    /// A place for a request of which all is there. Health is answered without one.
    pub(crate) async fn enter(&self, target: &Target, caller: Caller) -> Result<Option<Place<Caller>>, Status> {
        let gate = match target {
            Target::Health => return Ok(None),
            Target::Resource(path) if path.group == LEASES => &self.leases,
            _ if caller.program == INGESTER => &self.ingester,
            _ => &self.requests,
        };
        let place = gate.enter(caller).await;
        place
            .map(Some)
            .map_err(|full| Status::too_many_requests(format!("{full}; try again")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_one_address_are_told_apart_by_name_and_not_by_version() {
        let caller = |agent| Caller::new(IpAddr::from([127, 0, 0, 1]), agent);
        assert_eq!(caller(Some("kubectl/v1.33 (linux)")), caller(Some("kubectl/v1.34")));
        assert_ne!(caller(Some("kubectl/v1.33")), caller(Some("kindex-ingester/0.1")));
        assert_eq!(caller(Some("")), caller(None));
    }
}
