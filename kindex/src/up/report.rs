//! What `kindex up` says on stdout: where everything is, what to try next, and
//! where the samples went.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use kindex_commands::cli::DATA_DIR;
use kindex_commands::database;
use kindex_commands::error::CommandResult;
use kindex_commands::output::table;
use kindex_commands::platform::Platform;
use kindex_commands::say;

use crate::cli::UpArgs;
use crate::services::Announcement;
use crate::services::ingester::Setup;
use crate::settled::Settled;

use super::RunCluster;

/// Where everything is.
pub(crate) fn announce(
    platform: &Platform,
    args: &UpArgs,
    cluster: &RunCluster,
    setup: &Setup,
    health: SocketAddr,
    services: &[(&str, Announcement)],
) -> CommandResult {
    let kubeconfig = cluster.kubeconfig.display();
    let mut lines = vec![
        "kindex is up".to_owned(),
        String::new(),
        format!("  cluster      {}", cluster.server),
        format!("  kubeconfig   {kubeconfig}"),
        format!("  database     {}", setup.shown_database()),
    ];
    lines.extend(
        services
            .iter()
            .map(|(name, service)| format!("  {name:<12} {}", service.url)),
    );
    lines.push(format!("  readiness    http://{health}/readyz"));
    lines.push(format!("  kinds        {}", platform.registry.kinds.len()));
    if !args.once {
        lines.push(String::new());
        lines.extend(next_steps(platform, args, setup, &cluster.kubeconfig, services));
    }
    lines.push(String::new());
    say::line(lines.join("\n"))
}

/// What can be typed once the process has ended: what needs the rows alone, and how the cluster comes back.
pub(crate) fn afterwards(platform: &Platform, args: &UpArgs, cluster: &RunCluster) -> CommandResult {
    let first = first_kind(platform);
    let (program, from) = (program(), database_flag(args));
    let again = match &args.kubeconfig {
        Some(path) => format!("  {program} up --kubeconfig {}{from}", quoted(path)),
        None if args.database.database.is_some() || args.config.is_some() => {
            format!("  {program} up{from}{}", data_dir_flag(args))
        }
        None => format!("  {program} up{from}"),
    };
    let mut lines = vec![
        String::new(),
        "Try next:".to_owned(),
        format!("  {program} get {first}{from}"),
        format!("  {program} get {first}{from} -o yaml"),
        format!("{again}    # until Ctrl-C"),
    ];
    if args.kubeconfig.is_none() {
        let kubeconfig = quoted(&cluster.kubeconfig);
        lines.push(format!(
            "  KUBECONFIG={kubeconfig} kubectl get {first} -A    # meanwhile"
        ));
    }
    lines.extend(meaning(&lines));
    say::line(lines.join("\n"))
}

/// What can be typed in another terminal as it stands.
fn next_steps(
    platform: &Platform,
    args: &UpArgs,
    setup: &Setup,
    kubeconfig: &Path,
    services: &[(&str, Announcement)],
) -> Vec<String> {
    let group = platform.registry.platform.group;
    let first = first_kind(platform);
    let mut steps = vec![
        "Try next:".to_owned(),
        format!("  export KUBECONFIG={}", quoted(kubeconfig)),
        format!("  kubectl api-resources --api-group={group}"),
    ];
    steps.extend(services.iter().map(|(_, service)| format!("  {}", service.step)));
    if setup.has_database() {
        steps.push(format!("  {} get {first}{}", program(), database_flag(args)));
    }
    steps.extend(meaning(&steps));
    steps
}

fn first_kind(platform: &Platform) -> &'static str {
    platform.registry.kinds.first().map_or("KIND", |kind| kind.plural)
}

/// How a command finds the rows of this run.
fn database_flag(args: &UpArgs) -> String {
    match (&args.database.database, &args.config) {
        (Some(address), _) if is_shown_whole(address) => format!(" --database {}", quoted(Path::new(address))),
        (Some(_), _) => " --database ADDRESS".to_owned(),
        (None, Some(config)) => format!(" --config {}", quoted(config)),
        (None, None) => data_dir_flag(args),
    }
}

fn data_dir_flag(args: &UpArgs) -> String {
    let data_dir = &args.data_dir.data_dir;
    if data_dir == Path::new(DATA_DIR) {
        return String::new();
    }
    format!(" --data-dir {}", quoted(data_dir))
}

/// Whether an address holds no password and no option that is left out where it is shown.
fn is_shown_whole(address: &str) -> bool {
    database::parse(address).is_ok_and(|parsed| parsed.to_string() == address)
}

/// What stands for an address that is not repeated.
fn meaning(steps: &[String]) -> Option<String> {
    let hidden = steps.iter().any(|step| step.contains(" --database ADDRESS"));
    hidden.then(|| "  (ADDRESS is the one that you gave, with its password)".to_owned())
}

/// The words by which this program was started, as far as it can tell.
fn program() -> String {
    let typed = std::env::args_os().next().map(PathBuf::from).unwrap_or_default();
    match (std::env::var_os("CARGO"), typed.to_str()) {
        (Some(_), _) => "cargo run --".to_owned(),
        (None, Some(_)) => quoted(&typed),
        (None, None) => "kindex".to_owned(),
    }
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
    use clap::Parser as _;

    use super::*;
    use crate::cli::{Cli, Command};

    fn up(words: &[&str]) -> UpArgs {
        let words = ["kindex", "up"].iter().chain(words);
        match Cli::try_parse_from(words).map(|cli| cli.command) {
            Ok(Some(Command::Up(args))) => args,
            other => panic!("{:?}", other.err()),
        }
    }

    #[test]
    fn what_to_try_next_repeats_no_password() {
        for (address, shown) in [
            ("sqlite:/data/k.db", "sqlite:/data/k.db"),
            ("mysql://root@db:3306/k", "mysql://root@db:3306/k"),
            ("mysql://root:s3cret@db:3306/k", "ADDRESS"),
            ("mysql://root:s3cret@db:3306/k?ssl-mode=REQUIRED", "ADDRESS"),
            // It would lead elsewhere than it does, and what cannot be read may hold anything.
            ("mysql://root@db:3306/k?ssl-mode=REQUIRED", "ADDRESS"),
            ("root:s3cret@tcp(db:3306)/k", "ADDRESS"),
        ] {
            let flag = database_flag(&up(&["--database", address]));
            assert_eq!(flag, format!(" --database {shown}"), "{address}");
            assert_eq!(meaning(&[flag]).is_some(), shown == "ADDRESS", "{address}");
        }
    }

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
