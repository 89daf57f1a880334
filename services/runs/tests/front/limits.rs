//! The table of limits, at each boundary and over both transports.

use kindex_runs::limits::{self, Enforcement, Limit};
use kindex_runs::wire::v1::{
    CompareRunsRequest, ErrorDetail, FinishRunRequest, GetMetricsRequest, InitRunRequest, LogParamsRequest,
    LogTagsRequest, Parameter, RunId, RunStatus, SearchRunsRequest, Tag,
};
use serde_json::{Value, json};
use tonic::{Code, Response, Status};

use crate::description::Answer;
use crate::server::{Server, batch, project, run_id};

/// What became of a request.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Taken,
    Warned(String),
    Refused,
}

fn of_grpc<T>(answer: Result<Response<T>, Status>, warnings: impl Fn(&T) -> &[ErrorDetail]) -> Outcome {
    match answer {
        Ok(answer) => match warnings(answer.get_ref()).first() {
            Some(warning) => Outcome::Warned(warning.code.clone()),
            None => Outcome::Taken,
        },
        Err(status) => {
            assert_eq!(status.code(), Code::InvalidArgument, "{status}");
            Outcome::Refused
        }
    }
}

fn of_rest(answer: &Answer) -> Outcome {
    let body = answer.json();
    if answer.status == 400 {
        return Outcome::Refused;
    }
    assert_eq!(answer.status, 200, "{body}");
    match body["warnings"].get(0) {
        Some(warning) => Outcome::Warned(warning["code"].as_str().expect("a code").to_owned()),
        None => Outcome::Taken,
    }
}

/// A server, with a run for each request that is made.
struct Prober {
    server: Server,
    runs: usize,
}

/// A request with so much of something, over gRPC and over REST.
type Both = (Outcome, Outcome);

impl Prober {
    async fn fresh(&mut self) -> String {
        self.runs += 1;
        let id = format!("run-{}", self.runs);
        self.server.run(&id).await
    }

    async fn open(&self, request: InitRunRequest, body: Value) -> Both {
        let grpc = of_grpc(self.server.ingest().init_run(request).await, |answer| &answer.warnings);
        (grpc, of_rest(&self.server.post("/api/v1/runs", body.to_string()).await))
    }

    async fn log(&mut self, name: &str, batch_id: &str, points: usize) -> Both {
        let (one, two) = (self.fresh().await, self.fresh().await);
        let many: Vec<_> = (0..points as i64).map(|step| (name, step, 0.5)).collect();
        let grpc = self.server.ingest().log_metrics(batch(&one, batch_id, &many)).await;
        let metrics: Vec<_> = (0..points)
            .map(|step| json!({"name": name, "step": step, "value": 0.5}))
            .collect();
        let body = json!({"run_id": two, "batch_id": batch_id, "metrics": metrics});
        let rest = self.server.post("/api/v1/ingest/batch", body.to_string()).await;
        (of_grpc(grpc, |answer| &answer.warnings), of_rest(&rest))
    }

    async fn params(&mut self, params: Vec<(String, String)>) -> Both {
        let (one, two) = (self.fresh().await, self.fresh().await);
        let body: Vec<_> = params
            .iter()
            .map(|(name, value)| json!({"name": name, "value": value}))
            .collect();
        let params = params
            .into_iter()
            .map(|(name, value)| Parameter { name, value })
            .collect();
        let grpc = self
            .server
            .ingest()
            .log_params(LogParamsRequest {
                run_id: run_id(&one),
                params,
            })
            .await;
        let path = format!("/api/v1/runs/{two}/params");
        let rest = self.server.post(&path, json!({"params": body}).to_string()).await;
        (of_grpc(grpc, |answer| &answer.warnings), of_rest(&rest))
    }

    async fn tags(&mut self, tags: Vec<(String, String)>) -> Both {
        let (one, two) = (self.fresh().await, self.fresh().await);
        let body: Vec<_> = tags
            .iter()
            .map(|(key, value)| json!({"key": key, "value": value}))
            .collect();
        let tags = tags.into_iter().map(|(key, value)| Tag { key, value }).collect();
        let request = LogTagsRequest {
            run_id: run_id(&one),
            tags,
            remove_keys: Vec::new(),
        };
        let grpc = self.server.ingest().log_tags(request).await;
        let path = format!("/api/v1/runs/{two}/tags");
        let rest = self.server.post(&path, json!({"tags": body}).to_string()).await;
        (of_grpc(grpc, |answer| &answer.warnings), of_rest(&rest))
    }

    async fn finish(&mut self, message: &str, entries: usize) -> Both {
        let (one, two) = (self.fresh().await, self.fresh().await);
        let names = || (0..entries).map(|place| format!("e{place}"));
        let request = FinishRunRequest {
            run_id: run_id(&one),
            status: RunStatus::Failed.into(),
            exit_code: None,
            error_message: Some(message.to_owned()),
            summary: names()
                .map(|name| Parameter {
                    name,
                    value: String::new(),
                })
                .collect(),
        };
        let grpc = self.server.ingest().finish_run(request).await;
        let summary: serde_json::Map<_, _> = names().map(|name| (name, Value::from(""))).collect();
        let body = json!({"status": "failed", "error_message": message, "summary": summary});
        let rest = self
            .server
            .post(&format!("/api/v1/runs/{two}/finish"), body.to_string())
            .await;
        (of_grpc(grpc, |answer| &answer.warnings), of_rest(&rest))
    }

    async fn read(&mut self, runs: usize, names: usize) -> Outcome {
        let mut run_ids = Vec::new();
        for _ in 0..runs {
            run_ids.push(RunId {
                value: self.fresh().await,
            });
        }
        let metric_names = (0..names).map(|place| format!("m{place}")).collect();
        let request = GetMetricsRequest {
            run_ids,
            metric_names,
            ..GetMetricsRequest::default()
        };
        of_grpc(self.server.query().get_metrics(request).await, |_| &[])
    }

    async fn compare(&mut self, runs: usize, names: usize) -> Both {
        let mut ids = Vec::new();
        for _ in 0..runs {
            ids.push(self.fresh().await);
        }
        let metric_names: Vec<String> = (0..names).map(|place| format!("m{place}")).collect();
        let body = json!({"run_ids": ids, "metric_names": metric_names});
        let run_ids = ids.into_iter().map(|value| RunId { value }).collect();
        let request = CompareRunsRequest {
            run_ids,
            metric_names,
            ..CompareRunsRequest::default()
        };
        let grpc = of_grpc(self.server.query().compare_runs(request).await, |_| &[]);
        (
            grpc,
            of_rest(&self.server.post("/api/v1/runs/compare", body.to_string()).await),
        )
    }

    async fn search(&self, query: String) -> Both {
        let path = format!("/api/v1/runs/search?project=demo&query={query}");
        let request = SearchRunsRequest {
            project_id: project("demo"),
            query,
            ..SearchRunsRequest::default()
        };
        let grpc = of_grpc(self.server.query().search_runs(request).await, |_| &[]);
        (grpc, of_rest(&self.server.get(&path).await))
    }

    /// A request with so much of what a limit is about; none where it is about no single request of both transports.
    async fn probe(&mut self, limit: Limit, size: usize) -> Option<Both> {
        let text = "n".repeat(size);
        let pairs = || (0..size).map(|place| (format!("n{place}"), String::new())).collect();
        let of = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
        let open = |change: fn(&mut InitRunRequest, String)| {
            let mut request = InitRunRequest {
                project_id: project("demo"),
                ..InitRunRequest::default()
            };
            change(&mut request, text.clone());
            request
        };
        let both = match limit {
            limits::PROJECT_NAME => {
                let request = open(|request, text| request.project_id = project(&text));
                self.open(request, json!({"project": text})).await
            }
            limits::RUN_ID => {
                let request = open(|request, text| request.parent_run_id = Some(text));
                self.open(request, json!({"project": "demo", "parent_run_id": text}))
                    .await
            }
            limits::RUN_NAME => {
                let request = open(|request, text| request.name = Some(text));
                self.open(request, json!({"project": "demo", "name": text})).await
            }
            limits::RUN_DESCRIPTION => {
                let request = open(|request, text| request.description = Some(text));
                self.open(request, json!({"project": "demo", "description": text}))
                    .await
            }
            limits::BATCH_ID => self.log("loss", &text, 1).await,
            limits::BATCH_POINTS => self.log("loss", "b", size).await,
            limits::METRIC_NAME => self.log(&text, "b", 1).await,
            limits::PARAM_NAME => self.params(of(&text, "")).await,
            limits::PARAM_VALUE => self.params(of("lr", &text)).await,
            limits::PARAMS_IN_REQUEST => self.params(pairs()).await,
            limits::TAG_KEY => self.tags(of(&text, "")).await,
            limits::TAG_VALUE => self.tags(of("team", &text)).await,
            limits::TAGS_IN_REQUEST => self.tags(pairs()).await,
            limits::SUMMARY => self.finish("", size).await,
            limits::ERROR_MESSAGE => self.finish(&text, 0).await,
            limits::METRICS_RUNS => {
                let read = self.read(size, 1).await;
                (self.read(size, 1).await, read)
            }
            limits::METRICS_NAMES => {
                let read = self.read(1, size).await;
                (self.read(1, size).await, read)
            }
            limits::COMPARED_RUNS => self.compare(size, 1).await,
            limits::COMPARED_NAMES => self.compare(2, size).await,
            limits::SEARCH_QUERY => self.search(text).await,
            _ => return None,
        };
        Some(both)
    }
}

#[tokio::test]
async fn limits_hold_at_n_minus_1_n_and_n_plus_1() {
    let mut prober = Prober {
        server: Server::start().await,
        runs: 0,
    };
    let mut probed = 0;
    for limit in limits::ALL {
        for size in [limit.max.saturating_sub(1), limit.max, limit.max.saturating_add(1)] {
            // What is too large for a request has tests of its own.
            if size > 100_000 {
                continue;
            }
            let Some((grpc, rest)) = prober.probe(*limit, size).await else {
                continue;
            };
            let expected = match limit.enforcement {
                _ if size <= limit.max => Outcome::Taken,
                Enforcement::Refused => Outcome::Refused,
                Enforcement::Dropped(code) | Enforcement::Cut(code) => Outcome::Warned(code.to_owned()),
                Enforcement::Clamped => Outcome::Taken,
            };
            assert_eq!(grpc, expected, "{} over gRPC: {size}", limit.of);
            assert_eq!(rest, expected, "{} over REST: {size}", limit.of);
            probed += 1;
        }
    }
    assert_eq!(probed, 3 * 20);
}
