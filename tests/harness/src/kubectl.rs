//! kubectl as it is on the path. Knows no cluster: whoever runs it says which one, and where it keeps its cache.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;
use std::thread;

use tokio::io::AsyncWriteExt as _;
use tokio::process::Child;

const PROGRAM: &str = "kubectl";

/// Whether it is there and runs.
pub fn installed() -> bool {
    static RUNS: LazyLock<bool> = LazyLock::new(|| {
        let asked = Command::new(PROGRAM).args(["version", "--client"]).output();
        asked.is_ok_and(|output| output.status.success())
    });
    *RUNS
}

/// A command without a kubeconfig that its user may have: the caller adds one, or says with flags which server is
/// asked. What kubectl keeps of a cluster is below `home`.
pub fn command(home: impl AsRef<Path>) -> Command {
    let mut command = Command::new(PROGRAM);
    command.env("HOME", home.as_ref()).env_remove("KUBECONFIG");
    command
}

/// Runs a command with a text on its standard input.
///
/// # Panics
/// When it cannot be started.
pub fn run(mut command: Command, input: &str) -> Output {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("kubectl starts");
    let mut stdin = child.stdin.take().expect("piped");
    thread::scope(|scope| {
        // Beside the reading: whose answers nobody reads takes nothing more after a while.
        scope.spawn(move || {
            // A command that reads nothing may have closed it, and says why where that is an error.
            let _closed = stdin.write_all(input.as_bytes());
        });
        child.wait_with_output().expect("kubectl ends")
    })
}

/// The same in a runtime; it ends with the future.
///
/// # Panics
/// When it cannot be started.
pub async fn run_async(command: Command, input: &str) -> Output {
    let mut child = start(command);
    let mut stdin = child.stdin.take().expect("piped");
    let written = async move {
        // As there.
        let _closed = stdin.write_all(input.as_bytes()).await;
        drop(stdin);
    };
    let (output, ()) = tokio::join!(child.wait_with_output(), written);
    output.expect("kubectl ends")
}

/// Starts a command that goes on, such as a watch, with pipes to everything; it ends with the value.
///
/// # Panics
/// When it cannot be started, and outside of a runtime.
pub fn start(command: Command) -> Child {
    let mut command = tokio::process::Command::from(command);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.kill_on_drop(true).spawn().expect("kubectl starts")
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::sync::mpsc;

    use tokio::time::timeout;

    use super::*;
    use crate::wait::WAIT_MAX;

    #[test]
    fn a_command_has_nothing_of_its_users_kubeconfig_and_cache() {
        let command = command("/the/home");
        let mut set: Vec<_> = command.get_envs().collect();
        set.sort_unstable();
        let expected = [
            (OsStr::new("HOME"), Some(OsStr::new("/the/home"))),
            (OsStr::new("KUBECONFIG"), None),
        ];
        assert_eq!(set, expected);
    }

    /// More than pipes hold. As if all of it were written before anything is read.
    #[tokio::test]
    async fn a_command_that_answers_while_it_reads_takes_any_length() {
        let input = "x".repeat(4 * 1024 * 1024);
        let answered = timeout(WAIT_MAX, run_async(Command::new("cat"), &input)).await;
        let (sender, receiver) = mpsc::channel();
        let expected = input.clone();
        thread::spawn(move || sender.send(run(Command::new("cat"), &input)));
        for output in [
            answered.expect("it ends"),
            receiver.recv_timeout(WAIT_MAX).expect("it ends"),
        ] {
            assert!(output.stdout == expected.as_bytes(), "{} bytes", output.stdout.len());
        }
    }
}
