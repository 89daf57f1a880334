//! The stream of a topic.

use async_nats::jetstream::context::{CreateStreamError, GetStreamErrorKind};
use async_nats::jetstream::stream::{Config, Info, LastRawMessageErrorKind, Stream};
use async_nats::jetstream::{Context, ErrorCode};
use jiff::Timestamp;
use serde::de::DeserializeOwned;

use crate::names::Names;

/// The stream of a topic, unless there is none.
pub(crate) async fn found(context: &Context, names: &Names) -> Result<Option<Stream<Info>>, async_nats::Error> {
    match context.get_stream(names.stream()).await {
        Ok(stream) => Ok(Some(stream)),
        Err(error) => match error.kind() {
            GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND => Ok(None),
            _ => Err(error.into()),
        },
    }
}

/// Makes the stream of a topic. Sequences begin with the time, so those of one life of the stream are none of another.
pub(crate) async fn made(
    context: &Context,
    names: &Names,
    partitions: u32,
    now: Timestamp,
) -> Result<Stream<Info>, CreateStreamError> {
    let config = Config {
        name: names.stream(),
        description: Some("Events of Kindex: the last one of each object.".to_owned()),
        subjects: vec![names.sent_all(), names.mark(), names.feeder()],
        subject_transform: Some(async_nats::jetstream::stream::SubjectTransform {
            source: names.sent_all(),
            destination: names.stored_as(partitions),
        }),
        max_messages_per_subject: 1,
        allow_message_ttl: true,
        first_sequence: u64::try_from(now.as_microsecond()).ok(),
        ..Config::default()
    };
    context.create_stream(config).await
}

/// How many partitions a stream has that [`made`] made.
pub(crate) fn partitions(stream: &Stream<Info>) -> Option<u32> {
    let transform = stream.cached_info().config.subject_transform.as_ref()?;
    Names::partitions(&transform.destination)
}

/// What tells one life of a stream from the next one of its name.
pub(crate) fn life(stream: &Stream<Info>) -> String {
    stream.cached_info().created.unix_timestamp_nanos().to_string()
}

/// The last message of a subject, as JSON; `None` where there is none or it is something else.
pub(crate) async fn last<T: DeserializeOwned>(
    stream: &Stream<Info>,
    subject: &str,
) -> Result<Option<T>, async_nats::Error> {
    match stream.get_last_raw_message_by_subject(subject).await {
        Ok(message) => Ok(serde_json::from_slice(&message.payload).ok()),
        Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}
