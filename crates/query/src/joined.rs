//! Queries whose rows come with the objects that they refer to.

use kindex_model::object::Object;

use super::fetch::{Fetched, Streamed, streamed};
use super::narrowing::Runnable;
use super::reference::{Found, Named, Reference};
use super::typed::TypedQuery;
use crate::Reader;
use crate::{Page, Select, Stored};

/// One reference of a query of type `Q`, or a tuple of up to four.
#[diagnostic::on_unimplemented(
    message = "the kind of this query does not declare `{Self}`",
    label = "a reference of another kind",
    note = "a kind's references are in its module: `pipeline_run::reference::PIPELINE`"
)]
pub trait References<Q>: Copy + Send + Sync + 'static {
    /// For each reference the object, in the form of the references themselves.
    type Objects: Send + 'static;

    /// What an object names by each reference.
    #[doc(hidden)]
    fn named(self, object: &Object) -> Vec<Option<Named>>;

    /// As many objects as there are references.
    #[doc(hidden)]
    fn objects(found: Vec<Option<Stored>>) -> Self::Objects;
}

impl<Q: 'static> References<Q> for Reference<Q> {
    type Objects = Option<Stored>;

    fn named(self, object: &Object) -> Vec<Option<Named>> {
        vec![self.of(object)]
    }

    fn objects(mut found: Vec<Option<Stored>>) -> Self::Objects {
        found.pop().flatten()
    }
}

macro_rules! references {
    ($($reference:ident $object:ident)+) => {
        impl<Q: 'static> References<Q> for ($(references!(@reference $reference Q),)+) {
            type Objects = ($(references!(@object $object),)+);

            fn named(self, object: &Object) -> Vec<Option<Named>> {
                let ($($reference,)+) = self;
                vec![$($reference.of(object)),+]
            }

            fn objects(found: Vec<Option<Stored>>) -> Self::Objects {
                let mut found = found.into_iter();
                $(let $object = found.next().flatten();)+
                ($($object,)+)
            }
        }
    };
    (@reference $reference:ident $query:ident) => { Reference<$query> };
    (@object $object:ident) => { Option<Stored> };
}

references!(first a second b);
references!(first a second b third c);
references!(first a second b third c fourth d);

/// A query whose rows come with the objects that they refer to.
///
/// An object is looked up by name once a page, however many rows name it: the one that is not deleted,
/// else the one that was deleted last.
#[must_use = "a query does nothing until it is fetched"]
pub struct Joined<Q, R> {
    query: Q,
    references: R,
}

impl<Q, R> Joined<Q, R>
where
    Q: TypedQuery,
    Q::Narrowing: Runnable,
    R: References<Q::Base>,
{
    /// Follows `references` from the rows of `query`.
    pub fn new(query: Q, references: R) -> Self {
        Self { query, references }
    }

    /// The first page, in the query's order.
    pub fn fetch<'a, S: Reader + ?Sized>(&'a self, store: &'a S) -> Fetched<'a, Page<(Stored, R::Objects)>, S::Error> {
        page::<Q, R, S>(store, self.query.select(), self.references, None)
    }

    /// The page after the one that `continue_token` came with.
    pub fn fetch_after<'a, S: Reader + ?Sized>(
        &'a self,
        store: &'a S,
        continue_token: &str,
    ) -> Fetched<'a, Page<(Stored, R::Objects)>, S::Error> {
        let token = Some(continue_token.to_owned());
        page::<Q, R, S>(store, self.query.select(), self.references, token)
    }

    /// All rows in the query's order, fetched a page at a time.
    pub fn stream<'a, S: Reader + ?Sized>(&'a self, store: &'a S) -> Streamed<'a, (Stored, R::Objects), S::Error> {
        let (select, references) = (self.query.select(), self.references);
        streamed(move |token| page::<Q, R, S>(store, select, references, token))
    }
}

fn page<'a, Q: TypedQuery, R: References<Q::Base>, S: Reader + ?Sized>(
    store: &'a S,
    select: &'a Select,
    references: R,
    token: Option<String>,
) -> Fetched<'a, Page<(Stored, R::Objects)>, S::Error> {
    Box::pin(async move {
        let page = store.select(select, token.as_deref()).await?;
        let named = page.items.iter().map(|stored| references.named(&stored.object));
        let named: Vec<Vec<Option<Named>>> = named.collect();
        let found = Found::look_up(store, named.iter().flatten().flatten().cloned()).await?;
        let items = page.items.into_iter().zip(named);
        Ok(Page {
            items: items
                .map(|(stored, named)| (stored, joined::<Q::Base, R>(&found, named)))
                .collect(),
            continue_token: page.continue_token,
        })
    })
}

fn joined<Q, R: References<Q>>(found: &Found, named: Vec<Option<Named>>) -> R::Objects {
    let objects = named.into_iter().map(|named| found.get(&named?).cloned());
    R::objects(objects.collect())
}
