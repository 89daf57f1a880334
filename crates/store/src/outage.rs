//! Whether the database can be reached. Logs the start and the end of an outage, once for all calls of a store.

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Counts the objects that wait for the database.
type Waiting = Box<dyn Fn() -> usize + Send + Sync>;

/// The times at which the database cannot be reached.
pub struct Outage {
    /// For people: where the database is, without a password.
    database: String,
    lasting: Mutex<Option<Lasting>>,
    waiting: OnceLock<Waiting>,
    is_logged: AtomicBool,
}

/// An outage that is not over.
struct Lasting {
    since: Instant,
    why: String,
}

impl Outage {
    pub(super) fn new(database: String) -> Self {
        Self {
            database,
            lasting: Mutex::default(),
            waiting: OnceLock::new(),
            is_logged: AtomicBool::new(false),
        }
    }

    /// Logs outages from now on, for programs that continue through them. A single command ends with its error instead.
    pub fn log_changes(&self) {
        self.is_logged.store(true, Ordering::Relaxed);
    }

    /// Also logs how many objects waited for the end of each outage. Only the first call sets the counter.
    pub fn count_waiting(&self, count: impl Fn() -> usize + Send + Sync + 'static) {
        // One ingester works on a store.
        let _first = self.waiting.set(Box::new(count));
        self.log_changes();
    }

    /// Where the database is, for people: without a password.
    pub fn database(&self) -> &str {
        &self.database
    }

    /// How long the outage has lasted; `None` if the last call reached the database.
    pub fn lasts(&self) -> Option<Duration> {
        self.lasting().as_ref().map(|lasting| lasting.since.elapsed())
    }

    /// Why the database could not be reached when the outage began; `None` if the last call reached it.
    pub fn why(&self) -> Option<String> {
        self.lasting().as_ref().map(|lasting| lasting.why.clone())
    }

    /// Records that the database was not reached. Returns whether an outage begins.
    pub(super) fn begins(&self, why: &dyn Display) -> bool {
        let mut lasting = self.lasting();
        if lasting.is_some() {
            return false;
        }
        *lasting = Some(Lasting {
            since: Instant::now(),
            why: why.to_string(),
        });
        let text = self.begin_message(why);
        match self.is_logged.load(Ordering::Relaxed) {
            true => tracing::error!("{text}"),
            false => tracing::debug!("{text}"),
        }
        true
    }

    /// Records that the database answered. Returns whether an outage ends.
    pub(super) fn ends(&self) -> bool {
        let Some(over) = self.lasting().take() else {
            return false;
        };
        let text = self.end_message(over.since.elapsed());
        match self.is_logged.load(Ordering::Relaxed) {
            true => tracing::info!("{text}"),
            false => tracing::debug!("{text}"),
        }
        true
    }

    fn begin_message(&self, why: &dyn Display) -> String {
        let meanwhile = match self.waiting.get() {
            Some(_) => "Objects wait in the cluster until it is back",
            None => "Retrying",
        };
        format!("The database {} cannot be reached: {why}. {meanwhile}", self.database)
    }

    fn end_message(&self, lasted: Duration) -> String {
        let Self { database, waiting, .. } = self;
        let seconds = lasted.as_secs();
        let waited = match waiting.get().map(|count| count()) {
            None => String::new(),
            Some(1) => "; 1 object waited".to_owned(),
            Some(objects) => format!("; {objects} objects waited"),
        };
        format!("The database {database} is back after {seconds} s{waited}")
    }

    fn lasting(&self) -> MutexGuard<'_, Option<Lasting>> {
        self.lasting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_is_news_once_and_so_is_its_end() {
        let outage = Outage::new("mysql://kindex@db:3306/d".to_owned());
        assert!(!outage.ends() && outage.lasts().is_none());
        assert!(outage.begins(&"refused"));
        assert!(!outage.begins(&"refused by another") && outage.lasts().is_some());
        assert_eq!(outage.why().as_deref(), Some("refused"));
        assert!(outage.ends());
        assert!(!outage.ends() && outage.lasts().is_none() && outage.why().is_none());
        assert!(outage.begins(&"refused again"), "the next one is another");
    }

    #[test]
    fn its_end_reports_how_long_it_lasted_and_what_waited() {
        let outage = Outage::new("mysql://kindex@db:3306/d".to_owned());
        let back = "The database mysql://kindex@db:3306/d is back after 37 s";
        assert_eq!(outage.end_message(Duration::from_millis(37_900)), back);
        let lost = "The database mysql://kindex@db:3306/d cannot be reached: refused. ";
        assert_eq!(outage.begin_message(&"refused"), format!("{lost}Retrying"));
        outage.count_waiting(|| 12);
        assert!(
            outage
                .begin_message(&"refused")
                .ends_with(". Objects wait in the cluster until it is back")
        );
        assert_eq!(
            outage.end_message(Duration::from_secs(37)),
            format!("{back}; 12 objects waited")
        );
    }
}
