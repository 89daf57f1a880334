//! `InitRun`.

use std::collections::HashMap;

use crate::domain::{NewRun, Opened, RunId, Status, warning};
use crate::ledger::Queue;
use crate::lifecycle::{Opening, RunFacts, Tokens, open};
use crate::store::cache::RunState;
use crate::store::statements::{attributes, chunks, runs};
use crate::store::transaction::{Command, Effect, Failure, Tx};
use crate::wire::v1::ErrorDetail;

use super::attributes::{plan_params, plan_tags, write_params, write_tags};
use super::release::release_all;

/// `InitRun`, with the id that the run gets.
#[derive(Debug)]
pub(in crate::store) struct Open {
    pub(in crate::store) new: NewRun,
    /// The id of the request, or one that was made for it.
    pub(in crate::store) run: RunId,
}

impl Open {
    async fn create(&self, tx: &mut Tx) -> Result<Opened, Failure> {
        let settings = tx.settings();
        let now = tx.now();
        let project = &self.new.project;
        let running = runs::running(tx.read().await?, project, settings.active_runs_max).await?;
        let plan = plan_tags(&HashMap::new(), &self.new.tags, &[], settings.tags_max);
        let number = runs::insert(tx.change()?, &self.run, &self.new, now).await?;
        tx.insert(RunState {
            number,
            run: self.run.clone(),
            project: project.clone(),
            status: Status::Running,
            created_at: now,
            last_seen_at: now,
            finished_at: None,
            tokens: Tokens::FIRST,
            points: 0,
            queue: Queue::new(1),
            names: HashMap::new(),
        });
        write_tags(tx, number, &plan).await?;
        let mut warnings = [&self.new.warnings[..], &plan.warnings].concat();
        warnings.extend(self.params(tx, number, &HashMap::new()).await?);
        if running >= settings.active_runs_max {
            warnings.push(warning::active_runs_exceeded(settings.active_runs_max));
        }
        Ok(Opened {
            run: self.run.clone(),
            generation: Tokens::FIRST.newest,
            checkpoint: 0,
            resumed: false,
            warnings,
            server_time: now,
        })
    }

    /// Stores parameters; the warnings about them.
    async fn params(
        &self,
        tx: &mut Tx,
        number: i64,
        stored: &HashMap<String, String>,
    ) -> Result<Vec<ErrorDetail>, Failure> {
        let plan = plan_params(stored, &self.new.params, tx.settings().params_max);
        write_params(tx, number, &plan).await?;
        Ok(plan.warnings)
    }

    /// Warnings about what the request says of a run that is there, where it differs from what is stored, which stays.
    async fn kept(&self, tx: &mut Tx, number: i64) -> Result<Vec<ErrorDetail>, Failure> {
        let new = &self.new;
        if new.name.is_empty() && new.description.is_empty() && new.parent.is_none() && new.tags.is_empty() {
            return Ok(Vec::new());
        }
        let (name, description, parent) = runs::description(tx.step()?, number).await?;
        let stored = attributes::tags(tx.step()?, number).await?;
        let differs = |sent: &str, stored: &str| !sent.is_empty() && sent != stored;
        let new_parent = new.parent.as_ref().map_or("", RunId::as_str);
        // The last value of a key counts.
        let tags: HashMap<&str, &str> = new.tags.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        let is_stored = |(key, value): (&&str, &&str)| stored.get(*key).is_some_and(|stored| stored == value);
        let mut warnings = Vec::new();
        for (field, is_kept) in [
            ("name", differs(&new.name, &name)),
            ("description", differs(&new.description, &description)),
            ("parent_run_id", differs(new_parent, &parent.unwrap_or_default())),
        ] {
            if is_kept {
                warnings.push(warning::run_attribute_kept(field));
            }
        }
        if !tags.iter().all(is_stored) {
            warnings.push(warning::run_tags_kept());
        }
        Ok(warnings)
    }

    /// Answers with a run that is there, which gets a new token.
    async fn reopen(
        &self,
        tx: &mut Tx,
        number: i64,
        shown: Option<i64>,
        active_seconds: Option<i64>,
    ) -> Result<Opened, Failure> {
        let stored = match self.new.params.is_empty() {
            true => HashMap::new(),
            false => attributes::params(tx.step()?, number).await?,
        };
        let kept = self.kept(tx, number).await?;
        let of_params = self.params(tx, number, &stored).await?;
        let now = tx.now();
        if tx.run(number).status == Status::Crashed {
            chunks::set_unsealed(tx.change()?, number).await?;
            tx.after_commit(Effect::Resumed(number));
        }
        if let Some(shown) = shown {
            tx.update(number, |run| run.tokens = run.tokens.after(shown));
            // Whoever wrote before has begun anew: what it has not sent by now may never come.
            release_all(tx, number).await?;
        }
        tx.update(number, |run| {
            run.status = Status::Running;
            run.tokens = run.tokens.issued();
            run.seen(now);
        });
        let run = tx.run(number);
        let mut warnings = self.new.warnings.clone();
        warnings.extend(active_seconds.map(warning::run_already_active));
        warnings.extend(kept);
        warnings.extend(of_params);
        Ok(Opened {
            run: self.run.clone(),
            generation: run.tokens.newest,
            checkpoint: run.queue.expected() - 1,
            resumed: true,
            warnings,
            server_time: now,
        })
    }
}

impl Command for Open {
    type Answer = Opened;

    async fn apply(&self, tx: &mut Tx) -> Result<Opened, Failure> {
        let found = tx.find(&self.run).await?;
        let facts = found.map(|number| {
            let run = tx.run(number);
            RunFacts {
                project: run.project.clone(),
                status: run.status,
                tokens: run.tokens,
                last_seen_at: run.last_seen_at,
            }
        });
        let opening = open(&self.run, &self.new.project, &self.new.token, facts.as_ref(), tx.now())?;
        match (opening, found) {
            (Opening::Join { active_seconds, shown }, Some(number)) => {
                self.reopen(tx, number, shown, active_seconds).await
            }
            (Opening::Resume { shown }, Some(number)) => self.reopen(tx, number, Some(shown), None).await,
            (Opening::Create | Opening::Join { .. } | Opening::Resume { .. }, _) => self.create(tx).await,
        }
    }

    fn bytes(&self) -> usize {
        let pairs = self.new.tags.iter().chain(&self.new.params);
        let pairs = pairs.map(|(key, value)| key.len() + value.len() + 64).sum::<usize>();
        1024 + self.new.description.len() + pairs
    }
}
