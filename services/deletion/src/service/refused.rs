//! What an operator learns at once of holders in the cluster whose change it refuses. Sends nothing.

use crate::answers::RefusedHolders;
use crate::metrics::Metrics;
use crate::object::Object;

/// Counts as one failure what one look at an object was refused of its holders, and logs it in one line.
pub(super) fn note(metrics: &Metrics, object: &Object, refused: &RefusedHolders) {
    let RefusedHolders { first, why, count, .. } = refused;
    metrics.failed(&object.key.kind.kind);
    tracing::warn!(
        object = %object.key,
        holder = first,
        holders_at_least = count,
        why,
        "The cluster refuses changes of holders, which are tried again"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{deleting, key};

    #[test]
    fn any_number_of_refused_holders_is_one_failure_of_the_kind_that_waits_for_them() {
        let metrics = Metrics::default();
        let refused = RefusedHolders {
            first: "cluster.x.example.com default/c".to_owned(),
            why: "admission webhook \"a.b.c\" denied the request: no".to_owned(),
            count: 64,
            leaves_others: true,
        };
        note(&metrics, &deleting(key("Network", "n"), "u"), &refused);
        assert_eq!((metrics.failures("Network"), metrics.failures("Cluster")), (1, 0));
    }
}
