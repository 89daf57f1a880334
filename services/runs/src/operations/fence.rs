//! The project of a request: a key of one project reaches nothing of another one, whatever the request names.

use super::Operations;
use crate::domain::RunId;
use crate::keys::{Caller, Scope};
use crate::refusal::Refusal;
use crate::roles::Uploads;
use crate::validate;
use crate::wire::v1;

impl Operations {
    /// Whether a caller may do this to a project.
    pub(super) fn check_project(
        &self,
        caller: &Caller,
        scope: Scope,
        project: Option<&v1::ProjectId>,
    ) -> Result<(), Refusal> {
        caller.may(scope)?;
        caller.may_in(&validate::project(project)?)
    }

    /// Whether a caller may do this to a run. Of a run that is not there, the call itself tells.
    pub(super) async fn check_run(
        &self,
        caller: &Caller,
        scope: Scope,
        run: Option<&v1::RunId>,
    ) -> Result<RunId, Refusal> {
        caller.may(scope)?;
        let run = validate::run_id(run)?;
        // Who may see all projects need not know which one it is.
        if caller.project.is_some()
            && let Some(project) = self.store.project_of(&run).await?
        {
            caller.may_in(&project)?;
        }
        Ok(run)
    }

    /// Whether a caller may do this to the run of an upload.
    pub(super) async fn check_upload(&self, caller: &Caller, upload_id: &str) -> Result<(), Refusal> {
        caller.may(Scope::Ingest)?;
        if caller.project.is_none() {
            return Ok(());
        }
        let Some(run) = self.artifacts.run_of(upload_id).await? else {
            return Ok(());
        };
        match self.store.project_of(&run).await? {
            Some(project) => caller.may_in(&project),
            None => Ok(()),
        }
    }
}
