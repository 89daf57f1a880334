//! `kindex events` as it is typed, against a server that is killed and comes back, or that cannot be reached at first,
//! and over connections that are cut.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};

use kindex_harness::ports;
use kindex_harness::proxy::{Mode, Proxy};
use serde_json::Value;

use super::process::{KINDEX, Running, kubectl_is_there, wait_for};

/// How many share the bytes at which an answer is cut.
const FOLLOWERS: usize = 8;
/// A comment of server-sent events, as a chunk of an answer.
const COMMENT: &[u8] = b"3\r\n:\n\n\r\n";

pub(crate) fn create(run: &Running, name: &str) {
    let metadata = format!("{{name: {name}, namespace: default}}");
    let project = format!("{{apiVersion: michelangelo.api/v2, kind: Project, metadata: {metadata}, spec: {{}}}}");
    run.kubectl(&["create", "-f", "-"], &project);
}

pub(crate) fn delete(run: &Running, name: &str) {
    run.kubectl(&["delete", "project", name], "");
}

/// `kindex events` with these flags, until it ends by itself.
pub(crate) fn events(args: &[&str]) -> Output {
    let events = Command::new(KINDEX).arg("events").args(args).output();
    events.expect("kindex runs")
}

/// What was printed of each object, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Printed(Arc<Mutex<Vec<Value>>>);

impl Printed {
    pub(crate) fn has(&self, name: &str, erased: bool) -> bool {
        let lines = self.0.lock().expect("nobody panics with it");
        let mut lines = lines.iter().filter(|line| line["name"] == name);
        lines.any(|line| (line["erased"] == true) == erased)
    }

    /// Whether it was printed with the time of its deletion.
    pub(crate) fn is_deleted(&self, name: &str) -> bool {
        let lines = self.0.lock().expect("nobody panics with it");
        let mut lines = lines.iter().filter(|line| line["name"] == name);
        lines.any(|line| !line["deletionTimestamp"].is_null())
    }

    pub(crate) fn last_position(&self) -> String {
        let lines = self.0.lock().expect("nobody panics with it");
        let last = lines.last().expect("something was printed");
        last["position"].as_str().expect("a position").to_owned()
    }

    /// All that was printed of an object.
    pub(crate) fn of(&self, name: &str) -> Vec<Value> {
        let lines = self.0.lock().expect("nobody panics with it");
        lines.iter().filter(|line| line["name"] == name).cloned().collect()
    }
}

/// `kindex events --follow`, in a process of its own.
pub(crate) struct Follower {
    process: Child,
    pub(crate) printed: Printed,
    /// What it says on stderr.
    notes: Arc<Mutex<Vec<String>>>,
}

impl Follower {
    /// Of projects.
    pub(crate) fn begin(args: &[&str]) -> Self {
        Self::begin_with("project", args, Printed::default())
    }

    /// Of any kind, beside others whose objects are printed with its own.
    pub(crate) fn begin_with(kind: &str, args: &[&str], printed: Printed) -> Self {
        let mut process = Command::new(KINDEX)
            .args(["events", kind, "--follow", "-o", "json"])
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("kindex runs");
        let lines = BufReader::new(process.stdout.take().expect("piped")).lines();
        let seen = printed.clone();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let event = serde_json::from_str(&line).expect("each line is JSON");
                seen.0.lock().expect("nobody panics with it").push(event);
            }
        });
        let said = BufReader::new(process.stderr.take().expect("piped")).lines();
        let notes = Arc::new(Mutex::new(Vec::new()));
        let kept = notes.clone();
        std::thread::spawn(move || {
            for line in said.map_while(Result::ok) {
                kept.lock().expect("nobody panics with it").push(line);
            }
        });
        Self {
            process,
            printed,
            notes,
        }
    }

    /// Waits until it says so on stderr.
    fn says(&self, words: &str) {
        wait_for(words, || {
            let notes = self.notes.lock().expect("nobody panics with it");
            notes.iter().any(|line| line.contains(words))
        });
    }

    pub(crate) fn sees(&self, name: &str, erased: bool) {
        wait_for(&format!("{name}, erased: {erased}"), || self.printed.has(name, erased));
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ended = self.process.kill();
        let _reaped = self.process.wait();
    }
}

#[test]
fn a_follower_outlives_its_server_and_lacks_no_tombstone() {
    if !kubectl_is_there() {
        return;
    }
    let listen = format!("127.0.0.1:{}", ports::reserve());
    let url = format!("http://{listen}");
    let mut run = Running::start(&["--listen", &listen]);
    create(&run, "before");
    let follower = Follower::begin(&["--url", &url]);
    follower.sees("before", false);
    for round in ["first", "second"] {
        let name = format!("goes-{round}");
        create(&run, &name);
        follower.sees(&name, false);
        let last = format!("last-{round}");
        create(&run, &last);
        // What is told of these may or may not have been sent.
        delete(&run, &name);
        run.kill();
        run.restart();
        follower.sees(&name, true);
        delete(&run, &last);
        follower.sees(&last, true);
    }
    assert!(!follower.printed.has("before", true));
}

#[test]
fn a_follower_from_a_position_outlasts_a_server_that_is_away_at_first_and_lacks_no_tombstone() {
    if !kubectl_is_there() {
        return;
    }
    let port = ports::reserve();
    let listen = format!("127.0.0.1:{port}");
    let run = Running::start(&["--listen", &listen]);
    let before = Follower::begin(&["--url", &format!("http://{listen}")]);
    for name in ["goes-first", "goes-second", "stays"] {
        create(&run, name);
        before.sees(name, false);
    }
    let position = before.printed.last_position();
    drop(before);
    let proxy = Proxy::start(port);
    let url = format!("http://127.0.0.1:{}", proxy.port);
    for (mode, name) in [(Mode::Reset, "goes-first"), (Mode::Refuse, "goes-second")] {
        proxy.set(mode);
        // Whoever begins may have mistyped the address.
        let begun = events(&["project", "--follow", "--url", &url]);
        let said = String::from_utf8_lossy(&begun.stderr).into_owned();
        assert_eq!(begun.status.code(), Some(1), "{mode:?}: {said}");
        assert!(said.contains("does the API server run at"), "{mode:?}: {said}");
        let follower = Follower::begin(&["--url", &url, "--from", &position]);
        follower.says("there is no subscription yet");
        delete(&run, name);
        proxy.set(Mode::Pass);
        follower.sees(name, true);
        assert!(!follower.printed.has("stays", true), "{mode:?}");
    }
}

/// Leads connections to a server, and cuts one after the other after so many bytes of the answer.
fn cut_after(bytes: impl Iterator<Item = u64> + Send + 'static, server: SocketAddr) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let url = format!("http://{}", listener.local_addr().expect("it is bound"));
    std::thread::spawn(move || {
        let limits = bytes.chain(std::iter::repeat(u64::MAX));
        for (client, limit) in listener.incoming().map_while(Result::ok).zip(limits) {
            let server = TcpStream::connect(server).expect("it runs");
            std::thread::spawn(move || connect(client, server, limit));
        }
    });
    url
}

/// Until one side closes the connection, or so many bytes were answered. A comment follows the headers: whoever gets it
/// knows that the server answers, and does not wait longer after each cut.
fn connect(client: TcpStream, server: TcpStream, answer_bytes: u64) {
    std::thread::scope(|scope| {
        scope.spawn(|| io::copy(&mut &client, &mut &server));
        let mut answer = (&server).take(answer_bytes);
        let (mut headers, mut byte) = (Vec::<u8>::new(), [0_u8]);
        while !headers.ends_with(b"\r\n\r\n") && matches!(answer.read(&mut byte), Ok(1)) {
            headers.extend(byte);
        }
        if headers.ends_with(b"\r\n\r\n") {
            headers.extend_from_slice(COMMENT);
        }
        // Either side may be gone.
        let _passed = (&client).write_all(&headers);
        let _answered = io::copy(&mut answer, &mut &client);
        for side in [&client, &server] {
            let _gone = side.shutdown(Shutdown::Both);
        }
    });
}

#[test]
fn a_follower_whose_answer_is_cut_at_any_byte_lacks_no_tombstone() {
    if !kubectl_is_there() {
        return;
    }
    let run = Running::start(&[]);
    let server = run.api().expect("it serves");
    let whole = Follower::begin(&["--url", &format!("http://{server}")]);
    let names: Vec<String> = (0..8).map(|number| format!("goes-{number}")).collect();
    for name in names.iter().map(String::as_str).chain(["stays"]) {
        create(&run, name);
        whole.sees(name, false);
    }
    let position = whole.printed.last_position();
    for name in &names {
        delete(&run, name);
        whole.sees(name, true);
    }
    // All of them within an answer: each tombstone has at least 280 bytes with its position.
    let cuts = (1..2000).step_by(181);
    let followers = cuts.map(|bytes| {
        let url = cut_after(std::iter::once(bytes), server);
        (bytes, Follower::begin(&["--url", &url, "--from", &position]))
    });
    for (bytes, follower) in followers.collect::<Vec<_>>() {
        // Either it is resumed or, where nothing came before the cut, tried again.
        follower.says(" ms");
        for name in &names {
            follower.sees(name, true);
            let last = follower.printed.of(name).pop().expect("it was printed");
            assert_eq!(last["erased"], true, "cut after {bytes} bytes: {last}");
        }
        assert!(!follower.printed.has("stays", true), "cut after {bytes} bytes");
    }
}

/// The bytes of the answer to a subscription that follow its headers, up to the end of the first tombstone.
fn up_to_a_tombstone(server: SocketAddr, topic: &str, position: &str) -> Range<u64> {
    let mut connection = TcpStream::connect(server).expect("it runs");
    let request = format!("GET /api/v1/events/{topic}?from={position} HTTP/1.1\r\nHost: {server}\r\n\r\n");
    connection.write_all(request.as_bytes()).expect("it reads");
    let (mut answer, mut piece) = (Vec::<u8>::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&answer);
        let end_of = |words: &str| text.find(words).map(|at| (at + words.len()) as u64);
        if let (Some(begin), Some(end)) = (end_of("\r\n\r\n"), end_of("\"erased\":true}\n\n")) {
            // With the end of its chunk.
            return begin..end + 3;
        }
        let read = connection.read(&mut piece).expect("it answers");
        assert_ne!(read, 0, "{text}");
        answer.extend_from_slice(&piece[..read]);
    }
}

/// Cuts the answer that begins at this position at every byte up to the end of the tombstone of this object, which is
/// the first message. Each follower is cut at every eighth byte, one after the other: it gets further than a cut only
/// once that was made.
pub(crate) fn cut_at_every_byte(server: SocketAddr, topic: &str, position: &str, name: &str) {
    let bytes = up_to_a_tombstone(server, topic, position);
    let followers = (0..FOLLOWERS).map(|first| {
        let url = cut_after(bytes.clone().skip(first).step_by(FOLLOWERS), server);
        Follower::begin_with(topic, &["--url", &url, "--from", position], Printed::default())
    });
    for follower in followers.collect::<Vec<_>>() {
        follower.sees(name, true);
        let printed = follower.printed.of(name);
        assert!(printed.iter().all(|line| line["erased"] == true), "{printed:?}");
    }
}

#[test]
fn a_follower_whose_answer_is_cut_at_every_byte_of_a_tombstone_does_not_lack_it() {
    if !kubectl_is_there() {
        return;
    }
    let run = Running::start(&[]);
    let server = run.api().expect("it serves");
    let whole = Follower::begin(&["--url", &format!("http://{server}")]);
    create(&run, "goes");
    whole.sees("goes", false);
    let position = whole.printed.last_position();
    delete(&run, "goes");
    whole.sees("goes", true);
    cut_at_every_byte(server, "projects.michelangelo.api", &position, "goes");
}
