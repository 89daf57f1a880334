//! Bugs as data: what is replaced by what in which file. Reads and applies; neither builds
//! nor plays anything.

use std::collections::BTreeSet;
use std::path::Path;
use std::{fs, io};

use serde::Deserialize;

/// The file that lists them, from the root of the workspace.
pub const LIST: &str = "tests/sim/mutations.toml";

/// The packages in which bugs are planted, and where their code is.
pub const PLANTED_IN: &[(&str, &str)] = &[
    ("kindex-kube-client", "crates/kube-client/src/"),
    ("kindex-model", "crates/model/src/"),
    ("kindex-query", "crates/query/src/"),
    ("kindex-store", "crates/store/src/"),
    ("kindex-decide", "crates/decide/src/"),
    ("kindex-runtime", "runtime/src/"),
];

/// One bug.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mutation {
    /// How it is called.
    pub name: String,
    /// What is wrong once it is planted.
    pub bug: String,
    /// Where, from the root of the workspace.
    pub file: String,
    /// What stands there, once.
    pub find: String,
    /// What stands there instead.
    pub replace: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    mutation: Vec<Mutation>,
}

/// The bugs that the list of a workspace names, in its order.
///
/// # Errors
/// Where the list cannot be read, with the reason.
pub fn read(workspace: &Path) -> io::Result<Vec<Mutation>> {
    let text = fs::read_to_string(workspace.join(LIST))?;
    let list: List = toml::from_str(&text).map_err(|error| io::Error::other(format!("{LIST}: {error}")))?;
    Ok(list.mutation)
}

impl Mutation {
    /// The text of its file with the bug in it.
    ///
    /// # Errors
    /// Where the text does not hold what is to be replaced exactly once.
    pub fn plant(&self, text: &str) -> Result<String, String> {
        match text.matches(&self.find).count() {
            1 => Ok(text.replacen(&self.find, &self.replace, 1)),
            count => Err(format!(
                "{LIST}: {}: its text stands {count} times in {}, not once",
                self.name, self.file
            )),
        }
    }
}

/// Everything that keeps a bug from being planted, or makes it none.
pub fn misfits(workspace: &Path, mutations: &[Mutation]) -> Vec<String> {
    let mut names = BTreeSet::new();
    let mut found = Vec::new();
    for mutation in mutations {
        if !names.insert(&mutation.name) {
            found.push(format!("{LIST}: {}: there are two of this name", mutation.name));
        }
        if !PLANTED_IN.iter().any(|(_, source)| mutation.file.starts_with(source)) {
            let sources: Vec<&str> = PLANTED_IN.iter().map(|(_, source)| *source).collect();
            found.push(format!(
                "{LIST}: {}: {} is in none of {}",
                mutation.name,
                mutation.file,
                sources.join(", ")
            ));
        }
        let planted = match fs::read_to_string(workspace.join(&mutation.file)) {
            Ok(text) => mutation.plant(&text).map(|planted| planted != text),
            Err(error) => Err(format!("{}: {error}", mutation.file)),
        };
        match planted {
            Ok(true) => {}
            Ok(false) => found.push(format!("{LIST}: {}: it changes nothing", mutation.name)),
            Err(misfit) => found.push(misfit),
        }
    }
    found
}
