//! Creating a schema, finding another one, and constructing a store without a database.

use std::time::Duration;

use kindex_harness::ports::Closed;
use kindex_model::kind::{Column, ColumnType, Kind, Registry};
use kindex_store::progress::NoProgress;
use kindex_store::{Address, MetadataStorage, MigrateOptions, PoolConfig, Position, Retry, StoreError};
use kindex_tests::databases::patient;

use super::backend::Backend;
use super::widget::{PARTS, REGISTRY, WIDGET, at, widget};

scenarios!(
    preparing_twice_changes_nothing,
    another_schema_version_is_refused_with_advice,
    a_table_without_a_column_is_refused_by_name,
    another_text_with_the_same_tables_is_recorded,
    a_checksum_that_changed_is_said_once,
    what_a_program_adds_of_its_own_is_made_by_a_migration,
    a_missing_table_is_a_schema_error,
);

async fn preparing_twice_changes_nothing(backend: Backend) {
    backend.write(widget("u1", "a", 1).live(), at(0)).await;
    let recorded = backend.rows("SELECT * FROM kindex_schema").await;
    backend.store.prepare().await.expect("prepared again");
    assert_eq!(backend.rows("SELECT * FROM kindex_schema").await, recorded);
    assert!(backend.state("u1").await.is_some());
}

async fn another_schema_version_is_refused_with_advice(backend: Backend) {
    for (change, advice) in [
        ("version = version + 1", "newer program"),
        ("version = version - 2", "schema/migrations"),
    ] {
        if backend
            .rows(&format!("UPDATE kindex_schema SET {change}"))
            .await
            .is_none()
        {
            return;
        }
        let error = backend.store.prepare().await.expect_err("another version");
        assert!(matches!(error, StoreError::Schema(_)));
        assert!(error.to_string().contains(advice), "{error}");
    }
}

async fn a_table_without_a_column_is_refused_by_name(backend: Backend) {
    let wider: &'static Kind = Box::leak(Box::new(Kind {
        columns: Box::leak(
            [
                WIDGET.columns,
                &[Column {
                    name: "shade",
                    path: &["spec", "shade"],
                    ty: ColumnType::Bool,
                    own_namespace: false,
                }],
            ]
            .concat()
            .into_boxed_slice(),
        ),
        ..PARTS
    }));
    let registry = Registry {
        kinds: Box::leak(Box::new([wider])),
        ..REGISTRY
    };
    if backend.rows("SELECT 1").await.is_none() {
        return;
    }
    let store = open(&backend.address, registry);
    let error = store.prepare().await.expect_err("the table lacks a column");
    assert!(matches!(error, StoreError::Schema(_)));
    let text = error.to_string();
    assert!(text.contains("`widget`") && text.contains("shade"), "{text}");
}

fn open(address: &Address, registry: Registry) -> std::sync::Arc<dyn MetadataStorage> {
    kindex_store::open(address, registry, &patient()).expect("the address is right")
}

async fn another_text_with_the_same_tables_is_recorded(backend: Backend) {
    let read = "SELECT version, checksum FROM kindex_schema";
    let Some(before) = backend.rows(read).await else {
        return;
    };
    let longer = REGISTRY.schemas.iter().map(|(dialect, text)| {
        let longer: &'static str = format!("{text}\n-- another kind\n").leak();
        (*dialect, longer)
    });
    let registry = Registry {
        schemas: longer.collect::<Vec<_>>().leak(),
        ..REGISTRY
    };
    open(&backend.address, registry)
        .prepare()
        .await
        .expect("the same tables");
    let after = backend.rows(read).await.expect("not in memory");
    assert_eq!(after.len(), 1);
    assert_eq!(after[0][0], before[0][0]);
    assert_ne!(after[0][1], before[0][1]);
}

async fn a_checksum_that_changed_is_said_once(backend: Backend) {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(log.clone())
        .with_ansi(false)
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let change = "UPDATE kindex_schema SET checksum = 'of another text'";
    if backend.rows(change).await.is_none() {
        return;
    }
    for _ in 0..2 {
        backend.store.prepare().await.expect("the same tables");
    }
    let text = log.text();
    let count = text
        .matches("made from another schema text (checksum of another text)")
        .count();
    assert_eq!(count, 1, "{text}");
}

/// What is logged while a test runs.
#[derive(Clone, Default)]
struct Log(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        let bytes = self.0.lock().expect("not poisoned").clone();
        String::from_utf8(bytes).expect("a log is text")
    }
}

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("not poisoned").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> tracing_subscriber::fmt::MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// So that a program whose account may only read and write finds it all.
async fn what_a_program_adds_of_its_own_is_made_by_a_migration(backend: Backend) {
    let read = "SELECT version, checksum FROM kindex_schema";
    let Some(before) = backend.rows(read).await else {
        return;
    };
    for older in ["DROP TABLE kindex_changes", "DROP TABLE kindex_feed"] {
        backend.rows(older).await;
    }
    backend
        .rows("UPDATE kindex_schema SET checksum = 'of a program before'")
        .await;
    let migrated = backend.store.migrate(&MigrateOptions::default(), &NoProgress).await;
    assert!(migrated.expect("migrated").is_empty(), "no migration names them");
    assert_eq!(backend.rows(read).await, Some(before));
    assert!(backend.store.positions().await.expect("a table").is_empty());
    let changes = backend.store.changes(&WIDGET, Position(0), 1).await;
    assert_eq!(changes.expect("a table"), Some(Vec::new()));
}

async fn a_missing_table_is_a_schema_error(backend: Backend) {
    if backend.rows("DROP TABLE widget_labels").await.is_none() {
        return;
    }
    let write = [widget("u1", "a", 1).label("l", "1").live()];
    let error = backend.store.write(&WIDGET, &write, at(0)).await.expect_err("no table");
    assert!(matches!(error, StoreError::Schema(_)), "{error:?}");
    assert_eq!(error.retry(), Retry::AfterChange);
    assert!(backend.state("u1").await.is_none(), "nothing of the batch stays");
    backend.store.prepare().await.expect("prepared again");
    backend.store.write(&WIDGET, &write, at(0)).await.expect("healed");
}

#[tokio::test]
async fn a_store_is_constructed_while_its_database_is_away() {
    let pool = PoolConfig {
        acquire_timeout: Duration::from_millis(300),
        ..PoolConfig::default()
    };
    let closed = Closed::take();
    let nobody = format!("mysql://nobody@{}/none", closed.address);
    for address in [nobody.as_str(), "sqlite:/no/such/directory/k.db"] {
        let store = kindex_store::connect(address, REGISTRY, &pool).expect("nothing is opened yet");
        let error = store.prepare().await.expect_err("there is no database");
        assert_eq!(error.retry(), Retry::Later, "{error:?}");
        assert!(matches!(error, StoreError::Retryable { .. }), "{error:?}");
    }
}

/// A store looks for its schema by the word by which the generator has written it.
#[test]
fn an_emitted_registry_has_texts_for_every_database() {
    let registry = kindex_generated::registry();
    for address in ["sqlite::memory:", "mysql://kindex@127.0.0.1/kindex"] {
        let address: Address = address.parse().expect("an address");
        let word = address.dialect();
        let schema = registry.schema(word).expect("a schema");
        assert!(schema.contains("CREATE TABLE"), "{word}");
        // A migration that was planned before the dialect was there has none.
        let has_text = registry
            .migrations
            .iter()
            .map(|migration| migration.text(word).is_some());
        assert!(has_text.is_sorted(), "{word}");
    }
}
