//! Lists: the merged one of cluster and SQL, or, with conditions on columns, one of SQL. A list without a limit is
//! whole as long as it fits into what clients take for one message.

use kindex_kube_api::request::parameter;
use kindex_model::kind::{Kind, Scope};
use kindex_model::wire::{ListMeta, TypeMeta};
use prost::Message;

use super::condition::{self, Ext};
use super::message::{self, ListRequest, ListResponse, ObjectList};
use super::object;
use super::past::Past;
use super::reply::{Reply, parsed};
use super::status::{Violation, invalid};
use crate::operations::{Caller, ListOptions, Listed, Operations, Refusal};

/// Once a list without a limit is as long, the rest comes with its token: clients take 4 MiB, unless told otherwise.
const WHOLE_MAX_BYTES: usize = 1024 * 1024;

pub(super) async fn list(
    operations: &Operations,
    caller: &Caller,
    kind: &'static Kind,
    request: ListRequest,
    past: Past,
) -> Result<Reply, Refusal> {
    let mut which = options(kind, &request.namespace, request.options.as_ref())?;
    which.at = past.at;
    which.include_deleted = past.include_deleted;
    if past.at.is_some() && request.ext.is_some() {
        let message = "conditions do not apply to the past: leave them out, or leave out kindex-at";
        return Err(invalid(&[Violation::new("listOptionsExt", message)]));
    }
    let ext = request.ext.as_ref().map(condition::read).transpose()?;
    let is_whole = which.limit == 0 && ext.as_ref().is_none_or(|ext| ext.search.limit == 0);
    let mut written = Written::default();
    loop {
        let page = match &ext {
            None => operations.list(caller, kind, &which).await?,
            Some(ext) => operations.search(caller, kind, &which, &ext.search).await?,
        };
        written.add(kind, &page, ext.as_ref());
        which.continue_token.clone_from(&page.continue_token);
        which.resource_version.clear();
        which.resource_version_match.clear();
        if !is_whole || page.continue_token.is_empty() || written.bytes >= WHOLE_MAX_BYTES {
            return Ok(written.reply(kind, page));
        }
    }
}

/// The options of a list or a watch.
pub(super) fn options(
    kind: &Kind,
    namespace: &str,
    options: Option<&message::ListOptions>,
) -> Result<ListOptions, Refusal> {
    if !namespace.is_empty() || kind.scope == Scope::Cluster {
        object::check_namespace(kind, namespace)?;
    }
    let options = options.cloned().unwrap_or_default();
    if options.limit < 0 {
        return Err(invalid(&[Violation::new(parameter::LIMIT, "is less than 0")]));
    }
    Ok(ListOptions {
        namespace: Some(namespace.to_owned()).filter(|namespace| !namespace.is_empty()),
        labels: options.label_selector,
        fields: options.field_selector,
        limit: u32::try_from(options.limit).unwrap_or(u32::MAX),
        continue_token: options.r#continue,
        include_deleted: false,
        at: None,
        resource_version: options.resource_version,
        resource_version_match: options.resource_version_match,
    })
}

/// What is gathered of a list.
#[derive(Default)]
struct Written {
    list: ObjectList,
    bytes: usize,
    warnings: Vec<String>,
}

impl Written {
    /// Takes a page. What its message cannot hold is left out and named: whoever wrote such an object back would
    /// take away what they never saw.
    fn add(&mut self, kind: &Kind, page: &Listed, ext: Option<&Ext>) {
        for text in &page.items {
            let shown = match ext {
                Some(ext) if !ext.skip.is_empty() => parsed(text).map(|object| ext.without_skipped(object).to_string()),
                Some(_) | None => Ok(text.clone()),
            };
            match shown.and_then(|shown| object::write(kind, &shown)) {
                Ok((bytes, _)) => {
                    self.bytes += bytes.len();
                    self.list.items.push(bytes);
                }
                Err(refusal) => {
                    let (namespace, name) = object::place(text);
                    self.warnings
                        .push(format!("left out {namespace}/{name}: {}", refusal.message));
                }
            }
        }
    }

    fn reply(mut self, kind: &Kind, last: Listed) -> Reply {
        self.list.type_meta = Some(TypeMeta {
            kind: format!("{}List", kind.name),
            api_version: kind.api_version(),
        });
        self.list.metadata = Some(ListMeta {
            resource_version: last.resource_version,
            r#continue: last.continue_token,
            ..ListMeta::default()
        });
        let response = ListResponse { list: Some(self.list) };
        Reply {
            message: response.encode_to_vec(),
            warnings: self.warnings,
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use kindex_model::kind::{Encoded, Problem};

    /// Its message holds no object with a price.
    pub(in crate::grpc) static KIND: Kind = Kind {
        name: "Run",
        group: "g",
        version: "v1",
        plural: "runs",
        singular: "run",
        table: "run",
        encode: |text| match text.contains("price") {
            false => Encoded {
                proto: Some(Vec::new()),
                problems: Vec::new(),
            },
            true => Encoded {
                proto: None,
                problems: vec![Problem {
                    path: "spec.price".to_owned(),
                    message: "is not a number".to_owned(),
                }],
            },
        },
        ..Kind::EMPTY
    };

    #[test]
    fn an_object_that_its_message_cannot_hold_is_named_and_left_out() {
        let object =
            |name: &str, spec: &str| format!(r#"{{"metadata":{{"namespace":"n","name":"{name}"}},"spec":{{{spec}}}}}"#);
        let page = Listed {
            items: vec![object("a", ""), object("b", r#""price":"high""#), object("c", "")],
            resource_version: "7".to_owned(),
            continue_token: String::new(),
        };
        let mut written = Written::default();
        written.add(&KIND, &page, None);
        let reply = written.reply(&KIND, page);
        let list = ListResponse::decode(reply.message.as_slice())
            .expect("a list")
            .list
            .expect("a list");
        assert_eq!(list.items.len(), 2);
        assert_eq!(list.metadata.expect("metadata").resource_version, "7");
        let [warning] = reply.warnings.as_slice() else {
            panic!("one is named")
        };
        assert!(
            warning.starts_with("left out n/b: ") && warning.contains("spec.price"),
            "{warning}"
        );
    }
}
