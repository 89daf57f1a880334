//! A private MySQL-protocol server on a data directory: its own folder, a free loopback port,
//! stopped by its own process id. Knows nothing of products; `mariadb` and `mysql` bring their
//! programs.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::net::TcpStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::ports;
use crate::process::Process;
use crate::wait::WAIT_MAX;

/// The account of servers that refuse to run as root.
const ACCOUNT: &str = "nobody";

/// The server's log and what it says past it, in its folder.
const LOG: &str = "log";
const OUTPUT: &str = "output";
/// How many bytes from the end of either are reported when a server does not start.
const TAIL_BYTES: usize = 8192;

/// A server that did not start.
#[derive(Debug)]
pub struct NotStarted {
    program: String,
    /// None for a server that runs without answering.
    status: Option<ExitStatus>,
    written: String,
}

impl NotStarted {
    /// Whether a signal ended it, as at a crash: the end after which a service manager starts a server again.
    pub fn crashed(&self) -> bool {
        self.status.is_some_and(|status| status.signal().is_some())
    }
}

impl fmt::Display for NotStarted {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (program, status, written) = (&self.program, &self.status, &self.written);
        write!(to, "{program} does not answer ({status:?}): {written}")
    }
}

/// A running server. Root may connect over TCP without a password.
pub struct SqlServer {
    directory: TempDir,
    /// Loopback port.
    pub port: u16,
    program: Vec<String>,
    options: Vec<String>,
    process: Option<Process>,
    /// What removes the folder once this process has ended.
    remover: Option<Child>,
}

impl SqlServer {
    /// A folder of its own for a server, which it may write.
    ///
    /// # Panics
    /// When the machine's temporary folder is full or not writable.
    pub(crate) fn directory_for(product: &str) -> TempDir {
        let directory = tempfile::Builder::new()
            .prefix(&format!("kindex-{product}-"))
            .tempdir()
            .expect("a temporary directory");
        own(directory.path());
        directory
    }

    /// Starts a server on `directory/data`: its program with the first arguments, then options
    /// such as `--max-allowed-packet=1M`.
    ///
    /// # Panics
    /// When the server does not answer in time; the message holds its log.
    pub(crate) fn start(directory: TempDir, program: Vec<String>, options: &[&str]) -> Self {
        let mut server = Self::prepare(directory, program, options);
        server.resume();
        server
    }

    /// The same without a start, for servers whose start may fail.
    pub(crate) fn prepare(directory: TempDir, program: Vec<String>, options: &[&str]) -> Self {
        Self {
            directory,
            port: ports::reserve(),
            program,
            options: options.iter().map(|&option| option.to_owned()).collect(),
            process: None,
            remover: None,
        }
    }

    /// The same for a server that runs until the program ends, which ends no server properly: the kernel kills it then,
    /// and a shell removes its folder.
    ///
    /// # Panics
    /// When there is no shell.
    #[must_use]
    pub fn removed_with_program(mut self) -> Self {
        const REMOVE: &str = r#"trap "" HUP INT TERM; read -r _; rm -rf -- "$1" || { sleep 1; rm -rf -- "$1"; }"#;
        let mut shell = Command::new("sh");
        shell.args(["-c", REMOVE, "sh"]).arg(self.directory.path());
        // Nobody writes there: it ends with this process.
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        self.remover = Some(shell.spawn().expect("a shell starts"));
        self
    }

    /// A directory that the server may read.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The server's local socket.
    pub fn socket(&self) -> PathBuf {
        self.directory.path().join("socket")
    }

    /// Changes the options with which the server starts [again](Self::resume).
    pub fn set_options(&mut self, options: &[String]) {
        self.options = options.to_vec();
    }

    /// Starts the server again after [`kill`](Self::kill), on the same data and port.
    ///
    /// # Panics
    /// When it is running, or does not answer in time.
    pub fn resume(&mut self) {
        if let Err(ended) = self.try_resume() {
            panic!("{ended}");
        }
    }

    /// As [`resume`](Self::resume), for servers whose start may fail.
    ///
    /// # Errors
    /// The server ended, or does not answer in time; it is not running then.
    pub fn try_resume(&mut self) -> Result<(), NotStarted> {
        assert!(self.process.is_none(), "the server is running");
        let at = |name: &str| self.directory.path().join(name).display().to_string();
        let (program, first) = self.program.split_first().expect("a program has a name");
        let mut command = as_account(Path::new(program));
        command
            .args(first)
            .args(["--bind-address=127.0.0.1", "--skip-name-resolve"])
            .arg(format!("--datadir={}", at("data")))
            .arg(format!("--tmpdir={}", self.directory.path().display()))
            .arg(format!("--socket={}", at("socket")))
            .arg(format!("--pid-file={}", at("pid")))
            .arg(format!("--log-error={}", at(LOG)))
            .arg(format!("--port={}", self.port))
            // Many tests share a server, each with pools of its own.
            .arg("--max-connections=1000")
            .args(&self.options)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(self.output());
        self.process = Some(Process::spawn(command));
        let ready = self.wait_until_ready();
        if ready.is_err() {
            self.kill();
        }
        ready
    }

    /// Where what the server says past its log goes, an abort's reason for one.
    fn output(&self) -> File {
        let path = self.directory.path().join(OUTPUT);
        let file = OpenOptions::new().create(true).append(true).open(path);
        file.expect("the server's folder is writable")
    }

    /// Ends the server at once, as a crash would. Its data stay.
    pub fn kill(&mut self) {
        if let Some(process) = self.process.take() {
            process.kill();
        }
    }

    /// The number of its process.
    ///
    /// # Panics
    /// When the server was killed.
    pub fn id(&self) -> u32 {
        let process = self.process.as_ref();
        process.expect("the server is running").child.id()
    }

    /// Halts the server, so that it neither answers nor refuses, or lets it go on.
    pub fn pause(&self, halted: bool) {
        let signal = if halted { "-STOP" } else { "-CONT" };
        let sent = Command::new("kill").args([signal, &self.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "kill {signal}");
    }

    fn wait_until_ready(&mut self) -> Result<(), NotStarted> {
        let deadline = Instant::now() + WAIT_MAX;
        while !self.answers() {
            let process = self.process.as_mut().expect("it was just started");
            let status = process.child.try_wait().expect("the child is ours");
            if status.is_some() || Instant::now() > deadline {
                return Err(self.not_started(status));
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// How the server ended by itself, once; `None` for one that runs, or was [killed](Self::kill).
    ///
    /// # Panics
    /// When its state cannot be read.
    pub fn ended(&mut self) -> Option<NotStarted> {
        let process = self.process.as_mut()?;
        let status = process.child.try_wait().expect("the child is ours")?;
        let ended = self.not_started(Some(status));
        self.process = None;
        Some(ended)
    }

    /// With the end of what the server wrote; its log need not be text.
    fn not_started(&self, status: Option<ExitStatus>) -> NotStarted {
        let written = [LOG, OUTPUT].map(|name| {
            let bytes = std::fs::read(self.directory.path().join(name)).unwrap_or_default();
            String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(TAIL_BYTES)..]).into_owned()
        });
        NotStarted {
            program: self.program[0].clone(),
            status,
            written: written.join("\n"),
        }
    }

    /// Whether it answers. The server speaks first: a greeting means that it accepts users.
    pub fn answers(&self) -> bool {
        let mut greeting = [0; 5];
        TcpStream::connect(("127.0.0.1", self.port)).is_ok_and(|mut stream| {
            // On a busy machine it may take seconds. One that is taken for dead is replaced, which takes even longer.
            let timeout = stream.set_read_timeout(Some(Duration::from_secs(30)));
            // The fifth byte is the protocol version; an error packet has 255 there.
            timeout.is_ok() && stream.read_exact(&mut greeting).is_ok() && greeting[4] == 10
        })
    }
}

impl Drop for SqlServer {
    fn drop(&mut self) {
        self.kill();
        if let Some(mut remover) = self.remover.take() {
            drop(remover.stdin.take());
            remover.wait().ok();
        }
    }
}

/// A command that dies with us, and runs as an unprivileged account where we are root.
pub(crate) fn as_account(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]);
    if is_root() {
        command
            .arg(format!("--reuid={ACCOUNT}"))
            .args(["--regid=nogroup", "--clear-groups"]);
    }
    command.arg(program);
    command
}

/// Gives a folder and all that is in it to the account that servers run as.
pub(crate) fn own(directory: &Path) {
    if is_root() {
        let owned = Command::new("chown")
            .args(["--recursive", ACCOUNT])
            .arg(directory)
            .status();
        assert!(owned.is_ok_and(|status| status.success()), "chown");
    }
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().expect("id starts");
    id.stdout.trim_ascii() == b"0"
}
