//! The picture of the declared graph. How it is laid out is known to the graph alone.

use crate::artifact::{Artifacts, HEADER, RelativePath};
use crate::graph::Graph;
use crate::model::Model;

/// Where the picture lies.
const PATH: &str = "schema/graph.svg";

/// The picture, where a kind refers to another.
pub(super) fn emit(model: &Model) -> Artifacts {
    let graph = Graph::of(&model.kinds, &model.services);
    let picture = (!graph.edges.is_empty()).then(|| {
        let title = format!("References between the kinds of {}", model.platform.group);
        (RelativePath::new(PATH), graph.svg(&title, Some(HEADER)))
    });
    picture.into_iter().collect()
}
