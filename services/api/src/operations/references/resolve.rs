//! The tree below an object that is asked for by its own name, or by that of its references.

use kindex_kube_api::request::Verb;
use kindex_model::reference_name::ReferenceName;
use tokio::time::Instant;

use super::holder::no_holder;
use super::look::HolderLookup;
use super::question::Question;
use super::tree::{Bounds, Node, grow};
use crate::operations::rights::RequiredPermission;
use crate::operations::{Caller, ObjectKey, Operations, Refusal};

impl Operations {
    /// An object with all that hold it or name it by a declared field, and those that hold them.
    ///
    /// # Errors
    /// 404 where neither the cluster nor SQL has the object. What cannot be read below it is said in its place.
    pub async fn holders(&self, caller: &Caller, key: &ObjectKey<'_>, bounds: Bounds) -> Result<Node, Refusal> {
        let question = Question::new(Instant::now());
        self.holders_in(&question, caller, key, bounds).await
    }

    /// The same, as a part of a question that may be about other objects too.
    pub(in super::super) async fn holders_in(
        &self,
        question: &Question,
        caller: &Caller,
        key: &ObjectKey<'_>,
        bounds: Bounds,
    ) -> Result<Node, Refusal> {
        self.rights
            .allow(caller, RequiredPermission::at(Verb::Get, key))
            .await?;
        let lookup = HolderLookup::new(self, caller, bounds, question);
        let root = lookup.root(key).await?.ok_or_else(|| Refusal::not_found(key))?;
        Ok(grow(&lookup, root, bounds).await)
    }

    /// A holder of another service as that describes it, without its own holders. Where the service does not say it,
    /// the state is unknown, and a note says why.
    pub async fn foreign_holder(&self, question: &Question, reference: &ReferenceName) -> Node {
        let caller = Caller::default();
        let lookup = HolderLookup::new(self, &caller, Bounds::default(), question);
        lookup.foreign(reference).await
    }

    /// As [`Self::holders`], of the object whose references have this name, with the fields by which it holds others.
    ///
    /// # Errors
    /// 404 where no object of the uid is known.
    pub async fn holders_of_holder(&self, caller: &Caller, reference: &str, bounds: Bounds) -> Result<Node, Refusal> {
        let reference = super::named(reference)?;
        let Some(kind) = self.backends.kind_of(&reference) else {
            return Err(no_holder(&reference));
        };
        let Some(stored) = self.backends.stored_holder(kind, &reference).await? else {
            // Whoever may read nothing of the kind learns no more from this.
            self.rights
                .allow(caller, RequiredPermission::of(Verb::Get, kind.into(), None))
                .await?;
            return Err(self.backends.no_holder_of_ours(&reference));
        };
        let metadata = &stored.object.metadata;
        let key = ObjectKey {
            resource: kind.into(),
            namespace: &metadata.namespace,
            name: &metadata.name,
        };
        self.rights
            .allow(caller, RequiredPermission::at(Verb::Get, &key))
            .await?;
        let question = Question::new(Instant::now());
        let lookup = HolderLookup::new(self, caller, bounds, &question);
        let root = lookup.root(&key).await?.filter(|node| node.uid == reference.uid());
        let root = match root {
            Some(root) => root,
            None => lookup.stored(kind, &stored).await,
        };
        // By these, the service that asks knows how its own objects are held.
        let root = Node {
            targets: lookup.targets(kind, &stored),
            ..root
        };
        Ok(grow(&lookup, root, bounds).await)
    }
}
