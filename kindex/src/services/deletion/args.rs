//! The flags of `kindex deletion`, and its part of those of `kindex up`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use kindex_commands::addresses::AddressArgs;
use kindex_commands::error::{CommandError, CommandResult};
use kindex_commands::install::ClusterOwner;
use kindex_commands::nats::NatsArgs;
use kindex_deletion::kinds::Kinds;
use kindex_deletion::peer::{Peers, Transport};
use kindex_events::Source;
use kindex_kube_client::peer::Address;
use kindex_model::kind::Registry;
use kindex_nats::partitions::{PARTITIONS, PARTITIONS_MAX};

use super::notify::NotifyArgs;
use crate::replicas::LeaseArgs;

/// Delete objects after those that refer to them, as `references` in crds.toml says, and with what cascades; feed NATS
/// with the events of objects.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::services) struct DeletionArgs {
    /// The cluster; default: KUBECONFIG, ~/.kube/config, or the pod's own.
    #[arg(long, value_name = "PATH")]
    pub(super) kubeconfig: Option<PathBuf>,

    /// The configuration file; its metadataStorage, mysql and sqlite stanzas say where the archive and the events are.
    #[arg(long, env = "KINDEX_CONFIG", value_name = "FILE")]
    pub(super) config: Option<PathBuf>,

    /// `sqlite:PATH` or `mysql://USER:PASSWORD@HOST:PORT/DATABASE`, instead of what the file says.
    #[arg(long, env = "KINDEX_DATABASE", value_name = "ADDRESS", hide_env_values = true)]
    pub(super) database: Option<String>,

    /// Where events go.
    #[command(flatten)]
    pub(super) feed: FeedArgs,

    /// When an object counts as blocked.
    #[command(flatten)]
    pub(super) waits: WaitArgs,

    /// Which web server gets notices.
    #[command(flatten)]
    pub(super) notify: NotifyArgs,

    /// Where other services are.
    #[command(flatten)]
    pub(super) peers: PeerArgs,

    /// Of several replicas, one works.
    #[command(flatten)]
    pub(super) lease: LeaseArgs,

    /// Address of /healthz, /readyz and /metrics; port 0 takes a free one.
    #[arg(
        long,
        env = "KINDEX_HEALTH_ADDR",
        value_name = "ADDR",
        default_value = "0.0.0.0:8087"
    )]
    pub(super) health_addr: SocketAddr,
}

const EXAMPLES: &str = "\
Examples:
  kindex deletion
  kindex deletion --kubeconfig cluster.yaml --blocked-after 300
  kindex deletion --notify https://hooks.example.com/kindex --notify-token-file token
  kindex deletion --service region=https://region.example.com:6443
  kindex deletion --config /etc/kindex/config.yaml --nats tls://nats:4222 --nats-token-file token
  kindex deletion --config /etc/kindex/config.yaml --nats tls://nats:4222 --service-events nats
  kindex deletion --service-events watch";

/// Where other services are.
#[derive(Clone, Debug, Args)]
pub(super) struct PeerArgs {
    /// Where their API servers are.
    #[command(flatten)]
    services: AddressArgs,

    /// Where the events of other services are read: from the API server of each; by lists and watches there, which
    /// serves kinds without events too; or from the NATS server of --nats, which they feed.
    #[arg(
        long,
        env = "KINDEX_SERVICE_EVENTS",
        value_name = "FROM",
        value_enum,
        default_value_t = EventsFrom::Api
    )]
    service_events: EventsFrom,
}

/// Where events of other services are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum EventsFrom {
    /// The API server of each service.
    Api,
    /// Lists and watches of the API server of each service.
    Watch,
    /// One NATS server for all.
    Nats,
}

impl PeerArgs {
    /// Whether their events come from the NATS server.
    pub(super) fn are_heard_over_nats(&self) -> bool {
        self.service_events == EventsFrom::Nats
    }

    /// # Errors
    /// Events from a NATS server that is not named.
    pub(super) fn check(&self, feed: &FeedArgs) -> CommandResult {
        if self.are_heard_over_nats() && feed.server.server().is_none() {
            let error = CommandError::usage("--service-events nats: no NATS server is named");
            return Err(error.hint("name the one that the other services feed, with --nats"));
        }
        Ok(())
    }

    /// How their events come, with the NATS server where that is one for all.
    pub(super) fn transport(&self, nats: Option<Arc<dyn Source>>) -> Transport {
        match (self.service_events, nats) {
            (EventsFrom::Nats, Some(nats)) => Transport::Shared(nats),
            (EventsFrom::Watch, _) => Transport::Watch,
            (EventsFrom::Api | EventsFrom::Nats, _) => Transport::Events,
        }
    }

    /// The services of the kinds that wait for some of theirs, with their events, and those that can be asked for
    /// holders.
    pub(super) fn peers(&self, registry: &Registry, kinds: &Kinds, events: &Transport) -> CommandResult<Peers> {
        let services = registry.services.iter().copied();
        let mut services: BTreeMap<_, Address> = services
            .map(|service| (service.group.to_owned(), service.into()))
            .collect();
        let foreign = kinds.foreign().into_iter();
        let mut foreign: BTreeMap<_, Address> = foreign.map(|(kind, service)| (kind, service.into())).collect();
        for (service, url) in self.services.moved(registry)? {
            let of_kinds = foreign.iter_mut().map(|(kind, address)| (&*kind.group, address));
            let of_holders = services.iter_mut().map(|(group, address)| (group.as_str(), address));
            for (group, address) in of_kinds.chain(of_holders) {
                if group == service.group {
                    address.move_to(url);
                }
            }
        }
        Ok(Peers::new(foreign, events).with_holders(services))
    }
}

/// How long others may be waited for.
#[derive(Clone, Debug, Args)]
pub(super) struct WaitArgs {
    /// Seconds for which a deletion waits for the same objects before an event names them.
    #[arg(
        long,
        env = "KINDEX_BLOCKED_AFTER_SECONDS",
        value_name = "SECONDS",
        default_value = "30"
    )]
    pub(super) blocked_after: NonZeroU32,
}

/// The stream of each kind with events.
#[derive(Clone, Debug, Args)]
pub(super) struct FeedArgs {
    /// Which server is fed.
    #[command(flatten)]
    pub(super) server: NatsArgs,

    /// How many partitions the stream of a kind gets when it is made; a later change applies to new streams only.
    #[arg(
        long,
        env = "KINDEX_NATS_PARTITIONS",
        value_name = "COUNT",
        default_value_t = PARTITIONS,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(PARTITIONS_MAX))
    )]
    pub(super) nats_partitions: u32,
}

/// Flags of `kindex up`.
#[derive(Clone, Debug, Args)]
pub(in crate::services) struct UpDeletionArgs {
    /// In the embedded cluster and its archive, delete objects after those that refer to them, as `references` in
    /// crds.toml says, and with what cascades [default: if there are such references]. With --kubeconfig, leave the
    /// deletion of archived objects to `kindex deletion` [default: false].
    #[arg(
        long,
        env = "KINDEX_DELETION",
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    deletion: Option<bool>,

    /// When an object counts as blocked.
    #[command(flatten)]
    pub(super) waits: WaitArgs,

    /// Which web server gets notices.
    #[command(flatten)]
    pub(super) notify: NotifyArgs,

    /// Where events go.
    #[command(flatten)]
    pub(super) feed: FeedArgs,

    /// Where other services are.
    #[command(flatten)]
    pub(super) peers: PeerArgs,
}

impl UpDeletionArgs {
    /// Whether the kinds of this program need the order, or the flag asks for it.
    pub(super) fn has_graph(&self, kinds: &Kinds) -> bool {
        self.deletion.unwrap_or(!kinds.is_empty())
    }

    /// # Errors
    /// A flag that has no effect with another one, or lacks it, a service that nothing waits for, and a web server that
    /// would get nothing.
    pub(super) fn check(&self, registry: &Registry, owner: ClusterOwner) -> CommandResult {
        let kinds = &Kinds::of(registry);
        let has_service = self.peers.services.is_given();
        for (flag, is_given) in [
            ("--service", has_service),
            ("--service-events", self.peers.service_events != EventsFrom::Api),
            ("--notify", self.notify.is_given()),
        ] {
            if is_given && self.deletion == Some(false) {
                let text = format!("{flag} has no effect with --deletion=false");
                return Err(CommandError::usage(text).hint("leave out one of them"));
            }
        }
        if self.notify.is_given() {
            self.check_notices(kinds, owner)?;
        }
        if self.has_graph(kinds) {
            self.peers.check(&self.feed)?;
        }
        if self.has_graph(kinds) || has_service {
            self.peers.peers(registry, kinds, &Transport::Events)?;
        }
        Ok(())
    }

    /// No notice is sent where this process deletes nothing in order.
    fn check_notices(&self, kinds: &Kinds, owner: ClusterOwner) -> CommandResult {
        if owner == ClusterOwner::User {
            let error = CommandError::usage("--notify has no effect with --kubeconfig");
            return Err(error.hint("give it, or KINDEX_NOTIFY, to `kindex deletion`, which works in other clusters"));
        }
        if !self.has_graph(kinds) {
            let text = "--notify has no effect: no kind has a reference that its deletion waits for";
            let error = CommandError::usage(text);
            return Err(error.hint("leave it out, or declare a reference in crds.toml, with on_delete or owned"));
        }
        self.notify.check()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use kindex_events::http_source::HttpSource;
    use kindex_model::kind::Kind;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        peers: PeerArgs,
    }

    #[test]
    fn events_of_other_services_are_read_where_the_flag_says() {
        let nats = HttpSource::new("http://nats", None, None).expect("a source");
        let nats: Arc<dyn Source> = Arc::new(nats);
        let transport = |words: &[&str]| {
            let line = Line::parse_from(["kindex"].iter().chain(words));
            line.peers.transport(Some(nats.clone()))
        };
        assert!(matches!(transport(&[]), Transport::Events));
        assert!(matches!(transport(&["--service-events", "api"]), Transport::Events));
        assert!(matches!(transport(&["--service-events", "watch"]), Transport::Watch));
        match transport(&["--service-events", "nats"]) {
            Transport::Shared(source) => assert!(Arc::ptr_eq(&source, &nats)),
            Transport::Events | Transport::Watch => panic!("not from NATS"),
        }
    }

    #[derive(Parser)]
    struct Up {
        #[command(flatten)]
        deletion: UpDeletionArgs,
    }

    fn refused(words: &[&str], kinds: &'static [&'static Kind], owner: ClusterOwner) -> Option<String> {
        let up = Up::parse_from(["kindex"].iter().chain(words));
        let registry = Registry {
            kinds,
            ..kindex_generated::registry()
        };
        let checked = up.deletion.check(&registry, owner);
        checked.err().map(|error| error.to_string())
    }

    #[test]
    fn a_web_server_that_would_get_no_notices_is_refused() {
        let all = kindex_generated::registry().kinds;
        let none: &'static [&'static Kind] = &[];
        let notify = &["--notify", "http://hooks"][..];
        assert_eq!(refused(notify, all, ClusterOwner::Kindex), None);
        assert_eq!(refused(&[], all, ClusterOwner::User), None);
        assert_eq!(refused(&[], none, ClusterOwner::Kindex), None);
        for (words, kinds, owner, why) in [
            (
                notify,
                all,
                ClusterOwner::User,
                "--notify has no effect with --kubeconfig",
            ),
            (
                notify,
                none,
                ClusterOwner::Kindex,
                "--notify has no effect: no kind has a reference",
            ),
            (
                &["--deletion=false", "--notify", "http://hooks"],
                all,
                ClusterOwner::Kindex,
                "--notify has no effect with --deletion=false",
            ),
        ] {
            let error = refused(words, kinds, owner).expect("refused");
            assert!(error.contains(why), "{error}");
        }
    }
}
