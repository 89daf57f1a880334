//! Reads both sides of every suspect again, until it is either reported or dismissed.

use futures::{StreamExt, TryStreamExt, stream};
use kindex_model::kind::Kind;
use kindex_model::object::{Object, Uid};

use super::compare::compare;
use super::confirm::{Reading, Verdict, judge, judge_last};
use super::report::{Class, Difference, Finding};
use super::state::{Run, Suspect};
use crate::retries::{RetryBudget, with_retries};
use crate::sides::{RepairError, Sides};

/// Most suspects that are kept.
const SUSPECTS_MAX: usize = 10_000;
/// Most objects that are read from the cluster at a time.
const QUESTIONS_MAX: usize = 16;

impl Run<'_> {
    pub(super) async fn confirm_if_many(&mut self) -> Result<(), RepairError> {
        if self.suspects.len() < SUSPECTS_MAX {
            return Ok(());
        }
        self.confirm().await
    }

    /// Reads both sides of every suspect again, until each is decided.
    pub(super) async fn confirm(&mut self) -> Result<(), RepairError> {
        for _ in 0..self.options.rounds {
            if self.suspects.is_empty() {
                return Ok(());
            }
            let count = self.suspects.len();
            self.progress.note(&format!("reading {count} differences again"));
            tokio::time::sleep(self.options.settle).await;
            self.read_again().await?;
        }
        for suspect in std::mem::take(&mut self.suspects) {
            match judge_last(&suspect.first, &suspect.last) {
                Verdict::Equal => {}
                Verdict::Confirmed => self.report_suspect(suspect),
                Verdict::Moving => self.checked.unsettled += 1,
            }
        }
        Ok(())
    }

    async fn read_again(&mut self) -> Result<(), RepairError> {
        let suspects = std::mem::take(&mut self.suspects);
        let (sides, kind, retry_budget) = (self.sides, self.kind, self.options.retry_budget);
        let mut chunks = suspects.into_iter().peekable();
        while chunks.peek().is_some() {
            let chunk: Vec<Suspect> = chunks.by_ref().take(self.page_rows()).collect();
            let objects: Vec<Option<Object>> = stream::iter(&chunk)
                .map(|suspect| object_of(sides, kind, retry_budget, suspect))
                .buffered(QUESTIONS_MAX)
                .try_collect()
                .await?;
            // Rows are read after objects, so that a row that is still behind does not follow.
            let uids: Vec<Uid> = chunk.iter().map(|suspect| suspect.uid.clone()).collect();
            let rows = self.images(&uids).await?;
            for (mut suspect, object) in chunk.into_iter().zip(objects) {
                let row = rows.get(&*suspect.uid.0);
                let differences = compare(kind, &sides.platform, object.as_ref(), row);
                let reading = Reading::new(object.as_ref(), row, differences);
                let verdict = judge(&suspect.last, &reading);
                suspect.last = reading;
                match verdict {
                    Verdict::Equal => {}
                    Verdict::Confirmed => self.report_suspect(suspect),
                    Verdict::Moving => self.suspects.push(suspect),
                }
            }
        }
        Ok(())
    }

    fn report_suspect(&mut self, suspect: Suspect) {
        let Suspect { uid, name, last, .. } = suspect;
        let untrusted = |difference: &Difference| matches!(difference.class, Class::Payload | Class::ContentHash);
        self.report(Finding {
            kind: self.kind.name,
            namespace: name.namespace,
            name: name.name,
            uid: uid.to_string(),
            quarantined: self.quarantined.get(&uid).cloned(),
            lost: last.is_only_copy() && last.differences.iter().any(untrusted),
            differences: last.differences,
        });
    }
}

/// The current object of the suspect's uid. Another object of its name does not count.
async fn object_of(
    sides: &Sides,
    kind: &'static Kind,
    retry_budget: RetryBudget,
    suspect: &Suspect,
) -> Result<Option<Object>, RepairError> {
    let asked = with_retries(retry_budget, || sides.cluster.get(kind, &suspect.name)).await;
    let object = asked.map_err(|source| RepairError::cluster(kind, source))?;
    Ok(object.filter(|object| object.metadata.uid == suspect.uid))
}
