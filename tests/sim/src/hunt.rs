//! Plants bugs one by one in a copy of the workspace, and runs the simulation there until it finds them. Never changes
//! the workspace itself.

use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;
use std::{env, fmt, fs, io, thread};

use serde::Deserialize;

use super::mutations::{Mutation, PLANTED_IN, misfits, read};

/// The binary of the copy has a name of its own, so that it never replaces the one without a bug.
const BINARY: &str = "kindex-sim-planted";

/// Longer than all seeds take on a small, busy machine.
const HANGS_AFTER: Duration = Duration::from_secs(3_600);

/// The workspace and its build directory.
#[derive(Debug, Deserialize)]
pub struct Directories {
    /// The workspace.
    #[serde(rename = "workspace_root")]
    workspace: PathBuf,
    #[serde(rename = "target_directory")]
    target: PathBuf,
}

impl Directories {
    fn copy(&self) -> PathBuf {
        self.target.join("planted")
    }
}

/// The result for one bug.
#[derive(Debug)]
pub struct Hunted {
    /// The bug.
    pub mutation: Mutation,
    /// The first seed that broke a rule, and the rule.
    pub found: Option<(u64, String)>,
}

impl fmt::Display for Hunted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.mutation.name;
        match &self.found {
            Some((seed, rule)) => {
                let rule: String = rule.chars().take(90).collect();
                write!(f, "{name:<40} {:>7}  {rule}", seed + 1)
            }
            None => write!(f, "{name:<40}       -  NOT FOUND: {}", self.mutation.bug),
        }
    }
}

/// The workspace of the current directory.
///
/// # Errors
/// Where there is none.
pub fn directories() -> io::Result<Directories> {
    let mut metadata = cargo();
    metadata.args(["metadata", "--no-deps", "--format-version", "1"]);
    let output = succeeded(metadata.output()?)?;
    serde_json::from_slice(&output.stdout).map_err(io::Error::other)
}

/// The bugs of a workspace, or the named ones. Removes the copy of an earlier run.
///
/// # Errors
/// If a name is unknown, or a bug does not fit the code.
pub fn chosen(directories: &Directories, only: &[String]) -> io::Result<Vec<Mutation>> {
    let all = read(&directories.workspace)?;
    let misfits = misfits(&directories.workspace, &all);
    if !misfits.is_empty() {
        return Err(io::Error::other(misfits.join("\n")));
    }
    let unknown = only.iter().find(|name| all.iter().all(|known| known.name != **name));
    if let Some(name) = unknown {
        return Err(io::Error::other(format!("there is no bug called {name}")));
    }
    if directories.copy().exists() {
        fs::remove_dir_all(directories.copy())?;
    }
    let wanted = |mutation: &Mutation| only.is_empty() || only.contains(&mutation.name);
    Ok(all.into_iter().filter(wanted).collect())
}

/// Plants one bug, builds the simulation with it, and plays seeds until one breaks a rule.
///
/// # Errors
/// If the copy cannot be made or built.
pub fn hunt(directories: &Directories, mutation: &Mutation, seeds: u64) -> io::Result<Hunted> {
    let copy = directories.copy();
    copy_workspace(&directories.workspace, &copy)?;
    let file = copy.join(&mutation.file);
    let planted = mutation.plant(&fs::read_to_string(&file)?).map_err(io::Error::other)?;
    fs::write(&file, planted)?;
    build(directories, &copy)?;
    let mut play = Command::new(directories.target.join("debug").join(BINARY));
    play.args(["--quiet", "--seeds", &seeds.to_string()]);
    let (status, text) = in_time(play)?;
    let found = match (status.code(), text.trim().split_once(' ')) {
        (Some(0), _) => None,
        (Some(1), Some((seed, rule))) => Some((seed.parse().map_err(io::Error::other)?, rule.to_owned())),
        _ => return Err(io::Error::other(format!("{}: it ended with {status}", mutation.name))),
    };
    Ok(Hunted {
        mutation: mutation.clone(),
        found,
    })
}

/// Runs a program with little output, and kills it after [`HANGS_AFTER`]: a bug may be an endless loop.
fn in_time(mut program: Command) -> io::Result<(ExitStatus, String)> {
    let mut child = program.stdout(Stdio::piped()).spawn()?;
    let mut stdout = child.stdout.take().expect("it is piped");
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut text = String::new();
        let read = stdout.read_to_string(&mut text).map(|_| text);
        // The receiver is gone after a timeout.
        sender.send(read).ok();
    });
    let Ok(text) = receiver.recv_timeout(HANGS_AFTER) else {
        child.kill()?;
        child.wait()?;
        return Err(io::Error::other("it hangs"));
    };
    Ok((child.wait()?, text?))
}

/// Builds the copy, with a profile of its own: Cargo names artifacts by profile and by path within the workspace, so
/// with the usual profile it would mix up code with and without the bug.
fn build(directories: &Directories, copy: &Path) -> io::Result<()> {
    let mut build = cargo();
    build
        .current_dir(copy)
        .env("CARGO_TARGET_DIR", &directories.target)
        .args([
            "build",
            "--quiet",
            "--locked",
            "--package",
            "kindex-sim",
            "--bin",
            BINARY,
        ]);
    for package in PLANTED_IN.iter().map(|(package, _)| *package).chain(["kindex-sim"]) {
        build.args(["--config", &format!("profile.dev.package.{package}.debug=false")]);
    }
    succeeded(build.output()?).map(drop)
}

/// Makes the copy equal to the workspace. Files that are equal keep their times, so that
/// nothing is built again that did not change.
fn copy_workspace(workspace: &Path, copy: &Path) -> io::Result<()> {
    let mut list = Command::new("git");
    list.current_dir(workspace)
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let listed = succeeded(list.output()?)?;
    for path in listed.stdout.split(|byte| *byte == 0).filter(|path| !path.is_empty()) {
        let path = String::from_utf8_lossy(path).into_owned();
        let Ok(text) = fs::read(workspace.join(&path)) else {
            continue; // Deleted, and git does not know yet.
        };
        write_if_changed(&copy.join(&path), &text)?;
    }
    let binary = fs::read(workspace.join("tests/sim/src/main.rs"))?;
    write_if_changed(&copy.join(format!("tests/sim/src/bin/{BINARY}.rs")), &binary)
}

fn write_if_changed(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if fs::read(path).is_ok_and(|known| known == bytes) {
        return Ok(());
    }
    let directory = path.parent().expect("every file is in a directory");
    fs::create_dir_all(directory)?;
    fs::write(path, bytes)
}

fn cargo() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")))
}

fn succeeded(output: Output) -> io::Result<Output> {
    if output.status.success() {
        return Ok(output);
    }
    Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()))
}
