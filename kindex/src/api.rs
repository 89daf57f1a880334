//! `kindex api`: the API server over a cluster and a database, as a role of its own and as a part of `kindex up`.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use axum::Router;
use kindex_api::figures::Figures;
use kindex_api::grpc;
use kindex_api::operations::{Operations, RightsOf};
use kindex_api::rest::Rest;
use kindex_api::server::{self, Limits};
use kindex_model::kind::Registry;
use kindex_serve::listen::{ConnectionLimits, FrontProxy, Tls};
use kindex_serve::watches::WatchLimits;
use kindex_store::database_gauges::DatabaseGauges;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::cli::{ApiArgs, LimitArgs, ListenArgs, Whose};
use crate::client::{self, Access};
use crate::config::MetadataStorageChoice;
use crate::database::Rows;
use crate::error::{CommandError, CommandResult, chain};
use crate::health::{self, Health};
use crate::{database, front_proxy, ingester, interrupt, say};

/// How often the files of certificate and key are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// How often cluster and database are asked whether they answer.
const PROBE_EVERY: Duration = Duration::from_secs(5);

/// An API server whose address is taken.
pub(crate) struct Api {
    listener: TcpListener,
    operations: Arc<Operations>,
    figures: Figures,
    limits: Limits,
    router: Router,
    tls: Option<Tls>,
}

impl Api {
    /// Takes the address. Rights are `usual` where the flags do not say.
    pub(crate) async fn bind(
        registry: &Registry,
        access: &Access,
        rows: &Rows,
        args: &ListenArgs,
        usual: Whose,
        front_proxy: Option<FrontProxy>,
        shown: &prometheus::Registry,
    ) -> CommandResult<Self> {
        let whose = args.rights.unwrap_or(usual);
        let tls = match (&args.tls_cert, &args.tls_key) {
            (Some(certificate), Some(key)) => {
                Some(Tls::read(certificate, key, front_proxy).map_err(|error| CommandError::usage(chain(&error)))?)
            }
            _ => None,
        };
        check_exposure(args, whose, tls.is_some())?;
        let rights = match whose {
            Whose::Caller => RightsOf::Caller,
            Whose::Server => RightsOf::Server,
        };
        let behind = access.behind();
        let operations = match rows {
            Rows::Stored(store) => Operations::new(*registry, behind, store.clone(), rights),
            Rows::Off(reason) => {
                tracing::info!(
                    reason,
                    "Metadata storage is off: the API server passes requests on, and deletions are Kubernetes' own"
                );
                Operations::without_storage(*registry, behind, reason, rights)
            }
        };
        let operations = operations.map_err(|error| CommandError::usage(chain(&error)))?;
        let figures = Figures::new(shown);
        let watches = args.limits.watches(WatchLimits::default());
        let operations = operations.with_figures(figures.clone()).with_watch_limits(watches);
        let operations = Arc::new(operations);
        let rest = Rest::new(operations.clone()).router();
        let router = grpc::beside(rest, operations.clone())
            .await
            .map_err(CommandError::failure)?;
        Ok(Self {
            listener: health::bind(args.listen, "--listen").await?,
            operations,
            figures,
            limits: limits(&args.limits),
            router,
            tls,
        })
    }

    /// For `kubectl --server`.
    pub(crate) fn url(&self) -> CommandResult<String> {
        let address = self.listener.local_addr().map_err(CommandError::failure)?;
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        Ok(format!("{scheme}://{address}"))
    }

    /// Serves until stopped.
    pub(crate) fn start(self, tasks: &TaskTracker, stop: &CancellationToken) {
        if let Some(tls) = &self.tls {
            tasks.spawn(tls.clone().follow(LOOK_EVERY, stop.clone()));
        }
        tasks.spawn(server::serve(
            self.listener,
            self.router,
            self.operations,
            self.tls,
            self.limits,
            self.figures,
            stop.clone(),
        ));
    }
}

fn limits(args: &LimitArgs) -> Limits {
    Limits {
        connections: ConnectionLimits {
            most: args.max_connections.get(),
            body: args.body_pace(),
            ..ConnectionLimits::default()
        },
        reads: args.max_reads.get(),
        changes: args.max_changes.get(),
        requests_per_second: args.requests_per_second,
        body_bytes: args.body_bytes(),
        ..Limits::default()
    }
}

/// Whether the role can answer, as it was found a moment ago.
struct Readiness {
    reasons: RwLock<Vec<String>>,
    rows: Rows,
    figures: prometheus::Registry,
}

impl Readiness {
    /// Asks cluster and database from time to time.
    async fn follow(self: Arc<Self>, operations: Arc<Operations>) {
        loop {
            let found = operations.not_ready().await;
            *self.reasons.write().unwrap_or_else(PoisonError::into_inner) = found;
            tokio::time::sleep(PROBE_EVERY).await;
        }
    }
}

impl Health for Readiness {
    fn not_ready(&self) -> Vec<String> {
        let stalled = match &self.rows {
            Rows::Stored(store) => store.calls().stalled(),
            Rows::Off(_) => None,
        };
        let found = self.reasons.read().unwrap_or_else(PoisonError::into_inner);
        let stalled = stalled.map(|stalled| stalled.to_string());
        stalled.into_iter().chain(found.iter().cloned()).collect()
    }

    fn notes(&self) -> Vec<String> {
        match &self.rows {
            Rows::Stored(_) => Vec::new(),
            Rows::Off(reason) => vec![format!("metadata storage is off: {reason}")],
        }
    }

    fn figures(&self) -> prometheus::Registry {
        self.figures.clone()
    }
}

/// Refuses what would hand out rights, or tokens, to a whole network.
fn check_exposure(args: &ListenArgs, whose: Whose, has_keys: bool) -> CommandResult {
    if args.listen.ip().is_loopback() {
        return Ok(());
    }
    let address = args.listen;
    match whose {
        Whose::Server => Err(CommandError::usage(format_args!(
            "--rights server at {address}: everybody who reaches it could do what the server may do"
        ))
        .hint("listen on a loopback address, or let each caller act with their own rights: --rights caller")),
        Whose::Caller if !has_keys => Err(CommandError::usage(format_args!(
            "no certificate for {address}: tokens would pass in the clear"
        ))
        .hint("give --tls-cert and --tls-key, or listen on a loopback address")),
        Whose::Caller => Ok(()),
    }
}

/// The role alone.
pub(crate) async fn run(registry: &Registry, args: &ApiArgs) -> CommandResult {
    let rows = rows(registry, args)?;
    let access = match &args.kubeconfig {
        Some(path) => client::from_file(path).await?,
        None => client::from_environment().await?,
    };
    let figures = prometheus::Registry::new();
    if let Rows::Stored(store) = &rows {
        store.outage().tell();
        let shown = figures.register(Box::new(DatabaseGauges::new(store.clone())));
        shown.expect("nothing is registered yet");
    }
    let (front_proxy, source) = match (args.aggregated, args.listen.rights) {
        (false, _) => (None, None),
        (true, Some(Whose::Server)) => {
            return Err(CommandError::usage("--aggregated requires --rights caller").hint("leave out --rights server"));
        }
        (true, _) => {
            let (front_proxy, source) = front_proxy::read(&access.client).await?;
            (Some(front_proxy), Some(source))
        }
    };
    let usual = Whose::Caller;
    let api = Api::bind(registry, &access, &rows, &args.listen, usual, front_proxy, &figures).await?;
    let listener = health::bind(args.health_addr, "--health-addr").await?;
    let health = listener.local_addr().map_err(CommandError::failure)?;
    let readiness = Arc::new(Readiness {
        reasons: RwLock::new(vec!["cluster and database were not asked yet".to_owned()]),
        rows: rows.clone(),
        figures,
    });
    let first = registry.kinds.first().map_or("KIND", |kind| kind.plural);
    say::line(format_args!("kubectl --server {} get {first}", api.url()?))?;
    say::line(format_args!("http://{health}/readyz and /metrics say how it goes"))?;
    let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
    let probe = readiness.clone().follow(api.operations.clone());
    tasks.spawn(stop.clone().run_until_cancelled_owned(probe));
    tasks.spawn(health::serve(listener, readiness, stop.clone()));
    if let (Some(source), Some(tls)) = (source, api.tls.clone()) {
        let followed = source.follow(front_proxy::LOOK_EVERY, move |next| tls.take_front_proxy(next));
        tasks.spawn(stop.clone().run_until_cancelled_owned(followed));
    }
    api.start(&tasks, &stop);
    interrupt::wait().await;
    stop.cancel();
    tasks.close();
    tasks.wait().await;
    if let Rows::Stored(store) = rows {
        store.close().await;
    }
    Ok(())
}

fn rows(registry: &Registry, args: &ApiArgs) -> CommandResult<Rows> {
    if let Some(address) = &args.database {
        return database::open(registry, address).map(Rows::Stored);
    }
    let Some(path) = &args.config else {
        return Err(CommandError::usage("no database").hint("name one with --database or --config"));
    };
    match ingester::read(registry, path)?.metadata_storage_choice() {
        MetadataStorageChoice::Off { reason } => Ok(Rows::Off(reason)),
        MetadataStorageChoice::On { address, pool } => {
            let store = kindex_store::open(&address, *registry, &pool);
            store
                .map(Rows::Stored)
                .map_err(|error| CommandError::usage(chain(&error)))
        }
    }
}
