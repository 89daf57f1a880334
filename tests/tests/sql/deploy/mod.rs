//! What `deploy/` holds. To create the schema on a server: the script as a person runs it, and the
//! Job's and the init container's commands as they stand in their manifests, on MariaDB and MySQL.
//! The chart, as helm renders it and as a kube-apiserver takes it; the recipe of the image.

mod manifest;

mod chart;

mod chart_in_a_cluster;
mod chart_migrator;
mod chart_references;
mod chart_retention;
mod chart_runs;
mod chart_values;
mod container;
mod schema_files;
mod script;

use kindex_harness::mysql::MySql;
use kindex_harness::require::{program, require};
use kindex_tests::databases::mariadb::{self, Flavor};
use kindex_tests::databases::mysql;
use kindex_tests::databases::{Database, Shared};
use sqlx::mysql::{MySqlConnectOptions, MySqlConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Executor as _};
use std::path::PathBuf;
use std::process::{Command, Output};

use crate::schema::server::Product;

/// A file of the checkout.
fn path(name: &str) -> PathBuf {
    let package = std::env::var("CARGO_MANIFEST_DIR").expect("cargo runs the tests");
    PathBuf::from(package)
        .parent()
        .expect("a member of the workspace")
        .join(name)
}

fn read(name: &str) -> String {
    std::fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// A password with everything that needs care in an option file.
const PASSWORD: &str = "p\"a\\s#s w';";

/// A server with an account that has a password.
struct Server {
    database: Database,
    connection: MySqlConnection,
}

impl Server {
    /// `None` where the server is absent and not required.
    async fn of(product: Product) -> Option<Self> {
        if !client_is_there() {
            return None;
        }
        let database = match product {
            Product::MariaDb => mariadb::database(Flavor::Plain)?,
            Product::MySql => speaking_tls()?,
        };
        let options = MySqlConnectOptions::new().host("127.0.0.1").username("root");
        let mut connection = options.port(database.server.port).connect().await.expect("it answers");
        let account = format!("'{} x'@'127.0.0.1'", database.name);
        let password = PASSWORD.replace('\\', "\\\\").replace('\'', "''");
        for statement in [
            format!("CREATE USER {account} IDENTIFIED BY '{password}'"),
            format!("GRANT ALL ON *.* TO {account}"),
        ] {
            let done = connection.execute(AssertSqlSafe(statement)).await;
            done.expect("an account");
        }
        Some(Self { database, connection })
    }

    fn port(&self) -> String {
        self.database.server.port.to_string()
    }

    /// The name of the account.
    fn user(&self) -> String {
        format!("{} x", self.database.name)
    }

    /// Asserts that a database has the tables of the schema file, and has them from a program of ours.
    async fn expect_schema(&mut self, database: &str) {
        let found = crate::schema::server::found(&mut self.connection, database).await;
        let reported = |ty| kindex_codegen::dialect::REFERENCE.catalog_type(ty);
        let model = crate::schema::shipped_model();
        crate::schema::catalog::assert_same(&found, &crate::schema::catalog::wanted(&model, reported));
    }
}

/// Whether the script finds a client; it comes with MariaDB.
fn client_is_there() -> bool {
    let clients = ["mariadb", "mysql"];
    require("mariadb", clients.into_iter().any(|client| program(client).is_some()))
}

/// MySQL as it is outside of tests: its accounts' passwords are only taken over TLS.
fn speaking_tls() -> Option<Database> {
    static SHARED: Shared = Shared::new();
    let options = ["--auto-generate-certs=ON", "--innodb-flush-log-at-trx-commit=0"];
    mysql::available().then(|| Database::on(&SHARED, || MySql::start(&options).into()))
}

/// A process with an environment of its own.
fn run(program: &str, args: &[String], environment: &[(String, String)]) -> Output {
    let mut command = Command::new(program);
    command
        .args(args)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin");
    let environment = environment.iter().map(|(name, value)| (name, value));
    command.envs(environment).output().expect("bash runs")
}

fn stderr_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
