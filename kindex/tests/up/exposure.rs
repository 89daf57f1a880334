//! To whom `kindex up` is open: its files, its token, its addresses.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::process::Running;
use super::text_of;

fn mode(path: &Path) -> u32 {
    let metadata = fs::metadata(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    metadata.permissions().mode() & 0o777
}

/// Files of the data directory that others may read or write.
fn open_files(data_dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(data_dir)
        .expect("readable")
        .map(|entry| entry.expect("an entry"));
    let own = |path: &Path| if path.is_dir() { 0o700 } else { 0o600 };
    let open = entries.filter(|entry| entry.file_name() != "lock" && mode(&entry.path()) != own(&entry.path()));
    open.map(|entry| format!("{:?} {:o}", entry.file_name(), mode(&entry.path())))
        .collect()
}

#[test]
fn the_files_of_a_run_are_their_owners_alone_and_the_token_outlives_it() {
    let mut run = Running::start(&["--samples"]);
    let data_dir = run.data_dir();
    assert_eq!(mode(&data_dir), 0o700);
    for name in [
        "kubeconfig",
        "token",
        "cluster.db",
        "cluster.db-wal",
        "kindex.db",
        "kindex.db-wal",
    ] {
        assert_eq!(mode(&data_dir.join(name)), 0o600, "{name}");
    }
    assert_eq!(open_files(&data_dir), Vec::<String>::new());

    let token = fs::read_to_string(data_dir.join("token")).expect("kept");
    // As earlier programs left them.
    run.kill();
    for name in ["kubeconfig", "cluster.db", "kindex.db"] {
        fs::set_permissions(data_dir.join(name), Permissions::from_mode(0o644)).expect("ours");
    }
    run.restart();
    assert_eq!(fs::read_to_string(data_dir.join("token")).expect("kept"), token);
    assert_eq!(open_files(&data_dir), Vec::<String>::new());
    let kubeconfig = fs::read_to_string(data_dir.join("kubeconfig")).expect("written");
    assert!(kubeconfig.contains(token.trim()), "the kubeconfig has the token");
}

#[test]
fn other_machines_reach_the_embedded_cluster_only_where_that_is_said() {
    let output = Running::once(&["--api-addr", "0.0.0.0:0"]).finish();
    let stderr = text_of(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("--allow-remote-clients"), "{stderr}");
    let output = Running::once(&[
        "--api-addr",
        "0.0.0.0:0",
        "--allow-remote-clients",
        "--samples",
        "--once",
    ])
    .finish();
    assert_eq!(output.status.code(), Some(0), "{}", text_of(&output.stderr));
}
