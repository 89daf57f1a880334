//! `kindex runs serve` as a process that is killed and started again, and requests that are sent until it answers.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use kindex_harness::ports;
use kindex_harness::wait::{WAIT_MAX, wait_until};
use serde_json::Value;
use tempfile::TempDir;

use crate::ingester::KINDEX;

/// `kindex runs serve` through all its lives, at the same addresses.
pub(super) struct Server {
    pub(super) folder: TempDir,
    pub(super) grpc: SocketAddr,
    pub(super) rest: SocketAddr,
    pub(super) health: SocketAddr,
    flags: Vec<String>,
    disk: Option<Disk>,
    child: Mutex<Option<Child>>,
}

/// A disk of its own, which nobody else sees.
#[derive(Clone, Copy)]
enum Disk {
    /// In memory, of this size, and gone with the process.
    Memory(&'static str),
    /// In a file beside the folder, which outlives the process.
    File,
}

impl Server {
    /// With further flags.
    pub(super) fn new(more: &[&str]) -> Self {
        let [grpc, rest, health] = [(); 3].map(|()| SocketAddr::from(([127, 0, 0, 1], ports::reserve())));
        let flags = [("--grpc-addr", grpc), ("--rest-addr", rest), ("--health-addr", health)];
        let flags = flags
            .into_iter()
            .flat_map(|(flag, address)| [flag.to_owned(), address.to_string()]);
        Self {
            folder: tempfile::tempdir().expect("a folder"),
            grpc,
            rest,
            health,
            flags: flags.chain(more.iter().map(|flag| (*flag).to_owned())).collect(),
            disk: None,
            child: Mutex::default(),
        }
    }

    /// Keeps its runs on a disk of its own, which nobody else sees and which is gone with it.
    pub(super) fn on_disk_of(size: &'static str) -> Self {
        let mut server = Self::new(&[]);
        server.disk = Some(Disk::Memory(size));
        server
    }

    /// Keeps its runs on a disk in a file, which can break and be mounted again, and answers when they are on it.
    pub(super) fn on_disk_in_a_file() -> Self {
        let mut server = Self::new(&["--durability", "full"]);
        server.disk = Some(Disk::File);
        assert!(make_image(&server.image()), "no file system can be made");
        server
    }

    /// Whether a process may have a disk in a file here.
    pub(super) fn may_mount_files() -> bool {
        let folder = tempfile::tempdir().expect("a folder");
        let image = folder.path().join("image");
        let mount = || {
            let mut command = Command::new("unshare");
            command
                .args(["-m", "mount", "-o", "loop"])
                .arg(&image)
                .arg(folder.path());
            command.stderr(Stdio::null()).status()
        };
        make_image(&image) && mount().is_ok_and(|mounted| mounted.success())
    }

    /// Whether a process may have a disk of its own here.
    pub(super) fn may_mount() -> bool {
        let tried = Command::new("unshare")
            .args(["-m", "mount", "-t", "tmpfs", "kindex", "/mnt"])
            .stderr(Stdio::null())
            .status();
        tried.is_ok_and(|tried| tried.success())
    }

    fn command(&self) -> Command {
        match self.disk {
            None => Command::new(KINDEX),
            Some(Disk::Memory(size)) => self.mounted(r#"mount -t tmpfs -o "size=$1" kindex "$0""#, OsStr::new(size)),
            Some(Disk::File) => self.mounted(r#"mount -o loop "$1" "$0""#, self.image().as_os_str()),
        }
    }

    /// The program, once a shell has mounted something with this argument where its runs are kept.
    fn mounted(&self, mount: &str, of: &OsStr) -> Command {
        let script = format!(r#"mkdir -p "$0" && {mount} && shift && exec "$@""#);
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", &script]).arg(self.data());
        command.arg(of).arg(KINDEX);
        command
    }

    fn image(&self) -> PathBuf {
        self.folder.path().join("image")
    }

    /// Nothing more can be written to its disk, as after an error of the device.
    pub(super) fn break_disk(&self) {
        let mut command = self.beside();
        let broken = command.args(["mount", "-o", "remount,abort"]).arg(self.data()).status();
        assert!(broken.expect("nsenter starts").success());
    }

    /// A command that sees the disk of the service.
    fn beside(&self) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["-t", &self.id().to_string(), "-m", "--"]);
        command
    }

    /// Starts on a disk on which nothing can be written; whether it ended well, and what it said.
    pub(super) fn try_read_only(&self) -> (bool, String) {
        let mut command = self.mounted(
            r#"mount -o loop "$1" "$0" && mount -o remount,ro "$0""#,
            self.image().as_os_str(),
        );
        let serve = command.args(["runs", "serve", "--data-dir"]).arg(self.data());
        let ended = serve.args(&self.flags).output().expect("unshare starts");
        (
            ended.status.success(),
            String::from_utf8_lossy(&ended.stderr).into_owned(),
        )
    }

    pub(super) fn data(&self) -> PathBuf {
        self.folder.path().join("runs")
    }

    /// The folder of its runs, as it sees it.
    pub(super) fn data_within(&self) -> PathBuf {
        let root = format!("/proc/{}/root", self.id());
        PathBuf::from(root).join(self.data().strip_prefix("/").expect("a whole path"))
    }

    fn id(&self) -> u32 {
        self.child().as_ref().expect("it was started").id()
    }

    pub(super) fn start(&self) {
        let log = File::options()
            .append(true)
            .create(true)
            .open(self.folder.path().join("log"));
        let mut command = self.command();
        let child = command
            .args(["runs", "serve", "--data-dir"])
            .arg(self.data())
            .args(&self.flags)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log.expect("the log is writable"))
            .spawn();
        *self.child() = Some(child.expect("kindex starts"));
    }

    pub(super) fn kill(&self) {
        let mut child = self.child().take().expect("it was started");
        child.kill().expect("it runs");
        child.wait().expect("it was started");
    }

    fn child(&self) -> MutexGuard<'_, Option<Child>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its memory now, in bytes.
    pub(super) fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).expect("Linux");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
        kib.expect("a number of kB") * 1024
    }

    /// `kindex runs verify`, as a person runs it; where the service has a disk of its own, on that disk.
    pub(super) fn verify(&self) {
        let mut command = match self.disk {
            None => Command::new(KINDEX),
            Some(Disk::Memory(_) | Disk::File) => {
                let mut command = self.beside();
                command.arg(KINDEX);
                command
            }
        };
        let verified = command
            .args(["runs", "verify", "-o", "json", "--data-dir"])
            .arg(self.data())
            .output()
            .expect("kindex starts");
        let shown = String::from_utf8_lossy(&verified.stdout);
        assert!(
            verified.status.success(),
            "{shown}{}",
            String::from_utf8_lossy(&verified.stderr)
        );
    }
}

/// A file with an empty file system; whether that could be made.
fn make_image(path: &Path) -> bool {
    let mut command = Command::new("mkfs.ext4");
    let made = command.arg("-q").arg(path).arg("32m").stderr(Stdio::null()).status();
    made.is_ok_and(|made| made.success())
}

impl Drop for Server {
    fn drop(&mut self) {
        let is_running = self.child().is_some();
        if is_running {
            self.kill();
        }
    }
}

/// A request over HTTP/1.1, with the headers of its body; status and body of the answer.
pub(super) fn ask(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> io::Result<(u16, String)> {
    let mut stream = TcpStream::connect_timeout(&address, WAIT_MAX)?;
    stream.set_read_timeout(Some(WAIT_MAX))?;
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    stream.write_all(format!("{head}\r\n").as_bytes())?;
    stream.write_all(body)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let odd = || io::Error::other(format!("no HTTP answer: {answer}"));
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(odd)?;
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    Ok((status.ok_or_else(odd)?, body.to_owned()))
}

/// A request with a body in JSON.
pub(super) fn post(address: SocketAddr, path: &str, body: &Value) -> io::Result<(u16, String)> {
    let body = body.to_string();
    let length = body.len().to_string();
    let headers = [("Content-Type", "application/json"), ("Content-Length", &*length)];
    ask(address, "POST", path, &headers, body.as_bytes())
}

/// Asks until there is an answer. A server that is away or busy is asked again; any other refusal is a failure.
pub(super) fn until_answered(what: &str, ask: impl Fn() -> io::Result<(u16, String)>) -> String {
    wait_until(what, || match ask() {
        Ok((200, text)) => Ok(text),
        Ok((429 | 503, text)) => Err(text),
        Ok((status, text)) => panic!("{what} is answered {status}: {text}"),
        Err(error) => Err(error.to_string()),
    })
}

/// Sends a request until it is answered.
pub(super) fn send(address: SocketAddr, path: &str, body: &Value) -> Value {
    let text = until_answered(path, || post(address, path, body));
    serde_json::from_str(&text).expect("an answer is JSON")
}

/// What is read, by a server that is there.
pub(super) fn read(address: SocketAddr, path: &str) -> Value {
    let text = until_answered(path, || ask(address, "GET", path, &[], b""));
    serde_json::from_str(&text).expect("an answer is JSON")
}
