//! The two-way stream of batches: one answer for each request, in their order, several of them under way at once. A
//! stream that says nothing for long ends, and so does one whose key is valid no longer.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt};
use kindex_serve::deadline::Deadline;
use tokio::time::timeout;
use tonic::Status;
use tracing::{Instrument as _, Span, debug_span};

use super::in_flight::InFlight;
use super::permits::{Permit, Permits};
use super::status;
use crate::domain::{Clock, nanos};
use crate::keys::{Caller, KeyRing};
use crate::limits;
use crate::operations::Operations;
use crate::refusal::{Code, Refusal};
use crate::wire::v1::{LogMetricsRequest, LogMetricsResponse, LogMetricsStreamRequest, LogMetricsStreamResponse};

/// Batches of one stream that are stored at once. The next one is read when the first of them is answered.
const UNDER_WAY: usize = 8;

/// The streams of a server.
#[derive(Clone)]
pub struct Streams {
    places: Permits,
    keys: Arc<KeyRing>,
    clock: Clock,
}

impl Streams {
    /// For callers with these keys.
    #[must_use]
    pub fn new(keys: Arc<KeyRing>, clock: Clock) -> Self {
        Self {
            places: Permits::default(),
            keys,
            clock,
        }
    }

    /// Callers are looked at with each batch: a stream may be open for days.
    fn recheck(&self, caller: &Caller) -> Result<(), Status> {
        let now = nanos((self.clock)()).unwrap_or(i64::MAX);
        self.keys.recheck(caller, now).map_err(|refusal| status::of(&refusal))
    }

    /// Answers the batches of a stream.
    ///
    /// # Errors
    /// There are as many streams as may be.
    pub(super) fn answer(
        &self,
        operations: Arc<Operations>,
        caller: Caller,
        in_flight: InFlight,
        requests: impl Stream<Item = Result<LogMetricsStreamRequest, Status>> + Send + 'static,
        deadline: Deadline,
    ) -> Result<BoxStream<'static, Result<LogMetricsStreamResponse, Status>>, Status> {
        let place = self.places.take(&caller.key).map_err(|refusal| status::of(&refusal))?;
        let (streams, caller) = (self.clone(), Arc::new(caller));
        let opened = Span::current();
        let answers = requests.map(move |request| {
            let (operations, streams, caller) = (operations.clone(), streams.clone(), caller.clone());
            let span = debug_span!(parent: &opened, "stream batch");
            let held = in_flight.next();
            let answered = async move {
                let batch = request?.batch.unwrap_or_default();
                streams.recheck(&caller)?;
                let answer = one(&operations, &caller, batch).await;
                // Not only when the client takes the answer.
                drop(held);
                answer
            };
            answered.instrument(span)
        });
        Ok(until_refused(answers.buffered(UNDER_WAY), place, deadline).boxed())
    }
}

/// A stream ends with its first status, at its deadline, and when it has said nothing for long. Its place is free then.
fn until_refused(
    answers: impl Stream<Item = Result<LogMetricsStreamResponse, Status>> + Send + 'static,
    place: Permit,
    deadline: Deadline,
) -> impl Stream<Item = Result<LogMetricsStreamResponse, Status>> + Send {
    let begin = Some((Box::pin(answers), place));
    stream::unfold(begin, move |open| async move {
        let (mut answers, place) = open?;
        let silence_max = Duration::from_secs(limits::STREAM_SILENCE.max as u64);
        let answer = match deadline.bound(timeout(silence_max, answers.next())).await {
            Ok(Ok(answer)) => answer?,
            Ok(Err(_silent)) => Err(status::of(&silent())),
            Err(late) => Err(status::late(&late)),
        };
        let open = answer.is_ok().then_some((answers, place));
        Some((answer, open))
    })
}

fn silent() -> Refusal {
    let limit = limits::STREAM_SILENCE;
    let message = format!(
        "no batch came for {} seconds, and others may need the place of the stream; open another when there is a batch",
        limit.max
    );
    Refusal::new(Code::Unavailable, "STREAM_SILENT", message)
}

/// What unary LogMetrics would refuse is answered in the stream, so that the batches behind it go on. Who may not ask
/// gets no further.
async fn one(
    operations: &Operations,
    caller: &Caller,
    batch: LogMetricsRequest,
) -> Result<LogMetricsStreamResponse, Status> {
    let response = match operations.log_metrics(caller, batch).await {
        Ok(response) => response,
        Err(refusal) => match refusal.code {
            Code::Unauthenticated | Code::PermissionDenied => return Err(status::of(&refusal)),
            Code::InvalidArgument
            | Code::NotFound
            | Code::AlreadyExists
            | Code::FailedPrecondition
            | Code::ResourceExhausted
            | Code::Unavailable
            | Code::Internal => LogMetricsResponse {
                warnings: vec![refusal.detail()],
                ..LogMetricsResponse::default()
            },
        },
    };
    Ok(LogMetricsStreamResponse {
        response: Some(response),
    })
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    fn after(seconds: usize) -> impl Stream<Item = Result<LogMetricsStreamResponse, Status>> {
        stream::once(async move {
            sleep(Duration::from_secs(seconds as u64)).await;
            Ok(LogMetricsStreamResponse::default())
        })
    }

    /// The clock runs ahead while nothing else is to be done.
    #[tokio::test(start_paused = true)]
    async fn a_stream_that_says_nothing_for_long_ends_and_gives_its_place_back() {
        let most = limits::STREAM_SILENCE.max;
        for (silence, is_answered) in [(most - 1, true), (most, true), (most + 1, false)] {
            let places = Permits::default();
            let place = places.take("a").expect("a place");
            // Each batch begins the time anew.
            let answers = after(most - 1).chain(after(silence));
            let all: Vec<_> = until_refused(answers, place, Deadline::NONE).collect().await;
            assert_eq!((all.len(), all[0].is_ok()), (2, true), "{silence}");
            match &all[1] {
                Ok(_) => assert!(is_answered, "{silence}"),
                Err(status) => {
                    assert!(!is_answered, "{silence}");
                    assert_eq!(status.code(), tonic::Code::Unavailable);
                    assert!(status.message().contains("600 seconds"), "{status}");
                }
            }
            let free: Result<Vec<Permit>, Refusal> =
                (0..limits::STREAMS_OF_CALLER.max).map(|_| places.take("a")).collect();
            assert!(free.is_ok(), "{silence}: all places are free");
        }
    }
}
