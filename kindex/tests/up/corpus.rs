//! What somebody may send who means harm, to the real process on both of its ports: what it takes of memory is bounded
//! by what harmless requests take, and others are answered meanwhile.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::thread;

use super::process::{Running, wait_for};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const MODELS: &str = "/apis/michelangelo.api/v2/namespaces/default/models";
const MIB: usize = 1024 * 1024;
/// A little less than what a body may be.
const LARGE_BYTES: usize = 3 * MIB - 64 * 1024;
/// Harmful requests of one sort, which come at once.
const AT_ONCE: usize = 4;
/// What harm may take beyond what as many harmless requests took, with what the allocator keeps of it. The most take
/// hundreds of thousands of fields in one body, which are compared, owned and written one by one.
const GROWTH_MAX_KIB: u64 = 224 * 1024;

const JSON: &str = "application/json";
const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
const YAML: &str = "application/yaml";
/// About as many small maps as are read of one body.
const MAPS_READ: usize = 34_000;

/// One request, and what it may be answered.
#[derive(Clone)]
struct Attack {
    what: &'static str,
    line: String,
    media: &'static str,
    body: String,
    codes: &'static [&'static str],
}

/// Where requests go, and what they have to show.
#[derive(Clone)]
struct Port {
    address: SocketAddr,
    authorization: String,
}

impl Port {
    fn connect(&self, line: &str, headers: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).expect("the server is there");
        let (authorization, length) = (&self.authorization, body.len());
        write!(
            stream,
            "{line} HTTP/1.1\r\nHost: localhost\r\n{authorization}{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .expect("the server listens to all of it");
        stream
    }

    fn send(&self, line: &str, media: &str, body: &str) -> String {
        let mut stream = self.connect(line, &format!("Content-Type: {media}\r\n"), body);
        let answer = code(&mut stream);
        let mut rest = [0; 64 * 1024];
        while stream.read(&mut rest).expect("the rest of the answer") > 0 {}
        answer
    }

    /// Somebody who means no harm.
    fn is_answered(&self) {
        for path in [
            "/readyz",
            "/apis/coordination.k8s.io/v1/leases",
            "/api/v1/namespaces/default",
        ] {
            assert_eq!(self.send(&format!("GET {path}"), JSON, ""), "200", "{path}");
        }
    }
}

fn code(stream: &mut TcpStream) -> String {
    let mut head = [0; 12];
    stream.read_exact(&mut head).expect("an answer");
    String::from_utf8_lossy(&head[9..]).into_owned()
}

/// As many of these as come to so many bytes.
fn many(bytes: usize, one: impl Fn(usize) -> String) -> String {
    let mut text = String::with_capacity(bytes);
    for at in 0.. {
        let next = one(at);
        if text.len() + next.len() + 1 > bytes {
            break;
        }
        if at > 0 {
            text.push(',');
        }
        text.push_str(&next);
    }
    text
}

fn map(name: &str, data: &str) -> String {
    format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"}},"data":{{{data}}}}}"#)
}

fn model(name: &str, spec: &str) -> String {
    format!(r#"{{"apiVersion":"michelangelo.api/v2","kind":"Model","metadata":{{"name":"{name}"}},"spec":{{{spec}}}}}"#)
}

/// Copies that double what they copy.
fn doubling(field: &str, copies: usize) -> String {
    let copy = |at| format!(r#"{{"op":"copy","from":"/{field}","path":"/{field}/x{at}"}}"#);
    let copies: Vec<String> = (0..copies).map(copy).collect();
    format!("[{}]", copies.join(","))
}

impl Attack {
    fn new(
        what: &'static str,
        line: String,
        media: &'static str,
        body: String,
        codes: &'static [&'static str],
    ) -> Self {
        Self {
            what,
            line,
            media,
            body,
            codes,
        }
    }
}

/// Small patches that make much, and large ones.
fn patches() -> Vec<Attack> {
    let map_of = |name: &str| format!("PATCH {MAPS}/{name}");
    let a_model = || format!("PATCH {MODELS}/a");
    let applied = || format!("PATCH {MAPS}/applied?fieldManager=me");
    let small_maps = many(LARGE_BYTES, |_| r#"{"a":0}"#.to_owned());
    let add = r#"{"op":"add","path":"/data/x","value":"1"}"#;
    let adds = many(800 * 1024, |_| add.to_owned());
    let mut aliases = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n".to_owned();
    for level in 1..12 {
        let of_them = vec![format!("*a{}", level - 1); 9].join(",");
        writeln!(aliases, "a{level}: &a{level} [{of_them}]").expect("a text grows");
    }
    let steps = format!("[{small_maps}]");
    let list = format!(r#"{{"x":[{small_maps}]}}"#);
    let fitting = vec![r#"{"a":0}"#; MAPS_READ].join(",");
    let fitting = format!(r#"{{"spec":{{"x":[{fitting}]}}}}"#);
    let adds = format!("[{adds}]");
    let doubled = "copies that double";
    vec![
        Attack::new(doubled, map_of("a"), JSON_PATCH, doubling("data", 30), &["422"]),
        Attack::new(doubled, a_model(), JSON_PATCH, doubling("spec", 30), &["422"]),
        Attack::new("many operations", map_of("a"), JSON_PATCH, adds, &["413", "422"]),
        Attack::new("small maps", map_of("a"), MERGE_PATCH, list, &["400"]),
        Attack::new("small maps for steps", map_of("a"), JSON_PATCH, steps.clone(), &["400"]),
        Attack::new("small maps for steps", a_model(), JSON_PATCH, steps, &["400"]),
        Attack::new("as many maps as are read", a_model(), MERGE_PATCH, fitting, &["200"]),
        Attack::new("depth", map_of("a"), MERGE_PATCH, deep(), &["400"]),
        Attack::new("aliases of aliases", applied(), APPLY, aliases, &["400"]),
    ]
}

/// As many fields as a body holds.
fn fields() -> Vec<Attack> {
    let keys = |bytes| many(bytes, |at| format!(r#""k{at:x}":"v""#));
    let (merged, applied) = (
        format!("PATCH {MAPS}/a"),
        format!("PATCH {MAPS}/applied?fieldManager=me"),
    );
    let data = |bytes| format!(r#"{{"data":{{{}}}}}"#, keys(bytes));
    // With their paths, more than an object has room for, and about the most that are read.
    [2 * MIB, LARGE_BYTES]
        .into_iter()
        .flat_map(|bytes| {
            let (merged, applied) = (merged.clone(), applied.clone());
            [
                Attack::new("merged fields", merged, MERGE_PATCH, data(bytes), &["400", "413"]),
                Attack::new(
                    "applied fields",
                    applied,
                    APPLY,
                    map("applied", &keys(bytes)),
                    &["400", "413"],
                ),
            ]
        })
        .collect()
}

/// Objects that are none, or too much of one.
fn objects() -> Vec<Attack> {
    let post = || format!("POST {MODELS}");
    let small_maps = many(LARGE_BYTES, |_| r#"{"a":0}"#.to_owned());
    let small_maps = model("b", &format!(r#""x":[{small_maps}]"#));
    let block = format!("spec:\n  x:\n{}", "  - a: 0\n".repeat(LARGE_BYTES / 10));
    vec![
        Attack::new("small maps", post(), JSON, small_maps, &["400"]),
        Attack::new("small maps", post(), YAML, block, &["400"]),
        Attack::new("depth", post(), JSON, deep(), &["400"]),
        Attack::new("too long", format!("POST {MAPS}"), JSON, " ".repeat(8 * MIB), &["413"]),
    ]
}

fn deep() -> String {
    format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000))
}

/// Questions that are long to answer.
fn questions() -> Vec<Attack> {
    let terms = (0..1000)
        .map(|at| format!("l{at}%21%3Dv"))
        .collect::<Vec<_>>()
        .join(",");
    let request = |what, path: &str, parameter: &str, value: &str, codes| {
        let line = format!("GET {path}?{parameter}={value}");
        Attack::new(what, line, JSON, String::new(), codes)
    };
    vec![
        request("a thousand labels", MAPS, "labelSelector", &terms, &["200", "400"]),
        request("a thousand labels", MODELS, "labelSelector", &terms, &["200", "400"]),
        request("a thousand fields", MODELS, "fieldSelector", &terms, &["400"]),
        request(
            "a token of nobody",
            MODELS,
            "continue",
            &"x".repeat(32 * 1024),
            &["400", "410"],
        ),
    ]
}

/// All of these at once, and somebody else meanwhile.
fn launch(port: &Port, attack: &Attack) {
    thread::scope(|scope| {
        let sent: Vec<_> = (0..AT_ONCE)
            .map(|_| scope.spawn(|| port.send(&attack.line, attack.media, &attack.body)))
            .collect();
        port.is_answered();
        for answer in sent {
            let answer = answer.join().expect("no panic");
            let (what, line) = (attack.what, attack.line.split('?').next());
            assert!(
                answer == "429" || attack.codes.contains(&answer.as_str()),
                "{what}, {line:?}: {answer}"
            );
        }
    });
}

/// Bodies that do not come, answers that nobody takes, and requests that show nothing.
fn occupy(port: &Port, objects: &str) {
    let mut held = Vec::new();
    for _ in 0..260 {
        let mut stream = TcpStream::connect(port.address).expect("the server is there");
        let authorization = &port.authorization;
        write!(
            stream,
            "POST {objects} HTTP/1.1\r\nHost: localhost\r\n{authorization}Content-Type: {JSON}\r\nContent-Length: 1000\r\n\r\n{{"
        )
        .expect("sent");
        held.push(stream);
    }
    for _ in 0..50 {
        held.push(port.connect(&format!("GET {objects}?watch=true"), "", ""));
        held.push(port.connect(&format!("GET {objects}"), "", ""));
    }
    port.is_answered();
    drop(held);
}

#[test]
fn no_request_takes_more_than_harmless_ones_and_nobody_waits_for_it() {
    let run = Running::start(&[]);
    let cluster = Port {
        address: run.cluster(),
        authorization: format!("Authorization: Bearer {}\r\n", run.token()),
    };
    let api = Port {
        address: run.api().expect("an API server"),
        ..cluster.clone()
    };
    let foreign = cluster.connect(&format!("GET {MAPS}"), "Origin: http://evil.example\r\n", "");
    assert_eq!(code(&mut { foreign }), "403", "a page of a browser");
    let nobody = Port {
        authorization: String::new(),
        ..cluster.clone()
    };
    assert_eq!(
        nobody.send(&format!("POST {MAPS}"), JSON, "{}"),
        "401",
        "who shows nothing"
    );
    assert_eq!(
        cluster.send(&format!("POST {MAPS}"), JSON, &map("a", r#""k":"v""#)),
        "201"
    );
    wait_for("the kinds", || {
        cluster.send(&format!("GET {MODELS}"), JSON, "") == "200"
    });
    assert_eq!(
        api.send(&format!("POST {MODELS}"), JSON, &model("a", r#""algorithm":"x""#)),
        "201"
    );
    // As many and as large as what follows, of which a copy is no more than its length.
    for port in [&cluster, &api] {
        let harmless = Attack {
            what: "nothing",
            line: format!("POST {MODELS}?dryRun=All"),
            media: JSON,
            body: model("b", &format!(r#""description":"{}""#, "x".repeat(LARGE_BYTES - 1024))),
            codes: &["201"],
        };
        launch(port, &harmless);
    }
    let allowed = run.peak_kib() + GROWTH_MAX_KIB;
    let mut beyond = String::new();
    let mut judge = |what: &str, port: &Port| {
        let peak = run.peak_kib();
        println!("{what} on {}: {peak} KiB of {allowed}", port.address);
        if peak > allowed {
            writeln!(beyond, "{what} on {}: {peak} KiB of {allowed}", port.address).expect("a text grows");
        }
        run.forget_peak();
    };
    for port in [&cluster, &api] {
        for attack in [patches(), objects(), questions(), fields()].concat() {
            launch(port, &attack);
            judge(attack.what, port);
        }
        for objects in [MAPS, MODELS] {
            occupy(port, objects);
            judge("what does not come and what is not taken", port);
        }
    }
    assert!(beyond.is_empty(), "{beyond}");
}
