//! `POST /convert` over HTTP: which requests are let in, and how reviews become responses. Knows nothing of what is in
//! a review.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use kindex_model::kind::Registry;
use kindex_serve::BodyPace;
use kindex_serve::admission::{Admission, AdmissionPolicy, Admitted, Candidate, Denied, Lane};
use kindex_serve::body::BodyError;
use kindex_serve::budget::Budget;
use kindex_serve::listen::{Incoming, Listener, Peer, Tls};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;
use crate::review::{Reviewed, review};

/// kube-apiserver may send the objects of a whole page in one review: 500 of them. Most are far smaller than the
/// 1.5 MiB that etcd takes.
const BODY_BYTES_MAX: usize = 128 * 1024 * 1024;

/// For all bodies together. One caller holds at most half of it, and the memory of a body grows by doubling. A review
/// takes about four times its body: itself, what was converted, and the answer.
const BODIES_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Reviews at once. Others wait.
const REVIEWS_MAX: usize = 16;

/// How long a review waits for its place. kube-apiserver waits 30 s for its answer.
/// <https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/>
const WAIT_MAX: Duration = Duration::from_secs(10);

type Refusal = Response<Full<Bytes>>;

/// Everybody may ask: a review has all that its answer is made of.
struct ReviewAdmissionPolicy {
    reviews: Lane<Option<IpAddr>>,
}

impl AdmissionPolicy for ReviewAdmissionPolicy {
    type Caller = Option<IpAddr>;
    type Refusal = Refusal;

    async fn candidate(&self, head: &Parts) -> Result<Candidate<'_, Self::Caller>, Refusal> {
        match (head.uri.path(), &head.method) {
            ("/convert", &Method::POST) => Ok(Candidate {
                caller: head.extensions.get::<Peer>().map(|peer| peer.address),
                lane: &self.reviews,
                body_bytes_max: Some(BODY_BYTES_MAX),
            }),
            ("/convert", _) => Err(text(StatusCode::METHOD_NOT_ALLOWED, "reviews are sent by POST")),
            _ => Err(text(StatusCode::NOT_FOUND, "only /convert is served")),
        }
    }

    fn refuse(&self, _head: &Parts, why: Denied) -> Refusal {
        let code = match &why {
            Denied::Body(BodyError::TooLarge(_)) => StatusCode::PAYLOAD_TOO_LARGE,
            Denied::Body(BodyError::TooSlow) => StatusCode::REQUEST_TIMEOUT,
            Denied::Body(BodyError::Broken(_)) => StatusCode::BAD_REQUEST,
            Denied::Body(BodyError::NoRoom(_)) | Denied::Full(_) | Denied::RateExceeded(_) => {
                StatusCode::TOO_MANY_REQUESTS
            }
        };
        text(code, why.to_string())
    }
}

/// Answers ConversionReviews for these kinds until cancelled, over TLS where there are keys. Counts nothing.
pub async fn serve(socket: TcpListener, tls: Option<Tls>, registry: Registry, stop: CancellationToken) {
    serve_counted(socket, tls, registry, Metrics::default(), stop).await;
}

/// The same, counted.
pub async fn serve_counted(
    socket: TcpListener,
    tls: Option<Tls>,
    registry: Registry,
    metrics: Metrics,
    stop: CancellationToken,
) {
    let reviews = Lane::new(REVIEWS_MAX, WAIT_MAX, &Budget::new(BODIES_BYTES_MAX));
    let admission = Admission::new(ReviewAdmissionPolicy { reviews }, BodyPace::default(), WAIT_MAX);
    let admission = Arc::new(admission);
    let listener = Listener {
        tls,
        ..Listener::new(socket)
    };
    let answer = move |request| answer(admission.clone(), registry, metrics.clone(), request);
    listener.serve(answer, stop).await;
}

async fn answer(
    admission: Arc<Admission<ReviewAdmissionPolicy>>,
    registry: Registry,
    metrics: Metrics,
    request: Request<Incoming>,
) -> Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    let Admitted {
        body,
        permits: _permits,
    } = match admission.admit(&head, body).await {
        Ok(admitted) => admitted,
        Err(refusal) => return refusal,
    };
    let began = Instant::now();
    // A page of objects takes longer than others on this thread should wait.
    let reviewed = tokio::task::spawn_blocking(move || review(&registry, &body)).await;
    let (result, response) = match reviewed {
        Ok(Ok(Reviewed { answer, converted })) => (if converted { "converted" } else { "failed" }, json(answer)),
        Ok(Err(error)) => {
            tracing::warn!(%error, "A conversion was asked for that cannot be read");
            ("unreadable", text(StatusCode::BAD_REQUEST, error.to_string()))
        }
        Err(_panicked) => {
            let response = text(StatusCode::INTERNAL_SERVER_ERROR, "the conversion failed");
            ("failed", response)
        }
    };
    metrics.converted(result, began.elapsed());
    response
}

fn json(answer: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(answer));
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

fn text(code: StatusCode, text: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = code;
    response
}
