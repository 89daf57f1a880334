//! What `kindex up` says on stdout: where everything is, what to try next, and
//! where the samples went.

use std::net::SocketAddr;

use crate::ingester::Setup;
use crate::output::table;
use crate::platform::Platform;
use crate::settled::Settled;

use super::ClusterPlace;

/// Where everything is.
pub(crate) fn announce(
    platform: &Platform,
    place: &ClusterPlace,
    setup: &Setup,
    health: SocketAddr,
    api: Option<&str>,
) {
    let kubeconfig = place.kubeconfig.display();
    let first = platform.registry.kinds.first().map_or("KIND", |kind| kind.plural);
    println!("kindex is up");
    println!();
    println!("  cluster      {}", place.server);
    println!("  kubeconfig   {kubeconfig}");
    println!("  database     {}", setup.shown_database());
    if let Some(api) = api {
        println!("  api          {api}");
    }
    println!("  readiness    http://{health}/readyz");
    println!("  kinds        {}", platform.registry.kinds.len());
    println!();
    println!("Try next:");
    println!("  export KUBECONFIG={kubeconfig}");
    println!(
        "  kubectl api-resources --api-group={}",
        platform.registry.platform.group
    );
    if let Some(api) = api {
        println!("  kubectl --server {api} get {first}    # live and archived as one");
    }
    println!("  kindex get {first}");
    println!();
}

/// Kind by kind: objects, rows, and how late the rows were.
pub(crate) fn settled(kinds: &[Settled]) {
    let rows = kinds.iter().map(|kind| {
        let lag = kind
            .mean_lag
            .map_or_else(|| "-".to_owned(), |lag| format!("{:.1}ms", lag.as_secs_f64() * 1e3));
        vec![
            kind.kind.to_owned(),
            kind.objects.to_string(),
            kind.rows.to_string(),
            lag,
        ]
    });
    print!("{}", table(&["kind", "objects", "rows", "lag"], rows));
}
