//! A running verification: what it has found, what it suspects, and how its steps read rows.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kindex_kube_client::ObjectName;
use kindex_model::kind::Kind;
use kindex_model::object::{Object, Uid};
use kindex_store::RowImage;
use kindex_store::progress::Progress;

use super::compare::compare;
use super::confirm::Reading;
use super::report::{Checked, Class, Finding};
use super::versions::is_unconverted;
use crate::retries::{RetryBudget, with_retries};
use crate::sides::{RepairError, Sides};

/// The options of a verification.
#[derive(Clone, Debug)]
pub struct Options {
    /// Only objects and rows of this namespace.
    pub namespace: Option<String>,
    /// How long a difference must last without a change to count.
    pub settle: Duration,
    /// How often both sides are read again, at most.
    pub rounds: u32,
    /// Objects, or rows with their texts, that are read at once, at most.
    pub page_rows: u32,
    /// Rows without their texts that are read at once, at most.
    pub scan_rows: u32,
    /// How long failures in a row are retried.
    pub retry_budget: RetryBudget,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            namespace: None,
            settle: Duration::from_secs(1),
            rounds: 5,
            page_rows: 500,
            scan_rows: 2_000,
            retry_budget: RetryBudget::default(),
        }
    }
}

/// An object or a row with a difference that may be a change in flight.
pub(super) struct Suspect {
    pub(super) uid: Uid,
    pub(super) name: ObjectName,
    pub(super) first: Reading,
    pub(super) last: Reading,
}

/// A running verification.
pub(super) struct Run<'a> {
    pub(super) sides: &'a Sides,
    pub(super) kind: &'static Kind,
    pub(super) options: &'a Options,
    pub(super) progress: &'a dyn Progress,
    pub(super) found: &'a mut (dyn FnMut(Finding) + Send),
    pub(super) quarantined: BTreeMap<Uid, String>,
    pub(super) checked: Checked,
    /// What was reported before the list was restarted.
    pub(super) reported: BTreeSet<(Uid, Class)>,
    pub(super) suspects: Vec<Suspect>,
}

impl Run<'_> {
    /// See [`Options::page_rows`].
    pub(super) fn page_rows(&self) -> usize {
        usize::try_from(self.options.page_rows.max(1)).unwrap_or(usize::MAX)
    }

    pub(super) fn is_selected(&self, namespace: &str) -> bool {
        self.options
            .namespace
            .as_deref()
            .is_none_or(|wanted| wanted == namespace)
    }

    pub(super) async fn images(&self, uids: &[Uid]) -> Result<BTreeMap<String, RowImage>, RepairError> {
        let read = || self.sides.storage.row_images(self.kind, uids);
        let images = with_retries(self.options.retry_budget, read).await?;
        Ok(images.into_iter().map(|image| (image.uid.clone(), image)).collect())
    }

    pub(super) fn look_at(&mut self, uid: &Uid, name: ObjectName, object: Option<&Object>, row: Option<&RowImage>) {
        let differences = compare(self.kind, &self.sides.platform, object, row);
        self.checked.unconverted += u64::from(row.is_some_and(|row| is_unconverted(self.kind, row)));
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

    pub(super) fn report(&mut self, finding: Finding) {
        let class = finding.differences[0].class;
        let anew = self.reported.insert((Uid::from(finding.uid.as_str()), class));
        if anew || finding.uid.is_empty() {
            self.checked.count(&finding);
            (self.found)(finding);
        }
    }
}
