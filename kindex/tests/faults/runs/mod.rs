//! The runs service under hostile load and bad luck: kills at any moment, a disk that fails, clients that send or read
//! too slowly, and more of them than anybody needs.

mod server;

mod batches;
mod calls;
mod disk;
mod load;
mod retries;
