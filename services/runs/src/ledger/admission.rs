//! Whether a batch is new, and which of its metrics the run has room for.

/// How a batch relates to what is stored under its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredMatch {
    /// The id is free.
    New,
    /// The same content is stored.
    Duplicate,
    /// Other content is stored.
    Conflict,
}

/// Compares the hash of a batch with the one that is stored under its id.
#[must_use]
pub(crate) fn compare_with_stored(stored: Option<&[u8]>, sent: &[u8; 32]) -> StoredMatch {
    match stored {
        None => StoredMatch::New,
        Some(stored) if stored == sent => StoredMatch::Duplicate,
        Some(_) => StoredMatch::Conflict,
    }
}

/// Which new metrics of a batch a run takes in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Admission {
    /// For each new name, in their order, whether it is admitted.
    pub admitted: Vec<bool>,
    /// How many metrics the run has afterwards.
    pub names: u64,
    /// How many new names are not admitted.
    pub refused_names: u64,
    /// The points of those.
    pub refused_points: u64,
    /// Whether a name was added at or above the share of the limit where a warning is due.
    pub is_approaching: bool,
}

/// Admits new names, first come first served, while the run has fewer than `limit`; `points` are those of each new
/// name. Names that the run has already are always welcome and not asked about.
#[must_use]
pub(crate) fn admit_names(known: u64, points: &[u64], limit: u64, warn_percent: u64) -> Admission {
    let room = usize::try_from(limit.saturating_sub(known)).unwrap_or(usize::MAX);
    let added = room.min(points.len());
    let names = known + added as u64;
    let refused = &points[added..];
    Admission {
        admitted: (0..points.len()).map(|place| place < added).collect(),
        names,
        refused_names: refused.len() as u64,
        refused_points: refused.iter().sum(),
        is_approaching: added > 0 && names * 100 >= limit * warn_percent,
    }
}
