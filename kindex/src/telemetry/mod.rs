//! Log lines on stderr and, where the environment names a collector, the spans of the
//! work as OpenTelemetry traces. Knows what is logged nowhere.

use std::env;
use std::io;

use kindex_codegen::diag::Style;
use kindex_commands::color;
use kindex_commands::error::{CommandError, CommandResult, chain};
use kindex_commands::say;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{SpanExporter, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::Level;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use sender::Sender;

use crate::cli::{Cli, LogFormat};
use crate::traces;

mod sender;

/// What has to be ended with the process.
pub(crate) struct Telemetry {
    traces: Option<SdkTracerProvider>,
}

impl Telemetry {
    /// Begins to log and to trace, as flags and environment say.
    pub(crate) fn start(cli: &Cli) -> CommandResult<Self> {
        let filter = EnvFilter::try_new(filter(&cli.log)).map_err(|error| {
            CommandError::usage(format_args!("--log {:?}: {error}", cli.log))
                .hint("for example --log info,kindex_runtime=debug")
        })?;
        let lines = tracing_subscriber::fmt::layer()
            .with_writer(io::stderr)
            .with_ansi(color::of_stderr() == Style::Colored);
        let lines = match cli.log_format {
            LogFormat::Text => lines.boxed(),
            LogFormat::Json => lines.json().boxed(),
        };
        let traces = traces::are_sent().then(provider).transpose()?;
        let spans = traces.as_ref().map(|provider| {
            tracing_opentelemetry::layer()
                .with_tracer(provider.tracer("kindex"))
                // Our own crates: the sender's libraries would trace their own sending.
                .with_filter(Targets::new().with_target("kindex", LevelFilter::DEBUG))
        });
        tracing_subscriber::registry()
            .with(lines.with_filter(filter))
            .with(spans)
            .init();
        Ok(Self { traces })
    }
}

/// Sends what is left.
impl Drop for Telemetry {
    fn drop(&mut self) {
        if let Some(traces) = &self.traces
            && let Err(error) = traces.shutdown()
        {
            say::note(format_args!("The last traces were not sent: {error}"));
        }
    }
}

/// What is said about connections is said once by us: what the clients of databases, of clusters and of NATS say
/// themselves is for who debugs.
fn filter(directives: &str) -> String {
    let quieted = [("sqlx", "error"), ("kube_client", "off"), ("async_nats", "off")];
    quieted.iter().fold(directives.to_owned(), |filter, (client, level)| {
        let mut named = directives.split(',');
        let debugs = |targets: Targets| targets.would_enable(client, &Level::DEBUG);
        if named.any(|directive| directive.trim_start().starts_with(client)) || directives.parse().is_ok_and(debugs) {
            filter
        } else {
            format!("{filter},{client}={level}")
        }
    })
}

fn provider() -> CommandResult<SdkTracerProvider> {
    let unusable = |error: &dyn std::error::Error| {
        CommandError::usage(format_args!("no traces can be sent: {}", chain(error)))
            .hint("name the collector as OTEL_EXPORTER_OTLP_ENDPOINT=http://host:4318, or unset the variable")
    };
    let sender = Sender::new().map_err(|error| unusable(&error))?;
    let exporter = SpanExporter::builder().with_http().with_http_client(sender).build();
    let resource = Resource::builder();
    let resource = match env::var_os("OTEL_SERVICE_NAME") {
        Some(_) => resource,
        None => resource.with_service_name("kindex"),
    };
    Ok(SdkTracerProvider::builder()
        .with_batch_exporter(exporter.map_err(|error| unusable(&error))?)
        .with_resource(resource.build())
        .build())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clients_warnings_come_with_debug_alone() {
        for (directives, taken) in [
            ("info", "info,sqlx=error,kube_client=off,async_nats=off"),
            (
                "warn,kindex_kube_client=debug",
                "warn,kindex_kube_client=debug,sqlx=error,kube_client=off,async_nats=off",
            ),
            ("debug", "debug"),
            ("trace", "trace"),
            ("info,sqlx=warn", "info,sqlx=warn,kube_client=off,async_nats=off"),
            ("info, sqlx=warn", "info, sqlx=warn,kube_client=off,async_nats=off"),
            (
                "info,async_nats=info",
                "info,async_nats=info,sqlx=error,kube_client=off",
            ),
            (
                "info,kube_client::client=info",
                "info,kube_client::client=info,sqlx=error,async_nats=off",
            ),
        ] {
            assert_eq!(filter(directives), taken);
        }
    }
}
