//! Authentication: a request must carry the token of the cluster, and must not come from a web page.

use std::fmt;
use std::net::SocketAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{self, HeaderMap};
use hyper::http::request::Parts;
use kindex_kube_api::request::{self, Target};
use kindex_kube_api::status::Status;
use kindex_serve::browser::{self, Hosts};
use subtle::ConstantTimeEq;

/// Shorter ones can be guessed.
const LENGTH_MIN: usize = 32;

/// What every caller of the cluster shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// One that nobody has: 244 random bits.
    pub fn random() -> Self {
        let part = || uuid::Uuid::new_v4().simple();
        Self(format!("{}{}", part(), part()))
    }

    /// One that was kept; `None` for what is too short, or has other characters than letters and digits.
    ///
    /// # Example
    /// ```
    /// use kindex_cluster::Token;
    ///
    /// let token = Token::random();
    /// assert_eq!(Token::read(&format!("{}\n", token.secret())), Some(token));
    /// assert_eq!(Token::read(""), None);
    /// ```
    pub fn read(text: &str) -> Option<Self> {
        let text = text.trim();
        let is_token = text.len() >= LENGTH_MIN && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        is_token.then(|| Self(text.to_owned()))
    }

    /// For clients, and for the file that keeps it.
    pub fn secret(&self) -> &str {
        &self.0
    }

    /// Compares in a time that tells nothing of where the two differ.
    fn is(&self, shown: &str) -> bool {
        self.0.as_bytes().ct_eq(shown.as_bytes()).into()
    }
}

/// Never shows the secret.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// What callers may show.
#[derive(Clone, Debug)]
pub(crate) struct Tokens {
    /// Every caller.
    pub(crate) callers: Token,
    /// The ingester of this process: of as many rights, and with places of its own.
    pub(crate) ingester: Token,
}

/// Who sends a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Holder {
    /// Somebody with the token of all, or without where none is needed.
    Anybody,
    /// Who has the ingester's token.
    Ingester,
}

/// Who sends a request, by its head alone.
///
/// # Errors
/// What a page may have sent, and what shows no token.
pub(crate) fn check(tokens: &Tokens, address: SocketAddr, head: &Parts) -> Result<Holder, Status> {
    let hosts = if address.ip().is_loopback() {
        Hosts::Loopback
    } else {
        Hosts::Any
    };
    browser::check(&head.method, &head.uri, &head.headers, hosts).map_err(Status::from_a_page)?;
    let needs_no_token = || request::parse_path(head.uri.path()) == Target::Health;
    match shown(&head.headers) {
        Some(shown) if tokens.ingester.is(&shown) => Ok(Holder::Ingester),
        Some(shown) if tokens.callers.is(&shown) => Ok(Holder::Anybody),
        Some(_) | None if needs_no_token() => Ok(Holder::Anybody),
        Some(_) | None => Err(Status::unauthorized()),
    }
}

/// The token of a request: a bearer's, or the password where the address of the server has one. kubectl sends tokens
/// over TLS alone, and passwords of addresses over plain HTTP as well.
fn shown(headers: &HeaderMap) -> Option<String> {
    let (scheme, credentials) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let credentials = credentials.trim();
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(credentials.to_owned());
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = String::from_utf8(STANDARD.decode(credentials).ok()?).ok()?;
    Some(decoded.split_once(':')?.1.to_owned())
}

/// A kubeconfig for a cluster served at `address`.
///
/// # Example
/// ```
/// let text = kindex_cluster::kubeconfig(([127, 0, 0, 1], 8080).into(), &kindex_cluster::Token::random());
/// assert!(text.contains("@127.0.0.1:8080"));
/// ```
pub fn kubeconfig(address: SocketAddr, token: &Token) -> String {
    let secret = token.secret();
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: kindex\nclusters:\n- name: kindex\n  cluster:\n    \
         # kubectl sends no token over plain HTTP: it takes the password of the address.\n    server: \
         http://kindex:{secret}@{address}\ncontexts:\n- name: kindex\n  context:\n    cluster: kindex\n    user: \
         kindex\n    namespace: default\nusers:\n- name: kindex\n  user:\n    token: {secret}\n"
    )
}

#[cfg(test)]
mod tests {
    use hyper::http::Request;

    use super::*;

    fn code(authorization: Option<&str>, path: &str) -> u16 {
        checked(authorization, path).map_or_else(|status| status.code, |_| 200)
    }

    fn checked(authorization: Option<&str>, path: &str) -> Result<Holder, Status> {
        let token = |pair: &str| Token::read(&pair.repeat(16)).unwrap();
        let tokens = Tokens {
            callers: token("a1"),
            ingester: token("b2"),
        };
        let mut request = Request::get(path).header("host", "127.0.0.1");
        if let Some(value) = authorization {
            request = request.header("authorization", value);
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        check(&tokens, ([127, 0, 0, 1], 1).into(), &head)
    }

    #[test]
    fn every_request_but_those_for_health_shows_the_token() {
        let token = "a1".repeat(16);
        let bearer_token = format!("bearer {token}");
        let password = format!("Basic {}", STANDARD.encode(format!("kindex:{token}")));
        for path in ["/api", "/api/v1/secrets", "/version", "/openapi/v3", "/nothing", "/"] {
            assert_eq!(code(None, path), 401, "{path}");
            assert_eq!(code(Some(&bearer_token), path), 200, "{path}");
            assert_eq!(code(Some(&password), path), 200, "{path}");
        }
        for path in ["/healthz", "/livez", "/readyz"] {
            assert_eq!(code(None, path), 200, "{path}");
        }
    }

    #[test]
    fn nothing_but_the_whole_token_is_the_token() {
        let token = "a1".repeat(16);
        for wrong in [
            "Bearer".to_owned(),
            "Bearer ".to_owned(),
            token.clone(),
            format!("Bearer {}", &token[1..]),
            format!("Bearer {token}1"),
            format!("Token {token}"),
            format!("Basic {token}"),
            format!("Basic {}", STANDARD.encode(&token)),
        ] {
            assert_eq!(code(Some(&wrong), "/api"), 401, "{wrong}");
        }
    }

    #[test]
    fn the_ingester_is_who_shows_its_token() {
        let bearer_token = |pair: &str| format!("Bearer {}", pair.repeat(16));
        for path in ["/api", "/healthz"] {
            assert_eq!(
                checked(Some(&bearer_token("b2")), path).unwrap(),
                Holder::Ingester,
                "{path}"
            );
            assert_eq!(
                checked(Some(&bearer_token("a1")), path).unwrap(),
                Holder::Anybody,
                "{path}"
            );
        }
        assert_eq!(checked(Some(&bearer_token("c3")), "/healthz").unwrap(), Holder::Anybody);
    }

    #[test]
    fn a_token_is_never_shown() {
        let token = Token::random();
        assert!(!format!("{token:?}").contains(token.secret()));
    }
}
