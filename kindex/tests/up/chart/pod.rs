//! What a kubelet does with a pod, as far as a process can stand for a container: the command, the arguments and the
//! environment are the manifest's to the letter, but for where files are mounted and which ports are free.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use kindex_harness::{ports, scrape};
use serde_json::Value;
use tempfile::TempDir;

const KINDEX: &str = env!("CARGO_BIN_EXE_kindex");

/// Where the files of volumes come from.
pub(super) trait Volumes {
    /// The files of a ConfigMap: name and text.
    fn config_map(&self, name: &str) -> Vec<(String, String)>;
    /// The text at a key of a Secret.
    fn secret(&self, name: &str, key: &str) -> String;
}

/// Of the certificates of the tests, which name 127.0.0.1.
pub(super) fn tls(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/tests/api/tls");
    fs::read_to_string(folder.join(name)).expect("a file")
}

/// A pod with its files in a directory.
pub(super) struct Pod {
    spec: Value,
    namespace: String,
    name: String,
    /// By volume.
    files: TempDir,
    kubeconfig: Option<PathBuf>,
}

/// A container that runs.
pub(super) struct Container {
    child: Child,
    /// By the port in the manifest.
    addresses: Vec<(String, SocketAddr)>,
    pod: Pod,
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

impl Pod {
    /// Of a Deployment, a StatefulSet, a Job or a CronJob, with the account of this kubeconfig.
    pub(super) fn of(manifest: &Value, name: &str, volumes: &impl Volumes, kubeconfig: Option<PathBuf>) -> Self {
        let jobs = &manifest["spec"]["jobTemplate"];
        let pods = if jobs.is_null() { manifest } else { jobs };
        let pod = Self {
            spec: pods["spec"]["template"]["spec"].clone(),
            namespace: text(&manifest["metadata"]["namespace"]).to_owned(),
            name: name.to_owned(),
            files: tempfile::tempdir().expect("a temporary directory"),
            kubeconfig,
        };
        for volume in list(&pod.spec["volumes"]) {
            let directory = pod.files.path().join(text(&volume["name"]));
            fs::create_dir(&directory).expect("volumes have names of their own");
            pod.fill(&directory, volume, volumes);
        }
        pod
    }

    fn fill(&self, directory: &Path, volume: &Value, volumes: &impl Volumes) {
        let write = |name: &str, text: &str| fs::write(directory.join(name), text).expect("writable");
        if let Some(name) = volume["configMap"]["name"].as_str() {
            for (file, text) in volumes.config_map(name) {
                // Other files name no places.
                let text = if file.ends_with(".yaml") {
                    self.here(&text)
                } else {
                    text
                };
                write(&file, &text);
            }
        }
        for source in list(&volume["projected"]["sources"]) {
            let secret = &source["secret"];
            for item in list(&secret["items"]) {
                write(
                    text(&item["path"]),
                    &volumes.secret(text(&secret["name"]), text(&item["key"])),
                );
            }
        }
        let secret = &volume["secret"];
        let Some(name) = secret["secretName"].as_str() else {
            return;
        };
        let items = list(&secret["items"]).map(|item| (text(&item["key"]), text(&item["path"])));
        let mut items: Vec<_> = items.collect();
        if items.is_empty() {
            items = vec![("tls.crt", "tls.crt"), ("tls.key", "tls.key")];
        }
        for (key, path) in items {
            write(path, &volumes.secret(name, key));
        }
    }

    /// A text with the places of this pod's files instead of where they are mounted.
    fn here(&self, text_of_there: &str) -> String {
        let containers = ["initContainers", "containers"];
        let containers = containers.into_iter().flat_map(|field| list(&self.spec[field]));
        let mut here = text_of_there.to_owned();
        for mount in containers.flat_map(|container| list(&container["volumeMounts"])) {
            // Processes share that one.
            if mount["mountPath"] == "/tmp" {
                continue;
            }
            let place = self.files.path().join(text(&mount["name"]));
            here = here.replace(text(&mount["mountPath"]), &place.display().to_string());
        }
        here
    }

    fn environment(&self, container: &Value, volumes: &impl Volumes) -> Vec<(String, String)> {
        let value = |variable: &Value| {
            let from = &variable["valueFrom"];
            match (variable["value"].as_str(), from["fieldRef"]["fieldPath"].as_str()) {
                (Some(value), _) => self.here(value),
                (None, Some("metadata.namespace")) => self.namespace.clone(),
                (None, Some(other)) => panic!("no field {other}"),
                (None, None) => {
                    let secret = &from["secretKeyRef"];
                    volumes.secret(text(&secret["name"]), text(&secret["key"]))
                }
            }
        };
        let own = list(&container["env"]).map(|variable| (text(&variable["name"]).to_owned(), value(variable)));
        let given = [
            ("HOSTNAME", self.name.clone()),
            ("PATH", "/usr/local/bin:/usr/bin:/bin".to_owned()),
        ];
        let kubeconfig = self
            .kubeconfig
            .iter()
            .map(|path| ("KUBECONFIG", path.display().to_string()));
        let given = given.into_iter().chain(kubeconfig);
        own.chain(given.map(|(name, value)| (name.to_owned(), value))).collect()
    }

    fn command(&self, container: &Value, args: impl Iterator<Item = String>, volumes: &impl Volumes) -> Command {
        let mut words: Vec<String> = list(&container["command"]).map(|word| self.here(text(word))).collect();
        if words.is_empty() {
            words.push(KINDEX.to_owned());
        }
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).args(args).env_clear();
        command.envs(self.environment(container, volumes)).stdin(Stdio::null());
        command
    }

    /// Runs its containers one after the other to their ends, as those of a Job.
    pub(super) fn run(&self, volumes: &impl Volumes) {
        for container in ["initContainers", "containers"]
            .into_iter()
            .flat_map(|field| list(&self.spec[field]))
        {
            let args = list(&container["args"]).map(|word| self.here(text(word)));
            let output = self.command(container, args, volumes).output().expect("it starts");
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{}: {stderr}", container["name"]);
        }
    }

    /// Runs a command of kindex in its first container, as `kubectl exec` does; what it prints, and whether it is
    /// content.
    pub(super) fn exec(&self, args: &[&str], volumes: &impl Volumes) -> (bool, String) {
        let args = args.iter().map(|word| self.here(word));
        let output = self.command(&self.spec["containers"][0], args, volumes).output();
        let output = output.expect("it starts");
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    }

    /// Starts its only container.
    pub(super) fn start(self, volumes: &impl Volumes) -> Container {
        let (child, addresses) = self.launch(volumes);
        Container {
            child,
            addresses,
            pod: self,
        }
    }

    /// The log of its container.
    fn log(&self) -> PathBuf {
        self.files.path().join("log")
    }

    /// A process in the place of its container, and where its ports are.
    fn launch(&self, volumes: &impl Volumes) -> (Child, Vec<(String, SocketAddr)>) {
        let container = self.spec["containers"][0].clone();
        let mut addresses = Vec::new();
        let args: Vec<String> = list(&container["args"])
            .map(|word| {
                let word = self.here(text(word));
                let Some((flag, port)) = word.split_once("=0.0.0.0:") else {
                    return word;
                };
                let address = SocketAddr::from(([127, 0, 0, 1], ports::reserve()));
                let mut named = list(&container["ports"]);
                let name = named.find(|known| known["containerPort"].as_u64() == port.parse().ok());
                addresses.push((text(&name.expect("a port that is named")["name"]).to_owned(), address));
                format!("{flag}={address}")
            })
            .collect();
        let file = File::create(self.log()).expect("writable");
        let mut command = self.command(&container, args.into_iter(), volumes);
        let child = command.stdout(Stdio::null()).stderr(file).spawn().expect("it starts");
        (child, addresses)
    }
}

impl Container {
    /// Where a port of the manifest is.
    pub(super) fn address(&self, port: &str) -> SocketAddr {
        let found = self.addresses.iter().find(|(name, _)| name == port);
        found.unwrap_or_else(|| panic!("no port {port}")).1
    }

    /// Whether its readiness probe would pass; the log where it has ended.
    pub(super) fn is_ready(&mut self) -> bool {
        let ended: Option<ExitStatus> = self.child.try_wait().expect("it was started");
        assert!(ended.is_none(), "{}", self.log());
        scrape::get(self.address("metrics"), "/readyz").is_ok_and(|(code, _)| code == 200)
    }

    pub(super) fn log(&self) -> String {
        fs::read_to_string(self.pod.log()).expect("the log is text")
    }

    /// Runs a command of kindex beside it, as `kubectl exec` does; what it prints, and whether it is content.
    pub(super) fn exec(&self, args: &[&str], volumes: &impl Volumes) -> (bool, String) {
        self.pod.exec(args, volumes)
    }

    /// Ends it in an orderly way, and starts it again with the files of its volumes.
    pub(super) fn restart(mut self, volumes: &impl Volumes) -> Self {
        self.terminate();
        let next = self.pod.launch(volumes);
        self.child = next.0;
        self.addresses = next.1;
        self
    }

    /// SIGTERM, and its end.
    pub(super) fn stop(mut self) {
        self.terminate();
    }

    fn terminate(&mut self) {
        let pid = self.child.id().to_string();
        let reported = Command::new("kill").args(["-TERM", &pid]).status();
        assert!(reported.expect("kill runs").success());
        let ended = self.child.wait().expect("it was started");
        assert!(ended.success(), "{}", self.log());
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}
