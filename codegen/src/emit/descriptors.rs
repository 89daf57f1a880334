//! All messages and services of a platform as descriptors: what a server tells clients that know no `.proto` file.

use std::rc::Rc;

use prost::Message;
use protox::Compiler;
use protox::file::{ChainFileResolver, DescriptorSetFileResolver, File, FileResolver, GoogleFileResolver};

use super::proto_service;
use crate::artifact::Artifacts;
use crate::model::Model;

/// What clients may put into an `Any` of a request, such as the value of a condition.
const VALUES: [&str; 3] = [
    "google/protobuf/struct.proto",
    "google/protobuf/timestamp.proto",
    "google/protobuf/wrappers.proto",
];

/// An encoded `google.protobuf.FileDescriptorSet` of every service with its imports, dependencies first, without
/// comments.
pub fn descriptors(model: &Model) -> Vec<u8> {
    let services = Rc::new(Services(proto_service::emit(model)));
    let mut resolver = ChainFileResolver::new();
    resolver.add(Shared(services.clone()));
    resolver.add(DescriptorSetFileResolver::new(model.descriptors.clone()));
    resolver.add(GoogleFileResolver::new());
    let mut compiler = Compiler::with_file_resolver(resolver);
    compiler.include_imports(true).include_source_info(false);
    for path in VALUES.into_iter().chain(services.paths()) {
        let opened = compiler.open_file(path);
        opened.unwrap_or_else(|error| panic!("{path} compiles: {error:?}"));
    }
    compiler.file_descriptor_set().encode_to_vec()
}

/// The emitted files.
struct Services(Artifacts);

impl Services {
    /// As other files would import them.
    fn paths(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(proto_service::import_path)
    }
}

struct Shared(Rc<Services>);

impl FileResolver for Shared {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        let mut files = self.0.0.iter();
        match files.find(|(path, _)| proto_service::import_path(path) == name) {
            Some((_, text)) => File::from_source(name, text),
            None => Err(protox::Error::file_not_found(name)),
        }
    }
}
