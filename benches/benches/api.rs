//! The API server under load, beside the cluster behind it as the baseline of the same run: creations by 16 clients
//! with the lag of the rows meanwhile, a list of which half is archived, `get` of archived objects, memory of watches.
//! Creations and `get` over gRPC as well.
//!
//! `KINDEX_BENCH_OBJECTS` (10000) sets the size, `KINDEX_BENCH_WATCHES` (1000) the number of watches. The cluster is
//! the embedded one, or with `KINDEX_BENCH_CONTROLPLANE=1` the kube-apiserver that `tests/controlplane/build` made.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use http_body_util::BodyExt as _;
use kindex_benches::child::{Kindex, become_kindex, usage};
use kindex_benches::clients::{all, at_once, client, get, of_kubeconfig, post, timed};
use kindex_benches::figures::{percentile, print_table, setting};
use kindex_benches::grpc::{self, Caller};
use kindex_generated::kinds::pipeline_run::KIND;
use kindex_harness::controlplane::ControlPlane;
use kindex_harness::mariadb::MariaDb;
use kindex_harness::require::require;
use kube::{Client, Config};
use serde_json::{Value, json};

const CLIENTS: usize = 16;
const GETS: usize = 1_000;
const LISTS: usize = 5;
/// After so long nothing of SQL is looked up in the cluster any more, where clocks may differ by less.
const LATELY: Duration = Duration::from_secs(65);
const WAIT_MAX: Duration = Duration::from_secs(300);

fn main() -> ExitCode {
    if let Some(code) = become_kindex() {
        return code;
    }
    if require("mariadb", MariaDb::installed()) {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(measure());
    }
    ExitCode::SUCCESS
}

/// `kindex up` with all that it stands on.
struct Setup {
    kindex: Kindex,
    api: Config,
    cluster: Config,
    health: Config,
    _plane: Option<ControlPlane>,
    database: MariaDb,
    _directory: tempfile::TempDir,
}

impl Setup {
    async fn make() -> Self {
        let database = MariaDb::start(&["--innodb-buffer-pool-size=1G", "--innodb-flush-log-at-trx-commit=1"]);
        let directory = tempfile::tempdir().expect("a temporary directory");
        let plane = (setting("KINDEX_BENCH_CONTROLPLANE", 0) > 0).then(ControlPlane::start);
        let address = format!("mysql://root@127.0.0.1:{}/bench", database.port);
        let data_dir = directory.path().join("data");
        let kubeconfig = match &plane {
            Some(plane) => plane.kubeconfig().to_owned(),
            None => data_dir.join("kubeconfig"),
        };
        let [data_dir, cluster_file] = [&data_dir, &kubeconfig].map(|path| path.display().to_string());
        let mut arguments = vec![
            "--log",
            "error",
            "up",
            "--deletion=false",
            "--data-dir",
            &data_dir,
            "--database",
            &address,
        ];
        for flag in [
            "--listen",
            "--api-addr",
            "--health-addr",
            "--runs-grpc-addr",
            "--runs-rest-addr",
        ] {
            arguments.extend([flag, "127.0.0.1:0"]);
        }
        if plane.is_some() {
            arguments.extend(["--kubeconfig", &cluster_file]);
        }
        let (kindex, [api, health]) = Kindex::listening(&arguments, ["api          http://", "readiness    http://"]);
        Self {
            kindex,
            api: at(api),
            cluster: of_kubeconfig(&kubeconfig).await,
            health: at(health),
            _plane: plane,
            database,
            _directory: directory,
        }
    }

    async fn wait(&mut self, what: &str, holds: impl AsyncFn(&Self) -> bool) {
        let begun = Instant::now();
        while !holds(self).await {
            let ended = self.kindex.ended();
            assert!(
                ended.is_none() && begun.elapsed() < WAIT_MAX,
                "{what}: kindex ended with {ended:?}"
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// A number that the process shows of itself, summed over its labels.
    async fn figure(&self, name: &str, label: &str) -> f64 {
        let text = client(&self.health)
            .request_text(Self::plain("/metrics"))
            .await
            .expect("figures");
        let lines = text
            .lines()
            .filter(|line| line.starts_with(name) && line.contains(label));
        lines
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .sum()
    }

    /// Time of processors so far: of `kindex`, of MariaDB and of the load program.
    fn processors(&self) -> [Duration; 3] {
        let processes = [self.kindex.id(), self.database.id(), std::process::id()];
        processes.map(|process| usage(process).unwrap_or_default().processor)
    }

    fn plain(path: &str) -> http::Request<Vec<u8>> {
        http::Request::get(path).body(Vec::new()).expect("a path")
    }

    /// Rows of the lag's histogram within so many seconds.
    async fn within(&self, seconds: &str) -> f64 {
        self.figure("kindex_ingester_lag_seconds_bucket", &format!("le=\"{seconds}\""))
            .await
    }
}

fn at(address: SocketAddr) -> Config {
    Config::new(format!("http://{address}").parse().expect("an address of the web"))
}

/// Where objects are.
fn models(namespace: &str) -> String {
    format!("/apis/{}/namespaces/{namespace}/{}", KIND.api_version(), KIND.plural)
}

fn name(number: usize) -> String {
    format!("run-{number:08}")
}

/// About 2.5 KiB with all that the server adds.
fn object(namespace: &str, number: usize, is_final: bool) -> String {
    let mut annotations = json!({"example.org/note": "x".repeat(1_500)});
    if is_final {
        annotations["michelangelo/Immutable"] = json!("true");
    }
    json!({
        "apiVersion": KIND.api_version(),
        "kind": KIND.name,
        "metadata": {
            "name": name(number),
            "namespace": namespace,
            "labels": {"team": format!("team-{}", number % 50), "pipeline": format!("pipeline-{}", number % 500)},
            "annotations": annotations,
        },
        "spec": {
            "pipeline": {"namespace": "shared", "name": format!("pipeline-{}", number % 500)},
            "actor": {"name": format!("user-{}", number % 200)},
        },
    })
    .to_string()
}

async fn measure() {
    let objects = setting("KINDEX_BENCH_OBJECTS", 10_000);
    let mut setup = Setup::make().await;
    for namespace in ["direct", "a", "called", "archived"] {
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        timed(&client(&setup.cluster), post("/api/v1/namespaces", body.to_string())).await;
    }
    println!("{objects} objects of about 2.5 KiB, {CLIENTS} clients\n");
    // First: memory that was used and given back would hide theirs.
    watches(&mut setup).await;
    creations(&mut setup, objects).await;
    reads(&mut setup, objects).await;
}

/// What is asked to create objects, and how.
enum Server {
    Rest(Config),
    Grpc(Config),
}

impl Server {
    async fn create(self, namespace: &'static str, objects: usize) -> (Duration, Vec<Duration>) {
        match self {
            Self::Rest(config) => {
                let path = models(namespace);
                let request = move |number| post(&path, object(namespace, number, false));
                all(&config, CLIENTS, objects, request).await
            }
            Self::Grpc(config) => {
                let method = grpc::method(&KIND, "Create");
                let send = move |caller: Caller, number| {
                    let (path, object) = (method.clone(), object(namespace, number, false));
                    async move { caller.call(path, grpc::Create::new(&KIND, &object)).await }
                };
                at_once(CLIENTS, objects, || Caller::new(&config), send).await
            }
        }
    }
}

async fn creations(setup: &mut Setup, objects: usize) {
    let mut rows = Vec::new();
    for (what, server, namespace) in [
        ("create, cluster alone", Server::Rest(setup.cluster.clone()), "direct"),
        ("create, API server", Server::Rest(setup.api.clone()), "a"),
        ("create, API server, gRPC", Server::Grpc(setup.api.clone()), "called"),
    ] {
        setup
            .wait("rest", async |setup| {
                setup.figure("kindex_ingester_unsettled_seconds", "").await == 0.0
            })
            .await;
        let before = [
            setup.within("0.05").await,
            setup.within("1").await,
            setup.within("+Inf").await,
        ];
        let used = setup.processors();
        let (took, times) = server.create(namespace, objects).await;
        let expected = objects as f64 + before[2];
        setup
            .wait("all rows", async |setup| setup.within("+Inf").await >= expected)
            .await;
        let caught_up = took_more(setup, before).await;
        setup
            .wait("rest", async |setup| {
                setup.figure("kindex_ingester_unsettled_seconds", "").await == 0.0
            })
            .await;
        let now = setup.processors();
        let used = [0, 1, 2].map(|at| (now[at] - used[at]).as_micros() / objects as u128);
        rows.push(vec![
            what.to_owned(),
            format!("{:.0}", objects as f64 / took.as_secs_f64()),
            format!("{:.1?}", percentile(&times, 50)),
            format!("{:.1?}", percentile(&times, 99)),
            caught_up,
            used.map(|us| us.to_string()).join(" / "),
        ]);
    }
    print_table(
        &[
            "",
            "requests/s",
            "p50",
            "p99",
            "rows within 50 ms / 1 s of their event",
            "µs of processors an object: kindex / MariaDB / load",
        ],
        &rows,
    );
}

async fn took_more(setup: &Setup, before: [f64; 3]) -> String {
    let now = [
        setup.within("0.05").await,
        setup.within("1").await,
        setup.within("+Inf").await,
    ];
    let share = |at: usize| 100.0 * (now[at] - before[at]) / (now[2] - before[2]);
    format!("{:.1} % / {:.1} %", share(0), share(1))
}

async fn reads(setup: &mut Setup, objects: usize) {
    let path = models("archived");
    let half = objects / 2;
    all(&setup.api, CLIENTS, objects, move |number| {
        post(&path, object("archived", number, number < half))
    })
    .await;
    let cluster = client(&setup.cluster);
    let path = models("archived");
    setup
        .wait("the archive", async |_| count(&cluster, &path).await == objects - half)
        .await;
    let api = client(&setup.api);
    assert_eq!(count(&api, &path).await, objects, "a merged list is whole");
    let live = lists(&cluster, &models("direct")).await;
    let just_archived = lists(&api, &path).await;
    tokio::time::sleep(LATELY).await;
    let whole = lists(&api, &path).await;
    let get_at = |config: &Config, namespace: &str| {
        let path = models(namespace);
        let config = config.clone();
        async move {
            all(&config, 1, GETS, move |number| get(&format!("{path}/{}", name(number))))
                .await
                .1
        }
    };
    let archived = get_at(&setup.api, "archived").await;
    let direct = get_at(&setup.cluster, "direct").await;
    let through = get_at(&setup.api, "direct").await;
    let call = |namespace: &'static str| {
        let (config, method) = (setup.api.clone(), grpc::method(&KIND, "Get"));
        let send = move |caller: Caller, number| {
            let (path, name, namespace) = (method.clone(), name(number), namespace.to_owned());
            async move { caller.call(path, grpc::Get { name, namespace }).await }
        };
        async move { at_once(1, GETS, || Caller::new(&config), send).await.1 }
    };
    let [called_archived, called] = [call("archived").await, call("direct").await];
    let line = |what: &str, times: &[Duration]| {
        let shown = [50, 99].map(|at| format!("{:.2?}", percentile(times, at)));
        [vec![what.to_owned(), times.len().to_string()], shown.to_vec()].concat()
    };
    println!();
    print_table(
        &["", "askings", "p50", "p99"],
        &[
            line("list, cluster alone", &live),
            line("list, half archived just now", &just_archived),
            line("list, half archived", &whole),
            line("get, cluster alone", &direct),
            line("get, live", &through),
            line("get, archived", &archived),
            line("get, live, gRPC", &called),
            line("get, archived, gRPC", &called_archived),
        ],
    );
    let ratio = percentile(&whole, 50).as_secs_f64() / percentile(&live, 50).as_secs_f64();
    println!("\na list of {objects} takes {ratio:.2} times that of the cluster alone");
}

/// Objects of a list, all pages.
async fn count(client: &Client, path: &str) -> usize {
    let request = http::Request::get(path).body(Vec::new()).expect("a path");
    let list: Value = client.request(request).await.expect("a list");
    list["items"].as_array().expect("items").len()
}

async fn lists(client: &Client, path: &str) -> Vec<Duration> {
    let mut times = Vec::new();
    for _ in 0..LISTS {
        times.push(timed(client, get(path)).await.0);
    }
    times
}

async fn watches(setup: &mut Setup) {
    let watches = setting("KINDEX_BENCH_WATCHES", 1_000);
    let before = setup.figure("process_resident_memory_bytes", "").await;
    let path = format!("{}?watch=true&resourceVersion=0&labelSelector=none%3Dsuch", models("a"));
    let mut open = Vec::new();
    for _ in 0..watches {
        let response = client(&setup.api).send(get(&path)).await.expect("a watch");
        open.push(response.into_body());
    }
    let expected = watches as f64;
    setup
        .wait("all watches", async |setup| {
            setup.figure("kindex_api_watches", "").await >= expected
        })
        .await;
    let after = setup.figure("process_resident_memory_bytes", "").await;
    println!(
        "\n{watches} watches through the API server: {:.0} KiB each, cluster included\n",
        (after - before) / expected / 1024.0
    );
    let first = open.first_mut().expect("at least one");
    let quiet = tokio::time::timeout(Duration::from_millis(10), first.frame()).await;
    assert!(quiet.is_err(), "a watch that nothing happens to says nothing");
}
