//! The API server over an embedded cluster, a real ingester and real databases, asked over HTTP as any client asks.

mod alone;
mod auth_proxy;
mod request;
mod serving;

mod stage;

mod by_hand;
mod events;
mod final_objects;
mod following;
mod lists;
mod moves_across;
mod program;
mod references;
mod rights;
mod sql_only_graph;

mod cluster_scoped;
mod real;
mod reference_tree;
mod storage_off;
mod versions;

mod grpc;

mod slow;

mod asked;
mod compared;
mod creations_across;
mod creations_at_once;
mod deletions_amid_moves;
mod each_right;
mod early;
mod encrypted;
mod encrypted_peers;
mod expired;
mod final_owners;
mod forecasts;
mod front_proxy;
mod full;
mod generated_names;
mod http2;
mod large;
mod lifecycle;
mod limits;
mod moves_in_versions;
mod namesakes;
mod nonsense;
mod pages;
mod plurals_across;
mod races;
mod reference_limits;
mod reference_names;
mod references_across;
mod refused_moves;
mod renewed_references;
mod repeated_moves;
mod replaced;
mod sizes;
mod sql_only;
mod sql_only_changes;
mod stored;
mod watch_options;
mod watches;
mod watches_of_sql;
mod watches_with_selectors;
mod windows;
