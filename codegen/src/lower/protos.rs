//! Compiles `.proto` files in memory with protox. Compiler errors become diagnostics at their place in the file; what
//! the messages mean is read elsewhere.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use miette::Diagnostic as _;
use prost_types::FileDescriptorSet;
use protox::Compiler;
use protox::file::{ChainFileResolver, File, FileResolver, GoogleFileResolver};

use crate::diag::{Collector, messages};
use crate::source::{Sources, Span};

/// Import path of Kubernetes' meta types, which every object is made of.
pub(super) const META_PROTO: &str = "k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto";

/// Used where a platform's `proto/` does not bring its own copy.
const META_TEXT: &str = include_str!("../../../proto/k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto");

/// The compiled files.
pub(super) struct Protos {
    compiler: Compiler,
    texts: Texts,
    /// Whether every file of `proto/` compiled; otherwise a message may be missing for no fault of `crds.toml`.
    pub(super) complete: bool,
}

/// Texts by import path, shared with the compiler so that files can be added while it runs.
#[derive(Clone, Default)]
struct Texts(Rc<RefCell<BTreeMap<String, String>>>);

impl FileResolver for Texts {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        match self.0.borrow().get(name) {
            Some(text) => File::from_source(name, text),
            None => Err(protox::Error::file_not_found(name)),
        }
    }
}

/// Compiles every file of `proto/`.
pub(super) fn compile(sources: &Sources, found: &mut Collector) -> Protos {
    let texts = Texts::default();
    texts.0.borrow_mut().insert(META_PROTO.to_owned(), META_TEXT.to_owned());
    for (import_path, file) in sources.protos() {
        let text = sources.text(*file).to_owned();
        texts.0.borrow_mut().insert(import_path.clone(), text);
    }
    let mut resolver = ChainFileResolver::new();
    resolver.add(texts.clone());
    resolver.add(GoogleFileResolver::new());
    let mut compiler = Compiler::with_file_resolver(resolver);
    compiler.include_imports(true).include_source_info(true);
    let mut protos = Protos {
        compiler,
        texts,
        complete: true,
    };
    for import_path in sources.protos().keys() {
        if let Err(error) = protos.compiler.open_file(import_path) {
            protos.complete = false;
            report(&error, sources, found);
        }
    }
    protos
}

impl Protos {
    /// Compiles one more file.
    ///
    /// # Errors
    /// The compiler's text; an error of whoever made the file.
    pub(super) fn add(&mut self, import_path: &str, text: &str) -> Result<(), String> {
        self.texts
            .0
            .borrow_mut()
            .insert(import_path.to_owned(), text.to_owned());
        let opened = self.compiler.open_file(import_path);
        opened.map(drop).map_err(|error| format!("{error:?}"))
    }

    /// Whether there is a file with that import path.
    pub(super) fn contains(&self, import_path: &str) -> bool {
        self.texts.0.borrow().contains_key(import_path)
    }

    /// All compiled files with their imports and comments, dependencies first.
    pub(super) fn descriptors(&self) -> FileDescriptorSet {
        self.compiler.file_descriptor_set()
    }
}

fn report(error: &protox::Error, sources: &Sources, found: &mut Collector) {
    let file = error
        .file()
        .and_then(|import_path| sources.protos().get(import_path))
        .copied();
    let Some(file) = file else {
        found.push(messages::proto_error(&error.to_string(), None));
        return;
    };
    let whole = sources.text(file).len();
    let mut labels: Vec<_> = error.labels().into_iter().flatten().collect();
    labels.sort_by_key(miette::LabeledSpan::offset);
    let span = |label: &miette::LabeledSpan| {
        let start = label.offset().min(whole);
        Span::new(file, start..(start + label.len()).min(whole))
    };
    let first = labels.first().map_or(Span::new(file, 0..0), span);
    found.push(messages::proto_error(&error.to_string(), Some(first)));
}

/// A message or enum that inline fields can name.
pub(super) struct NamedType {
    pub(super) full_name: String,
    /// Import path of the file that declares it.
    pub(super) file: String,
}

/// All messages and enums of `proto/`, by the last segment of their names.
pub(super) struct TypeIndex {
    by_short_name: BTreeMap<String, Vec<NamedType>>,
}

impl Protos {
    /// What is compiled so far, by name.
    pub(super) fn index(&self) -> TypeIndex {
        let pool = self.compiler.descriptor_pool();
        let messages = pool
            .all_messages()
            .filter(|message| !message.is_map_entry())
            .map(|message| {
                (
                    message.name().to_owned(),
                    message.full_name().to_owned(),
                    message.parent_file(),
                )
            });
        let enums = pool.all_enums().map(|declared| {
            (
                declared.name().to_owned(),
                declared.full_name().to_owned(),
                declared.parent_file(),
            )
        });
        let mut by_short_name: BTreeMap<String, Vec<NamedType>> = BTreeMap::new();
        for (short_name, full_name, file) in messages.chain(enums) {
            let named = NamedType {
                full_name,
                file: file.name().to_owned(),
            };
            by_short_name.entry(short_name).or_default().push(named);
        }
        TypeIndex { by_short_name }
    }
}

impl TypeIndex {
    /// Every full name.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let types = self.by_short_name.values().flatten();
        types.map(|ty| ty.full_name.as_str())
    }

    /// Every last segment.
    pub(super) fn short_names(&self) -> impl Iterator<Item = &str> {
        self.by_short_name.keys().map(String::as_str)
    }

    /// The types of that full name or last segment; more than one if the segment alone does not tell.
    pub(super) fn find(&self, name: &str) -> &[NamedType] {
        let short_name = name.rsplit('.').next().unwrap_or(name);
        let types = self.by_short_name.get(short_name).map_or(&[][..], Vec::as_slice);
        if short_name == name {
            return types;
        }
        let at = types.iter().position(|ty| ty.full_name == name);
        at.map_or(&[], |at| &types[at..=at])
    }
}
