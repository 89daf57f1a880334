//! The process of a server that ends with this one, however that ends. Knows no program.

use std::process::{Child, Command};
use std::sync::mpsc;
use std::thread;

/// A child whose starting thread lives as long as it does: the kernel ties the signal at a parent's death to the thread
/// that forked.
pub(crate) struct Process {
    pub(crate) child: Child,
    _release: mpsc::Sender<()>,
}

impl Process {
    /// Starts a server whose command asks for the signal at a parent's death.
    ///
    /// # Panics
    /// When its program does not start.
    pub(crate) fn spawn(mut command: Command) -> Self {
        let (release, released) = mpsc::channel::<()>();
        let (started, child) = mpsc::channel();
        thread::spawn(move || {
            let child = command.spawn().expect("the server's program starts");
            started.send(child).expect("the starter waits");
            // Ends when the other half is dropped, which is after the child's end.
            released.recv().ok();
        });
        Self {
            child: child.recv().expect("the thread sends the child"),
            _release: release,
        }
    }

    /// Ends it at once, as a crash would.
    ///
    /// # Panics
    /// When the process is not ours.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("the child is ours to kill");
        self.child.wait().expect("the child is ours to wait for");
    }
}
