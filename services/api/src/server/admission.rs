//! Which requests are let in: so many at once, and of one client so many a second. Whoever is turned away is told so
//! at once and when to ask again, before anything of the request was read.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::http::{Method, header};
use axum::middleware::Next;
use axum::response::Response;
use governor::clock::{Clock, DefaultClock};
use governor::middleware::NoOpMiddleware;
use governor::{Quota, RateLimiter};
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;

use super::Limits;
use super::clients::Clients;
use crate::figures::{Deed, Figures, TurnedAway};
use crate::grpc;
use crate::operations::{Reason, Refusal};
use crate::rest::{Peer, refused};

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
    fn of(request: &Request) -> Self {
        let peer = request.extensions().get::<Peer>();
        let shown = match peer.is_some_and(|peer| peer.is_front_proxy) {
            true => request.headers().get("x-remote-user"),
            false => request.headers().get(header::AUTHORIZATION),
        };
        match shown {
            Some(shown) => Self::Named(Sha256::digest(shown.as_bytes()).into()),
            None => Self::Address(peer.map(|peer| peer.address)),
        }
    }
}

/// The door.
pub(super) struct Admission {
    reads: Semaphore,
    changes: Semaphore,
    rate: Option<Rate>,
    figures: Figures,
}

impl Admission {
    pub(super) fn new(limits: &Limits, figures: Figures) -> Self {
        let rate = |second: NonZeroU32| {
            let clock = DefaultClock::default();
            let clients = Clients::new(clock.clone(), MEMORY, CLIENTS_MAX);
            RateLimiter::new(Quota::per_second(second), clients, clock)
        };
        Self {
            reads: Semaphore::new(limits.reads),
            changes: Semaphore::new(limits.changes),
            rate: limits.requests_per_second.map(rate),
            figures,
        }
    }

    fn is_within_rate(&self, request: &Request) -> bool {
        let Some(rate) = &self.rate else { return true };
        rate.check_key(&Client::of(request)).is_ok()
    }

    fn turn_away(&self, request: &Request, why: TurnedAway) -> Response {
        self.figures.turned_away(why);
        let message = match why {
            TurnedAway::InFlight => "the server answers as many requests at once as it may; try again",
            TurnedAway::Rate => "this client asks more often than the server lets it; try again later",
        };
        let refusal = Refusal::try_again(Reason::TooManyRequests, message);
        if grpc::is_grpc(request) {
            return grpc::refused(&refusal);
        }
        refused(&refusal)
    }
}

/// Lets a request in or turns it away, and counts it.
pub(super) async fn admit(State(door): State<Arc<Admission>>, request: Request, next: Next) -> Response {
    if !door.is_within_rate(&request) {
        return door.turn_away(&request, TurnedAway::Rate);
    }
    let places = if changes(&request) { &door.changes } else { &door.reads };
    // Given back with the head of the answer, so that a watch takes none while it goes on.
    let Ok(_place) = places.try_acquire() else {
        return door.turn_away(&request, TurnedAway::InFlight);
    };
    let began = Instant::now();
    let response = next.run(request).await;
    if let Some(deed) = response.extensions().get::<Deed>() {
        door.figures.answered(*deed, &code(&response), began.elapsed());
    }
    response
}

/// Whether a request is to change something: by its method, or by the name of its call where all methods are POST.
fn changes(request: &Request) -> bool {
    if grpc::is_grpc(request) {
        let call = request.uri().path().rsplit('/').next().unwrap_or_default();
        return ["Create", "Update", "Delete"].iter().any(|verb| call.starts_with(verb));
    }
    !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS)
}

/// Of a gRPC answer its own code, where the head has it.
fn code(response: &Response) -> String {
    let grpc = response
        .headers()
        .get("grpc-status")
        .and_then(|code| code.to_str().ok());
    grpc.map_or_else(|| response.status().as_u16().to_string(), |code| format!("grpc {code}"))
}
