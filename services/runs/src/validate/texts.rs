//! Parameters and tags: which of a request are kept, each name once.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::field;
use crate::domain::{ParamsChange, TagsChange, warning};
use crate::limits::{self, Limit, NameRules};
use crate::refusal::Refusal;
use crate::wire::v1::{ErrorDetail, LogParamsRequest, LogTagsRequest, Parameter, Tag};

/// Names and values.
pub(super) type Pairs = Vec<(String, String)>;

/// Parameters to store.
///
/// # Errors
/// No run, and too many of them.
pub fn log_params(request: LogParamsRequest) -> Result<ParamsChange, Refusal> {
    let run = field::run_id(request.run_id.as_ref())?;
    let mut warnings = Vec::new();
    let params = params("params", of_params(request.params), &mut warnings)?;
    Ok(ParamsChange { run, params, warnings })
}

/// Tags to set and to remove.
///
/// # Errors
/// No run, and too many of them.
pub fn log_tags(request: LogTagsRequest) -> Result<TagsChange, Refusal> {
    let run = field::run_id(request.run_id.as_ref())?;
    let mut warnings = Vec::new();
    let set = tags(of_tags(request.tags), &mut warnings)?;
    field::within("remove_keys", request.remove_keys.len(), limits::TAGS_IN_REQUEST)?;
    Ok(TagsChange {
        run,
        set,
        remove: request.remove_keys,
        warnings,
    })
}

/// As a request has them.
pub(super) fn of_params(params: Vec<Parameter>) -> Pairs {
    params.into_iter().map(|param| (param.name, param.value)).collect()
}

/// As a request has them.
pub(super) fn of_tags(tags: Vec<Tag>) -> Pairs {
    tags.into_iter().map(|tag| (tag.key, tag.value)).collect()
}

/// The parameters that fit; of one name the first.
pub(super) fn params(field: &str, sent: Pairs, warnings: &mut Vec<ErrorDetail>) -> Result<Pairs, Refusal> {
    field::within(field, sent.len(), limits::PARAMS_IN_REQUEST)?;
    let mut places = HashMap::new();
    let mut kept: Pairs = Vec::with_capacity(sent.len());
    for (place, (name, value)) in sent.into_iter().enumerate() {
        let name_fault = NameRules::Metric.check(&name, limits::PARAM_NAME.max);
        if let Err(fault) = name_fault {
            warnings.push(warning::invalid_param(place, &format!("its name {fault}")));
        } else if let Some(why) = too_long(&value, limits::PARAM_VALUE) {
            warnings.push(warning::invalid_param(place, &why));
        } else {
            match places.entry(name.clone()) {
                Entry::Vacant(entry) => {
                    entry.insert(kept.len());
                    kept.push((name, value));
                }
                Entry::Occupied(first) if kept[*first.get()].1 != value => {
                    warnings.push(warning::param_immutable(&name));
                }
                Entry::Occupied(_) => {}
            }
        }
    }
    Ok(kept)
}

/// The tags that fit; of one key the last.
pub(super) fn tags(sent: Pairs, warnings: &mut Vec<ErrorDetail>) -> Result<Pairs, Refusal> {
    field::within("tags", sent.len(), limits::TAGS_IN_REQUEST)?;
    let mut places = HashMap::new();
    let mut kept: Pairs = Vec::with_capacity(sent.len());
    for (place, (key, value)) in sent.into_iter().enumerate() {
        if let Err(fault) = NameRules::TagKey.check(&key, limits::TAG_KEY.max) {
            warnings.push(warning::invalid_tag(place, &format!("its key {fault}")));
        } else if let Some(why) = too_long(&value, limits::TAG_VALUE) {
            warnings.push(warning::invalid_tag(place, &why));
        } else {
            match places.entry(key.clone()) {
                Entry::Vacant(entry) => {
                    entry.insert(kept.len());
                    kept.push((key, value));
                }
                Entry::Occupied(former) => kept[*former.get()].1 = value,
            }
        }
    }
    Ok(kept)
}

fn too_long(value: &str, limit: Limit) -> Option<String> {
    let size = limit.size(value);
    (!limit.holds(value)).then(|| format!("its value has {size} bytes, at most {} are stored", limit.max))
}
