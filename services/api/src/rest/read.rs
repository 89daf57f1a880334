//! `GET`: of one object and of lists.

use std::io;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures::{StreamExt, stream};
use jiff::Timestamp;
use kindex_kube_api::list::LIST_END;
use kindex_kube_api::request::{Query, Rendering, parameter};

use super::render::Form;
use super::{Inbound, Rest, exchange};
use crate::operations::{Caller, GetOptions, ListOptions, Listed, Refusal, Resource};

pub(super) fn form<'a>(rest: &'a Rest, inbound: &'a Inbound) -> Form<'a> {
    Form {
        resource: inbound.resource,
        rendering: inbound.head.rendering,
        query: &inbound.query,
        columns: &rest.columns,
    }
}

pub(super) async fn get(rest: &Rest, inbound: &Inbound, name: &str) -> Result<Response, Refusal> {
    let options = GetOptions {
        at: moment(inbound)?,
        include_deleted: inbound.query.flag("includeDeleted")?,
        uid: text(inbound, "uid"),
        resource_version: text(inbound, parameter::RESOURCE_VERSION),
    };
    let answer = rest
        .operations
        .get(&inbound.caller, &inbound.key(name), &options)
        .await?;
    form(rest, inbound).one(&answer)
}

pub(super) async fn list(rest: &Rest, inbound: &Inbound) -> Result<Response, Refusal> {
    let options = options(inbound)?;
    let page = rest
        .operations
        .list(&inbound.caller, inbound.resource, &options)
        .await?;
    if options.limit > 0 || page.continue_token.is_empty() {
        return form(rest, inbound).page(&page);
    }
    whole(rest, inbound, options, page).await
}

/// A list without a limit, page by page as the client reads it, so that it is never in memory as a whole. An error on
/// the way breaks the answer off, which no client takes for the end of a list.
async fn whole(rest: &Rest, inbound: &Inbound, options: ListOptions, first: Listed) -> Result<Response, Refusal> {
    if inbound.head.rendering == Rendering::Yaml {
        return Err(Refusal::bad_request(
            "a list of this size comes as JSON, or as YAML with a limit",
        ));
    }
    let mut walk = Walk {
        rest: rest.clone(),
        resource: inbound.resource,
        rendering: inbound.head.rendering,
        query: inbound.query.clone(),
        caller: inbound.caller.clone(),
        options,
        token: first.continue_token.clone(),
        has_items: !first.items.is_empty(),
    };
    let head = walk.form().head(&first.resource_version) + &walk.form().items(&first.items)?;
    walk.options.resource_version.clear();
    walk.options.resource_version_match.clear();
    let rest = stream::try_unfold(Some(walk), |walk| async {
        let Some(mut walk) = walk else { return Ok(None) };
        let text = walk.next().await.map_err(io::Error::other)?;
        Ok::<_, io::Error>(Some(match text {
            Some(text) => (Bytes::from(text), Some(walk)),
            None => (Bytes::from_static(LIST_END.as_bytes()), None),
        }))
    });
    let body = stream::once(async { Ok(Bytes::from(head)) }).chain(rest);
    Ok(exchange::json(Body::from_stream(body)))
}

struct Walk {
    rest: Rest,
    resource: Resource,
    rendering: Rendering,
    query: Query,
    caller: Caller,
    options: ListOptions,
    token: String,
    /// Whether an item was written, so that a comma comes before the next.
    has_items: bool,
}

impl Walk {
    fn form(&self) -> Form<'_> {
        Form {
            resource: self.resource,
            rendering: self.rendering,
            query: &self.query,
            columns: &self.rest.columns,
        }
    }

    /// The next items, with a comma before each but the first of the list; `None` after the last.
    async fn next(&mut self) -> Result<Option<String>, Refusal> {
        if self.token.is_empty() {
            return Ok(None);
        }
        self.options.continue_token = std::mem::take(&mut self.token);
        let page = self
            .rest
            .operations
            .list(&self.caller, self.resource, &self.options)
            .await?;
        let items = self.form().items(&page.items)?;
        self.token = page.continue_token;
        let comma = if self.has_items && !items.is_empty() { "," } else { "" };
        self.has_items |= !items.is_empty();
        Ok(Some(format!("{comma}{items}")))
    }
}

/// The options of a list, from its parameters.
pub(super) fn options(inbound: &Inbound) -> Result<ListOptions, Refusal> {
    Ok(ListOptions {
        namespace: inbound.path.namespace.clone(),
        labels: text(inbound, parameter::LABEL_SELECTOR),
        fields: text(inbound, parameter::FIELD_SELECTOR),
        limit: inbound.query.limit()?.unwrap_or_default(),
        continue_token: text(inbound, parameter::CONTINUE),
        include_deleted: inbound.query.flag("includeDeleted")?,
        at: moment(inbound)?,
        resource_version: text(inbound, parameter::RESOURCE_VERSION),
        resource_version_match: text(inbound, parameter::RESOURCE_VERSION_MATCH),
    })
}

fn text(inbound: &Inbound, parameter: &str) -> String {
    inbound.query.get(parameter).unwrap_or_default().to_owned()
}

fn moment(inbound: &Inbound) -> Result<Option<Timestamp>, Refusal> {
    let moment = inbound.query.get("at").map(str::parse).transpose();
    moment.map_err(|error| {
        Refusal::bad_request(format!(
            "at: {error}: write it as RFC 3339, such as 2026-11-01T12:00:00Z"
        ))
    })
}
