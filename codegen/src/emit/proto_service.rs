//! gRPC services: one `.proto` file for each kind, with the messages and numbers of Michelangelo's API server, and a
//! call for the status and one for watching beside them.

use askama::Template;

use crate::artifact::{Artifacts, HEADER, RelativePath};
use crate::model::{Kind, MessageName, Model, QualifiedName, SubresourceStatus};

/// The directory of emitted `.proto` files; below it lies the import path.
const DIRECTORY: &str = "schema/proto";

/// Kubernetes' options, which every request carries.
const META_PACKAGE: &str = "k8s.io.apimachinery.pkg.apis.meta.v1";
const META_FILE: &str = "k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto";

/// What a list request may ask for beyond Kubernetes' options, where the platform declares it.
const LIST_OPTIONS: &str = "michelangelo.api.ListOptionsExt";

/// One file for each kind.
pub(super) fn emit(model: &Model) -> Artifacts {
    model.kinds.iter().map(|kind| (path(kind), file(model, kind))).collect()
}

fn path(kind: &Kind) -> RelativePath {
    let package = package(kind).replace('.', "/");
    let separator = if package.is_empty() { "" } else { "/" };
    let module = &kind.module;
    RelativePath::new(format!("{DIRECTORY}/{package}{separator}{module}_svc.proto"))
}

/// How other files import an emitted one.
pub(super) fn import_path(path: &RelativePath) -> &str {
    let below = path.as_str().strip_prefix(DIRECTORY);
    below.expect("emitted below the directory").trim_start_matches('/')
}

/// The package of the kind's messages, in which its service is declared as well.
fn package(kind: &Kind) -> &str {
    let name = kind.root.full();
    name.strip_suffix(kind.root.base())
        .expect("a name ends with its last segment")
        .trim_end_matches('.')
}

fn file(model: &Model, kind: &Kind) -> String {
    let root = model.message(&kind.root);
    let list_options = message_file(model, LIST_OPTIONS);
    let list = format!("{}List", kind.root);
    let mut imports = vec![META_FILE, &root.file];
    imports.extend(list_options);
    imports.extend(message_file(model, &list));
    imports.sort_unstable();
    imports.dedup();
    let service = Service {
        header: HEADER,
        package: package(kind),
        package_dot: match package(kind) {
            "" => String::new(),
            package => format!("{package}."),
        },
        imports,
        kind: kind.name.as_str(),
        plural: &kind.plural,
        doc: kind.doc.lines().collect(),
        root: kind.root.base(),
        field: &kind.module,
        meta: META_PACKAGE,
        has_status: matches!(kind.status, SubresourceStatus::Present(_)),
        declares_list: message_file(model, &list).is_none(),
        list_options: list_options.map(|_| LIST_OPTIONS),
    };
    let mut text = service.render().expect("the template writes into a string");
    text.push('\n');
    text
}

/// The file that declares a message, if some file does.
fn message_file<'a>(model: &'a Model, name: &str) -> Option<&'a str> {
    let name = MessageName::parse(name).ok()?;
    let message = model.messages.get(&name)?;
    Some(&message.file)
}

#[derive(Template)]
#[template(path = "service.proto.txt", escape = "none")]
struct Service<'a> {
    header: &'static str,
    package: &'a str,
    package_dot: String,
    imports: Vec<&'a str>,
    kind: &'a str,
    plural: &'a str,
    doc: Vec<&'a str>,
    root: &'a str,
    field: &'a str,
    meta: &'static str,
    has_status: bool,
    declares_list: bool,
    list_options: Option<&'static str>,
}
