//! Which pages of other origins may ask, by configuration, and what browsers have to be told of it.
//! <https://fetch.spec.whatwg.org/#http-cors-protocol>

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};

/// What pages may send and read.
const METHODS: &str = "GET, POST, PUT, DELETE";
const HEADERS: &str = "authorization, content-type, content-encoding, content-md5, x-api-key";
const SHOWN: &str = "retry-after";
/// How long a browser may remember it, in seconds.
const MAX_AGE: &str = "600";

/// The origins whose pages may ask.
#[derive(Clone, Debug, Default)]
pub struct Cors {
    origins: Vec<String>,
    any: bool,
}

/// What a request means here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CorsRequest {
    /// No page of another origin asks, as far as its headers say.
    NoPage,
    /// A page of an origin that may.
    Allowed,
    /// A browser asks whether such a page may.
    Preflight,
    /// A page of an origin that may not.
    Foreign,
}

impl Cors {
    /// These origins, such as `https://runs.example.com`; `*` for all.
    #[must_use]
    pub fn new(origins: impl IntoIterator<Item = String>) -> Self {
        let origins: Vec<String> = origins.into_iter().collect();
        Self {
            any: origins.iter().any(|origin| origin == "*"),
            origins,
        }
    }

    pub(super) fn asked(&self, method: &Method, headers: &HeaderMap) -> CorsRequest {
        let Some(origin) = headers.get(header::ORIGIN) else {
            return CorsRequest::NoPage;
        };
        let is_allowed = self.any || self.origins.iter().any(|allowed| origin == allowed.as_str());
        let is_preflight = method == Method::OPTIONS && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
        match (is_allowed, is_preflight) {
            (false, _) => CorsRequest::Foreign,
            (true, false) => CorsRequest::Allowed,
            (true, true) => CorsRequest::Preflight,
        }
    }

    /// What browsers are told in an answer to an allowed page.
    pub(super) fn annotate(asked: CorsRequest, origin: Option<HeaderValue>, headers: &mut HeaderMap) {
        let (CorsRequest::Allowed | CorsRequest::Preflight, Some(origin)) = (asked, origin) else {
            return;
        };
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.append(header::VARY, HeaderValue::from_static("origin"));
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(SHOWN));
        if asked == CorsRequest::Preflight {
            for (name, value) in [
                (header::ACCESS_CONTROL_ALLOW_METHODS, METHODS),
                (header::ACCESS_CONTROL_ALLOW_HEADERS, HEADERS),
                (header::ACCESS_CONTROL_MAX_AGE, MAX_AGE),
            ] {
                headers.insert(name, HeaderValue::from_static(value));
            }
        }
    }

    /// The headers without what a browser says of an allowed page.
    pub(super) fn forgiven(headers: &HeaderMap) -> HeaderMap {
        let mut rest = headers.clone();
        rest.remove(header::ORIGIN);
        rest.remove(HeaderName::from_static("sec-fetch-site"));
        rest
    }
}

/// The answer to a browser that asks whether a page may.
pub(super) fn preflight<B: Default>() -> http::Response<B> {
    let mut response = http::Response::new(B::default());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_named_origins_may_ask_and_no_others() {
        let cors = Cors::new(["https://runs.example.com".to_owned()]);
        let all = Cors::new(["*".to_owned()]);
        for (cors, method, origin, asks, expected) in [
            (&cors, Method::GET, None, false, CorsRequest::NoPage),
            (&cors, Method::OPTIONS, None, true, CorsRequest::NoPage),
            (
                &cors,
                Method::GET,
                Some("https://runs.example.com"),
                false,
                CorsRequest::Allowed,
            ),
            (
                &cors,
                Method::OPTIONS,
                Some("https://runs.example.com"),
                true,
                CorsRequest::Preflight,
            ),
            (
                &cors,
                Method::OPTIONS,
                Some("https://runs.example.com"),
                false,
                CorsRequest::Allowed,
            ),
            (
                &cors,
                Method::GET,
                Some("https://runs.example.com.evil.org"),
                false,
                CorsRequest::Foreign,
            ),
            (&cors, Method::GET, Some("null"), false, CorsRequest::Foreign),
            (
                &Cors::default(),
                Method::GET,
                Some("https://a.org"),
                false,
                CorsRequest::Foreign,
            ),
            (&all, Method::GET, Some("https://a.org"), false, CorsRequest::Allowed),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, HeaderValue::from_static(origin));
            }
            if asks {
                headers.insert(header::ACCESS_CONTROL_REQUEST_METHOD, HeaderValue::from_static("POST"));
            }
            assert_eq!(cors.asked(&method, &headers), expected, "{method} {origin:?}");
        }
    }
}
