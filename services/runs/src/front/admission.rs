//! When a request is let in: callers share the places of a class and the memory for bodies, and a body counts for what
//! it becomes.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::header;
use http::request::Parts;
use kindex_serve::admission::{AdmissionPolicy, Candidate, Denied, Lane};
use kindex_serve::body::BodyError;
use kindex_serve::budget::Budget;
use kindex_serve::listen::Peer;

use super::request_class::RequestClass;
use crate::grpc::{self, PREFIX_BYTES};
use crate::keys::Caller;
use crate::metrics::{Metrics, RejectionReason};
use crate::refusal::{Code, Refusal};
use crate::{limits, pack};

/// How long a request waits for its place.
pub(super) const WAIT_MAX: Duration = Duration::from_secs(10);
/// When to ask again.
const AGAIN: Duration = Duration::from_secs(1);
/// Requests of each class at once.
const INGEST: usize = 256;
const QUERIES: usize = 64;
/// An answer has up to a million points.
const SERIES: usize = 8;
const FILES: usize = 64;
/// A batch of a thousand points is worked on without a turn, one of ten thousand waits for those of its size.
const WEIGHT_DIVISOR: usize = 4;

/// Who shares places: a key, or those at one address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum AdmissionKey {
    Key(String),
    Address(Option<IpAddr>),
}

/// The admission policy of the service.
pub(super) struct RunsAdmissionPolicy {
    public: Lane<AdmissionKey>,
    files: Lane<AdmissionKey>,
    streams: Lane<AdmissionKey>,
    ingest: Lane<AdmissionKey>,
    series: Lane<AdmissionKey>,
    queries: Lane<AdmissionKey>,
    metrics: Metrics,
}

impl AdmissionKey {
    /// Who sent a request.
    pub(super) fn of(head: &Parts) -> Self {
        match head.extensions.get::<Caller>().filter(|caller| !caller.key.is_empty()) {
            Some(caller) => Self::Key(caller.key.clone()),
            None => Self::Address(head.extensions.get::<Peer>().map(|peer| peer.address)),
        }
    }
}

impl RunsAdmissionPolicy {
    /// Bodies share this memory.
    pub(super) fn new(bodies: &Arc<Budget<AdmissionKey>>, metrics: Metrics) -> Self {
        Self {
            public: Lane::unlimited(bodies),
            files: Lane::new(FILES, WAIT_MAX, bodies),
            streams: Lane::new(limits::STREAMS.max, WAIT_MAX, bodies),
            ingest: Lane::new(INGEST, WAIT_MAX, bodies),
            series: Lane::new(SERIES, WAIT_MAX, bodies),
            queries: Lane::new(QUERIES, WAIT_MAX, bodies),
            metrics,
        }
    }

    fn lane(&self, class: RequestClass) -> &Lane<AdmissionKey> {
        match class {
            RequestClass::Public => &self.public,
            RequestClass::File => &self.files,
            RequestClass::Stream => &self.streams,
            RequestClass::Ingest => &self.ingest,
            RequestClass::Series => &self.series,
            RequestClass::Query => &self.queries,
        }
    }
}

impl AdmissionPolicy for RunsAdmissionPolicy {
    type Caller = AdmissionKey;
    type Refusal = Refusal;

    async fn candidate(&self, head: &Parts) -> Result<Candidate<'_, AdmissionKey>, Refusal> {
        let class = RequestClass::of(head);
        Ok(Candidate {
            caller: AdmissionKey::of(head),
            lane: self.lane(class),
            body_bytes_max: class
                .is_read(head)
                .then_some(limits::TRANSPORT_BYTES.max + PREFIX_BYTES),
        })
    }

    /// A packed body counts for what it says to become, which it is held to.
    fn weight(&self, head: &Parts, body: &[u8]) -> usize {
        let becomes = match packed(head, body) {
            Some(packed) => pack::claimed_bytes(packed).min(limits::TRANSPORT_BYTES.max),
            None => body.len(),
        };
        becomes / WEIGHT_DIVISOR
    }

    fn refuse(&self, _head: &Parts, why: Denied) -> Refusal {
        denied(why, &self.metrics)
    }
}

/// What a request gets that is not let in, which is counted.
pub(super) fn denied(why: Denied, metrics: &Metrics) -> Refusal {
    let reason = rejection(&why);
    metrics.count_rejection(reason);
    let busy = |message: String| {
        let message = format!("{message}; try again");
        Refusal::new(Code::ResourceExhausted, reason.as_str(), message).again_after(AGAIN)
    };
    match why {
        Denied::Full(error) => busy(error.to_string()),
        Denied::RateExceeded(error) => busy(error.to_string()),
        Denied::Body(BodyError::NoRoom(error)) => busy(error.to_string()),
        Denied::Body(BodyError::TooSlow) => Refusal::new(
            Code::Unavailable,
            reason.as_str(),
            "the body of the request came too slowly; try again",
        ),
        Denied::Body(BodyError::TooLarge(_)) => too_large(),
        Denied::Body(BodyError::Broken(error)) => {
            let message = format!("the request broke off: {error}");
            Refusal::new(Code::InvalidArgument, reason.as_str(), message)
        }
    }
}

fn rejection(why: &Denied) -> RejectionReason {
    match why {
        Denied::Full(_) => RejectionReason::TooManyRequests,
        Denied::RateExceeded(_) => RejectionReason::RateExceeded,
        Denied::Body(BodyError::NoRoom(_)) => RejectionReason::NoMemory,
        Denied::Body(BodyError::TooSlow) => RejectionReason::BodyTooSlow,
        Denied::Body(BodyError::TooLarge(_)) => RejectionReason::BodyTooLarge,
        Denied::Body(BodyError::Broken(_)) => RejectionReason::BodyBroken,
    }
}

/// A body over the largest that is read.
pub(super) fn too_large() -> Refusal {
    let message = format!(
        "the request has more than {} bytes, also once it is unpacked; send smaller batches",
        limits::TRANSPORT_BYTES.max
    );
    Refusal::new(Code::InvalidArgument, RejectionReason::BodyTooLarge.as_str(), message)
}

/// What of a body is packed, if anything: the whole of it over REST, the message over gRPC.
pub(super) fn packed<'a>(head: &Parts, body: &'a [u8]) -> Option<&'a [u8]> {
    if grpc::is_grpc(&head.headers) {
        let (prefix, message) = body.split_at_checked(PREFIX_BYTES)?;
        return (prefix[0] == 1 && is_gzip(head, "grpc-encoding")).then_some(message);
    }
    is_gzip(head, header::CONTENT_ENCODING.as_str()).then_some(body)
}

/// Whether a header names gzip.
pub(super) fn is_gzip(head: &Parts, header: &str) -> bool {
    head.headers.get(header).is_some_and(|value| value == "gzip")
}
