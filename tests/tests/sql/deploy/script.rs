//! `deploy/schema/init_db.sh` as a person runs it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Output;

use kindex_harness::ports::Closed;
use sqlx::{AssertSqlSafe, Executor as _};
use tempfile::TempDir;

use super::{PASSWORD, Server, client_is_there, path, run, stderr_of};
use crate::schema::server::{Product, on_servers};

on_servers!(
    a_server_gets_the_tables_and_keeps_what_it_has,
    another_name_for_the_database,
    a_password_from_a_file,
    a_wrong_password_is_reported_at_once,
    tables_of_another_program_are_left_alone,
);

fn init(args: &[&str], environment: &[(&str, &str)]) -> Output {
    let script = path("deploy/schema/init_db.sh").display().to_string();
    let args: Vec<String> = [script.as_str()]
        .iter()
        .chain(args)
        .map(|&arg| arg.to_owned())
        .collect();
    let environment = environment
        .iter()
        .map(|&(name, value)| (name.to_owned(), value.to_owned()));
    run("bash", &args, &environment.collect::<Vec<_>>())
}

async fn a_server_gets_the_tables_and_keeps_what_it_has(product: Product) {
    let Some(mut server) = Server::of(product).await else {
        return;
    };
    let (port, user) = (server.port(), server.user());
    let variables = [
        ("MYSQL_PORT", port.as_str()),
        ("MYSQL_USER", &user),
        ("MYSQL_PASSWORD", PASSWORD),
    ];
    for _ in 0..2 {
        let output = init(&[], &variables);
        assert!(output.status.success(), "{}", stderr_of(&output));
        assert!(
            stderr_of(&output).contains("has its 54 tables"),
            "{}",
            stderr_of(&output)
        );
    }
    server.expect_schema("michelangelo").await;
}

async fn another_name_for_the_database(product: Product) {
    let Some(mut server) = Server::of(product).await else {
        return;
    };
    let (port, user, name) = (server.port(), server.user(), server.database.name.clone());
    let flags = [
        "--host",
        "127.0.0.1",
        "--port",
        &port,
        "--user",
        &user,
        "--database",
        &name,
    ];
    let output = init(&flags, &[("MYSQL_PASSWORD", PASSWORD)]);
    assert!(output.status.success(), "{}", stderr_of(&output));
    server.expect_schema(&name).await;
}

async fn a_password_from_a_file(product: Product) {
    let Some(server) = Server::of(product).await else {
        return;
    };
    let (port, user, name) = (server.port(), server.user(), server.database.name.clone());
    let directory = TempDir::new().expect("a temporary directory");
    let file = directory.path().join("password");
    fs::write(&file, format!("{PASSWORD}\n")).expect("writable");
    let file = file.display().to_string();
    let flags = [
        "--port",
        &port,
        "--user",
        &user,
        "--password-file",
        &file,
        "--database",
        &name,
    ];
    let output = init(&flags, &[]);
    assert!(output.status.success(), "{}", stderr_of(&output));
}

async fn a_wrong_password_is_reported_at_once(product: Product) {
    let Some(server) = Server::of(product).await else {
        return;
    };
    let flags = ["--port", &server.port(), "--user", &server.user(), "--wait", "3600"];
    let output = init(&flags, &[("MYSQL_PASSWORD", "wrong")]);
    assert_eq!(output.status.code(), Some(1));
    let text = stderr_of(&output);
    assert!(text.contains("ERROR 1045") && text.contains("hint:"), "{text}");
}

async fn tables_of_another_program_are_left_alone(product: Product) {
    let Some(mut server) = Server::of(product).await else {
        return;
    };
    let name = server.database.name.clone();
    kindex_harness::reference::create_database(&mut server.connection, &name).await;
    let dropped = AssertSqlSafe("DROP TABLE project_labels".to_owned());
    server
        .connection
        .execute(dropped)
        .await
        .expect("one that would be created");
    let (port, user) = (server.port(), server.user());
    let flags = ["--port", &port, "--user", &user, "--database", &name];
    let output = init(&flags, &[("MYSQL_PASSWORD", PASSWORD)]);
    assert_eq!(output.status.code(), Some(1));
    let text = stderr_of(&output);
    assert!(
        text.contains("pipelinerun") && text.contains("kindex migrate --adopt"),
        "{text}"
    );
    let tables = crate::schema::server::found(&mut server.connection, &name).await;
    assert_eq!(tables.len(), 38, "nothing was created");
}

#[test]
fn what_is_typed_wrong_exits_with_2() {
    for wrong in [
        ["--password=secret"].as_slice(),
        &["--host"],
        &["--port", "x"],
        &["--database", "a`b"],
        &["--wait", "long"],
        &["--frobnicate"],
    ] {
        let output = init(wrong, &[]);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}: {}", stderr_of(&output));
        assert!(stderr_of(&output).contains("--help"), "{}", stderr_of(&output));
    }
    let help = init(&["--help"], &[]);
    assert!(help.status.success() && String::from_utf8_lossy(&help.stdout).contains("Examples:"));
}

#[test]
fn a_missing_server_is_waited_for_and_then_reported() {
    if !client_is_there() {
        return;
    }
    let closed = Closed::take();
    // Longer than a first attempt takes on a busy machine: it is told what is waited for after that.
    let output = init(&["--port", &closed.address.port().to_string(), "--wait", "10"], &[]);
    assert_eq!(output.status.code(), Some(1));
    let text = stderr_of(&output);
    assert!(
        text.contains(&format!("waiting for {}", closed.address)) && text.contains("--wait 60"),
        "{text}"
    );
}

/// A client that tells how it was called, and who could have read the password.
#[test]
fn the_password_stands_on_no_command_line() {
    let directory = TempDir::new().expect("a temporary directory");
    let client = directory.path().join("mariadb");
    let reported = directory.path().join("told");
    let spy = format!(
        "#!/bin/bash\nprintf '%s\\n' \"$*\" >>{reported}\nfor word; do case $word in --defaults-file=*) \
         stat -c %a \"${{word#*=}}\" >>{reported} ;; esac; done\necho 'ERROR 1045' >&2\nexit 1\n",
        reported = reported.display()
    );
    fs::write(&client, spy).expect("writable");
    fs::set_permissions(&client, fs::Permissions::from_mode(0o755)).expect("ours");
    let search = format!("{}:/usr/bin:/bin", directory.path().display());
    let output = init(
        &["--user", "kindex"],
        &[("PATH", &search), ("MYSQL_PASSWORD", PASSWORD)],
    );
    assert_eq!(output.status.code(), Some(1), "{}", stderr_of(&output));
    let reported = fs::read_to_string(reported).expect("the client was called");
    assert!(
        reported.contains("--defaults-file=") && reported.contains("\n600\n"),
        "{reported}"
    );
    assert!(!reported.contains(PASSWORD), "{reported}");
}
