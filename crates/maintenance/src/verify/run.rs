//! The cluster's side: pages of the list, each held against its rows. `scan` goes on with
//! SQL's side, `again` reads both once more for whatever differed. Memory: two pages, the
//! suspects up to a limit, and eight bytes an object.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kindex_kube_client::{ClusterApi, ClusterError, ObjectName, Page};
use kindex_model::kind::{Kind, Platform};
use kindex_model::object::{Object, Uid};
use kindex_model::seen::{Seeing, Seen};
use kindex_store::progress::Progress;
use kindex_store::{IngesterStorage, MetadataStorage, RowImage, StoreError};

use super::compare::compare;
use super::confirm::Reading;
use super::held::{Held, HeldObjects};
use super::report::{Checked, Class, Difference, Finding};
use crate::patience::{Patience, patiently};

/// How often a list whose version is no longer kept is begun anew.
const LISTS_MAX: u32 = 5;

/// How a verification goes about it.
#[derive(Clone, Debug)]
pub struct Options {
    /// Only objects and rows of this namespace.
    pub namespace: Option<String>,
    /// How long a difference has to stand still to be one.
    pub settle: Duration,
    /// How often both sides are read again, at most.
    pub rounds: u32,
    /// Objects, or rows with their texts, that are read at once, at most.
    pub page_rows: u32,
    /// Rows without their texts that are read at once, at most.
    pub scan_rows: u32,
    /// How long failures are borne.
    pub patience: Patience,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            namespace: None,
            settle: Duration::from_secs(1),
            rounds: 5,
            page_rows: 500,
            scan_rows: 2_000,
            patience: Patience::default(),
        }
    }
}

/// Why a verification came to no end.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The cluster did not answer.
    #[error("{kind}: the cluster: {source}")]
    Cluster {
        /// The kind.
        kind: &'static str,
        /// As the cluster says it.
        #[source]
        source: ClusterError,
    },
    /// The database did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl VerifyError {
    /// Whether the cluster does not serve the kind: its CRD is not installed, or not in this version.
    pub fn is_unserved(&self) -> bool {
        matches!(
            self,
            Self::Cluster {
                source: ClusterError::NotFound(_),
                ..
            }
        )
    }
}

/// Where both sides are, the rows in those roles that a command needs.
pub struct Sides<S: ?Sized = dyn MetadataStorage> {
    /// Of the platform.
    pub platform: Platform,
    /// One side.
    pub cluster: Arc<dyn ClusterApi>,
    /// The other.
    pub storage: Arc<S>,
}

impl Sides {
    /// The same, for who only reads and writes as an ingester does.
    pub(crate) fn as_ingester(&self) -> Sides<dyn IngesterStorage> {
        Sides {
            platform: self.platform,
            cluster: self.cluster.clone(),
            storage: self.storage.clone(),
        }
    }
}

/// Compares all objects and rows of a kind. Findings go to `found` as soon as they are certain.
///
/// # Guarantees
/// Reads only. What is on its way while the verification runs is not reported: a difference was
/// there at two readings, `settle` apart, between which neither side moved, or its row did not
/// move while the object changed all the time.
///
/// # Errors
/// Where a side does not answer for longer than the patience.
pub async fn verify(
    sides: &Sides,
    kind: &'static Kind,
    options: &Options,
    progress: &dyn Progress,
    found: &mut (dyn FnMut(Finding) + Send),
) -> Result<Checked, VerifyError> {
    let records = patiently(options.patience, || sides.storage.quarantined(kind)).await?;
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
    run.strays().await?;
    run.confirm().await?;
    progress.end();
    Ok(run.checked)
}

/// An object or a row with a difference that may pass.
pub(super) struct Suspect {
    pub(super) uid: Uid,
    pub(super) name: ObjectName,
    pub(super) first: Reading,
    pub(super) last: Reading,
}

/// A verification under way.
pub(super) struct Run<'a> {
    pub(super) sides: &'a Sides,
    pub(super) kind: &'static Kind,
    pub(super) options: &'a Options,
    pub(super) progress: &'a dyn Progress,
    pub(super) found: &'a mut (dyn FnMut(Finding) + Send),
    pub(super) quarantined: BTreeMap<Uid, String>,
    pub(super) checked: Checked,
    /// Of a list that had to begin anew, what was reported already.
    pub(super) reported: BTreeSet<(Uid, Class)>,
    pub(super) suspects: Vec<Suspect>,
}

impl Run<'_> {
    /// Holds every object of the list against its row.
    async fn list(&mut self) -> Result<Seen, VerifyError> {
        for _ in 1..LISTS_MAX {
            match self.list_once().await {
                Err(VerifyError::Cluster {
                    source: ClusterError::Expired(reason),
                    ..
                }) => self.progress.note(&format!("the list begins anew: {reason}")),
                listed => return listed,
            }
        }
        self.list_once().await
    }

    async fn list_once(&mut self) -> Result<Seen, VerifyError> {
        let mut seeing = Seeing::default();
        self.checked.objects = 0;
        self.checked.held = HeldObjects::default();
        let mut limits = PageLimit::new(self.options.page_rows.max(1));
        let mut page = self.page(limits.rows, None).await?;
        let total = page.remaining.map(|remaining| remaining + page.len() as u64);
        self.progress.begin(self.kind.name, total);
        loop {
            limits.learn(&page);
            let token = page.continue_token.take();
            let (sides, kind, patience) = (self.sides, self.kind, self.options.patience);
            let next = async {
                match &token {
                    Some(token) => list_page(sides, kind, patience, limits.rows, Some(token))
                        .await
                        .map(Some),
                    None => Ok(None),
                }
            };
            let (next, compared) = tokio::join!(next, self.compare_page(page, &mut seeing));
            compared?;
            match next? {
                Some(next) => page = next,
                None => return Ok(seeing.finish()),
            }
        }
    }

    async fn page(&self, limit: u32, token: Option<&str>) -> Result<Page, VerifyError> {
        list_page(self.sides, self.kind, self.options.patience, limit, token).await
    }

    async fn compare_page(&mut self, page: Page, seeing: &mut Seeing) -> Result<(), VerifyError> {
        let count = page.len() as u64;
        for item in &page.unreadable {
            if let Some(uid) = &item.uid {
                seeing.add(uid);
            }
            if self.is_asked_for(&item.name.namespace) {
                let uid = item.uid.clone().unwrap_or_else(|| Uid::from(""));
                self.report(Finding {
                    namespace: item.name.namespace.clone(),
                    name: item.name.name.clone(),
                    ..Finding::of_uid(self.kind.name, &uid, Difference::new(Class::Unreadable, &*item.reason))
                });
            }
        }
        for object in &page.objects {
            seeing.add(&object.metadata.uid);
        }
        let objects: Vec<&Object> = page
            .objects
            .iter()
            .filter(|object| self.is_asked_for(&object.metadata.namespace))
            .collect();
        self.checked.objects += objects.len() as u64;
        let uids: Vec<Uid> = objects.iter().map(|object| object.metadata.uid.clone()).collect();
        let rows = self.images(&uids).await?;
        for object in objects {
            let row = rows.get(&*object.metadata.uid.0);
            if let Some(held) = Held::of(object, &self.sides.platform) {
                self.checked.held.add(held);
            }
            self.look_at(&object.metadata.uid, ObjectName::of(object), Some(object), row);
        }
        self.progress.advance(count);
        self.confirm_if_many().await
    }

    /// See [`Options::page_rows`].
    pub(super) fn page_rows(&self) -> usize {
        usize::try_from(self.options.page_rows.max(1)).unwrap_or(usize::MAX)
    }

    pub(super) fn is_asked_for(&self, namespace: &str) -> bool {
        self.options
            .namespace
            .as_deref()
            .is_none_or(|wanted| wanted == namespace)
    }

    pub(super) async fn images(&self, uids: &[Uid]) -> Result<BTreeMap<String, RowImage>, VerifyError> {
        let read = || self.sides.storage.row_images(self.kind, uids);
        let images = patiently(self.options.patience, read).await?;
        Ok(images.into_iter().map(|image| (image.uid.clone(), image)).collect())
    }

    pub(super) fn look_at(&mut self, uid: &Uid, name: ObjectName, object: Option<&Object>, row: Option<&RowImage>) {
        let differences = compare(self.kind, &self.sides.platform, object, row);
        if differences.is_empty() {
            return;
        }
        let reading = Reading::new(object, row, differences);
        self.suspects.push(Suspect {
            uid: uid.clone(),
            name,
            first: reading.clone(),
            last: reading,
        });
    }
}

async fn list_page(
    sides: &Sides,
    kind: &'static Kind,
    patience: Patience,
    limit: u32,
    token: Option<&str>,
) -> Result<Page, VerifyError> {
    let listed = patiently(patience, || sides.cluster.list(kind, limit, token)).await;
    listed.map_err(|source| VerifyError::Cluster {
        kind: kind.name,
        source,
    })
}

/// How many objects are asked for at once: fewer where they are large.
#[derive(Clone, Copy, Debug)]
struct PageLimit {
    rows: u32,
    most: u32,
}

impl PageLimit {
    /// What a page should weigh at most.
    const BYTES: usize = 4 << 20;
    /// What it should have at least.
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
