//! The two-way stream of batches: one answer for each request, in their order, several of them under way at once.

use std::sync::Arc;

use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt};
use kindex_serve::deadline::Deadline;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Status;
use tracing::{Instrument as _, Span, debug_span};

use super::status;
use super::under_way::UnderWay;
use crate::keys::Caller;
use crate::operations::Operations;
use crate::refusal::{Code, Refusal};
use crate::wire::v1::{LogMetricsRequest, LogMetricsResponse, LogMetricsStreamRequest, LogMetricsStreamResponse};

/// Batches of one stream that are stored at once. The next one is read when the first of them is answered.
const UNDER_WAY: usize = 8;

/// The streams of a server.
#[derive(Clone, Debug)]
pub struct Streams(Arc<Semaphore>);

impl Streams {
    /// So many at once.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self(Arc::new(Semaphore::new(most)))
    }

    /// Answers the batches of a stream.
    ///
    /// # Errors
    /// There are as many streams as may be.
    pub(super) fn answer(
        &self,
        operations: Arc<Operations>,
        caller: Caller,
        under_way: UnderWay,
        requests: impl Stream<Item = Result<LogMetricsStreamRequest, Status>> + Send + 'static,
        deadline: Deadline,
    ) -> Result<BoxStream<'static, Result<LogMetricsStreamResponse, Status>>, Status> {
        let place = self.0.clone().try_acquire_owned().map_err(|_| {
            let message = "as many streams are open as may be; end one, or send the batches by LogMetrics";
            let refusal = Refusal::new(Code::ResourceExhausted, "STREAMS_EXHAUSTED", message);
            status::of(&refusal.again_after(std::time::Duration::from_secs(5)))
        })?;
        let caller = Arc::new(caller);
        let opened = Span::current();
        let answers = requests.map(move |request| {
            let (operations, caller) = (operations.clone(), caller.clone());
            let span = debug_span!(parent: &opened, "stream batch");
            let held = under_way.next();
            let answered = async move {
                let answer = one(&operations, &caller, request?.batch.unwrap_or_default()).await;
                // Not only when the client takes the answer.
                drop(held);
                answer
            };
            answered.instrument(span)
        });
        Ok(until_refused(answers.buffered(UNDER_WAY), place, deadline).boxed())
    }
}

/// A stream ends with its first status and at its deadline, and gives its place back.
fn until_refused(
    answers: impl Stream<Item = Result<LogMetricsStreamResponse, Status>> + Send + 'static,
    place: OwnedSemaphorePermit,
    deadline: Deadline,
) -> impl Stream<Item = Result<LogMetricsStreamResponse, Status>> + Send {
    let begin = Some((Box::pin(answers), place));
    stream::unfold(begin, move |open| async move {
        let (mut answers, place) = open?;
        let answer = match deadline.bound(answers.next()).await {
            Ok(answer) => answer?,
            Err(late) => Err(status::late(&late)),
        };
        let open = answer.is_ok().then_some((answers, place));
        Some((answer, open))
    })
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
