//! Which requests are let in: of one client so many a second; then by who sends them, before anything of their bodies
//! is read; then as a whole, and so many at once, whose places callers share. Whoever is turned away is told so, and
//! when to ask again.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, HttpBody as _};
use axum::extract::{Request, State};
use axum::http::header;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::Response;
use governor::clock::{Clock, DefaultClock};
use governor::middleware::NoOpMiddleware;
use governor::{Quota, RateLimiter};
use kindex_serve::body::{self, BodyError};
use kindex_serve::budget::Budget;
use kindex_serve::gate::Gate;
use kindex_serve::work::Work;
use sha2::{Digest, Sha256};

use super::Limits;
use super::clients::Clients;
use super::guard::{Guard, Who};
use super::lane::{Lane, has_body};
use crate::figures::{Figures, Operation, TurnedAway};
use crate::grpc;
use crate::operations::{Reason, Refusal};
use crate::rest::{Peer, refused};

/// The largest body that is read: that of kube-apiserver.
const BODY_MAX_BYTES: usize = 3 * 1024 * 1024;
/// Who is found out at once.
const LOOKS: usize = 64;
/// Clients of the last second that are told apart; those beyond share counters.
const CLIENTS_MAX: usize = 10_000;
/// A burst of one second's requests is allowed: older ones do not matter.
const MEMORY: Duration = Duration::from_secs(1);

type Rate =
    RateLimiter<Client, Clients<Client, DefaultClock>, DefaultClock, NoOpMiddleware<<DefaultClock as Clock>::Instant>>;

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
enum Sharer {
    User(String),
    Address(Option<IpAddr>),
}

impl Sharer {
    fn of(who: Who, head: &Parts) -> Self {
        match who {
            Who::Named(name) => Self::User(name),
            Who::Unnamed => Self::Address(head.extensions.get::<Peer>().map(|peer| peer.address)),
        }
    }
}

/// The door.
pub(super) struct Admission {
    guard: Arc<dyn Guard>,
    limits: Limits,
    /// By address alone: nobody is known yet.
    looks: Arc<Gate<Sharer>>,
    health: Arc<Gate<Sharer>>,
    leases: Arc<Gate<Sharer>>,
    reads: Arc<Gate<Sharer>>,
    changes: Arc<Gate<Sharer>>,
    bodies: Arc<Budget<Sharer>>,
    bodies_aside: Arc<Budget<Sharer>>,
    work: Work<Sharer>,
    rate: Option<Rate>,
    figures: Figures,
}

/// Why a request is not let in, and what it is told.
type Denied = (Option<TurnedAway>, Refusal);

impl Admission {
    pub(super) fn new(limits: &Limits, guard: Arc<dyn Guard>, figures: Figures) -> Self {
        let rate = |second: NonZeroU32| {
            let clock = DefaultClock::default();
            let clients = Clients::new(clock.clone(), MEMORY, CLIENTS_MAX);
            RateLimiter::new(Quota::per_second(second), clients, clock)
        };
        let gate = |places| Gate::new(places, limits.patience);
        Self {
            guard,
            looks: gate(LOOKS),
            health: gate(limits.aside),
            leases: gate(limits.aside),
            reads: gate(limits.reads),
            changes: gate(limits.changes),
            bodies: Budget::new(limits.body_bytes),
            bodies_aside: Budget::new(limits.body_bytes),
            work: Work::new(limits.patience),
            rate: limits.requests_per_second.map(rate),
            limits: limits.clone(),
            figures,
        }
    }

    fn gate(&self, lane: Lane) -> &Arc<Gate<Sharer>> {
        match lane {
            Lane::Health => &self.health,
            Lane::Leases => &self.leases,
            Lane::Reads => &self.reads,
            Lane::Changes => &self.changes,
        }
    }

    fn check_rate(&self, head: &Parts) -> Result<(), Denied> {
        let Some(rate) = &self.rate else { return Ok(()) };
        rate.check_key(&Client::of(head)).map_err(|_| {
            let message = "this client exceeds the request rate; try again later";
            (
                Some(TurnedAway::Rate),
                Refusal::try_again(Reason::TooManyRequests, message),
            )
        })
    }

    async fn look(&self, head: &Parts, lane: Lane) -> Result<Who, Denied> {
        if lane == Lane::Health {
            return Ok(Who::Unnamed);
        }
        let place = self.looks.enter(Sharer::of(Who::Unnamed, head)).await;
        let _place = place.map_err(|_| in_flight())?;
        self.guard.look(head).await.map_err(|refusal| (None, refusal))
    }

    /// The request with its body, where it has one. A stream of messages is read by whoever answers it.
    async fn whole(&self, head: &Parts, body: Body, lane: Lane, sharer: &Sharer) -> Result<Body, Denied> {
        if grpc::is_streamed(head.uri.path()) {
            return Ok(body);
        }
        if !has_body(&head.method) {
            return Ok(Body::empty());
        }
        let is_grpc = grpc::is_grpc(&head.headers);
        // What stands before a message counts beside it.
        let bytes_max = if is_grpc {
            BODY_MAX_BYTES + grpc::PREFIX_BYTES
        } else {
            BODY_MAX_BYTES
        };
        let budget = match lane {
            Lane::Leases => &self.bodies_aside,
            Lane::Health | Lane::Reads | Lane::Changes => &self.bodies,
        };
        let read = body::read(body, &self.limits.body, bytes_max, budget.claim(sharer.clone())).await;
        read.map(Body::from).map_err(|error| match error {
            BodyError::TooSlow => (
                Some(TurnedAway::SlowBody),
                Refusal::new(Reason::Timeout, error.to_string()),
            ),
            BodyError::NoRoom(_) => (
                Some(TurnedAway::BodyBytes),
                Refusal::try_again(Reason::TooManyRequests, format!("{error}; try again")),
            ),
            BodyError::TooLarge(_) if is_grpc => (None, grpc::too_large()),
            BodyError::TooLarge(limit) => (None, too_large(limit)),
            BodyError::Broken(error) => {
                let message = format!("error reading the body: {error}");
                (None, Refusal::bad_request(message))
            }
        })
    }
}

/// The length of a body that is there; of one that is still to come nothing is known.
fn known_bytes(body: &Body) -> usize {
    let bytes = body.size_hint().exact().unwrap_or_default();
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

fn too_large(limit: usize) -> Refusal {
    Refusal::new(
        Reason::RequestEntityTooLarge,
        format!("Request entity too large: limit is {limit}"),
    )
}

fn in_flight() -> Denied {
    let message = "too many requests in flight; try again";
    (
        Some(TurnedAway::InFlight),
        Refusal::try_again(Reason::TooManyRequests, message),
    )
}

/// Lets a request in or turns it away, and counts it.
pub(super) async fn admit(State(door): State<Arc<Admission>>, request: Request, next: Next) -> Response {
    let (mut head, body) = request.into_parts();
    let deadline = grpc::deadline(&head.headers);
    head.extensions.insert(deadline);
    let lane = Lane::of(&head);
    let entering = async {
        door.check_rate(&head)?;
        let who = door.look(&head, lane).await?;
        let sharer = Sharer::of(who, &head);
        let body = door.whole(&head, body, lane, &sharer).await?;
        let turn = door.work.begin(known_bytes(&body), sharer.clone()).await;
        let turn = turn.map_err(|_| in_flight())?;
        let place = door.gate(lane).enter(sharer).await;
        Ok((body, turn, place.map_err(|_| in_flight())?))
    };
    // Given back with the head of the answer, so that a watch takes none while it goes on.
    let (body, _turn, _place) = match deadline.bound(entering).await {
        Ok(Ok(entered)) => entered,
        Ok(Err((why, refusal))) => {
            if let Some(why) = why {
                door.figures.turned_away(why);
            }
            return match grpc::is_grpc(&head.headers) {
                true => grpc::refused(&refusal),
                false => refused(&refusal),
            };
        }
        Err(late) => return late.into_http::<Body>(),
    };
    let began = Instant::now();
    let response = next.run(Request::from_parts(head, body)).await;
    if let Some(operation) = response.extensions().get::<Operation>() {
        door.figures.answered(*operation, &code(&response), began.elapsed());
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
