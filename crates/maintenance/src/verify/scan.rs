//! SQL's side: rows that the list did not show, names with two open rows, and labels or annotations without a row.

use std::collections::BTreeSet;

use kindex_kube_client::ObjectName;
use kindex_model::object::Uid;
use kindex_model::uid_set::UidSet;
use kindex_query::Life;
use kindex_store::RowState;

use super::report::{Class, Difference, Finding};
use super::state::Run;
use crate::retries::with_retries;
use crate::sides::RepairError;

impl Run<'_> {
    /// Checks every row that the list did not show, and looks up its object if the row is live.
    pub(super) async fn scan(&mut self, seen: &UidSet) -> Result<(), RepairError> {
        let mut after = None;
        loop {
            let read = || self.sides.storage.scan(self.kind, after, self.options.scan_rows);
            let mut states = with_retries(self.options.retry_budget, read).await?;
            let Some(last) = states.last() else { return Ok(()) };
            after = Some(last.arrival);
            states.retain(|state| self.is_selected(&state.namespace));
            self.checked.rows += states.len() as u64;
            self.namesakes(&states).await?;
            states.retain(|state| !seen.contains(&state.uid));
            for page in states.chunks(self.page_rows()) {
                let uids: Vec<Uid> = page.iter().map(|state| state.uid.clone()).collect();
                let rows = self.images(&uids).await?;
                for state in page {
                    let name = ObjectName {
                        namespace: state.namespace.clone(),
                        name: state.name.clone(),
                    };
                    self.look_at(&state.uid, name, None, rows.get(&*state.uid.0));
                }
                self.confirm_if_many().await?;
            }
        }
    }

    /// Reports those of these rows that share a name with another open row.
    async fn namesakes(&mut self, states: &[RowState]) -> Result<(), RepairError> {
        let not_deleted = states.iter().filter(|state| state.life != Life::Deleted);
        let uids: Vec<Uid> = not_deleted.map(|state| state.uid.clone()).collect();
        let twice = self.twice(Check::Namesake, &uids).await?;
        for state in states.iter().filter(|state| twice.contains(&state.uid)) {
            let difference = Difference::new(Class::Namesake, "another row of this name is not deleted either");
            self.report(Finding {
                namespace: state.namespace.clone(),
                name: state.name.clone(),
                ..Finding::of_uid(self.kind.name, &state.uid, difference)
            });
        }
        Ok(())
    }

    /// Reports labels and annotations without a row.
    pub(super) async fn side_orphans(&mut self) -> Result<(), RepairError> {
        if self.options.namespace.is_some() {
            // Without a row, their namespace is unknown.
            return Ok(());
        }
        let mut after = None;
        loop {
            let read = || {
                self.sides
                    .storage
                    .side_owners(self.kind, after.as_ref(), self.options.scan_rows)
            };
            let owners = with_retries(self.options.retry_budget, read).await?;
            let Some(last) = owners.last() else { return Ok(()) };
            after = Some(last.clone());
            let orphans = self.twice(Check::SideOrphan, &owners).await?;
            for uid in orphans {
                let difference = Difference::new(Class::OrphanedSides, "labels or annotations without a row");
                self.report(Finding::of_uid(self.kind.name, &uid, difference));
            }
        }
    }

    /// Those of these uids for which a check fails twice, `settle` apart.
    async fn twice(&self, check: Check, uids: &[Uid]) -> Result<BTreeSet<Uid>, RepairError> {
        let first = self.once(check, uids).await?;
        if first.is_empty() {
            return Ok(BTreeSet::new());
        }
        tokio::time::sleep(self.options.settle).await;
        Ok(self.once(check, &first).await?.into_iter().collect())
    }

    async fn once(&self, check: Check, uids: &[Uid]) -> Result<Vec<Uid>, RepairError> {
        let storage = &self.sides.storage;
        let answer = match check {
            Check::Namesake => with_retries(self.options.retry_budget, || storage.namesakes(self.kind, uids)).await,
            Check::SideOrphan => {
                with_retries(self.options.retry_budget, || storage.orphaned_sides(self.kind, uids)).await
            }
        };
        Ok(answer?)
    }
}

/// A check that asks no cluster.
#[derive(Clone, Copy, Debug)]
enum Check {
    Namesake,
    SideOrphan,
}
