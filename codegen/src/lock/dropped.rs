//! The line of the lock that says that no cluster stores a version any more: `dropped <Kind> <group>/<version>`, and
//! after it `cluster=<uid>` for each cluster in which `kindex versions drop` has seen to it. Works on the text, so that
//! everything else in the file stays as it is.

use super::Lock;
use crate::diag::Collector;
use crate::source::Sources;

/// What begins the uid of a cluster.
const CLUSTER: &str = "cluster=";

/// The line for one cluster; without a uid where the cluster has none.
pub fn line(kind: &str, api_version: &str, cluster: Option<&str>) -> String {
    let fact = format!("dropped {kind} {api_version}");
    match cluster {
        Some(uid) => format!("{fact} {CLUSTER}{uid}"),
        None => fact,
    }
}

/// The text of a lock with this cluster noted: in the line of the version where there is one, otherwise in a new line,
/// which lies where the generator puts it.
pub fn note(lock: &str, kind: &str, api_version: &str, cluster: Option<&str>) -> String {
    let fact = line(kind, api_version, None);
    let is_of_it = |line: &&str| *line == fact || line.starts_with(&format!("{fact} "));
    let mut lines: Vec<String> = lock.lines().map(str::to_owned).collect();
    match lock.lines().position(|line| is_of_it(&line)) {
        Some(at) => {
            let noted = cluster.map(|uid| format!("{CLUSTER}{uid}"));
            let is_new = |noted: &String| !lines[at].split(' ').any(|word| word == noted);
            if let Some(noted) = noted.filter(is_new) {
                lines[at] = format!("{} {noted}", lines[at]);
            }
        }
        None => {
            let line = line(kind, api_version, cluster);
            let is_after = |other: &String| !other.starts_with('#') && **other > *line;
            let at = lines.iter().position(is_after).unwrap_or(lines.len());
            lines.insert(at, line);
        }
    }
    lines.join("\n") + "\n"
}

/// Reads the text of a lock, as of another release; an `Err` names the lines that say nothing.
///
/// # Errors
/// Every line that is no fact of a lock.
pub fn read(text: &str) -> Result<Lock, String> {
    let mut sources = Sources::of_crds("");
    sources.add_lock(text);
    let mut found = Collector::default();
    let lock = super::parse(&sources, &mut found);
    match found.is_empty() {
        true => Ok(lock),
        false => Err(found.into_diagnostics(sources).to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: &str =
        "# head\ncolumn model owner spec.owner VARCHAR(255)\nversion Trial a.b/v1 x=\nversion Trial a.b/v2 y=\n";

    #[test]
    fn a_version_is_noted_where_the_generator_has_it() {
        let noted = note(LOCK, "Trial", "a.b/v1", Some("u1"));
        let lines: Vec<&str> = noted.lines().collect();
        assert_eq!(lines[2], "dropped Trial a.b/v1 cluster=u1");
        assert_eq!(lines.len(), LOCK.lines().count() + 1);
        let emitted = read(&noted)
            .expect("a lock")
            .emit()
            .into_values()
            .next()
            .expect("one file");
        assert!(
            emitted.contains("\ndropped Trial a.b/v1 cluster=u1\nversion"),
            "{emitted}"
        );
    }

    #[test]
    fn every_cluster_is_noted_once() {
        let mut text = note(
            &(LOCK.to_owned() + "dropped Trial a.b/v1\n"),
            "Trial",
            "a.b/v1",
            Some("u1"),
        );
        for cluster in ["u1", "u2", "u1"] {
            text = note(&text, "Trial", "a.b/v1", Some(cluster));
        }
        assert!(
            text.ends_with("\ndropped Trial a.b/v1 cluster=u1 cluster=u2\n"),
            "{text}"
        );
    }

    #[test]
    fn another_version_with_the_same_beginning_is_another_one() {
        let text = note(
            &(LOCK.to_owned() + "dropped Trial a.b/v1beta1\n"),
            "Trial",
            "a.b/v1",
            Some("u1"),
        );
        assert!(text.contains("\ndropped Trial a.b/v1 cluster=u1\n"), "{text}");
        assert!(text.contains("\ndropped Trial a.b/v1beta1\n"), "{text}");
    }

    #[test]
    fn what_is_declared_and_what_is_dropped_is_read() {
        let lock = read(&note(LOCK, "Trial", "a.b/v1", Some("u1"))).expect("a lock");
        let declared: Vec<_> = lock.declared().map(|one| (one.version, one.dropped)).collect();
        assert_eq!(declared, [("v1".to_owned(), true), ("v2".to_owned(), false)]);
        assert!(read("<<<<<<< HEAD\n").is_err());
    }
}
