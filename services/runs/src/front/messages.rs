//! The messages of a two-way stream, as a body that counts each of them against the memory for bodies until it is
//! answered. Where there is no room for the next one, nothing more of the stream is read, so that its client waits.

use std::sync::Arc;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use futures::stream;
use http_body_util::BodyExt;
use kindex_serve::BodyPace;
use kindex_serve::admission::Denied;
use kindex_serve::body::BodyError;
use kindex_serve::budget::Budget;
use tokio::time::{Instant, timeout_at};

use super::admission::{AdmissionKey, WAIT_MAX, denied};
use crate::grpc::{InFlight, PREFIX_BYTES, framed, status};
use crate::limits;
use crate::metrics::Metrics;
use crate::pack::{self, PackError};

/// Where the messages of a stream have room.
#[derive(Clone)]
pub(super) struct StreamBudget {
    pub(super) bodies: Arc<Budget<AdmissionKey>>,
    pub(super) pace: BodyPace,
    pub(super) metrics: Metrics,
}

impl StreamBudget {
    /// The body of a stream, message by message. `in_flight` holds the memory of each until its answer is known.
    pub(super) fn counted(&self, body: Body, caller: AdmissionKey, is_gzip: bool, in_flight: InFlight) -> Body {
        let messages = Messages {
            body,
            read: BytesMut::new(),
            budget: self.clone(),
            caller,
            is_gzip,
            in_flight,
        };
        Body::from_stream(stream::unfold(Some(messages), async |messages| {
            let mut messages = messages?;
            match messages.next().await {
                Ok(message) => Some((Ok(message?), Some(messages))),
                Err(error) => {
                    let refusal = denied(Denied::Body(error), &messages.budget.metrics);
                    Some((Err(status::of(&refusal)), None))
                }
            }
        }))
    }
}

struct Messages {
    body: Body,
    /// What was read and not handed on.
    read: BytesMut,
    budget: StreamBudget,
    caller: AdmissionKey,
    /// Whether its messages may be packed.
    is_gzip: bool,
    in_flight: InFlight,
}

impl Messages {
    /// The next message with its prefix, unpacked; nothing after the last one.
    async fn next(&mut self) -> Result<Option<Bytes>, BodyError> {
        // A stream may be silent for as long as it likes.
        while self.read.len() < PREFIX_BYTES {
            if !self.more().await? {
                let rest = self.read.split().freeze();
                return Ok(Some(rest).filter(|rest| !rest.is_empty()));
            }
        }
        let (is_packed, length) = prefix(&self.read);
        check_length(length)?;
        let mut claim = self.budget.bodies.claim(self.caller.clone());
        claim.wait(length, WAIT_MAX).await?;
        self.rest_of(PREFIX_BYTES + length).await?;
        let mut message = self.read.split_to(PREFIX_BYTES + length).freeze();
        if is_packed && self.is_gzip {
            let packed = message.slice(PREFIX_BYTES..);
            let becomes = pack::claimed_bytes(&packed);
            check_length(becomes)?;
            claim.wait(length + becomes, WAIT_MAX).await?;
            message = unpacked(&packed)?;
        }
        self.in_flight.begin(claim);
        Ok(Some(message))
    }

    /// Reads until so many bytes are there, which come as fast as any body.
    async fn rest_of(&mut self, bytes: usize) -> Result<(), BodyError> {
        let began = Instant::now();
        self.read.reserve(bytes.saturating_sub(self.read.len()));
        while self.read.len() < bytes {
            let due = self.budget.pace.due(began, self.read.len());
            let is_more = timeout_at(due, self.more()).await.map_err(|_| BodyError::TooSlow)??;
            if !is_more {
                return Err(BodyError::Broken("it ends within a message".into()));
            }
        }
        Ok(())
    }

    async fn more(&mut self) -> Result<bool, BodyError> {
        let Some(frame) = self.body.frame().await else {
            return Ok(false);
        };
        let frame = frame.map_err(|error| BodyError::Broken(error.into()))?;
        if let Ok(data) = frame.into_data() {
            self.read.extend_from_slice(&data);
        }
        Ok(true)
    }
}

/// Whether a message is packed, and its length.
fn prefix(read: &[u8]) -> (bool, usize) {
    let length = read.get(1..PREFIX_BYTES).and_then(<[u8]>::first_chunk).copied();
    let length = u32::from_be_bytes(length.unwrap_or_default());
    (read.first() == Some(&1), usize::try_from(length).unwrap_or(usize::MAX))
}

fn check_length(bytes: usize) -> Result<(), BodyError> {
    let most = limits::TRANSPORT_BYTES.max;
    if bytes > most {
        return Err(BodyError::TooLarge(most));
    }
    Ok(())
}

fn unpacked(packed: &[u8]) -> Result<Bytes, BodyError> {
    let most = limits::TRANSPORT_BYTES.max;
    let whole = pack::unpack(packed, most).map_err(|error| match error {
        PackError::TooLarge(_) => BodyError::TooLarge(most),
        PackError::Broken(_) | PackError::Length => BodyError::Broken(error.into()),
    })?;
    framed(&whole).ok_or(BodyError::TooLarge(most))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::num::NonZeroU32;
    use std::time::Duration;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use futures::StreamExt as _;
    use tonic_types::StatusExt as _;

    use super::*;

    const KIB: usize = 1024;

    fn budget(bytes: usize) -> StreamBudget {
        let pace = BodyPace {
            grace: Duration::from_secs(5),
            bytes_per_second: NonZeroU32::new(10 * KIB as u32).expect("more than 0"),
            longest: Duration::from_secs(60),
        };
        StreamBudget {
            bodies: Budget::new(bytes),
            pace,
            metrics: Metrics::new(&prometheus::Registry::new()),
        }
    }

    fn caller(name: &str) -> AdmissionKey {
        AdmissionKey::Key(name.to_owned())
    }

    fn frame(message: &[u8], packed: u8) -> Vec<u8> {
        let mut frame = vec![packed];
        frame.extend((message.len() as u32).to_be_bytes());
        frame.extend(message);
        frame
    }

    /// A stream that sends these pieces and then nothing more, without an end.
    fn sends(budget: &StreamBudget, name: &str, pieces: Vec<Vec<u8>>) -> (axum::body::BodyDataStream, InFlight) {
        let pieces = stream::iter(pieces)
            .map(Ok::<_, std::io::Error>)
            .chain(stream::pending());
        let in_flight = InFlight::default();
        let body = budget.counted(Body::from_stream(pieces), caller(name), true, in_flight.clone());
        (body.into_data_stream(), in_flight)
    }

    /// The status that a stream ends with.
    fn refused(error: &axum::Error) -> tonic::Status {
        let mut error: Option<&(dyn std::error::Error + 'static)> = Some(error);
        while let Some(cause) = error {
            if let Some(status) = cause.downcast_ref::<tonic::Status>() {
                return status.clone();
            }
            error = cause.source();
        }
        panic!("no status");
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_counts_from_its_prefix_until_it_is_answered() {
        let budget = budget(1024 * KIB);
        let whole = frame(&vec![7; 100 * KIB], 0);
        // Cut anywhere, as it may come.
        let pieces = whole.chunks(999).map(<[u8]>::to_vec).collect();
        let (mut messages, in_flight) = sends(&budget, "a", pieces);
        let message = messages.next().await.expect("a message").expect("no error");
        assert_eq!(message, whole);
        assert_eq!(budget.bodies.bytes(), 100 * KIB);
        drop(in_flight.next());
        assert_eq!(budget.bodies.bytes(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_waits_for_room_and_is_refused_when_none_comes() {
        let budget = budget(400 * KIB);
        let whole = frame(&vec![7; 150 * KIB], 0);
        let (mut first, answered) = sends(&budget, "a", vec![whole.clone(), whole.clone()]);
        let (mut other, _kept) = sends(&budget, "b", vec![whole.clone()]);
        first.next().await.expect("a message").expect("no error");
        other
            .next()
            .await
            .expect("a message")
            .expect("one caller does not take the room of another");
        let waits = async { first.next().await.expect("a message").is_ok() };
        let answers = async {
            tokio::task::yield_now().await;
            drop(answered.next());
        };
        assert!(tokio::join!(waits, answers).0, "room for it came");
        let (mut third, _) = sends(&budget, "a", vec![whole]);
        let error = third.next().await.expect("an end").expect_err("no room comes");
        let status = refused(&error);
        assert_eq!(status.code(), tonic::Code::ResourceExhausted);
        assert!(status.get_error_details().retry_info().is_some());
        assert!(third.next().await.is_none(), "the stream has ended");
    }

    #[tokio::test(start_paused = true)]
    async fn who_announces_a_message_and_sends_it_slowly_gives_its_room_back() {
        let budget = budget(10_000 * KIB);
        let announced = frame(&vec![7; 1000 * KIB], 0)[..100].to_vec();
        let (mut messages, _) = sends(&budget, "a", vec![announced]);
        let error = messages.next().await.expect("an end").expect_err("it is too slow");
        assert_eq!(refused(&error).code(), tonic::Code::Unavailable);
        assert_eq!(budget.bodies.bytes(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_packed_message_counts_for_what_it_becomes_and_a_bomb_is_not_unpacked() {
        let pack = |bytes: usize| {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(&vec![0; bytes]).expect("a vector takes all");
            encoder.finish().expect("a vector takes all")
        };
        let budget = budget(10_000 * KIB);
        let small = pack(1000 * KIB);
        let (mut messages, _in_flight) = sends(&budget, "a", vec![frame(&small, 1)]);
        let message = messages.next().await.expect("a message").expect("no error");
        assert_eq!(message, frame(&vec![0; 1000 * KIB], 0));
        assert_eq!(budget.bodies.bytes(), small.len() + 1000 * KIB);
        let mut lies = pack(50_000 * KIB);
        let end = lies.len() - 4;
        lies[end..].copy_from_slice(&100_u32.to_le_bytes());
        for bomb in [pack(50_000 * KIB), lies] {
            let (mut messages, _) = sends(&budget, "b", vec![frame(&bomb, 1)]);
            let error = messages.next().await.expect("an end").expect_err("it is refused");
            assert_eq!(refused(&error).code(), tonic::Code::InvalidArgument);
        }
    }
}
