//! The chain of hashes: what breaks it is named with its file and the way out, by the planner and by the build.

use kindex_codegen::plan::MigrationOptions;
use kindex_generated::registry;
use sha2::{Digest, Sha256};

use super::{Project, columns};

const FIRST: &str = "schema/migrations/0001_initial.mysql.sql";
const SUM: &str = "schema/migrations/migrations.sum";

/// Two migrations.
fn project() -> Project {
    let project = Project::planned(&columns("owner = \"spec.owner\""));
    project.declare(&columns("owner = \"spec.owner\"\nsize = \"spec.size\""));
    project.plan();
    project
}

/// What a person reads where the chain is broken.
fn refusal(project: &Project) -> String {
    let refused = kindex_codegen::plan(project.root(), &MigrationOptions::default()).expect_err("the chain is broken");
    let warnings = project.build().warnings;
    assert!(!warnings.is_empty(), "the build says so as well, and goes on");
    assert!(kindex_codegen::lint(project.root()).is_err(), "the lint refuses");
    refused.to_string()
}

#[test]
fn an_edited_file_is_named_with_both_hashes() {
    let project = project();
    let text = project.read(FIRST);
    project.write(FIRST, &text.replace("owner", "keeper"));
    let text = refusal(&project);
    assert!(
        text.starts_with("schema/migrations/migrations.sum:1:1: 0001_initial.mysql.sql"),
        "{text}"
    );
    for part in [
        "expected ",
        "the file's hash is ",
        "restore the file",
        "kindex plan --rehash",
        "1 error",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

#[test]
fn after_an_edit_on_purpose_the_files_are_taken_as_they_are() {
    let project = project();
    let before = project.read("generated/src/migrations.rs");
    let text = project.read(FIRST);
    project.write(FIRST, &format!("{text}\n-- a remark\n"));
    let artifacts = kindex_codegen::rehash(project.root()).unwrap_or_else(|errors| panic!("{errors}"));
    project.sync(&artifacts);
    assert!(project.look().next.is_none());
    assert_ne!(
        project.read("generated/src/migrations.rs"),
        before,
        "programs carry the new hash"
    );
}

#[test]
fn a_missing_file_is_named() {
    let project = project();
    std::fs::remove_file(project.root().join(FIRST)).expect("removable");
    let text = refusal(&project);
    assert!(text.contains("0001_initial.mysql.sql is missing"), "{text}");
}

#[test]
fn a_file_that_nobody_planned_is_named() {
    let project = project();
    project.write("schema/migrations/0003_mine.mysql.sql", "-- step: drop-table trial\n");
    let text = refusal(&project);
    assert!(text.contains("0003_mine.mysql.sql is not in migrations.sum"), "{text}");
}

#[test]
fn lines_out_of_order_are_named() {
    let project = project();
    let mut lines: Vec<String> = project.read(SUM).lines().map(str::to_owned).collect();
    lines.swap(0, 2);
    project.write(SUM, &(lines.join("\n") + "\n"));
    let text = refusal(&project);
    assert!(text.contains("is out of order"), "{text}");
}

const FIRST_OF_SQLITE: &str = "schema/migrations/0001_initial.sqlite.sql";

/// The second migration is the first with a file of it, which has the steps from the schema of the first.
#[test]
fn a_dialect_may_come_after_the_first_migration() {
    let project = Project::planned(&columns("owner = \"spec.owner\""));
    std::fs::remove_file(project.root().join(FIRST_OF_SQLITE)).expect("removable");
    let artifacts = kindex_codegen::rehash(project.root()).unwrap_or_else(|errors| panic!("{errors}"));
    project.sync(&artifacts);
    let before = project.read(FIRST);
    project.declare(&columns("owner = \"spec.owner\"\nsize = \"spec.size\""));
    project.plan();
    assert_eq!(project.read(FIRST), before);
    let added = project.read("schema/migrations/0002_add_column_trial_size.sqlite.sql");
    assert!(added.contains("-- step: add-column trial size"), "{added}");
    assert!(!added.contains("create-table"), "{added}");
    let files = [
        "0001_initial.mysql",
        "0002_add_column_trial_size.mysql",
        "0002_add_column_trial_size.sqlite",
    ];
    let sum = project.read(SUM);
    let named = sum
        .lines()
        .filter_map(|line| line.split_once(".sql ").map(|(name, _)| name));
    assert_eq!(named.collect::<Vec<_>>(), files);
    assert!(project.look().next.is_none());
    assert!(project.build().warnings.is_empty());
    let emitted = project.read("generated/src/migrations.rs");
    let carried = files.map(|file| emitted.matches(&format!("{file}.sql")).count());
    assert_eq!(carried, [1; 3], "{emitted}");
    assert!(!emitted.contains("0001_initial.sqlite"), "{emitted}");
}

/// Programs would find a text for an older migration, and none for this one.
#[test]
fn a_dialect_that_a_migration_has_is_in_all_that_follow() {
    let project = project();
    let last = "schema/migrations/0002_add_column_trial_size.sqlite.sql";
    std::fs::remove_file(project.root().join(last)).expect("removable");
    let refused = kindex_codegen::rehash(project.root())
        .expect_err("the dialect is gone")
        .to_string();
    assert!(
        refused.contains("0002_add_column_trial_size.sqlite.sql is not in migrations.sum"),
        "{refused}"
    );
}

/// The lint reads its files alone.
#[test]
fn the_dialect_of_reference_is_in_the_first_migration() {
    let project = Project::planned(&columns("owner = \"spec.owner\""));
    std::fs::remove_file(project.root().join(FIRST)).expect("removable");
    let refused = kindex_codegen::rehash(project.root())
        .expect_err("the dialect is gone")
        .to_string();
    assert!(
        refused.contains("0001_initial.mysql.sql is not in migrations.sum"),
        "{refused}"
    );
}

#[test]
fn a_merge_conflict_in_the_sum_is_explained() {
    let project = project();
    let sum = project.read(SUM);
    project.write(SUM, &format!("<<<<<<< HEAD\n{sum}"));
    let text = refusal(&project);
    assert!(
        text.contains("a merge conflict was left among the migrations"),
        "{text}"
    );
}

/// Git merges the lines of two branches that each planned a column, and only one of the migrations is kept.
#[test]
fn a_lock_with_the_columns_of_two_branches_is_refused() {
    let project = project();
    let lock = project.read("schema/crds.lock");
    let merged = format!("{lock}column trial done spec.done BOOLEAN\n");
    project.write("schema/crds.lock", &merged);
    let text = refusal(&project);
    assert!(text.starts_with("schema/crds.lock:"), "{text}");
    assert!(text.contains("that 0002_add_column_trial_size leads to"), "{text}");
    project.write("schema/crds.lock", &lock);
    assert!(project.look().next.is_none());
}

#[test]
fn a_lost_lock_does_not_plan_everything_again() {
    let project = project();
    std::fs::remove_file(project.root().join("schema/crds.lock")).expect("removable");
    let text = refusal(&project);
    assert!(text.contains("schema/crds.lock does not have the columns"), "{text}");
}

/// The runtime is told enough to check every text that it carries.
#[test]
fn the_registry_carries_the_chain() {
    let migrations = registry().migrations;
    assert_eq!(migrations[0].name, "initial");
    let mut previous = String::new();
    for (migration, number) in migrations.iter().zip(1..) {
        assert_eq!(migration.number, number);
        for (_, text) in migration.texts {
            let digest = Sha256::new().chain_update(&previous).chain_update(text).finalize();
            previous = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        }
        assert_eq!(migration.checksum, previous);
    }
}
