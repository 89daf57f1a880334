//! One of the two servers, as a client of one script sees it: sends requests, keeps what later ones refer to.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use http_body_util::BodyExt as _;
use kindex_harness::kubectl;
use kindex_harness::wait::WAIT_MAX;
use kube::client::Body;
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::script::{Request, words};

const POLL: Duration = Duration::from_millis(50);

/// What a server answered.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    /// The HTTP status, or kubectl's exit code.
    pub(super) code: u16,
    pub(super) content_type: String,
    pub(super) warnings: Vec<String>,
    /// JSON as it is; a stream's lines, or a text's, as a list.
    pub(super) body: Value,
}

impl Answer {
    fn none(why: &str) -> Self {
        Self {
            code: 0,
            content_type: String::new(),
            warnings: Vec::new(),
            body: Value::from(why),
        }
    }
}

/// A client of one server.
pub(super) struct Server {
    client: Client,
    /// Shows no credentials but those of a request's own.
    anonymous: Client,
    kubeconfig: PathBuf,
    home: TempDir,
    pub(super) address: String,
    /// Names and values that stand for `${name}`.
    pub(super) saved: Vec<(String, String)>,
}

impl Server {
    /// A client with a namespace to itself.
    pub(super) async fn new(kubeconfig: &Path, namespace: &str) -> Self {
        let file = Kubeconfig::read_from(kubeconfig).unwrap();
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(file, &options).await.unwrap();
        // Without the password of the embedded cluster.
        let authority = config.cluster_url.authority().unwrap().as_str();
        let address = authority
            .rsplit_once('@')
            .map_or(authority, |(_, address)| address)
            .to_owned();
        let mut anonymous = config.clone();
        anonymous.auth_info = AuthInfo::default();
        Self {
            anonymous: Client::try_from(anonymous).unwrap(),
            client: Client::try_from(config).unwrap(),
            kubeconfig: kubeconfig.to_owned(),
            home: tempfile::tempdir().unwrap(),
            address,
            saved: vec![("ns".to_owned(), namespace.to_owned())],
        }
    }

    /// Sends a request, again and again where it waits for something, and keeps what it saves.
    pub(super) async fn send(&mut self, request: &Request) -> Answer {
        let deadline = Instant::now() + WAIT_MAX;
        let answer = loop {
            let answer = tokio::time::timeout(WAIT_MAX, self.send_once(request)).await;
            let answer = answer.unwrap_or_else(|_| Answer::none("does not answer"));
            if request.until.is_none_or(|code| code == answer.code) {
                break answer;
            }
            assert!(Instant::now() < deadline, "{}: still {answer:?}", request.name);
            tokio::time::sleep(POLL).await;
        };
        for (name, pointer) in &request.saves {
            // What is missing shows as a difference of this answer.
            let Some(found) = answer.body.pointer(pointer) else {
                continue;
            };
            let value = found.as_str().map_or_else(|| found.to_string(), str::to_owned);
            self.saved.retain(|(known, _)| known != name);
            self.saved.push((name.clone(), value));
        }
        answer
    }

    async fn send_once(&self, request: &Request) -> Answer {
        let line = self.fill(&request.line);
        match line.strip_prefix("kubectl ") {
            Some(arguments) => self.kubectl(arguments, &self.fill(&request.body)).await,
            None => self.http(request, &line).await,
        }
    }

    fn fill(&self, text: &str) -> String {
        let named = |text: String, (name, value): &(String, String)| text.replace(&format!("${{{name}}}"), value);
        // A long text is written as its part and how often that stands there.
        let text = regex::Regex::new(r"\$\{([^{}$]+?)\*(\d+)\}")
            .unwrap()
            .replace_all(text, |found: &regex::Captures<'_>| {
                found[1].repeat(found[2].parse().unwrap())
            })
            .into_owned();
        self.saved.iter().fold(text, named)
    }

    async fn http(&self, request: &Request, line: &str) -> Answer {
        let (method, path) = line.split_once(' ').expect("a method and a path");
        let body = self.fill(&request.body);
        let mut built = http::Request::builder().method(method).uri(path);
        let has = |name: &str| {
            request
                .headers
                .iter()
                .any(|(known, _)| known.eq_ignore_ascii_case(name))
        };
        if !body.is_empty() && !has("content-type") {
            built = built.header("Content-Type", "application/json");
        }
        if !has("user-agent") {
            built = built.header("User-Agent", "compare");
        }
        for (name, value) in &request.headers {
            built = built.header(name, self.fill(value));
        }
        let sent = built.body(Body::from(body.into_bytes())).unwrap();
        let client = if has("authorization") {
            &self.anonymous
        } else {
            &self.client
        };
        let response = client.send(sent).await;
        let Ok(response) = response else {
            return Answer::none("closes the connection");
        };
        let (parts, body) = response.into_parts();
        let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let bytes = match request.lines {
            None => body.collect().await.unwrap().to_bytes().to_vec(),
            Some(lines) => some_lines(body, lines).await,
        };
        let is_yaml = parts
            .headers
            .get("content-type")
            .is_some_and(|kind| kind == "application/yaml");
        Answer {
            code: parts.status.as_u16(),
            content_type: parts.headers.get("content-type").map(text).unwrap_or_default(),
            warnings: parts.headers.get_all("warning").iter().map(text).collect(),
            body: read(&String::from_utf8_lossy(&bytes), is_yaml),
        }
    }

    async fn kubectl(&self, arguments: &str, input: &str) -> Answer {
        let mut command = kubectl::command(self.home.path());
        command.args(words(arguments)).env("KUBECONFIG", &self.kubeconfig);
        let output = kubectl::run_async(command, input).await;
        let (stdout, stderr) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        Answer {
            code: output.status.code().and_then(|code| code.try_into().ok()).unwrap(),
            content_type: String::new(),
            warnings: Vec::new(),
            body: json!({"stdout": read(&stdout, false), "stderr": complaints(&stderr)}),
        }
    }
}

async fn some_lines(body: Body, count: usize) -> Vec<u8> {
    let mut stream = body.into_data_stream();
    let mut bytes = Vec::new();
    while bytes.iter().filter(|&&byte| byte == b'\n').count() < count {
        let Some(piece) = stream.next().await else { break };
        bytes.extend_from_slice(&piece.unwrap());
    }
    // A piece may hold more of them.
    bytes
        .split_inclusive(|&byte| byte == b'\n')
        .take(count)
        .flatten()
        .copied()
        .collect()
}

fn read(text: &str, is_yaml: bool) -> Value {
    if is_yaml && let Ok(value) = serde_saphyr::from_str(text) {
        return value;
    }
    serde_json::from_str(text).unwrap_or_else(|_| {
        let lines = text.lines();
        let read = |line: &str| serde_json::from_str(line).unwrap_or_else(|_| Value::from(line));
        lines.map(read).collect()
    })
}

/// Several complaints come in no order.
fn complaints(text: &str) -> Value {
    let mut lines: Vec<&str> = text.lines().collect();
    if lines.iter().any(|line| line.starts_with("* ")) {
        lines.sort_unstable();
    }
    lines.into_iter().collect()
}
