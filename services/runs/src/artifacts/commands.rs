//! What of artifacts goes through the writer: a change of state at a time, each decided within its transaction, so that
//! of a finalize and a sweep at the same moment one wins.

use std::time::Duration;

use super::rows;
use super::upload::NewUpload;
use super::verdict::{Content, State, Verdict, judge, unknown};
use crate::domain::Status;
use crate::lifecycle::{Call, permit, refusals};
use crate::limits;
use crate::refusal::{Code, Refusal};
use crate::store::{Command, Failure, Tx};
use crate::wire::v1::ArtifactMetadata;

/// When to try again where too many uploads are open.
const RETRY_LATER: Duration = Duration::from_secs(5);

/// Opens an upload.
#[derive(Debug)]
pub(super) struct Create {
    pub(super) id: String,
    pub(super) new: NewUpload,
}

impl Command for Create {
    type Answer = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Failure> {
        let run = &self.new.run;
        let on = tx.read().await?;
        let row: Option<(i64, i64)> = sqlx::query_as("SELECT run_no, status FROM run WHERE run_id = ?1")
            .bind(run.as_str())
            .fetch_optional(&mut *on)
            .await?;
        let (number, status) = row.ok_or_else(|| refusals::unknown_run(run))?;
        permit(Call::CreateUpload, run, Status::of_number(status))?;
        let (open, finalized) = rows::counts(number, on).await?;
        if finalized >= limits::ARTIFACTS_OF_RUN.max as i64 {
            // There is no use in waiting: with ResourceExhausted, clients would try again without end.
            return Err(full(Code::FailedPrecondition, limits::ARTIFACTS_OF_RUN, "use another run").into());
        }
        if open >= limits::UPLOADS_OF_RUN.max as i64 {
            let refusal = full(Code::ResourceExhausted, limits::UPLOADS_OF_RUN, "finalize some first");
            return Err(refusal.again_after(RETRY_LATER).into());
        }
        let now = tx.now();
        let on = tx.write().await?;
        rows::insert(&self.id, number, &self.new, now, on).await?;
        sqlx::query("UPDATE run SET last_seen_at = max(last_seen_at, ?2) WHERE run_no = ?1")
            .bind(number)
            .bind(now)
            .execute(on)
            .await?;
        Ok(())
    }
}

fn full(code: Code, limit: limits::Limit, advice: &str) -> Refusal {
    let message = format!("A run has at most {} {}; {advice}.", limit.max, limit.of);
    Refusal::new(code, "TOO_MANY", message).at("run_id")
}

/// Makes an upload an artifact, or drops it.
#[derive(Debug)]
pub(super) struct Finalize {
    pub(super) id: String,
    pub(super) claimed: Content,
    /// The contents on disk, which nobody changes.
    pub(super) received: Vec<Content>,
}

/// What became of an upload.
#[derive(Debug)]
pub(super) enum Finalized {
    /// It is an artifact.
    Artifact(ArtifactMetadata),
    /// It was dropped: its files are to be deleted.
    Rejected(Refusal),
}

impl Command for Finalize {
    type Answer = Finalized;

    async fn apply(&self, tx: &mut Tx) -> Result<Finalized, Failure> {
        let found = rows::find(&self.id, tx.read().await?).await?;
        let mut upload = found.ok_or_else(|| unknown(&self.id))?;
        let announced = (upload.bytes, upload.checksum);
        match judge(&self.id, upload.state, announced, self.claimed, &self.received) {
            Verdict::Stored => Ok(Finalized::Artifact(upload.metadata())),
            Verdict::Refuse(refusal) => Err(refusal.into()),
            Verdict::Reject(refusal) => {
                rows::set_dropped(upload.number, tx.write().await?).await?;
                Ok(Finalized::Rejected(refusal))
            }
            Verdict::Finalize => {
                let now = tx.now();
                let on = tx.write().await?;
                rows::set_finalized(upload.number, self.claimed, now, on).await?;
                rows::count_artifact(upload.run_number, now, on).await?;
                upload.checksum = Some(self.claimed.checksum);
                upload.finalized_at = Some(now);
                Ok(Finalized::Artifact(upload.metadata()))
            }
        }
    }
}

/// Drops an upload, unless it was finalized meanwhile and its run is there; whether its files are to be deleted.
#[derive(Debug)]
pub(super) struct Drop {
    pub(super) id: String,
}

impl Command for Drop {
    type Answer = bool;

    async fn apply(&self, tx: &mut Tx) -> Result<bool, Failure> {
        let on = tx.read().await?;
        let Some(upload) = rows::find(&self.id, &mut *on).await? else {
            return Ok(true);
        };
        let has_run = rows::run_of(&self.id, on).await?.is_some();
        match upload.state {
            State::Dropped => Ok(true),
            State::Finalized if has_run => Ok(false),
            State::Open | State::Finalized => {
                rows::set_dropped(upload.number, tx.write().await?).await?;
                Ok(true)
            }
        }
    }
}

/// Forgets a dropped upload whose files are deleted.
#[derive(Debug)]
pub(super) struct Forget {
    pub(super) number: i64,
}

impl Command for Forget {
    type Answer = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Failure> {
        rows::delete(self.number, tx.write().await?).await?;
        Ok(())
    }
}
