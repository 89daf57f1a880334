//! A process of the program that `tests/controlplane/build` makes.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;

use crate::tools::tools;

/// It ends when its standard input closes.
pub(super) struct Process {
    child: Child,
}

impl Process {
    /// Starts it and waits until it is ready. Returns what it says then.
    ///
    /// # Panics
    /// When it does not become ready; the message holds its log.
    pub(super) fn start(arguments: &[&OsStr]) -> (Self, String) {
        let mut child = Command::new(program())
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut complaints = child.stderr.take().expect("piped");
        // Read as they come: a full pipe would hold the whole cluster up.
        let complaining = thread::spawn(move || {
            let mut why = Vec::new();
            // What it said before it ended is worth showing in any case.
            let _partly = complaints.read_to_end(&mut why);
            String::from_utf8_lossy(&why).into_owned()
        });
        let mut line = String::new();
        let read = BufReader::new(child.stdout.as_mut().expect("piped")).read_line(&mut line);
        let Some(ready) = read.ok().and_then(|_| line.trim_end().strip_prefix("ready ")) else {
            drop(child.stdin.take());
            let why = complaining.join().unwrap_or_default();
            panic!("the control plane did not start with {arguments:?}: {why}");
        };
        (Self { child }, ready.to_owned())
    }

    /// Ends it as `kill -9` does.
    pub(super) fn kill(mut self) {
        self.child.kill().expect("it is this process' own");
        // Dropping it reaps it.
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // It removes its data before it ends.
        let _reaped = self.child.wait();
    }
}

/// What a call that ends by itself prints.
///
/// # Panics
/// When it fails; the message says why.
pub(super) fn output(arguments: &[&OsStr]) -> Vec<u8> {
    let done = Command::new(program()).args(arguments).output();
    let done = done.expect("the program starts");
    let why = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{arguments:?}: {why}");
    done.stdout
}

pub(super) fn program() -> PathBuf {
    tools().join("controlplane")
}
