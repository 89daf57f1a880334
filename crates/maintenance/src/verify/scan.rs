//! SQL's side: rows that no page of the list showed, names that two rows bear, and sides
//! without a row.

use std::collections::BTreeSet;

use kindex_kube_client::ObjectName;
use kindex_model::object::Uid;
use kindex_model::seen::Seen;
use kindex_query::Life;
use kindex_store::RowState;

use super::report::{Class, Difference, Finding};
use super::run::Run;
use crate::retries::with_retries;
use crate::sides::RepairError;

impl Run<'_> {
    /// Holds every row that the list did not show against itself, and asks for its object where
    /// the row says that there is one.
    pub(super) async fn scan(&mut self, seen: &Seen) -> Result<(), RepairError> {
        let mut after = None;
        loop {
            let read = || self.sides.storage.scan(self.kind, after, self.options.scan_rows);
            let mut states = with_retries(self.options.retry_budget, read).await?;
            let Some(last) = states.last() else { return Ok(()) };
            after = Some(last.arrival);
            states.retain(|state| self.is_asked_for(&state.namespace));
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

    /// Of these rows, those that share a name with another one.
    async fn namesakes(&mut self, states: &[RowState]) -> Result<(), RepairError> {
        let standing = states.iter().filter(|state| state.life != Life::Deleted);
        let uids: Vec<Uid> = standing.map(|state| state.uid.clone()).collect();
        let twice = self.twice(Doubt::Namesake, &uids).await?;
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

    /// Labels and annotations of which there is no row.
    pub(super) async fn side_orphans(&mut self) -> Result<(), RepairError> {
        if self.options.namespace.is_some() {
            // Without a row nobody knows their namespace.
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
            let orphans = self.twice(Doubt::SideOrphan, &owners).await?;
            for uid in orphans {
                let difference = Difference::new(Class::Stray, "labels or annotations without a row");
                self.report(Finding::of_uid(self.kind.name, &uid, difference));
            }
        }
    }

    /// Of which of these uids a doubt holds at two moments.
    async fn twice(&self, doubt: Doubt, uids: &[Uid]) -> Result<BTreeSet<Uid>, RepairError> {
        let first = self.once(doubt, uids).await?;
        if first.is_empty() {
            return Ok(BTreeSet::new());
        }
        tokio::time::sleep(self.options.settle).await;
        Ok(self.once(doubt, &first).await?.into_iter().collect())
    }

    async fn once(&self, doubt: Doubt, uids: &[Uid]) -> Result<Vec<Uid>, RepairError> {
        let storage = &self.sides.storage;
        let answer = match doubt {
            Doubt::Namesake => with_retries(self.options.retry_budget, || storage.namesakes(self.kind, uids)).await,
            Doubt::SideOrphan => with_retries(self.options.retry_budget, || storage.strays(self.kind, uids)).await,
        };
        Ok(answer?)
    }
}

/// What a row or a uid may be, whatever the cluster says.
#[derive(Clone, Copy, Debug)]
enum Doubt {
    Namesake,
    SideOrphan,
}
