//! Lists by conditions on columns, from SQL only. SQL follows the cluster with a short lag.

use kindex_kube_api::request::Verb;
use kindex_model::kind::Kind;
use kindex_query::{CriterionOperation, LabelSelector, Select};

use super::rights::RequiredPermission;
use super::{Caller, ListOptions, Listed, Operations, Refusal, refusal};

/// Objects that may be passed over: each of them is read.
const OFFSET_MAX: u32 = 100_000;

/// What is asked of the columns.
#[derive(Clone, Debug, Default)]
pub struct Search {
    /// Which objects.
    pub condition: CriterionOperation,
    /// `column:asc` and `column:desc`, the most significant first; by namespace and name where there is none.
    pub order: Vec<String>,
    /// So many of the first are passed over.
    pub offset: u32,
    /// Most objects of the page, before that of the list's options; 0 leaves it to those.
    pub limit: u32,
}

impl Operations {
    /// A page of what SQL has of the objects of a kind: live ones, archived and deleted ones
    /// where they are asked for.
    ///
    /// # Errors
    /// 400 for conditions, orders and selectors that are none, and for a token of another list.
    pub async fn search(
        &self,
        caller: &Caller,
        kind: &'static Kind,
        which: &ListOptions,
        search: &Search,
    ) -> Result<Listed, Refusal> {
        let permission = RequiredPermission::of(Verb::List, kind.into(), which.namespace.as_deref());
        self.rights.allow(caller, permission).await?;
        let bad = |error: &dyn std::fmt::Display| Refusal::bad_request(error.to_string());
        if !which.resource_version.is_empty() {
            return Err(bad(
                &"a list by conditions is of SQL, which keeps no versions of the cluster: leave out \
                             resourceVersion",
            ));
        }
        if search.offset > OFFSET_MAX {
            return Err(bad(&format_args!(
                "offset {} is more than {OFFSET_MAX}: go on with the token of the page before instead",
                search.offset
            )));
        }
        let mut select = select(kind, which, search)?;
        let mut token = Some(which.continue_token.clone()).filter(|token| !token.is_empty());
        let mut passed = if token.is_some() { search.offset } else { 0 };
        while passed < search.offset {
            let rows = (search.offset - passed).min(self.sizes.passed);
            select.limit(rows);
            let page = self.backends.store()?.select(&select, token.as_deref()).await;
            let page = page.map_err(|error| refusal::of_query(&error))?;
            // Fewer than asked for where these are large.
            passed += u32::try_from(page.items.len()).unwrap_or(rows);
            token = page.continue_token;
            if token.is_none() {
                return Ok(listed(Vec::new(), None));
            }
        }
        let limit = [search.limit, which.limit].into_iter().find(|limit| *limit > 0);
        select.limit(self.sizes.of_page(limit.unwrap_or_default()));
        let page = self.backends.store()?.select(&select, token.as_deref()).await;
        let page = page.map_err(|error| refusal::of_query(&error))?;
        let view = self.backends.view(kind.into());
        let items = page.items.iter().map(|row| view.shown(row));
        Ok(listed(items.collect::<Result<_, _>>()?, page.continue_token))
    }
}

fn listed(items: Vec<String>, token: Option<String>) -> Listed {
    Listed {
        items,
        resource_version: String::new(),
        continue_token: token.unwrap_or_default(),
    }
}

fn select(kind: &'static Kind, which: &ListOptions, search: &Search) -> Result<Select, Refusal> {
    let bad = |error: &dyn std::fmt::Display| Refusal::bad_request(error.to_string());
    let mut select = Select::all(kind);
    if let Some(namespace) = &which.namespace {
        select.in_namespace(namespace);
    }
    let labels = LabelSelector::parse(&which.labels).map_err(|error| bad(&error))?;
    select.filter_by_labels(&labels).map_err(|error| bad(&error))?;
    select.filter_by_fields(&which.fields).map_err(|error| bad(&error))?;
    select
        .filter_by_operation(&search.condition)
        .map_err(|error| bad(&error))?;
    if !which.include_deleted {
        select.without("delete_time");
    }
    for order in &search.order {
        select.order_by(order).map_err(|error| bad(&error))?;
    }
    if search.order.is_empty() {
        for column in ["namespace", "name"] {
            select.order_by(column).map_err(|error| bad(&error))?;
        }
    }
    select.allow_scan();
    Ok(select)
}
