//! How a subscription goes on after it was cut: from where, and how soon. Pure; the clock is the caller's.

use std::time::Duration;

use crate::event::Message;
use crate::held::Beginning;
use crate::position::Position;
use crate::source::{SourceError, Subscribe};

/// The first pause, and the longest.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// Where a subscription stands.
#[derive(Clone, Debug)]
pub struct Resume {
    topic: String,
    deleting: bool,
    position: Option<Position>,
    beginning: Beginning,
    pause: Duration,
}

/// What to do after an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Subscribe again after a pause.
    After(Duration),
    /// Subscribe from nothing: what came since the last position is not known.
    FromNothing,
    /// Every attempt will fail the same way.
    Never,
}

impl Resume {
    /// Begins where the options say.
    pub fn new(to: &Subscribe) -> Self {
        Self {
            topic: to.topic.clone(),
            deleting: to.deleting,
            position: to.from.clone(),
            beginning: Beginning::Fresh,
            pause: PAUSE_MIN,
        }
    }

    /// The subscription to begin with or to go on with.
    pub fn subscribe(&self) -> Subscribe {
        Subscribe {
            topic: self.topic.clone(),
            from: self.position.clone(),
            deleting: self.deleting,
        }
    }

    /// What is subscribed to.
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// Why the next subscription begins from nothing, if it does.
    pub fn beginning(&self) -> Option<Beginning> {
        self.position.is_none().then_some(self.beginning)
    }

    /// The position up to which all is done.
    pub fn position(&self) -> Option<&Position> {
        self.position.as_ref()
    }

    /// A message was dealt with.
    pub fn advance(&mut self, message: &Message) {
        if let Some(position) = message.position() {
            self.position = Some(position.clone());
            self.beginning = Beginning::Fresh;
        }
        self.pause = PAUSE_MIN;
    }

    /// A subscription has begun at this position, with the partitions that it has by now: what left them is read anew
    /// if it comes back before the next message.
    pub fn restart_from(&mut self, from: Position) {
        self.position = Some(from);
    }

    /// The subscription failed, or ended; `None` for an end without an error.
    pub fn ended(&mut self, error: Option<&SourceError>) -> Next {
        match error {
            Some(SourceError::Gone(_)) if self.position.is_some() => {
                self.position = None;
                self.beginning = Beginning::AfterGone;
                Next::FromNothing
            }
            Some(SourceError::UnknownTopic(_) | SourceError::Position(_) | SourceError::Refused(_)) => Next::Never,
            Some(SourceError::Gone(_)) | None => Next::After(self.paused(None)),
            Some(SourceError::Interrupted { retry_after, .. }) => Next::After(self.paused(*retry_after)),
        }
    }

    fn paused(&mut self, wanted: Option<Duration>) -> Duration {
        let pause = wanted.unwrap_or_default().max(self.pause);
        self.pause = PAUSE_MAX.min(self.pause * 2);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(number: u64) -> Position {
        Position::encode("test", "runs.g", &number)
    }

    #[test]
    fn a_subscription_goes_on_after_the_last_message_that_was_dealt_with() {
        let mut resume = Resume::new(&Subscribe::to("runs.g"));
        assert_eq!(
            (resume.subscribe().from, resume.beginning()),
            (None, Some(Beginning::Fresh))
        );
        resume.advance(&Message::Replayed(Some(position(1))));
        resume.advance(&Message::Alive(None));
        assert_eq!((resume.subscribe().from, resume.beginning()), (Some(position(1)), None));
        assert_eq!(resume.ended(None), Next::After(PAUSE_MIN));
        assert_eq!(resume.subscribe().from, Some(position(1)));
    }

    #[test]
    fn a_position_that_is_gone_leads_to_a_replay_that_knows_it() {
        let mut resume = Resume::new(&Subscribe {
            from: Some(position(1)),
            ..Subscribe::to("runs.g")
        });
        let gone = SourceError::Gone("restored".to_owned());
        assert_eq!(resume.ended(Some(&gone)), Next::FromNothing);
        assert_eq!(
            (resume.subscribe().from, resume.beginning()),
            (None, Some(Beginning::AfterGone))
        );
        assert_eq!(resume.ended(None), Next::After(PAUSE_MIN));
        assert_eq!(
            resume.beginning(),
            Some(Beginning::AfterGone),
            "also at the second attempt"
        );
        resume.advance(&Message::Replayed(Some(position(2))));
        assert_eq!(resume.beginning(), None);
    }

    #[test]
    fn pauses_grow_until_something_comes_and_a_server_may_ask_for_longer_ones() {
        let mut resume = Resume::new(&Subscribe::to("runs.g"));
        let cut = SourceError::interrupted("cut");
        let mut pauses = || (0..9).map(|_| resume.ended(Some(&cut))).collect::<Vec<_>>();
        let pauses = pauses();
        assert_eq!(pauses[..2], [Next::After(PAUSE_MIN), Next::After(PAUSE_MIN * 2)]);
        assert_eq!(pauses[8], Next::After(PAUSE_MAX));
        let asked = SourceError::Interrupted {
            message: String::new(),
            retry_after: Some(PAUSE_MAX * 2),
        };
        assert_eq!(resume.ended(Some(&asked)), Next::After(PAUSE_MAX * 2));
        resume.advance(&Message::Alive(None));
        assert_eq!(resume.ended(Some(&cut)), Next::After(PAUSE_MIN));
    }

    #[test]
    fn another_set_of_partitions_is_resumed_from_its_own_position_and_is_no_progress() {
        let mut resume = Resume::new(&Subscribe::to("runs.g"));
        resume.advance(&Message::Alive(Some(position(1))));
        assert_eq!(resume.ended(None), Next::After(PAUSE_MIN));
        resume.restart_from(position(2));
        assert_eq!(resume.subscribe().from, Some(position(2)));
        assert_eq!(resume.ended(None), Next::After(PAUSE_MIN * 2));
    }

    #[test]
    fn what_every_attempt_meets_ends_the_subscription() {
        let mut resume = Resume::new(&Subscribe::to("runs.g"));
        for error in [
            SourceError::UnknownTopic("runs.g".to_owned()),
            SourceError::Refused("no".to_owned()),
        ] {
            assert_eq!(resume.ended(Some(&error)), Next::Never);
        }
    }
}
