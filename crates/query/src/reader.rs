//! The interface on which queries run. A store implements it, with its own error type.

use async_trait::async_trait;
use kindex_model::kind::{ColumnType, Kind};
use kindex_model::value::Value;

use crate::page::Page;
use crate::select::Select;
use crate::stored::Stored;

/// Where stored objects are read. A store of the kinds implements it; the methods of typed queries take it.
#[async_trait]
pub trait Reader: Send + Sync {
    /// Why something could not be read.
    type Error: From<MistypedColumn> + Send + 'static;

    /// A page of what a query asks for, in its order, beginning after the page that `continue_token`
    /// came with. Rows that are written meanwhile appear where their values then put them: a walk sees
    /// every row once that keeps its place in the order.
    ///
    /// # Errors
    /// Also for a token of another query.
    async fn select(&self, select: &Select, continue_token: Option<&str>) -> Result<Page, Self::Error>;

    /// A page of these columns of the rows that the query has; the page after the one that
    /// `continue_token` came with. A flag comes as a number.
    ///
    /// # Errors
    /// Also for a token of another query.
    async fn project(
        &self,
        select: &Select,
        columns: &[(&'static str, ColumnType)],
        continue_token: Option<&str>,
    ) -> Result<Page<Vec<Value>>, Self::Error>;

    /// For each pair of namespace and name one object, in any order: the one that is not deleted, else
    /// the one that was deleted last. Names without any are left out.
    async fn newest_by_names(&self, kind: &Kind, names: &[(String, String)]) -> Result<Vec<Stored>, Self::Error>;
}

/// A row holds a value that the column's type cannot hold: a program with another schema has written it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MistypedColumn {
    /// The kind's name.
    pub kind: &'static str,
}

/// A query that can be run: what it asks for, and of which columns.
pub trait Selection {
    /// The conditions, the order and the limit.
    fn selection(&self) -> &Select;

    /// The columns of a projection; `None` for a query of objects.
    fn columns(&self) -> Option<&'static [(&'static str, ColumnType)]>;
}

impl Selection for Select {
    fn selection(&self) -> &Select {
        self
    }

    fn columns(&self) -> Option<&'static [(&'static str, ColumnType)]> {
        None
    }
}
