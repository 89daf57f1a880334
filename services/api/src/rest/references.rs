//! References by REST: below an object's own path, and by the short path that is the same in every service. Which paths
//! are ours follows from the kinds; what is the core group's stays the cluster's.

use axum::http::Method;
use axum::response::Response;
use kindex_kube_api::request::{Query, Verb, parameter, unescaped};
use kindex_model::kind::{Kind, Scope};
use kindex_model::object::ResourceVersion;

use super::{Rest, exchange};
use crate::operations::{Bounds, Caller, ObjectKey, Reason, Refusal, Resource};

/// The last part of the paths of all references of an object.
const REFERENCES: &str = "references";
/// The resources of the core group, and what it has served in their place. A kind of such a plural has no short path
/// without its group.
const CORE: [&str; 20] = [
    "bindings",
    "componentstatuses",
    "configmaps",
    "endpoints",
    "events",
    "limitranges",
    "namespaces",
    "nodes",
    "persistentvolumeclaims",
    "persistentvolumes",
    "pods",
    "podtemplates",
    "proxy",
    "redirect",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "serviceaccounts",
    "services",
    "watch",
];

/// What a path asks about.
#[derive(Clone, Debug)]
pub(super) enum About {
    /// References on an object.
    Of(OfObject),
    /// The object whose references have this name, whatever it holds.
    Holder(String),
}

/// References on an object.
#[derive(Clone, Debug)]
pub(super) struct OfObject {
    resource: Resource,
    namespace: String,
    name: String,
    /// All of them where none is named.
    reference: Option<String>,
}

impl About {
    /// The name of the kind, as far as the path says it.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Of(OfObject { resource, .. }) => resource.kind.name,
            Self::Holder(_) => "",
        }
    }
}

/// What a path asks about, if it is about references of objects of our kinds.
pub(super) fn about(kinds: &[&'static Kind], path: &str) -> Option<Result<About, Refusal>> {
    if !path.contains(REFERENCES) {
        return None;
    }
    // A slash at the end is allowed, as everywhere.
    let path = path.trim_end_matches('/');
    let parts: Vec<String> = path.split('/').skip(1).map(unescaped).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    match parts.as_slice() {
        ["api", "v1", REFERENCES, reference @ ..] if !reference.is_empty() => {
            Some(Ok(About::Holder(reference.join("/"))))
        }
        ["api", "v1", resource, rest @ ..] => short(kinds, resource, rest),
        ["apis", group, version, "namespaces", namespace, plural, name, rest @ ..] => {
            let resource = declared(kinds, group, version, plural)?;
            let is_namespaced = resource.kind.scope == Scope::Namespaced;
            below(resource, namespace, name, rest)
                .filter(|_| is_namespaced)
                .map(About::Of)
                .map(Ok)
        }
        ["apis", group, version, plural, name, rest @ ..] => {
            let resource = declared(kinds, group, version, plural)?;
            let is_of_cluster = resource.kind.scope == Scope::Cluster;
            below(resource, "", name, rest)
                .filter(|_| is_of_cluster)
                .map(About::Of)
                .map(Ok)
        }
        _ => None,
    }
}

/// `{resource}/{namespace}/{name}/references…`, without the namespace for kinds of the whole cluster.
fn short(kinds: &[&'static Kind], resource: &str, rest: &[&str]) -> Option<Result<About, Refusal>> {
    let is_meant = |kind: &&'static Kind| match resource.strip_prefix(kind.plural) {
        Some("") => !CORE.contains(&resource),
        Some(group) => group.strip_prefix('.') == Some(kind.group),
        None => false,
    };
    let found: Vec<OfObject> = kinds
        .iter()
        .copied()
        .filter(is_meant)
        .filter_map(|kind| of_kind(kind, rest))
        .collect();
    match found.as_slice() {
        [] => None,
        [about] => Some(Ok(About::Of(about.clone()))),
        several => Some(Err(ambiguous(resource, several))),
    }
}

fn of_kind(kind: &'static Kind, rest: &[&str]) -> Option<OfObject> {
    match (kind.scope, rest) {
        (Scope::Namespaced, [namespace, name, rest @ ..]) => below(kind.into(), namespace, name, rest),
        (Scope::Cluster, [name, rest @ ..]) => below(kind.into(), "", name, rest),
        (Scope::Namespaced, _) | (Scope::Cluster, []) => None,
    }
}

/// `references` and what follows: nothing, or a reference in as many parts as its slashes make of it.
fn below(resource: Resource, namespace: &str, name: &str, rest: &[&str]) -> Option<OfObject> {
    let [REFERENCES, reference @ ..] = rest else {
        return None;
    };
    let is_named = !name.is_empty() && (resource.kind.scope == Scope::Cluster || !namespace.is_empty());
    is_named.then(|| OfObject {
        resource,
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        reference: (!reference.is_empty()).then(|| reference.join("/")),
    })
}

fn declared(kinds: &[&'static Kind], group: &str, version: &str, plural: &str) -> Option<Resource> {
    let mut kinds = kinds.iter().copied();
    let kind = kinds.find(|kind| kind.group == group && kind.plural == plural)?;
    Resource::all(kind).find(|resource| resource.version == version)
}

fn ambiguous(resource: &str, several: &[OfObject]) -> Refusal {
    let names = several.iter().map(|about| about.resource.kind);
    let names: Vec<String> = names.map(|kind| format!("{}.{}", kind.plural, kind.group)).collect();
    Refusal::new(
        Reason::NotFound,
        format!(
            "{resource} may be {}: write one of these in the path",
            names.join(" or ")
        ),
    )
}

/// As Kubernetes names what is done.
pub(super) fn verb(method: &Method) -> Option<Verb> {
    match *method {
        Method::GET => Some(Verb::Get),
        Method::PUT => Some(Verb::Update),
        Method::DELETE => Some(Verb::Delete),
        _ => None,
    }
}

/// Answers a request about references.
pub(super) async fn answer(
    rest: &Rest,
    caller: &Caller,
    about: &About,
    method: &Method,
    query: &Query,
) -> Result<Response, Refusal> {
    match (about, method) {
        (About::Of(about), _) => of_object(rest, caller, about, method, query).await,
        (About::Holder(reference), &Method::GET) => {
            let tree = rest
                .operations
                .holders_of_holder(caller, reference, bounds(query)?)
                .await?;
            Ok(exchange::json(tree.to_json()))
        }
        (About::Holder(_), _) => Err(Refusal::method_not_allowed()),
    }
}

async fn of_object(
    rest: &Rest,
    caller: &Caller,
    about: &OfObject,
    method: &Method,
    query: &Query,
) -> Result<Response, Refusal> {
    let operations = &rest.operations;
    let key = ObjectKey {
        resource: about.resource,
        namespace: &about.namespace,
        name: &about.name,
    };
    let said = match (method, about.reference.as_deref()) {
        (&Method::GET, None) if query.flag("resolve")? => {
            let tree = operations.holders(caller, &key, bounds(query)?).await?;
            return Ok(exchange::json(tree.to_json()));
        }
        (&Method::GET, None) => match limit(query)? {
            Some(limit) => operations.first_references(caller, &key, limit).await?,
            None => operations.references(caller, &key, None).await?,
        },
        (&Method::GET, reference) => operations.references(caller, &key, reference).await?,
        (&Method::PUT, Some(reference)) => match query.flag("renew")? {
            true => operations.renew_reference(caller, &key, reference).await?,
            false => operations.put_reference(caller, &key, reference).await?,
        },
        (&Method::DELETE, Some(reference)) => {
            let at = query.version()?.map(ResourceVersion);
            operations.delete_reference(caller, &key, reference, at).await?
        }
        _ => return Err(Refusal::method_not_allowed()),
    };
    Ok(exchange::json(said.into_answer().text))
}

/// At most how many references are wanted; all where nothing is said of it. Unlike in lists of objects, 0 is none: who
/// asks so wants to know how far the object is.
fn limit(query: &Query) -> Result<Option<u32>, Refusal> {
    let Some(limit) = query.get(parameter::LIMIT) else {
        return Ok(None);
    };
    let wanted = limit.parse::<u32>();
    let unclear = |_| {
        Refusal::bad_request(format!(
            "limit {limit:?} is not a number of references: write 0 or more"
        ))
    };
    wanted.map(Some).map_err(unclear)
}

/// How much of a tree is wanted: no more than is shown to everybody.
fn bounds(query: &Query) -> Result<Bounds, Refusal> {
    let most = Bounds::default();
    let Some(depth) = query.get("depth") else {
        return Ok(most);
    };
    let wanted = depth
        .parse::<usize>()
        .ok()
        .filter(|depth| (1..=most.depth).contains(depth));
    let depth = wanted.ok_or_else(|| {
        Refusal::bad_request(format!(
            "depth {depth:?} is not a number of steps: write 1 to {}",
            most.depth
        ))
    })?;
    Ok(Bounds { depth, ..most })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELD: &str = "run.g/u";
    /// What `kubectl api-resources --api-group=` lists, and `proxy`, `redirect` and `watch`, of which the core group
    /// had paths.
    const OF_THE_CLUSTER: &str = "bindings componentstatuses configmaps endpoints events limitranges namespaces nodes \
                                  persistentvolumeclaims persistentvolumes pods podtemplates proxy redirect \
                                  replicationcontrollers resourcequotas secrets serviceaccounts services watch";
    static RUN: Kind = Kind {
        name: "Run",
        group: "g.example.com",
        version: "v1",
        plural: "runs",
        singular: "run",
        table: "run",
        ..Kind::EMPTY
    };
    static OTHER_RUN: Kind = Kind {
        group: "h.example.com",
        ..RUN
    };
    static ZONE: Kind = Kind {
        name: "Zone",
        plural: "zones",
        scope: Scope::Cluster,
        ..RUN
    };
    static NODE: Kind = Kind {
        name: "Node",
        plural: "nodes",
        scope: Scope::Cluster,
        ..RUN
    };

    /// Resource, namespace, name and reference; `-` for none.
    fn read(kinds: &[&'static Kind], path: &str) -> Option<String> {
        let about = about(kinds, path)?.expect("not ambiguous");
        let OfObject {
            resource,
            namespace,
            name,
            reference,
        } = match about {
            About::Of(about) => about,
            About::Holder(reference) => return Some(format!("the holder {reference}")),
        };
        let reference = reference.as_deref().unwrap_or("-");
        Some(format!(
            "{}.{} {namespace:?} {name} {reference}",
            resource.kind.plural, resource.kind.group
        ))
    }

    #[test]
    fn a_reference_is_named_by_either_path_its_slash_escaped_or_not() {
        let run = format!("runs.g.example.com \"n\" a {HELD}");
        let zone = format!("zones.g.example.com \"\" a {HELD}");
        for (path, expected) in [
            ("/api/v1/runs/n/a/references/run.g/u", &run),
            ("/api/v1/runs/n/a/references/run.g%2Fu", &run),
            ("/api/v1/runs/n/a/references/run.g%2fu/", &run),
            ("/api/v1/runs.g.example.com/n/a/references/run.g/u", &run),
            ("/apis/g.example.com/v1/namespaces/n/runs/a/references/run.g/u", &run),
            ("/apis/g.example.com/v1/namespaces/n/runs/a/references/run.g%2Fu", &run),
            ("/api/v1/zones/a/references/run.g/u", &zone),
            ("/apis/g.example.com/v1/zones/a/references/run.g%2Fu", &zone),
        ] {
            assert_eq!(read(&[&RUN, &ZONE], path).as_ref(), Some(expected), "{path}");
        }
        let all = read(&[&RUN], "/api/v1/runs/n/references/references");
        assert_eq!(all.as_deref(), Some("runs.g.example.com \"n\" references -"));
        let malformed = read(&[&RUN], "/api/v1/runs/n/a/references/a/b/c");
        let holder = read(&[&RUN], "/api/v1/references/run.g%2Fu");
        assert_eq!(holder.as_deref(), Some("the holder run.g/u"));
        assert_eq!(read(&[&RUN], "/api/v1/references"), None);
        assert_eq!(
            malformed.as_deref(),
            Some("runs.g.example.com \"n\" a a/b/c"),
            "for the parser to refuse"
        );
    }

    #[test]
    fn what_is_the_clusters_stays_the_clusters() {
        for path in [
            "/api/v1/nodes/a/references/run.g/u",
            "/api/v1/nodes/a/references",
            "/api/v1/namespaces/n/services/references",
            "/api/v1/namespaces/n/pods/a/references",
            "/apis/g.example.com/v1/namespaces/n/runs/a",
            "/apis/g.example.com/v1/namespaces/n/runs/a/status",
            "/apis/g.example.com/v2/namespaces/n/runs/a/references",
            "/apis/g.example.com/v1/runs/a/references",
            "/apis/g.example.com/v1/namespaces/n/nodes/a/references",
            "/apis/other.example.com/v1/namespaces/n/runs/a/references",
            "/api/v1/runs/n/a",
            "/api/v1/runs/n//references",
            "/api/v1/runs//a/references",
            "/api/v2/runs/n/a/references",
            "/api/v1/jobs/n/a/references",
        ] {
            assert_eq!(read(&[&RUN, &NODE], path), None, "{path}");
        }
        let own = read(&[&NODE], "/api/v1/nodes.g.example.com/a/references/run.g/u");
        assert_eq!(
            own,
            Some(format!("nodes.g.example.com \"\" a {HELD}")),
            "with its group it is not a core resource"
        );
    }

    #[test]
    fn a_kind_takes_no_path_of_a_core_resource_of_its_plural() {
        let words: Vec<&str> = OF_THE_CLUSTER.split_whitespace().collect();
        assert_eq!(words, CORE);
        for plural in words {
            let namespaced: &'static Kind = Box::leak(Box::new(Kind { plural, ..RUN }));
            let of_cluster: &'static Kind = Box::leak(Box::new(Kind { plural, ..ZONE }));
            for (kind, object) in [(namespaced, "n/a"), (of_cluster, "a")] {
                for references in [REFERENCES, "references/run.g/u"] {
                    let path = format!("/api/v1/{plural}/{object}/{references}");
                    assert_eq!(read(&[kind], &path), None, "{path}");
                    let own = format!("/api/v1/{plural}.g.example.com/{object}/{references}");
                    assert!(read(&[kind], &own).is_some(), "{own}");
                }
            }
        }
    }

    #[test]
    fn a_tree_is_as_deep_as_it_is_asked_for_and_may_be() {
        let depth = |query: &str| {
            bounds(&Query::parse(query))
                .map(|bounds| bounds.depth)
                .map_err(|error| error.code)
        };
        assert_eq!(depth(""), Ok(16));
        assert_eq!((depth("depth=1"), depth("depth=16")), (Ok(1), Ok(16)));
        for wrong in ["depth=0", "depth=17", "depth=x"] {
            assert_eq!(depth(wrong), Err(400), "{wrong}");
        }
    }

    #[test]
    fn a_limit_is_a_number_and_0_is_none() {
        let limit = |query: &str| limit(&Query::parse(query)).map_err(|error| error.code);
        assert_eq!((limit(""), limit("limit=")), (Ok(None), Ok(None)));
        assert_eq!((limit("limit=0"), limit("limit=500")), (Ok(Some(0)), Ok(Some(500))));
        for wrong in ["limit=-1", "limit=x", "limit=1.5", "limit=99999999999"] {
            assert_eq!(limit(wrong), Err(400), "{wrong}");
        }
    }

    #[test]
    fn a_plural_of_two_kinds_is_refused_without_its_group() {
        let kinds: &[&'static Kind] = &[&RUN, &OTHER_RUN];
        let refused = about(kinds, "/api/v1/runs/n/a/references")
            .expect("ours")
            .expect_err("two kinds");
        assert_eq!(refused.code, 404);
        assert_eq!(
            refused.message,
            "runs may be runs.g.example.com or runs.h.example.com: write one of these in the path"
        );
        let other = read(kinds, "/api/v1/runs.h.example.com/n/a/references");
        assert_eq!(other.as_deref(), Some("runs.h.example.com \"n\" a -"));
    }
}
