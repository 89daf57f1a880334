//! `kindex purge` as it is typed. The kinds of this repository keep everything: no rule of theirs
//! may appear unnoticed.

use super::process::Running;
use super::text_of;

#[test]
fn kinds_without_a_rule_keep_everything_and_say_how_a_rule_is_made() {
    let run = Running::samples_without_ingester();
    let before = run.get(&["models", "-o", "name"]);
    let output = run.command(&["purge", "--output", "json"]);
    assert!(output.status.success(), "{}", text_of(&output.stderr));
    assert_eq!(text_of(&output.stdout).trim(), "[]");
    assert!(text_of(&output.stderr).contains("[kinds.X.retention]"));
    let table = run.command(&["purge"]);
    assert_eq!(text_of(&table.stdout), "", "there is nothing to put in a table");
    assert_eq!(run.get(&["models", "-o", "name"]), before);

    let named = run.command(&["purge", "--kind", "models", "--dry-run"]);
    assert_eq!(named.status.code(), Some(2));
    assert!(text_of(&named.stderr).contains("[kinds.Model.retention]"));
}
