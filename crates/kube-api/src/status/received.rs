//! Refusals as they arrive: the code and the headers of an answer, with as much of a Status as its body is. Knows no
//! connection.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::{Details, Outcome, Reason, Status, StatusParts};
use crate::list::ListMeta;

/// Bytes of an answer that is no Status which are shown.
const SHOWN_MAX: usize = 500;

/// A refusal that was received. What stands before an API server may answer with any text, which says nothing more
/// than the code does.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ReceivedStatus {
    #[serde(deserialize_with = "if_readable")]
    code: u16,
    #[serde(deserialize_with = "if_readable")]
    reason: String,
    /// For people; empty where the answer has none.
    #[serde(deserialize_with = "if_readable")]
    pub message: String,
    #[serde(deserialize_with = "if_readable")]
    details: Option<Details>,
    #[serde(deserialize_with = "if_readable")]
    metadata: Option<ListMeta>,
    #[serde(skip)]
    retry_after: Option<Duration>,
}

impl ReceivedStatus {
    /// Reads the text of a Status; nothing is known of another text.
    pub fn of_text(text: &[u8]) -> Self {
        let read: Self = serde_json::from_slice(text).unwrap_or_default();
        let details = read.details.as_ref();
        let seconds = details.and_then(|details| details.retry_after_seconds);
        Self {
            retry_after: pause(seconds.map(u64::from)),
            ..read
        }
    }

    /// Reads an answer: its code, its header `Retry-After`, and its body. The code of the answer is that of the
    /// refusal, whatever the body says, and of two pauses the longer one is meant.
    pub fn of_answer(code: u16, retry_after: Option<&str>, body: &[u8]) -> Self {
        let read = Self::of_text(body);
        let header = retry_after.and_then(|seconds| seconds.parse().ok());
        Self {
            code,
            retry_after: read.retry_after.max(pause(header)),
            ..read
        }
    }

    /// The refusal, to be passed on. Of an answer that is no Status, the beginning of its `body` is the message.
    pub fn into_status(self, body: &[u8]) -> Status {
        let message = match self.message {
            message if message.is_empty() => String::from_utf8_lossy(&body[..body.len().min(SHOWN_MAX)]).into_owned(),
            message => message,
        };
        Status {
            code: self.code,
            details: self.details.map(Box::new),
            ..Status::failure(Reason::from(self.reason.as_str()), message)
        }
    }

    /// What it means for who sent the request.
    pub fn outcome(&self) -> Outcome {
        let reason = Reason::from(self.reason.as_str());
        Outcome::of(&StatusParts::new(
            self.code,
            &reason,
            &self.message,
            self.details.as_ref(),
        ))
    }

    /// How long the server asks to wait before the request is sent again.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// The token with which a list goes on that has expired, where there is one.
    pub fn continue_token(&self) -> Option<&str> {
        self.metadata.as_ref().and_then(ListMeta::next)
    }
}

/// A field that cannot be read is as one that is absent: the others say what they say.
fn if_readable<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(field: D) -> Result<T, D::Error> {
    let value = Value::deserialize(field)?;
    Ok(serde_json::from_value(value).unwrap_or_default())
}

/// A pause of no length is none.
fn pause(seconds: Option<u64>) -> Option<Duration> {
    seconds.filter(|seconds| *seconds > 0).map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn of_two_pauses_the_longer_one_is_meant_and_none_has_no_length() {
        for (header, seconds, expected) in [
            (None, 0, None),
            (None, 7, Some(7)),
            (Some("9"), 7, Some(9)),
            (Some("5"), 7, Some(7)),
            (Some("5"), 0, Some(5)),
            (Some("0"), 0, None),
            (Some("-1"), 0, None),
            (Some("Fri, 31 Dec 1999 23:59:59 GMT"), 0, None),
        ] {
            let body = format!(r#"{{"details":{{"retryAfterSeconds":{seconds}}}}}"#);
            let status = ReceivedStatus::of_answer(429, header, body.as_bytes());
            assert_eq!(
                status.retry_after(),
                expected.map(Duration::from_secs),
                "{header:?} {seconds}"
            );
            assert_eq!(status.outcome(), Outcome::TooManyRequests);
        }
    }

    #[test]
    fn a_body_that_is_no_status_leaves_the_code() {
        for body in [
            "",
            "Too many requests\n",
            "[1]",
            "null",
            r#"{"code":"a","reason":null}"#,
            "{}",
        ] {
            let status = ReceivedStatus::of_answer(503, Some("2"), body.as_bytes());
            assert_eq!(status.outcome(), Outcome::Unavailable, "{body}");
            assert_eq!(status.retry_after(), Some(Duration::from_secs(2)), "{body}");
            assert_eq!((status.message.as_str(), status.continue_token()), ("", None), "{body}");
        }
    }

    #[test]
    fn a_field_that_cannot_be_read_hides_no_other() {
        let denial = "admission webhook \"a.b.c\" denied the request: no";
        let body = json!({"code": "a", "reason": "Conflict", "message": denial, "details": {"retryAfterSeconds": -1}});
        let status = ReceivedStatus::of_answer(409, None, body.to_string().as_bytes());
        assert_eq!(status.message, denial);
        assert_eq!(status.outcome(), Outcome::Denied { again: false });
    }

    #[test]
    fn what_is_passed_on_has_the_code_of_the_answer_and_its_text_where_it_is_no_status() {
        let passed_on = |code: u16, body: &[u8]| {
            let status = ReceivedStatus::of_answer(code, None, body).into_status(body);
            (status.code, status.reason, status.message, status.details)
        };
        let body = br#"{"code":404,"reason":"NotFound","message":"m","details":{"name":"a"}}"#;
        let details = Details {
            name: "a".to_owned(),
            ..Details::default()
        };
        let expected = (410, Reason::NotFound, "m".to_owned(), Some(Box::new(details)));
        assert_eq!(passed_on(410, body), expected);
        let long = "x".repeat(SHOWN_MAX + 1);
        let (code, _, message, details) = passed_on(502, long.as_bytes());
        assert_eq!((code, message.as_str(), details), (502, &long[1..], None));
    }

    #[test]
    fn a_status_is_read_with_what_it_names() {
        let body = br#"{"kind":"Status","apiVersion":"v1","metadata":{"continue":"t"},"status":"Failure",
            "message":"m","reason":"NotFound","details":{"name":"a","kind":"pods"},"code":404}"#;
        let status = ReceivedStatus::of_text(body);
        assert_eq!(status.outcome(), Outcome::Absent);
        assert_eq!((status.message.as_str(), status.continue_token()), ("m", Some("t")));
    }
}
