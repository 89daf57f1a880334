//! A verification from its beginning to its end, and the cluster's side: compares each page of the list with its rows.
//! `scan` continues with SQL's side, and `again` reads both sides of what differed. Memory: two pages, the suspects up
//! to a limit, and eight bytes per object.

use std::collections::BTreeSet;

use kindex_kube_client::{ObjectName, Page};
use kindex_model::kind::Kind;
use kindex_model::object::{Object, Uid};
use kindex_model::uid_set::{UidSet, UidSetBuilder};
use kindex_store::progress::Progress;

use super::held::{HeldObject, HeldObjects};
use super::report::{Checked, Class, Difference, Finding};
use super::state::{Options, Run};
use crate::retries::{RetryBudget, with_retries};
use crate::sides::{RepairError, Sides};

/// How often an expired list is restarted.
const LISTS_MAX: u32 = 5;

/// Compares all objects and rows of a kind. Findings go to `found` as soon as they are certain.
///
/// # Guarantees
/// Read only. Changes in flight are not reported: a difference was found in two readings, `settle` apart, between which
/// neither side changed, or its row was not written while the object kept changing.
///
/// # Errors
/// If the cluster or the database does not answer within the retry budget.
pub async fn verify(
    sides: &Sides,
    kind: &'static Kind,
    options: &Options,
    progress: &dyn Progress,
    found: &mut (dyn FnMut(Finding) + Send),
) -> Result<Checked, RepairError> {
    let records = with_retries(options.retry_budget, || sides.storage.quarantined(kind)).await?;
    let mut run = Run {
        sides,
        kind,
        options,
        progress,
        found,
        quarantined: records.into_iter().map(|record| (record.uid, record.reason)).collect(),
        checked: Checked {
            kind: kind.name,
            ..Checked::default()
        },
        reported: BTreeSet::new(),
        suspects: Vec::new(),
    };
    let seen = run.list().await?;
    run.scan(&seen).await?;
    run.side_orphans().await?;
    run.confirm().await?;
    progress.end();
    Ok(run.checked)
}

impl Run<'_> {
    /// Compares every object of the list with its row.
    async fn list(&mut self) -> Result<UidSet, RepairError> {
        for _ in 1..LISTS_MAX {
            match self.list_once().await {
                Err(error) => match error.expired() {
                    Some(reason) => self.progress.note(&format!("the list is restarted: {reason}")),
                    None => return Err(error),
                },
                listed => return listed,
            }
        }
        self.list_once().await
    }

    async fn list_once(&mut self) -> Result<UidSet, RepairError> {
        let mut seen = UidSetBuilder::default();
        self.checked.objects = 0;
        self.checked.held = HeldObjects::default();
        self.checked.unconverted = 0;
        let mut limits = PageLimit::new(self.options.page_rows.max(1));
        let mut page = self.page(limits.rows, None).await?;
        let total = page.remaining.map(|remaining| remaining + page.len() as u64);
        self.progress.begin(self.kind.name, total);
        loop {
            limits.learn(&page);
            let token = page.continue_token.take();
            let (sides, kind, retry_budget) = (self.sides, self.kind, self.options.retry_budget);
            let next = async {
                match &token {
                    Some(token) => list_page(sides, kind, retry_budget, limits.rows, Some(token))
                        .await
                        .map(Some),
                    None => Ok(None),
                }
            };
            let (next, compared) = tokio::join!(next, self.compare_page(page, &mut seen));
            compared?;
            match next? {
                Some(next) => page = next,
                None => return Ok(seen.finish()),
            }
        }
    }

    async fn page(&self, limit: u32, token: Option<&str>) -> Result<Page, RepairError> {
        list_page(self.sides, self.kind, self.options.retry_budget, limit, token).await
    }

    async fn compare_page(&mut self, page: Page, seen: &mut UidSetBuilder) -> Result<(), RepairError> {
        let count = page.len() as u64;
        for item in &page.unreadable {
            if let Some(uid) = &item.uid {
                seen.add(uid);
            }
            if self.is_selected(&item.name.namespace) {
                let uid = item.uid.clone().unwrap_or_else(|| Uid::from(""));
                self.report(Finding {
                    namespace: item.name.namespace.clone(),
                    name: item.name.name.clone(),
                    ..Finding::of_uid(self.kind.name, &uid, Difference::new(Class::Unreadable, &*item.reason))
                });
            }
        }
        for object in &page.objects {
            seen.add(&object.metadata.uid);
        }
        let objects: Vec<&Object> = page
            .objects
            .iter()
            .filter(|object| self.is_selected(&object.metadata.namespace))
            .collect();
        self.checked.objects += objects.len() as u64;
        let uids: Vec<Uid> = objects.iter().map(|object| object.metadata.uid.clone()).collect();
        let rows = self.images(&uids).await?;
        for object in objects {
            let row = rows.get(&*object.metadata.uid.0);
            if let Some(held) = HeldObject::of(object, &self.sides.platform) {
                self.checked.held.add(held);
            }
            self.look_at(&object.metadata.uid, ObjectName::of(object), Some(object), row);
        }
        self.progress.advance(count);
        self.confirm_if_many().await
    }
}

async fn list_page(
    sides: &Sides,
    kind: &'static Kind,
    retry_budget: RetryBudget,
    limit: u32,
    token: Option<&str>,
) -> Result<Page, RepairError> {
    let listed = with_retries(retry_budget, || sides.cluster.list(kind, limit, token)).await;
    listed.map_err(|source| RepairError::cluster(kind, source))
}

/// The page size of the list: fewer objects if they are large.
#[derive(Clone, Copy, Debug)]
struct PageLimit {
    rows: u32,
    most: u32,
}

impl PageLimit {
    /// Most bytes that a page should have.
    const BYTES: usize = 4 << 20;
    /// Least objects that it should have.
    const FEW: u32 = 10;

    fn new(most: u32) -> Self {
        Self { rows: most, most }
    }

    fn learn(&mut self, page: &Page) {
        let bytes: usize = page.objects.iter().map(|object| object.text().len()).sum();
        let mean = bytes / page.objects.len().max(1) + 1;
        self.rows = u32::try_from(Self::BYTES / mean)
            .unwrap_or(u32::MAX)
            .clamp(Self::FEW.min(self.most), self.most);
    }
}
