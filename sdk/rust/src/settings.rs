//! How a run is started, and how it ends.

use std::path::PathBuf;

use crate::wire::RunStatus;

/// How a run is started. Fields with defaults are set by the functions of their names.
#[derive(Clone)]
pub struct Settings {
    pub(crate) url: String,
    pub(crate) project: String,
    pub(crate) name: Option<String>,
    pub(crate) api_key: Option<String>,
    pub(crate) ca_file: Option<PathBuf>,
    pub(crate) tags: Vec<(String, String)>,
    pub(crate) params: Vec<(String, String)>,
    pub(crate) buffer_points: usize,
}

/// Keys are not shown.
impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings")
            .field("url", &self.url)
            .field("project", &self.project)
            .finish_non_exhaustive()
    }
}

impl Settings {
    /// A run of a project, at a service that listens at a URL such as `http://127.0.0.1:50051`. `https` trusts the
    /// certificate authorities of the machine, of the file that `SSL_CERT_FILE` names, or of [`Self::ca_file`] alone.
    pub fn new(url: impl Into<String>, project: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            project: project.into(),
            name: None,
            api_key: None,
            ca_file: None,
            tags: Vec::new(),
            params: Vec::new(),
            buffer_points: 1_000_000,
        }
    }

    /// What people call the run.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// A key with the scope `ingest`, where the service asks for one.
    #[must_use]
    pub fn api_key(mut self, key: impl Into<String>) -> Self {
        self.api_key = Some(key.into());
        self
    }

    /// A file in PEM form with the only certificate authorities to trust, for an address with `https`.
    #[must_use]
    pub fn ca_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.ca_file = Some(path.into());
        self
    }

    /// Adds a tag.
    #[must_use]
    pub fn tag(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.tags.push((key.into(), value.into()));
        self
    }

    /// Adds a parameter.
    #[must_use]
    pub fn param(mut self, name: impl Into<String>, value: impl ToString) -> Self {
        self.params.push((name.into(), value.to_string()));
        self
    }

    /// How many points may wait to be answered; a point takes 40 bytes. One million unless set.
    #[must_use]
    pub fn buffer_points(mut self, points: usize) -> Self {
        self.buffer_points = points;
        self
    }
}

/// How a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It did what it was to do.
    Finished,
    /// It did not.
    Failed,
    /// Somebody ended it.
    Killed,
}

impl From<Status> for RunStatus {
    fn from(status: Status) -> Self {
        match status {
            Status::Finished => Self::Finished,
            Status::Failed => Self::Failed,
            Status::Killed => Self::Killed,
        }
    }
}
