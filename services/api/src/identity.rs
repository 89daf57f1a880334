//! Who asks, as the headers of a request say it, whatever its protocol.

use std::net::IpAddr;

use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, HeaderName, header};

use crate::operations::{Caller, Impersonation, Reason, Refusal};

/// Who asks.
pub(crate) fn caller(headers: &HeaderMap) -> Caller {
    let bearer = text(headers, header::AUTHORIZATION).and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned())
    });
    let user_agent = text(headers, header::USER_AGENT).map(str::to_owned);
    Caller::new(bearer, impersonation(headers), user_agent)
}

/// Refuses what a browser sends for a page of somebody else: a server that asks for no credentials would do it.
pub(crate) fn check_origin(parts: &Parts) -> Result<(), Refusal> {
    // HTTP/2 has the address that was asked for in the target, HTTP/1.1 in a header.
    let asked = parts.uri.authority().map(Authority::as_str);
    let mut hosts = asked.into_iter().chain(text(&parts.headers, header::HOST)).peekable();
    let is_here = hosts.peek().is_some() && hosts.all(is_loopback);
    if is_here && !parts.headers.contains_key(header::ORIGIN) {
        return Ok(());
    }
    Err(Refusal::new(
        Reason::Forbidden,
        "this server acts with its own rights (--rights server): it answers programs that ask for its loopback address, \
         and no pages of a browser",
    ))
}

fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
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
