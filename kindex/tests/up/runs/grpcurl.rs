//! Every call of `mlrun.v1`, reflection and health, with the published grpcurl, which knows only what reflection tells.

use kindex_harness::require::require;
use kindex_harness::{grpcurl, tools};
use serde_json::{Value, json};

use super::server::{Server, program};

struct Client {
    server: Server,
    program: String,
}

impl Client {
    /// None where grpcurl is not installed and not required.
    fn start() -> Option<Self> {
        require("grpcurl", grpcurl::installed()).then(|| Self {
            server: Server::start(),
            program: tools::tools().join("grpcurl").display().to_string(),
        })
    }

    fn plain(&self, args: &[&str]) -> String {
        let address = self.server.grpc.to_string();
        let args: Vec<&str> = ["-plaintext", &address]
            .into_iter()
            .chain(args.iter().copied())
            .collect();
        program(&self.program, &args, "").unwrap_or_else(|error| panic!("{args:?}: {error}"))
    }

    /// The answers to the messages of a call.
    fn messages(&self, method: &str, messages: &[Value]) -> Vec<Value> {
        let address = self.server.grpc.to_string();
        let input: String = messages.iter().map(|message| format!("{message}\n")).collect();
        let args = ["-plaintext", "-emit-defaults", "-d", "@", &address, method];
        let printed = program(&self.program, &args, &input).unwrap_or_else(|error| panic!("{method}: {error}"));
        let answers = serde_json::Deserializer::from_str(&printed).into_iter();
        answers.map(|answer| answer.expect("JSON")).collect()
    }

    fn ingest(&self, call: &str, message: Value) -> Value {
        self.messages(&format!("mlrun.v1.IngestService/{call}"), &[message])
            .remove(0)
    }

    fn query(&self, call: &str, message: Value) -> Value {
        self.messages(&format!("mlrun.v1.QueryService/{call}"), &[message])
            .remove(0)
    }
}

fn point(name: &str, step: i64, value: Value) -> Value {
    json!({"name": name, "step": step, "value": value})
}

fn batch(run: &str, id: &str, points: Vec<Value>) -> Value {
    json!({"runId": {"value": run}, "batchId": id, "metrics": {"points": points}})
}

#[test]
fn grpcurl_lists_and_describes_every_service() {
    let Some(client) = Client::start() else { return };
    let listed = client.plain(&["list"]);
    for service in [
        "grpc.health.v1.Health",
        "mlrun.v1.IngestService",
        "mlrun.v1.QueryService",
    ] {
        assert!(listed.lines().any(|line| line == service), "{listed}");
    }
    assert_eq!(client.plain(&["list", "mlrun.v1.IngestService"]).lines().count(), 9);
    assert_eq!(client.plain(&["list", "mlrun.v1.QueryService"]).lines().count(), 8);
    let described = client.plain(&["describe", "mlrun.v1.LogMetricsRequest"]);
    assert!(described.contains("optional int64 sequence = 4;"), "{described}");
    let described = client.plain(&["describe", "mlrun.v1.IngestService.LogMetricsStream"]);
    assert!(
        described.contains("stream .mlrun.v1.LogMetricsStreamRequest"),
        "{described}"
    );
    for service in ["", "mlrun.v1.IngestService", "mlrun.v1.QueryService"] {
        let health = client.messages("grpc.health.v1.Health/Check", &[json!({"service": service})]);
        assert_eq!(health[0]["status"], "SERVING", "{service:?}");
    }
}

/// Opens an upload, and finalizes it although nothing was sent.
fn upload(client: &Client, run: &Value) {
    let metadata = json!({"name": "a.txt", "type": "ARTIFACT_TYPE_OTHER", "mimeType": "text/plain", "sizeBytes": "1"});
    let upload = client.ingest(
        "CreateArtifactUpload",
        json!({"runId": run, "metadata": metadata, "expectedSizeBytes": "1"}),
    );
    let id = upload["uploadId"].as_str().expect("an id");
    let finalize = json!({"uploadId": id, "actualSizeBytes": "1", "md5Checksum": "9dd4e461268c8034f5c8564e155c67a6"});
    let address = client.server.grpc.to_string();
    let args = [
        "-plaintext",
        "-d",
        &finalize.to_string(),
        &address,
        "mlrun.v1.IngestService/FinalizeArtifactUpload",
    ];
    let refused = program(&client.program, &args, "").expect_err("nothing was sent");
    assert!(
        refused.contains("FailedPrecondition") || refused.contains("InvalidArgument"),
        "{refused}"
    );
}

#[test]
fn grpcurl_makes_every_call_of_a_training_job() {
    let Some(client) = Client::start() else { return };
    let run = json!({"value": "r"});
    let opened = client.ingest(
        "InitRun",
        json!({"projectId": {"value": "demo"}, "runId": "r", "name": "first"}),
    );
    assert_eq!((&opened["runId"], &opened["resumed"]), (&run, &json!(false)));
    assert!(opened["resumeToken"].as_str().is_some_and(|token| !token.is_empty()));
    let points = vec![
        point("loss", 1, json!(0.5)),
        point("loss", 2, json!("NaN")),
        point("9", 1, json!(1)),
    ];
    let logged = client.ingest("LogMetrics", batch("r", "b", points));
    assert_eq!(
        (&logged["acceptedCount"], &logged["warnings"][0]["severity"]),
        (&json!("2"), &json!("ERROR_SEVERITY_WARNING"))
    );
    let streamed: Vec<Value> = (3..6)
        .map(|step| json!({"batch": batch("r", &step.to_string(), vec![point("loss", step, json!(step))])}))
        .chain([json!({"batch": batch("r", "", vec![])})])
        .collect();
    let answers = client.messages("mlrun.v1.IngestService/LogMetricsStream", &streamed);
    let accepted: Vec<&Value> = answers
        .iter()
        .map(|answer| &answer["response"]["acceptedCount"])
        .collect();
    assert_eq!(accepted, ["1", "1", "1", "0"]);
    assert_eq!(
        answers[3]["response"]["warnings"][0]["severity"],
        "ERROR_SEVERITY_ERROR"
    );
    let params = client.ingest(
        "LogParams",
        json!({"runId": run, "params": [{"name": "lr", "value": "0.1"}]}),
    );
    assert_eq!(params["acceptedCount"], "1");
    let tags = client.ingest(
        "LogTags",
        json!({"runId": run, "tags": [{"key": "team", "value": "red"}], "removeKeys": ["x"]}),
    );
    assert_eq!(
        (&tags["updatedCount"], &tags["removedCount"]),
        (&json!("1"), &json!("0"))
    );
    assert_eq!(
        client.ingest("Heartbeat", json!({"runId": run}))["requestResync"],
        false
    );

    upload(&client, &run);

    let ended = client.ingest("FinishRun", json!({"runId": run, "status": "RUN_STATUS_FINISHED"}));
    assert_eq!(
        (&ended["totalMetrics"], &ended["totalArtifacts"]),
        (&json!("5"), &json!("0"))
    );
}

#[test]
fn grpcurl_makes_every_call_of_a_reader() {
    let Some(client) = Client::start() else { return };
    for run in ["a", "b"] {
        client.ingest(
            "InitRun",
            json!({"projectId": {"value": "demo"}, "runId": run, "name": format!("run {run}")}),
        );
        let points = (0..3)
            .map(|step| point("loss", step, json!(step as f64 / 2.0)))
            .collect();
        client.ingest("LogMetrics", batch(run, "1", points));
    }
    let (run, project) = (json!({"value": "a"}), json!({"value": "demo"}));
    let listed = client.query("ListRuns", json!({"projectId": project, "pageSize": 1}));
    assert_eq!(
        (&listed["totalCount"], &listed["runs"][0]["runId"]["value"]),
        (&json!("2"), &json!("b"))
    );
    assert_eq!(
        client.query("ListRuns", json!({}))["totalCount"],
        "2",
        "of all projects"
    );
    assert_eq!(
        client.query("GetRun", json!({"runId": run}))["run"]["status"],
        "RUN_STATUS_RUNNING"
    );
    let series = client.query(
        "GetMetrics",
        json!({"runIds": [run], "downsampleMethod": "DOWNSAMPLE_METHOD_MIN_MAX"}),
    );
    let stats = &series["runMetrics"][0]["series"][0]["stats"];
    assert_eq!(
        (&stats["max"], &stats["mean"], &stats["count"]),
        (&json!(1), &json!(0.5), &json!("3"))
    );
    let both = json!([{"value": "a"}, {"value": "b"}]);
    let compared = client.query(
        "CompareRuns",
        json!({"runIds": both, "alignment": "ALIGNMENT_MODE_STEP"}),
    );
    assert_eq!(compared["alignmentInfo"]["xValues"], json!([0, 1, 2]));
    assert_eq!(client.query("ListArtifacts", json!({"runId": run}))["totalCount"], "0");
    assert_eq!(
        client.query("GetProjectStats", json!({"projectId": project}))["totalMetrics"],
        "6"
    );
    let found = client.query("SearchRuns", json!({"projectId": project, "query": "run"}));
    assert_eq!(found["totalCount"], "2");
    let message = json!({"runId": run, "artifactName": "none"}).to_string();
    let address = client.server.grpc.to_string();
    let args = [
        "-plaintext",
        "-d",
        &message,
        &address,
        "mlrun.v1.QueryService/GetArtifactDownloadUrl",
    ];
    let refused = program(&client.program, &args, "").expect_err("there is none");
    assert!(refused.contains("NotFound"), "{refused}");
}
