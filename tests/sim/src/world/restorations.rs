//! Restorations of the cluster from its backup, and who has noticed the last one.

/// A restoration is under way until all processes have noticed it, and nothing from before it can still be committed.
#[derive(Debug, Default)]
pub(crate) struct Restorations {
    /// How often the cluster was restored.
    pub(crate) count: u64,
    /// Of the one that is under way, which processes have noticed it.
    noticed: Option<Vec<bool>>,
}

impl Restorations {
    /// The cluster was restored. Those processes have `noticed` it that have received nothing from the lost time.
    pub(crate) fn begin(&mut self, noticed: Vec<bool>) {
        self.count += 1;
        self.noticed = noticed.contains(&false).then_some(noticed);
    }

    /// Users wait as long as one is under way.
    pub(crate) fn is_under_way(&self) -> bool {
        self.noticed.is_some()
    }

    /// A process has noticed the restoration, and has saved its mark.
    pub(crate) fn notice(&mut self, who: usize) {
        if let Some(noticed) = &mut self.noticed {
            noticed[who] = true;
        }
    }

    /// Whether a process has nothing to notice any more.
    pub(crate) fn is_noticed_by(&self, who: usize) -> bool {
        self.noticed.as_ref().is_none_or(|noticed| noticed[who])
    }

    /// Whether all processes have noticed the restoration.
    pub(crate) fn all_noticed(&self) -> bool {
        self.noticed.iter().flatten().all(|noticed| *noticed)
    }

    /// Users go on.
    pub(crate) fn end(&mut self) {
        self.noticed = None;
    }
}
