//! Whether the store writes, and why it does not: what was found out, as everybody who asks is told. Tries nothing.

use tokio::sync::watch;

/// The state of writing. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Health(watch::Sender<Option<String>>);

impl Health {
    /// Everything is well.
    pub(super) fn new() -> Self {
        Self(watch::Sender::new(None))
    }

    /// Nothing can be written, and why. Whether that is news.
    pub(super) fn fails(&self, why: &str) -> bool {
        let mut is_news = false;
        self.0.send_if_modified(|known| {
            is_news = known.is_none();
            let is_other = known.as_deref() != Some(why);
            if is_other {
                *known = Some(why.to_owned());
            }
            is_other
        });
        is_news
    }

    /// Something was written. Whether that is news.
    pub(super) fn works(&self) -> bool {
        self.0.send_if_modified(|known| known.take().is_some())
    }

    pub(super) fn is_failing(&self) -> bool {
        self.0.borrow().is_some()
    }

    pub(super) fn follow(&self) -> watch::Receiver<Option<String>> {
        self.0.subscribe()
    }
}

/// Says that nothing is written any more when it is dropped, however its task ended.
#[derive(Debug)]
pub(super) struct FailOnDrop(pub(super) Health);

impl Drop for FailOnDrop {
    fn drop(&mut self) {
        self.0.fails("the task that writes has ended; restart the service");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_and_the_first_success_after_it_are_news() {
        let health = Health::new();
        let seen = health.follow();
        assert!(!health.works());
        assert!(health.fails("full"));
        assert!(!health.fails("full"));
        assert!(!health.fails("gone"), "another reason alone is not news");
        assert_eq!(seen.borrow().as_deref(), Some("gone"));
        assert!(health.works());
        assert!(!health.is_failing());
        drop(FailOnDrop(health.clone()));
        assert!(health.is_failing());
    }
}
