//! The upstream cluster: sends Kubernetes requests to it, and returns its objects and errors unchanged.

use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, Request, Response};
use http_body_util::BodyExt;
use kindex_kube_api::headers::warning_text;
use kindex_kube_api::media;
use kindex_kube_api::request::parameter::with_parameters;
use kindex_kube_client::ClusterError;
use kindex_kube_client::kube_cluster::KubeCluster;
use kindex_model::kind::Kind;
use kube::client::Body;

use super::{Answer, Caller, Refusal, RightsOf};

/// Longest wait for anything but the body of a watch.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);
/// The longest answer that is kept in memory as a whole: more than the largest page of the largest objects.
const ANSWER_MAX_BYTES: usize = 512 * 1024 * 1024;

/// The answer of the cluster to a request that was handed on: head and body, the body as it comes.
pub type ProxiedResponse = Response<stream::BoxStream<'static, Result<Bytes, kube::Error>>>;

/// One request of ours.
pub(super) struct Call<'a> {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) query: Vec<(&'static str, String)>,
    pub(super) content_type: &'a str,
    pub(super) body: Bytes,
}

impl Call<'_> {
    pub(super) fn get(path: String, query: Vec<(&'static str, String)>) -> Self {
        Self {
            method: Method::GET,
            path,
            query,
            content_type: media::JSON,
            body: Bytes::new(),
        }
    }

    pub(super) fn json(method: Method, path: String, query: Vec<(&'static str, String)>, body: Bytes) -> Self {
        Self {
            method,
            path,
            query,
            content_type: media::JSON,
            body,
        }
    }
}

/// How the cluster is reached.
pub struct ClusterAccess {
    /// Where it is, with the server's credentials.
    config: kube::Config,
    /// For what is done with the server's own rights.
    own: Option<kube::Client>,
}

impl From<kube::Config> for ClusterAccess {
    fn from(config: kube::Config) -> Self {
        Self { config, own: None }
    }
}

impl ClusterAccess {
    /// A cluster in the same process: what is done with the server's own rights goes by this client, and requests with
    /// the credentials of callers to the address, where these are checked.
    pub fn in_process(config: kube::Config, own: kube::Client) -> Self {
        Self { config, own: Some(own) }
    }
}

/// The client of the cluster.
pub(super) struct Upstream {
    own: kube::Client,
    /// The same, for what its discovery says.
    discovered: KubeCluster,
    /// Has no credentials: sends those of the caller.
    plain: Option<kube::Client>,
}

impl Upstream {
    pub(super) fn new(access: ClusterAccess, rights: RightsOf) -> Result<Self, kube::Error> {
        let ClusterAccess { mut config, own } = access;
        // A request whose outcome is open is the caller's to repeat; a watch may be silent for long.
        config.default_retry = false;
        config.read_timeout = None;
        let plain = match rights {
            RightsOf::Server => None,
            RightsOf::Caller => {
                let mut plain = config.clone();
                plain.auth_info = kube::config::AuthInfo::default();
                Some(kube::Client::try_from(plain)?)
            }
        };
        let own = match own {
            Some(own) => own,
            None => kube::Client::try_from(config)?,
        };
        let discovered = KubeCluster::from(own.clone());
        Ok(Self { own, discovered, plain })
    }

    /// What answers for kinds that no cluster has, in the same process. It knows no callers.
    pub(super) fn in_process(own: kube::Client) -> Self {
        let discovered = KubeCluster::from(own.clone());
        Self {
            own,
            discovered,
            plain: None,
        }
    }

    /// What it means that a request for an object of a kind was answered with a 404 that names none, by the discovery,
    /// which is read with the server's own rights.
    pub(super) async fn why_unserved(&self, kind: &Kind, said: &str) -> ClusterError {
        self.discovered.why_unserved(kind, said).await
    }

    /// Sends a request and reads the whole answer.
    pub(super) async fn call(&self, caller: &Caller, call: Call<'_>) -> Result<Answer, Refusal> {
        let response = self.open(caller, call).await?;
        let warnings = warnings(response.headers());
        let code = response.status().as_u16();
        Ok(Answer {
            code,
            text: read(response).await?,
            warnings,
        })
    }

    /// Sends a request and reads the head of the answer, where it is no refusal.
    pub(super) async fn open(&self, caller: &Caller, call: Call<'_>) -> Result<Response<Body>, Refusal> {
        let uri = with_parameters(&call.path, &call.query);
        let request = Request::builder()
            .method(call.method)
            .uri(uri)
            .header(header::ACCEPT, media::JSON)
            .header(header::CONTENT_TYPE, call.content_type)
            .body(call.body)
            .map_err(|error| Refusal::bad_request(error.to_string()))?;
        let response = self.send(caller, request).await?;
        if response.status().is_success() {
            return Ok(response);
        }
        let code = response.status().as_u16();
        Err(Refusal::from_status(code, &read(response).await?))
    }

    /// Sends a request as it is and hands back whatever comes.
    pub(super) async fn relay(&self, caller: &Caller, request: Request<Bytes>) -> Result<ProxiedResponse, Refusal> {
        let response = self.send(caller, request).await?;
        Ok(response.map(|body| body.into_data_stream().boxed()))
    }

    async fn send(&self, caller: &Caller, mut request: Request<Bytes>) -> Result<Response<Body>, Refusal> {
        let headers = request.headers_mut();
        // Kubernetes compresses watches one member an event, which decoders take for the end.
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        if let Some(agent) = caller.user_agent.as_deref().and_then(|agent| agent.parse().ok()) {
            headers.insert(header::USER_AGENT, agent);
        }
        let client = match &self.plain {
            Some(plain) if !caller.is_served_by_us() => {
                identify(caller, headers)?;
                plain
            }
            Some(_) | None => &self.own,
        };
        let answer = tokio::time::timeout(CALL_TIMEOUT, client.send(request.map(Body::from))).await;
        answer
            .map_err(|_| Refusal::unreachable(&format_args!("not within {} s", CALL_TIMEOUT.as_secs())))?
            .map_err(|error| Refusal::unreachable(&error))
    }
}

/// Puts the caller's credentials on a request.
fn identify(caller: &Caller, headers: &mut HeaderMap) -> Result<(), Refusal> {
    let unusable = |_| Refusal::bad_request("a header of the request cannot be handed on");
    if let Some(token) = &caller.bearer_token {
        let mut value = HeaderValue::from_str(&format!("Bearer {token}")).map_err(unusable)?;
        value.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, value);
    }
    if let Some(wanted) = &caller.impersonate {
        headers.insert("impersonate-user", wanted.user.parse().map_err(unusable)?);
        headers.remove("impersonate-group");
        for group in &wanted.groups {
            headers.append("impersonate-group", group.parse().map_err(unusable)?);
        }
    }
    Ok(())
}

/// The lines of a body as they come. A line that is too long, or a body that breaks off, ends them with an error.
pub(super) fn lines(body: Body) -> impl Stream<Item = std::io::Result<Vec<u8>>> + Send {
    let reader = body.into_data_stream().map_err(std::io::Error::other).into_async_read();
    stream::unfold(Some(reader), |reader| async {
        use futures::AsyncBufReadExt;
        let mut reader = reader?;
        let mut line = Vec::new();
        match reader.read_until(b'\n', &mut line).await {
            Ok(0) => None,
            Ok(_) => Some((Ok(line), Some(reader))),
            Err(error) => Some((Err(error), None)),
        }
    })
}

async fn read(response: Response<Body>) -> Result<Bytes, Refusal> {
    let body = http_body_util::Limited::new(response.into_body(), ANSWER_MAX_BYTES).collect();
    let whole = tokio::time::timeout(CALL_TIMEOUT, body).await;
    let whole = whole.map_err(|_| Refusal::unreachable(&"its answer stopped half-way"))?;
    Ok(whole.map_err(|error| Refusal::unreachable(&error))?.to_bytes())
}

/// The texts of `Warning: 299 - "text"` headers.
fn warnings(headers: &HeaderMap) -> Vec<String> {
    let values = headers.get_all(header::WARNING).iter();
    values.filter_map(|value| warning_text(value.to_str().ok()?)).collect()
}
