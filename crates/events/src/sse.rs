//! Messages as server-sent events: written by servers, read by clients. Pure; knows no connection.
//! <https://html.spec.whatwg.org/multipage/server-sent-events.html>

use kindex_kube_api::status::{Outcome, ReceivedStatus};

use crate::event::Message;
use crate::position::Position;
use crate::source::SourceError;

/// The media type.
pub const MEDIA_TYPE: &str = "text/event-stream";
/// The type of the message that ends a replay.
const REPLAYED: &str = "replayed";
/// The type of the last message, with a Status.
const ERROR: &str = "error";
/// The type of all others, where none is written.
const DEFAULT: &str = "message";
/// The longest message that is read.
const FRAME_BYTES_MAX: usize = 256 * 1024;

/// The text of a message.
///
/// # Panics
/// Never: an event is plain data.
pub fn write(message: &Message) -> String {
    let id = message.position().map(|position| format!("id: {position}\n"));
    let id = id.unwrap_or_default();
    match message {
        Message::Event(event, _) => {
            let data = serde_json::to_string(event).expect("an event is plain data");
            format!("{id}data: {data}\n\n")
        }
        Message::Replayed(_) => format!("{id}event: {REPLAYED}\ndata: {{}}\n\n"),
        // Without data no client takes it for an event; the position counts.
        Message::Alive(_) => format!(": keep-alive\n{id}\n"),
    }
}

/// The text of an error that ends a subscription: a Kubernetes Status as JSON of one line.
pub fn write_error(status: &str) -> String {
    format!("event: {ERROR}\ndata: {status}\n\n")
}

/// Reads a subscription as it comes, in pieces of any size. What was cut off is never taken for a message.
#[derive(Debug, Default)]
pub struct Reader {
    line: Vec<u8>,
    frame: Frame,
    bytes: usize,
    is_after_return: bool,
}

/// One message as far as it is read.
#[derive(Debug, Default)]
struct Frame {
    id: Option<String>,
    r#type: String,
    data: Option<String>,
    is_there: bool,
}

impl Reader {
    /// Reads a piece. Each message that it completes, and as the last item what is wrong with it.
    pub fn read(&mut self, piece: &[u8]) -> Vec<Result<Message, SourceError>> {
        let mut read = Vec::new();
        for byte in piece {
            let is_second = std::mem::take(&mut self.is_after_return) && *byte == b'\n';
            match byte {
                b'\n' if is_second => {}
                b'\n' | b'\r' => {
                    self.is_after_return = *byte == b'\r';
                    let line = std::mem::take(&mut self.line);
                    read.extend(self.take_line(&line));
                }
                byte => {
                    self.bytes += 1;
                    self.line.push(*byte);
                }
            }
            if self.bytes > FRAME_BYTES_MAX {
                let message = format!("a message of more than {FRAME_BYTES_MAX} bytes");
                read.push(Err(SourceError::interrupted(message)));
            }
            if matches!(read.last(), Some(Err(_))) {
                break;
            }
        }
        read
    }

    fn take_line(&mut self, line: &[u8]) -> Option<Result<Message, SourceError>> {
        if line.is_empty() {
            self.bytes = 0;
            let frame = std::mem::take(&mut self.frame);
            return frame.is_there.then(|| frame.message());
        }
        self.frame.is_there = true;
        let line = String::from_utf8_lossy(line);
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => self.frame.id = Some(value.to_owned()),
            "event" => value.clone_into(&mut self.frame.r#type),
            "data" => match &mut self.frame.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                none => *none = Some(value.to_owned()),
            },
            // Comments, and what may be invented one day.
            _ => {}
        }
        None
    }
}

impl Frame {
    fn message(self) -> Result<Message, SourceError> {
        let id = self.id.filter(|id| !id.is_empty());
        let position = id.map(|id| Position::parse(&id)).transpose()?;
        let Some(data) = self.data else {
            return Ok(Message::Alive(position));
        };
        match self.r#type.as_str() {
            "" | DEFAULT => {
                let event = serde_json::from_str(&data);
                let event = event.map_err(|error| SourceError::interrupted(format_args!("not an event: {error}")))?;
                Ok(Message::Event(event, position))
            }
            REPLAYED => Ok(Message::Replayed(position)),
            ERROR => Err(error(&data)),
            // A type of a later server. Whether all is shown up to its position is not known.
            _ => Ok(Message::Alive(None)),
        }
    }
}

fn error(data: &str) -> SourceError {
    let status = ReceivedStatus::of_text(data.as_bytes());
    match status.outcome() {
        Outcome::Expired => SourceError::Gone(status.message),
        Outcome::Unauthorized | Outcome::Forbidden => SourceError::Refused(status.message),
        _ => SourceError::interrupted(status.message),
    }
}

#[cfg(test)]
mod tests {
    use kindex_model::object::Uid;

    use super::*;
    use crate::event::Event;

    fn messages() -> Vec<Message> {
        let position = |number: u64| Some(Position::encode("test", "runs.g", &number));
        let event = |uid: &str, erased| Event {
            resource_id: Uid::from(uid),
            deletion_timestamp: None,
            topic: "runs.g".to_owned(),
            namespace: "é".to_owned(),
            name: "a".to_owned(),
            erased,
        };
        vec![
            Message::Event(event("1", false), None),
            Message::Event(event("2", false), position(1)),
            Message::Replayed(position(2)),
            Message::Alive(None),
            Message::Alive(position(3)),
            Message::Event(event("2", true), position(4)),
        ]
    }

    #[test]
    fn a_message_is_read_as_it_was_written_wherever_it_is_cut() {
        let mut text = String::new();
        let mut ends = Vec::new();
        for message in messages() {
            text.push_str(&write(&message));
            ends.push(text.len());
        }
        for cut in 0..=text.len() {
            let mut reader = Reader::default();
            let (first, second) = text.as_bytes().split_at(cut);
            let mut read = reader.read(first);
            let whole = read.len();
            read.extend(reader.read(second));
            let read: Vec<Message> = read.into_iter().map(|read| read.expect("a message")).collect();
            assert_eq!(read, messages(), "cut at {cut}");
            // Of a message that is not there as a whole nothing is known.
            let complete = ends.iter().filter(|end| **end <= cut).count();
            assert_eq!(whole, complete, "cut at {cut}");
        }
    }

    #[test]
    fn all_ends_of_lines_are_read() {
        for text in ["event: replayed\r\ndata: {}\r\n\r\n", "event:replayed\rdata:{}\r\r"] {
            let read = Reader::default().read(text.as_bytes());
            assert_eq!(read, [Ok(Message::Replayed(None))], "{text:?}");
        }
    }

    #[test]
    fn an_error_is_the_last_that_is_read() {
        let text = write_error(r#"{"code":410,"message":"too old"}"#) + &write(&Message::Replayed(None));
        let read = Reader::default().read(text.as_bytes());
        assert_eq!(read, [Err(SourceError::Gone("too old".to_owned()))]);
        let broken = Reader::default().read(b"data: {\n\n");
        assert!(matches!(broken.as_slice(), [Err(SourceError::Interrupted { .. })]));
        let endless = Reader::default().read(&vec![b'x'; FRAME_BYTES_MAX + 1]);
        assert!(matches!(endless.as_slice(), [Err(SourceError::Interrupted { .. })]));
    }

    #[test]
    fn a_type_of_a_later_server_is_no_event_and_moves_no_position() {
        let text = format!(
            "id: {}\nevent: other\ndata: 1\n\n",
            Position::encode("test", "runs.g", &1)
        );
        let read = Reader::default().read(text.as_bytes());
        assert_eq!(read, [Ok(Message::Alive(None))]);
    }

    /// As if it were a message of the server.
    #[test]
    fn a_comment_of_a_proxy_has_no_position() {
        let text = format!(
            "{}: ping\n\n",
            write(&Message::Alive(Some(Position::encode("test", "runs.g", &1))))
        );
        let read = Reader::default().read(text.as_bytes());
        assert!(matches!(
            read.as_slice(),
            [Ok(Message::Alive(Some(_))), Ok(Message::Alive(None))]
        ));
    }
}
