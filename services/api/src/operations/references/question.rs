//! What one question asks of other services: nothing more of one that was silent, and nothing once its time is over. It
//! may be about several objects, and lead over thousands of objects of one service.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

/// For how long a question asks other services, from its beginning.
const TIME_MAX: Duration = Duration::from_secs(10);

/// Why a service has not said what it was asked.
#[derive(Debug)]
pub(super) struct PeerFailure {
    pub(super) why: String,
    /// Whether nothing came from it at all.
    pub(super) is_silent: bool,
}

impl PeerFailure {
    /// Nothing came from it.
    pub(super) fn silent(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            is_silent: true,
        }
    }

    /// It has answered, and has not said it.
    pub(super) fn answered(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            is_silent: false,
        }
    }
}

/// What is asked of other services together.
pub struct Question {
    /// When its time is over. A command that may take its time has none: each answer has a limit of its own.
    ends: Option<Instant>,
    /// The groups whose services were silent.
    silent: Mutex<BTreeSet<String>>,
}

impl Question {
    /// One that begins now.
    pub(in super::super) fn new(now: Instant) -> Self {
        Self {
            ends: Some(now + TIME_MAX),
            silent: Mutex::default(),
        }
    }

    /// One about any number of objects, which may take as long as they do.
    #[must_use]
    pub fn without_end() -> Self {
        Self {
            ends: None,
            silent: Mutex::default(),
        }
    }

    /// What the service of a group says, which people know by this name; or why nothing is known.
    pub(super) async fn ask<T>(
        &self,
        group: &str,
        name: &str,
        asked: impl Future<Output = Result<T, PeerFailure>>,
    ) -> Result<T, String> {
        let seconds = TIME_MAX.as_secs();
        if self.silent().contains(group) {
            return Err(format!("the service {name} was not asked again: it was silent before"));
        }
        let said = match self.ends {
            None => asked.await,
            Some(ends) if Instant::now() >= ends => {
                return Err(format!("the service {name} was not asked: {seconds} s are over"));
            }
            Some(ends) => match timeout_at(ends, asked).await {
                Ok(said) => said,
                Err(_) => {
                    return Err(format!(
                        "the service {name} has said nothing before {seconds} s were over"
                    ));
                }
            },
        };
        said.map_err(|failure| {
            if failure.is_silent {
                self.silent().insert(group.to_owned());
            }
            failure.why
        })
    }

    fn silent(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.silent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::time::{advance, sleep};

    use super::*;

    /// Counts how often services are asked.
    #[derive(Default)]
    struct CallCounter(AtomicUsize);

    impl CallCounter {
        /// One that says this.
        async fn says(&self, said: Result<(), PeerFailure>) -> Result<(), PeerFailure> {
            self.0.fetch_add(1, Ordering::SeqCst);
            said
        }

        fn times(&self) -> usize {
            self.0.load(Ordering::SeqCst)
        }
    }

    #[tokio::test]
    async fn a_service_that_was_silent_is_not_asked_again_and_others_are() {
        let (question, counter) = (Question::new(Instant::now()), CallCounter::default());
        let unknown = || counter.says(Err(PeerFailure::answered("it has no such object")));
        for _ in 0..2 {
            let said = question.ask("region", "region", unknown()).await;
            assert_eq!(said.expect_err("it is not there"), "it has no such object");
        }
        let silent = || counter.says(Err(PeerFailure::silent("no route")));
        let said = question.ask("region", "region", silent()).await;
        assert_eq!(said.expect_err("it is silent"), "no route");
        let said = question
            .ask("region", "region", silent())
            .await
            .expect_err("it is not asked");
        assert!(said.contains("region was not asked again"), "{said}");
        assert_eq!(counter.times(), 3);
        question
            .ask("identity", "identity", counter.says(Ok(())))
            .await
            .expect("another one");
        let next = Question::new(Instant::now());
        next.ask("region", "region", counter.says(Ok(())))
            .await
            .expect("another question");
        assert_eq!(counter.times(), 5);
    }

    /// As if each object of a run cost the time after which a service counts as silent, or all had the time of one.
    #[tokio::test(start_paused = true)]
    async fn a_question_without_end_waits_once_for_a_silent_service_and_goes_on_asking_others() {
        let (question, counter) = (Question::without_end(), CallCounter::default());
        let (begun, limit) = (Instant::now(), Duration::from_secs(5));
        let hangs = || async {
            sleep(limit).await;
            counter.says(Err(PeerFailure::silent("not within 5 s"))).await
        };
        for _ in 0..1000 {
            question
                .ask("region", "region", hangs())
                .await
                .expect_err("it is silent");
        }
        assert_eq!((begun.elapsed(), counter.times()), (limit, 1));
        advance(TIME_MAX * 2).await;
        question
            .ask("identity", "identity", counter.says(Ok(())))
            .await
            .expect("another one");
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_is_asked_once_the_time_of_a_question_is_over() {
        let (question, counter) = (Question::new(Instant::now()), CallCounter::default());
        advance(TIME_MAX - Duration::from_secs(1)).await;
        question
            .ask("region", "region", counter.says(Ok(())))
            .await
            .expect("in time");
        let slow = std::future::pending::<Result<(), PeerFailure>>();
        let said = question.ask("region", "region", slow).await.expect_err("too slow");
        assert!(said.contains("has said nothing before 10 s"), "{said}");
        for group in ["region", "identity"] {
            let said = question
                .ask(group, group, counter.says(Ok(())))
                .await
                .expect_err("over");
            assert!(
                said.contains(&format!("{group} was not asked: 10 s are over")),
                "{said}"
            );
        }
        assert_eq!(counter.times(), 1);
    }
}
