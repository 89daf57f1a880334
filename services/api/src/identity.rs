//! The caller of a request, from its headers, for all protocols.

use http::request::Parts;
use http::{HeaderMap, HeaderName, header};
use kindex_serve::browser::{self, Hosts};

use crate::operations::{Caller, Impersonation, Reason, Refusal};

/// Who asks.
pub(crate) fn caller(headers: &HeaderMap) -> Caller {
    let bearer_token = text(headers, header::AUTHORIZATION).and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned())
    });
    let user_agent = text(headers, header::USER_AGENT).map(str::to_owned);
    Caller::new(bearer_token, impersonation(headers), user_agent)
}

/// Refuses what a browser sends for a page of somebody else: a server that asks for no credentials would do it.
pub(crate) fn check_origin(parts: &Parts) -> Result<(), Refusal> {
    browser::check(&parts.method, &parts.uri, &parts.headers, Hosts::Loopback).map_err(|sign| {
        Refusal::new(
            Reason::Forbidden,
            format!(
                "this server acts with its own rights (--rights server) and refuses requests of browser pages: {sign}"
            ),
        )
    })
}

fn impersonation(headers: &HeaderMap) -> Option<Impersonation> {
    let named = |name: &HeaderName| name.as_str().starts_with("impersonate-");
    let is_understood = |name: &HeaderName| matches!(name.as_str(), "impersonate-user" | "impersonate-group");
    let mut names = headers.keys().filter(|name| named(name)).peekable();
    names.peek()?;
    let texts = |name: &str| {
        let values = headers.get_all(name).iter();
        values.filter_map(|value| value.to_str().ok().map(str::to_owned))
    };
    Some(Impersonation {
        user: texts("impersonate-user").next().unwrap_or_default(),
        groups: texts("impersonate-group").collect(),
        has_more: names.any(|name| !is_understood(name)),
    })
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}
