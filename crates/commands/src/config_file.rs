//! The configuration file that a command names, read from the disk. Its keys are known to `config`.

use std::path::Path;

use kindex_model::kind::Registry;

use crate::config::Config;
use crate::error::{CommandError, CommandResult, chain};

/// The configuration file, with every error in it as one usage error.
pub fn read(registry: &Registry, path: &Path) -> CommandResult<Config> {
    let wrong = |error: &dyn std::error::Error| {
        CommandError::usage(format_args!("{}: {}", path.display(), chain(error)))
            .hint("docs/src/reference/configuration.md lists every key")
    };
    let unread = |error: &std::io::Error| {
        CommandError::usage(format_args!("{}: {error}", path.display()))
            .hint("--config or KINDEX_CONFIG names a file that can be read")
    };
    let text = std::fs::read_to_string(path).map_err(|error| unread(&error))?;
    let mut config = Config::parse(&text, registry).map_err(|error| wrong(&error))?;
    config.read_credentials().map_err(|error| wrong(&error))?;
    Ok(config)
}
