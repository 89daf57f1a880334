//! Lists, whole and in pages, and what their parameters and those of watches ask for.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kindex_kube_api::list::ListMeta;
use kindex_kube_api::request::{ListQuery, VersionMatch, parameter};
use kindex_kube_api::selector::field_text;
use kindex_kube_api::status::{FieldProblem, Status};
use kindex_serve::pages::PageSize;
use serde::{Deserialize, Serialize};

use super::call::{Call, bad_version, refused};
use super::{Reply, render};
use crate::mutate::{not_shown, store_failed};
use crate::resource::{Resource, ResourceType, Shown, shown};
use crate::store::{Page, PageRequest, Revision, StoreError};

/// What a page may hold, of one or more objects: five hundred of the largest are more than a server has.
const PAGE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Where a list goes on, as clients carry it.
#[derive(Debug, Serialize, Deserialize)]
struct Token {
    rv: u64,
    namespace: String,
    name: String,
}

impl Token {
    fn encode(&self) -> String {
        URL_SAFE_NO_PAD.encode(serde_json::to_string(self).expect("a token holds only strings and numbers"))
    }

    fn decode(text: &str) -> Result<Self, Status> {
        let refused = |why: &dyn std::fmt::Display| {
            Status::bad_request(format!("invalid continue token: continue key is not valid: {why}"))
        };
        let json = URL_SAFE_NO_PAD.decode(text).map_err(|error| refused(&error))?;
        serde_json::from_slice(&json).map_err(|error| refused(&error))
    }
}

/// What the parameters of a list or a watch ask for.
pub(super) fn query(call: &Call<'_>) -> Result<ListQuery, Status> {
    if call.request.query.is_on(parameter::WATCH) {
        call.request.query.version().map_err(|error| bad_version(&error))?;
    }
    let query = call
        .request
        .query
        .list()
        .map_err(|error| refused("ListOptions", &error))?;
    check_fields(call.resource, &query)?;
    check_versions(call, &query)?;
    Ok(query)
}

/// `GET` of a collection.
pub(super) async fn list(call: &Call<'_>, query: &ListQuery) -> Result<Reply, Status> {
    let (found, meta) = matching(call, query).await?;
    let objects = render::shown_all(call.resource, &found).await?;
    render::many(call, &objects, &meta)
}

/// The objects that a list asks for.
pub(super) async fn matching(call: &Call<'_>, query: &ListQuery) -> Result<(Vec<Arc<Revision>>, ListMeta), Status> {
    let mut request = page_request(call, query)?;
    let mut limit = query.limit.and_then(|limit| usize::try_from(limit).ok());
    let selective = !query.labels.is_empty() || !query.fields.is_empty();
    let (mut found, mut bytes, mut size) = (Vec::new(), 0, PageSize::default());
    loop {
        // One more than asked for tells whether there is more.
        request.limit = match (selective, limit) {
            (false, None) => None,
            (false, Some(limit)) => {
                let missing = limit.saturating_add(1) - found.len();
                Some(u32::try_from(missing).unwrap_or(u32::MAX).min(size.objects()))
            }
            (true, _) => Some(size.objects()),
        };
        let page = read(call, query, &request).await?;
        request.at = Some(page.rv);
        let exhausted = request.limit.is_none_or(|asked| page.objects.len() < asked as usize);
        request.after = page
            .objects
            .last()
            .map(|last| (last.key.namespace.clone(), last.key.name.clone()));
        size.read(
            page.objects.len(),
            page.objects.iter().map(|revision| revision.text.len()).sum(),
        );
        for revision in page.objects {
            if !selective || selected(call.resource, query, &revision).await? {
                bytes += revision.text.len();
                found.push(revision);
                if bytes > PAGE_BYTES_MAX {
                    // Who asked for pages gets what fits, and where it goes on.
                    limit = limit.map(|limit| limit.min((found.len() - 1).max(1)));
                }
            }
        }
        if exhausted || limit.is_some_and(|limit| found.len() > limit) {
            let meta = finish(call, &request, limit, selective, page.rv, &mut found).await?;
            return Ok((found, meta));
        }
    }
}

fn page_request(call: &Call<'_>, query: &ListQuery) -> Result<PageRequest, Status> {
    let mut request = PageRequest {
        resource: call.resource.storage.to_string(),
        namespace: call.request.path.namespace.clone(),
        ..PageRequest::default()
    };
    if request.namespace.is_some() || !call.resource.namespaced {
        request.name = query.fields.name().map(str::to_owned);
    }
    if let Some(token) = &query.continue_token {
        let token = Token::decode(token)?;
        request.at = Some(token.rv);
        request.after = Some((token.namespace, token.name));
    } else if query.version_match == Some(VersionMatch::Exact) || (query.limit.is_some() && query.rv > Some(0)) {
        // A page at a version means exactly that version, unless the client says otherwise.
        request.at = query
            .rv
            .filter(|_| query.version_match != Some(VersionMatch::NotOlderThan));
    }
    Ok(request)
}

async fn read(call: &Call<'_>, query: &ListQuery, request: &PageRequest) -> Result<Page, Status> {
    call.api.store.list(request).await.map_err(|error| match error {
        StoreError::Compacted { .. } if query.continue_token.is_some() => Status::continue_expired(),
        error => store_failed(&error),
    })
}

/// Cuts the list at its limit and says what is left.
async fn finish(
    call: &Call<'_>,
    request: &PageRequest,
    limit: Option<usize>,
    selective: bool,
    rv: u64,
    found: &mut Vec<Arc<Revision>>,
) -> Result<ListMeta, Status> {
    let mut meta = ListMeta {
        resource_version: rv.to_string(),
        ..ListMeta::default()
    };
    let Some(limit) = limit.filter(|limit| found.len() > *limit) else {
        return Ok(meta);
    };
    found.truncate(limit);
    let Some(last) = found.last() else {
        return Ok(meta);
    };
    let (namespace, name) = (last.key.namespace.clone(), last.key.name.clone());
    if !selective {
        let left = call.api.store.count_after(request, &namespace, &name).await;
        meta.remaining_item_count = Some(left.map_err(|error| store_failed(&error))?);
    }
    meta.continue_token = Some(Token { rv, namespace, name }.encode());
    Ok(meta)
}

/// Whether the selectors of a list or watch select a revision.
pub(super) async fn selected(resource: &Resource, query: &ListQuery, revision: &Revision) -> Result<bool, Status> {
    if query.labels.is_empty() && query.fields.is_empty() {
        return Ok(true);
    }
    let shown: Shown<'_> = shown(resource, revision).await.map_err(|error| not_shown(&error))?;
    let object = shown.value().map_err(|error| store_failed(&error))?;
    Ok(query.labels.matches_json(&object["metadata"]["labels"])
        && query.fields.matches(|field| field_text(object, field)))
}

fn check_fields(resource: &Resource, query: &ListQuery) -> Result<(), Status> {
    let known = |field: &str| {
        field == "metadata.name"
            || (field == "metadata.namespace" && resource.namespaced)
            || (resource.names.kind == "Secret" && field == "type")
            || (resource.names.kind == "Namespace" && field == "status.phase")
            || resource.selectable.iter().any(|selectable| selectable == field)
    };
    match query.fields.fields().find(|field| !known(field)) {
        Some(field) if resource.resource_type == ResourceType::Plain && resource.selectable.is_empty() => {
            let known = "only \"metadata.name\", \"metadata.namespace\"";
            Err(Status::bad_request(format!(
                "{field:?} is not a known field selector: {known}"
            )))
        }
        Some(field) => Err(Status::bad_request(format!("field label not supported: {field}"))),
        None => Ok(()),
    }
}

/// The rules about resource versions in the options of lists and watches.
fn check_versions(call: &Call<'_>, query: &ListQuery) -> Result<(), Status> {
    let invalid = |problems: &[FieldProblem]| Err(Status::invalid_options("ListOptions", problems));
    if query.watch {
        if query.initial_events && query.version_match != Some(VersionMatch::NotOlderThan) {
            return invalid(&[FieldProblem::initial_events_without_match()]);
        }
        if !call.request.query.has(parameter::SEND_INITIAL_EVENTS) && query.version_match.is_some() {
            let mut problems = vec![FieldProblem::match_without_initial_events()];
            if query.version_match == Some(VersionMatch::Exact) {
                let allowed = ["NotOlderThan"];
                problems.push(FieldProblem::not_supported(
                    parameter::RESOURCE_VERSION_MATCH,
                    "Exact",
                    &allowed,
                ));
            }
            return invalid(&problems);
        }
    } else {
        let problems = list_problems(call, query);
        if !problems.is_empty() {
            return invalid(&problems);
        }
    }
    if !query.watch && query.continue_token.is_some() && query.rv > Some(0) {
        return Err(Status::bad_request(
            "specifying resource version is not allowed when using continue",
        ));
    }
    let current = call.api.store.committed(Some(&call.resource.storage));
    let Some(current) = current else {
        return Err(Status::unavailable("what keeps the objects does not answer; try again"));
    };
    match query.rv {
        Some(rv) if rv > current => Err(Status::future_version(rv, current)),
        _ => Ok(()),
    }
}

/// What the options of a list may not say together.
fn list_problems(call: &Call<'_>, query: &ListQuery) -> Vec<FieldProblem> {
    let mut problems = Vec::new();
    let mut forbid = |field: &str, rule: &str| problems.push(FieldProblem::forbidden(field, rule));
    let matched = parameter::RESOURCE_VERSION_MATCH;
    if query.version_match.is_some() {
        if query.rv.is_none() {
            forbid(
                matched,
                "resourceVersionMatch is forbidden unless resourceVersion is provided",
            );
        }
        if query.continue_token.is_some() {
            forbid(matched, "resourceVersionMatch is forbidden when continue is provided");
        }
    }
    if query.version_match == Some(VersionMatch::Exact) && query.rv == Some(0) {
        forbid(
            matched,
            "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
        );
    }
    if call.request.query.has(parameter::SEND_INITIAL_EVENTS) {
        forbid(
            parameter::SEND_INITIAL_EVENTS,
            "sendInitialEvents is forbidden for list",
        );
    }
    problems
}

#[cfg(test)]
mod tests {
    use allocation_counter::measure;
    use rand::rngs::StdRng;
    use rand::{Rng, RngExt, SeedableRng};
    use serde_json::json;

    use super::*;

    const RUNS: u64 = 500;
    /// What may be held for each byte of a token, and allocated in all.
    const HELD: u64 = 40;
    const ALLOCATED: u64 = 200;
    /// What may be spent on nothing.
    const FIXED_BYTES: u64 = 64 * 1024;

    fn size(random: &mut StdRng) -> usize {
        1 << random.random_range(0..17)
    }

    #[test]
    fn no_generated_continue_token_costs_more_than_its_bytes_are_worth() {
        let mut read = 0;
        for seed in 0..RUNS {
            let random = &mut StdRng::seed_from_u64(seed);
            let text = "x".repeat(size(random));
            let json = match random.random_range(0..6) {
                0 => json!({"rv": random.next_u64(), "namespace": text, "name": text}).to_string(),
                1 => json!({"rv": -1, "namespace": text, "name": [text]}).to_string(),
                2 => "[".repeat(size(random)),
                3 => format!("{{{}", r#""rv":1,"#.repeat(size(random) / 8)),
                4 => json!({"rv": 1, "namespace": "", "name": "", "more": vec![0; size(random)]}).to_string(),
                _ => text,
            };
            let token = URL_SAFE_NO_PAD.encode(json);
            let cut = random.random_range(0..=token.len().min(3));
            let token = &token[..token.len() - cut];
            let spent = measure(|| read += u64::from(Token::decode(token).is_ok()));
            let most = |each: u64| FIXED_BYTES + each * token.len() as u64;
            assert!(spent.bytes_max <= most(HELD), "seed {seed}: {spent:?}");
            assert!(spent.bytes_total <= most(ALLOCATED), "seed {seed}: {spent:?}");
        }
        assert!((1..RUNS).contains(&read), "{read} of {RUNS} were read");
    }
}
