//! Malformed requests of both transports, made of good ones by chance: whatever comes, it is read or refused, and what
//! is read adds up. `KINDEX_FUZZ=1000000 cargo test -p kindex-runs --lib fuzz` makes as many; the number of an input
//! makes it again.

use std::panic::{AssertUnwindSafe, catch_unwind};

use prost::Message;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;

use super::batch::Batch;
use super::json;
use super::pairs::Pairs;
use super::values::{Double, Text, Time, Whole};
use crate::domain::{self, PresentedToken};
use crate::secrets::Secrets;
use crate::validate::{self, Oversized};
use crate::wire::MetricColumns;
use crate::wire::v1::{
    CompareRunsRequest, CreateArtifactUploadRequest, FinishRunRequest, GetMetricsRequest, InitRunRequest,
    ListRunsRequest, LogMetricsRequest, LogMetricsStreamRequest, LogParamsRequest, LogTagsRequest, Parameter,
    ProjectId, RunId, Tag,
};
use crate::{limits, pack, token};

const INPUTS: usize = 20_000;
const NOW: i64 = 1_800_000_000_000_000_000;

/// Reads one input as one kind of request; whether it is a good one. Fails where it breaks a rule.
type Reads = fn(&[u8]) -> bool;

/// Good requests of a kind, and what reads them.
struct Target {
    name: &'static str,
    good: Vec<Vec<u8>>,
    reads: Reads,
}

fn is_batch(checked: Result<domain::Batch, crate::refusal::Refusal>) -> bool {
    let Ok(batch) = checked else { return false };
    let points = &batch.points;
    let sizes = [points.name_of.len(), points.times.len(), points.values.len()];
    assert_eq!(sizes, [points.steps.len(); 3], "columns are of one length");
    assert_eq!(
        points.steps.len() as u64 + batch.dropped,
        batch.sent,
        "kept and dropped are what was sent"
    );
    assert!(points.steps.len() <= limits::BATCH_POINTS.max);
    assert!(points.steps.iter().all(|step| *step >= 0));
    assert!(
        points
            .name_of
            .iter()
            .all(|place| (*place as usize) < points.names.len())
    );
    assert!(!batch.batch_id.as_str().is_empty() && batch.warnings.len() <= 2 * limits::WARNINGS.max);
    true
}

fn log_metrics(input: &[u8]) -> bool {
    let Ok(request) = LogMetricsRequest::decode(input) else {
        return false;
    };
    // What was read is written and read again.
    let bytes = request.encode_to_vec();
    assert_eq!(
        LogMetricsRequest::decode(&*bytes).map(|again| again.encode_to_vec()),
        Ok(bytes)
    );
    let refused = is_batch(validate::log_metrics(request.clone(), NOW, Oversized::Refused));
    is_batch(validate::log_metrics(request, NOW, Oversized::Cut)) | refused
}

fn init_run(input: &[u8]) -> bool {
    let Ok(request) = InitRunRequest::decode(input) else {
        return false;
    };
    let secrets = Secrets::parse(&"s".repeat(32)).expect("a secret");
    let shown = token::presented(&secrets, request.resume_token.as_deref(), NOW / 1_000_000_000);
    assert!(
        !matches!(shown, PresentedToken::Signed { .. }),
        "nobody can forge a token"
    );
    validate::init_run(request, Vec::new(), "ana", shown).is_ok()
}

fn decodes<M: Message + Default>(input: &[u8]) -> bool {
    M::decode(input).is_ok()
}

fn batch_of_json(input: &[u8]) -> bool {
    let Ok(read) = json::read::<Batch>(input) else {
        return false;
    };
    read.sent()
        .is_ok_and(|sent| is_batch(validate::batch(sent, NOW, Oversized::Cut)))
}

fn values_of_json(input: &[u8]) -> bool {
    let reads = [
        json::read::<Double>(input).is_ok(),
        json::read::<Whole>(input).is_ok(),
        json::read::<Time>(input).is_ok(),
        json::read::<Text>(input).is_ok(),
        json::read::<Pairs>(input).is_ok(),
    ];
    reads.contains(&true)
}

fn gzip(input: &[u8]) -> bool {
    pack::unpack(input, 100_000).is_ok_and(|whole| {
        assert!(whole.len() <= 100_000);
        true
    })
}

fn run() -> Option<RunId> {
    Some(RunId {
        value: "run-1".to_owned(),
    })
}

fn points() -> LogMetricsRequest {
    let mut columns = MetricColumns::default();
    for step in 0..12 {
        let time = (step % 3 == 0).then(|| domain::to_wire(NOW + step));
        columns.push(
            ["loss", "acc/top.1", "lr"][step as usize % 3],
            step,
            0.1 * step as f64,
            time,
        );
    }
    columns.push("bad name \u{20ac}", 1, f64::NAN, None);
    columns.push("loss", -1, 0.5, None);
    LogMetricsRequest {
        run_id: run(),
        metrics: Some(columns),
        batch_id: "batch-1".to_owned(),
        sequence: Some(7),
    }
}

fn target(name: &'static str, good: Vec<u8>, reads: Reads) -> Target {
    Target {
        name,
        good: vec![good],
        reads,
    }
}

fn messages() -> Vec<Target> {
    let open = InitRunRequest {
        project_id: Some(ProjectId {
            value: "vision".to_owned(),
        }),
        name: Some("\u{20ac} run".to_owned()),
        resume_token: Some("a.b.c".to_owned()),
        ..InitRunRequest::default()
    };
    let params = LogParamsRequest {
        run_id: run(),
        params: vec![Parameter {
            name: "lr".to_owned(),
            value: "0.1".to_owned(),
        }],
    };
    let tags = LogTagsRequest {
        run_id: run(),
        tags: vec![Tag {
            key: "team".to_owned(),
            value: "\u{1f600}".to_owned(),
        }],
        ..LogTagsRequest::default()
    };
    let end = FinishRunRequest {
        run_id: run(),
        status: 2,
        exit_code: Some(-1),
        ..FinishRunRequest::default()
    };
    let stream = LogMetricsStreamRequest { batch: Some(points()) };
    vec![
        target("LogMetrics", points().encode_to_vec(), log_metrics),
        target(
            "LogMetricsStream",
            stream.encode_to_vec(),
            decodes::<LogMetricsStreamRequest>,
        ),
        target("InitRun", open.encode_to_vec(), init_run),
        target("LogParams", params.encode_to_vec(), |input| {
            LogParamsRequest::decode(input).is_ok_and(|request| validate::log_params(request).is_ok())
        }),
        target("LogTags", tags.encode_to_vec(), |input| {
            LogTagsRequest::decode(input).is_ok_and(|request| validate::log_tags(request).is_ok())
        }),
        target("FinishRun", end.encode_to_vec(), |input| {
            FinishRunRequest::decode(input).is_ok_and(|request| validate::finish_run(request).is_ok())
        }),
        target("GetMetrics", params.encode_to_vec(), decodes::<GetMetricsRequest>),
        target("ListRuns", open.encode_to_vec(), decodes::<ListRunsRequest>),
        target("CompareRuns", params.encode_to_vec(), decodes::<CompareRunsRequest>),
        target(
            "CreateArtifactUpload",
            tags.encode_to_vec(),
            decodes::<CreateArtifactUploadRequest>,
        ),
    ]
}

fn texts() -> Vec<Target> {
    let batch = json!({
        "run_id": "run-1", "batch_id": "b", "seq": 3, "params": {"lr": 0.1}, "tags": [{"key": "k", "value": "v"}],
        "metrics": [
            {"name": "loss", "step": 1, "value": 0.5, "timestamp": 1.5},
            {"name": "l\u{f6}ss", "step": "2", "value": "NaN", "timestamp": "2026-01-01T00:00:00Z"},
        ],
    });
    let bare = br#"{"run_id":"r","batch_id":"b","metrics":[{"name":"a","step":1,"value":-Infinity}]}"#;
    vec![
        Target {
            name: "ingest/batch",
            good: vec![batch.to_string().into_bytes(), bare.to_vec()],
            reads: batch_of_json,
        },
        Target {
            name: "values",
            good: [
                "1.5",
                "\"NaN\"",
                "12",
                "\"2026-01-01T00:00:00Z\"",
                r#"{"a":1,"b":[true]}"#,
                "-0.0",
            ]
            .map(|text| text.as_bytes().to_vec())
            .to_vec(),
            reads: values_of_json,
        },
    ]
}

fn packed() -> Target {
    use std::io::Write as _;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder
        .write_all(&points().encode_to_vec())
        .expect("a vector takes all");
    Target {
        name: "gzip",
        good: vec![encoder.finish().expect("a vector takes all")],
        reads: gzip,
    }
}

/// What is put into a request: numbers at their edges, lengths that lie, words of JSON, cut characters.
const PIECES: [&[u8]; 24] = [
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\xff\xff\xff\xff\x0f",
    b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80",
    b"\x0a\xff\xff\xff\x7f",
    b"\x00",
    b"\x0b\x0c",
    b"\xf0\x9f\x98",
    b"\xed\xa0\x80",
    b"\\ud800",
    b"\\u0000",
    b"NaN",
    b"-Infinity",
    b"1e999",
    b"-1e-999",
    b"9223372036854775808",
    b"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
    b"{\"a\":{\"a\":{\"a\":",
    b"null",
    b"\"",
    b"\\",
    b",",
    b"}",
    b"99999-12-31T23:59:60Z",
    b"\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac",
];

/// A request with up to six faults; some have none.
fn faulty(good: &[u8], chance: &mut StdRng) -> Vec<u8> {
    let mut input = good.to_vec();
    for _ in 0..chance.random_range(0..7) {
        let at = chance.random_range(0..=input.len());
        let length = chance.random_range(0..=(input.len() - at).min(40));
        match chance.random_range(0..8) {
            0 => input.truncate(at),
            1 => drop(input.drain(at..at + length)),
            2 => {
                let again = input[at..at + length].to_vec();
                input.splice(at..at, again);
            }
            3 => {
                let piece = PIECES[chance.random_range(0..PIECES.len())];
                input.splice(at..at + length.min(piece.len()), piece.iter().copied());
            }
            4 => {
                let noise: Vec<u8> = (0..length).map(|_| chance.random()).collect();
                input.splice(at..at + length, noise);
            }
            _ => {
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << chance.random_range(0..8);
                }
            }
        }
    }
    input
}

#[test]
fn whatever_comes_is_read_or_refused() {
    let inputs = std::env::var("KINDEX_FUZZ").ok().and_then(|text| text.parse().ok());
    let inputs: usize = inputs.unwrap_or(INPUTS);
    let mut targets = messages();
    targets.extend(texts());
    targets.push(packed());
    let mut read = vec![[0_usize; 2]; targets.len()];
    for number in 0..inputs {
        let mut chance = StdRng::seed_from_u64(number as u64);
        let place = number % targets.len();
        let target = &targets[place];
        let good = &target.good[chance.random_range(0..target.good.len())];
        let input = faulty(good, &mut chance);
        match catch_unwind(AssertUnwindSafe(|| (target.reads)(&input))) {
            Ok(is_good) => read[place][usize::from(is_good)] += 1,
            Err(_) => panic!(
                "input {number} of {}: {:?}",
                target.name,
                input.escape_ascii().to_string()
            ),
        }
    }
    for (target, [refused, good]) in targets.iter().zip(&read) {
        println!("fuzz: {}: {good} read, {refused} refused", target.name);
        assert!(
            *refused > 0 && *good > 0,
            "{}: {good} read, {refused} refused",
            target.name
        );
    }
}
