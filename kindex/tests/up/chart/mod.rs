//! A release of the chart on a real kube-apiserver, installed by helm, with a MariaDB beside it. Each container runs as
//! its manifest says, with the rights of its own account, and does its whole work. What the accounts ask for is exactly
//! what the emitted roles grant.

mod pod;
mod roles;

mod deletions;
mod graph;
mod holders;
mod runs;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use kindex_harness::controlplane::ControlPlane;
use kindex_harness::mariadb::MariaDb;
use kindex_harness::require::require;
use kindex_harness::wait::wait_until;
use kindex_harness::witness::Witness;
use kindex_harness::{helm, kubectl};
use kindex_model::kind::Kind;
use serde_json::{Value, json};
use sqlx::mysql::MySqlConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Row as _};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use pod::{Container, Pod, Volumes, tls};
use roles::granted;

use super::process::{kubectl_is_there, wait_for};

/// Where the samples are.
const SAMPLES: &str = "ingester-test";
/// With what care is needed for in files and on command lines.
const PASSWORD: &str = "p\"a ss'$";
/// As the chart's notes have it.
const STATUS: [&str; 6] = [
    "status",
    "--wait",
    "--timeout",
    "240",
    "--config",
    "/etc/kindex/config/config.yaml",
];

struct Release {
    plane: ControlPlane,
    database: MariaDb,
    runtime: Runtime,
    directory: TempDir,
    manifests: Vec<Value>,
}

fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().expect("a member of the workspace").to_owned()
}

fn shown(path: &Path) -> &str {
    path.to_str().expect("a path of letters")
}

impl Release {
    /// Everything but the pods; nothing where a part is absent and not required.
    fn install() -> Option<Self> {
        let servers = require("controlplane", ControlPlane::installed()) && require("mariadb", MariaDb::installed());
        if !(servers && require("helm", helm::installed()) && kubectl_is_there()) {
            return None;
        }
        let mut release = Self {
            plane: ControlPlane::start(),
            database: MariaDb::start_encrypted(&tls("first.crt"), &tls("first.key")),
            runtime: Runtime::new().expect("a runtime"),
            directory: tempfile::tempdir().expect("a temporary directory"),
            manifests: Vec::new(),
        };
        for statement in [
            format!(
                "CREATE USER kindex@'127.0.0.1' IDENTIFIED BY '{}'",
                PASSWORD.replace('\'', "''")
            ),
            "GRANT ALL ON michelangelo.* TO kindex@'127.0.0.1'".to_owned(),
        ] {
            release.sql(&statement);
        }
        release.prepare_cluster();
        let port = format!("--set=config.mysql.port={}", release.database.port);
        let values = [
            "--set=config.mysql.host=127.0.0.1",
            &port,
            "--set=config.metadataStorage.deletionDelay=0s",
            "--set=config.ingester.requeuePeriod=1s",
            "--set=ingester.leaseSeconds=3",
            "--set=api.enabled=true",
            "--set=api.tls.secretName=kindex-tls",
            "--set=database.tls.mode=verify-identity",
            "--set=database.tls.caSecret=kindex-mysql",
            "--set=schema.bundledSql.enabled=true",
            "--set=retention.enabled=true",
            "--set=deletion.enabled=true",
            "--set=deletion.options.blockedAfterSeconds=1",
            "--set=deletion.options.leaseSeconds=3",
        ];
        release.manifests = helm::template(&values).expect("rendered");
        let chart = helm::chart();
        let mut args = vec!["install", helm::RELEASE, shown(&chart), "--no-hooks"];
        args.extend([
            "--namespace",
            helm::RELEASE,
            "--kubeconfig",
            shown(release.plane.kubeconfig()),
        ]);
        args.extend(values);
        let installed = helm::helm(&args);
        assert!(
            installed.status.success(),
            "{}",
            String::from_utf8_lossy(&installed.stderr)
        );
        release.wait_for_rights();
        Some(release)
    }

    /// Rights are granted a moment after they are written down.
    fn wait_for_rights(&self) {
        let models = "models.michelangelo.api";
        for (who, right) in [
            (
                "system:serviceaccount:kindex:kindex-ingester",
                ["list", models, "--namespace", SAMPLES],
            ),
            (
                "system:serviceaccount:kindex:kindex-ingester",
                ["create", "leases", "--namespace", helm::RELEASE],
            ),
            (
                "system:serviceaccount:kindex:kindex-api",
                ["list", models, "--namespace", SAMPLES],
            ),
            (
                "system:serviceaccount:kindex:kindex-deletion",
                ["list", models, "--namespace", SAMPLES],
            ),
            (
                "system:serviceaccount:kindex:kindex-deletion",
                ["create", "leases", "--namespace", helm::RELEASE],
            ),
            ("alice", ["list", models, "--namespace", SAMPLES]),
            ("alice", ["create", models, "--namespace", SAMPLES]),
        ] {
            wait_until(&format!("{right:?} of {who}"), || {
                let mut command = kubectl::command("/nonexistent");
                command.args([
                    "auth",
                    "can-i",
                    "--as",
                    who,
                    "--kubeconfig",
                    shown(self.plane.kubeconfig()),
                ]);
                command.args(right);
                let output = kubectl::run(command, "");
                let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
                if output.status.success() { Ok(()) } else { Err(text) }
            });
        }
    }

    /// What is there before the chart: kinds, namespaces, Secrets, and somebody who works with the objects.
    fn prepare_cluster(&self) {
        let root = root();
        self.kubectl(&["apply", "--server-side", "-f", shown(&root.join("schema/crds"))], "");
        self.kubectl(
            &["wait", "--for=condition=established", "--timeout=240s", "crd", "--all"],
            "",
        );
        self.kubectl(&["apply", "-f", shown(&root.join("samples/00-namespace.yaml"))], "");
        self.kubectl(&["create", "namespace", helm::RELEASE], "");
        let keys = |kind: &str, name: &str, data: Value| {
            let metadata = json!({"name": name, "namespace": helm::RELEASE});
            let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": kind, "metadata": metadata,
                "stringData": data});
            self.kubectl(&["create", "-f", "-"], &secret.to_string());
        };
        keys(
            "Opaque",
            "kindex-mysql",
            json!({"user": "kindex", "password": PASSWORD, "ca.crt": tls("first.crt")}),
        );
        let pair = json!({"tls.crt": tls("first.crt"), "tls.key": tls("first.key")});
        keys("kubernetes.io/tls", "kindex-tls", pair);
        for role in ["view", "edit"] {
            let role = format!("--clusterrole=kindex-kindex-{role}");
            let binding = ["create", "rolebinding", &role[2..].replace('=', "-"), &role];
            self.kubectl(&[&binding[..], &["--user=alice", "--namespace", SAMPLES]].concat(), "");
        }
    }

    fn sql(&self, statement: &str) -> Vec<i64> {
        let options = MySqlConnectOptions::new().host("127.0.0.1").username("root");
        self.runtime.block_on(async {
            let mut connection = options.port(self.database.port).connect().await.expect("it answers");
            let rows = sqlx::query(AssertSqlSafe(statement)).fetch_all(&mut connection).await;
            let rows = rows.unwrap_or_else(|error| panic!("{statement}: {error}"));
            rows.iter().map(|row| row.get(0)).collect()
        })
    }

    fn kubectl(&self, args: &[&str], input: &str) -> String {
        let place = ["--kubeconfig", shown(self.plane.kubeconfig())];
        run_kubectl(&[args, &place].concat(), input)
    }

    fn manifest(&self, kind: &str, name: &str) -> &Value {
        let mut manifests = self.manifests.iter();
        let found = manifests.find(|it| it["kind"] == kind && it["metadata"]["name"] == name);
        found.unwrap_or_else(|| panic!("no {kind} {name}"))
    }

    /// Somebody who looks on at what an account of the release asks for.
    fn witness(&self, account: &str) -> (Witness, PathBuf) {
        let token = self.kubectl(&["create", "token", account, "--namespace", helm::RELEASE], "");
        let witness = Witness::before(self.plane.kubeconfig(), token.trim());
        let file = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "pod",
            "clusters": [{"name": "pod", "cluster": {"server": format!("http://{}", witness.address)}}],
            "users": [{"name": "pod", "user": {"token": token.trim()}}],
            "contexts": [{"name": "pod", "context": {"cluster": "pod", "user": "pod"}}],
        });
        let path = self.directory.path().join(account);
        std::fs::write(&path, file.to_string()).expect("writable");
        (witness, path)
    }

    fn pod(&self, deployment: &str, replica: &str, kubeconfig: &Path) -> Pod {
        let manifest = self.manifest("Deployment", deployment);
        Pod::of(
            manifest,
            &format!("{deployment}-{replica}"),
            self,
            Some(kubeconfig.to_owned()),
        )
    }
}

impl Volumes for Release {
    fn config_map(&self, name: &str) -> Vec<(String, String)> {
        let data = self.manifest("ConfigMap", name)["data"]
            .as_object()
            .expect("files")
            .iter();
        data.map(|(name, text)| (name.clone(), text.as_str().expect("text").to_owned()))
            .collect()
    }

    fn secret(&self, name: &str, key: &str) -> String {
        let template = format!("go-template={{{{index .data \"{key}\" | base64decode}}}}");
        self.kubectl(
            &["get", "secret", name, "--namespace", helm::RELEASE, "-o", &template],
            "",
        )
    }
}

fn run_kubectl(args: &[&str], input: &str) -> String {
    let mut command = kubectl::command("/nonexistent");
    command.args(args);
    let output = kubectl::run(command, input);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "kubectl {args:?}: {stderr}");
    String::from_utf8(output.stdout).expect("text")
}

fn kinds() -> &'static [&'static Kind] {
    kindex_generated::registry().kinds
}

/// Somebody at the API server of the release.
struct Alice {
    flags: Vec<String>,
}

impl Alice {
    fn of(release: &Release, api: &Container) -> Self {
        let text = std::fs::read_to_string(release.plane.kubeconfig()).expect("a kubeconfig");
        let file: Value = serde_saphyr::from_str(&text).expect("YAML");
        let mut users = file["users"].as_array().expect("users").iter();
        let user = users.find(|user| user["name"] == "alice").expect("alice");
        let authority = root().join("tests/tests/api/tls/first.crt");
        let flags = [
            "--server".to_owned(),
            format!("https://{}", api.address("https")),
            "--certificate-authority".to_owned(),
            authority.display().to_string(),
            "--token".to_owned(),
            user["user"]["token"].as_str().expect("a token").to_owned(),
        ];
        Self { flags: flags.to_vec() }
    }

    fn kubectl(&self, args: &[&str], input: &str) -> String {
        let flags: Vec<&str> = self.flags.iter().map(String::as_str).collect();
        run_kubectl(&[args, &flags].concat(), input)
    }

    /// An object of each kind.
    fn apply_samples(&self) {
        let samples = kindex_samples();
        self.kubectl(&["apply", "--server-side", "-f", "-"], &samples);
    }
}

/// The samples but for their namespace, which is there.
/// Each object after those that it refers to.
fn kindex_samples() -> String {
    sample_texts().join("\n---\n")
}

/// Each object before those that it refers to: none is gone, with one of these, before its turn has come.
fn kindex_samples_backwards() -> String {
    let mut texts = sample_texts();
    texts.reverse();
    texts.join("\n---\n")
}

fn sample_texts() -> Vec<String> {
    let files = std::fs::read_dir(root().join("samples")).expect("samples");
    let mut paths: Vec<PathBuf> = files.map(|file| file.expect("a file").path()).collect();
    paths.sort();
    let texts = paths[1..]
        .iter()
        .map(|path| std::fs::read_to_string(path).expect("text"));
    texts.collect()
}

#[test]
fn each_container_of_the_chart_works_with_exactly_the_rights_of_its_role() {
    let Some(release) = Release::install() else { return };
    Pod::of(release.manifest("Job", "kindex-schema"), "schema", &release, None).run(&release);
    let (deletion_seen, deletion_access) = release.witness("kindex-deletion");
    let mut of_graph = ["a", "b"].map(|replica| {
        let pod = release.pod("kindex-deletion", replica, &deletion_access);
        pod.start(&release)
    });
    wait_for("readiness", || of_graph.iter_mut().all(Container::is_ready));
    graph::delete_every_sample(&release);
    for container in of_graph {
        container.stop();
    }
    let (ingester_seen, ingester_access) = release.witness("kindex-ingester");
    let (api_seen, api_access) = release.witness("kindex-api");
    let start = |replica: &str| {
        release
            .pod("kindex-ingester", replica, &ingester_access)
            .start(&release)
    };
    let (mut first, mut second) = (start("a"), start("b"));
    let mut api = release.pod("kindex-api", "a", &api_access).start(&release);
    wait_for("readiness", || first.is_ready() && second.is_ready() && api.is_ready());
    let registered = |container: &Container| container.log().matches("Ingester controller registered").count();
    assert_eq!(
        (registered(&first), registered(&second)),
        (kinds().len(), kinds().len())
    );

    let alice = Alice::of(&release, &api);
    let shell = release.pod("kindex-ingester", "shell", &ingester_access);
    alice.apply_samples();
    let (settled, output) = shell.exec(&STATUS, &release);
    assert!(
        settled && output.matches("settled").count() == kinds().len(),
        "{output}"
    );
    let at_work = [&first, &second, &api];
    doubt_every_row(&release, &at_work);
    holders::hold_every_sample(&release, &alice);
    alice.kubectl(&["delete", "--timeout=240s", "-f", "-"], &kindex_samples());
    alice.apply_samples();
    deletions::mark_every_sample(&alice);
    alice.apply_samples();
    deletions::clear_every_kind(&release, &alice, &at_work);
    tell_of_an_object_that_does_not_fit(&release, &alice);
    wait_until("equality", || {
        let (clean, output) = shell.exec(&["verify", "--config", "/etc/kindex/config/config.yaml"], &release);
        if clean { Ok(()) } else { Err(output) }
    });
    let retention = release.manifest("CronJob", "kindex-retention");
    Pod::of(retention, "retention", &release, None).run(&release);
    first.stop();
    second.stop();

    for (witness, roles) in [
        (&ingester_seen, &["ingester", "ingester-leases"][..]),
        (&api_seen, &["api"]),
        (&deletion_seen, &["deletion", "deletion-leases"]),
    ] {
        let seen = witness.seen();
        let granted = granted(roles);
        assert_eq!(seen.forbidden, BTreeSet::new(), "{roles:?} lack rights");
        let never: Vec<_> = granted.difference(&seen.asked).collect();
        assert!(never.is_empty(), "{roles:?} grant what was never asked for: {never:?}");
        let more: Vec<_> = seen.asked.difference(&granted).collect();
        assert!(more.is_empty(), "{roles:?} do not name what was asked for: {more:?}");
    }
}

/// Waits for something in SQL; the end of each log is in the panic.
fn wait_for_sql(release: &Release, at_work: &[&Container], statement: &str) {
    wait_until(&format!("0 from {statement}"), || {
        let logs = || at_work.iter().map(|container| container.log()).collect::<Vec<_>>();
        let found = release.sql(statement);
        if found == [0] {
            Ok(())
        } else {
            Err(format!("{found:?}\n{}", logs().join("\n\n")))
        }
    });
}

/// Rows that say deleted of objects that live: the ingester asks the cluster for each before it believes either.
fn doubt_every_row(release: &Release, at_work: &[&Container]) {
    let of = |kind: &Kind| format!("michelangelo.{}", kind.table);
    for kind in kinds() {
        release.sql(&format!("UPDATE {} SET delete_time = create_time", of(kind)));
    }
    let plurals: Vec<_> = kinds()
        .iter()
        .map(|kind| format!("{}.{}", kind.plural, kind.group))
        .collect();
    let all = plurals.join(",");
    release.kubectl(&["label", &all, "--all", "--namespace", SAMPLES, "doubted=yes"], "");
    for kind in kinds() {
        let deleted = format!("SELECT COUNT(*) FROM {} WHERE delete_time IS NOT NULL", of(kind));
        wait_for_sql(release, at_work, &deleted);
    }
}

/// Its column is left out, and an event says so.
fn tell_of_an_object_that_does_not_fit(release: &Release, alice: &Alice) {
    let model = json!({"apiVersion": "michelangelo.api/v2", "kind": "Model",
        "metadata": {"name": "misfit", "namespace": SAMPLES}, "spec": {"algorithm": "x".repeat(1000)}});
    alice.kubectl(&["create", "-f", "-"], &model.to_string());
    wait_for("the event", || {
        let events = release.kubectl(&["get", "events", "--namespace", SAMPLES], "");
        events.contains("ProjectionIncomplete")
    });
}
