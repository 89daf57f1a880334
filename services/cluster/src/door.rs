//! Limits of the server: connections, bodies, requests at once and watches. Health needs no place, leases and the
//! ingester have places of their own, and all others share theirs by address and program.

use std::error::Error;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::Method;
use hyper::body::Body;
use kindex_kube_api::request::Target;
use kindex_kube_api::status::Status;
use kindex_serve::BodyPace;
use kindex_serve::body::{self, BodyError};
use kindex_serve::budget::Budget;
use kindex_serve::gate::{Full, Gate, Place};
use kindex_serve::watches::WatchLimits;
use kindex_serve::work::Work;

use crate::access::Holder;

/// The largest body that is read.
pub(crate) const BODY_MAX_BYTES: usize = 3 * 1024 * 1024;
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
    /// Bytes of the bodies of all requests under way together; of leases and of the ingester as many beside these.
    pub body_bytes: usize,
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
            body_bytes: 128 * 1024 * 1024,
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
            program: program.chars().take(PROGRAM_MAX_BYTES).collect(),
            holder,
        }
    }
}

/// Which places, and which budget of bytes, a request takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lane {
    Health,
    Leases,
    Ingester,
    Others,
}

impl Lane {
    fn of(target: &Target, caller: &Caller) -> Self {
        match target {
            Target::Health => Self::Health,
            Target::Resource(path) if path.group == LEASES => Self::Leases,
            _ if caller.holder == Holder::Ingester => Self::Ingester,
            _ => Self::Others,
        }
    }
}

/// The places of requests.
pub(crate) struct Door {
    body: BodyPace,
    bodies: Arc<Budget<Caller>>,
    bodies_aside: Arc<Budget<Caller>>,
    work: Work<Caller>,
    requests: Arc<Gate<Caller>>,
    leases: Arc<Gate<Caller>>,
    ingester: Arc<Gate<Caller>>,
}

impl Door {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            body: limits.body,
            bodies: Budget::new(limits.body_bytes),
            bodies_aside: Budget::new(limits.body_bytes),
            work: Work::new(limits.patience),
            requests: Gate::new(limits.requests, limits.patience),
            leases: Gate::new(limits.requests_aside, limits.patience),
            ingester: Gate::new(limits.requests_aside, limits.patience),
        }
    }

    /// The body of a request. What only reads has none, whatever is sent.
    pub(crate) async fn read<B>(
        &self,
        method: &Method,
        target: &Target,
        caller: &Caller,
        incoming: B,
    ) -> Result<Bytes, Status>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        if matches!(*method, Method::GET | Method::HEAD) {
            return Ok(Bytes::new());
        }
        let budget = match Lane::of(target, caller) {
            Lane::Leases | Lane::Ingester => &self.bodies_aside,
            Lane::Health | Lane::Others => &self.bodies,
        };
        let whole = body::read(incoming, &self.body, BODY_MAX_BYTES, budget.claim(caller.clone())).await;
        whole.map_err(|error| match error {
            BodyError::TooLarge(limit) => Status::too_large(limit),
            BodyError::TooSlow => Status::too_slow(error.to_string()),
            BodyError::NoRoom(_) => Status::too_many_requests(format!("{error}; try again")),
            BodyError::Broken(error) => Status::bad_request(format!("error reading the body: {error}")),
        })
    }

    /// The turn of a body of so many bytes, before its request takes a place.
    pub(crate) async fn work(&self, bytes: usize, caller: Caller) -> Result<Option<Place<Caller>>, Status> {
        self.work.begin(bytes, caller).await.map_err(full)
    }

    /// A place for a request of which all is there. Health is answered without one.
    pub(crate) async fn enter(&self, target: &Target, caller: Caller) -> Result<Option<Place<Caller>>, Status> {
        let gate = match Lane::of(target, &caller) {
            Lane::Health => return Ok(None),
            Lane::Leases => &self.leases,
            Lane::Ingester => &self.ingester,
            Lane::Others => &self.requests,
        };
        gate.enter(caller).await.map(Some).map_err(full)
    }
}

fn full(why: Full) -> Status {
    Status::too_many_requests(format!("{why}; try again"))
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
        let lane = |holder| {
            let caller = Caller::new(IpAddr::from([127, 0, 0, 1]), agent, holder);
            Lane::of(&Target::Root, &caller)
        };
        assert_eq!(lane(Holder::Anybody), Lane::Others);
        assert_eq!(lane(Holder::Ingester), Lane::Ingester);
    }
}
