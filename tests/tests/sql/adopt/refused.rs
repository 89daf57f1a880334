//! Databases that are not taken up: every reason is told at once, and nothing is changed.

use kindex_generated::registry;
use kindex_store::progress::NoProgress;
use kindex_store::{AdoptOptions, MigrateError, MigrateOptions, PoolConfig, StoreError};
use kindex_tests::databases::sqlite;

use super::fixture::{Reference, object};
use crate::schema::server::{Product, on_servers};

on_servers!(
    what_cannot_be_converted_is_named_with_what_to_do,
    a_text_that_is_no_object_is_found_behind_any_number_of_doubtful_ones,
    tables_of_a_later_spelling_are_named,
    without_the_flag_they_are_not_changed,
);

/// A plant and what it makes the refusal say: where, why, what to do.
const PLANTS: [(&str, [&str; 3]); 7] = [
    (
        "INSERT INTO model_labels (obj_uid, `key`, value) VALUES ('model-live', 'team', 'risk')",
        [
            "model_labels: ",
            "`team` of `model-live`, 2 times",
            "DELETE a FROM `model_labels`",
        ],
    ),
    (
        "UPDATE project SET json = NULL WHERE uid = 'project-deleted'",
        ["project.json: ", "it is NULL", "uid = 'project-deleted'"],
    ),
    (
        "UPDATE pipeline SET json = '{}' WHERE uid = 'pipeline-live'",
        ["pipeline.json: ", "missing field `metadata`", "uid = 'pipeline-live'"],
    ),
    (
        "UPDATE cluster SET uid = REPEAT('u', 65) WHERE uid = 'cluster-live'",
        ["cluster.uid: ", "1 rows are longer than 64", "CHAR_LENGTH(`uid`) > 64"],
    ),
    (
        "ALTER TABLE rayjob ADD UNIQUE KEY once (namespace, name)",
        ["rayjob, key once: ", "unique", "DROP KEY `once`"],
    ),
    (
        "ALTER TABLE sparkjob ADD COLUMN site INT NOT NULL",
        ["sparkjob.site: ", "NOT NULL and without a default", "MODIFY it"],
    ),
    (
        "SET SESSION sql_mode = ''; UPDATE revision SET update_time = '0000-00-00' WHERE uid = 'revision-live'",
        [
            "revision.update_time: ",
            "`revision-live`",
            "UPDATE `revision` SET `update_time`",
        ],
    ),
];

async fn what_cannot_be_converted_is_named_with_what_to_do(product: Product) {
    let Some(mut reference) = Reference::filled(product).await else {
        return;
    };
    for (plant, _) in PLANTS {
        reference.execute(plant).await;
    }
    let before = reference.catalog().await;
    let store = reference.store();
    let refused = store.adopt(&AdoptOptions::default(), &NoProgress).await;
    let refused = refused.expect_err("much is in the way");
    assert!(matches!(refused, MigrateError::AdoptionBlocked(_)), "{refused}");
    let text = refused.to_string();
    for (plant, words) in PLANTS {
        for word in words {
            assert!(text.contains(word), "{plant}: {word:?} is not in\n{text}");
        }
    }
    // The unreadable row of the cluster is one more: its uid is not that of its text.
    assert_eq!(
        text.lines()
            .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
            .count(),
        8,
        "{text}"
    );
    let dry = store.adoption().await.expect_err("a dry run says the same");
    assert_eq!(dry.to_string(), text);
    assert_eq!(reference.catalog().await, before);
}

/// MariaDB calls objects of 32 levels and more invalid, and a column without a check has them; they are right.
async fn a_text_that_is_no_object_is_found_behind_any_number_of_doubtful_ones(product: Product) {
    let Some(mut reference) = Reference::filled(product).await else {
        return;
    };
    reference.execute("ALTER TABLE project MODIFY json LONGTEXT").await;
    let deep = format!("{}1{}", "[".repeat(40), "]".repeat(40));
    let row = |uid: &str, text: &str| {
        let times = "'2026-03-01 10:00:00', '2026-03-01 10:00:00'";
        format!("('{uid}', 'michelangelo.api/v2', 'prod', '{uid}', '1', {times}, '{text}')")
    };
    let mut rows: Vec<String> = (0..1_100)
        .map(|number| format!("deep-{number:04}"))
        .map(|uid| {
            let text =
                format!(r#"{{"metadata":{{"name":"{uid}","uid":"{uid}","resourceVersion":"1"}},"spec":{deep}}}"#);
            row(&uid, &text)
        })
        .collect();
    rows.push(row("late", "{}"));
    let columns = "uid, group_ver, namespace, name, res_version, create_time, update_time, json";
    reference
        .execute(&format!("INSERT INTO project ({columns}) VALUES {}", rows.join(", ")))
        .await;
    let refused = reference
        .store()
        .adoption()
        .await
        .expect_err("one text is not JSON")
        .to_string();
    assert!(
        refused.contains("project.json: ") && refused.contains("`late`"),
        "{refused}"
    );
}

async fn tables_of_a_later_spelling_are_named(product: Product) {
    let Some(mut reference) = Reference::empty(product).await else {
        return;
    };
    reference
        .execute("RENAME TABLE pipelinerun_labels TO pipeline_run_labels")
        .await;
    let refused = reference.store().adopt(&AdoptOptions::default(), &NoProgress).await;
    let text = refused.expect_err("the table is there under another name").to_string();
    assert!(
        text.contains("RENAME TABLE `pipeline_run_labels` TO `pipelinerun_labels`"),
        "{text}"
    );
}

async fn without_the_flag_they_are_not_changed(product: Product) {
    let Some(mut reference) = Reference::empty(product).await else {
        return;
    };
    let kind = registry().kinds[0];
    reference.insert(kind, "live", &object(kind, "live")).await;
    let before = reference.catalog().await;
    let store = reference.store();
    let refused = store.prepare().await.expect_err("another program made the tables");
    assert!(matches!(refused, StoreError::Schema(_)), "{refused}");
    assert!(refused.to_string().contains("kindex migrate --adopt"), "{refused}");
    let refused = store.migrate(&MigrateOptions::default(), &NoProgress).await;
    let refused = refused.expect_err("another program made the tables").to_string();
    assert!(refused.contains("kindex migrate --adopt"), "{refused}");
    assert_eq!(reference.catalog().await, before, "nothing was created beside them");
}

#[tokio::test]
async fn a_sqlite_database_has_nothing_to_take_up() {
    let store = kindex_store::open(&sqlite::memory(), registry(), &PoolConfig::default()).unwrap();
    let refused = store
        .adopt(&AdoptOptions::default(), &NoProgress)
        .await
        .expect_err("refused");
    assert!(refused.to_string().contains("SQLite"), "{refused}");
}
