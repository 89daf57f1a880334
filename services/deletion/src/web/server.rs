//! The web server that gets notices: where it is, how it is asked, and what follows from its answers.

use std::path::{Path, PathBuf};
use std::time::Duration;

use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, USER_AGENT};
use http::uri::PathAndQuery;
use http::{Request, StatusCode, Uri};
use kindex_model::causes::chain;
use kube::client::Body;
use kube::{Client, Config};
use tokio::time::timeout;

/// How long it may take for an answer.
const ANSWER_TIME: Duration = Duration::from_secs(10);
/// What posts calls itself.
const AGENT: &str = concat!("kindex-deletion/", env!("CARGO_PKG_VERSION"));

/// Where notices are posted, and how.
#[derive(Clone)]
pub struct Endpoint {
    /// `https://hooks.example.com/kindex`. The path may be a secret, and is not shown.
    pub url: String,
    /// File with the token that is sent along, over TLS alone.
    pub token_file: Option<PathBuf>,
    /// File with the certificates (PEM) that the server's own may be from; `None`: those of the machine.
    pub ca_file: Option<PathBuf>,
}

/// Why nothing can be posted there.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// It is something else.
    #[error("it is not the URL of a web server")]
    Url,
    /// Nobody would send them.
    #[error("user and password in a URL are not sent")]
    Password,
    /// The files are for TLS.
    #[error("without TLS, no token is sent and no certificate is checked")]
    Plain,
    /// The file has no token.
    #[error("the token in {path} cannot be used: {why}")]
    Token {
        /// The file.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// Nobody can be trusted.
    #[error("the certificates cannot be used: {0}")]
    Certificates(String),
}

impl Endpoint {
    /// The URL, if something can be posted there. Reads no file.
    ///
    /// # Errors
    /// What is wrong with it, or does not go with it.
    pub fn check(&self) -> Result<Uri, Unusable> {
        let url: Uri = self.url.parse().map_err(|_| Unusable::Url)?;
        let is_web = matches!(url.scheme_str(), Some("http" | "https"));
        if !is_web || url.host().is_none_or(str::is_empty) {
            return Err(Unusable::Url);
        }
        let authority = url.authority().map_or("", |authority| authority.as_str());
        if authority.contains('@') {
            return Err(Unusable::Password);
        }
        let has_files = self.token_file.is_some() || self.ca_file.is_some();
        if url.scheme_str() != Some("https") && has_files {
            return Err(Unusable::Plain);
        }
        Ok(url)
    }
}

/// A web server that notices can be posted to.
pub struct Server {
    client: Client,
    /// With what follows a question mark.
    path: String,
    token_file: Option<PathBuf>,
}

/// What became of a post.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It is taken.
    Taken,
    /// It never will be.
    Refused(String),
    /// It may be, another time.
    Unanswered(String),
}

impl Server {
    /// The server at a place. Both files are read now; the token again for each post, the certificates every minute.
    ///
    /// # Errors
    /// What is wrong with the place or the files. Whether somebody answers there does not matter.
    pub async fn open(place: &Endpoint) -> Result<Self, Unusable> {
        let url = place.check()?;
        if let Some(path) = &place.token_file {
            let read = bearer_token(path).await;
            read.map_err(|why| Unusable::Token {
                path: path.display().to_string(),
                why,
            })?;
        }
        let path = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        let is_plain = url.scheme_str() == Some("http");
        let mut parts = url.into_parts();
        parts.path_and_query = Some(PathAndQuery::from_static("/"));
        let base = Uri::from_parts(parts).map_err(|_| Unusable::Url)?;
        let mut config = Config::new(base);
        config.default_retry = false;
        config.root_cert_file = place.ca_file.clone();
        if is_plain || place.ca_file.is_some() {
            // The certificates of the machine are not needed, and may be absent.
            config.root_cert = Some(Vec::new());
        }
        let client = Client::try_from(config);
        Ok(Self {
            client: client.map_err(|error| Unusable::Certificates(chain(&error)))?,
            path,
            token_file: place.token_file.clone(),
        })
    }

    /// Posts a text of JSON once.
    pub(super) async fn post(&self, body: &[u8]) -> Answer {
        let request = match self.request(body).await {
            Ok(request) => request,
            Err(why) => return Answer::Unanswered(why),
        };
        match timeout(ANSWER_TIME, self.client.send(request)).await {
            Ok(Ok(answer)) => judged(answer.status()),
            Ok(Err(error)) => Answer::Unanswered(chain(&error)),
            Err(_) => Answer::Unanswered(format!("no answer within {ANSWER_TIME:?}")),
        }
    }

    async fn request(&self, body: &[u8]) -> Result<Request<Body>, String> {
        let mut request = Request::post(self.path.as_str())
            .header(CONTENT_TYPE, "application/json")
            .header(USER_AGENT, AGENT);
        if let Some(path) = &self.token_file {
            request = request.header(AUTHORIZATION, bearer_token(path).await?);
        }
        let request = request.body(Body::from(body.to_vec()));
        request.map_err(|error| error.to_string())
    }
}

/// The header with the token that a file has now.
async fn bearer_token(path: &Path) -> Result<HeaderValue, String> {
    let read = tokio::fs::read_to_string(path).await;
    let text = read.map_err(|error| error.to_string())?;
    let token = text.trim();
    if token.is_empty() {
        return Err("the file is empty".to_owned());
    }
    let value = HeaderValue::try_from(format!("Bearer {token}"));
    let mut value = value.map_err(|_| "it has characters that cannot be sent".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

fn judged(status: StatusCode) -> Answer {
    match status.as_u16() {
        200..=299 => Answer::Taken,
        429 | 500.. => Answer::Unanswered(format!("it answers {status}")),
        _ => Answer::Refused(format!("it answers {status}")),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn place(url: &str) -> Endpoint {
        Endpoint {
            url: url.to_owned(),
            token_file: None,
            ca_file: None,
        }
    }

    fn with_token(url: &str, path: &Path) -> Endpoint {
        Endpoint {
            token_file: Some(path.to_owned()),
            ..place(url)
        }
    }

    #[test]
    fn what_is_no_url_of_a_web_server_is_refused() {
        for url in [
            "http://hooks",
            "https://hooks.example.com:8443/a/b?c=d",
            "HTTPS://hooks/",
        ] {
            assert!(place(url).check().is_ok(), "{url}");
        }
        for url in [
            "",
            "hooks",
            "/kindex",
            "hooks:80",
            "ftp://hooks",
            "https://",
            "https:// hooks",
        ] {
            assert!(matches!(place(url).check(), Err(Unusable::Url)), "{url}");
        }
        let password = place("https://user:secret@hooks").check();
        assert!(matches!(password, Err(Unusable::Password)));
    }

    #[test]
    fn a_token_and_certificates_go_with_tls_alone() {
        let file = Path::new("file");
        let trusting = |url: &str| Endpoint {
            ca_file: Some(file.to_owned()),
            ..place(url)
        };
        for place in [with_token("https://hooks", file), trusting("https://hooks")] {
            assert!(place.check().is_ok());
        }
        for place in [with_token("http://hooks", file), trusting("http://hooks")] {
            assert!(matches!(place.check(), Err(Unusable::Plain)));
        }
    }

    #[tokio::test]
    async fn a_post_has_the_path_of_the_url_and_the_token_that_the_file_has_then() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let file = directory.path().join("token");
        fs::write(&file, "first\n").expect("writable");
        for (url, path) in [
            ("https://hooks", "/"),
            ("https://hooks?key=1", "/?key=1"),
            ("https://hooks:8443/a/b?key=1", "/a/b?key=1"),
        ] {
            let server = Server::open(&with_token(url, &file)).await.expect("a server");
            let request = server.request(b"{}").await.expect("a request");
            assert_eq!(request.uri(), path, "{url}");
        }
        let server = Server::open(&with_token("https://hooks", &file)).await;
        let server = server.expect("a server");
        fs::write(&file, "second").expect("writable");
        let request = server.request(b"{}").await.expect("a request");
        assert_eq!(request.method(), "POST");
        assert_eq!(request.headers()[CONTENT_TYPE], "application/json");
        assert_eq!(request.headers()[AUTHORIZATION], "Bearer second");
        assert!(request.headers()[AUTHORIZATION].is_sensitive());
    }

    #[tokio::test]
    async fn a_file_that_is_absent_empty_or_no_token_is_refused() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let file = directory.path().join("file");
        let opened = async |place: Endpoint| Server::open(&place).await.err().map(|error| error.to_string());
        let refused = opened(with_token("https://hooks", &file)).await.expect("refused");
        assert!(refused.contains("the token in"), "{refused}");
        for text in [" \n", "a\nb"] {
            fs::write(&file, text).expect("writable");
            let refused = opened(with_token("https://hooks", &file)).await;
            assert!(refused.is_some(), "{text:?}");
        }
        let trusting = Endpoint {
            ca_file: Some(directory.path().join("absent")),
            ..place("https://hooks")
        };
        assert!(opened(trusting).await.is_some());
    }

    #[test]
    fn only_what_may_succeed_another_time_is_sent_again() {
        let answer = |code: u16| judged(StatusCode::from_u16(code).expect("a status"));
        for taken in [200, 202, 204, 299] {
            assert_eq!(answer(taken), Answer::Taken, "{taken}");
        }
        for late in [429, 500, 502, 503, 599] {
            assert!(matches!(answer(late), Answer::Unanswered(_)), "{late}");
        }
        for refused in [301, 307, 400, 401, 404, 410] {
            assert!(matches!(answer(refused), Answer::Refused(_)), "{refused}");
        }
    }
}
