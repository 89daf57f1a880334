//! `kindex events`: what exists of a kind and what changes, from an API server or NATS. Resumes where it was cut. Who
//! follows from a position has begun before: a first connection that fails is a cut as any other. Without a position,
//! it ends the command, so that a wrong address is said at once.

use futures::StreamExt as _;
use jiff::Timestamp;
use kindex_events::http_source::{HttpSource, Token};
use kindex_events::resume::{Next, Resume};
use kindex_events::{Event, Message, Position, Source, SourceError, Subscribe};
use kindex_kube_api::meta;
use kindex_model::kind::Registry;
use kindex_nats::{Connection, NatsSource};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::cli::{EventForm, EventsArgs, Form};
use crate::error::{CommandError, CommandResult};
use crate::target::kind_of;
use crate::{interrupt, nats, output, say, url};

/// How often in a row a subscription that does not follow is cut without getting further.
const ATTEMPTS: usize = 5;
/// What is done about a position that is refused: one that was given, and one that came with an event.
const WITHOUT_POSITION: &str = "leave out --from";
const ANEW: &str = "run the command again: it begins with all that exists";
/// Of the table.
const HEADS: [&str; 4] = ["STATE", "DELETED", "UID", "OBJECT"];

/// Prints events until there are no more, or until Ctrl-C.
pub async fn run(registry: &Registry, args: &EventsArgs) -> CommandResult {
    let mut following = Following::begin(registry, args).await?;
    let ended = tokio::select! {
        ended = following.run() => ended,
        () = interrupt::wait() => Ok(()),
    };
    if let Some(note) = following.last_note() {
        say::note(note);
    }
    ended
}

/// Where the command stands.
struct Following<'a> {
    args: &'a EventsArgs,
    source: Box<dyn Source>,
    resume: Resume,
    /// Whether anything came.
    has_begun: bool,
    /// Whether an event was printed.
    has_printed: bool,
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
            has_printed: false,
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
            if self.is_over(&next) {
                if matches!(cut, SourceError::Position(_)) {
                    self.forget_position();
                }
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
                            "note: there is no subscription yet ({cut}); retrying in {pause_ms} ms"
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

    /// Whether an error ends the command, by what its subscription would do next.
    fn is_over(&self, next: &Next) -> bool {
        match next {
            Next::Never => true,
            Next::FromNothing => !self.args.follow || !self.has_begun,
            Next::After(_) if goes_on(self.args) => false,
            Next::After(_) => !self.has_begun || (!self.args.follow && self.failures >= ATTEMPTS),
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
            self.resume.advance(&message);
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

    fn print(&mut self, message: &Message) -> CommandResult {
        match message {
            Message::Event(event, position) => {
                let is_first = !std::mem::replace(&mut self.has_printed, true);
                say::print(shown(self.args.output, event, position.as_ref(), is_first)?)
            }
            Message::Replayed(_) if self.args.follow => {
                say::note("note: all existing objects are listed; changes follow");
                Ok(())
            }
            Message::Replayed(_) | Message::Alive(_) => Ok(()),
        }
    }

    /// Nothing goes on from one that is refused, wherever it came from.
    fn forget_position(&mut self) {
        self.resume = Resume::new(&Subscribe {
            from: None,
            ..self.resume.subscribe()
        });
    }

    /// Says at the end where it goes on. Before anything came, there is only what was typed, which may have been
    /// refused.
    fn last_note(&self) -> Option<String> {
        let reached = self.resume.position().filter(|_| self.has_begun)?;
        Some(format!("note: --from {reached} goes on from here"))
    }

    fn failure(&self, error: SourceError) -> CommandError {
        let (server, is_given) = (self.args.server.server(), self.args.from.is_some());
        match error {
            SourceError::Position(_) if is_given => CommandError::usage(error).hint(WITHOUT_POSITION),
            SourceError::Gone(_) if is_given => CommandError::failure(error).hint(WITHOUT_POSITION),
            SourceError::Position(_) | SourceError::Gone(_) => CommandError::failure(error).hint(ANEW),
            SourceError::UnknownTopic(topic) if server.is_some() => {
                CommandError::failure(format_args!("the NATS server has no stream of {topic}"))
                    .hint("`kindex deletion --nats` feeds it with the kinds that have `events = true`")
            }
            SourceError::UnknownTopic(message) => CommandError::failure(message),
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
    url::check("--url", &args.url)?;
    let certificates = args.ca_file.as_ref().map(|path| {
        std::fs::read(path).map_err(|error| CommandError::usage(format_args!("{}: {error}", path.display())))
    });
    let certificates = certificates.transpose()?;
    let token = args.token_file.clone().map(Token::File);
    HttpSource::new(&args.url, certificates.as_deref(), token)
        .map_err(|error| CommandError::usage(error).hint("--ca-file names a file of certificates in PEM"))
}

/// What is printed of an event. The first one has the heads of the table above it, every other document a separator.
fn shown(form: EventForm, event: &Event, position: Option<&Position>, is_first: bool) -> CommandResult<String> {
    Ok(match form {
        EventForm::Text => text(event) + "\n",
        EventForm::Table if is_first => columns(HEADS) + &row(event),
        EventForm::Table => row(event),
        EventForm::Json => format!("{}\n", json(event, position)),
        EventForm::Yaml => {
            let separator = if is_first { "" } else { "---\n" };
            separator.to_owned() + &output::document(&json(event, position), Form::Yaml)?
        }
    })
}

fn state(event: &Event) -> &'static str {
    match (event.erased, event.deletion_timestamp) {
        (true, _) => "Erased",
        (false, Some(_)) => "Deleting",
        (false, None) => "Exists",
    }
}

/// The name, with its namespace where it has one.
fn object(event: &Event) -> String {
    match event.namespace.as_str() {
        "" => event.name.clone(),
        namespace => format!("{namespace}/{}", event.name),
    }
}

/// `Deleting  prod/blue  7f7a15ab-…  2026-11-24T12:00:00Z`.
fn text(event: &Event) -> String {
    let time = event.deletion_timestamp.map(|time| time.to_string());
    let line = format!(
        "{:<8}  {}  {}  {}",
        state(event),
        output::visible(&object(event)),
        output::visible(&event.resource_id.0),
        time.unwrap_or_default()
    );
    line.trim_end().to_owned()
}

fn row(event: &Event) -> String {
    // In whole seconds, so that all have one width.
    let deleted = event.deletion_timestamp.map(meta::time);
    columns([
        state(event),
        deleted.as_deref().unwrap_or("<none>"),
        &output::visible(&event.resource_id.0),
        &output::visible(&object(event)),
    ])
}

/// A line of the table. Its widths are fixed, for it is printed before the next event is known; the name comes last,
/// as it may have any length.
fn columns([state, deleted, uid, object]: [&str; 4]) -> String {
    format!("{state:<8}   {deleted:<20}   {uid:<36}   {object}\n")
}

fn json(event: &Event, position: Option<&Position>) -> Value {
    let mut value = json!(event);
    if let Some(position) = position {
        value["position"] = position.as_str().into();
    }
    value
}

#[cfg(test)]
mod tests;
