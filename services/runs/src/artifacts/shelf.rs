//! Artifacts of runs: opened, finalized, listed, fetched and swept.

use async_trait::async_trait;
use sqlx::{FromRow as _, SqliteConnection};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::address::{ADDRESS_LIFETIME, Addresses, Announced};
use super::commands::{Create, Drop, Finalize, Finalized, Forget};
use super::files::Files;
use super::rows::{self, COLUMNS, Upload};
use super::upload::{NewUpload, checksum, id};
use super::verdict::{Content, swept_before, unknown};
use crate::domain::{RunId, to_wire};
use crate::limits;
use crate::read::{
    PagePosition, SortKey, Statement, Value, check_pattern, failed, fetch, fingerprint, glob, page_size, pages,
};
use crate::refusal::{Code, Refusal};
use crate::roles::Uploads;
use crate::store::Store;
use crate::validate;
use crate::wire::v1::{
    CreateArtifactUploadRequest, CreateArtifactUploadResponse, FinalizeArtifactUploadRequest,
    FinalizeArtifactUploadResponse, GetArtifactDownloadUrlRequest, GetArtifactDownloadUrlResponse,
    ListArtifactsRequest, ListArtifactsResponse,
};

const SECOND_NS: i64 = 1_000_000_000;
/// How often uploads are swept that were not finalized.
const SWEEP_EVERY: std::time::Duration = std::time::Duration::from_secs(600);
/// Uploads that are swept in one go.
const SWEEP_ROWS: i64 = 100;

/// Artifacts of the runs of a store.
#[derive(Clone)]
pub struct Artifacts {
    store: Store,
    pub(super) files: Files,
    pub(super) addresses: Addresses,
}

impl Artifacts {
    /// Of a store, with files in a folder, reached at signed addresses.
    #[must_use]
    pub fn new(store: Store, files: Files, addresses: Addresses) -> Self {
        Self {
            store,
            files,
            addresses,
        }
    }

    pub(super) fn now_s(&self) -> i64 {
        self.store.now().div_euclid(SECOND_NS)
    }

    fn expires_s(&self) -> i64 {
        self.now_s().saturating_add(ADDRESS_LIFETIME.as_secs().cast_signed())
    }

    /// An upload by its id.
    pub(super) async fn upload(&self, upload_id: &str) -> Result<Upload, Refusal> {
        let id = id(upload_id).ok_or_else(|| unknown(upload_id))?;
        let mut on = self.store.readers().acquire().await.map_err(failed)?;
        let upload = rows::find(&id, &mut on).await.map_err(failed)?;
        upload.ok_or_else(|| unknown(upload_id))
    }

    /// Artifacts of a run by name, those of one name from the oldest to the newest.
    ///
    /// # Errors
    /// What the request has wrong, and no such run.
    pub async fn list(&self, mut request: ListArtifactsRequest) -> Result<ListArtifactsResponse, Refusal> {
        let run = validate::run_id(request.run_id.as_ref())?;
        let limit = page_size(request.page_size, limits::PAGE)?;
        if let Some(pattern) = &request.name_pattern {
            check_pattern("name_pattern", pattern)?;
        }
        let page_token = std::mem::take(&mut request.page_token);
        request.page_size = 0;
        let fingerprint = fingerprint(&request);
        let after = pages::read(&fingerprint, &page_token)?;
        let mut on = self.store.readers().acquire().await.map_err(failed)?;
        let number = run_number(&run, &mut on).await?;
        let mut rows = fetch(page(number, &request, after.as_ref(), limit), &mut on).await?;
        let is_last = rows.len() <= limit;
        rows.truncate(limit);
        let uploads: Vec<Upload> = rows
            .iter()
            .map(Upload::from_row)
            .collect::<Result<_, _>>()
            .map_err(failed)?;
        let next_page_token = match uploads.last() {
            Some(last) if !is_last => {
                let key = SortKey::Text(last.name.clone());
                pages::write(
                    &fingerprint,
                    &PagePosition {
                        key,
                        number: last.number,
                    },
                )
            }
            _ => String::new(),
        };
        let counted = fetch(count(number, &request), &mut on).await?;
        let total_count = counted
            .first()
            .map_or(Ok(0), |row| sqlx::Row::try_get(row, 0))
            .map_err(failed)?;
        Ok(ListArtifactsResponse {
            artifacts: uploads.iter().map(Upload::metadata).collect(),
            next_page_token,
            total_count,
        })
    }

    /// Where the newest artifact of a name is fetched.
    ///
    /// # Errors
    /// What the request has wrong, and no such artifact.
    pub async fn download_url(
        &self,
        request: GetArtifactDownloadUrlRequest,
    ) -> Result<GetArtifactDownloadUrlResponse, Refusal> {
        let run = validate::run_id(request.run_id.as_ref())?;
        let name = &request.artifact_name;
        validate::artifact_name("artifact_name", name)?;
        let mut on = self.store.readers().acquire().await.map_err(failed)?;
        run_number(&run, &mut on).await?;
        let artifact = rows::newest(&run, name, &mut on).await.map_err(failed)?;
        let artifact = artifact.ok_or_else(|| {
            let message = format!("Run {run} has no artifact {name:?}. An upload is one once it is finalized.");
            Refusal::new(Code::NotFound, "ARTIFACT_NOT_FOUND", message).at("artifact_name")
        })?;
        let expires_s = self.expires_s();
        Ok(GetArtifactDownloadUrlResponse {
            presigned_url: self.addresses.to_get(&artifact.id, expires_s),
            expires_at: Some(to_wire(expires_s.saturating_mul(SECOND_NS))),
            metadata: Some(artifact.metadata()),
        })
    }

    /// Deletes what was not finalized within a day, what was rejected, and the files of runs that are gone. Never an
    /// artifact of a run that is there. How many uploads were deleted.
    ///
    /// # Errors
    /// A store or a disk that does not answer.
    pub async fn sweep(&self) -> Result<usize, Refusal> {
        let mut swept = 0;
        loop {
            let before = swept_before(self.store.now());
            let mut on = self.store.readers().acquire().await.map_err(failed)?;
            let uploads = rows::to_sweep(before, SWEEP_ROWS, &mut on).await.map_err(failed)?;
            drop(on);
            let mut dropped = 0;
            for upload in &uploads {
                if self.store.write(Drop { id: upload.id.clone() }).await? {
                    self.files.remove(&upload.id, None).await.map_err(disk)?;
                    self.store.write(Forget { number: upload.number }).await?;
                    dropped += 1;
                }
            }
            swept += dropped;
            if dropped == 0 || (uploads.len() as i64) < SWEEP_ROWS {
                return Ok(swept);
            }
        }
    }

    /// Sweeps every ten minutes, until cancelled.
    pub async fn keep_swept(self, stop: CancellationToken) {
        let mut ticks = tokio::time::interval(SWEEP_EVERY);
        while stop.run_until_cancelled(ticks.tick()).await.is_some() {
            if let Err(error) = self.sweep().await {
                tracing::warn!(%error, "Uploads that were not finalized stay for now");
            }
        }
    }
}

#[async_trait]
impl Uploads for Artifacts {
    async fn create(&self, request: CreateArtifactUploadRequest) -> Result<CreateArtifactUploadResponse, Refusal> {
        let new = NewUpload::of(request)?;
        let id = Uuid::new_v4().to_string();
        let announced = Announced::new(&new.mime_type, new.bytes, new.checksum.as_ref());
        self.store.write(Create { id: id.clone(), new }).await?;
        let expires_s = self.expires_s();
        Ok(CreateArtifactUploadResponse {
            presigned_url: self.addresses.to_put(&id, &announced, expires_s),
            upload_id: id,
            expires_at: Some(to_wire(expires_s.saturating_mul(SECOND_NS))),
            required_headers: announced.headers().collect(),
        })
    }

    async fn finalize(
        &self,
        request: FinalizeArtifactUploadRequest,
    ) -> Result<FinalizeArtifactUploadResponse, Refusal> {
        let id = self.upload(&request.upload_id).await?.id;
        let bytes = u64::try_from(request.actual_size_bytes).map_err(|_| {
            let message = format!(
                "actual_size_bytes is {}; a file has 0 bytes or more",
                request.actual_size_bytes
            );
            Refusal::new(Code::InvalidArgument, "OUT_OF_RANGE", message).at("actual_size_bytes")
        })?;
        let claimed = Content {
            bytes,
            checksum: checksum("md5_checksum", &request.md5_checksum)?,
        };
        let received = self.files.received(&id).await.map_err(disk)?;
        let command = Finalize {
            id: id.clone(),
            claimed,
            received,
        };
        match self.store.write(command).await? {
            Finalized::Artifact(artifact) => {
                self.files.remove(&id, Some(&claimed.checksum)).await.map_err(disk)?;
                Ok(FinalizeArtifactUploadResponse {
                    artifact: Some(artifact),
                    warnings: Vec::new(),
                })
            }
            Finalized::Rejected(refusal) => {
                // What cannot be deleted now is swept.
                if let Err(error) = self.files.remove(&id, None).await {
                    tracing::warn!(%error, "The file of a rejected upload stays for now");
                }
                Err(refusal)
            }
        }
    }

    async fn run_of(&self, upload_id: &str) -> Result<Option<RunId>, Refusal> {
        let Some(id) = id(upload_id) else { return Ok(None) };
        let mut on = self.store.readers().acquire().await.map_err(failed)?;
        Ok(rows::run_of(&id, &mut on).await.map_err(failed)?.map(RunId::new))
    }
}

/// What a client is told where the disk does not do it.
pub(super) fn disk(error: std::io::Error) -> Refusal {
    tracing::warn!(%error, "The files of artifacts were not reached");
    let is_full = error.kind() == std::io::ErrorKind::StorageFull;
    let reason = if is_full { "DISK_FULL" } else { "FILES_UNAVAILABLE" };
    let message = "The server cannot reach the files of artifacts, or has no room for more. Try again later.";
    Refusal::new(Code::Unavailable, reason, message).again_after(std::time::Duration::from_secs(5))
}

async fn run_number(run: &RunId, on: &mut SqliteConnection) -> Result<i64, Refusal> {
    let found = crate::read::number_of(run.as_str(), on).await?;
    found.ok_or_else(|| crate::lifecycle::refusals::unknown_run(run))
}

fn page(number: i64, request: &ListArtifactsRequest, after: Option<&PagePosition>, limit: usize) -> Statement {
    let mut statement = Statement::default();
    statement.add(COLUMNS, []);
    conditions(number, request, &mut statement);
    if let Some(PagePosition {
        key: SortKey::Text(name),
        number,
    }) = after
    {
        let values = [Value::Text(name.clone()), Value::Number(*number)];
        statement.add(" AND (name, upload_no) > (?, ?)", values);
    }
    statement.add(" ORDER BY name, upload_no LIMIT ?", [Value::Number(limit as i64 + 1)]);
    statement
}

fn count(number: i64, request: &ListArtifactsRequest) -> Statement {
    let mut statement = Statement::default();
    statement.add("SELECT count(*) FROM upload", []);
    conditions(number, request, &mut statement);
    statement
}

fn conditions(number: i64, request: &ListArtifactsRequest, statement: &mut Statement) {
    statement.add(" WHERE run_no = ? AND state = 2", [Value::Number(number)]);
    if let Some(pattern) = request.name_pattern.as_ref().filter(|pattern| !pattern.is_empty()) {
        statement.add(" AND name GLOB ?", [Value::Text(glob(pattern))]);
    }
    if !request.types.is_empty() {
        let places = vec!["?"; request.types.len()].join(", ");
        let types = request.types.iter().map(|&number| Value::Number(number.into()));
        statement.add(&format!(" AND type IN ({places})"), types);
    }
}
