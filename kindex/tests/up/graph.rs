//! `kindex graph` as it is typed: on the shipped kinds, on the three services of examples/deletion-graph, and on
//! declarations that do not go together.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use super::plan::KINDS;
use super::text_of;
use super::workspace::checkout;

fn graph(directory: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kindex"));
    command
        .arg("graph")
        .args(args)
        .current_dir(directory)
        .env_remove("KINDEX_LOG");
    command.output().expect("kindex runs")
}

fn printed(directory: &Path, args: &[&str]) -> String {
    let output = graph(directory, args);
    assert_eq!(output.status.code(), Some(0), "{}", text_of(&output.stderr));
    text_of(&output.stdout)
}

/// A service `name` with these kinds, in a directory of its own.
fn declare(root: &Path, name: &str, kinds: &str) {
    let text = KINDS.replace("fixture.example", &format!("{name}.example"));
    let (platform, _) = text.split_once("[kinds.").expect("the kinds come last");
    fs::create_dir_all(root.join(name)).expect("writable");
    fs::write(root.join(name).join("crds.toml"), format!("{platform}{kinds}")).expect("writable");
}

fn service(name: &str, kinds: &str) -> String {
    format!("[services.{name}]\ngroup = \"{name}.example\"\nkinds = [{kinds}]\naddress = \"https://{name}.example\"\n")
}

/// Network → Cluster by `region`, Cluster → Network by `compute`.
fn two_that_wait_for_each_other() -> TempDir {
    let root = TempDir::new().expect("a temporary directory");
    let cluster = "[kinds.Cluster]\nfields = { spec = { network = \"string\" } }\n\
                   references = { network = { kind = \"region.Network\", path = \"spec.network\", on_delete = \"cascade\" } }\n";
    declare(
        root.path(),
        "compute",
        &format!("{cluster}{}", service("region", "\"Network\"")),
    );
    let network = "[kinds.Network]\nfields = { spec = { cluster = \"string\" } }\n\
                   references = { owner = { kind = \"compute.Cluster\", path = \"spec.cluster\", owned = true } }\n";
    declare(
        root.path(),
        "region",
        &format!("{network}{}", service("compute", "\"Cluster\"")),
    );
    root
}

/// The commands of the example with what its page says that they print.
#[test]
fn the_example_prints_what_its_page_shows() {
    let example = checkout().join("examples/deletion-graph");
    let page = fs::read_to_string(example.join("README.md")).expect("the page");
    let blocks = page.split("```console\n").skip(1);
    let mut shown = 0;
    for block in blocks.filter_map(|block| block.split("```").next()) {
        let (command, expected) = block.split_once('\n').expect("a command and its output");
        let Some(words) = command.strip_prefix("$ kindex graph ") else {
            continue;
        };
        let words: Vec<&str> = words.split_whitespace().collect();
        if words.contains(&">") {
            continue;
        }
        assert_eq!(printed(&example, &words), expected, "{command}");
        shown += 1;
    }
    assert!(shown >= 3, "{shown} commands");
}

#[test]
fn the_order_of_the_seed_is_that_of_its_cleanup() {
    let example = checkout().join("examples/deletion-graph");
    let text = printed(
        &example,
        &[
            "--root",
            "compute",
            "--with",
            "region",
            "--with",
            "identity/crds.toml",
            "-o",
            "json",
        ],
    );
    let document: Value = serde_json::from_str(&text).expect("JSON");
    let kinds = document["kinds"].as_array().expect("a list");
    let order: Vec<(u64, &str)> = kinds
        .iter()
        .map(|kind| {
            (
                kind["step"].as_u64().expect("a number"),
                kind["kind"].as_str().expect("a text"),
            )
        })
        .collect();
    let expected = [
        (1, "Cluster"),
        (2, "Network"),
        (2, "ServerGroup"),
        (3, "CloudIdentity"),
        (4, "Project"),
    ];
    assert_eq!(order, expected);
    let network = &kinds[0]["references"][0];
    assert_eq!(network["targets"][0]["service"], "region");
    assert_eq!(network["targets"][0]["group"], "region.example.com");
    assert_eq!(
        (&network["owned"], &network["onDelete"]),
        (&false.into(), &"cascade".into())
    );
}

#[test]
fn every_form_has_the_shipped_kinds() {
    let root = checkout();
    for form in ["table", "tree", "json", "yaml", "dot", "svg"] {
        let text = printed(&root, &["-o", form]);
        assert!(
            text.contains("PipelineRun") && text.contains("cascade"),
            "{form}: {text}"
        );
    }
}

#[test]
fn the_picture_of_the_book_is_that_of_the_example() {
    let root = checkout();
    let example = root.join("examples/deletion-graph");
    let all = ["--root", "compute", "--with", "region", "--with", "identity"];
    let picture = root.join("docs/src/how-to/declare-references.svg");
    let picture = fs::read_to_string(picture).expect("the picture");
    assert_eq!(printed(&example, &[&all[..], &["-o", "svg"]].concat()), picture);
}

#[test]
fn a_cycle_over_two_files_is_refused_with_the_lines_of_both() {
    let root = two_that_wait_for_each_other();
    for alone in ["compute", "region"] {
        printed(root.path(), &["--root", alone]);
    }
    let output = graph(root.path(), &["--root", "compute", "--with", "region/crds.toml"]);
    let reported = text_of(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{reported}");
    assert_eq!(text_of(&output.stdout), "");
    assert!(
        reported.starts_with("region/crds.toml:11:33: reference cycle: Cluster -> region.Network -> Cluster\n"),
        "{reported}"
    );
    for part in [
        "::: compute/crds.toml:11:35",
        "kind = \"region.Network\"",
        "kind = \"compute.Cluster\"",
        "in the declarations together; nothing was printed",
    ] {
        assert!(reported.contains(part), "`{part}` in:\n{reported}");
    }
}

/// What the page of the example says of a project that names its network.
#[test]
fn the_error_of_the_example_is_found_over_three_files() {
    let example = checkout().join("examples/deletion-graph");
    let page = fs::read_to_string(example.join("README.md")).expect("the page");
    let (_, block) = page.split_once("```toml\n").expect("the page has the error");
    let (block, _) = block.split_once("```").expect("the block ends");
    let root = TempDir::new().expect("a temporary directory");
    for name in ["identity", "region", "compute"] {
        let text = fs::read_to_string(example.join(name).join("crds.toml")).expect("in the checkout");
        let (platform, _) = text.split_once("[kinds.Project]").unwrap_or((&text, ""));
        let more = if name == "identity" { block } else { "" };
        fs::create_dir_all(root.path().join(name)).expect("writable");
        fs::write(root.path().join(name).join("crds.toml"), format!("{platform}{more}")).expect("writable");
    }
    printed(root.path(), &["--root", "identity"]);
    let output = graph(
        root.path(),
        &["--root", "compute", "--with", "region", "--with", "identity"],
    );
    let reported = text_of(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{reported}");
    let cycle = "reference cycle: region.CloudIdentity -> identity.Project -> region.Network -> region.CloudIdentity";
    assert!(reported.contains(cycle), "{reported}");
}

#[test]
fn a_kind_that_its_service_lacks_is_refused() {
    let root = two_that_wait_for_each_other();
    declare(root.path(), "compute", &service("region", "\"Netwrk\""));
    let output = graph(root.path(), &["--root", "compute", "--with", "region"]);
    let reported = text_of(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{reported}");
    assert!(
        reported.contains("region/crds.toml declares no kind \"Netwrk\""),
        "{reported}"
    );
    assert!(reported.contains("did you mean \"Network\"?"), "{reported}");
}

/// Rights to the references of the kind would be checked by a name that nobody grants them by.
#[test]
fn a_plural_that_its_service_does_not_have_is_refused() {
    let root = TempDir::new().expect("a temporary directory");
    let identity = "[kinds.CloudIdentity]\nplural = \"cloudidentities\"\nfields = { spec = { a = \"string\" } }\n";
    declare(root.path(), "region", identity);
    let args = ["--root", "compute", "--with", "region"];
    let cluster = "[kinds.Cluster]\nfields = { spec = { a = \"string\" } }\n";
    for (kinds, plural) in [
        ("\"CloudIdentity\"", "cloudidentitys"),
        ("{ kind = \"CloudIdentity\", plural = \"identities\" }", "identities"),
    ] {
        declare(
            root.path(),
            "compute",
            &format!("{cluster}{}", service("region", kinds)),
        );
        let output = graph(root.path(), &args);
        let reported = text_of(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{reported}");
        let both =
            format!("the plural of CloudIdentity is \"{plural}\" here, and \"cloudidentities\" in region/crds.toml\n");
        let help = "help: list it with the plural: { kind = \"CloudIdentity\", plural = \"cloudidentities\" }";
        assert!(reported.contains(&both) && reported.contains(help), "{reported}");
    }
    let kinds = "{ kind = \"CloudIdentity\", plural = \"cloudidentities\" }";
    declare(
        root.path(),
        "compute",
        &format!("{cluster}{}", service("region", kinds)),
    );
    printed(root.path(), &args);
}

#[test]
fn a_kind_of_two_files_is_refused() {
    let root = two_that_wait_for_each_other();
    let copy = root.path().join("copy.toml");
    fs::copy(root.path().join("compute/crds.toml"), copy).expect("writable");
    let output = graph(root.path(), &["--root", "compute", "--with", "copy.toml"]);
    let reported = text_of(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{reported}");
    assert!(
        reported.contains("two files declare the kind Cluster of compute.example"),
        "{reported}"
    );
}

#[test]
fn a_file_that_is_named_twice_is_a_usage_error_and_not_one_of_each_kind() {
    let root = two_that_wait_for_each_other();
    for (args, why) in [
        (
            &["--root", "compute", "--with", "region", "--with", "./region/crds.toml"][..],
            "error: --with ./region/crds.toml: --with names this file twice\n",
        ),
        (
            &["--root", "compute", "--with", "compute"],
            "error: --with compute: this is the file of --root\n",
        ),
    ] {
        let output = graph(root.path(), args);
        let reported = text_of(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{reported}");
        assert!(reported.starts_with(why), "{reported}");
    }
}

/// No single file shows that a cluster goes before the project of its network without naming it.
#[test]
fn a_reference_that_follows_over_three_files_is_a_note_and_no_error() {
    let root = TempDir::new().expect("a temporary directory");
    let kind = |name: &str, references: &[(&str, &str)]| {
        let fields = references.iter().map(|(field, _)| format!("{field} = \"string\""));
        let fields: Vec<String> = fields.collect();
        let declared = references.iter().map(|(field, target)| {
            format!("{field} = {{ kind = \"{target}\", path = \"spec.{field}\", on_delete = \"cascade\" }}\n")
        });
        let declared: String = declared.collect();
        let fields = fields.join(", ");
        format!("[kinds.{name}]\nfields = {{ spec = {{ {fields} }} }}\n[kinds.{name}.references]\n{declared}")
    };
    let to_project = ("project", "identity.Project");
    let identity = service("identity", "\"Project\"");
    let cluster = kind("Cluster", &[("network", "region.Network"), to_project]) + &service("region", "\"Network\"");
    declare(root.path(), "compute", &(cluster + &identity));
    declare(root.path(), "region", &(kind("Network", &[to_project]) + &identity));
    declare(
        root.path(),
        "identity",
        "[kinds.Project]\nfields = { spec = { title = \"string\" } }\n",
    );

    for some in [
        &["--root", "compute"][..],
        &["--root", "compute", "--with", "identity"],
        &["--root", "region", "--with", "identity"],
    ] {
        let output = graph(root.path(), some);
        assert!(!text_of(&output.stderr).contains("follows"), "{some:?}");
        assert_eq!(output.status.code(), Some(0), "{some:?}");
    }
    let all = [
        "--root",
        "compute",
        "--with",
        "region/crds.toml",
        "--with",
        "identity",
        "-o",
        "json",
    ];
    let output = graph(root.path(), &all);
    let said = text_of(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let trail = "Cluster -> region.Network -> identity.Project";
    let note = format!("note: compute/crds.toml: reference \"project\" of Cluster follows from others: {trail}\n");
    assert!(said.starts_with(&note), "{said}");
    assert!(
        said.ends_with("K703 is explained in docs/src/reference/lint/k703.md\n"),
        "{said}"
    );
    assert_eq!(said.matches("note:").count(), 1, "{said}");
    serde_json::from_str::<Value>(&text_of(&output.stdout)).expect("notes are not in the document");
}

#[test]
fn an_error_in_another_file_names_that_file() {
    let root = two_that_wait_for_each_other();
    declare(
        root.path(),
        "region",
        "[kinds.Network]\nfields = { spec = { size = \"strng\" } }\n",
    );
    let output = graph(root.path(), &["--root", "compute", "--with", "region"]);
    let reported = text_of(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{reported}");
    assert!(reported.starts_with("region/crds.toml:10:"), "{reported}");
}

#[test]
fn an_error_in_the_file_of_the_root_names_it_as_it_is_found_from_here() {
    let root = two_that_wait_for_each_other();
    declare(
        root.path(),
        "compute",
        "[kinds.Cluster]\nfields = { spec = { size = \"strng\" } }\n",
    );
    for (directory, args, file) in [
        (
            root.path().to_owned(),
            &["--root", "compute"][..],
            "compute/crds.toml:10:",
        ),
        (root.path().join("compute"), &[], "crds.toml:10:"),
    ] {
        let output = graph(&directory, args);
        let reported = text_of(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{reported}");
        assert!(reported.starts_with(file), "{reported}");
        assert!(
            reported.contains("1 error in the declaration; nothing was printed"),
            "{reported}"
        );
    }
}

#[test]
fn a_file_that_is_not_there_is_a_usage_error_with_a_hint() {
    let root = two_that_wait_for_each_other();
    for args in [
        &["--root", "nowhere"][..],
        &["--root", "compute", "--with", "nowhere/crds.toml"],
        &["--root", "compute", "-o", "png"],
    ] {
        let output = graph(root.path(), args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", text_of(&output.stderr));
    }
    let output = graph(root.path(), &["--root", "compute", "--with", "nowhere"]);
    let reported = text_of(&output.stderr);
    assert!(
        reported.starts_with("error: --with nowhere: no such file\n  hint: "),
        "{reported}"
    );
}
