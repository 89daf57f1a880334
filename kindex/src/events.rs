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

/// How often in a row a subscription that does not follow is begun again.
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
                Ok(Outcome::Complete) => return Ok(()),
                Ok(Outcome::Cut) => None,
                Err(Failure::Source(error)) => Some(error),
                Err(Failure::Command(error)) => return Err(error),
            };
            self.failures += 1;
            let why = cut
                .as_ref()
                .map_or_else(|| "the server ended it".to_owned(), ToString::to_string);
            let next = self.resume.ended(cut.as_ref());
            let is_over = match next {
                Next::Never => true,
                Next::FromNothing => !self.args.follow || !self.has_begun,
                Next::After(_) if goes_on(self.args) => false,
                Next::After(_) => !self.has_begun || (!self.args.follow && self.failures >= ATTEMPTS),
            };
            if let Some(error) = cut.filter(|_| is_over) {
                return Err(self.failure(error));
            }
            match next {
                Next::After(pause) => {
                    let pause_ms = pause.as_millis();
                    match self.has_begun {
                        true => say::note(format_args!(
                            "note: the subscription was cut ({why}); it is resumed in {pause_ms} ms"
                        )),
                        false => say::note(format_args!(
                            "note: there is no subscription yet ({why}); it is tried again in {pause_ms} ms"
                        )),
                    }
                    tokio::time::sleep(pause).await;
                }
                Next::FromNothing | Next::Never => {
                    say::note(format_args!("note: {why}. All that exists follows once more"));
                }
            }
        }
    }

    /// One subscription, until it ends.
    async fn subscription(&mut self) -> Result<Outcome, Failure> {
        let mut messages = self.source.subscribe(&self.resume.subscribe()).await?;
        while let Some(message) = messages.next().await {
            let message = message?;
            self.print(&message)?;
            self.resume.took(&message);
            (self.has_begun, self.failures) = (true, 0);
            // Who begins at a position is up to date with the first message that has no event.
            let is_last = message.event().is_none();
            if is_last && !self.args.follow {
                return Ok(Outcome::Complete);
            }
        }
        Ok(Outcome::Cut)
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

/// How a subscription ended without an error.
enum Outcome {
    /// All is shown.
    Complete,
    /// There would have been more.
    Cut,
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
    use kindex_model::object::Uid;

    use super::*;

    #[test]
    fn a_line_says_what_is_known_of_an_object() {
        let mut event = Event {
            resource_id: Uid::from("7f7a"),
            deletion_timestamp: None,
            topic: "networks.region.example.com".to_owned(),
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
