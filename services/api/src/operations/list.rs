//! Lists over the cluster and SQL: first the objects in the cluster, at one version, then the archived ones. Pages are
//! bounded, and no object is on two pages because it was archived or restored in between.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use jiff::{SignedDuration, Timestamp};
use kindex_kube_api::list::List;
use kindex_kube_api::request::{Verb, parameter};
use kindex_model::object::Uid;
use kindex_query::{Life, Stored};
use kindex_store::ListAt;
use serde_json::value::RawValue;

use super::cluster::{Call, Upstream};
use super::objects::Head;
use super::rights::RequiredPermission;
use super::selection::{Selected, select, selectors};
use super::snapshot::{CollectionVersion, UIDS_MAX};
use super::token::{Next, Token};
use super::{Answer, Caller, ListOptions, Operations, Refusal, Resource, refusal, version_of_cluster};

/// What left the cluster less than this before a list began is looked for in the list's own version of the cluster:
/// clocks differ, and a commit takes its time.
const MARGIN: SignedDuration = SignedDuration::from_mins(1);
/// How many are looked for one by one, at once. For more of them in a page the cluster's list is read as a whole.
const LOOKUPS: usize = 8;

/// A page of a list.
#[derive(Clone, Debug)]
pub struct Listed {
    /// JSON texts.
    pub items: Vec<String>,
    /// The version of the cluster that the list is of; a watch may begin there.
    pub resource_version: String,
    /// Fetches the next page; empty after the last.
    pub continue_token: String,
}

/// A page of the cluster.
pub(super) struct Page(pub(super) List);

impl Page {
    pub(super) fn read(answer: &Answer) -> Result<Self, Refusal> {
        let read = serde_json::from_slice(&answer.text).map(Self);
        read.map_err(|error| Refusal::unreachable(&error))
    }

    /// The token of the next page, where there is one.
    pub(super) fn next(&self) -> Option<&str> {
        self.0.metadata.next()
    }

    fn uids(&self) -> Vec<Uid> {
        let items = self.0.items.iter().flatten();
        let heads = items.map(|item| Head::read(item.get().as_bytes()));
        heads.map(|head| Uid::from(head.metadata.uid.as_str())).collect()
    }
}

/// A list under way.
struct Walk<'a> {
    operations: &'a Operations,
    caller: &'a Caller,
    resource: Resource,
    options: &'a ListOptions,
    version: String,
    began: Timestamp,
    limit: usize,
    items: Vec<String>,
}

impl Operations {
    /// A page of the objects of a kind: from the cluster and archived ones.
    ///
    /// # Errors
    /// 400 for selectors and tokens that are none, 410 for a token whose version the cluster has forgotten.
    pub async fn list(
        &self,
        caller: &Caller,
        resource: impl Into<Resource>,
        options: &ListOptions,
    ) -> Result<Listed, Refusal> {
        let resource = resource.into();
        let permission = RequiredPermission::of(Verb::List, resource, options.namespace.as_deref());
        self.rights.allow(caller, permission).await?;
        if let Some(time) = options.at {
            return self.list_past(resource, options, time).await;
        }
        if options.include_deleted {
            self.backends.store()?;
        }
        let mut walk = Walk {
            operations: self,
            caller,
            resource,
            options,
            version: String::new(),
            began: self.backends.now(),
            limit: self.sizes.of_page(options.limit) as usize,
            items: Vec::new(),
        };
        // Refused before anything is read.
        let selected = select(resource, options)?;
        let kind = resource.kind;
        let next = match options.continue_token.as_str() {
            "" => walk.cluster_page(None).await?,
            token => {
                let token = Token::decode(token, kind, options)?;
                walk.version = token.version;
                walk.began = token.began;
                match token.next {
                    Next::Cluster(token) => walk.cluster_page(Some(token)).await?,
                    next @ (Next::Stored | Next::StoredAfter(_)) => Some(next),
                }
            }
        };
        let next = match next {
            Some(Next::Stored) => walk.stored_page(selected, None).await?,
            Some(Next::StoredAfter(token)) => walk.stored_page(selected, Some(token)).await?,
            next @ (Some(Next::Cluster(_)) | None) => next,
        };
        let continue_token = next
            .map(|next| Token::new(kind, options, &walk.version, walk.began, next).encode())
            .unwrap_or_default();
        Ok(Listed {
            items: walk.items,
            resource_version: walk.version,
            continue_token,
        })
    }

    async fn list_past(&self, resource: Resource, options: &ListOptions, time: Timestamp) -> Result<Listed, Refusal> {
        if !options.labels.is_empty() || !options.fields.is_empty() {
            return Err(Refusal::bad_request(
                "selectors do not apply to the past: leave them out, or leave out at=",
            ));
        }
        let wanted = ListAt {
            time,
            namespace: options.namespace.clone(),
            limit: self.sizes.of_page(options.limit),
        };
        let token = Some(options.continue_token.as_str()).filter(|token| !token.is_empty());
        let page = self.backends.store()?.list_at(resource.kind, &wanted, token).await;
        let page = page.map_err(|error| refusal::of_query(&error))?;
        let view = self.backends.view(resource);
        let items = page.items.iter().map(|stored| view.past(&stored.object));
        Ok(Listed {
            items: items.map(Cow::into_owned).collect(),
            resource_version: "0".to_owned(),
            continue_token: page.continue_token.unwrap_or_default(),
        })
    }
}

impl Walk<'_> {
    /// Takes a page of the cluster, without those of its objects that SQL will show.
    async fn cluster_page(&mut self, token: Option<String>) -> Result<Option<Next>, Refusal> {
        let mut query = selectors(self.options);
        query.push((parameter::LIMIT, self.limit.to_string()));
        match &token {
            Some(token) => query.push((parameter::CONTINUE, token.clone())),
            None => query.extend(self.as_of()),
        }
        let path = self.resource.collection(self.options.namespace.as_deref());
        let page = self.read(Call::get(path, query)).await?;
        if self.version.is_empty() {
            self.version.clone_from(&page.0.metadata.resource_version);
        }
        let uids = page.uids();
        if self.options.labels.is_empty() && self.options.fields.is_empty() {
            self.note(&page, token.as_deref(), &uids);
        }
        let next = page.next().map(str::to_owned);
        let hidden = self.shown_by_sql(&uids).await?;
        let items = page.0.items.into_iter().flatten().zip(uids);
        let shown = items.filter(|(_, uid)| !hidden.contains(uid));
        self.items
            .extend(shown.map(|(item, _)| String::from(Box::<str>::from(item))));
        // Of a kind that no cluster has, the rows beside are those of deleted objects.
        let backends = &self.operations.backends;
        let more = backends.archives(self.resource.kind) || self.options.include_deleted;
        let stored = more.then_some(Next::Stored);
        Ok(next.map(Next::Cluster).or(stored))
    }

    /// How old the cluster's part may be.
    fn as_of(&self) -> Vec<(&'static str, String)> {
        let (version, matches) = (&self.options.resource_version, &self.options.resource_version_match);
        let parameters = match (version_of_cluster(version), matches.as_str()) {
            ("", "NotOlderThan") if !version.is_empty() => Vec::new(),
            (version, matches) => vec![
                (parameter::RESOURCE_VERSION, version),
                (parameter::RESOURCE_VERSION_MATCH, matches),
            ],
        };
        let given = parameters.into_iter().filter(|(_, value)| !value.is_empty());
        given.map(|(name, value)| (name, value.to_owned())).collect()
    }

    /// What has the live objects.
    fn upstream(&self) -> Result<&Upstream, Refusal> {
        self.operations.backends.upstream_of(self.resource.kind)
    }

    async fn read(&self, call: Call<'_>) -> Result<Page, Refusal> {
        Page::read(&self.upstream()?.call(self.caller, call).await?)
    }

    /// Remembers a page of the cluster's list without selectors.
    fn note(&self, page: &Page, token: Option<&str>, uids: &[Uid]) {
        // A cluster that has forgotten the version may go on with a newer one.
        if page.0.metadata.resource_version == self.version {
            let snapshots = &self.operations.snapshots;
            snapshots.note(&self.collection_version(), token, uids, page.next());
        }
    }

    fn collection_version(&self) -> CollectionVersion {
        CollectionVersion::new(self.resource.kind, self.options.namespace.as_deref(), &self.version)
    }

    /// Those of these objects that will be listed as archived: their eviction began before the list.
    async fn shown_by_sql(&self, uids: &[Uid]) -> Result<HashSet<Uid>, Refusal> {
        if !self.operations.backends.archives(self.resource.kind) {
            return Ok(HashSet::new());
        }
        let store = self.operations.backends.store()?;
        let failed = |error| refusal::of_query(&error);
        let states = store.row_states(self.resource.kind, uids).await.map_err(failed)?;
        let mut gone = HashSet::new();
        for state in states.into_iter().filter(|state| self.is_listed(state.life)) {
            let row = store.get_by_id(self.resource.kind, &state.uid).await.map_err(failed)?;
            if row.is_some_and(|row| self.is_listed(row.life) && !self.is_recent(&row)) {
                gone.insert(state.uid);
            }
        }
        Ok(gone)
    }

    /// Whether objects in this state of life are taken from SQL.
    fn is_listed(&self, life: Life) -> bool {
        match life {
            Life::Live => false,
            Life::Archived => true,
            Life::Deleted => self.options.include_deleted,
        }
    }

    /// Whether an object left the cluster at about the time of the list, or later.
    fn is_recent(&self, row: &Stored) -> bool {
        let left = row.evicted_time.into_iter().chain(row.delete_time).min();
        let began = self.began.checked_sub(MARGIN).unwrap_or(self.began);
        left.is_none_or(|left| left >= began)
    }

    /// Fills the page with archived objects.
    async fn stored_page(&mut self, selected: Selected, token: Option<String>) -> Result<Option<Next>, Refusal> {
        let Selected { mut select, rest } = selected;
        let room = self.limit.saturating_sub(self.items.len());
        // A page that is full still has to know whether another one follows.
        select.limit(u32::try_from(room.max(1)).unwrap_or(u32::MAX));
        let page = self
            .operations
            .backends
            .store()?
            .select(&select, token.as_deref())
            .await;
        let page = page.map_err(|error| refusal::of_query(&error))?;
        if room == 0 {
            let next = token.map_or(Next::Stored, Next::StoredAfter);
            return Ok((!page.items.is_empty()).then_some(next));
        }
        let recent = page.items.iter().filter(|row| self.is_recent(row)).count();
        let snapshot = self.snapshot(recent).await?;
        let (this, snapshot, rest) = (&*self, &snapshot, &rest);
        let view = self.operations.backends.view(self.resource);
        let kept: Vec<Option<String>> = stream::iter(page.items)
            .map(|row| async move {
                let is_elsewhere = this.is_recent(&row)
                    && match snapshot {
                        Some(uids) => uids.contains(&row.object.metadata.uid),
                        None => this.is_in_the_cluster(&row).await?,
                    };
                if is_elsewhere {
                    return Ok(None);
                }
                let shown = view.shown(&row)?;
                Ok::<_, Refusal>(rest.sees(&shown).then_some(shown))
            })
            .buffered(LOOKUPS)
            .try_collect()
            .await?;
        self.items.extend(kept.into_iter().flatten());
        Ok(page.continue_token.map(Next::StoredAfter))
    }

    /// All that the cluster had at the version of the list, where so many objects are to be looked for in it that this
    /// pays; nothing where it is too much to remember.
    async fn snapshot(&self, wanted: usize) -> Result<Option<Arc<HashSet<Uid>>>, Refusal> {
        let version = self.collection_version();
        let known = self.operations.snapshots.whole(&version);
        if known.is_some() || wanted <= LOOKUPS {
            return Ok(known);
        }
        let path = self.resource.collection(self.options.namespace.as_deref());
        let server = self.caller.on_behalf();
        let (mut token, mut count): (Option<String>, usize) = (None, 0);
        loop {
            let mut query = vec![(parameter::LIMIT, self.operations.sizes.snapshot.to_string())];
            match &token {
                Some(token) => query.push((parameter::CONTINUE, token.clone())),
                None => query.extend(self.exactly()),
            }
            let call = Call::get(path.clone(), query);
            let page = Page::read(&self.upstream()?.call(&server, call).await?)?;
            let uids = page.uids();
            count += uids.len();
            let rest = page.0.metadata.remaining_item_count.unwrap_or_default();
            if count as u64 + rest > UIDS_MAX as u64 {
                return Ok(None);
            }
            self.note(&page, token.as_deref(), &uids);
            token = page.next().map(str::to_owned);
            if token.is_none() {
                return Ok(self.operations.snapshots.whole(&version));
            }
        }
    }

    /// Parameters of a request about the version of the list.
    fn exactly(&self) -> [(&'static str, String); 2] {
        [
            (parameter::RESOURCE_VERSION, self.version.clone()),
            (parameter::RESOURCE_VERSION_MATCH, "Exact".to_owned()),
        ]
    }

    /// Whether the cluster had an object at the version of the list, so that it was shown already.
    async fn is_in_the_cluster(&self, row: &Stored) -> Result<bool, Refusal> {
        let metadata = &row.object.metadata;
        let mut query = vec![(parameter::FIELD_SELECTOR, format!("metadata.name={}", metadata.name))];
        query.extend(self.exactly());
        let path = self.resource.collection(Some(&metadata.namespace));
        let server = self.caller.on_behalf();
        let call = Call::get(path, query);
        let page = Page::read(&self.upstream()?.call(&server, call).await?)?;
        let found = page.0.items.unwrap_or_default();
        let uid = |item: &RawValue| Head::read(item.get().as_bytes()).metadata.uid;
        Ok(found.iter().any(|item| uid(item) == *metadata.uid.0))
    }
}
