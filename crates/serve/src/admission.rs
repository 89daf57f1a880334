//! Which request of which caller is let in, and when. What a service knows of its requests is in its
//! [`AdmissionPolicy`]: who asks, in which [`Lane`], and how a refusal is spelled. What all services have in common is
//! here: the head of a request is looked at before anything of its body is read, and the whole body is there before the
//! request takes a permit.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http_body::Body;

use crate::body::{self, BodyError};
use crate::budget::Budget;
use crate::gate::{Full, Gate, Permit};
use crate::pace::BodyPace;
use crate::rate::RateExceeded;
use crate::work::Work;

/// Permits and memory for requests of one class: those of other classes do not keep them waiting.
pub struct Lane<K: Ord + Clone> {
    permits: Option<Arc<Gate<K>>>,
    bodies: Arc<Budget<K>>,
}

impl<K: Ord + Clone> Lane<K> {
    /// So many requests at once, and each waits so long for its permit. Lanes may share the budget of bodies.
    pub fn new(permits: usize, wait_max: Duration, bodies: &Arc<Budget<K>>) -> Self {
        Self {
            permits: Some(Gate::new(permits, wait_max)),
            bodies: bodies.clone(),
        }
    }

    /// For requests that cost nothing, and need no permit.
    pub fn unlimited(bodies: &Arc<Budget<K>>) -> Self {
        Self {
            permits: None,
            bodies: bodies.clone(),
        }
    }

    async fn enter(&self, caller: K) -> Result<Option<Permit<K>>, Full> {
        match &self.permits {
            Some(permits) => permits.enter(caller).await.map(Some),
            None => Ok(None),
        }
    }
}

/// What the head of a request says of it.
pub struct Candidate<'a, K: Ord + Clone> {
    /// Who sends it. All of its requests together take no more than its share.
    pub caller: K,
    /// Whose permits it takes.
    pub lane: &'a Lane<K>,
    /// The largest body that is read; of a request without it, nothing is read.
    pub body_bytes_max: Option<usize>,
}

/// Why a request is not let in.
#[derive(Debug, thiserror::Error)]
pub enum Denied {
    /// As many as are let in are in flight.
    #[error(transparent)]
    Full(#[from] Full),
    /// Its client asks too often.
    #[error(transparent)]
    RateExceeded(#[from] RateExceeded),
    /// Its body is not read to the end.
    #[error(transparent)]
    Body(#[from] BodyError),
}

/// What a service says of its requests, and to those that are not let in.
pub trait AdmissionPolicy: Send + Sync + 'static {
    /// Whose requests share permits and memory.
    type Caller: Ord + Clone + Send + Sync + 'static;
    /// What a request gets that is not let in, in the words of the service: a Status of Kubernetes, a status of gRPC,
    /// a problem in JSON.
    type Refusal: Send;

    /// What a head says. Nothing of the body has been read.
    ///
    /// # Errors
    /// Who may not ask, and what can be refused by its head alone.
    fn candidate(
        &self,
        head: &Parts,
    ) -> impl Future<Output = Result<Candidate<'_, Self::Caller>, Self::Refusal>> + Send;

    /// How many bytes a body counts for while it is worked on: more than its length where it makes more of itself.
    fn weight(&self, _head: &Parts, body: &[u8]) -> usize {
        body.len()
    }

    /// Spells a refusal, and counts it.
    fn refuse(&self, head: &Parts, why: Denied) -> Self::Refusal;
}

/// Lets requests in by the policy of a service.
pub struct Admission<P: AdmissionPolicy> {
    policy: P,
    pace: BodyPace,
    work: Work<P::Caller>,
}

/// A request that is let in.
#[derive(Debug)]
pub struct Admitted<K: Ord + Clone> {
    /// Its body, as a whole.
    pub body: Bytes,
    /// What it takes, until dropped: with the head of the answer, so that an answer that goes on takes nothing.
    pub permits: Permits<K>,
}

/// The permits of one request, given back when they are dropped.
#[derive(Debug)]
pub struct Permits<K: Ord + Clone> {
    _turn: Option<Permit<K>>,
    _permit: Option<Permit<K>>,
}

impl<P: AdmissionPolicy> Admission<P> {
    /// Bodies come at this pace at least, and a large one waits so long for its turn.
    pub fn new(policy: P, pace: BodyPace, wait_max: Duration) -> Self {
        Self {
            policy,
            pace,
            work: Work::new(wait_max),
        }
    }

    /// Waits until a request may be answered. A body that says nothing is left as it is.
    ///
    /// # Guarantees
    /// A request holds no permit while its body comes. Callers share the permits and the budget of a lane.
    ///
    /// # Errors
    /// Whatever the policy says to a request that is not let in.
    pub async fn admit<B>(&self, head: &Parts, body: B) -> Result<Admitted<P::Caller>, P::Refusal>
    where
        B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>>,
    {
        let candidate = self.policy.candidate(head).await?;
        let admitted = self.enter(head, body, candidate).await;
        admitted.map_err(|why| self.policy.refuse(head, why))
    }

    async fn enter<B>(
        &self,
        head: &Parts,
        body: B,
        candidate: Candidate<'_, P::Caller>,
    ) -> Result<Admitted<P::Caller>, Denied>
    where
        B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>>,
    {
        let Candidate {
            caller,
            lane,
            body_bytes_max,
        } = candidate;
        let body = match body_bytes_max {
            Some(bytes_max) => body::read(body, &self.pace, bytes_max, lane.bodies.claim(caller.clone())).await?,
            None => Bytes::new(),
        };
        let turn = self.work.begin(self.policy.weight(head, &body), caller.clone()).await?;
        let permit = lane.enter(caller).await?;
        Ok(Admitted {
            body,
            permits: Permits {
                _turn: turn,
                _permit: permit,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures::stream;
    use http::{Method, Request};
    use http_body::Frame;
    use http_body_util::{Full, StreamBody};
    use tokio::time::timeout;

    use super::*;

    const WAIT_MAX: Duration = Duration::from_secs(10);
    const BODY_BYTES_MAX: usize = 1_000_000;

    /// Callers say who they are, and some of them may not ask.
    struct ByName {
        health: Lane<String>,
        others: Lane<String>,
    }

    impl AdmissionPolicy for ByName {
        type Caller = String;
        type Refusal = String;

        async fn candidate(&self, head: &Parts) -> Result<Candidate<'_, String>, String> {
            let name = head.headers["name"].to_str().expect("a name").to_owned();
            if name == "nobody" {
                return Err("who are you?".to_owned());
            }
            Ok(Candidate {
                caller: name,
                lane: match head.uri.path() {
                    "/healthz" => &self.health,
                    _ => &self.others,
                },
                body_bytes_max: body::is_expected(&head.method).then_some(BODY_BYTES_MAX),
            })
        }

        fn weight(&self, head: &Parts, body: &[u8]) -> usize {
            match head.uri.path() {
                "/grows" => BODY_BYTES_MAX,
                _ => body.len(),
            }
        }

        fn refuse(&self, head: &Parts, why: Denied) -> String {
            format!("{}: {why}", head.uri.path())
        }
    }

    fn admission(permits: usize, body_bytes: usize) -> Admission<ByName> {
        let bodies = Budget::new(body_bytes);
        let policy = ByName {
            health: Lane::unlimited(&bodies),
            others: Lane::new(permits, WAIT_MAX, &bodies),
        };
        Admission::new(policy, BodyPace::default(), WAIT_MAX)
    }

    async fn ask(
        admission: &Admission<ByName>,
        name: &str,
        method: Method,
        path: &str,
        body: &'static [u8],
    ) -> Result<Admitted<String>, String> {
        let request = Request::builder().method(method).uri(path).header("name", name);
        let request = request.body(Full::new(Bytes::from_static(body))).expect("a request");
        let (head, body) = request.into_parts();
        admission.admit(&head, body).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_lane_that_is_full_keeps_no_other_lane_waiting() {
        let admission = admission(1, 1000);
        let first = ask(&admission, "a", Method::GET, "/", b"").await.expect("a permit");
        let refused = ask(&admission, "b", Method::GET, "/", b"").await.err();
        assert_eq!(refused.as_deref(), Some("/: too many requests are in flight"));
        ask(&admission, "b", Method::GET, "/healthz", b"")
            .await
            .expect("no permit is needed");
        drop(first.permits);
        ask(&admission, "b", Method::GET, "/", b"")
            .await
            .expect("the permit is free again");
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_come_holds_no_permit() {
        let admission = admission(1, 1000);
        let request = Request::post("/").header("name", "a").body(()).expect("a request");
        let (head, ()) = request.into_parts();
        let nothing = StreamBody::new(stream::pending::<Result<Frame<Bytes>, Infallible>>());
        let mut waiting = std::pin::pin!(admission.admit(&head, nothing));
        let early = timeout(Duration::from_secs(1), waiting.as_mut()).await;
        assert!(early.is_err(), "it waits for its body");
        ask(&admission, "b", Method::GET, "/", b"")
            .await
            .expect("the only permit is free");
    }

    #[tokio::test]
    async fn nothing_is_read_of_who_may_not_ask_and_of_what_says_nothing() {
        let admission = admission(1, 0);
        let refused = ask(&admission, "nobody", Method::POST, "/", b"body").await.err();
        assert_eq!(refused.as_deref(), Some("who are you?"));
        let refused = ask(&admission, "a", Method::POST, "/", b"body").await.err();
        assert_eq!(refused.as_deref(), Some("/: the memory for request bodies is used up"));
        let admitted = ask(&admission, "a", Method::GET, "/", b"body").await.expect("a permit");
        assert!(admitted.body.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_makes_more_of_itself_waits_with_the_large_ones() {
        let admission = admission(100, 1000);
        let large = ask(&admission, "a", Method::POST, "/grows", b"{}")
            .await
            .expect("a turn");
        let refused = ask(&admission, "b", Method::POST, "/grows", b"{}").await.err();
        assert_eq!(refused.as_deref(), Some("/grows: too many requests are in flight"));
        ask(&admission, "b", Method::POST, "/", b"{}")
            .await
            .expect("it is small");
        drop(large);
        ask(&admission, "b", Method::POST, "/grows", b"{}")
            .await
            .expect("its turn");
    }
}
