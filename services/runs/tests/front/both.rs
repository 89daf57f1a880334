//! The calls of a training job over either transport, with answers and refusals in one shape.

use http::StatusCode;
use kindex_runs::domain::{timestamp, to_wire};
use kindex_runs::wire::MetricColumns;
use kindex_runs::wire::v1::{
    ArtifactMetadata, ArtifactType, CreateArtifactUploadRequest, ErrorDetail, FinalizeArtifactUploadRequest,
    FinishRunRequest, HeartbeatRequest, InitRunRequest, LogMetricsRequest, LogParamsRequest, LogTagsRequest, Parameter,
    RunStatus, Tag,
};
use serde_json::{Value, json};
use tonic::{Code, Status};
use tonic_types::StatusExt;

use crate::description::Answer;
use crate::server::{Server, project, run_id};

/// A transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Grpc,
    Rest,
}

impl Transport {
    pub(crate) const BOTH: [Self; 2] = [Self::Grpc, Self::Rest];
}

/// A name, a step, a value, and a time in nanoseconds.
pub(crate) type Point<'p> = (&'p str, i64, f64, Option<i64>);

/// Keys and values.
pub(crate) type Pairs<'p> = &'p [(&'p str, &'p str)];

/// Code, field and severity of a warning.
pub(crate) type Warning = (String, String, String);

/// Code and reason of a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) code: Code,
    pub(crate) reason: String,
}

/// What opening a run answers.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) run: String,
    pub(crate) token: String,
    pub(crate) resumed: bool,
    pub(crate) warnings: Vec<Warning>,
}

/// Two counts: accepted and deduplicated points, accepted and existing parameters, or updated and removed tags.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) counts: (i64, i64),
    pub(crate) warnings: Vec<Warning>,
}

/// An upload that was opened.
pub(crate) struct Upload {
    pub(crate) id: String,
    url: String,
    headers: Vec<(String, String)>,
}

/// A client of one transport.
#[derive(Clone, Copy)]
pub(crate) struct Client<'s> {
    pub(crate) server: &'s Server,
    pub(crate) transport: Transport,
}

type CallResult<T> = Result<T, Refused>;

impl Client<'_> {
    pub(crate) async fn open(&self, run: &str, token: &str, tags: Pairs<'_>) -> CallResult<Opened> {
        let (id, token) = (Some(run.to_owned()), Some(token.to_owned()));
        match self.transport {
            Transport::Grpc => {
                let request = InitRunRequest {
                    project_id: project("demo"),
                    run_id: id,
                    resume_token: token,
                    tags: tags.iter().copied().map(tag).collect(),
                    ..InitRunRequest::default()
                };
                let answer = self.server.ingest().init_run(request).await.map_err(of_status)?;
                let answer = answer.into_inner();
                Ok(Opened {
                    run: answer.run_id.expect("an id").value,
                    token: answer.resume_token,
                    resumed: answer.resumed,
                    warnings: of_details(&answer.warnings),
                })
            }
            Transport::Rest => {
                let body = json!({"project": "demo", "run_id": id, "resume_token": token, "tags": map(tags)});
                let answer = self.post("/api/v1/runs", &body).await?;
                Ok(Opened {
                    run: text(&answer["run_id"]),
                    token: text(&answer["resume_token"]),
                    resumed: answer["resumed"] == true,
                    warnings: of_json(&answer),
                })
            }
        }
    }

    pub(crate) async fn log(
        &self,
        run: &str,
        id: &str,
        sequence: Option<i64>,
        points: &[Point<'_>],
    ) -> CallResult<Counted> {
        match self.transport {
            Transport::Grpc => {
                let mut columns = MetricColumns::default();
                for (name, step, value, time) in points {
                    columns.push(name, *step, *value, time.map(to_wire));
                }
                let request = LogMetricsRequest {
                    run_id: run_id(run),
                    metrics: Some(columns),
                    batch_id: id.to_owned(),
                    sequence,
                };
                let answer = self.server.ingest().log_metrics(request).await.map_err(of_status)?;
                let answer = answer.into_inner();
                Ok(Counted {
                    counts: (answer.accepted_count, answer.deduplicated_count),
                    warnings: of_details(&answer.warnings),
                })
            }
            Transport::Rest => {
                let metrics: Vec<Value> = points.iter().map(point).collect();
                let body = json!({"run_id": run, "batch_id": id, "sequence": sequence, "metrics": metrics});
                let answer = self.post("/api/v1/ingest/batch", &body).await?;
                Ok(counted(&answer, "accepted_points", "deduplicated_points"))
            }
        }
    }

    pub(crate) async fn params(&self, run: &str, params: Pairs<'_>) -> CallResult<Counted> {
        match self.transport {
            Transport::Grpc => {
                let request = LogParamsRequest {
                    run_id: run_id(run),
                    params: params.iter().copied().map(param).collect(),
                };
                let answer = self.server.ingest().log_params(request).await.map_err(of_status)?;
                let answer = answer.into_inner();
                Ok(Counted {
                    counts: (answer.accepted_count, answer.existing_count),
                    warnings: of_details(&answer.warnings),
                })
            }
            Transport::Rest => {
                let list: Vec<Value> = params
                    .iter()
                    .map(|(name, value)| json!({"name": name, "value": value}))
                    .collect();
                let path = format!("/api/v1/runs/{run}/params");
                let answer = self.post(&path, &json!({"params": list})).await?;
                Ok(counted(&answer, "accepted_count", "existing_count"))
            }
        }
    }

    pub(crate) async fn tags(&self, run: &str, set: Pairs<'_>, remove: &[&str]) -> CallResult<Counted> {
        match self.transport {
            Transport::Grpc => {
                let request = LogTagsRequest {
                    run_id: run_id(run),
                    tags: set.iter().copied().map(tag).collect(),
                    remove_keys: remove.iter().map(|key| (*key).to_owned()).collect(),
                };
                let answer = self.server.ingest().log_tags(request).await.map_err(of_status)?;
                let answer = answer.into_inner();
                Ok(Counted {
                    counts: (answer.updated_count, answer.removed_count),
                    warnings: of_details(&answer.warnings),
                })
            }
            Transport::Rest => {
                let path = format!("/api/v1/runs/{run}/tags");
                let answer = self
                    .post(&path, &json!({"tags": map(set), "remove_keys": remove}))
                    .await?;
                Ok(counted(&answer, "updated_count", "removed_count"))
            }
        }
    }

    /// Whether the run has to be resumed.
    pub(crate) async fn heartbeat(&self, run: &str) -> CallResult<bool> {
        match self.transport {
            Transport::Grpc => {
                let request = HeartbeatRequest {
                    run_id: run_id(run),
                    client_time: None,
                };
                let answer = self.server.ingest().heartbeat(request).await.map_err(of_status)?;
                Ok(answer.into_inner().request_resync)
            }
            Transport::Rest => {
                let answer = self.post(&format!("/api/v1/runs/{run}/heartbeat"), &json!({})).await?;
                Ok(answer["request_resync"] == true)
            }
        }
    }

    /// The points of the run.
    pub(crate) async fn finish(&self, run: &str, status: RunStatus) -> CallResult<i64> {
        match self.transport {
            Transport::Grpc => {
                let request = FinishRunRequest {
                    run_id: run_id(run),
                    status: status.into(),
                    ..FinishRunRequest::default()
                };
                let answer = self.server.ingest().finish_run(request).await.map_err(of_status)?;
                Ok(answer.into_inner().total_metrics)
            }
            Transport::Rest => {
                let word = status.as_str_name().trim_start_matches("RUN_STATUS_").to_lowercase();
                let path = format!("/api/v1/runs/{run}/finish");
                let answer = self.post(&path, &json!({"status": word})).await?;
                Ok(answer["total_metrics"].as_i64().expect("a number"))
            }
        }
    }

    /// Opens an upload of one byte.
    pub(crate) async fn upload(&self, run: &str, name: &str) -> CallResult<Upload> {
        match self.transport {
            Transport::Grpc => {
                let metadata = ArtifactMetadata {
                    name: name.to_owned(),
                    r#type: ArtifactType::Model.into(),
                    mime_type: "text/plain".to_owned(),
                    size_bytes: 1,
                    ..ArtifactMetadata::default()
                };
                let request = CreateArtifactUploadRequest {
                    run_id: run_id(run),
                    metadata: Some(metadata),
                    expected_size_bytes: 1,
                };
                let answer = self.server.ingest().create_artifact_upload(request).await;
                let answer = answer.map_err(of_status)?.into_inner();
                Ok(Upload {
                    id: answer.upload_id,
                    url: answer.presigned_url,
                    headers: answer.required_headers.into_iter().collect(),
                })
            }
            Transport::Rest => {
                let metadata = json!({"name": name, "type": "ARTIFACT_TYPE_MODEL", "mime_type": "text/plain",
                    "size_bytes": 1});
                let body = json!({"metadata": metadata, "expected_size_bytes": 1});
                let answer = self.post(&format!("/api/v1/runs/{run}/artifacts"), &body).await?;
                let headers = answer["required_headers"].as_object().expect("headers").iter();
                Ok(Upload {
                    id: text(&answer["upload_id"]),
                    url: text(&answer["presigned_url"]),
                    headers: headers.map(|(name, value)| (name.clone(), text(value))).collect(),
                })
            }
        }
    }

    /// Sends the byte of an upload.
    pub(crate) async fn send(&self, upload: &Upload) -> StatusCode {
        let request = http::Request::builder().method("PUT").uri(&upload.url);
        let headers = upload.headers.iter();
        let request = headers.fold(request, |request, (name, value)| request.header(name, value));
        self.server.ask(request, &b"x"[..]).await.status
    }

    pub(crate) async fn finalize(&self, upload_id: &str) -> CallResult<()> {
        const MD5_OF_X: &str = "9dd4e461268c8034f5c8564e155c67a6";
        match self.transport {
            Transport::Grpc => {
                let request = FinalizeArtifactUploadRequest {
                    upload_id: upload_id.to_owned(),
                    actual_size_bytes: 1,
                    md5_checksum: MD5_OF_X.to_owned(),
                };
                let answer = self.server.ingest().finalize_artifact_upload(request).await;
                answer.map(drop).map_err(of_status)
            }
            Transport::Rest => {
                let body = json!({"actual_size_bytes": 1, "md5_checksum": MD5_OF_X});
                let path = format!("/api/v1/artifacts/{upload_id}/finalize");
                self.post(&path, &body).await.map(drop)
            }
        }
    }

    async fn post(&self, path: &str, body: &Value) -> CallResult<Value> {
        let answer = self.server.post(path, body.to_string()).await;
        match answer.status {
            StatusCode::OK => Ok(answer.json()),
            _ => Err(of_answer(&answer)),
        }
    }
}

fn tag((key, value): (&str, &str)) -> Tag {
    Tag {
        key: key.to_owned(),
        value: value.to_owned(),
    }
}

fn param((name, value): (&str, &str)) -> Parameter {
    Parameter {
        name: name.to_owned(),
        value: value.to_owned(),
    }
}

fn map(pairs: Pairs<'_>) -> Value {
    let entries = pairs.iter().map(|(key, value)| ((*key).to_owned(), json!(value)));
    Value::Object(entries.collect())
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

fn point((name, step, value, time): &Point<'_>) -> Value {
    let value = match value {
        value if value.is_nan() => json!("NaN"),
        &f64::INFINITY => json!("Infinity"),
        &f64::NEG_INFINITY => json!("-Infinity"),
        value => json!(value),
    };
    let time = time.map(|nanos| timestamp(nanos).to_string());
    json!({"name": name, "step": step, "value": value, "timestamp": time})
}

fn counted(answer: &Value, first: &str, second: &str) -> Counted {
    let count = |name: &str| answer[name].as_i64().unwrap_or_else(|| panic!("{name}: {answer}"));
    Counted {
        counts: (count(first), count(second)),
        warnings: of_json(answer),
    }
}

fn of_details(warnings: &[ErrorDetail]) -> Vec<Warning> {
    let warned = |warning: &ErrorDetail| {
        assert!(warning.message.ends_with('.'), "{warning:?}");
        let severity = warning.severity().as_str_name().trim_start_matches("ERROR_SEVERITY_");
        (warning.code.clone(), warning.field.clone(), severity.to_lowercase())
    };
    warnings.iter().map(warned).collect()
}

fn of_json(answer: &Value) -> Vec<Warning> {
    let warnings = answer["warnings"].as_array().into_iter().flatten();
    let warned = |warning: &Value| {
        (
            text(&warning["code"]),
            text(&warning["field"]),
            text(&warning["severity"]),
        )
    };
    warnings.map(warned).collect()
}

fn of_status(status: Status) -> Refused {
    let details = status.get_error_details();
    Refused {
        code: status.code(),
        reason: details.error_info().expect("a reason").reason.clone(),
    }
}

/// Each code has its status.
fn of_answer(answer: &Answer) -> Refused {
    let json = answer.json();
    let (code, statuses) = match json["error"]["code"].as_str() {
        Some("INVALID_ARGUMENT") => (Code::InvalidArgument, &[400, 422, 413][..]),
        Some("NOT_FOUND") => (Code::NotFound, &[404][..]),
        Some("ALREADY_EXISTS") => (Code::AlreadyExists, &[409][..]),
        Some("FAILED_PRECONDITION") => (Code::FailedPrecondition, &[412][..]),
        Some("PERMISSION_DENIED") => (Code::PermissionDenied, &[403][..]),
        _ => panic!("{json}"),
    };
    assert!(statuses.contains(&answer.status.as_u16()), "{} {json}", answer.status);
    Refused {
        code,
        reason: text(&json["error"]["details"][0]["code"]),
    }
}
