//! The workspace of docs/src/how-to/own-repository.md, made of the page's own blocks beside this checkout: it builds a
//! kindex of other kinds, one of them with the CRD of others, as docs/src/how-to/existing-crds.md has it. It is used as
//! a new user would. Takes minutes, and runs where `KINDEX_REQUIRE` names `walk`.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::process::{Running, kubectl_is_there, wait_for};
use super::workspace::{binary, build, checkout, share_features, shown, walk_is_required, write};

const PAGE: &str = include_str!("../../../docs/src/how-to/own-repository.md");
const OF_OTHERS: &str = include_str!("../../../docs/src/how-to/existing-crds.md");
/// What that page has saved.
const MANIFEST: &str = include_str!("certificates.yaml");

const CERTIFICATE: &str = r#"
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: shop, namespace: default}
spec: {secretName: shop-tls, dnsNames: [shop.example.com]}
"#;

/// Those that the page has a block for.
const FILES: [&str; 5] = [
    "Cargo.toml",
    "generated/Cargo.toml",
    "crds.toml",
    "samples/training-job.yaml",
    "src/main.rs",
];

#[test]
fn a_workspace_of_ones_own_builds_a_kindex_of_its_kinds() {
    if !walk_is_required() {
        return;
    }
    assert!(kubectl_is_there(), "the walk uses kubectl");
    let checkout = checkout();
    let workspace = tempfile::tempdir().expect("a temporary directory");
    let root = workspace.path();
    for name in FILES {
        write(
            root,
            name,
            &block(name)
                .replace("../../kindex", "../kindex")
                .replace("../kindex", shown(&checkout)),
        );
    }
    let declared = fs::read_to_string(root.join("crds.toml")).expect("written");
    let (_, of_others) = OF_OTHERS.split_once("```toml\n").expect("the page declares a kind");
    let (of_others, _) = of_others.split_once("```").expect("the block ends");
    write(root, "crds.toml", &format!("{declared}\n{of_others}"));
    write(root, "crds/certificates.yaml", MANIFEST);
    for name in ["generated/build.rs", "generated/src/lib.rs", "Cargo.lock"] {
        write(
            root,
            name,
            &fs::read_to_string(checkout.join(name)).expect("in the checkout"),
        );
    }
    share_features(root);
    let built = build(root);
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let binary = binary("ml-kindex");
    for emitted in [
        "schema/crds/trainingjobs.yaml",
        "deploy/schema/init_db.sh",
        "docs/reference/sql.md",
    ] {
        assert!(root.join(emitted).is_file(), "{emitted}");
    }
    let any = "127.0.0.1:0";
    let once = ["up", "--samples", "--once", "--timeout", "240", "--data-dir", ".kindex"];
    let addresses = ["--api-addr", any, "--health-addr", any, "--listen", any];
    let of_runs = ["--runs-grpc-addr", any, "--runs-rest-addr", any];
    run(&binary, root, &[&once[..], &addresses, &of_runs].concat());
    assert!(run(&binary, root, &["get", "trainingjobs", "-n", "default"]).contains("ada"));
    run(&binary, root, &["plan"]);
    assert!(root.join("schema/migrations/0001_initial.mysql.sql").is_file());
    the_crd_of_others_is_followed(&binary);
}

/// The way of an object whose CRD somebody else defines: applied, found, archived, found still, and deleted.
fn the_crd_of_others_is_followed(binary: &Path) {
    let run = Running::start_binary(binary, &[]);
    run.kubectl(&["apply", "-f", "-"], CERTIFICATE);
    let output = run.kubectl(&["explain", "certificate.spec.secretName"], "");
    assert!(output.contains("Where the key is kept."), "{output}");
    wait_for("the row", || {
        run.get(&["certificates", "-o", "wide"]).contains("shop-tls")
    });
    assert!(run.get(&["cert", "--where", "secret_name=shop-tls"]).contains("shop"));
    let server = format!("http://{}", run.api().expect("an API server"));
    let as_one = |words: &[&str]| run.kubectl(&[&["--server", &*server][..], words].concat(), "");
    // As a kube-apiserver prints it: the CRD shows no age.
    let printed = "NAME   SECRET\nshop   shop-tls\n";
    assert_eq!(
        run.kubectl(&["get", "certificates"], ""),
        printed,
        "the embedded cluster"
    );
    assert_eq!(as_one(&["get", "certificates"]), printed, "live");
    let renewal = r#"{"status": {"renewalTime": "2027-01-02T03:04:05Z"}}"#;
    let status = ["--subresource=status", "--type=merge", "-p", renewal];
    run.kubectl(&[&["patch", "certificate", "shop"][..], &status].concat(), "");
    wait_for("its status", || {
        run.get(&["certificates", "-o", "wide"]).contains("2027-01-02")
    });
    run.until_verified();

    run.kubectl(
        &["annotate", "certificate", "shop", "ml.example.com/immutable=true"],
        "",
    );
    wait_for("its way into SQL", || {
        run.kubectl(&["get", "certificates", "-o", "name"], "").is_empty()
    });
    assert_eq!(as_one(&["get", "certificates"]), printed, "archived");
    let shown = run.get(&["certificates"]);
    assert!(
        shown.starts_with("NAMESPACE   NAME   SECRET     LIFE       AGE\n"),
        "{shown}"
    );
    assert!(shown.contains("\ndefault     shop   shop-tls   archived   "), "{shown}");
    as_one(&["delete", "certificate", "shop"]);
    assert_eq!(as_one(&["get", "certificates", "-o", "name"]), "");
    assert!(run.get(&["certificates", "--deleted"]).contains("shop"));
}

/// The block below the line of the page that begins with the name of a file.
fn block(name: &str) -> &'static str {
    let (_, rest) = PAGE.split_once(&format!("\n`{name}`")).expect("the page has the file");
    let (_, rest) = rest.split_once("\n```").expect("a block follows");
    let (_, rest) = rest.split_once('\n').expect("the block has lines");
    rest.split_once("```").expect("the block ends").0
}

fn run(binary: &Path, directory: &Path, args: &[&str]) -> String {
    let output = Command::new(binary).args(args).current_dir(directory).output();
    let output = output.expect("kindex runs");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{args:?}: {stderr}");
    String::from_utf8(output.stdout).expect("text")
}
