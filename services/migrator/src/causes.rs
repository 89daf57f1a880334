//! Errors for people: what failed, and what caused that.

use std::error::Error;

use kube::core::Status;
use kube::runtime::{wait, watcher};

/// An error with its causes, each said once. Of an API server's refusal it gives the server's words and code, and not
/// the whole `Status`.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = message(error);
    let mut source = if is_whole(error) { None } else { error.source() };
    while let Some(cause) = source {
        let cause_message = message(cause);
        if !text.contains(&cause_message) {
            text = format!("{text}: {cause_message}");
        }
        source = match is_whole(cause) {
            true => None,
            false => cause.source(),
        };
    }
    text
}

fn message(error: &(dyn Error + 'static)) -> String {
    if let Some(kube::Error::Api(status)) = error.downcast_ref() {
        return refusal(status);
    }
    if let Some(wait::Error::ProbeFailed(error)) = error.downcast_ref() {
        return message(error);
    }
    match error.downcast_ref() {
        Some(watcher::Error::WatchError(status)) => refusal(status),
        Some(
            watcher::Error::InitialListFailed(cause)
            | watcher::Error::WatchStartFailed(cause)
            | watcher::Error::WatchFailed(cause),
        ) => chain(cause),
        Some(watcher::Error::NoResourceVersion) | None => error.to_string(),
    }
}

fn refusal(status: &Status) -> String {
    format!("{} ({})", status.message, status.code)
}

/// Whether its causes are said with it.
fn is_whole(error: &(dyn Error + 'static)) -> bool {
    error.is::<watcher::Error>()
        || error.is::<wait::Error>()
        || matches!(error.downcast_ref(), Some(kube::Error::Api(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("pets cannot be listed")]
    struct Unlisted(#[source] kube::Error);

    #[test]
    fn a_refusal_is_told_in_the_words_of_the_server() {
        let status = Status::failure("bob may not list pets", "Forbidden").with_code(403);
        let watched = watcher::Error::InitialListFailed(kube::Error::Api(Box::new(status.clone())));
        assert_eq!(chain(&watched), "bob may not list pets (403)");
        let error = Unlisted(kube::Error::Api(Box::new(status)));
        assert_eq!(chain(&error), "pets cannot be listed: bob may not list pets (403)");
    }
}
