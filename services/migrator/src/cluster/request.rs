//! Requests whose answers are needed as the API server gave them, with the header `Retry-After`.

use std::time::Duration;

use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use kindex_kube_api::status::ReceivedStatus;
use kube::Client;
use kube::client::Body;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::run::answer::Reply;

/// After which a request counts as lost. kube-apiserver ends one after a minute.
const ANSWER_WITHIN: Duration = Duration::from_secs(90);

/// What came of a request.
pub(super) struct Answer<T> {
    /// How it ended.
    pub(super) reply: Reply,
    /// `metadata.continue` of a `Status`.
    pub(super) token: Option<String>,
    /// The body, where it ended well.
    pub(super) body: Option<T>,
}

impl<T> Answer<T> {
    fn lost() -> Self {
        Self {
            reply: Reply::Lost,
            token: None,
            body: None,
        }
    }
}

/// Sends a request. What cannot be read of an answer counts as lost.
pub(super) async fn send<T: DeserializeOwned>(client: &Client, request: Request<Vec<u8>>) -> Answer<T> {
    let answered = async {
        let response = client.send(request.map(Body::from)).await.ok()?;
        let (head, body) = response.into_parts();
        let body = body.collect().await.ok()?.to_bytes();
        Some(Response::from_parts(head, body))
    };
    match timeout(ANSWER_WITHIN, answered).await {
        Ok(Some(response)) => read(&response),
        Ok(None) | Err(_) => Answer::lost(),
    }
}

fn read<T: DeserializeOwned>(response: &Response<Bytes>) -> Answer<T> {
    let body = response.body();
    if response.status().is_success() {
        return match serde_json::from_slice(body) {
            Ok(read) => Answer {
                reply: Reply::Done,
                token: None,
                body: Some(read),
            },
            Err(error) => {
                tracing::warn!(%error, "An answer of the API server cannot be read");
                Answer::lost()
            }
        };
    }
    let code = response.status().as_u16();
    let header = response.headers().get(RETRY_AFTER);
    let header = header.and_then(|value| value.to_str().ok());
    let status = ReceivedStatus::of_answer(code, header, body);
    Answer {
        token: status.continue_token().map(str::to_owned),
        reply: Reply::Refused {
            code,
            retry_after: status.retry_after(),
            outcome: status.outcome(),
            message: match status.message.as_str() {
                // What stands before the server may answer with any text.
                "" => String::from_utf8_lossy(body).trim().to_owned(),
                message => message.to_owned(),
            },
        },
        body: None,
    }
}

#[cfg(test)]
mod tests {
    use kindex_kube_client::Outcome;
    use serde_json::{Value, json};

    use super::*;

    fn answer(code: u16, retry_after: Option<&str>, body: &str) -> Answer<Value> {
        let mut response = Response::builder().status(code);
        if let Some(seconds) = retry_after {
            response = response.header(RETRY_AFTER, seconds);
        }
        read(
            &response
                .body(Bytes::copy_from_slice(body.as_bytes()))
                .expect("a response"),
        )
    }

    #[test]
    fn the_header_counts_where_there_is_no_status() {
        let Reply::Refused {
            code,
            outcome,
            message,
            retry_after,
        } = answer(429, Some("7"), "Too many requests\n").reply
        else {
            panic!("refused");
        };
        assert_eq!((code, message.as_str()), (429, "Too many requests"));
        assert_eq!(outcome, Outcome::TooManyRequests);
        assert_eq!(retry_after, Some(Duration::from_secs(7)));
    }

    #[test]
    fn an_expired_list_names_the_token_to_go_on_with() {
        let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 410,
            "reason": "Expired", "message": "too old", "metadata": {"continue": "next"}});
        let answer = answer(410, None, &status.to_string());
        assert_eq!(answer.token.as_deref(), Some("next"));
        let expired = Reply::Refused {
            code: 410,
            outcome: Outcome::Expired,
            message: "too old".to_owned(),
            retry_after: None,
        };
        assert_eq!(answer.reply, expired);
    }

    /// As if an object were gone because what stands before the server relays what another one said.
    #[test]
    fn a_gateway_that_fails_says_nothing_of_the_object() {
        let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404,
            "reason": "NotFound", "message": "gone", "details": {"name": "blue"}});
        for (code, expected) in [
            (404, Outcome::Absent),
            (500, Outcome::InternalError),
            (503, Outcome::Unavailable),
        ] {
            let Reply::Refused { outcome, .. } = answer(code, None, &status.to_string()).reply else {
                panic!("refused");
            };
            assert_eq!(outcome, expected, "{code}");
        }
    }

    #[test]
    fn an_answer_that_breaks_off_is_lost() {
        assert_eq!(answer(200, None, "{\"kind\":").reply, Reply::Lost);
    }
}
