//! The messages of `mlrun.v1` and the client of its IngestService, as `proto/` of the service says them.

tonic::include_proto!("mlrun.v1");
