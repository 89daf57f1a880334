//! A server that dies, hangs, blocks, refuses or is full: each fault is of the right class,
//! and the store heals without being opened again. The servers are MariaDBs, with a MariaDB's statements and settings.

use std::time::{Duration, Instant};

use kindex_harness::mariadb::MariaDb;
use kindex_harness::proxy::Proxy;
use kindex_harness::wait::WAIT_MAX;
use kindex_store::{Address, Cause, MetadataStorage, MySqlFields, PoolConfig, Retry, StoreError, Written};
use kindex_tests::databases::mariadb::{Flavor, available, database};
use kindex_tests::databases::{Database, patient, server_options, sqlite};
use sqlx::mysql::{MySqlConnectOptions, MySqlConnection};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Executor as _};
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};

use super::backend::Backend;
use super::widget::{REGISTRY, WIDGET, at, widget};

/// Short limits, for what must not succeed: a lock is waited for a quarter of the call's time. Long enough for a row
/// that must be written, on a machine with much to do; tables are made by [`patient`] stores.
fn impatient() -> PoolConfig {
    PoolConfig {
        acquire_timeout: Duration::from_secs(15),
        call_timeout: Duration::from_secs(12),
        ..PoolConfig::default()
    }
}

async fn open(fields: &MySqlFields, pool: &PoolConfig) -> Arc<dyn MetadataStorage> {
    let store = kindex_store::open(&Address::mysql(fields), REGISTRY, pool);
    store.expect("the address names a database")
}

async fn raw(database: &Database) -> MySqlConnection {
    let options = server_options(&database.fields());
    options.connect().await.expect("the server is up")
}

/// The cause of a retryable error, after a write that must not succeed.
async fn cause(store: &Arc<dyn MetadataStorage>, uid: &str) -> Cause {
    let batch = [widget(uid, uid, 2).live()];
    match store.write(&WIDGET, &batch, at(1)).await {
        Err(StoreError::Retryable { cause, .. }) => cause,
        other => panic!("a retryable error was expected, not {other:?}"),
    }
}

async fn write(store: &Arc<dyn MetadataStorage>, uid: &str) -> Written {
    let batch = [widget(uid, uid, 3).label("l", "1").live()];
    store.write(&WIDGET, &batch, at(2)).await.expect("written")[0]
}

/// Repeats a call as long as its error is retryable: until a server has seen the end of a connection, for one.
async fn retried(mut call: impl AsyncFnMut() -> Result<(), StoreError>) {
    let deadline = Instant::now() + WAIT_MAX;
    while let Err(error) = call().await {
        assert!(error.retry() != Retry::Never && Instant::now() < deadline, "{error}");
    }
}

async fn written_eventually(store: &Arc<dyn MetadataStorage>, uid: &str) {
    let batch = [widget(uid, uid, 3).label("l", "1").live()];
    retried(async || {
        let written = store.write(&WIDGET, &batch, at(2)).await?;
        assert_eq!(written, [Written::Inserted]);
        Ok(())
    })
    .await;
}

/// As after a failover: the address leads to another server, and open connections to one that only reads.
#[tokio::test]
async fn a_server_that_only_reads_is_left_for_the_one_behind_the_same_address() {
    if !available() {
        return;
    }
    let servers = [MariaDb::start(&[]), MariaDb::start(&[])];
    let address = Proxy::start(servers[0].port);
    let fields = |port, user: &str| MySqlFields {
        host: "127.0.0.1".to_owned(),
        port,
        user: user.to_owned(),
        database: "k".to_owned(),
        ..MySqlFields::default()
    };
    let mut former = None;
    for server in servers.iter().rev() {
        let store = open(&fields(server.port, "root"), &patient()).await;
        store.prepare().await.expect("prepared");
        let options = MySqlConnectOptions::new().host("127.0.0.1").port(server.port);
        let mut root = options.username("root").connect().await.expect("the server is up");
        root.execute("CREATE USER app@'127.0.0.1'").await.expect("created");
        let grant = "GRANT SELECT, INSERT, UPDATE, DELETE ON k.* TO app@'127.0.0.1'";
        root.execute(grant).await.expect("granted");
        former = Some(root);
    }
    let store = open(&fields(address.port, "app"), &impatient()).await;
    let fill = (0..5).map(|_| store.count(&WIDGET));
    futures::future::join_all(fill).await;
    assert_eq!(write(&store, "u1").await, Written::Inserted);

    let mut former = former.expect("the first server is the last");
    former.execute("SET GLOBAL read_only = ON").await.expect("set");
    address.lead_to(servers[1].port);
    assert_eq!(cause(&store, "u2").await, Cause::ReadOnly);
    assert_eq!(write(&store, "u2").await, Written::Inserted, "on the other server");
}

#[tokio::test]
async fn a_killed_server_is_retryable_and_its_return_heals() {
    if !available() {
        return;
    }
    let mut server = MariaDb::start(&[]);
    let fields = MySqlFields {
        host: "127.0.0.1".to_owned(),
        port: server.port,
        database: "k".to_owned(),
        ..MySqlFields::default()
    };
    open(&fields, &patient()).await.prepare().await.expect("prepared");
    let store = open(&fields, &impatient()).await;
    // Several connections, all of which will be stale.
    let fill = (0..5).map(|_| store.count(&WIDGET));
    futures::future::join_all(fill).await;
    assert_eq!(write(&store, "u1").await, Written::Inserted);

    server.kill();
    assert_eq!(cause(&store, "u2").await, Cause::Connection);
    server.resume();
    assert_eq!(write(&store, "u2").await, Written::Inserted);

    // Killed and back between two calls: nobody notices.
    let fill = (0..5).map(|_| store.count(&WIDGET));
    futures::future::join_all(fill).await;
    server.kill();
    server.resume();
    assert_eq!(write(&store, "u1").await, Written::Unchanged);
    assert_eq!(store.count(&WIDGET).await.expect("counted").live, 2);
}

/// Leads connections to a server on this machine, except for the first, which it keeps and never answers.
async fn mute_once(server_port: u16) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let port = listener.local_addr().expect("it is bound").port();
    tokio::spawn(async move {
        let (_never_answered, _) = listener.accept().await.expect("the first client");
        loop {
            let (mut client, _) = listener.accept().await.expect("a client");
            let mut server = TcpStream::connect(("127.0.0.1", server_port)).await.expect("it runs");
            tokio::spawn(async move { tokio::io::copy_bidirectional(&mut client, &mut server).await });
        }
    });
    port
}

/// As if a call that has waited for a server failed although the server is back by then.
#[tokio::test]
async fn a_call_that_waited_for_a_server_goes_on_once_it_is_back() {
    let Some(database) = database(Flavor::Plain) else {
        return;
    };
    let fields = database.fields();
    open(&fields, &patient()).await.prepare().await.expect("prepared");
    // The pool waits for the one connection that it is opening, and gives up.
    let pool = PoolConfig {
        acquire_timeout: Duration::from_secs(12),
        ..patient()
    };
    let port = mute_once(fields.port).await;
    let store = open(&MySqlFields { port, ..fields }, &pool).await;
    assert_eq!(store.count(&WIDGET).await.expect("counted").live, 0);
}

#[tokio::test]
async fn a_server_that_hangs_is_an_error_in_time() {
    if !available() {
        return;
    }
    let server = MariaDb::start(&[]);
    let fields = MySqlFields {
        host: "127.0.0.1".to_owned(),
        port: server.port,
        database: "k".to_owned(),
        ..MySqlFields::default()
    };
    let pool = PoolConfig {
        acquire_timeout: Duration::from_secs(3),
        call_timeout: Duration::from_secs(3),
        ..PoolConfig::default()
    };
    // Creating all tables may take longer than one call may: that is not what hangs here.
    let lasting = open(&fields, &patient()).await;
    lasting.prepare().await.expect("prepared");
    assert_eq!(write(&lasting, "u0").await, Written::Inserted);
    let store = open(&fields, &pool).await;
    retried(async || store.count(&WIDGET).await.map(drop)).await;
    server.pause(true);
    let begun = Instant::now();
    // The open connection gives no answer, or is still on its way back to the pool; a new one is never opened.
    for _ in 0..3 {
        assert!([Cause::Timeout, Cause::PoolTimeout].contains(&cause(&store, "u1").await));
    }
    assert!(begun.elapsed() < WAIT_MAX, "{:?}", begun.elapsed());
    server.pause(false);
    // It first resets connections that gave up waiting; errors stay retryable until one succeeds.
    let batch = [widget("u1", "u1", 3).live()];
    retried(async || store.write(&WIDGET, &batch, at(2)).await.map(drop)).await;
    assert_eq!(lasting.count(&WIDGET).await.expect("counted").live, 2);
}

#[tokio::test]
async fn a_lock_held_by_another_is_waited_for_and_then_retryable() {
    let Some(database) = database(Flavor::Plain) else {
        return;
    };
    open(&database.fields(), &patient())
        .await
        .prepare()
        .await
        .expect("prepared");
    let store = open(&database.fields(), &impatient()).await;
    write(&store, "u1").await;
    let mut other = raw(&database).await;
    other.execute("START TRANSACTION").await.expect("begun");
    let lock = "SELECT uid FROM widget WHERE uid = 'u1' FOR UPDATE";
    other.execute(lock).await.expect("locked");
    let batch = [widget("u1", "u1", 9).live()];
    match store.write(&WIDGET, &batch, at(3)).await {
        Err(StoreError::Retryable { cause, .. }) => assert_eq!(cause, Cause::LockWait),
        other => panic!("a retryable error was expected, not {other:?}"),
    }
    other.execute("ROLLBACK").await.expect("ended");
    store.write(&WIDGET, &batch, at(3)).await.expect("written");
}

#[tokio::test]
async fn a_deadlock_is_repeated_inside() {
    let Some(database) = database(Flavor::Plain) else {
        return;
    };
    let store = open(&database.fields(), &patient()).await;
    store.prepare().await.expect("prepared");
    for uid in ["a1", "b1", "x1", "x2", "x3"] {
        write(&store, uid).await;
    }
    // The other transaction has changed more rows, so that the store's is the victim.
    let mut other = raw(&database).await;
    other.execute("START TRANSACTION").await.expect("begun");
    let heavy = "UPDATE widget SET `rank` = 1 WHERE uid IN ('b1', 'x1', 'x2', 'x3')";
    other.execute(heavy).await.expect("changed");
    let writer = {
        let store = store.clone();
        tokio::spawn(async move {
            let batch = [widget("a1", "a1", 9).live(), widget("b1", "b1", 9).live()];
            store.write(&WIDGET, &batch, at(3)).await
        })
    };
    // Once the store waits for `b1` it holds `a1`.
    // Others wait for locks of their own on the same server.
    let waiting = format!(
        "SELECT COUNT(*) FROM information_schema.innodb_trx AS t \
         JOIN information_schema.processlist AS p ON p.id = t.trx_mysql_thread_id \
         WHERE p.db = '{}' AND t.trx_state = 'LOCK WAIT' AND t.trx_query LIKE '%FOR UPDATE%'",
        database.name
    );
    let options = server_options(&database.fields());
    let deadline = Instant::now() + WAIT_MAX;
    loop {
        let rows = super::backend::mysql_rows(&options, &waiting).await;
        if rows[0][0].as_deref() != Some("0") {
            break;
        }
        assert!(Instant::now() < deadline, "the writer never waited");
        // The server renews this table only when nobody has read it for a tenth of a second.
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
    let crossing = "UPDATE widget SET `rank` = 1 WHERE uid = 'a1'";
    other.execute(crossing).await.expect("the other one wins");
    other.execute("COMMIT").await.expect("committed");
    let written = writer
        .await
        .expect("the task ends")
        .expect("no error reaches the caller");
    assert_eq!(written, [Written::Updated; 2]);
}

#[tokio::test]
async fn a_password_may_hold_any_character_and_a_limit_or_a_lock_of_the_server_is_retryable() {
    const PASSWORD: &str = "p@:/?#%'\"\\ é`;&=";
    if !available() {
        return;
    }
    let server = MariaDb::start(&[]);
    let mut fields = MySqlFields {
        host: "127.0.0.1".to_owned(),
        port: server.port,
        database: "k".to_owned(),
        ..MySqlFields::default()
    };
    let admin = open(&fields, &patient()).await;
    admin.prepare().await.expect("prepared");
    let root = server_options(&fields);
    let quoted = PASSWORD.replace('\\', "\\\\").replace('\'', "''");
    for statement in [
        format!("CREATE USER app@'127.0.0.1' IDENTIFIED BY '{quoted}' WITH MAX_USER_CONNECTIONS 1"),
        "GRANT SELECT, INSERT, UPDATE, DELETE ON k.* TO app@'127.0.0.1'".to_owned(),
    ] {
        let mut connection = root.connect().await.expect("the server is up");
        connection.execute(AssertSqlSafe(statement)).await.expect("granted");
    }
    fields.user = "app".to_owned();
    fields.password = PASSWORD.to_owned();
    let pool = PoolConfig {
        max_open: 1,
        ..impatient()
    };
    let app = open(&fields, &pool).await;
    // The only connection that the account may have is another one for as long as the server takes
    // to see the first one's end. An account without CREATE finds all tables.
    retried(async || app.prepare().await).await;
    written_eventually(&app, "u1").await;

    let mut connection = root.connect().await.expect("the server is up");
    connection.execute("SET GLOBAL read_only = ON").await.expect("set");
    assert_eq!(cause(&app, "u2").await, Cause::ReadOnly);
    connection.execute("SET GLOBAL read_only = OFF").await.expect("set");
    written_eventually(&app, "u2").await;

    let crowded = open(&fields, &pool).await;
    assert_eq!(cause(&crowded, "u3").await, Cause::TooManyConnections);
    fields.password = "wrong".to_owned();
    assert_eq!(cause(&open(&fields, &pool).await, "u3").await, Cause::Access);
    app.close().await;
    assert_eq!(cause(&app, "u3").await, Cause::Closed);
    written_eventually(&crowded, "u3").await;
}

#[tokio::test]
async fn data_that_a_column_cannot_hold_is_refused_as_a_whole_batch() {
    let Some(backend) = Backend::mariadb(Flavor::Plain).await else {
        return;
    };
    let good = widget("u1", "a", 1).live();
    let long = widget("u2", "b", 1).label("l", &"v".repeat(64)).live();
    let error = backend.store.write(&WIDGET, &[good.clone(), long], at(0)).await;
    let error = error.expect_err("the label is too long");
    assert!(matches!(error, StoreError::Refused { .. }), "{error:?}");
    assert_eq!(error.retry(), Retry::Never);
    assert!(backend.state("u1").await.is_none(), "nothing of the batch was written");
    assert_eq!(backend.write(good, at(0)).await, Written::Inserted);
}

#[tokio::test]
async fn an_object_longer_than_a_packet_is_refused_by_the_store_itself() {
    if !available() {
        return;
    }
    let server = MariaDb::start(&["--max-allowed-packet=1M"]);
    let fields = MySqlFields {
        host: "127.0.0.1".to_owned(),
        port: server.port,
        database: "k".to_owned(),
        ..MySqlFields::default()
    };
    let store = open(&fields, &patient()).await;
    store.prepare().await.expect("prepared");
    let sized = |uid: &str, bytes: usize| widget(uid, uid, 1).annotation("n", &"x".repeat(bytes)).live();
    let error = store.write(&WIDGET, &[sized("u1", 600_000)], at(0)).await;
    let error = error.expect_err("text and message together are longer than a packet");
    assert!(matches!(error, StoreError::Refused { .. }), "{error:?}");
    assert!(error.to_string().contains("max_allowed_packet"), "{error}");
    // Several that fit one by one go in several statements of one transaction.
    let batch: Vec<_> = (0..5).map(|index| sized(&format!("v{index}"), 300_000)).collect();
    store.write(&WIDGET, &batch, at(0)).await.expect("written");
    assert_eq!(store.count(&WIDGET).await.expect("counted").live, 5);
}

#[tokio::test]
async fn a_sqlite_file_locked_by_another_process_is_retryable() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("k.db");
    let address = sqlite::file(path.clone());
    let store = kindex_store::open(&address, REGISTRY, &impatient()).expect("an address");
    store.prepare().await.expect("prepared");
    let mut other = SqliteConnectOptions::new()
        .filename(&path)
        .connect()
        .await
        .expect("opened");
    other.execute("BEGIN IMMEDIATE").await.expect("locked");
    assert_eq!(cause(&store, "u1").await, Cause::LockWait);
    assert_eq!(store.count(&WIDGET).await.expect("readers go on").live, 0);
    other.execute("ROLLBACK").await.expect("ended");
    assert_eq!(write(&store, "u1").await, Written::Inserted);
}
