//! What `kindex up` says on stdout: where everything is, what to try next, and
//! where the samples went.

use std::net::SocketAddr;
use std::path::Path;

use crate::cli::{DATA_DIR, UpArgs};
use crate::error::CommandResult;
use crate::ingester::Setup;
use crate::output::table;
use crate::platform::Platform;
use crate::say;
use crate::settled::Settled;

use super::ClusterPlace;

/// Where everything is.
pub(crate) fn announce(
    platform: &Platform,
    args: &UpArgs,
    place: &ClusterPlace,
    setup: &Setup,
    health: SocketAddr,
    api: Option<&str>,
) -> CommandResult {
    let kubeconfig = place.kubeconfig.display();
    let mut lines = vec![
        "kindex is up".to_owned(),
        String::new(),
        format!("  cluster      {}", place.server),
        format!("  kubeconfig   {kubeconfig}"),
        format!("  database     {}", setup.shown_database()),
    ];
    lines.extend(api.map(|api| format!("  api          {api}")));
    lines.push(format!("  readiness    http://{health}/readyz"));
    lines.push(format!("  kinds        {}", platform.registry.kinds.len()));
    lines.push(String::new());
    lines.extend(next_steps(platform, args, &place.kubeconfig, api));
    lines.push(String::new());
    say::line(lines.join("\n"))
}

/// What can be typed in another terminal as it stands.
fn next_steps(platform: &Platform, args: &UpArgs, kubeconfig: &Path, api: Option<&str>) -> Vec<String> {
    let group = platform.registry.platform.group;
    let first = platform.registry.kinds.first().map_or("KIND", |kind| kind.plural);
    let kubectl = api.map(|api| format!("  kubectl --server {api} get {first}    # live and archived as one"));
    let data_dir = &args.data_dir.data_dir;
    let from = if args.database.database.is_some() || args.config.is_some() {
        " --database ADDRESS    # the one above, with its password".to_owned()
    } else if data_dir == Path::new(DATA_DIR) {
        String::new()
    } else {
        format!(" --data-dir {}", quoted(data_dir))
    };
    let mut steps = vec![
        "Try next:".to_owned(),
        format!("  export KUBECONFIG={}", quoted(kubeconfig)),
        format!("  kubectl api-resources --api-group={group}"),
    ];
    steps.extend(kubectl);
    steps.push(format!("  kindex get {first}{from}"));
    steps
}

/// A path as a shell takes it for one word.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |letter: char| letter.is_alphanumeric() || "/._-+:@%,".contains(letter);
    if text.chars().all(plain) {
        return text;
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Kind by kind: objects, rows, and how late the rows were.
pub(crate) fn settled(kinds: &[Settled]) -> CommandResult {
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
    say::print(table(&["kind", "objects", "rows", "lag"], rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word_of_a_shell() {
        for (path, word) in [
            (".kindex/kubeconfig", ".kindex/kubeconfig"),
            ("/tmp/my data/kubeconfig", "'/tmp/my data/kubeconfig'"),
            ("it's", r"'it'\''s'"),
            ("größe", "größe"),
        ] {
            assert_eq!(quoted(Path::new(path)), word);
        }
    }
}
