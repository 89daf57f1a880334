//! Sends what was logged: one request at a time, each until it is answered.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::Uri;
use prost_types::Timestamp;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::{Code, Response, Status as GrpcStatus};
use tonic_types::StatusExt as _;
use uuid::Uuid;

use crate::buffer::Point;
use crate::error::Refusal;
use crate::link::Link;
use crate::settings::{Settings, Status};
use crate::shared::{Report, Shared, Task};
use crate::wire::ingest_service_client::IngestServiceClient;
use crate::wire::{
    FinishRunRequest, HeartbeatRequest, InitRunRequest, LogMetricsRequest, LogParamsRequest, MetricBatch, MetricPoint,
    Parameter, ProjectId, RunId, RunStatus, Tag,
};

/// How long points wait for others that share their request.
const LINGER: Duration = Duration::from_millis(100);
/// Between two signs of life, where nothing else is sent.
const HEARTBEAT: Duration = Duration::from_secs(30);
/// For a request that is not answered.
const ANSWER: Duration = Duration::from_secs(30);
/// The shortest pause between two attempts, which doubles with each, and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// Parameters in one request.
const PARAMS_MAX: usize = 1000;
/// After which a token is replaced. It is valid for seven days, so that at least six are left when an outage begins.
const TOKEN_AGE_MAX: Duration = Duration::from_secs(24 * 3600);

type Client = IngestServiceClient<Link>;

/// Why nothing more is sent.
#[derive(Debug)]
enum Stop {
    /// The run was dropped.
    Abandoned,
    /// The service will not have it.
    Refused(Refusal),
}

/// What one attempt came to.
enum Attempt<T> {
    Answered(T),
    /// It may succeed later.
    Failed {
        wait: Option<Duration>,
        why: String,
    },
    Refused(Refusal),
}

/// How the service is reached.
pub(crate) struct Endpoint {
    pub(crate) url: Uri,
    /// Whom to trust, where the address is `https`.
    pub(crate) trusted: Option<TlsConnector>,
    pub(crate) key: Option<MetadataValue<Ascii>>,
}

/// By which a crashed run is resumed.
struct Token {
    text: String,
    issued_at: SystemTime,
}

impl Token {
    /// Whether it is to be replaced now. If the clock was set back, the age is not known.
    fn is_old(&self, now: SystemTime) -> bool {
        match now.duration_since(self.issued_at) {
            Ok(age) => age >= TOKEN_AGE_MAX,
            Err(_) => true,
        }
    }
}

/// Sends all that is logged to a run, until it has ended, is dropped or refused.
pub(crate) async fn deliver(shared: Arc<Shared>, settings: Settings, endpoint: Endpoint, run: String) {
    let mut sender = Sender {
        shared: Arc::clone(&shared),
        settings,
        endpoint,
        run,
        token: None,
        link: None,
    };
    match sender.run().await {
        Ok(()) => shared.close(Ok(())),
        Err(Stop::Refused(refusal)) => shared.close(Err(refusal)),
        Err(Stop::Abandoned) => {}
    }
}

struct Sender {
    shared: Arc<Shared>,
    settings: Settings,
    endpoint: Endpoint,
    run: String,
    token: Option<Token>,
    link: Option<Link>,
}

impl Sender {
    async fn run(&mut self) -> Result<(), Stop> {
        self.open().await?;
        self.params().await?;
        loop {
            match self.next().await {
                Task::Send(points) => self.send(points).await?,
                Task::End(status) => return self.finish(status).await,
                Task::Stop => return Err(Stop::Abandoned),
                Task::Nothing | Task::Wait => self.beat().await?,
            }
            self.renew_token().await?;
        }
    }

    /// Waits for something to do: nothing for as long as a heartbeat takes.
    async fn next(&self) -> Task {
        let beat_at = Instant::now() + HEARTBEAT;
        let mut due_at = None;
        loop {
            let is_due = due_at.is_some_and(|due| due <= Instant::now());
            let until = match self.shared.task(is_due) {
                Task::Nothing if beat_at <= Instant::now() => return Task::Nothing,
                Task::Nothing => beat_at,
                Task::Wait => *due_at.get_or_insert_with(|| Instant::now() + LINGER),
                task @ (Task::Send(_) | Task::End(_) | Task::Stop) => return task,
            };
            let _late = timeout_at(until, self.shared.woken()).await;
        }
    }

    fn run_id(&self) -> Option<RunId> {
        Some(RunId {
            value: self.run.clone(),
        })
    }

    /// Opens the run, or resumes it.
    async fn open(&mut self) -> Result<(), Stop> {
        let Settings {
            project, name, tags, ..
        } = self.settings.clone();
        let tags = tags.into_iter().map(|(key, value)| Tag { key, value });
        let request = InitRunRequest {
            project_id: Some(ProjectId { value: project }),
            run_id: Some(self.run.clone()),
            name,
            tags: tags.collect(),
            resume_token: self.token.as_ref().map(|token| token.text.clone()),
            ..InitRunRequest::default()
        };
        let opened = self
            .ask(&request, async |mut client, request| client.init_run(request).await)
            .await?;
        self.token = Some(Token {
            text: opened.resume_token,
            issued_at: SystemTime::now(),
        });
        Ok(())
    }

    /// Opens the running run again when its token is old: each answer has a new one.
    async fn renew_token(&mut self) -> Result<(), Stop> {
        let now = SystemTime::now();
        match self.token.as_ref().is_some_and(|token| token.is_old(now)) {
            true => self.open().await,
            false => Ok(()),
        }
    }

    /// The first value of a parameter stays: sending it again changes nothing.
    async fn params(&mut self) -> Result<(), Stop> {
        let params: Vec<Parameter> = self
            .settings
            .params
            .iter()
            .map(|(name, value)| Parameter {
                name: name.clone(),
                value: value.clone(),
            })
            .collect();
        for params in params.chunks(PARAMS_MAX) {
            let request = LogParamsRequest {
                run_id: self.run_id(),
                params: params.to_vec(),
            };
            self.ask_running(&request, async |mut client, request| client.log_params(request).await)
                .await?;
        }
        Ok(())
    }

    /// The id is made before the first attempt, and stays.
    async fn send(&mut self, points: Vec<Point>) -> Result<(), Stop> {
        let sent = points.len();
        let points = points.into_iter().map(|point| MetricPoint {
            name: point.name.to_string(),
            step: point.step,
            value: point.value,
            timestamp: Some(timestamp(point.time)),
        });
        let request = LogMetricsRequest {
            run_id: self.run_id(),
            metrics: Some(MetricBatch {
                points: points.collect(),
            }),
            batch_id: Uuid::new_v4().to_string(),
            sequence: None,
        };
        let answer = self
            .ask_running(&request, async |mut client, request| client.log_metrics(request).await)
            .await?;
        let accepted = u64::try_from(answer.accepted_count).unwrap_or_default();
        let deduplicated = u64::try_from(answer.deduplicated_count).unwrap_or_default();
        let report = Report {
            accepted,
            deduplicated,
            dropped: (sent as u64).saturating_sub(accepted + deduplicated),
        };
        self.shared.answered(sent, report);
        Ok(())
    }

    async fn beat(&mut self) -> Result<(), Stop> {
        let request = HeartbeatRequest {
            run_id: self.run_id(),
            client_time: None,
        };
        let answer = self
            .ask_running(&request, async |mut client, request| client.heartbeat(request).await)
            .await?;
        match answer.request_resync {
            true => self.open().await,
            false => Ok(()),
        }
    }

    async fn finish(&mut self, status: Status) -> Result<(), Stop> {
        let request = FinishRunRequest {
            run_id: self.run_id(),
            status: RunStatus::from(status).into(),
            ..FinishRunRequest::default()
        };
        self.ask_running(&request, async |mut client, request| client.finish_run(request).await)
            .await?;
        Ok(())
    }

    /// Asks, and resumes the run where it has crashed meanwhile.
    async fn ask_running<Q: Clone, A>(
        &mut self,
        request: &Q,
        call: impl AsyncFn(Client, tonic::Request<Q>) -> Result<Response<A>, GrpcStatus>,
    ) -> Result<A, Stop> {
        loop {
            match self.ask(request, &call).await {
                Err(Stop::Refused(refusal)) if refusal.reason == "RUN_CRASHED" => self.open().await?,
                answered => return answered,
            }
        }
    }

    /// Asks until there is an answer.
    async fn ask<Q: Clone, A>(
        &mut self,
        request: &Q,
        call: impl AsyncFn(Client, tonic::Request<Q>) -> Result<Response<A>, GrpcStatus>,
    ) -> Result<A, Stop> {
        let mut pause = PAUSE.0;
        loop {
            if self.shared.is_abandoned() {
                return Err(Stop::Abandoned);
            }
            let wait = match self.attempt(request.clone(), &call).await {
                Attempt::Answered(answer) => return Ok(answer),
                Attempt::Refused(refusal) => return Err(Stop::Refused(refusal)),
                Attempt::Failed { wait, why } => {
                    self.shared.failed(why);
                    wait.map_or(pause, |wait| wait.max(pause))
                }
            };
            pause = (pause * 2).min(PAUSE.1);
            self.pause(wait).await;
        }
    }

    /// What is logged meanwhile wakes nobody for long, and a run that was dropped ends at once.
    async fn pause(&self, wait: Duration) {
        let until = Instant::now() + wait;
        while !self.shared.is_abandoned() && timeout_at(until, self.shared.woken()).await.is_ok() {}
    }

    async fn attempt<Q, A>(
        &mut self,
        request: Q,
        call: impl AsyncFn(Client, tonic::Request<Q>) -> Result<Response<A>, GrpcStatus>,
    ) -> Attempt<A> {
        let endpoint = &self.endpoint;
        let link = match self.link.take() {
            Some(link) => link,
            None => match timeout(ANSWER, Link::connect(&endpoint.url, endpoint.trusted.as_ref())).await {
                Ok(Ok(link)) => link,
                Ok(Err(error)) => return failed(format!("{} {error}", endpoint.url)),
                Err(_) => return failed(format!("{} does not answer", endpoint.url)),
            },
        };
        let mut request = tonic::Request::new(request);
        if let Some(key) = &endpoint.key {
            request.metadata_mut().insert("authorization", key.clone());
        }
        let client = IngestServiceClient::with_origin(link.clone(), endpoint.url.clone());
        match timeout(ANSWER, call(client, request)).await {
            Ok(Ok(response)) => {
                self.link = Some(link);
                Attempt::Answered(response.into_inner())
            }
            Ok(Err(status)) => {
                let sorted = sort(&status);
                // A refusal came over a connection that works; for another attempt, another one is as good.
                if let Attempt::Refused(_) = sorted {
                    self.link = Some(link);
                }
                sorted
            }
            Err(_) => failed(format!("{} does not answer", endpoint.url)),
        }
    }
}

fn failed<A>(why: String) -> Attempt<A> {
    Attempt::Failed { wait: None, why }
}

/// Whether the same request may succeed later.
fn sort<A>(status: &GrpcStatus) -> Attempt<A> {
    match status.code() {
        Code::Ok
        | Code::Aborted
        | Code::Cancelled
        | Code::DeadlineExceeded
        | Code::Internal
        | Code::ResourceExhausted
        | Code::Unavailable
        | Code::Unknown => Attempt::Failed {
            wait: status.get_details_retry_info().and_then(|info| info.retry_delay),
            why: format!("{:?}: {}", status.code(), status.message()),
        },
        Code::AlreadyExists
        | Code::DataLoss
        | Code::FailedPrecondition
        | Code::InvalidArgument
        | Code::NotFound
        | Code::OutOfRange
        | Code::PermissionDenied
        | Code::Unauthenticated
        | Code::Unimplemented => Attempt::Refused(Refusal {
            reason: match status.get_details_error_info() {
                Some(info) => info.reason,
                None => format!("{:?}", status.code()),
            },
            message: status.message().to_owned(),
        }),
    }
}

fn timestamp(nanos: i64) -> Timestamp {
    const SECOND: i64 = 1_000_000_000;
    Timestamp {
        seconds: nanos.div_euclid(SECOND),
        nanos: i32::try_from(nanos.rem_euclid(SECOND)).expect("less than a second"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_succeed_later_is_tried_again_and_nothing_else() {
        for (code, is_retried) in [
            (Code::Unavailable, true),
            (Code::Unknown, true),
            (Code::ResourceExhausted, true),
            (Code::InvalidArgument, false),
            (Code::Unauthenticated, false),
            (Code::FailedPrecondition, false),
            (Code::AlreadyExists, false),
        ] {
            let sorted: Attempt<()> = sort(&GrpcStatus::new(code, "why"));
            assert_eq!(matches!(sorted, Attempt::Failed { .. }), is_retried, "{code:?}");
        }
    }

    /// As if only a crash brought a new token: after a week, no crashed run could be resumed.
    #[test]
    fn a_token_is_replaced_when_it_is_a_day_old() {
        let token = Token {
            text: String::new(),
            issued_at: SystemTime::UNIX_EPOCH + TOKEN_AGE_MAX,
        };
        let second = Duration::from_secs(1);
        for (age, is_old) in [
            (Duration::ZERO, false),
            (TOKEN_AGE_MAX - second, false),
            (TOKEN_AGE_MAX, true),
            (TOKEN_AGE_MAX + second, true),
        ] {
            assert_eq!(token.is_old(token.issued_at + age), is_old, "{age:?}");
        }
        assert!(token.is_old(token.issued_at - second), "the clock was set back");
    }

    #[test]
    fn a_time_before_the_epoch_is_one_as_well() {
        let (seconds, nanos) = (-1, 999_999_999);
        assert_eq!(timestamp(-1), Timestamp { seconds, nanos });
    }
}
