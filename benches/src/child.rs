//! The `kindex` command as a child of a load program, so that memory and processor time are
//! measured where a user would: in a process of its own. The load program's own binary is the
//! child: it becomes `kindex` where an environment variable says so. `KINDEX_BENCH_PROGRAM` names
//! another build of the load program whose `kindex` is to be measured, to compare the two.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use kindex::Platform;
use kindex::cleanup::Cleanups;
use kindex_model::kind::Registry;

const ROLE: &str = "KINDEX_BENCH_CHILD";
const PROGRAM: &str = "KINDEX_BENCH_PROGRAM";
/// Until a program says where it listens: as a debug build beside other work.
const WAIT_MAX: Duration = Duration::from_secs(300);

/// To be called first in `main`: in a child, runs the command and gives its exit code.
pub fn become_kindex() -> Option<ExitCode> {
    become_kindex_of(kindex_generated::registry())
}

/// The same with other kinds than those of the repository.
pub fn become_kindex_of(registry: Registry) -> Option<ExitCode> {
    std::env::var_os(ROLE)?;
    Some(kindex::run(&Platform {
        registry,
        samples: &[],
        cleanups: Cleanups::none(),
    }))
}

/// A running `kindex`.
pub struct Kindex {
    child: Child,
    usage: Usage,
}

/// What a process used so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// Largest resident memory.
    pub resident_bytes_max: u64,
    /// Time of processors, in user and in kernel mode.
    pub processor: Duration,
}

impl Kindex {
    /// Starts `kindex` with these arguments.
    ///
    /// # Panics
    /// When the program cannot be started.
    pub fn start(arguments: &[&str]) -> Self {
        Self::spawn(arguments, Stdio::null())
    }

    /// Starts `kindex` with these arguments, whose addresses have port 0, and reads from its stdout where it listens:
    /// each address stands after one of these texts.
    ///
    /// # Panics
    /// When the program cannot be started, ends, or does not say in time where it listens.
    pub fn listening<const N: usize>(arguments: &[&str], texts: [&str; N]) -> (Self, [SocketAddr; N]) {
        let mut kindex = Self::spawn(arguments, Stdio::piped());
        let stdout = BufReader::new(kindex.child.stdout.take().expect("piped"));
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                // Nobody asks for what it says later, which must not fill the pipe.
                let _unread = sender.send(line);
            }
        });
        let begun = Instant::now();
        let mut found: [Option<SocketAddr>; N] = [None; N];
        while found.contains(&None) {
            let line = lines.recv_timeout(WAIT_MAX.saturating_sub(begun.elapsed()));
            let line = line.unwrap_or_else(|error| {
                let ended = kindex.ended();
                panic!("kindex does not say where it listens: {error}; it ended with {ended:?}")
            });
            for (address, text) in found.iter_mut().zip(texts) {
                *address = address.or_else(|| address_after(&line, text));
            }
        }
        (kindex, found.map(|address| address.expect("none is left out")))
    }

    fn spawn(arguments: &[&str], stdout: Stdio) -> Self {
        let named = std::env::var_os(PROGRAM).map(PathBuf::from);
        let program = named.unwrap_or_else(|| std::env::current_exe().expect("a program knows where it is"));
        let child = Command::new(program)
            .args(arguments)
            .env(ROLE, "1")
            .stdin(Stdio::null())
            .stdout(stdout)
            .spawn()
            .expect("it starts once more");
        Self {
            child,
            usage: Usage::default(),
        }
    }

    /// Whether it ended, and how. Takes note of what it used by then.
    ///
    /// # Panics
    /// When the child is lost.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.usage = usage(self.child.id()).unwrap_or(self.usage);
        self.child.try_wait().expect("the child is ours")
    }

    /// Its number among processes.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it used, as of the last look.
    pub fn usage(&self) -> Usage {
        self.usage
    }
}

impl Drop for Kindex {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ended = self.child.kill();
        let _status = self.child.wait();
    }
}

/// The address in a line that stands after a text.
fn address_after(line: &str, text: &str) -> Option<SocketAddr> {
    let (_, rest) = line.split_once(text)?;
    rest.split([' ', '/']).next()?.parse().ok()
}

/// What a process used, from the kernel's books; `None` when it is gone.
pub fn usage(process: u32) -> Option<Usage> {
    /// Fields 14 and 15 of `/proc/PID/stat`, counted after the name in parentheses. See proc(5).
    const USER_TICKS: usize = 11;
    const TICKS_A_SECOND: u64 = 100;
    let directory = Path::new("/proc").join(process.to_string());
    let status = std::fs::read_to_string(directory.join("status")).ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = peak.split_whitespace().next()?.parse().ok()?;
    let stat = std::fs::read_to_string(directory.join("stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at)?.parse::<u64>().ok();
    let ticks = ticks(USER_TICKS)? + ticks(USER_TICKS + 1)?;
    Some(Usage {
        resident_bytes_max: kibibytes * 1024,
        processor: Duration::from_millis(ticks * 1000 / TICKS_A_SECOND),
    })
}
