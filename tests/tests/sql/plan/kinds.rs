//! One case for each sort of change: the steps with both texts as a snapshot.

use super::{FIELDS, Project, columns};

/// Plans from one declaration to the other and holds both files against the snapshot.
fn check(name: &str, before: &str, after: &str) {
    let project = Project::planned(before);
    project.declare(after);
    let next = project.plan().next.expect("something changed");
    let [mysql, sqlite] = ["mysql", "sqlite"].map(|dialect| {
        let path = format!("schema/migrations/{}.{dialect}.sql", next.migration.stem());
        format!("==> {path}\n{}", project.read(&path))
    });
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, format!("{mysql}\n{sqlite}")));
    assert!(project.look().next.is_none(), "a migration leads to what was declared");
}

#[test]
fn a_column_is_added_behind_the_one_before_it_and_filled() {
    check(
        "add_a_column",
        &columns("owner = \"spec.owner\""),
        &columns("size = \"spec.size\"\nowner = \"spec.owner\"\ndone = { path = \"spec.done\", key = true }"),
    );
}

#[test]
fn a_column_is_dropped_after_its_key() {
    check(
        "drop_a_column",
        &columns("owner = { path = \"spec.owner\", key = true }\nsize = \"spec.size\""),
        &columns("size = \"spec.size\""),
    );
}

#[test]
fn a_column_is_renamed_with_its_key_where_the_declaration_says_so() {
    check(
        "rename_a_column",
        &columns("owner = { path = \"spec.owner\", key = true }"),
        &columns("responsible = { path = \"spec.owner\", key = true, was = \"owner\" }"),
    );
}

#[test]
fn the_parts_of_a_column_are_renamed_together() {
    check(
        "rename_parts",
        &columns("target = { path = \"spec.target\", key = true }"),
        &columns("aim = { path = \"spec.target\", key = true, was = \"target\" }"),
    );
}

#[test]
fn a_type_that_widens_changes_around_its_values() {
    check(
        "widen_a_type",
        &columns("owner = { path = \"spec.owner\", key = true }\nsize = { path = \"spec.size\", sql = \"INT\" }"),
        &columns(
            "owner = { path = \"spec.owner\", key = true, sql = \"VARCHAR(512)\" }\n\
             size = { path = \"spec.size\", sql = \"BIGINT\" }",
        ),
    );
}

#[test]
fn a_column_of_another_type_is_made_anew_with_its_key() {
    check(
        "another_type",
        &columns("owner = { path = \"spec.owner\", key = true }"),
        &columns("owner = { path = \"spec.size\", key = true }"),
    );
}

#[test]
fn a_key_alone_is_added() {
    check(
        "add_a_key",
        &columns("owner = \"spec.owner\""),
        &columns("owner = { path = \"spec.owner\", key = true }"),
    );
}

#[test]
fn a_key_alone_is_dropped() {
    check(
        "drop_a_key",
        &columns("owner = { path = \"spec.owner\", key = true }"),
        &columns("owner = \"spec.owner\""),
    );
}

#[test]
fn a_column_that_is_read_from_elsewhere_is_filled() {
    check(
        "another_path",
        &columns("owner = \"spec.owner\""),
        &columns("owner = \"spec.holder\""),
    );
}

#[test]
fn a_kind_comes_with_all_its_tables() {
    let other = "[kinds.Other]\nhistory = true\nfields = { spec = { size = \"int64\" } }\n\
                 columns = { size = { path = \"spec.size\", key = true } }\n";
    check("add_a_kind", FIELDS, &format!("{FIELDS}\n{other}"));
}

#[test]
fn a_kind_goes_with_all_its_tables() {
    let other = "[kinds.Other]\nhistory = true\nfields = { spec = { size = \"int64\" } }\n";
    check("drop_a_kind", &format!("{FIELDS}\n{other}"), FIELDS);
}

#[test]
fn a_history_is_switched_on() {
    check("history_on", FIELDS, &format!("{FIELDS}\nhistory = true\n"));
}

#[test]
fn a_history_is_switched_off() {
    check("history_off", &format!("{FIELDS}\nhistory = true\n"), FIELDS);
}

#[test]
fn many_changes_at_once_are_in_an_order_that_works() {
    check(
        "many_changes",
        &columns(
            "owner = { path = \"spec.owner\", key = true }\nsize = { path = \"spec.size\", key = true, sql = \"INT\" }\n\
             old = \"spec.holder\"",
        ),
        &columns(
            "target = { path = \"spec.target\", key = true }\n\
             old = { path = \"spec.owner\", key = true, was = \"owner\" }\nsize = { path = \"spec.size\", key = true }",
        ),
    );
}

#[test]
fn without_its_old_name_a_column_is_another_one() {
    let project = Project::planned(&columns("owner = \"spec.owner\""));
    project.declare(&columns("responsible = \"spec.owner\""));
    let next = project.look().next.expect("something changed");
    let steps: Vec<String> = next.steps.iter().map(ToString::to_string).collect();
    assert_eq!(
        steps,
        [
            "drop-column trial owner",
            "add-column trial responsible",
            "fill trial responsible"
        ]
    );
}

#[test]
fn an_old_name_that_no_migration_made_is_doubted() {
    let project = Project::planned(&columns("owner = \"spec.owner\""));
    project.declare(&columns("responsible = { path = \"spec.owner\", was = \"ovner\" }"));
    let warnings = project.look().warnings;
    let [warning] = warnings.as_slice() else {
        panic!("one warning: {warnings:?}");
    };
    assert!(warning.starts_with("crds.toml:"), "{warning}");
    assert!(warning.contains("did you mean \"owner\"?"), "{warning}");
}

#[test]
fn a_rename_that_was_planned_is_not_planned_again() {
    let project = Project::planned(&columns("owner = \"spec.owner\""));
    project.declare(&columns("responsible = { path = \"spec.owner\", was = \"owner\" }"));
    project.plan();
    let planned = project.look();
    assert!(planned.next.is_none() && planned.warnings.is_empty(), "{planned:?}");
}

#[test]
fn a_build_reminds_and_plans_nothing() {
    let project = Project::planned(&columns("owner = \"spec.owner\""));
    project.declare(&columns("owner = \"spec.owner\"\nsize = \"spec.size\""));
    let [before, after] = [(); 2].map(|()| {
        let warnings = project.build().warnings;
        assert!(
            warnings
                .iter()
                .any(|warning| warning.contains("ahead of schema/migrations by 2 steps"))
        );
        project.read("schema/crds.lock")
    });
    assert_eq!(before, after);
    assert!(!before.contains("column trial size"), "{before}");
    project.plan();
    assert_eq!(project.build().warnings, Vec::<String>::new());
}

#[test]
fn programs_that_do_not_know_an_addition_may_go_on_writing() {
    let project = Project::planned(&columns("owner = \"spec.owner\""));
    let mut compatible = Vec::new();
    for text in [
        "owner = \"spec.owner\"\nsize = \"spec.size\"",
        "owner = \"spec.owner\"\nsize = { path = \"spec.size\", key = true }",
        "owner = \"spec.holder\"\nsize = { path = \"spec.size\", key = true }",
        "owner = \"spec.holder\"\nsize = \"spec.size\"",
        "owner = \"spec.holder\"",
    ] {
        project.declare(&columns(text));
        compatible.push(project.plan().next.expect("something changed").migration.compatible);
    }
    assert_eq!(compatible, [1, 1, 4, 4, 6]);
}
