//! Clients of servers, from their configuration. What stands before a server may fail with the refusal of another one
//! as its text. The client library reads the code of a refusal from the text alone, so that of the answer is put there.

use bytes::Bytes;
use http::{Response, header};
use http_body_util::{BodyExt, Full};
use kube::client::{ClientBuilder, DynBody};
use kube::{Client, Config};
use serde_json::{Map, Value};
use tower::BoxError;
use tower::util::AndThenLayer;

/// The longest text of a failure that is read: more than a Status has. A longer one is a broken connection.
const FAILURE_MAX_BYTES: usize = 1024 * 1024;

/// A client of the server of this configuration.
///
/// # Errors
/// Where the configuration cannot be used.
pub fn connect(config: Config) -> kube::Result<Client> {
    let builder = ClientBuilder::try_from(config)?;
    Ok(builder.with_layer(&AndThenLayer::new(with_http_code)).build())
}

/// An answer, with its own code in its text if the server fails. Other answers, such as watches, go on as they come.
pub(super) async fn with_http_code(answer: Response<Box<DynBody>>) -> Result<Response<Box<DynBody>>, BoxError> {
    let code = answer.status();
    if !code.is_server_error() {
        return Ok(answer);
    }
    let (mut head, mut body) = answer.into_parts();
    let mut text = Vec::new();
    while let Some(frame) = body.frame().await {
        text.extend(frame?.into_data().unwrap_or_default());
        if text.len() > FAILURE_MAX_BYTES {
            return Err("the text of a failure is longer than 1 MiB".into());
        }
    }
    let text = recoded(code.as_u16(), &text).unwrap_or(text);
    head.headers.remove(header::CONTENT_LENGTH);
    Ok(Response::from_parts(head, whole(text.into())))
}

fn whole(text: Bytes) -> Box<DynBody> {
    Box::new(Full::new(text).map_err(|never| match never {}))
}

/// The text of a Status with this code; `None` where it has that already, or is none.
fn recoded(code: u16, text: &[u8]) -> Option<Vec<u8>> {
    let mut status: Map<String, Value> = serde_json::from_slice(text).ok()?;
    let former = status.insert("code".to_owned(), Value::from(code));
    if former == Some(Value::from(code)) {
        return None;
    }
    serde_json::to_vec(&status).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    async fn passed(code: u16, text: &str) -> Result<String, BoxError> {
        let body = whole(Bytes::copy_from_slice(text.as_bytes()));
        let answer = Response::builder().status(code).body(body).expect("an answer");
        let answer = with_http_code(answer).await?;
        assert_eq!(answer.status(), code);
        let text = answer.into_body().collect().await?.to_bytes();
        Ok(String::from_utf8(text.to_vec()).expect("a text"))
    }

    /// As if an object were gone, or a holder, because a gateway without an upstream relays that one was not found.
    #[tokio::test]
    async fn a_server_that_fails_has_its_own_code_in_the_refusal_that_it_relays() {
        let relayed = json!({"kind": "Status", "reason": "NotFound", "details": {"name": "a"}, "code": 404});
        let said = passed(503, &relayed.to_string()).await.expect("read");
        let said: Value = serde_json::from_str(&said).expect("JSON");
        assert_eq!(
            said,
            json!({"kind": "Status", "reason": "NotFound", "details": {"name": "a"}, "code": 503})
        );
        let said = passed(502, r#"{"message":"no healthy upstream"}"#).await.expect("read");
        assert_eq!(
            serde_json::from_str::<Value>(&said).expect("JSON")["code"],
            Value::from(502)
        );
    }

    #[tokio::test]
    async fn all_other_answers_stay_as_they_are() {
        for (code, text) in [
            (503, r#"{"code": 503,  "message":"no"}"#),
            (503, "no healthy upstream\n"),
            (500, "[404]"),
            (500, ""),
            (404, r#"{"code": 410}"#),
            (200, r#"{"code": 404}"#),
        ] {
            assert_eq!(passed(code, text).await.expect("read"), text, "{code}");
        }
    }

    #[tokio::test]
    async fn a_failure_without_end_is_not_read() {
        let text = "0".repeat(FAILURE_MAX_BYTES + 1);
        assert!(passed(503, &text).await.is_err());
        assert!(passed(200, &text).await.is_ok());
    }
}
