//! The states of a run, as its clients meet them: the same over both transports.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use kindex_runs::domain::{Clock, timestamp};
use kindex_runs::wire::v1::{GetRunRequest, RunStatus};
use tonic::Code;

use crate::both::{Client, Transport};
use crate::server::{Server, run_id};

const SECOND: i64 = 1_000_000_000;
const START: i64 = 1_790_000_000 * SECOND;

/// A server whose time passes when a test says so.
pub(crate) struct PausedServer {
    pub(crate) server: Server,
    now: Arc<AtomicI64>,
}

impl PausedServer {
    pub(crate) async fn start() -> Self {
        let now = Arc::new(AtomicI64::new(START));
        let read = now.clone();
        let clock: Clock = Arc::new(move || timestamp(read.load(Ordering::SeqCst)));
        let server = Server::with(|options| {
            options.clock = clock;
            options.store.in_background = false;
        })
        .await;
        Self { server, now }
    }

    pub(crate) fn advance_seconds(&self, seconds: i64) {
        self.now.fetch_add(seconds * SECOND, Ordering::SeqCst);
    }

    /// All runs that are running crash.
    pub(crate) async fn listen_six_minutes(&self) {
        for _ in 0..36 {
            self.now.fetch_add(10 * SECOND, Ordering::SeqCst);
            self.server.store.tick().await.expect("it looks at the clock");
        }
    }
}

/// A state that a run can be brought to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Unknown,
    Running,
    Crashed,
    Ended(RunStatus),
}

const STATES: [State; 6] = [
    State::Unknown,
    State::Running,
    State::Crashed,
    State::Ended(RunStatus::Finished),
    State::Ended(RunStatus::Failed),
    State::Ended(RunStatus::Killed),
];

/// A run in a state, which before had a batch `known`, a parameter `lr` and, where it matters, an upload that was sent.
struct Stage<'s> {
    client: Client<'s>,
    run: String,
    token: String,
    upload: String,
}

impl<'s> Stage<'s> {
    /// Running runs have yet to crash.
    async fn set(server: &'s Server, transport: Transport, state: State, call: &str) -> Self {
        let client = Client { server, transport };
        let run = format!("{transport:?}-{state:?}-{call}").replace(['(', ')', ' '], "-");
        let needs_upload = call == "FinalizeArtifactUpload";
        let mut stage = Self {
            client,
            run: run.clone(),
            token: String::new(),
            upload: "01900000-0000-7000-8000-000000000000".to_owned(),
        };
        if state == State::Unknown {
            let other = client.open(&format!("not-{run}"), "", &[]).await.expect("a run");
            stage.token = other.token;
            return stage;
        }
        stage.token = client.open(&run, "", &[]).await.expect("a run").token;
        let known = [("loss", 1, 1.0, None)];
        client.log(&run, "known", None, &known).await.expect("stored");
        client.params(&run, &[("lr", "1")]).await.expect("stored");
        if needs_upload {
            let upload = client.upload(&run, "model").await.expect("an upload");
            assert_eq!(client.send(&upload).await, 200);
            stage.upload = upload.id;
        }
        if let State::Ended(status) = state {
            client.finish(&run, status).await.expect("it ends");
        }
        stage
    }

    /// `ok` with what shows the effect, or the reason of the refusal.
    async fn call(&self, call: &str) -> Result<String, (Code, String)> {
        let Self { client, run, .. } = self;
        let said = match call {
            "InitRun" => client.open(run, "", &[]).await.map(|opened| opened.resumed.to_string()),
            "InitRun with token" => {
                let opened = client.open(run, &self.token, &[]).await;
                opened.map(|opened| opened.resumed.to_string())
            }
            "LogMetrics known" => {
                let logged = client.log(run, "known", None, &[("loss", 1, 1.0, None)]).await;
                logged.map(|logged| format!("{:?} {}", logged.counts, logged.warnings[0].0))
            }
            "LogMetrics new" => {
                let logged = client.log(run, "new", None, &[("loss", 2, 1.0, None)]).await;
                logged.map(|logged| format!("{:?}", logged.counts))
            }
            "LogParams" => {
                let logged = client.params(run, &[("momentum", "1")]).await;
                logged.map(|logged| format!("{:?}", logged.counts))
            }
            "LogParams repeated" => {
                let logged = client.params(run, &[("lr", "1")]).await;
                logged.map(|logged| format!("{:?}", logged.counts))
            }
            "LogTags" => {
                let logged = client.tags(run, &[("best", "yes")], &[]).await;
                logged.map(|logged| format!("{:?}", logged.counts))
            }
            "CreateArtifactUpload" => client.upload(run, "other").await.map(|_| String::new()),
            "FinalizeArtifactUpload" => client.finalize(&self.upload).await.map(|()| String::new()),
            "Heartbeat" => client.heartbeat(run).await.map(|resync| resync.to_string()),
            "FinishRun finished" => client
                .finish(run, RunStatus::Finished)
                .await
                .map(|points| points.to_string()),
            "FinishRun killed" => client
                .finish(run, RunStatus::Killed)
                .await
                .map(|points| points.to_string()),
            other => panic!("{other}"),
        };
        said.map_err(|refused| (refused.code, refused.reason))
    }
}

/// Each call with its answers for an unknown, a running and a crashed run, and for one that has finished, failed or
/// was killed.
const TABLE: [(&str, [&str; 6]); 12] = [
    (
        "InitRun",
        [
            "false",
            "true",
            "RESUME_TOKEN_REQUIRED",
            "RUN_TERMINAL",
            "RUN_TERMINAL",
            "RUN_TERMINAL",
        ],
    ),
    (
        "InitRun with token",
        [
            "RUN_NOT_FOUND",
            "true",
            "true",
            "RUN_TERMINAL",
            "RUN_TERMINAL",
            "RUN_TERMINAL",
        ],
    ),
    (
        "LogMetrics known",
        ["RUN_NOT_FOUND", DUPLICATE, DUPLICATE, DUPLICATE, DUPLICATE, DUPLICATE],
    ),
    (
        "LogMetrics new",
        [
            "RUN_NOT_FOUND",
            "(1, 0)",
            "RUN_CRASHED",
            "RUN_TERMINAL",
            "RUN_TERMINAL",
            "RUN_TERMINAL",
        ],
    ),
    (
        "LogParams",
        [
            "RUN_NOT_FOUND",
            "(1, 0)",
            "RUN_CRASHED",
            "RUN_TERMINAL",
            "RUN_TERMINAL",
            "RUN_TERMINAL",
        ],
    ),
    (
        "LogParams repeated",
        ["RUN_NOT_FOUND", "(0, 1)", "(0, 1)", "(0, 1)", "(0, 1)", "(0, 1)"],
    ),
    (
        "LogTags",
        ["RUN_NOT_FOUND", "(1, 0)", "(1, 0)", "(1, 0)", "(1, 0)", "(1, 0)"],
    ),
    (
        "CreateArtifactUpload",
        [
            "RUN_NOT_FOUND",
            "",
            "RUN_CRASHED",
            "RUN_TERMINAL",
            "RUN_TERMINAL",
            "RUN_TERMINAL",
        ],
    ),
    ("FinalizeArtifactUpload", ["UPLOAD_NOT_FOUND", "", "", "", "", ""]),
    (
        "Heartbeat",
        [
            "RUN_NOT_FOUND",
            "false",
            "true",
            "RUN_TERMINAL",
            "RUN_TERMINAL",
            "RUN_TERMINAL",
        ],
    ),
    (
        "FinishRun finished",
        ["RUN_NOT_FOUND", "1", "RUN_CRASHED", "1", "RUN_TERMINAL", "RUN_TERMINAL"],
    ),
    (
        "FinishRun killed",
        ["RUN_NOT_FOUND", "1", "1", "RUN_TERMINAL", "RUN_TERMINAL", "1"],
    ),
];

const DUPLICATE: &str = "(0, 1) DUPLICATE_BATCH";

/// Compares what a call answers with the table.
async fn check(stage: &Stage<'_>, call: &str, expected: &str) {
    let code = match expected {
        "RUN_NOT_FOUND" | "UPLOAD_NOT_FOUND" => Some(Code::NotFound),
        "RUN_CRASHED" | "RUN_TERMINAL" | "RESUME_TOKEN_REQUIRED" => Some(Code::FailedPrecondition),
        _ => None,
    };
    let expected = match code {
        Some(code) => Err((code, expected.to_owned())),
        None => Ok(expected.to_owned()),
    };
    assert_eq!(stage.call(call).await, expected, "{call} of {}", stage.run);
}

#[tokio::test]
async fn the_state_table_holds_over_both_transports() {
    let paused = PausedServer::start().await;
    for transport in Transport::BOTH {
        let mut crashed = Vec::new();
        for (call, answers) in TABLE {
            let stage = Stage::set(&paused.server, transport, State::Crashed, call).await;
            crashed.push((stage, call, answers[2]));
        }
        paused.listen_six_minutes().await;
        for (stage, call, expected) in crashed {
            check(&stage, call, expected).await;
        }
        for (call, answers) in TABLE {
            let cells = STATES.into_iter().zip(answers);
            for (state, expected) in cells.filter(|(state, _)| *state != State::Crashed) {
                let stage = Stage::set(&paused.server, transport, state, call).await;
                check(&stage, call, expected).await;
            }
        }
    }
}

#[tokio::test]
async fn a_token_of_a_crashed_run_resumes_it_until_a_newer_one_did() {
    let paused = PausedServer::start().await;
    for transport in Transport::BOTH {
        let client = Client {
            server: &paused.server,
            transport,
        };
        let run = format!("{transport:?}");
        let opened = client.open(&run, "", &[]).await.expect("a run");
        assert_eq!(opened.run, run);
        let old = opened.token;
        let newest = client.open(&run, "", &[]).await.expect("the same run").token;
        let other = client.open(&format!("{run}-2"), "", &[]).await.expect("a run").token;
        paused.listen_six_minutes().await;
        let forged = format!("{}x", &newest[..newest.len() - 1]);
        let reason = async |token: &str| {
            let refused = client.open(&run, token, &[]).await.expect_err("refused");
            (refused.code, refused.reason)
        };
        let denied = |reason: &str| (Code::PermissionDenied, reason.to_owned());
        assert_eq!(
            reason("").await,
            (Code::FailedPrecondition, "RESUME_TOKEN_REQUIRED".to_owned())
        );
        assert_eq!(reason("no token").await, denied("RESUME_TOKEN_INVALID"));
        assert_eq!(reason(&forged).await, denied("RESUME_TOKEN_INVALID"));
        assert_eq!(reason(&other).await, denied("RESUME_TOKEN_INVALID"));
        let resumed = client.open(&run, &newest, &[]).await.expect("resumed");
        assert!(resumed.resumed);
        paused.listen_six_minutes().await;
        assert_eq!(reason(&old).await, denied("RESUME_TOKEN_USED"));
        let again = client
            .open(&run, &newest, &[])
            .await
            .expect("the answer may have been lost");
        assert!(again.resumed);
        paused.listen_six_minutes().await;
        assert!(client.open(&run, &again.token, &[]).await.expect("resumed").resumed);
        paused.listen_six_minutes().await;
        for used in [&newest, &resumed.token] {
            assert_eq!(reason(used).await, denied("RESUME_TOKEN_USED"));
        }
    }
}

#[tokio::test]
async fn a_resumed_run_keeps_its_metrics_parameters_tags_and_artifacts() {
    let paused = PausedServer::start().await;
    for transport in Transport::BOTH {
        let client = Client {
            server: &paused.server,
            transport,
        };
        let run = format!("{transport:?}");
        let token = client.open(&run, "", &[("team", "vision")]).await.expect("a run").token;
        let points = [("loss", 1, 0.5, None)];
        client.log(&run, "b", Some(1), &points).await.expect("stored");
        client.params(&run, &[("lr", "0.1")]).await.expect("stored");
        let upload = client.upload(&run, "model").await.expect("an upload");
        assert_eq!(client.send(&upload).await, 200);
        client.finalize(&upload.id).await.expect("finalized");
        paused.listen_six_minutes().await;
        assert!(client.open(&run, &token, &[]).await.expect("resumed").resumed);

        let again = client.log(&run, "b", Some(1), &points).await.expect("known");
        assert_eq!(again.counts, (0, 1), "what was sent is known");
        let request = GetRunRequest {
            run_id: run_id(&run),
            include_fields: vec![],
        };
        let found = paused
            .server
            .query()
            .get_run(request)
            .await
            .expect("a run")
            .into_inner();
        let found = found.run.expect("a run");
        assert_eq!(found.status(), RunStatus::Running);
        assert_eq!((found.metric_count, found.artifact_count), (1, 1));
        assert_eq!(found.params[0].value, "0.1");
        assert_eq!(found.tags[0].value, "vision");
    }
}
