//! One request to the runs service, and what a refusal tells the person.

use axum::http::{Method, Request, StatusCode, header};
use bytes::Bytes;
use http_body_util::Full;
use kindex_commands::error::{CommandError, CommandResult, chain};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::flags::ServerArgs;
use crate::fetch::{FetchError, fetch};

/// What stands in a path as it is.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// A path below `/api/v1`, with a query.
pub(super) struct Address(String);

impl Address {
    pub(super) fn new(parts: &[&str]) -> Self {
        let parts = parts.iter().map(|part| format!("/{}", utf8_percent_encode(part, KEPT)));
        Self(format!("/api/v1{}", parts.collect::<String>()))
    }

    pub(super) fn with(self, name: &str, value: &str) -> Self {
        let sign = if self.0.contains('?') { '&' } else { '?' };
        Self(format!("{}{sign}{name}={}", self.0, utf8_percent_encode(value, KEPT)))
    }
}

/// The answer, as JSON.
pub(super) async fn ask(
    server: &ServerArgs,
    method: Method,
    address: &Address,
    body: Option<Value>,
) -> CommandResult<Value> {
    let url = server.url.trim_end_matches('/');
    let request = request(server, method, &format!("{url}{}", address.0), body);
    let response = match request {
        Ok(request) => fetch(request).await,
        Err(error) => Err(FetchError::Request(error)),
    };
    let response = response.map_err(|error| {
        let hint = "is the service running? `kindex runs serve` and `kindex up` print its address; --url names it";
        CommandError::failure(format_args!("{url}: {}", chain(&error))).hint(hint)
    })?;
    let answer = serde_json::from_slice(response.body());
    match (response.status(), answer) {
        (status, Ok(answer)) if status.is_success() => Ok(answer),
        (status, Err(_)) if status.is_success() && response.body().is_empty() => Ok(Value::Null),
        (status, Err(_)) if status.is_success() => {
            Err(CommandError::failure(format_args!("{url}: the answer is not JSON"))
                .hint("--url names the REST address of the runs service"))
        }
        (status, answer) => Err(refused(url, status, &answer.unwrap_or_default())),
    }
}

fn request(
    server: &ServerArgs,
    method: Method,
    url: &str,
    body: Option<Value>,
) -> Result<Request<Full<Bytes>>, axum::http::Error> {
    let mut request = Request::builder().method(method).uri(url);
    if let Some(key) = &server.api_key {
        request = request.header(header::AUTHORIZATION, format!("Bearer {key}"));
    }
    match body {
        None => request.body(Full::default()),
        Some(body) => request
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::from(body.to_string())),
    }
}

/// The server's own words, with what to do where they cannot know it.
fn refused(url: &str, status: StatusCode, answer: &Value) -> CommandError {
    let Some(message) = answer["error"]["message"].as_str() else {
        return CommandError::failure(format_args!("{url} answers {status}"))
            .hint("--url names the REST address of the runs service");
    };
    let error = CommandError::failure(message);
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            error.hint("--api-key or KINDEX_RUNS_API_KEY says the key; `kindex runs key create` makes one")
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_people_type_stays_within_its_part_of_the_address() {
        let address = Address::new(&["runs", "../keys?x=1#y"])
            .with("q", "a&b=c")
            .with("tags", "é");
        assert_eq!(address.0, "/api/v1/runs/..%2Fkeys%3Fx%3D1%23y?q=a%26b%3Dc&tags=%C3%A9");
    }

    #[test]
    fn a_refusal_is_told_in_the_words_of_the_server() {
        let answer = json!({"error": {"code": "NOT_FOUND", "message": "There is no run x.", "details": []}});
        let error = refused("http://x", StatusCode::NOT_FOUND, &answer);
        assert_eq!(error.to_string(), "error: There is no run x.");
        let error = refused("http://x", StatusCode::BAD_GATEWAY, &Value::Null).to_string();
        assert!(error.contains("http://x answers 502"), "{error}");
    }
}
