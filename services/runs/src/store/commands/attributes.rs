//! `LogParams` and `LogTags`, and the same within a batch.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::domain::{ParamsChange, ParamsLogged, TagsChange, TagsLogged, warning};
use crate::lifecycle::{Call, Rule, permit, refusals};
use crate::store::statements::attributes;
use crate::store::transaction::{Command, Failure, Tx};
use crate::wire::v1::ErrorDetail;

/// What becomes of parameters.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ParamsPlan<'p> {
    pub(super) added: Vec<(&'p str, &'p str)>,
    pub(super) existing: u64,
    /// Whether nothing of it is new or different.
    pub(super) is_repeat: bool,
    pub(super) warnings: Vec<ErrorDetail>,
}

/// The first value of a parameter stays.
pub(super) fn plan_params<'p>(
    stored: &HashMap<String, String>,
    params: &'p [(String, String)],
    limit: u64,
) -> ParamsPlan<'p> {
    let mut plan = ParamsPlan {
        is_repeat: true,
        ..ParamsPlan::default()
    };
    let mut first: HashMap<&str, &str> = HashMap::new();
    let mut dropped = 0;
    for (name, value) in params {
        let known = stored
            .get(name)
            .map(String::as_str)
            .or_else(|| first.get(name.as_str()).copied());
        match known {
            Some(known) => {
                plan.existing += 1;
                if known != value {
                    plan.is_repeat = false;
                    plan.warnings.push(warning::param_immutable(name));
                }
            }
            None if stored.len() as u64 + plan.added.len() as u64 >= limit => {
                plan.is_repeat = false;
                dropped += 1;
            }
            None => {
                plan.is_repeat = false;
                first.insert(name, value);
                plan.added.push((name, value));
            }
        }
    }
    if dropped > 0 {
        plan.warnings.push(warning::param_limit_exceeded(dropped, limit));
    }
    plan
}

/// Writes parameters of a run that were planned.
pub(super) async fn write_params(tx: &mut Tx, run: i64, plan: &ParamsPlan<'_>) -> Result<(), Failure> {
    for (name, value) in &plan.added {
        attributes::insert_param(tx.change()?, run, name, value).await?;
    }
    Ok(())
}

/// What becomes of tags.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TagsPlan<'t> {
    pub(super) set: BTreeMap<&'t str, &'t str>,
    pub(super) removed: Vec<&'t str>,
    pub(super) warnings: Vec<ErrorDetail>,
}

/// The last value of a key counts; keys are removed after others were set.
pub(super) fn plan_tags<'t>(
    stored: &HashMap<String, String>,
    set: &'t [(String, String)],
    remove: &'t [String],
    limit: u64,
) -> TagsPlan<'t> {
    let mut plan = TagsPlan::default();
    let mut added = 0;
    let mut dropped = HashSet::new();
    for (key, value) in set {
        let is_new = !stored.contains_key(key) && !plan.set.contains_key(key.as_str());
        if is_new && stored.len() as u64 + added >= limit {
            dropped.insert(key);
            continue;
        }
        added += u64::from(is_new);
        plan.set.insert(key, value);
    }
    let is_there = |key: &str| stored.contains_key(key) || plan.set.contains_key(key);
    let mut removed: Vec<&str> = remove.iter().map(String::as_str).filter(|key| is_there(key)).collect();
    removed.sort_unstable();
    removed.dedup();
    plan.removed = removed;
    if !dropped.is_empty() {
        plan.warnings
            .push(warning::tag_limit_exceeded(dropped.len() as u64, limit));
    }
    plan
}

/// Writes tags of a run that were planned.
pub(super) async fn write_tags(tx: &mut Tx, run: i64, plan: &TagsPlan<'_>) -> Result<(), Failure> {
    for (key, value) in &plan.set {
        attributes::set_tag(tx.change()?, run, key, value).await?;
    }
    for key in &plan.removed {
        attributes::remove_tag(tx.change()?, run, key).await?;
    }
    Ok(())
}

/// `LogParams`.
#[derive(Debug)]
pub(in crate::store) struct LogParams(pub(in crate::store) ParamsChange);

impl Command for LogParams {
    type Answer = ParamsLogged;

    async fn apply(&self, tx: &mut Tx) -> Result<ParamsLogged, Failure> {
        let change = &self.0;
        let run = tx
            .find(&change.run)
            .await?
            .ok_or_else(|| refusals::unknown_run(&change.run))?;
        let status = tx.run(run).status;
        let rule = permit(Call::Params, &change.run, Some(status))?;
        let stored = attributes::params(tx.step()?, run).await?;
        let limit = tx.settings().params_max;
        let plan = plan_params(&stored, &change.params, limit);
        if rule == Rule::Repeat && !plan.is_repeat {
            return Err(refusals::closed(&change.run, status).into());
        }
        write_params(tx, run, &plan).await?;
        if rule == Rule::Allowed {
            tx.seen(run);
        }
        Ok(ParamsLogged {
            accepted: plan.added.len() as u64,
            existing: plan.existing,
            warnings: [&change.warnings[..], &plan.warnings].concat(),
        })
    }

    fn bytes(&self) -> usize {
        self.0
            .params
            .iter()
            .map(|(name, value)| name.len() + value.len() + 64)
            .sum()
    }
}

/// `LogTags`.
#[derive(Debug)]
pub(in crate::store) struct LogTags(pub(in crate::store) TagsChange);

impl Command for LogTags {
    type Answer = TagsLogged;

    async fn apply(&self, tx: &mut Tx) -> Result<TagsLogged, Failure> {
        let change = &self.0;
        let run = tx
            .find(&change.run)
            .await?
            .ok_or_else(|| refusals::unknown_run(&change.run))?;
        let status = tx.run(run).status;
        permit(Call::Tags, &change.run, Some(status))?;
        let stored = attributes::tags(tx.step()?, run).await?;
        let limit = tx.settings().tags_max;
        let plan = plan_tags(&stored, &change.set, &change.remove, limit);
        write_tags(tx, run, &plan).await?;
        if status == crate::domain::Status::Running {
            tx.seen(run);
        }
        Ok(TagsLogged {
            updated: plan.set.len() as u64,
            removed: plan.removed.len() as u64,
            warnings: [&change.warnings[..], &plan.warnings].concat(),
        })
    }

    fn bytes(&self) -> usize {
        self.0.set.iter().map(|(key, value)| key.len() + value.len() + 64).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
    }

    fn map(of: &[(&str, &str)]) -> HashMap<String, String> {
        pairs(of).into_iter().collect()
    }

    #[test]
    fn a_parameter_keeps_its_first_value() {
        let sent = pairs(&[("lr", "1"), ("lr", "2"), ("opt", "adam"), ("seed", "7")]);
        let plan = plan_params(&map(&[("opt", "sgd"), ("seed", "7")]), &sent, 100);
        assert_eq!(plan.added, [("lr", "1")]);
        assert_eq!(plan.existing, 3);
        let fields: Vec<&str> = plan.warnings.iter().map(|warning| warning.field.as_str()).collect();
        assert_eq!(fields, ["params[lr]", "params[opt]"]);
        assert!(!plan.is_repeat);
        assert!(plan_params(&map(&[("seed", "7")]), &pairs(&[("seed", "7")]), 1).is_repeat);
    }

    #[test]
    fn parameters_over_the_limit_are_dropped_and_counted() {
        let stored = map(&[("a", "1")]);
        let sent = pairs(&[("b", "1"), ("c", "1"), ("a", "1"), ("d", "1")]);
        let plan = plan_params(&stored, &sent, 2);
        assert_eq!(plan.added, [("b", "1")]);
        assert_eq!(plan.existing, 1);
        assert_eq!(plan.warnings, [warning::param_limit_exceeded(2, 2)]);
    }

    #[test]
    fn tags_are_set_overwritten_and_removed() {
        let stored = map(&[("a", "1"), ("b", "1")]);
        let sent = pairs(&[("a", "2"), ("c", "1"), ("c", "2"), ("d", "1")]);
        let remove = ["b", "c", "absent", "b"].map(str::to_owned);
        let plan = plan_tags(&stored, &sent, &remove, 3);
        assert_eq!(plan.set, BTreeMap::from([("a", "2"), ("c", "2")]));
        assert_eq!(plan.removed, ["b", "c"]);
        assert_eq!(plan.warnings, [warning::tag_limit_exceeded(1, 3)]);
    }
}
