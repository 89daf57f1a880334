//! Kinds that the cluster does not serve, such as one whose CRD others define and have not installed: a command over
//! all kinds passes them over, says so, and goes on with the others.

use kindex_model::kind::Kind;

use crate::error::{CommandError, CommandResult};
use crate::say;

/// Those that a command passed over.
#[derive(Debug, Default)]
pub(crate) struct Unserved(Vec<&'static Kind>);

impl Unserved {
    /// Passes a kind over.
    pub(crate) fn add(&mut self, kind: &'static Kind) {
        self.0.push(kind);
    }

    /// Their names.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.0.iter().map(|kind| kind.name).collect()
    }

    /// Says which they are.
    pub(crate) fn name(&self) {
        for kind in &self.0 {
            say::note(format_args!("note: {} is skipped: {}", kind.name, reason(kind)));
        }
    }

    /// Says which they are, where [`check`](Self::check) finds no error.
    pub(crate) fn report(&self, kinds: &[&'static Kind]) -> CommandResult {
        self.check(kinds)?;
        self.name();
        Ok(())
    }

    /// An error where they are all that was kinds for a cluster: nothing was done then, and it may be another cluster
    /// than the one that was meant. SQL-only kinds say nothing about that, since no cluster serves them.
    pub(crate) fn check(&self, kinds: &[&'static Kind]) -> CommandResult {
        let of_clusters = kinds.iter().filter(|kind| kind.cluster).count();
        let Some(first) = self.0.first().filter(|_| self.0.len() == of_clusters) else {
            return Ok(());
        };
        let error = match self.0.len() {
            1 => CommandError::failure(format_args!("{}: {}", first.name, reason(first))),
            count => CommandError::failure(format_args!("the cluster serves none of these {count} kinds")),
        };
        Err(error.hint(format_args!(
            "is it the cluster of --kubeconfig? Whoever defines the CRD installs it; `kubectl get crd {}` shows \
             whether it is there",
            first.crd_name()
        )))
    }
}

fn reason(kind: &Kind) -> String {
    format!(
        "it waits for its CRD: the cluster serves no {} in version {}",
        kind.crd_name(),
        kind.version
    )
}

#[cfg(test)]
mod tests {
    use kindex_generated::kinds::model;

    use super::*;

    static STORED: Kind = Kind {
        cluster: false,
        ..model::KIND
    };

    #[test]
    fn kinds_that_are_not_served_are_an_error_only_where_there_is_no_other() {
        let [first, second, ..] = kindex_generated::registry().kinds else {
            panic!("there are kinds")
        };
        let (one, both) = (Unserved(vec![first]), Unserved(vec![first, second]));
        one.report(&[first, second]).expect("the other was looked at");
        Unserved::default().report(&[first]).expect("it was looked at");
        let alone = one.report(&[first]).expect_err("nothing was done").to_string();
        assert!(
            alone.starts_with("error: Project: it waits for its CRD: ") && alone.contains("hint: "),
            "{alone}"
        );
        let none = both.report(&[first, second]).expect_err("nothing was done");
        assert!(none.to_string().contains("serves none of these 2 kinds"), "{none}");
        both.report(&[first, second, &STORED])
            .expect_err("no cluster serves the third");
        one.report(&[first, second, &STORED]).expect("the other was looked at");
    }
}
