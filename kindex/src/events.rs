//! `kindex events`: what exists of a kind and what changes, from an API server or NATS. Resumes where it was cut. Who
//! follows from a position has begun before: a first connection that fails is a cut as any other. Without a position,
//! it ends the command, so that a wrong address is said at once.

use futures::StreamExt as _;
use jiff::Timestamp;
use kindex_events::http_source::{HttpSource, Token};
use kindex_events::resume::{Next, Resume};
use kindex_events::{Event, Message, Position, Source, SourceError, Subscribe};
use kindex_model::kind::Registry;
use kindex_nats::{Connection, NatsSource};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::cli::{EventForm, EventsArgs};
use crate::error::{CommandError, CommandResult};
use crate::target::kind_of;
use crate::{interrupt, nats, output, say};

/// How often in a row a subscription that does not follow is cut without getting further.
const ATTEMPTS: usize = 5;

/// Prints events until there are no more, or until Ctrl-C.
pub(crate) async fn run(registry: &Registry, args: &EventsArgs) -> CommandResult {
    let mut following = Following::begin(registry, args).await?;
    let ended = tokio::select! {
        ended = following.run() => ended,
        () = interrupt::wait() => Ok(()),
    };
    following.note_position();
    ended
}

/// Where the command stands.
struct Following<'a> {
    args: &'a EventsArgs,
    source: Box<dyn Source>,
    resume: Resume,
    /// Whether anything came.
    has_begun: bool,
    /// Since the position changed.
    failures: usize,
}

impl<'a> Following<'a> {
    async fn begin(registry: &Registry, args: &'a EventsArgs) -> CommandResult<Self> {
        let from = args.from.as_deref().map(Position::parse).transpose();
        let from = from.map_err(|error| {
            CommandError::usage(format_args!("--from: {error}")).hint("it is printed on stderr at the end")
        })?;
        let subscribe = Subscribe {
            topic: topic(registry, &args.kind)?,
            from,
            deleting: args.deleting,
        };
        Ok(Self {
            args,
            source: source(args).await?,
            resume: Resume::new(&subscribe),
            has_begun: false,
            failures: 0,
        })
    }

    async fn run(&mut self) -> CommandResult {
        loop {
            let cut = match self.subscription().await {
                Ok(()) => return Ok(()),
                Err(Failure::Source(error)) => error,
                Err(Failure::Command(error)) => return Err(error),
            };
            self.failures += 1;
            let next = self.resume.ended(Some(&cut));
            let is_over = match next {
                Next::Never => true,
                Next::FromNothing => !self.args.follow || !self.has_begun,
                Next::After(_) if goes_on(self.args) => false,
                Next::After(_) => !self.has_begun || (!self.args.follow && self.failures >= ATTEMPTS),
            };
            if is_over {
                return Err(self.failure(cut));
            }
            match next {
                Next::After(pause) => {
                    let pause_ms = pause.as_millis();
                    match self.has_begun {
                        true => say::note(format_args!(
                            "note: the subscription was cut ({cut}); it is resumed in {pause_ms} ms"
                        )),
                        false => say::note(format_args!(
                            "note: there is no subscription yet ({cut}); it is tried again in {pause_ms} ms"
                        )),
                    }
                    tokio::time::sleep(pause).await;
                }
                Next::FromNothing | Next::Never => {
                    say::note(format_args!("note: {cut}. All that exists follows once more"));
                }
            }
        }
    }

    /// One subscription, until all is shown. Whatever ends it before that is an error, also where the server ends it
    /// properly: there would have been more.
    async fn subscription(&mut self) -> Result<(), Failure> {
        let mut messages = self.source.subscribe(&self.resume.subscribe()).await?;
        while let Some(message) = messages.next().await {
            let message = message?;
            self.print(&message)?;
            if message.position() != self.resume.position() && message.position().is_some() {
                self.failures = 0;
            }
            self.resume.took(&message);
            self.has_begun = true;
            if !self.args.follow && self.is_last(&message) {
                return Ok(());
            }
        }
        Err(SourceError::interrupted("the server ended the subscription").into())
    }

    /// Whether all is shown with this message.
    fn is_last(&self, message: &Message) -> bool {
        match message {
            Message::Event(..) => false,
            Message::Replayed(_) => true,
            // Who begins at a position is up to date then. Amid a replay it is no end, and a keep-alive without a
            // position need not be the server's own.
            Message::Alive(position) => self.args.from.is_some() && position.is_some(),
        }
    }

    fn print(&self, message: &Message) -> CommandResult {
        match message {
            Message::Event(event, position) => say::line(match self.args.output {
                EventForm::Text => text(event),
                EventForm::Json => json(event, position.as_ref()).to_string(),
            }),
            Message::Replayed(_) if self.args.follow => {
                say::note("note: that is all that exists; what changes follows");
                Ok(())
            }
            Message::Replayed(_) | Message::Alive(_) => Ok(()),
        }
    }

    fn note_position(&self) {
        if let Some(position) = self.resume.position() {
            say::note(format_args!("note: --from {position} goes on from here"));
        }
    }

    fn failure(&self, error: SourceError) -> CommandError {
        let server = self.args.server.server();
        match error {
            SourceError::Gone(_) => CommandError::failure(error).hint("leave out --from"),
            SourceError::UnknownTopic(topic) if server.is_some() => {
                CommandError::failure(format_args!("the NATS server has no stream of {topic}"))
                    .hint("`kindex deletion --nats` feeds it with the kinds that have `events = true`")
            }
            SourceError::UnknownTopic(message) => CommandError::failure(message),
            SourceError::Position(_) => CommandError::usage(error),
            SourceError::Refused(message) => CommandError::failure(message),
            SourceError::Interrupted { message, .. } => CommandError::failure(message).hint(match server {
                Some(server) => format!("does the NATS server run at {}? --nats names it", server.shown()),
                None => format!(
                    "does the API server run at {}? `kindex up` prints its address; --url names it",
                    self.args.url
                ),
            }),
        }
    }
}

/// Why a subscription ended.
enum Failure {
    /// The server or the network.
    Source(SourceError),
    /// Nothing can be printed.
    Command(CommandError),
}

impl From<SourceError> for Failure {
    fn from(error: SourceError) -> Self {
        Self::Source(error)
    }
}

impl From<CommandError> for Failure {
    fn from(error: CommandError) -> Self {
        Self::Command(error)
    }
}

/// Whether the command follows what it has followed before, and outlasts a server that is away at its start.
fn goes_on(args: &EventsArgs) -> bool {
    args.follow && args.from.is_some()
}

/// The topic of a kind as people write it; a kind of another service by plural and group.
fn topic(registry: &Registry, kind: &str) -> CommandResult<String> {
    match kind_of(registry, kind) {
        Ok(kind) => Ok(format!("{}.{}", kind.plural, kind.group)),
        Err(_) if kind.contains('.') => Ok(kind.to_owned()),
        Err(error) => Err(error),
    }
}

async fn source(args: &EventsArgs) -> CommandResult<Box<dyn Source>> {
    match args.server.server() {
        Some(server) => {
            let connection = match goes_on(args) {
                true => Connection::open(&server).await,
                false => Connection::reach(&server).await,
            };
            let connection = connection.map_err(|error| nats::unusable(&error))?;
            let wanted = args.partitions.clone().unwrap_or_default();
            // The set does not change while the command runs.
            let (_, partitions) = watch::channel(wanted);
            Ok(Box::new(NatsSource::new(connection, partitions, Timestamp::now)))
        }
        None => Ok(Box::new(over_http(args)?)),
    }
}

fn over_http(args: &EventsArgs) -> CommandResult<HttpSource> {
    let certificates = args.ca_file.as_ref().map(|path| {
        std::fs::read(path).map_err(|error| CommandError::usage(format_args!("{}: {error}", path.display())))
    });
    let certificates = certificates.transpose()?;
    let token = args.token_file.clone().map(Token::File);
    HttpSource::new(&args.url, certificates.as_deref(), token)
        .map_err(|error| CommandError::usage(error).hint("--ca-file names a file of certificates in PEM"))
}

/// `Deleting  prod/blue  7f7a15ab-…  2026-11-24T12:00:00Z`.
fn text(event: &Event) -> String {
    let state = match (event.erased, event.deletion_timestamp) {
        (true, _) => "Erased",
        (false, Some(_)) => "Deleting",
        (false, None) => "Exists",
    };
    let name = match event.namespace.as_str() {
        "" => event.name.clone(),
        namespace => format!("{namespace}/{}", event.name),
    };
    let time = event.deletion_timestamp.map(|time| time.to_string());
    let line = format!(
        "{state:<8}  {}  {}  {}",
        output::visible(&name),
        output::visible(&event.resource_id.0),
        time.unwrap_or_default()
    );
    line.trim_end().to_owned()
}

fn json(event: &Event, position: Option<&Position>) -> Value {
    let mut value = json!(event);
    if let Some(position) = position {
        value["position"] = position.as_str().into();
    }
    value
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use async_trait::async_trait;
    use clap::Parser;
    use futures::stream;
    use kindex_events::Subscription;
    use kindex_model::object::Uid;

    use super::*;

    const TOPIC: &str = "networks.region.example.com";

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        events: EventsArgs,
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
        let mut following = Following {
            args: &line.events,
            source: Box::new(source),
            resume: Resume::new(&Subscribe::to(TOPIC)),
            has_begun: false,
            failures: 0,
        };
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

    #[test]
    fn a_kind_of_another_service_is_named_with_its_group() {
        let registry = kindex_generated::registry();
        assert_eq!(topic(&registry, "model").expect("ours"), "models.michelangelo.api");
        let foreign = topic(&registry, "networks.region.example.com");
        assert_eq!(foreign.expect("of another"), "networks.region.example.com");
        assert!(topic(&registry, "nonsense").is_err());
    }
}
