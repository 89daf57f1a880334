//! How `kindex events` goes on and ends, over servers that end or refuse subscriptions, and what it prints.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use clap::Parser;
use futures::stream;
use kindex_events::{PositionError, Subscription};
use kindex_model::object::Uid;

use super::*;

const TOPIC: &str = "networks.region.example.com";

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    events: EventsArgs,
}

/// The command before its first subscription.
fn following<'a>(args: &'a EventsArgs, source: impl Source + 'static, subscribe: &Subscribe) -> Following<'a> {
    Following {
        args,
        source: Box::new(source),
        resume: Resume::new(subscribe),
        has_begun: false,
        has_printed: false,
        failures: 0,
    }
}

/// A server that ends each subscription properly, as a proxy in between may do.
struct Brief {
    /// What a subscription has, by its number.
    messages: fn(usize) -> Vec<Message>,
    subscriptions: Arc<AtomicUsize>,
}

#[async_trait]
impl Source for Brief {
    async fn subscribe(&self, _: &Subscribe) -> Result<Subscription, SourceError> {
        let number = self.subscriptions.fetch_add(1, Ordering::Relaxed);
        if number > ATTEMPTS * 2 {
            return Err(SourceError::Refused("it never ends".to_owned()));
        }
        let messages = (self.messages)(number).into_iter().map(Ok);
        let subscription: Subscription = Box::pin(stream::iter(messages));
        Ok(subscription)
    }
}

/// How the command ends with these flags, and after how many subscriptions.
async fn ended(flags: &[&str], messages: fn(usize) -> Vec<Message>) -> (Result<(), String>, usize) {
    let line = Line::parse_from(["kindex", TOPIC].iter().chain(flags));
    let subscriptions = Arc::new(AtomicUsize::new(0));
    let source = Brief {
        messages,
        subscriptions: subscriptions.clone(),
    };
    let mut following = following(&line.events, source, &Subscribe::to(TOPIC));
    let ended = following.run().await.map_err(|error| error.to_string());
    (ended, subscriptions.load(Ordering::Relaxed))
}

fn position(number: usize) -> Position {
    Position::encode("test", TOPIC, &number)
}

/// As of a replay whose objects the filter keeps back.
fn got_to(number: usize) -> Message {
    Message::Alive(Some(position(number)))
}

#[tokio::test(start_paused = true)]
async fn a_replay_that_the_server_ends_again_and_again_without_getting_further_is_given_up() {
    type Answers = fn(usize) -> Vec<Message>;
    let cases: [(Answers, usize); 4] = [
        (|_| Vec::new(), 1),
        (|_| vec![Message::Alive(None)], ATTEMPTS),
        (|_| vec![got_to(1)], ATTEMPTS),
        (|number| vec![got_to(number.min(3))], ATTEMPTS + 3),
    ];
    for (messages, subscriptions) in cases {
        let (ended, begun) = ended(&[], messages).await;
        let said = ended.expect_err("not all was shown");
        assert!(said.contains("the server ended the subscription"), "{said}");
        assert_eq!(begun, subscriptions);
    }
}

#[tokio::test(start_paused = true)]
async fn a_replay_that_gets_further_each_time_ends_once_all_is_shown() {
    let (ended, begun) = ended(&[], |number| match number {
        0..ATTEMPTS => vec![got_to(number)],
        _ => vec![got_to(number), Message::Replayed(Some(position(number)))],
    })
    .await;
    assert_eq!((ended, begun), (Ok(()), ATTEMPTS + 1));
}

#[tokio::test(start_paused = true)]
async fn who_begins_at_a_position_is_up_to_date_once_there_is_no_event() {
    let from = position(1);
    let (ended, begun) = ended(&["--from", from.as_str()], |_| vec![got_to(1)]).await;
    assert_eq!((ended, begun), (Ok(()), 1));
}

/// As if what a proxy sends to keep the connection open said that all is shown.
#[tokio::test(start_paused = true)]
async fn a_keep_alive_without_a_position_is_no_end_for_who_begins_at_one() {
    let from = position(1);
    let (ended, begun) = ended(&["--from", from.as_str()], |number| match number {
        0 => vec![Message::Alive(None)],
        _ => vec![Message::Alive(None), got_to(2)],
    })
    .await;
    assert_eq!((ended, begun), (Ok(()), 2));
}

/// A server that refuses every subscription.
struct Refusing(SourceError);

#[async_trait]
impl Source for Refusing {
    async fn subscribe(&self, _: &Subscribe) -> Result<Subscription, SourceError> {
        Err(self.0.clone())
    }
}

#[tokio::test]
async fn nobody_is_to_go_on_from_a_position_that_was_refused() {
    let from = position(1);
    let line = Line::parse_from(["kindex", TOPIC, "--from", from.as_str()]);
    let subscribe = Subscribe {
        from: Some(from),
        ..Subscribe::to(TOPIC)
    };
    let of_nats = PositionError::Refused("the position comes from nats".to_owned());
    for error in [SourceError::gone("it is older than seven days"), of_nats.into()] {
        let mut following = following(&line.events, Refusing(error.clone()), &subscribe);
        let said = following.run().await.expect_err("refused").to_string();
        assert_eq!(said, format!("error: {error}\n  hint: leave out --from"));
        assert_eq!(following.last_note(), None);
    }
}

/// A server that gives a position, and refuses every later subscription.
struct Changed {
    refuses: SourceError,
    has_given: AtomicBool,
}

#[async_trait]
impl Source for Changed {
    async fn subscribe(&self, _: &Subscribe) -> Result<Subscription, SourceError> {
        if self.has_given.swap(true, Ordering::Relaxed) {
            return Err(self.refuses.clone());
        }
        let subscription: Subscription = Box::pin(stream::iter([Ok(got_to(2))]));
        Ok(subscription)
    }
}

/// How the command ends, with its exit code, and what it notes then.
async fn ended_by(refuses: SourceError, flags: &[&str]) -> (CommandError, Option<String>) {
    let line = Line::parse_from(["kindex", TOPIC, "--follow"].iter().chain(flags));
    let source = Changed {
        refuses,
        has_given: AtomicBool::new(false),
    };
    let mut following = following(&line.events, source, &Subscribe::to(TOPIC));
    let error = following.run().await.expect_err("it is refused");
    (error, following.last_note())
}

#[tokio::test(start_paused = true)]
async fn a_position_that_is_refused_after_something_came_is_not_offered_and_is_an_error_of_who_typed_one() {
    let of_nats = || SourceError::from(PositionError::Refused("the position comes from nats".to_owned()));
    let from = position(1);
    for (flags, hint, code) in [(&["--from", from.as_str()][..], WITHOUT_POSITION, 2), (&[], ANEW, 1)] {
        let (error, note) = ended_by(of_nats(), flags).await;
        let said = format!("error: the position comes from nats\n  hint: {hint}");
        assert_eq!(error.to_string(), said);
        assert_eq!(
            format!("{:?}", error.exit_code()),
            format!("{:?}", ExitCode::from(code))
        );
        assert_eq!(note, None);
    }
    let (_, note) = ended_by(SourceError::Refused("no".to_owned()), &[]).await;
    let goes_on = format!("note: --from {} goes on from here", position(2));
    assert_eq!(note, Some(goes_on), "any other end");
}

#[test]
fn a_line_says_what_is_known_of_an_object() {
    let mut event = Event {
        resource_id: Uid::from("7f7a"),
        deletion_timestamp: None,
        topic: TOPIC.to_owned(),
        namespace: "prod".to_owned(),
        name: "blue".to_owned(),
        erased: false,
    };
    assert_eq!(text(&event), "Exists    prod/blue  7f7a");
    event.deletion_timestamp = "2026-11-24T12:00:00Z".parse().ok();
    assert_eq!(text(&event), "Deleting  prod/blue  7f7a  2026-11-24T12:00:00Z");
    (event.erased, event.namespace) = (true, String::new());
    assert_eq!(text(&event), "Erased    blue  7f7a  2026-11-24T12:00:00Z");
    let position = Position::encode("outbox", "networks.region.example.com", &1);
    let line = json(&event, Some(&position));
    assert_eq!((&line["resourceID"], &line["erased"]), (&json!("7f7a"), &json!(true)));
    assert_eq!(line["position"], position.as_str());
}

/// A deletion, and before it an object whose name would make a column wider.
fn two_events() -> [Event; 2] {
    let deleted = Event {
        resource_id: Uid::from("7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce"),
        deletion_timestamp: "2026-11-24T12:00:00.25Z".parse().ok(),
        topic: TOPIC.to_owned(),
        namespace: "prod".to_owned(),
        name: "blue".to_owned(),
        erased: false,
    };
    let exists = Event {
        deletion_timestamp: None,
        name: "long-".repeat(20) + "\u{1b}[2J",
        ..deleted.clone()
    };
    [exists, deleted]
}

#[test]
fn a_table_has_its_heads_once_and_columns_that_line_up_whatever_comes_next() {
    let [first, second] = two_events();
    let line = |event, is_first| shown(EventForm::Table, event, None, is_first).expect("a text");
    let long = "long-".repeat(20);
    assert_eq!(
        line(&first, true) + &line(&second, false),
        format!(
            "STATE      DELETED                UID                                    OBJECT\n\
             Exists     <none>                 7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce   prod/{long}\\u{{1b}}[2J\n\
             Deleting   2026-11-24T12:00:00Z   7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce   prod/blue\n"
        )
    );
}

#[test]
fn each_event_is_a_line_of_json_or_a_document_of_yaml_with_the_position_after_it() {
    let [first, second] = two_events();
    let position = position(1);
    let both = |form| {
        let text = |event, is_first| shown(form, event, Some(&position), is_first).expect("a text");
        text(&first, true) + &text(&second, false)
    };
    let lines = both(EventForm::Json);
    let lines: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let documents = both(EventForm::Yaml);
    assert!(
        !documents.starts_with("---") && documents.ends_with('\n'),
        "{documents}"
    );
    let documents: Vec<Value> = documents
        .split("---\n")
        .map(|document| serde_saphyr::from_str(document).expect("YAML"))
        .collect();
    assert_eq!(documents, lines);
    assert_eq!(lines[1]["position"], position.as_str());
    assert_eq!(lines[1]["deletionTimestamp"], "2026-11-24T12:00:00.25Z");
}

#[test]
fn a_kind_of_another_service_is_named_with_its_group() {
    let registry = kindex_generated::registry();
    for own in ["model", "model.michelangelo.api", "models.michelangelo.api"] {
        assert_eq!(topic(&registry, own).expect("ours"), "models.michelangelo.api");
    }
    let foreign = topic(&registry, "networks.region.example.com");
    assert_eq!(foreign.expect("of another"), "networks.region.example.com");
    assert!(topic(&registry, "nonsense").is_err());
}

#[test]
fn an_address_that_is_none_is_refused_by_the_name_of_its_flag() {
    let line = Line::parse_from(["kindex", TOPIC, "--url", "nonsense"]);
    let refused = over_http(&line.events).err().expect("refused").to_string();
    let why = "error: --url: \"nonsense\" is not an http:// or https:// URL";
    assert!(refused.starts_with(why), "{refused}");
}
