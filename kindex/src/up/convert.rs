//! What the embedded cluster asks where a kind's versions have shapes of their own: the tables of the registry, without
//! a webhook.

use kindex_cluster::Convert;
use kindex_model::kind::{Kind, Registry};

/// The versions of all kinds.
pub(super) struct Versions(pub(super) Registry);

impl Versions {
    fn find(&self, group: &str, kind: &str) -> Option<&'static Kind> {
        let mut kinds = self.0.kinds.iter().copied();
        kinds.find(|known| known.group == group && known.name == kind)
    }
}

impl Convert for Versions {
    fn knows(&self, group: &str, kind: &str) -> bool {
        self.find(group, kind).is_some_and(|kind| !kind.versions.is_empty())
    }

    fn convert(&self, group: &str, kind: &str, text: &str, version: &str) -> Result<String, String> {
        let kind = self
            .find(group, kind)
            .ok_or_else(|| format!("{kind} is no kind of Kindex"))?;
        kindex_convert::convert(&self.0.platform, kind, text, version).map_err(|error| error.to_string())
    }
}
