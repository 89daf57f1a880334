//! Tests start no server of each product by hand, which would pass over the next engine: they take what
//! `kindex_tests::databases` makes.

use std::collections::BTreeMap;

use proc_macro2::{TokenStream, TokenTree};

use super::engines::{has_tests, is_word};
use super::expect_none;
use super::files::File;
use super::sources::RUST_FILES;
use super::tokens::{each_sequence, is_punct, line};

/// The servers of the harness.
const SERVERS: [&str; 2] = ["MariaDb", "MySql"];

/// The files that may start each of them, and what for.
const STARTED_IN: [(&str, &str); 1] = [(
    "kindex/tests/up/adopt.rs",
    "tables of another program, which has them on these servers alone",
)];

/// The servers that a file starts, each with the last line, from zero, that does.
fn started(text: &str) -> BTreeMap<&'static str, usize> {
    let tokens: TokenStream = text.parse().expect("Rust");
    let mut servers = BTreeMap::new();
    each_sequence(tokens, &mut |sequence| {
        for path in sequence.windows(4) {
            let starts = matches!(&path[3], TokenTree::Ident(name) if name.to_string().starts_with("start"));
            if starts && is_punct(&path[1], ':') && is_punct(&path[2], ':') {
                let server = SERVERS.into_iter().find(|server| is_word(&path[0], server));
                servers.extend(server.map(|server| (server, line(path[0].span()))));
            }
        }
    });
    servers
}

/// Where a test starts the last of several servers.
fn finding(file: &File) -> Option<String> {
    let is_listed = STARTED_IN.iter().any(|(listed, _)| *listed == file.path);
    if !has_tests(&file.path) || is_listed {
        return None;
    }
    let servers = started(&file.text);
    let last = servers.values().max().filter(|_| servers.len() > 1)?;
    let message = "engines are listed by hand: take those of `kindex_tests::databases::engines`";
    Some(file.finding(*last, message))
}

#[test]
fn no_test_starts_one_server_after_the_other() {
    expect_none(RUST_FILES.iter().filter_map(|(file, _)| finding(file)).collect());
}

#[test]
fn each_file_that_may_start_several_servers_does() {
    for (listed, _) in STARTED_IN {
        let mut files = RUST_FILES.iter().map(|(file, _)| file);
        let file = files.find(|file| file.path == listed).expect("the file is there");
        assert!(
            started(&file.text).len() > 1,
            "{listed} starts one server, and is listed"
        );
    }
}

/// As if one server were a list already, or each had to be started in one function.
#[test]
fn several_servers_of_one_file_are_found() {
    let found = |path: &str, text: &str| {
        let (path, text) = (path.to_owned(), text.to_owned());
        finding(&File { path, text }).is_some()
    };
    let several = "fn f() { g(MariaDb::start(&[])); }\nfn h() { g(MySql::start_encrypted(&[])); }";
    let one = "fn f() { g(MySql::installed(), MariaDb::start(&[]), MariaDb::start_encrypted(&[])); }";
    for path in ["kindex/tests/up/planted.rs", "tests/tests/sql/planted.rs"] {
        assert!(found(path, several), "{path}");
        assert!(!found(path, one), "{path}");
    }
    let (listed, _) = STARTED_IN[0];
    for path in [listed, "tests/src/databases/planted.rs", "benches/planted.rs"] {
        assert!(!found(path, several), "{path}");
    }
}
