//! Columns of unsigned numbers that earlier releases planned: their lock does not know them as unsigned, and one
//! migration makes them so.

use kindex_codegen::plan::hash;

use super::Project;

const KIND: &str = r#"
[kinds.Trial]
fields = { spec = { owner = "string", size = "uint64", total = "uint64", count = "int64" } }
"#;

fn declared(columns: &str) -> String {
    format!("{KIND}\n[kinds.Trial.columns]\ncount = \"spec.count\"\n{columns}\n")
}

/// Makes the lock one of an earlier release, which had no lines for unsigned columns.
fn forget_unsigned(project: &Project) {
    let lock = project.read("schema/crds.lock");
    let mut lines: Vec<&str> = lock.lines().filter(|line| !line.starts_with("unsigned ")).collect();
    let is_fact = |line: &&&str| {
        ["column ", "key ", "history ", "kind "]
            .iter()
            .any(|word| line.starts_with(word))
    };
    let mut facts: Vec<&str> = lines.iter().filter(is_fact).copied().collect();
    facts.sort_unstable();
    let sum = project.read("schema/migrations/migrations.sum");
    let checksum = sum
        .lines()
        .last()
        .and_then(|line| line.split_once(' '))
        .expect("a line")
        .1;
    let seal = format!("migration 1 {}", hash(checksum, &facts.join("\n")));
    for line in lines.iter_mut().filter(|line| line.starts_with("migration ")) {
        *line = &seal;
    }
    project.write("schema/crds.lock", &(lines.join("\n") + "\n"));
}

fn steps(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_prefix("-- step: ")).collect()
}

#[test]
fn columns_of_unsigned_numbers_are_widened_once() {
    let size = "size = { path = \"spec.size\", key = true }";
    let total = "total = { path = \"spec.total\", sql = \"DECIMAL(20, 0)\" }";
    let project = Project::planned(&declared(&format!("{size}\n{total}")));
    assert!(project.look().next.is_none(), "its lock knows them");
    forget_unsigned(&project);
    let next = project.plan().next.expect("a migration");
    let planned: Vec<String> = next.steps.iter().map(ToString::to_string).collect();
    assert_eq!(planned, ["change-column trial size", "fill trial size,total"]);
    assert_eq!(next.migration.compatible, 1, "earlier programs may go on writing");
    let text = |dialect: &str| project.read(&format!("schema/migrations/{}.{dialect}.sql", next.migration.stem()));
    assert_eq!(steps(&text("mysql")), ["fill trial size,total"]);
    let made_anew = [
        "drop-key trial trial_size",
        "drop-column trial size",
        "add-column trial size",
        "add-key trial trial_size",
        "fill trial size,total",
    ];
    assert_eq!(steps(&text("sqlite")), made_anew);
    assert!(text("sqlite").contains("ADD COLUMN `size` ANY;"));
    assert!(project.look().next.is_none(), "once is enough");
}

#[test]
fn a_lock_without_such_columns_leads_to_nothing() {
    let project = Project::planned(&declared("owner = \"spec.owner\""));
    assert!(!project.read("schema/crds.lock").contains("unsigned "));
    forget_unsigned(&project);
    assert!(project.look().next.is_none());
}

#[test]
fn a_widened_column_may_get_another_name_at_once() {
    let project = Project::planned(&declared("size = { path = \"spec.size\", key = true }"));
    forget_unsigned(&project);
    project.declare(&declared(
        "bytes = { path = \"spec.size\", key = true, was = \"size\" }",
    ));
    let next = project.plan().next.expect("a migration");
    let text = project.read(&format!("schema/migrations/{}.sqlite.sql", next.migration.stem()));
    let wanted = [
        "rename-column trial size bytes",
        "drop-key trial trial_size",
        "drop-column trial bytes",
        "add-column trial bytes",
        "add-key trial trial_size",
        "drop-key trial trial_size",
        "add-key trial trial_bytes",
        "fill trial bytes",
    ];
    assert_eq!(steps(&text), wanted);
}
