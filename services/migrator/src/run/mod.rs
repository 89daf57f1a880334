//! One migration, from its first page to its verdict. All objects are listed and patched with nothing but their own
//! version as a condition, again and again, until a whole pass changes none: an unchanged resource version proves that
//! the stored bytes are those that the server writes. The first pass migrates, those after it verify. Sends nothing:
//! `cluster/work` asks this for what is next, and does it.
//!
//! A [`Run`] is what the status of a `StorageVersionMigration` keeps, so that another process goes on from there.

use crate::migration::Cause;
use crate::run::answer::Written;
use crate::run::outdated::Outdated;

pub mod answer;

pub mod outdated;

pub mod managers;

pub mod estimate;

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

/// Passes that verify, and find changed objects all the same, before something other than migration is to blame.
pub const VERIFICATIONS_MAX: u32 = 3;
/// Refused objects that are listed by name; the rest is counted.
pub const REFUSED_LISTED_MAX: usize = 100;
/// Characters of a reason that are kept: with all of them, a status might be larger than etcd takes.
const REASON_CHARS_MAX: usize = 512;
/// Lists that may start over for the lack of a token in one pass.
pub const RESTARTS_MAX: u32 = 10;

/// The progress of one migration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// Passes that ended.
    pub passes: u32,
    /// Where the list goes on; `None` at the start of a pass.
    pub token: Option<String>,
    /// Of this pass.
    pub pass: Counts,
    /// Of all passes before this one.
    pub before: Counts,
    /// Of this pass: objects that cannot be written, the first of them by name.
    pub refused: Vec<Refused>,
    /// How often this pass started over.
    pub restarts: u32,
}

/// What became of the objects of a pass. The sum of all is what was listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Objects that were written in the current version by this pass.
    pub rewritten: u64,
    /// Objects that were in the current version.
    pub unchanged: u64,
    /// Objects that others wrote meanwhile, in the version in which all servers write.
    pub conflicts: u64,
    /// Objects that were deleted meanwhile.
    pub gone: u64,
    /// Objects that cannot be written.
    pub refused: u64,
}

impl Counts {
    /// All that were listed.
    pub fn listed(&self) -> u64 {
        self.rewritten + self.unchanged + self.conflicts + self.gone + self.refused
    }

    /// Both counts together.
    pub fn plus(self, other: Self) -> Self {
        Self {
            rewritten: self.rewritten.saturating_add(other.rewritten),
            unchanged: self.unchanged.saturating_add(other.unchanged),
            conflicts: self.conflicts.saturating_add(other.conflicts),
            gone: self.gone.saturating_add(other.gone),
            refused: self.refused.saturating_add(other.refused),
        }
    }

    /// What is added to `other` to get these. Never less than nothing: a status may have been written by others.
    pub fn minus(self, other: Self) -> Self {
        Self {
            rewritten: self.rewritten.saturating_sub(other.rewritten),
            unchanged: self.unchanged.saturating_sub(other.unchanged),
            conflicts: self.conflicts.saturating_sub(other.conflicts),
            gone: self.gone.saturating_sub(other.gone),
            refused: self.refused.saturating_sub(other.refused),
        }
    }
}

/// An object that could not be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// `namespace/name`, or the name alone.
    pub object: String,
    /// Why, in the server's words.
    pub why: String,
}

/// One object of a page, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// `namespace/name`, or the name alone.
    pub object: String,
    /// What became of it.
    pub written: Written,
}

/// How a migration goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// The next page, from [`Run::token`] on.
    Page,
    /// It ended.
    End(Verdict),
}

impl Next {
    /// The same after a look at the target: neither a page nor a verdict about objects counts where the target is
    /// another one by now. What is refused may be so for that reason alone.
    pub fn unless(self, outdated: Option<Outdated>) -> Self {
        match (self, outdated) {
            (Self::Page | Self::End(Verdict::Succeeded | Verdict::ObjectsRefused), Some(why)) => {
                Self::End(Verdict::Outdated(why))
            }
            (next, _) => next,
        }
    }
}

/// How a migration ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every object was verified to be in the target version.
    Succeeded,
    /// Some objects cannot be written; all others were.
    ObjectsRefused,
    /// Passes go on to change objects: a mutating webhook that never comes to an end, or another writer of old bytes.
    NeverUnchanged,
    /// The list expires before it ends, again and again.
    ListExpires,
    /// The resource cannot be listed.
    Impossible {
        /// Why.
        why: String,
    },
    /// Nothing could be written in a trial. Nothing was written.
    Unprepared {
        /// Why.
        why: String,
    },
    /// A right is missing.
    Forbidden {
        /// What cannot be done without it.
        why: String,
    },
    /// Kubernetes' own migrator was asked for, and the cluster has none at work.
    NoInTree {
        /// Why.
        why: String,
    },
    /// The target is no longer the current version.
    Outdated(Outdated),
}

impl Verdict {
    /// The reasons of all conditions.
    pub const REASONS: &[&str] = &[
        "Verified",
        "ObjectsRefused",
        "NeverUnchanged",
        "ListExpires",
        "NotListed",
        "PreflightFailed",
        Self::FORBIDDEN,
        "NoInTreeMigrator",
        Self::OUTDATED,
    ];

    const FORBIDDEN: &str = "Forbidden";
    const OUTDATED: &str = "Outdated";

    /// What a migration failed for, by the reason of its condition.
    pub fn cause(reason: &str) -> Cause {
        match reason {
            Self::FORBIDDEN => Cause::Forbidden,
            Self::OUTDATED => Cause::Outdated,
            _ => Cause::Refused,
        }
    }

    /// Type, reason and message of the condition that says it.
    pub fn condition(&self) -> (&'static str, &'static str, String) {
        match self {
            Self::Succeeded => (
                "Succeeded",
                "Verified",
                "every object is stored in the target version".to_owned(),
            ),
            Self::ObjectsRefused => (
                "Failed",
                "ObjectsRefused",
                "the API server refuses to write the objects under status.refused; all others are migrated".to_owned(),
            ),
            Self::NeverUnchanged => (
                "Failed",
                "NeverUnchanged",
                format!(
                    "{VERIFICATIONS_MAX} passes changed objects once more: a mutating webhook changes them at every write"
                ),
            ),
            Self::ListExpires => (
                "Failed",
                "ListExpires",
                format!("the list expired {RESTARTS_MAX} times without a token to go on with"),
            ),
            Self::Impossible { why } => ("Failed", "NotListed", why.clone()),
            Self::Unprepared { why } => ("Failed", "PreflightFailed", why.clone()),
            Self::Forbidden { why } => ("Failed", Self::FORBIDDEN, why.clone()),
            Self::NoInTree { why } => ("Failed", "NoInTreeMigrator", why.clone()),
            Self::Outdated(Outdated::Recreated) => (
                "Failed",
                Self::OUTDATED,
                "the CustomResourceDefinition was deleted and created again".to_owned(),
            ),
            Self::Outdated(Outdated::Redefined) => (
                "Failed",
                Self::OUTDATED,
                "the CustomResourceDefinition changed".to_owned(),
            ),
            Self::Outdated(Outdated::Flipped { to }) => {
                ("Failed", Self::OUTDATED, format!("the storage version changed to {to}"))
            }
            Self::Outdated(Outdated::Divided) => (
                "Failed",
                Self::OUTDATED,
                "the API servers write in different versions".to_owned(),
            ),
        }
    }
}

impl Run {
    /// Of all passes, this one among them.
    pub fn all_passes(&self) -> Counts {
        self.before.plus(self.pass)
    }

    /// Adds the outcomes of a page. `token` is that of the next one.
    pub fn page(&mut self, outcomes: impl IntoIterator<Item = Outcome>, token: Option<String>) -> Next {
        for outcome in outcomes {
            self.count(outcome);
        }
        self.token = token;
        match self.token {
            Some(_) => Next::Page,
            None => self.end_of_pass(),
        }
    }

    /// The list goes on from the same key with another token.
    pub fn go_on(&mut self, token: String) -> Next {
        self.token = Some(token);
        Next::Page
    }

    /// The list begins again. What this pass changed stays counted: it must not look like one that changed nothing.
    pub fn start_over(&mut self) -> Next {
        self.restarts += 1;
        self.token = None;
        if self.restarts > RESTARTS_MAX {
            return Next::End(Verdict::ListExpires);
        }
        self.refused.clear();
        self.pass = Counts {
            rewritten: self.pass.rewritten,
            ..Counts::default()
        };
        Next::Page
    }

    fn count(&mut self, outcome: Outcome) {
        let count = match outcome.written {
            Written::Rewritten => &mut self.pass.rewritten,
            Written::Unchanged => &mut self.pass.unchanged,
            Written::Conflict => &mut self.pass.conflicts,
            Written::Gone => &mut self.pass.gone,
            Written::Refused { why } => {
                if self.refused.len() < REFUSED_LISTED_MAX {
                    self.refused.push(Refused {
                        object: outcome.object,
                        why: why.chars().take(REASON_CHARS_MAX).collect(),
                    });
                }
                &mut self.pass.refused
            }
        };
        *count += 1;
    }

    fn end_of_pass(&mut self) -> Next {
        self.passes += 1;
        if self.pass.refused > 0 {
            return Next::End(Verdict::ObjectsRefused);
        }
        if self.passes > 1 && self.pass.rewritten == 0 {
            return Next::End(Verdict::Succeeded);
        }
        if self.passes > VERIFICATIONS_MAX {
            return Next::End(Verdict::NeverUnchanged);
        }
        self.before = self.all_passes();
        (self.pass, self.restarts) = (Counts::default(), 0);
        Next::Page
    }
}
