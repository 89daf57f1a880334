//! What a command tells the person who typed it when it cannot go on: what is
//! wrong, why, and what to do, with the exit code.

use std::fmt;
use std::process::ExitCode;

pub use kindex_model::causes::chain;

/// Exit codes, the same for all commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// A difference or a failure.
    Failure,
    /// The command line or a file that it names is wrong.
    Usage,
    /// Nothing is wrong, and there is something to do: for a command that was asked to say so by its exit code.
    Pending,
}

/// A failure with a way out.
#[derive(Debug)]
pub struct CommandError {
    exit: Exit,
    message: String,
    hint: Option<String>,
}

/// What commands return.
pub type CommandResult<T = ()> = Result<T, CommandError>;

impl CommandError {
    /// Something failed or differs.
    pub fn failure(message: impl fmt::Display) -> Self {
        Self {
            exit: Exit::Failure,
            message: message.to_string(),
            hint: None,
        }
    }

    /// The person asked for something that cannot be.
    pub fn usage(message: impl fmt::Display) -> Self {
        Self {
            exit: Exit::Usage,
            message: message.to_string(),
            hint: None,
        }
    }

    /// There is something to do.
    pub fn pending(message: impl fmt::Display) -> Self {
        Self {
            exit: Exit::Pending,
            message: message.to_string(),
            hint: None,
        }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl fmt::Display) -> Self {
        self.hint = Some(hint.to_string());
        self
    }

    /// The same as a note, for a command that goes on without: it does not call itself an error.
    pub fn as_note(&self) -> String {
        match &self.hint {
            Some(hint) => format!("note: {}\n  hint: {hint}", self.message),
            None => format!("note: {}", self.message),
        }
    }

    /// The process's exit code.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self.exit {
            Exit::Failure => 1,
            Exit::Usage | Exit::Pending => 2,
        })
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.exit == Exit::Pending { "" } else { "error: " };
        write!(f, "{word}{}", self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}
