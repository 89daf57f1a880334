//! Requests that a page of a browser may have sent. Pages reach servers on their reader's machine that strangers do
//! not, so a server on a loopback address asks this of every request. Knows nothing of the caller.

use std::net::IpAddr;

use http::header::{self, HeaderMap, HeaderName};
use http::uri::Authority;
use http::{Method, Uri};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Which hosts a request may be addressed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hosts {
    /// Loopback addresses alone: a name of somebody's may lead here (DNS rebinding).
    Loopback,
    /// Any, for servers that other machines reach by names that this one does not know.
    Any,
}

/// What makes a request look like a page's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PageSign {
    /// It is addressed to another host.
    #[error("it is not addressed to a loopback address")]
    Host,
    /// It says which page it is from.
    #[error("it has an Origin")]
    Origin,
    /// A browser says that a page asked for it.
    #[error("its Sec-Fetch-Site is not \"none\"")]
    FetchSite,
    /// It has a body of no type, which a page may send anywhere. Programs name the type; the types that pages may send
    /// as well are none that this API takes.
    #[error("it has a body and no Content-Type")]
    ContentType,
}

/// Refuses what a browser may send for a page, foreign or not.
///
/// # Errors
/// The first sign that it is a page's.
///
/// # Example
/// ```
/// use http::{HeaderMap, Method, Uri};
/// use kindex_serve::browser::{Hosts, PageSign, check};
///
/// let uri = Uri::from_static("/api/v1/secrets");
/// let mut headers = HeaderMap::new();
/// headers.insert("host", "127.0.0.1:6480".parse()?);
/// assert_eq!(check(&Method::GET, &uri, &headers, Hosts::Loopback), Ok(()));
/// headers.insert("host", "rebound.example.com:6480".parse()?);
/// assert_eq!(check(&Method::GET, &uri, &headers, Hosts::Loopback), Err(PageSign::Host));
/// # Ok::<_, http::header::InvalidHeaderValue>(())
/// ```
pub fn check(method: &Method, uri: &Uri, headers: &HeaderMap, hosts: Hosts) -> Result<(), PageSign> {
    let is_here = match hosts {
        Hosts::Any => true,
        Hosts::Loopback => is_addressed_to_loopback(uri, headers),
    };
    let fetch_sites = headers.get_all(SEC_FETCH_SITE);
    if !is_here {
        Err(PageSign::Host)
    } else if headers.contains_key(header::ORIGIN) {
        Err(PageSign::Origin)
    } else if fetch_sites.iter().any(|site| site != "none") {
        Err(PageSign::FetchSite)
    } else if method == Method::POST && has_body(headers) && !headers.contains_key(header::CONTENT_TYPE) {
        Err(PageSign::ContentType)
    } else {
        Ok(())
    }
}

/// HTTP/2 has the address that was asked for in the target, HTTP/1.1 in a header.
fn is_addressed_to_loopback(uri: &Uri, headers: &HeaderMap) -> bool {
    let named = headers.get_all(header::HOST).iter().map(|host| host.to_str().ok());
    let target = uri.authority().map(Authority::as_str).map(Some);
    let mut hosts = target.into_iter().chain(named).peekable();
    hosts.peek().is_some() && hosts.all(|host| host.is_some_and(is_loopback))
}

fn has_body(headers: &HeaderMap) -> bool {
    let length = headers.get(header::CONTENT_LENGTH);
    headers.contains_key(header::TRANSFER_ENCODING) || length.is_some_and(|length| length != "0")
}

fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(method: &Method, headers: &[(HeaderName, &str)], hosts: Hosts) -> Result<(), PageSign> {
        let pairs = headers
            .iter()
            .map(|(name, value)| (name.clone(), value.parse().unwrap()));
        check(method, &Uri::from_static("/api"), &pairs.collect(), hosts)
    }

    #[test]
    fn a_request_is_for_a_loopback_address() {
        for (host, expected) in [
            ("127.0.0.1:6482", Ok(())),
            ("localhost", Ok(())),
            ("[::1]:80", Ok(())),
            ("evil.example.com", Err(PageSign::Host)),
            ("127.0.0.1.evil.example.com:80", Err(PageSign::Host)),
            ("", Err(PageSign::Host)),
        ] {
            let headers = [(header::HOST, host)];
            assert_eq!(checked(&Method::GET, &headers, Hosts::Loopback), expected, "{host}");
            assert_eq!(checked(&Method::GET, &headers, Hosts::Any), Ok(()), "{host}");
        }
        assert_eq!(
            checked(&Method::GET, &[], Hosts::Loopback),
            Err(PageSign::Host),
            "no host at all"
        );
    }

    #[test]
    fn what_a_browser_says_of_a_page_is_a_sign_whatever_it_says() {
        for (name, value, expected) in [
            (header::ORIGIN, "https://evil.example.com", Err(PageSign::Origin)),
            (header::ORIGIN, "null", Err(PageSign::Origin)),
            (SEC_FETCH_SITE, "cross-site", Err(PageSign::FetchSite)),
            (SEC_FETCH_SITE, "same-site", Err(PageSign::FetchSite)),
            (SEC_FETCH_SITE, "same-origin", Err(PageSign::FetchSite)),
            // Typed into the address bar.
            (SEC_FETCH_SITE, "none", Ok(())),
        ] {
            assert_eq!(checked(&Method::GET, &[(name, value)], Hosts::Any), expected, "{value}");
        }
    }

    #[test]
    fn a_body_of_a_post_has_a_type() {
        let (some, none) = ((header::CONTENT_LENGTH, "2"), (header::CONTENT_LENGTH, "0"));
        let pieces = (header::TRANSFER_ENCODING, "chunked");
        let json = (header::CONTENT_TYPE, "application/json");
        let refused = Err(PageSign::ContentType);
        for (method, headers, expected) in [
            (Method::POST, vec![some.clone()], refused),
            (Method::POST, vec![pieces], refused),
            (Method::POST, vec![none], Ok(())),
            (Method::POST, vec![], Ok(())),
            (Method::POST, vec![some.clone(), json], Ok(())),
            (Method::DELETE, vec![some], Ok(())),
        ] {
            assert_eq!(checked(&method, &headers, Hosts::Any), expected, "{method} {headers:?}");
        }
    }
}
