//! A Galera cluster of MariaDB servers on loopback, whose nodes can be killed and brought
//! back one by one. Knows nothing of schemas and stores.

use std::path::Path;
use std::thread;

use sqlx::mysql::MySqlConnectOptions;
use sqlx::{ConnectOptions as _, Row as _};

use crate::mariadb::MariaDb;
use crate::ports;
use crate::sql_server::NotStarted;
use crate::wait::wait_until;

/// Where Debian's package puts the replication library.
const PROVIDER: &str = "/usr/lib/galera/libgalera_smm.so";

/// A node that crashes so often in a row does not come up.
const CRASHES: usize = 5;

/// Servers that hold the same rows. A commit on one is on all of them.
pub struct Galera {
    nodes: Vec<MariaDb>,
    ports: Vec<Ports>,
}

/// What a node listens on beside its SQL port.
#[derive(Clone, Copy)]
struct Ports {
    group: u16,
    increments: u16,
    snapshots: u16,
}

impl Ports {
    fn free() -> Self {
        Self {
            group: ports::reserve(),
            increments: ports::reserve(),
            snapshots: ports::reserve(),
        }
    }
}

impl Galera {
    /// Whether the programs and the library are there.
    pub fn installed() -> bool {
        MariaDb::installed() && Path::new(PROVIDER).exists()
    }

    /// Starts so many nodes, one after the other, with more options for each.
    ///
    /// # Panics
    /// When a node does not come up; the message holds its log.
    pub fn start(nodes: usize, options: &[&str]) -> Self {
        let ports: Vec<Ports> = (0..nodes).map(|_| Ports::free()).collect();
        let mut galera = Self {
            nodes: Vec::new(),
            ports,
        };
        for number in 0..nodes {
            let founding = number == 0;
            let first = galera.options(number, founding, options);
            let first: Vec<&str> = first.iter().map(String::as_str).collect();
            galera.nodes.push(MariaDb::prepare(&first));
            galera.resume(number);
            // Whoever comes back joins, the founder too.
            let later = galera.options(number, false, options);
            galera.nodes[number].set_options(&later);
        }
        galera
    }

    fn options(&self, number: usize, founding: bool, more: &[&str]) -> Vec<String> {
        let Ports {
            group,
            increments,
            snapshots,
        } = self.ports[number];
        let others = self.ports.iter().enumerate().filter(|(other, _)| *other != number);
        let others: Vec<String> = others
            .filter(|_| !founding)
            .map(|(_, ports)| format!("127.0.0.1:{}", ports.group))
            .collect();
        let provider = [
            format!("gmcast.listen_addr=tcp://127.0.0.1:{group}"),
            format!("ist.recv_addr=127.0.0.1:{increments}"),
            // A dead node is given up after six seconds. A machine with more to do than processors starves nodes for
            // longer than Galera's own five, and nodes that all suspect each other are no cluster any more.
            "evs.keepalive_period=PT0.5S".to_owned(),
            "evs.inactive_check_period=PT0.5S".to_owned(),
            "evs.suspect_timeout=PT6S".to_owned(),
            "evs.inactive_timeout=PT20S".to_owned(),
            "evs.install_timeout=PT20S".to_owned(),
            "gcache.size=32M".to_owned(),
        ];
        let own = [
            "--wsrep-on=ON".to_owned(),
            format!("--wsrep-provider={PROVIDER}"),
            format!("--wsrep-cluster-address=gcomm://{}", others.join(",")),
            "--wsrep-cluster-name=kindex".to_owned(),
            format!("--wsrep-node-name=node{number}"),
            "--wsrep-node-address=127.0.0.1".to_owned(),
            "--wsrep-sst-method=rsync".to_owned(),
            format!("--wsrep-sst-receive-address=127.0.0.1:{snapshots}"),
            format!("--wsrep-provider-options={}", provider.join(";")),
            "--binlog-format=ROW".to_owned(),
            "--innodb-autoinc-lock-mode=2".to_owned(),
            // A killed process loses nothing by it, and a slow disk holds up no node.
            "--innodb-flush-log-at-trx-commit=2".to_owned(),
        ];
        own.into_iter()
            .chain(more.iter().map(|&option| option.to_owned()))
            .collect()
    }

    /// The SQL port of a node.
    pub fn port(&self, node: usize) -> u16 {
        self.nodes[node].port
    }

    /// Ends a node at once, as a crash would.
    pub fn kill(&mut self, node: usize) {
        self.nodes[node].kill();
    }

    /// Brings a node back; returns once it has the cluster's data and takes users. A node that crashes while it joins
    /// is started again, as MariaDB's own service unit does (`Restart=on-abnormal`).
    ///
    /// # Panics
    /// When it does not come up.
    pub fn resume(&mut self, node: usize) {
        for _ in 0..CRASHES {
            let crashed = match self.nodes[node].try_resume() {
                Ok(()) => self.crash_before_synced(node),
                Err(ended) => Some(ended),
            };
            match crashed {
                None => return,
                Some(ended) if ended.crashed() => eprintln!("node {node} crashed while it joined: {ended}"),
                Some(ended) => panic!("node {node}: {ended}"),
            }
        }
        panic!("node {node} crashed {CRASHES} times while it joined");
    }

    /// Starts again what has crashed by itself, as MariaDB's own service unit does. Nodes that were
    /// [killed](Self::kill) stay away.
    ///
    /// # Panics
    /// When a node has ended in another way, or does not come up again.
    pub fn tend(&mut self) {
        for node in 0..self.nodes.len() {
            match self.nodes[node].ended() {
                None => {}
                Some(ended) if ended.crashed() => {
                    eprintln!("node {node} crashed: {ended}");
                    self.resume(node);
                }
                Some(ended) => panic!("node {node}: {ended}"),
            }
        }
    }

    /// Waits until a node that takes users has all that the others have; how it ended where it crashes before.
    fn crash_before_synced(&mut self, node: usize) -> Option<NotStarted> {
        wait_until("a node in step with the others", || {
            if let Some(ended) = self.nodes[node].ended() {
                return Ok(Some(ended));
            }
            let state = state(self.nodes[node].port);
            if state == "Synced" { Ok(None) } else { Err(state) }
        })
    }
}

/// What a node says of itself; why it cannot be asked, where it cannot.
fn state(port: u16) -> String {
    let options = MySqlConnectOptions::new().host("127.0.0.1").port(port).username("root");
    let asked = async {
        let mut connection = options.connect().await?;
        let status = "SHOW STATUS LIKE 'wsrep_local_state_comment'";
        let row = sqlx::query(status).fetch_one(&mut connection).await?;
        row.try_get::<String, _>(1)
    };
    // On a thread of its own: the caller may be within a runtime.
    thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(asked)
        });
        let answer = asking.join().expect("asking does not panic");
        answer.unwrap_or_else(|error: sqlx::Error| error.to_string())
    })
}
