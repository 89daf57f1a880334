//! A script: requests in the order in which they are sent, as a person writes them down. Knows no server.
//!
//! ```text
//! ### name-of-the-request
//! @save version /metadata/resourceVersion
//! PUT /apis/example.com/v1/namespaces/${ns}/widgets/a?dryRun=All
//! Content-Type: application/yaml
//!
//! the body
//! ```
//!
//! Instead of method and path, a line may be a kubectl command; the body is then its standard input.

use std::collections::BTreeSet;

/// One request.
#[derive(Debug, Default)]
pub(super) struct Request {
    pub(super) name: String,
    /// Method and path with query, or a kubectl command.
    pub(super) line: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
    /// Sent again until it is answered with this code.
    pub(super) until: Option<u16>,
    /// So many lines of the answer are read, then the client hangs up.
    pub(super) lines: Option<usize>,
    /// What later requests take from the answer: name and JSON pointer.
    pub(super) saves: Vec<(String, String)>,
}

/// Reads a script.
///
/// # Panics
/// When it is not written as it should be; the message names the request.
pub(super) fn parse(text: &str) -> Vec<Request> {
    let requests: Vec<Request> = text.split("\n### ").skip(1).map(request).collect();
    let names: BTreeSet<&str> = requests.iter().map(|request| request.name.as_str()).collect();
    assert_eq!(names.len(), requests.len(), "two requests have one name");
    requests
}

fn request(text: &str) -> Request {
    let mut lines = text.lines();
    let mut request = Request {
        name: lines.next().unwrap_or_default().trim().to_owned(),
        ..Request::default()
    };
    for line in lines.by_ref().take_while(|line| !line.is_empty()) {
        if line.starts_with('#') {
            continue;
        }
        if let Some(directive) = line.strip_prefix('@') {
            direct(&mut request, directive);
        } else if request.line.is_empty() {
            request.line = line.to_owned();
        } else {
            let (name, value) = line
                .split_once(": ")
                .unwrap_or_else(|| panic!("{}: {line}", request.name));
            request.headers.push((name.to_owned(), value.to_owned()));
        }
    }
    assert!(!request.line.is_empty(), "{} asks nothing", request.name);
    request.body = lines.collect::<Vec<_>>().join("\n").trim_end().to_owned();
    request
}

fn direct(request: &mut Request, directive: &str) {
    let words: Vec<&str> = directive.split(' ').collect();
    match words.as_slice() {
        ["until", code] => request.until = Some(code.parse().unwrap()),
        ["lines", count] => request.lines = Some(count.parse().unwrap()),
        ["save", name, pointer] => request.saves.push(((*name).to_owned(), (*pointer).to_owned())),
        _ => panic!("{}: unknown directive @{directive}", request.name),
    }
}

/// Splits a command at spaces; `'…'` holds words together.
pub(super) fn words(line: &str) -> Vec<String> {
    let parts = line.split('\'').enumerate();
    parts
        .flat_map(|(at, part)| match at % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        })
        .collect()
}
