//! A subscriber who follows the outbox of the production store. After each write it has to know exactly the objects
//! that exist, and since when each of them is being deleted.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kindex_model::kind::Kind;
use kindex_model::object::Uid;
use kindex_query::Life;
use kindex_store::{Mark, Outbox};

use super::database::SimDatabase;

/// Entries of a page: fewer than a batch has.
const PAGE: u32 = 2;

/// What it knows.
#[derive(Debug, Default)]
pub(crate) struct Subscriber {
    mark: Mark,
    objects: BTreeMap<Uid, Option<Timestamp>>,
}

impl Subscriber {
    /// Reads on. Gives back every difference between what it knows then and the model.
    pub(crate) async fn follow<O: Outbox + ?Sized>(
        &mut self,
        outbox: &O,
        kind: &Kind,
        model: &SimDatabase,
    ) -> Option<String> {
        loop {
            let page = outbox.since(kind, self.mark, PAGE).await;
            let Some((entries, mark)) = page.expect("the outbox can be read") else {
                return Some(format!("the outbox does not know its own {:?}", self.mark));
            };
            self.mark = mark;
            if entries.is_empty() {
                break;
            }
            for entry in entries {
                if entry.erased {
                    self.objects.remove(&entry.uid);
                } else {
                    self.objects.insert(entry.uid, entry.deletion_timestamp);
                }
            }
        }
        let existing = model.rows.iter().filter_map(|(uid, row)| {
            let deletion = match row.life() {
                Life::Live => row.object().metadata.deletion_timestamp,
                // What it went through while it left the cluster was no deletion.
                Life::Archived => None,
                Life::Deleted => return None,
            };
            Some((uid.clone(), deletion))
        });
        let existing: BTreeMap<Uid, Option<Timestamp>> = existing.collect();
        let known = &self.objects;
        (*known != existing).then(|| format!("a subscriber knows {known:?} instead of {existing:?}"))
    }
}
