//! `kindex.references.v1`: the references on objects. What a call does is said in `operations`.

use std::sync::Arc;

use http::HeaderMap;
use kindex_kube_api::request::{QueryError, Verb};
use kindex_model::deletion::PhaseCondition;
use kindex_model::object::ResourceVersion;
use tonic::{Request, Response, Status};

use super::{Deadline, QUESTION_MAX_BYTES, object, status};
use crate::identity;
use crate::metrics::Operation;
use crate::operations::{
    Bounds, Caller, Field, Holder, ListedReference, NamingField, Node, ObjectKey, Operations, Reason, References,
    Refusal, Resource,
};

use v1::references_server::{References as Calls, ReferencesServer};
use v1::{
    DeleteReferenceRequest, DeleteReferenceResponse, GetReferenceRequest, GetReferenceResponse, ListReferencesRequest,
    ListReferencesResponse, ObjectName, PutReferenceRequest, PutReferenceResponse,
};

/// Messages and the server.
#[allow(missing_docs, unreachable_pub, clippy::all)]
pub(super) mod v1 {
    tonic::include_proto!("kindex.references.v1");
}

/// The encoded `google.protobuf.FileDescriptorSet` of them.
pub(super) const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
/// The full name of the service.
pub(super) const NAME: &str = "kindex.references.v1.References";

/// The service over these operations.
pub(super) fn service(operations: Arc<Operations>) -> ReferencesServer<Served> {
    ReferencesServer::new(Served { operations }).max_decoding_message_size(QUESTION_MAX_BYTES)
}

/// The server of references.
pub(super) struct Served {
    operations: Arc<Operations>,
}

/// Who asks, and how long they wait.
struct RequestContext {
    caller: Caller,
    deadline: Deadline,
}

impl RequestContext {
    fn of<T>(request: &Request<T>) -> Result<Self, Status> {
        let headers: &HeaderMap = request.metadata().as_ref();
        let deadline = Deadline::read(headers)?;
        Ok(Self {
            caller: identity::caller(headers),
            deadline: request.extensions().get().copied().unwrap_or(deadline),
        })
    }
}

/// The object that a message names, once its kind is known.
struct Named {
    resource: Resource,
    name: ObjectName,
}

impl Named {
    fn key(&self) -> ObjectKey<'_> {
        ObjectKey {
            resource: self.resource,
            namespace: &self.name.namespace,
            name: &self.name.name,
        }
    }
}

/// What is wanted of the references on an object.
struct Listing {
    limit: Option<u32>,
    resolve: bool,
    depth: Option<u32>,
}

impl Served {
    fn named(&self, name: Option<ObjectName>) -> Result<Named, Refusal> {
        let name = name.filter(|name| !name.name.is_empty());
        let name = name.ok_or_else(|| Refusal::bad_request("the message names no object"))?;
        let kinds = self.operations.registry().kinds.iter().copied();
        let is_meant = |kind: &&'static kindex_model::kind::Kind| {
            let group = name.resource.strip_prefix(kind.plural);
            group.is_some_and(|group| group.is_empty() || group.strip_prefix('.') == Some(kind.group))
        };
        let found: Vec<_> = kinds.filter(is_meant).collect();
        match found.as_slice() {
            [kind] => {
                let resource = Resource::from(*kind);
                // The caller's right is that of the place: one in a namespace is none to what is in no namespace.
                object::key(resource.kind, &name.namespace, &name.name)?;
                Ok(Named { resource, name })
            }
            [] => Err(Refusal::new(
                Reason::NotFound,
                format!("{:?} is not a resource", name.resource),
            )),
            _ => Err(Refusal::bad_request(format!(
                "{:?} is of several groups: add one",
                name.resource
            ))),
        }
    }

    /// The references on an object, or the tree of its holders.
    async fn listed(
        &self,
        caller: &Caller,
        key: &ObjectKey<'_>,
        listing: &Listing,
    ) -> Result<ListReferencesResponse, Refusal> {
        if listing.resolve {
            let tree = self.operations.holders(caller, key, bounds(listing.depth)?).await?;
            return Ok(ListReferencesResponse {
                tree: Some(node(tree)),
                ..ListReferencesResponse::default()
            });
        }
        let said = match listing.limit {
            Some(limit) => self.operations.first_references(caller, key, limit).await?,
            None => self.operations.references(caller, key, None).await?,
        };
        Ok(ListReferencesResponse {
            target: Some(target_of(&said)),
            references: references_of(&said),
            tree: None,
        })
    }

    /// Waits for an answer as long as the client does, and takes note of it.
    async fn done<T>(
        &self,
        context: &RequestContext,
        verb: Verb,
        named: Result<&Named, Refusal>,
        answer: impl Future<Output = Result<T, Refusal>>,
    ) -> Result<(T, Operation), Status> {
        let kind = named.as_ref().map_or("", |named| named.resource.kind.name);
        let answered = match named {
            Ok(_) => context.deadline.bound(answer).await?,
            Err(refusal) => Err(refusal),
        };
        let code = answered.as_ref().map_or_else(|refusal| refusal.code, |_| 200);
        if verb != Verb::Get || matches!(code, 401 | 403) {
            let user = self.operations.known(&context.caller);
            let verb = verb.as_str();
            tracing::info!(target: "kindex_api::audit", user, method = "gRPC", service = NAME, verb, code, "answered");
        }
        let group = self.operations.registry().platform.group;
        let said = answered.map_err(|refusal| status::of(&refusal, group))?;
        let operation = Operation {
            verb: verb.into(),
            kind,
        };
        Ok((said, operation))
    }
}

fn respond<T>(message: T, operation: Operation) -> Response<T> {
    let mut response = Response::new(message);
    response.extensions_mut().insert(operation);
    response
}

#[tonic::async_trait]
impl Calls for Served {
    async fn put_reference(
        &self,
        request: Request<PutReferenceRequest>,
    ) -> Result<Response<PutReferenceResponse>, Status> {
        let context = RequestContext::of(&request)?;
        let PutReferenceRequest {
            target,
            reference,
            renew,
        } = request.into_inner();
        let named = self.named(target);
        let answer = async {
            let named = named.as_ref().map_err(Refusal::clone)?;
            let (caller, key) = (&context.caller, named.key());
            match renew {
                true => self.operations.renew_reference(caller, &key, &reference).await,
                false => self.operations.put_reference(caller, &key, &reference).await,
            }
        };
        let named = named.as_ref().map_err(Refusal::clone);
        let (said, operation) = self.done(&context, Verb::Update, named, answer).await?;
        let message = PutReferenceResponse {
            target: Some(target_of(&said)),
            references: references_of(&said),
        };
        Ok(respond(message, operation))
    }

    async fn delete_reference(
        &self,
        request: Request<DeleteReferenceRequest>,
    ) -> Result<Response<DeleteReferenceResponse>, Status> {
        let context = RequestContext::of(&request)?;
        let DeleteReferenceRequest {
            target,
            reference,
            resource_version,
        } = request.into_inner();
        let named = self.named(target);
        let answer = async {
            let named = named.as_ref().map_err(Refusal::clone)?;
            let (caller, key) = (&context.caller, named.key());
            let at = version(&resource_version)?;
            self.operations.delete_reference(caller, &key, &reference, at).await
        };
        let named = named.as_ref().map_err(Refusal::clone);
        let (said, operation) = self.done(&context, Verb::Delete, named, answer).await?;
        let target = Some(target_of(&said));
        Ok(respond(DeleteReferenceResponse { target }, operation))
    }

    async fn get_reference(
        &self,
        request: Request<GetReferenceRequest>,
    ) -> Result<Response<GetReferenceResponse>, Status> {
        let context = RequestContext::of(&request)?;
        let GetReferenceRequest { target, reference } = request.into_inner();
        let named = self.named(target);
        let answer = async {
            let named = named.as_ref().map_err(Refusal::clone)?;
            let (caller, key) = (&context.caller, named.key());
            self.operations.references(caller, &key, Some(&reference)).await
        };
        let named = named.as_ref().map_err(Refusal::clone);
        let (said, operation) = self.done(&context, Verb::Get, named, answer).await?;
        let message = GetReferenceResponse {
            target: Some(target_of(&said)),
            reference: references_of(&said).into_iter().next(),
        };
        Ok(respond(message, operation))
    }

    async fn list_references(
        &self,
        request: Request<ListReferencesRequest>,
    ) -> Result<Response<ListReferencesResponse>, Status> {
        let context = RequestContext::of(&request)?;
        let ListReferencesRequest {
            target,
            limit,
            resolve,
            depth,
        } = request.into_inner();
        let named = self.named(target);
        let listing = Listing { limit, resolve, depth };
        let answer = async {
            let named = named.as_ref().map_err(Refusal::clone)?;
            self.listed(&context.caller, &named.key(), &listing).await
        };
        let named = named.as_ref().map_err(Refusal::clone);
        let (message, operation) = self.done(&context, Verb::Get, named, answer).await?;
        Ok(respond(message, operation))
    }
}

/// The version that a release depends on; none where nothing is said of it.
fn version(text: &str) -> Result<Option<ResourceVersion>, Refusal> {
    if text.is_empty() {
        return Ok(None);
    }
    let version = text.parse().map(|version| Some(ResourceVersion(version)));
    version.map_err(|_| QueryError::Version(text.to_owned()).into())
}

/// How much of a tree is wanted.
fn bounds(depth: Option<u32>) -> Result<Bounds, Refusal> {
    let most = Bounds::default();
    let Some(depth) = depth else { return Ok(most) };
    let wanted = usize::try_from(depth).ok();
    let wanted = wanted.filter(|depth| (1..=most.depth).contains(depth));
    let depth = wanted.ok_or_else(|| {
        Refusal::bad_request(format!(
            "depth {depth} is not a number of steps: write 1 to {}",
            most.depth
        ))
    })?;
    Ok(Bounds { depth, ..most })
}

fn target_of(said: &References) -> v1::Target {
    let target = said.target.clone();
    v1::Target {
        api_version: target.api_version,
        kind: target.kind,
        namespace: target.namespace,
        name: target.name,
        uid: target.uid,
        state: target.state.map(|state| state.as_str().to_owned()).unwrap_or_default(),
        is_archived: target.archived,
        released_reference: target.released_reference,
        released_references: target.released_references,
        resource_version: target.resource_version,
    }
}

fn references_of(said: &References) -> Vec<v1::Reference> {
    said.references.iter().cloned().map(reference).collect()
}

fn reference(held: ListedReference) -> v1::Reference {
    let holder = |holder: Holder| v1::Holder {
        namespace: holder.namespace,
        name: holder.name,
        state: holder.state.as_str().to_owned(),
    };
    v1::Reference {
        name: held.name,
        kind: held.kind,
        group: held.group,
        uid: held.uid,
        holder: held.holder.map(holder),
    }
}

fn node(known: Node) -> v1::Node {
    v1::Node {
        kind: known.kind,
        group: known.group,
        namespace: known.namespace,
        name: known.name,
        uid: known.uid,
        service: known.service,
        state: known.state.as_str().to_owned(),
        since: known.since.map(|since| since.to_string()).unwrap_or_default(),
        phases: known.phases.into_iter().map(phase).collect(),
        holds: known.holds,
        fields: known.fields.into_iter().map(field).collect(),
        finalizers: known.finalizers,
        cycle: known.cycle,
        is_repeated: known.repeated,
        notes: known.notes,
        holders: known.holders.into_iter().map(node).collect(),
        targets: known.targets.into_iter().map(naming_field).collect(),
    }
}

fn phase(known: PhaseCondition) -> v1::Phase {
    v1::Phase {
        r#type: known.name,
        status: known.status,
        reason: known.reason,
        message: known.message,
        last_transition_time: known.last_transition_time.to_string(),
    }
}

fn field(known: Field) -> v1::Field {
    v1::Field {
        reference: known.reference,
        path: known.path,
        on_delete: known.on_delete,
        owned: known.owned,
    }
}

fn naming_field(known: NamingField) -> v1::NamingField {
    let Field {
        reference,
        path,
        on_delete,
        owned,
    } = known.field;
    v1::NamingField {
        reference,
        path,
        on_delete,
        owned,
        group: known.group,
        kind: known.kind,
        namespace: known.namespace,
        name: known.name,
    }
}
