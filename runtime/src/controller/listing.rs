//! First half of a relist: reads the whole list page by page and compares each page with its rows. Differences are
//! written like events. Memory: one page, and eight bytes per object.

use std::collections::HashMap;

use kindex_decide::row::Row;
use kindex_kube_client::Page;
use kindex_model::object::{Object, ResourceVersion, Uid};
use kindex_model::uid_set::{UidSet, UidSetBuilder};
use kindex_store::RowState;

use crate::message::Output;
use crate::settings::Settings;

/// A list that is being read.
#[derive(Debug)]
pub(super) struct Listing {
    continue_token: Option<String>,
    /// The version of the list; known after the first page.
    version: Option<ResourceVersion>,
    seen: UidSetBuilder,
    /// Whether an item has no uid, so that missing objects cannot be determined.
    unidentified: bool,
    /// Whether the cluster was restored: it wins although it is older than SQL.
    restored: bool,
    /// The newest version that the cluster had reported when the list began.
    newest: ResourceVersion,
    step: Step,
}

#[derive(Debug)]
enum Step {
    /// A page was requested.
    Page,
    /// The rows of a page were requested.
    Rows(Page),
    /// The next page waits for room.
    Room,
}

/// A page with its rows.
#[derive(Debug)]
pub(super) struct Compared {
    pub(super) objects: Vec<(Object, Option<Row>)>,
    /// The version up to which the list is complete. A row up to here that is newer than its object holds a version
    /// that the cluster has lost.
    pub(super) horizon: ResourceVersion,
}

/// A list that was read to its end.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) version: ResourceVersion,
    /// Every uid in it; `None` if an item has none.
    pub(super) seen: Option<UidSet>,
}

/// What follows a page that was compared.
#[derive(Debug)]
pub(super) enum Next {
    /// Request another page.
    Page,
    /// That was the last.
    End(Listed),
}

impl Listing {
    /// Begins a list. `newest`: the newest version that the cluster has reported.
    pub(super) fn new(restored: bool, newest: ResourceVersion) -> Self {
        Self {
            continue_token: None,
            version: None,
            seen: UidSetBuilder::default(),
            unidentified: false,
            restored,
            newest,
            step: Step::Page,
        }
    }

    /// The same list from its beginning.
    pub(super) fn anew(&self, newest: ResourceVersion) -> Self {
        Self::new(self.restored, newest)
    }

    pub(super) fn waits_for_room(&self) -> bool {
        matches!(self.step, Step::Room)
    }

    /// The request that the list waits for.
    pub(super) fn request(&self, settings: &Settings) -> Output {
        match &self.step {
            Step::Rows(page) => {
                let uids = page.objects.iter().map(|object| object.metadata.uid.clone());
                Output::ReadPageRows(uids.collect())
            }
            Step::Page | Step::Room => Output::List {
                continue_token: self.continue_token.clone(),
                limit: settings.page_rows,
            },
        }
    }

    /// Whether the first page is older than what the cluster reported before, which shows a restoration.
    pub(super) fn is_of_the_past(&self, page: &Page) -> bool {
        self.version.is_none() && page.resource_version < self.newest
    }

    /// Takes a page. Returns whether its rows must be read.
    pub(super) fn take(&mut self, page: Page) -> bool {
        self.version.get_or_insert(page.resource_version);
        self.continue_token.clone_from(&page.continue_token);
        for item in &page.unreadable {
            match &item.uid {
                Some(uid) => self.seen.add(uid),
                None => self.unidentified = true,
            }
        }
        for object in &page.objects {
            self.seen.add(&object.metadata.uid);
        }
        let rows = !page.objects.is_empty();
        self.step = if rows { Step::Rows(page) } else { Step::Room };
        rows
    }

    /// Compares the page with its rows, if these were requested.
    pub(super) fn compare(&mut self, rows: &[RowState]) -> Option<Compared> {
        let Step::Rows(page) = std::mem::replace(&mut self.step, Step::Room) else {
            return None;
        };
        let rows: HashMap<&Uid, &RowState> = rows.iter().map(|row| (&row.uid, row)).collect();
        let objects = page.objects.into_iter().map(|object| {
            let row = rows
                .get(&object.metadata.uid)
                .map(|row| Row::beside(row, Some(&object)));
            (object, row)
        });
        Some(Compared {
            objects: objects.collect(),
            horizon: match self.restored {
                true => ResourceVersion(u64::MAX),
                false => self.version.unwrap_or_default(),
            },
        })
    }

    /// What follows if there is room; `None` while a request is in flight.
    pub(super) fn go_on(&mut self) -> Option<Next> {
        if !self.waits_for_room() {
            return None;
        }
        if self.continue_token.is_some() {
            self.step = Step::Page;
            return Some(Next::Page);
        }
        let seen = std::mem::take(&mut self.seen);
        Some(Next::End(Listed {
            version: self.version.expect("a page came before"),
            seen: (!self.unidentified).then(|| seen.finish()),
        }))
    }
}

#[cfg(test)]
mod tests {
    use kindex_kube_client::{ObjectName, Unreadable};

    use super::*;

    fn page(names: &[&str], next: Option<&str>) -> Page {
        let object = |name: &&str| {
            let text = format!(r#"{{"metadata":{{"name":"{name}","uid":"{name}","resourceVersion":"5"}}}}"#);
            Object::parse_str(&text).expect("an object")
        };
        Page {
            objects: names.iter().map(object).collect(),
            resource_version: ResourceVersion(7),
            continue_token: next.map(str::to_owned),
            ..Page::default()
        }
    }

    #[test]
    fn pages_follow_one_another_and_the_end_knows_all_of_them() {
        let mut listing = Listing::new(false, ResourceVersion(7));
        assert!(listing.take(page(&["a"], Some("more"))));
        assert!(listing.go_on().is_none(), "its rows are being read");
        let compared = listing.compare(&[]).expect("rows were requested");
        assert_eq!((compared.objects.len(), compared.horizon), (1, ResourceVersion(7)));
        assert!(matches!(listing.go_on(), Some(Next::Page)));
        assert!(!listing.take(page(&[], None)), "an empty page has no rows");
        let Some(Next::End(Listed {
            version,
            seen: Some(seen),
        })) = listing.go_on()
        else {
            panic!("that was the last page");
        };
        assert_eq!(version, ResourceVersion(7));
        assert!(seen.contains(&Uid::from("a")) && !seen.contains(&Uid::from("b")));
    }

    #[test]
    fn a_list_with_an_item_without_uid_finds_no_orphans() {
        let mut listing = Listing::new(false, ResourceVersion(0));
        let unreadable = Unreadable {
            name: ObjectName {
                namespace: String::new(),
                name: "x".to_owned(),
            },
            uid: None,
            reason: "no uid".to_owned(),
        };
        listing.take(Page {
            unreadable: vec![unreadable],
            ..page(&[], None)
        });
        assert!(matches!(listing.go_on(), Some(Next::End(Listed { seen: None, .. }))));
    }

    #[test]
    fn only_the_first_page_shows_that_the_cluster_was_restored() {
        let mut listing = Listing::new(false, ResourceVersion(8));
        assert!(listing.is_of_the_past(&page(&["a"], None)));
        listing.take(page(&["a"], None));
        assert!(!listing.is_of_the_past(&page(&["b"], None)));
    }
}
