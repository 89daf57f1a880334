//! The load of the runs service: batches in protobuf and JSON, clients of both transports, the service and MLflow as
//! processes, what is measured with them, and the targets that figures are held to.

pub mod targets;

pub mod load;

pub mod template;

pub mod grpc;

pub mod http;

pub mod server;

pub mod mlflow;

pub mod curves;

pub mod throughput;

pub mod paced;

pub mod reading;

pub mod space;

pub mod log_call;
