//! Reads the list of a kind page by page, for backfill and release.

use std::sync::Arc;

use kindex_kube_client::{Page, ReadApi};
use kindex_model::kind::Kind;
use kindex_model::object::ResourceVersion;
use kindex_store::progress::Progress;

use crate::retries::{RetryBudget, with_retries};
use crate::sides::RepairError;

/// How often an expired list is restarted, at most.
const LISTS_MAX: u32 = 20;

/// A list to walk over.
pub(crate) struct Pages<'a> {
    pub(crate) kind: &'static Kind,
    pub(crate) cluster: Arc<dyn ReadApi>,
    /// Objects a page.
    pub(crate) page_rows: u32,
    pub(crate) retry_budget: RetryBudget,
    pub(crate) progress: &'a dyn Progress,
}

/// Where an interrupted list is resumed.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    pub(crate) continue_token: String,
    /// Version of the list that the token belongs to.
    pub(crate) version: ResourceVersion,
    /// Objects on the pages before.
    pub(crate) objects: u64,
}

/// A page, and where the next one begins.
pub(crate) struct Listed {
    pub(crate) page: Page,
    pub(crate) next: Option<String>,
}

/// The receiver of the pages of a list.
pub(crate) trait PageSink {
    /// A list of this version begins, after so many objects.
    fn begin(&mut self, version: ResourceVersion, objects: u64);

    /// Takes the next page. The one after it is listed once this returns.
    async fn take(&mut self, listed: Listed) -> Result<(), RepairError>;

    /// All pages were taken.
    async fn end(&mut self) -> Result<(), RepairError>;

    /// The list ended early: it is restarted, or reading stops.
    async fn stop(&mut self);

    /// The list is restarted: counts so far are void.
    fn begin_anew(&mut self);
}

impl Pages<'_> {
    /// Passes all pages to the sink, and returns the version of the list. An expired list is restarted.
    pub(crate) async fn walk<S: PageSink>(
        &self,
        mut start: Option<Start>,
        sink: &mut S,
    ) -> Result<ResourceVersion, RepairError> {
        let mut lists = 1;
        loop {
            let walked = self.walk_once(start.take(), sink).await;
            sink.stop().await;
            match walked {
                Ok(version) => return Ok(version),
                Err(error) => match error.expired().filter(|_| lists < LISTS_MAX) {
                    Some(reason) => self.progress.note(&format!("the list is restarted: {reason}")),
                    None => return Err(error),
                },
            }
            sink.begin_anew();
            lists += 1;
        }
    }

    async fn walk_once<S: PageSink>(&self, start: Option<Start>, sink: &mut S) -> Result<ResourceVersion, RepairError> {
        let token = start.as_ref().map(|start| start.continue_token.as_str());
        let mut listed = self.page(token).await?;
        let before = start.as_ref().map_or(0, |start| start.objects);
        let version = start.map_or(listed.page.resource_version, |start| start.version);
        let remaining = listed.page.remaining;
        let total = remaining.map(|remaining| before + listed.page.len() as u64 + remaining);
        self.progress.begin(self.kind.name, total);
        sink.begin(version, before);
        loop {
            let next = listed.next.clone();
            sink.take(listed).await?;
            match next {
                Some(token) => listed = self.page(Some(&token)).await?,
                None => break,
            }
        }
        sink.end().await?;
        Ok(version)
    }

    async fn page(&self, token: Option<&str>) -> Result<Listed, RepairError> {
        let list = || self.cluster.list(self.kind, self.page_rows, token);
        let page = with_retries(self.retry_budget, list).await;
        let mut page = page.map_err(|source| RepairError::cluster(self.kind, source))?;
        let next = page.continue_token.take();
        Ok(Listed { page, next })
    }
}
