//! The contract of a transport as tests. Each transport runs all of them over a stage of its own; what they find is an
//! error with the rule that is broken.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt as _;
use kindex_model::object::Uid;
use tokio::time::timeout;

use crate::event::{Event, Message};
use crate::position::Position;
use crate::source::{Source, SourceError, Subscribe, Subscription};

/// Longest wait for a message that has to come.
const WAIT: Duration = Duration::from_secs(60);

/// A topic whose objects a test changes. Each change is done when the call returns; that a transport knows of it is
/// waited for.
#[async_trait]
pub trait Stage: Sync {
    /// The transport.
    fn source(&self) -> &dyn Source;
    /// The topic.
    fn topic(&self) -> &str;
    /// A well-formed position of this topic that nothing is known of.
    fn forgotten(&self) -> Position;
    /// The same place in another life of the topic, which comes to the same numbers: of a database before it was
    /// restored, of another cluster, of a stream before it was made anew.
    fn of_another_life(&self, position: &Position) -> Position;
    /// Creates an object that stays when it is deleted, until it is erased.
    async fn create(&self, name: &str) -> Uid;
    /// Moves it from the cluster to SQL; does nothing where objects live in one place.
    async fn archive(&self, name: &str);
    /// Deletes it: it has a deletionTimestamp.
    async fn delete(&self, name: &str);
    /// Lets it go.
    async fn erase(&self, name: &str);
    /// Until what was done so far is old enough not to be sent again to who resumes after it.
    async fn settle(&self) {}
}

/// The rule that a transport breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{rule}: {found}")]
pub struct Violation {
    /// What has to hold.
    pub rule: &'static str,
    /// What was found.
    pub found: String,
}

/// Runs all tests one after the other.
///
/// # Errors
/// The first rule that is broken.
pub async fn check(stage: &dyn Stage) -> Result<(), Violation> {
    a_replay_has_all_that_exists_and_its_end(stage).await?;
    a_deletion_is_seen_before_the_erasure(stage).await?;
    stage.settle().await;
    a_subscription_is_resumed_at_any_position(stage).await?;
    a_filter_lets_deleted_objects_pass_and_no_others(stage).await?;
    what_is_not_known_is_refused(stage).await?;
    a_position_of_another_life_is_gone(stage).await
}

/// One subscription, with the rule that is tested by it.
struct TestSubscription {
    rule: &'static str,
    messages: Subscription,
}

impl TestSubscription {
    async fn begin(stage: &dyn Stage, rule: &'static str, from: Option<Position>) -> Result<Self, Violation> {
        let to = Subscribe {
            from,
            ..Subscribe::to(stage.topic())
        };
        Self::of(stage, rule, &to).await
    }

    async fn of(stage: &dyn Stage, rule: &'static str, to: &Subscribe) -> Result<Self, Violation> {
        let messages = stage.source().subscribe(to).await;
        let messages = messages.map_err(|error| Violation {
            rule,
            found: format!("no subscription: {error}"),
        })?;
        Ok(Self { rule, messages })
    }

    /// The next message but keep-alives.
    async fn next(&mut self) -> Result<Message, Violation> {
        let found = |found: String| Violation { rule: self.rule, found };
        let next = async {
            loop {
                match self.messages.next().await {
                    Some(Ok(Message::Alive(_))) => {}
                    Some(message) => return message.map_err(|error| error.to_string()),
                    None => return Err("the subscription ended".to_owned()),
                }
            }
        };
        let next = timeout(WAIT, next).await;
        next.unwrap_or_else(|_| Err("nothing more comes".to_owned()))
            .map_err(found)
    }

    /// Until the replay has ended: its messages, the end too.
    async fn replay(&mut self) -> Result<Vec<Message>, Violation> {
        let mut messages = Vec::new();
        loop {
            let message = self.next().await?;
            messages.push(message);
            if messages.last().is_some_and(is_end) {
                return Ok(messages);
            }
        }
    }

    /// Until an event of this object is as wanted; all messages.
    async fn until(&mut self, uid: &Uid, wanted: impl Fn(&Event) -> bool) -> Result<Vec<Message>, Violation> {
        let mut messages = Vec::new();
        loop {
            let message = self.next().await?;
            let is_it = message
                .event()
                .is_some_and(|event| event.resource_id == *uid && wanted(event));
            messages.push(message);
            if is_it {
                return Ok(messages);
            }
        }
    }

    fn expect(&self, holds: bool, found: impl FnOnce() -> String) -> Result<(), Violation> {
        match holds {
            true => Ok(()),
            false => Err(Violation {
                rule: self.rule,
                found: found(),
            }),
        }
    }
}

fn last_of(messages: &[Message]) -> BTreeMap<Uid, &Event> {
    let events = messages.iter().filter_map(Message::event);
    events.map(|event| (event.resource_id.clone(), event)).collect()
}

fn is_deleting(event: &Event) -> bool {
    event.deletion_timestamp.is_some() && !event.erased
}

async fn a_replay_has_all_that_exists_and_its_end(stage: &dyn Stage) -> Result<(), Violation> {
    let rule = "a replay has all that exists, archived objects too, and its end is marked";
    let mut created = Vec::new();
    for number in 0..7 {
        created.push(stage.create(&format!("replayed-{number}")).await);
    }
    stage.archive("replayed-1").await;
    stage.delete("replayed-2").await;
    let mut known = TestSubscription::begin(stage, rule, None).await?;
    known.until(&created[2], is_deleting).await?;

    let mut watched = TestSubscription::begin(stage, rule, None).await?;
    let replay = watched.replay().await?;
    let last = last_of(&replay);
    for (number, uid) in created.iter().enumerate() {
        let Some(event) = last.get(uid) else {
            return watched.expect(false, || format!("replayed-{number} is missing"));
        };
        let is_right = is_deleting(event) == (number == 2) && !event.erased;
        watched.expect(is_right && event.topic == stage.topic(), || format!("{event:?}"))?;
        watched.expect(event.name == format!("replayed-{number}"), || format!("{event:?}"))?;
    }
    let later = stage.create("replayed-later").await;
    let after = watched.until(&later, |event| !event.is_deleted()).await?;
    let has_one_end = after.iter().all(|message| message.event().is_some());
    watched.expect(has_one_end, || "a second end of the replay".to_owned())
}

async fn a_deletion_is_seen_before_the_erasure(stage: &dyn Stage) -> Result<(), Violation> {
    let rule = "an object is seen with its deletionTimestamp before it is seen erased";
    let mut watched = TestSubscription::begin(stage, rule, None).await?;
    watched.replay().await?;
    for (name, is_archived) in [("deleted-live", false), ("deleted-archived", true)] {
        let uid = stage.create(name).await;
        watched.until(&uid, |event| !event.is_deleted()).await?;
        if is_archived {
            stage.archive(name).await;
        }
        stage.delete(name).await;
        let seen = watched.until(&uid, is_deleting).await?;
        let is_erased = seen.iter().filter_map(Message::event);
        let is_erased = is_erased
            .filter(|event| event.resource_id == uid)
            .any(|event| event.erased);
        watched.expect(!is_erased, || format!("{name} was erased first: {seen:?}"))?;
        stage.erase(name).await;
        watched.until(&uid, |event| event.erased).await?;
    }
    Ok(())
}

async fn a_subscription_is_resumed_at_any_position(stage: &dyn Stage) -> Result<(), Violation> {
    let rule = "a subscription that is resumed lacks no change after its position, and no tombstone";
    let mut watched = TestSubscription::begin(stage, rule, None).await?;
    let mut messages = watched.replay().await?;
    for number in 0..4 {
        let name = format!("resumed-{number}");
        let uid = stage.create(&name).await;
        messages.extend(watched.until(&uid, |event| !event.is_deleted()).await?);
        stage.delete(&name).await;
        messages.extend(watched.until(&uid, is_deleting).await?);
        stage.erase(&name).await;
        messages.extend(watched.until(&uid, |event| event.erased).await?);
    }
    let end = stage.create("resumed-end").await;
    messages.extend(watched.until(&end, |event| !event.is_deleted()).await?);
    let positions = messages.iter().filter(|message| message.position().is_some()).count();
    watched.expect(positions > 4, || {
        format!("{positions} positions in {} messages", messages.len())
    })?;
    for (number, message) in messages.iter().enumerate() {
        if let Some(position) = message.position() {
            let resumed = TestSubscription::begin(stage, rule, Some(position.clone())).await?;
            let (before, rest) = messages.split_at(number + 1);
            nothing_is_lacking(resumed, before, rest)
                .await
                .map_err(|violation| Violation {
                    found: format!("after message {number}, {message:?}: {}", violation.found),
                    ..violation
                })?;
        }
    }
    nothing_old_comes_after(stage, &messages).await
}

/// What was sent before a cut and what is sent after it come to the same as all that would have been sent.
async fn nothing_is_lacking(
    mut resumed: TestSubscription,
    before: &[Message],
    rest: &[Message],
) -> Result<(), Violation> {
    let wanted: BTreeMap<Uid, bool> = states(before.iter().chain(rest));
    let mut seen = states(before.iter());
    let mut ends = rest.iter().filter(|message| is_end(message)).count();
    let lacking = |seen: &BTreeMap<Uid, bool>| {
        let mut wanted = wanted.iter();
        let lacking = wanted.find(|(uid, erased)| seen.get(uid) != Some(erased));
        lacking.map(|(uid, erased)| format!("{uid} with erased = {erased}"))
    };
    while ends > 0 || lacking(&seen).is_some() {
        let message = resumed.next().await.map_err(|violation| Violation {
            found: format!(
                "{}, and {ends} ends of the replay and {:?} are missing",
                violation.found,
                lacking(&seen)
            ),
            ..violation
        })?;
        resumed.expect(!is_end(&message) || ends > 0, || {
            "an end of a replay too many".to_owned()
        })?;
        ends -= usize::from(is_end(&message));
        seen.extend(states([&message].into_iter()));
    }
    Ok(())
}

/// Whether objects are erased, by their last events.
fn states<'a>(messages: impl Iterator<Item = &'a Message>) -> BTreeMap<Uid, bool> {
    let events = messages.filter_map(Message::event);
    events.map(|event| (event.resource_id.clone(), event.erased)).collect()
}

fn is_end(message: &Message) -> bool {
    matches!(message, Message::Replayed(_))
}

/// What was sent long before the position is not sent again.
async fn nothing_old_comes_after(stage: &dyn Stage, messages: &[Message]) -> Result<(), Violation> {
    let rule = "a subscription that is resumed begins after its position";
    let Some(position) = messages.iter().rev().find_map(Message::position) else {
        return Err(Violation {
            rule,
            found: "no message has a position".to_owned(),
        });
    };
    let mut resumed = TestSubscription::begin(stage, rule, Some(position.clone())).await?;
    let uid = stage.create("resumed-after").await;
    let after = resumed.until(&uid, |event| !event.is_deleted()).await?;
    let old = after.iter().find(|message| match message {
        // At least once: of the last ones again.
        Message::Event(event, _) => !event.name.starts_with("resumed-"),
        Message::Replayed(_) | Message::Alive(_) => true,
    });
    resumed.expect(old.is_none(), || format!("{old:?}"))
}

async fn a_filter_lets_deleted_objects_pass_and_no_others(stage: &dyn Stage) -> Result<(), Violation> {
    let rule = "with the filter only objects that are deleted are sent";
    let uid = stage.create("filtered-before").await;
    stage.delete("filtered-before").await;
    let mut all = TestSubscription::begin(stage, rule, None).await?;
    all.until(&uid, is_deleting).await?;
    let to = Subscribe {
        deleting: true,
        ..Subscribe::to(stage.topic())
    };
    let mut watched = TestSubscription::of(stage, rule, &to).await?;
    let mut messages = watched.replay().await?;
    let has_it = last_of(&messages).get(&uid).is_some_and(|event| is_deleting(event));
    watched.expect(has_it, || "filtered-before is missing".to_owned())?;
    stage.create("filtered-live").await;
    let after = stage.create("filtered-after").await;
    stage.delete("filtered-after").await;
    messages.extend(watched.until(&after, is_deleting).await?);
    stage.erase("filtered-after").await;
    messages.extend(watched.until(&after, |event| event.erased).await?);
    let mut events = messages.iter().filter_map(Message::event);
    let live = events.find(|event| !event.is_deleted());
    watched.expect(live.is_none(), || format!("{live:?}"))
}

/// That a position or a topic that nobody knows is refused, which [`check`] tests too.
///
/// # Errors
/// The rule that is broken.
pub async fn what_is_not_known_is_refused(stage: &dyn Stage) -> Result<(), Violation> {
    let forgotten = Subscribe {
        from: Some(stage.forgotten()),
        ..Subscribe::to(stage.topic())
    };
    let found = first_error(stage, &forgotten).await;
    if !matches!(found, Some(SourceError::Gone(_))) {
        return Err(Violation {
            rule: "a position that is not known any more is gone",
            found: format!("{found:?}"),
        });
    }
    let found = first_error(stage, &Subscribe::to("nonsenses.example.com")).await;
    if !matches!(found, Some(SourceError::UnknownTopic(_))) {
        return Err(Violation {
            rule: "a topic that nobody has is unknown",
            found: format!("{found:?}"),
        });
    }
    Ok(())
}

/// A number that is known proves nothing: another life of the topic comes to it as well.
async fn a_position_of_another_life_is_gone(stage: &dyn Stage) -> Result<(), Violation> {
    let rule = "a position of another life of the topic is gone, also where its number is known";
    let mut watched = TestSubscription::begin(stage, rule, None).await?;
    watched.replay().await?;
    let uid = stage.create("known").await;
    let messages = watched.until(&uid, |event| !event.is_deleted()).await?;
    let Some(known) = messages.iter().rev().find_map(Message::position) else {
        return watched.expect(false, || format!("no message has a position: {messages:?}"));
    };
    // The place itself is known.
    TestSubscription::begin(stage, rule, Some(known.clone())).await?;
    let other = Subscribe {
        from: Some(stage.of_another_life(known)),
        ..Subscribe::to(stage.topic())
    };
    let found = first_error(stage, &other).await;
    watched.expect(matches!(found, Some(SourceError::Gone(_))), || format!("{found:?}"))
}

/// Why there is no subscription, or what ends it before any message.
async fn first_error(stage: &dyn Stage, to: &Subscribe) -> Option<SourceError> {
    match stage.source().subscribe(to).await {
        Err(error) => Some(error),
        Ok(mut messages) => match timeout(WAIT, messages.next()).await {
            Ok(Some(Err(error))) => Some(error),
            Ok(_) | Err(_) => None,
        },
    }
}
