//! How a run is opened and ended.

use super::{field, texts};
use crate::domain::{FinishRun, NewRun, PresentedToken};
use crate::limits;
use crate::refusal::Refusal;
use crate::wire::v1::{FinishRunRequest, GitInfo, InitRunRequest, Parameter, SystemInfo};

/// A run to open, for a user, with its first parameters and with what its token turned out to be. An empty id or token
/// is none.
///
/// # Errors
/// No project, and what does not fit.
pub fn init_run(
    request: InitRunRequest,
    params: Vec<Parameter>,
    user: &str,
    token: PresentedToken,
) -> Result<NewRun, Refusal> {
    let project = field::project(request.project_id.as_ref())?;
    let id = |field, value: Option<String>| {
        let value = value.filter(|value| !value.is_empty());
        value.map(|value| field::bare_run_id(field, &value)).transpose()
    };
    let run = id("run_id", request.run_id)?;
    let parent = id("parent_run_id", request.parent_run_id)?;
    let name = request.name.unwrap_or_default();
    field::text("name", &name, limits::RUN_NAME)?;
    let description = request.description.unwrap_or_default();
    field::text("description", &description, limits::RUN_DESCRIPTION)?;
    if let Some(system) = &request.system_info {
        check_system(system)?;
    }
    if let Some(git) = &request.git_info {
        check_git(git)?;
    }
    let mut warnings = Vec::new();
    Ok(NewRun {
        project,
        run,
        name,
        description,
        tags: texts::tags(texts::of_tags(request.tags), &mut warnings)?,
        params: texts::params("config", texts::of_params(params), &mut warnings)?,
        system_info: request.system_info,
        git_info: request.git_info,
        parent,
        user: user.to_owned(),
        token,
        warnings,
    })
}

/// A run to end. Whether its status is one to end with is the state table's to say.
///
/// # Errors
/// No run, and what does not fit.
pub fn finish_run(request: FinishRunRequest) -> Result<FinishRun, Refusal> {
    let run = field::run_id(request.run_id.as_ref())?;
    if let Some(message) = &request.error_message {
        field::text("error_message", message, limits::ERROR_MESSAGE)?;
    }
    field::within("summary", request.summary.len(), limits::SUMMARY)?;
    let mut warnings = Vec::new();
    let summary = texts::params("summary", texts::of_params(request.summary), &mut warnings)?;
    Ok(FinishRun {
        run,
        status: request.status,
        exit_code: request.exit_code,
        error_message: request.error_message,
        summary,
        warnings,
    })
}

fn check_system(system: &SystemInfo) -> Result<(), Refusal> {
    for (field, text) in [
        ("system_info.hostname", &system.hostname),
        ("system_info.os", &system.os),
        ("system_info.python_version", &system.python_version),
    ] {
        field::text(field, text, limits::ENVIRONMENT_TEXT)?;
    }
    field::within("system_info.gpus", system.gpus.len(), limits::GPUS)?;
    for (place, gpu) in system.gpus.iter().enumerate() {
        for (part, text) in [("name", &gpu.name), ("cuda_version", &gpu.cuda_version)] {
            field::text(
                &format!("system_info.gpus[{place}].{part}"),
                text,
                limits::ENVIRONMENT_TEXT,
            )?;
        }
    }
    Ok(())
}

fn check_git(git: &GitInfo) -> Result<(), Refusal> {
    for (field, text) in [
        ("git_info.remote_url", &git.remote_url),
        ("git_info.branch", &git.branch),
        ("git_info.commit", &git.commit),
    ] {
        field::text(field, text, limits::ENVIRONMENT_TEXT)?;
    }
    Ok(())
}
