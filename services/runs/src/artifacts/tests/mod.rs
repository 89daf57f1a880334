//! Artifacts from the first call to the last, with a store and files.

mod late;

use std::collections::BTreeMap;

use axum::body::{Body, to_bytes};
use http::{Request, Response};
use md5::{Digest as _, Md5};

use super::upload::{hex, of_hash};
use super::*;
use crate::domain::{RunId, Status};
use crate::fixture::{Fixture, SECOND};
use crate::limits;
use crate::refusal::{Code, Refusal};
use crate::roles::Uploads as _;
use crate::secrets::Secrets;
use crate::store::{Command, Failure, Tx};
use crate::wire::v1::{
    self, ArtifactMetadata, CreateArtifactUploadRequest, CreateArtifactUploadResponse, FinalizeArtifactUploadRequest,
    GetArtifactDownloadUrlRequest, ListArtifactsRequest,
};

const HOUR: i64 = 3600 * SECOND;

struct TestArtifacts {
    fixture: Fixture,
    artifacts: Artifacts,
}

async fn setup() -> TestArtifacts {
    let fixture = Fixture::new().await;
    fixture.open("a", "").await;
    let files = Files::open(&fixture.folder.path().join("artifacts")).expect("a folder");
    let secrets = Secrets::parse(&"s".repeat(32)).expect("a secret");
    let addresses = Addresses::new("http://127.0.0.1:3002", secrets);
    let artifacts = Artifacts::new(fixture.store.clone(), files, addresses);
    TestArtifacts { fixture, artifacts }
}

fn md5(content: &str) -> String {
    hex(&of_hash(Md5::digest(content)))
}

impl TestArtifacts {
    async fn create(&self, name: &str, content: &str) -> CreateArtifactUploadResponse {
        self.try_create(name, content).await.expect("an upload")
    }

    async fn try_create(&self, name: &str, content: &str) -> Result<CreateArtifactUploadResponse, Refusal> {
        self.announce(name, content.len(), md5(content)).await
    }

    async fn announce(
        &self,
        name: &str,
        bytes: usize,
        md5_checksum: String,
    ) -> Result<CreateArtifactUploadResponse, Refusal> {
        let request = CreateArtifactUploadRequest {
            run_id: Some(v1::RunId { value: "a".to_owned() }),
            metadata: Some(ArtifactMetadata {
                name: name.to_owned(),
                r#type: 1,
                mime_type: "text/html".to_owned(),
                md5_checksum,
                step: Some(3),
                ..ArtifactMetadata::default()
            }),
            expected_size_bytes: bytes as i64,
        };
        self.artifacts.create(request).await
    }

    async fn put(&self, upload: &CreateArtifactUploadResponse, content: &str) -> Result<Response<Body>, Refusal> {
        self.send("PUT", &upload.presigned_url, upload, content.to_owned())
            .await
    }

    async fn send(
        &self,
        method: &str,
        address: &str,
        upload: &CreateArtifactUploadResponse,
        content: impl Into<Body>,
    ) -> Result<Response<Body>, Refusal> {
        let path = address
            .strip_prefix("http://127.0.0.1:3002")
            .expect("an address of the server");
        let mut request = Request::builder().method(method).uri(path);
        let headers: BTreeMap<_, _> = upload.required_headers.iter().collect();
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let request = request.body(content.into()).expect("a request");
        self.artifacts.serve(request).await
    }

    async fn finalize(&self, upload_id: &str, content: &str) -> Result<ArtifactMetadata, Refusal> {
        let request = FinalizeArtifactUploadRequest {
            upload_id: upload_id.to_owned(),
            actual_size_bytes: content.len() as i64,
            md5_checksum: md5(content),
        };
        let finalized = self.artifacts.finalize(request).await?;
        Ok(finalized.artifact.expect("an artifact"))
    }

    /// An artifact from the first call to the last.
    async fn keep(&self, name: &str, content: &str) -> String {
        let upload = self.create(name, content).await;
        self.put(&upload, content).await.expect("a file");
        self.finalize(&upload.upload_id, content).await.expect("an artifact");
        upload.upload_id
    }

    async fn names(&self, request: ListArtifactsRequest) -> Vec<String> {
        let request = ListArtifactsRequest {
            run_id: Some(v1::RunId { value: "a".to_owned() }),
            ..request
        };
        let listed = self.artifacts.list(request).await.expect("a list");
        listed.artifacts.into_iter().map(|artifact| artifact.name).collect()
    }

    async fn fetch(&self, name: &str) -> Result<String, Refusal> {
        let request = GetArtifactDownloadUrlRequest {
            run_id: Some(v1::RunId { value: "a".to_owned() }),
            artifact_name: name.to_owned(),
        };
        let found = self.artifacts.download_url(request).await?;
        let none = CreateArtifactUploadResponse::default();
        let response = self.send("GET", &found.presigned_url, &none, "").await?;
        let disposition = response.headers()["content-disposition"]
            .to_str()
            .expect("a text")
            .to_owned();
        assert!(disposition.starts_with("attachment"), "{disposition}");
        assert_eq!(response.headers()["x-content-type-options"], "nosniff");
        let bytes = to_bytes(response.into_body(), 1 << 20).await.expect("a body");
        Ok(String::from_utf8(bytes.to_vec()).expect("a text"))
    }

    fn files(&self) -> usize {
        let folder = self.fixture.folder.path().join("artifacts");
        let shards = folder.read_dir().expect("a folder");
        shards
            .map(|shard| shard.expect("a folder").path().read_dir().expect("a folder").count())
            .sum()
    }
}

fn reason<T>(result: Result<T, Refusal>) -> &'static str {
    result.map_or_else(|refusal| refusal.reason, |_| "accepted")
}

#[tokio::test]
async fn an_artifact_is_sent_finalized_listed_and_fetched() {
    let test = setup().await;
    let upload = test.create("reports/é final.html", "hello").await;
    assert_eq!(upload.required_headers["Content-Length"], "5");
    test.put(&upload, "hello").await.expect("a file");
    assert_eq!(test.names(ListArtifactsRequest::default()).await, Vec::<String>::new());
    assert_eq!(reason(test.fetch("reports/é final.html").await), "ARTIFACT_NOT_FOUND");
    let artifact = test.finalize(&upload.upload_id, "hello").await.expect("an artifact");
    assert_eq!((artifact.size_bytes, artifact.step, artifact.r#type), (5, Some(3), 1));
    assert_eq!(
        test.names(ListArtifactsRequest::default()).await,
        ["reports/é final.html"]
    );
    assert_eq!(test.fetch("reports/é final.html").await, Ok("hello".to_owned()));
    let run = test
        .fixture
        .store
        .run(&RunId::new("a"))
        .await
        .expect("a run")
        .expect("a run");
    assert_eq!(run.artifacts, 1);
}

#[tokio::test]
async fn finalizing_again_answers_what_is_stored_and_counts_once() {
    let test = setup().await;
    let id = test.keep("x", "hello").await;
    let first = test.finalize(&id, "hello").await.expect("an artifact");
    test.fixture.pass(SECOND);
    assert_eq!(test.finalize(&id, "hello").await, Ok(first));
    assert_eq!(reason(test.finalize(&id, "other").await), "UPLOAD_FINALIZED");
    let run = test
        .fixture
        .store
        .run(&RunId::new("a"))
        .await
        .expect("a run")
        .expect("a run");
    assert_eq!(run.artifacts, 1);
    assert_eq!(test.fetch("x").await, Ok("hello".to_owned()));
}

#[tokio::test]
async fn an_address_takes_what_was_announced_for_an_hour() {
    let test = setup().await;
    let upload = test.create("x", "hello").await;
    for content in ["hell", "hello!", "jello"] {
        assert!(test.put(&upload, content).await.is_err(), "{content}");
        assert_eq!(test.files(), 0, "{content}");
    }
    let mut other = upload.clone();
    other
        .required_headers
        .insert("Content-Type".to_owned(), "text/plain".to_owned());
    assert_eq!(reason(test.put(&other, "hello").await), "ADDRESS_INVALID");
    other = upload.clone();
    other.required_headers.remove("Content-MD5");
    assert_eq!(reason(test.put(&other, "hello").await), "ADDRESS_INVALID");
    assert_eq!(
        reason(test.send("GET", &upload.presigned_url, &upload, "").await),
        "ADDRESS_INVALID"
    );
    assert_eq!(
        reason(test.send("POST", &upload.presigned_url, &upload, "").await),
        "METHOD_NOT_ALLOWED"
    );
    test.fixture.pass(HOUR - SECOND);
    assert!(test.put(&upload, "hello").await.is_ok());
    test.fixture.pass(SECOND);
    assert_eq!(reason(test.put(&upload, "hello").await), "ADDRESS_EXPIRED");
}

#[tokio::test]
async fn a_mismatch_rejects_and_deletes() {
    let test = setup().await;
    for (claimed, expected) in [("hell", "ARTIFACT_SIZE_MISMATCH"), ("jello", "ARTIFACT_MD5_MISMATCH")] {
        let upload = test.create("x", "hello").await;
        test.put(&upload, "hello").await.expect("a file");
        assert_eq!(reason(test.finalize(&upload.upload_id, claimed).await), expected);
        assert_eq!(test.files(), 0);
        assert_eq!(
            reason(test.finalize(&upload.upload_id, "hello").await),
            "UPLOAD_NOT_FOUND"
        );
        assert_eq!(reason(test.put(&upload, "hello").await), "UPLOAD_NOT_FOUND");
    }
    let upload = test.create("x", "hello").await;
    assert_eq!(
        reason(test.finalize(&upload.upload_id, "hello").await),
        "ARTIFACT_MISSING"
    );
    assert_eq!(
        reason(test.finalize("../../etc/passwd", "hello").await),
        "UPLOAD_NOT_FOUND"
    );
    assert_eq!(test.names(ListArtifactsRequest::default()).await, Vec::<String>::new());
}

#[tokio::test]
async fn an_artifact_never_changes_after_it_was_finalized() {
    let test = setup().await;
    let upload = test.create("x", "hello").await;
    test.put(&upload, "hello").await.expect("a file");
    test.finalize(&upload.upload_id, "hello").await.expect("an artifact");
    assert_eq!(reason(test.put(&upload, "hello").await), "UPLOAD_FINALIZED");
    assert_eq!(test.fetch("x").await, Ok("hello".to_owned()));
}

#[tokio::test]
async fn the_sweep_takes_what_was_not_finalized_within_a_day_and_nothing_else() {
    let test = setup().await;
    test.keep("kept", "hello").await;
    let old = test.create("old", "hello").await;
    test.put(&old, "hello").await.expect("a file");
    test.fixture.pass(SECOND);
    let young = test.create("young", "hello").await;
    test.put(&young, "hello").await.expect("a file");
    test.fixture.pass(24 * HOUR - 2 * SECOND);
    assert_eq!(test.artifacts.sweep().await, Ok(0));
    test.fixture.pass(SECOND);
    assert_eq!(test.artifacts.sweep().await, Ok(1));
    assert_eq!(test.files(), 2);
    assert_eq!(reason(test.finalize(&old.upload_id, "hello").await), "UPLOAD_NOT_FOUND");
    assert!(test.finalize(&young.upload_id, "hello").await.is_ok());
    test.fixture.pass(365 * 24 * HOUR);
    assert_eq!(test.artifacts.sweep().await, Ok(0));
    assert_eq!(test.fetch("kept").await, Ok("hello".to_owned()));
    assert_eq!(test.fetch("young").await, Ok("hello".to_owned()));
}

#[tokio::test]
async fn of_a_finalize_and_a_sweep_at_once_one_wins() {
    for _ in 0..20 {
        let test = setup().await;
        let upload = test.create("x", "hello").await;
        test.put(&upload, "hello").await.expect("a file");
        test.fixture.pass(24 * HOUR);
        let (finalized, swept) = tokio::join!(test.finalize(&upload.upload_id, "hello"), test.artifacts.sweep());
        let is_kept = finalized.is_ok();
        assert_eq!(swept, Ok(usize::from(!is_kept)));
        assert_eq!(test.fetch("x").await.is_ok(), is_kept);
        assert_eq!(test.files(), usize::from(is_kept));
    }
}

#[tokio::test]
async fn the_files_of_a_deleted_run_are_swept() {
    let test = setup().await;
    test.keep("x", "hello").await;
    test.fixture.store.delete(RunId::new("a")).await.expect("deleted");
    assert_eq!(test.artifacts.sweep().await, Ok(1));
    assert_eq!(test.files(), 0);
}

#[tokio::test]
async fn uploads_open_while_the_run_runs_and_are_finalized_also_later() {
    let test = setup().await;
    let upload = test.create("x", "hello").await;
    test.put(&upload, "hello").await.expect("a file");
    test.fixture.finish("a", Status::Failed).await;
    assert_eq!(reason(test.try_create("y", "hello").await), "RUN_TERMINAL");
    assert!(test.finalize(&upload.upload_id, "hello").await.is_ok());
}

#[tokio::test]
async fn a_run_has_a_hundred_open_uploads() {
    let test = setup().await;
    for number in 0..100 {
        test.create(&format!("x{number}"), "hello").await;
    }
    let refusal = test.try_create("y", "hello").await.expect_err("refused");
    assert_eq!(refusal.code, Code::ResourceExhausted);
    assert!(refusal.retry_after.is_some());
}

/// So many artifacts of the only run, as rows without files.
#[derive(Debug)]
struct Rows(i64);

impl Command for Rows {
    type Answer = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Failure> {
        sqlx::query(
            "WITH RECURSIVE place (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM place WHERE n < ?1) \
             INSERT INTO upload (upload_id, run_no, name, type, mime_type, state, created_at, size_bytes) \
             SELECT 'row-' || n, run_no, 'row-' || n, 1, 'text/plain', 2, 0, 0 FROM run CROSS JOIN place",
        )
        .bind(self.0)
        .execute(tx.write().await?)
        .await?;
        Ok(())
    }
}

/// As if a client had to wait for room that never comes: no retry time, and a code that clients do not retry.
#[tokio::test]
async fn a_run_has_ten_thousand_artifacts_and_one_more_is_refused_for_good() {
    let test = setup().await;
    let rows = Rows(limits::ARTIFACTS_OF_RUN.max as i64 - 2);
    test.fixture.store.write(rows).await.expect("rows");
    test.keep("n - 1", "hello").await;
    test.keep("n", "hello").await;
    let refusal = test.try_create("n + 1", "hello").await.expect_err("refused");
    assert_eq!((refusal.code, refusal.reason), (Code::FailedPrecondition, "TOO_MANY"));
    assert_eq!(refusal.retry_after, None);
    assert!(refusal.message.contains("10000 artifacts of a run"), "{refusal:?}");
    assert_eq!(test.fetch("n").await, Ok("hello".to_owned()));
}

#[tokio::test]
async fn artifacts_are_listed_by_name_and_type_in_pages() {
    let test = setup().await;
    for (name, content) in [("b", "1"), ("a/1", "2"), ("a/2", "3"), ("b", "4")] {
        test.keep(name, content).await;
    }
    let all = ["a/1", "a/2", "b", "b"];
    assert_eq!(test.names(ListArtifactsRequest::default()).await, all);
    let named = ListArtifactsRequest {
        name_pattern: Some("a/*".to_owned()),
        ..ListArtifactsRequest::default()
    };
    assert_eq!(test.names(named).await, ["a/1", "a/2"]);
    let other = ListArtifactsRequest {
        types: vec![2, 3],
        ..ListArtifactsRequest::default()
    };
    assert_eq!(test.names(other).await, Vec::<String>::new());
    assert_eq!(test.fetch("b").await, Ok("4".to_owned()));
    let mut found = Vec::new();
    let mut request = ListArtifactsRequest {
        run_id: Some(v1::RunId { value: "a".to_owned() }),
        page_size: 1,
        ..ListArtifactsRequest::default()
    };
    for _ in 0..5 {
        let page = test.artifacts.list(request.clone()).await.expect("a page");
        assert_eq!(page.total_count, 4);
        found.extend(page.artifacts.into_iter().map(|artifact| artifact.name));
        if page.next_page_token.is_empty() {
            break;
        }
        request.page_token = page.next_page_token;
    }
    assert_eq!(found, all);
}

#[tokio::test]
async fn a_lost_file_and_a_wrong_counter_are_found() {
    let test = setup().await;
    let id = test.keep("x", "hello").await;
    test.create("open", "hello").await;
    let readers = test.fixture.store.readers();
    let findings = || async { check(readers, &test.artifacts.files).await.expect("it is read") };
    assert_eq!(findings().await, Vec::<String>::new());
    test.artifacts.files.remove(&id, None).await.expect("removed");
    let found = findings().await;
    assert!(found.len() == 1 && found[0].contains(&id), "{found:?}");
}
