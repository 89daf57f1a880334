//! A run, as a training job has it.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::Uri;
use tonic::metadata::{Ascii, MetadataValue};
use uuid::Uuid;

use crate::error::Error;
use crate::link;
use crate::sender::{self, Endpoint};
use crate::settings::{Settings, Status};
use crate::shared::{Report, Shared};

/// A run that is logged to. What is guaranteed is said at the [crate](crate).
#[derive(Debug)]
pub struct Run {
    id: String,
    shared: Arc<Shared>,
}

impl Run {
    /// Starts a run, whether the service is there or not.
    ///
    /// # Errors
    /// An address, a key or a file of authorities that can never be used, and a thread that cannot be started.
    pub fn start(settings: Settings) -> Result<Self, Error> {
        let url = address(&settings.url)?;
        let key = settings.api_key.as_deref().map(bearer_token).transpose()?;
        let trusted = match url.scheme_str() {
            Some("https") => Some(link::trusting(settings.ca_file.as_deref())?),
            _ => None,
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Error::Thread(error.to_string()))?;
        let shared = Arc::new(Shared::new(settings.buffer_points));
        let id = Uuid::new_v4().to_string();
        let (sent, run) = (Arc::clone(&shared), id.clone());
        let endpoint = Endpoint { url, trusted, key };
        thread::Builder::new()
            .name("kindex-runs".to_owned())
            .spawn(move || runtime.block_on(sender::deliver(sent, settings, endpoint, run)))
            .map_err(|error| Error::Thread(error.to_string()))?;
        Ok(Self { id, shared })
    }

    /// The id of the run, by which it is found again.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Logs values of metrics at a step, with the time of now. Takes all of them or none, and waits for nobody.
    ///
    /// # Errors
    /// [`Error::Full`] where the buffer has no room, and [`Error::Refused`] where nothing is sent any more.
    pub fn log(&self, step: i64, values: &[(&str, f64)]) -> Result<(), Error> {
        self.shared.log(step, values, now())
    }

    /// What became of the points that were answered so far.
    #[must_use]
    pub fn report(&self) -> Report {
        self.shared.report()
    }

    /// Waits until everything that was logged is answered.
    ///
    /// # Errors
    /// [`Error::Timeout`] with the number of points that are not answered, which are still sent; [`Error::Refused`].
    pub fn flush(&self, timeout: Duration) -> Result<Report, Error> {
        self.shared.wait(None, timeout)
    }

    /// Waits until everything that was logged is answered, and ends the run.
    ///
    /// # Errors
    /// [`Error::Timeout`] with the number of points that are not answered, which are lost then, and the run stays
    /// running; [`Error::Refused`].
    pub fn finish(self, status: Status, timeout: Duration) -> Result<Report, Error> {
        self.shared.wait(Some(status), timeout)
    }
}

/// The thread ends by itself.
impl Drop for Run {
    fn drop(&mut self) {
        self.shared.abandon();
    }
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

fn address(text: &str) -> Result<Uri, Error> {
    let wrong = |why: String| Error::Address {
        address: text.to_owned(),
        why,
    };
    let uri: Uri = text
        .trim_end_matches('/')
        .parse()
        .map_err(|error: http::uri::InvalidUri| wrong(error.to_string()))?;
    match (uri.scheme_str(), uri.host()) {
        (Some("http" | "https"), Some(host)) if !host.is_empty() => Ok(uri),
        _ => Err(wrong("it has no scheme http or https, or no host".to_owned())),
    }
}

fn bearer_token(key: &str) -> Result<MetadataValue<Ascii>, Error> {
    let mut value: MetadataValue<Ascii> = format!("Bearer {key}").parse().map_err(|_| Error::Key)?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_can_never_be_used_is_refused_at_once() {
        for wrong in ["", "127.0.0.1:50051", "ftp://host", "http://", "http:// x"] {
            let refused = Run::start(Settings::new(wrong, "demo")).expect_err(wrong);
            assert!(matches!(refused, Error::Address { .. }), "{wrong}: {refused}");
        }
        let keyed = Settings::new("http://127.0.0.1:1", "demo").api_key("a\nb");
        assert_eq!(Run::start(keyed).expect_err("refused"), Error::Key);
    }
}
