//! The two phases of a consumer: a subscription begins, or is there.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::time::{sleep, timeout};

use super::delivery::Delivery;
use crate::source::{PartitionAssignment, Source, SourceError, Subscribe, Subscription};

/// The longest beginning of a subscription. A source has limits of its own for the requests that it makes for one.
const BEGINNING_MAX: Duration = Duration::from_secs(300);

/// How a subscription began.
type Begun = Result<(Option<PartitionAssignment>, Subscription), SourceError>;

/// A consumer is always in one of these. No error ends it: who asks for an item after one that every attempt meets
/// makes another attempt.
pub(super) enum Phase {
    /// A subscription begins, after the pause before it. Where a call is dropped, the next one goes on with it.
    Beginning(BoxFuture<'static, Begun>),
    /// It has begun, and was not cut yet.
    Subscribed(Delivery),
}

impl Phase {
    /// A subscription is to begin. The pause before it begins with the first call that waits for it.
    pub(super) fn beginning(source: Arc<dyn Source>, to: Subscribe, pause: Option<Duration>) -> Self {
        Self::Beginning(begin(source, to, pause).boxed())
    }
}

async fn begin(source: Arc<dyn Source>, to: Subscribe, pause: Option<Duration>) -> Begun {
    if let Some(pause) = pause {
        sleep(pause).await;
    }
    let begun = timeout(BEGINNING_MAX, source.follow(&to)).await;
    begun.unwrap_or_else(|_| Err(SourceError::interrupted("no subscription begins")))
}
