//! The modules of one crate, from the file that declares the first of them, and what each uses of which other one.
//! Knows no rule.

use std::collections::{BTreeMap, BTreeSet};

use super::methods::Method;
use super::rust::Rust;

/// One crate. A module is known by its path, which is empty for the root.
pub(super) struct Tree<'r> {
    modules: BTreeMap<Vec<String>, Module<'r>>,
    /// The names of methods that this crate is not alone in defining or calling.
    shared: BTreeSet<&'r str>,
}

/// One module in a file of its own.
#[derive(Clone, Copy)]
struct Module<'r> {
    file: &'r str,
    rust: &'r Rust,
}

/// A call from one module of a method that another one defines.
pub(super) struct Call<'t> {
    pub(super) from: &'t [String],
    pub(super) to: &'t [String],
    method: &'t Method,
    /// Whether the name alone says whose method it is, and not its type.
    is_by_name: bool,
}

impl Call<'_> {
    /// The method, as a finding names it: one that is known by its name alone may be another type's after all.
    pub(super) fn called(&self) -> String {
        let (on, name) = self.method;
        let how = match self.is_by_name {
            true => format!(" (by its name alone; `Type::{name}(…)` says whose it is)"),
            false => String::new(),
        };
        format!("{on}::{name}{how}")
    }
}

/// A file that declares modules, with the path of its own module.
pub(super) struct List<'t> {
    pub(super) file: &'t str,
    path: &'t [String],
    /// In order.
    modules: &'t [String],
}

impl List<'_> {
    /// The two modules of this list in which two others lie, unless it is the same one.
    pub(super) fn siblings<'m>(&self, one: &'m [String], other: &'m [String]) -> Option<(&'m str, &'m str)> {
        let (one, other) = (self.member(one)?, self.member(other)?);
        (one != other).then_some((one, other))
    }

    /// The module of this list in which another one lies; none for the file itself.
    pub(super) fn member<'m>(&self, module: &'m [String]) -> Option<&'m str> {
        module.strip_prefix(self.path)?.first().map(String::as_str)
    }

    /// Whether a module is that of the file itself.
    pub(super) fn is_own(&self, module: &[String]) -> bool {
        module == self.path
    }

    /// Whether a module is declared below another one.
    pub(super) fn is_below(&self, module: &str, other: &str) -> bool {
        let place = |wanted: &str| self.modules.iter().position(|module| module == wanted);
        place(module) > place(other)
    }
}

impl<'r> Tree<'r> {
    /// The crates whose root files are among these.
    pub(super) fn all(files: &BTreeMap<&'r str, &'r Rust>) -> Vec<Self> {
        let roots = files.keys().copied().filter(|path| is_root(path));
        let mut trees: Vec<Self> = roots.map(|root| Self::of(root, files)).collect();
        let mut crates: BTreeMap<&'r str, usize> = BTreeMap::new();
        for name in trees.iter().flat_map(Self::method_names) {
            *crates.entry(name).or_default() += 1;
        }
        let shared = crates.into_iter().filter(|(_, crates)| *crates > 1);
        let shared: BTreeSet<&'r str> = shared.map(|(name, _)| name).collect();
        for tree in &mut trees {
            tree.shared.clone_from(&shared);
        }
        trees
    }

    fn of(root: &'r str, files: &BTreeMap<&'r str, &'r Rust>) -> Self {
        let mut modules = BTreeMap::new();
        let folder = root.rfind('/').map_or("", |end| &root[..=end]);
        add(&mut modules, Vec::new(), root, folder, files);
        Self {
            modules,
            shared: BTreeSet::new(),
        }
    }

    /// Of those that the crate defines or calls.
    fn method_names(&self) -> BTreeSet<&'r str> {
        let mut names = BTreeSet::new();
        for &Module { rust, .. } in self.modules.values() {
            let methods = rust.methods.defined.iter().chain(&rust.methods.called);
            names.extend(methods.map(|(_, name)| name.as_str()));
            names.extend(rust.methods.called_by_name.iter().map(String::as_str));
        }
        names
    }

    /// Every file that declares modules.
    pub(super) fn lists(&self) -> impl Iterator<Item = List<'_>> {
        self.modules.iter().map(|(path, module)| List {
            file: module.file,
            path,
            modules: &module.rust.modules,
        })
    }

    /// Modules, and what they import other ones for, wherever these are in the crate.
    pub(super) fn imports(&self) -> Vec<(&[String], Vec<String>)> {
        let mut found = Vec::new();
        for (module, Module { rust, .. }) in &self.modules {
            let imported = rust.imports.iter().map(|path| self.resolve(module, path).0);
            let others = imported.filter(|other| other != module);
            found.extend(others.map(|other| (&module[..], other)));
        }
        found
    }

    /// The files that import everything of a file in whose module they lie, each with the path in front of the `*`.
    pub(super) fn globs_above(&self) -> Vec<(&str, &[String])> {
        let mut found = Vec::new();
        for (module, Module { file, rust }) in &self.modules {
            let above = rust.globs.iter().filter(|path| {
                let (other, rest) = self.resolve(module, path);
                rest.is_empty() && module.starts_with(&other)
            });
            found.extend(above.map(|path| (*file, &path[..])));
        }
        found
    }

    /// The calls of methods that one other module defines. What several files define says nothing: types and their
    /// methods may share a name.
    pub(super) fn calls(&self) -> Vec<Call<'_>> {
        let mut defined: BTreeMap<&Method, Vec<&[String]>> = BTreeMap::new();
        for (module, Module { rust, .. }) in &self.modules {
            for method in &rust.methods.defined {
                defined.entry(method).or_default().push(module);
            }
        }
        let by_name = self.known_by_name();
        let mut found = Vec::new();
        for (from, Module { rust, .. }) in &self.modules {
            for method in &rust.methods.called {
                if let Some(&[to]) = defined.get(method).map(Vec::as_slice) {
                    found.push(Call {
                        from,
                        to,
                        method,
                        is_by_name: false,
                    });
                }
            }
            for name in &rust.methods.called_by_name {
                if let Some(&(to, method)) = by_name.get(name.as_str()) {
                    found.push(Call {
                        from,
                        to,
                        method,
                        is_by_name: true,
                    });
                }
            }
        }
        found.retain(|call| call.from != call.to);
        found
    }

    /// The methods that a call means whatever its value is, by their names, each with its module. No other file defines
    /// one of the name, and no other crate even calls one: a name that the standard library has as well is called in
    /// many.
    fn known_by_name(&self) -> BTreeMap<&str, (&[String], &Method)> {
        let mut unknown = self.shared.clone();
        let mut defined: BTreeMap<&str, Vec<(&[String], &Method)>> = BTreeMap::new();
        for (module, Module { rust, .. }) in &self.modules {
            unknown.extend(rust.methods.ambiguous.iter().map(String::as_str));
            for method in &rust.methods.defined {
                defined.entry(&method.1).or_default().push((&module[..], method));
            }
        }
        let known = defined.into_iter().filter_map(|(name, places)| {
            let first = *places.first()?;
            let is_one = places.iter().all(|(module, _)| *module == first.0);
            (is_one && !unknown.contains(name)).then_some((name, first))
        });
        known.collect()
    }

    /// Modules, the other modules whose functions they use, and the functions.
    pub(super) fn function_uses(&self) -> Vec<(&[String], Vec<String>, String)> {
        let mut found = Vec::new();
        for (module, Module { rust, .. }) in &self.modules {
            for path in rust.imports.iter().chain(&rust.free_functions.named) {
                let (other, rest) = self.resolve(module, path);
                if let (Some(name), Some(Module { rust, .. })) = (rest.first(), self.modules.get(&other))
                    && rust.free_functions.defined.contains(name)
                    && other != *module
                {
                    found.push((&module[..], other, name.clone()));
                }
            }
        }
        found
    }

    /// The module that has what a path means in another module, and what is left of the path there. Follows what
    /// modules export.
    fn resolve(&self, from: &[String], path: &[String]) -> (Vec<String>, Vec<String>) {
        let supers = path.iter().take_while(|name| *name == "super").count();
        let (mut module, mut rest) = match path {
            [start, rest @ ..] if start == "crate" => (Vec::new(), rest.to_vec()),
            _ => {
                let above = from.len().saturating_sub(supers);
                (from[..above].to_vec(), path[supers..].to_vec())
            }
        };
        while let (Some(name), Some(Module { rust, .. })) = (rest.first(), self.modules.get(&module)) {
            if rust.modules.contains(name) {
                module.push(rest.remove(0));
            } else if let Some(exported) = rust.exported.get(name) {
                // Begins with one of the modules.
                rest = [&exported[..], &rest[1..]].concat();
            } else {
                break;
            }
        }
        (module, rest)
    }
}

/// Whether cargo builds a crate from a file: from `lib.rs`, `main.rs`, and all that is directly in a package's `tests`.
fn is_root(path: &str) -> bool {
    let (folder, name) = path.rsplit_once('/').unwrap_or_default();
    let is_test_program = folder.ends_with("/tests") && !folder.contains("/src/");
    is_test_program || name == "lib.rs" || name == "main.rs"
}

/// Adds a module and those below it. Their files stand in `folder`.
fn add<'r>(
    modules: &mut BTreeMap<Vec<String>, Module<'r>>,
    path: Vec<String>,
    file: &'r str,
    folder: &str,
    files: &BTreeMap<&'r str, &'r Rust>,
) {
    let Some(rust) = files.get(file).copied() else {
        return;
    };
    for name in &rust.modules {
        let places = [format!("{folder}{name}.rs"), format!("{folder}{name}/mod.rs")];
        let found = places.iter().find_map(|place| files.get_key_value(place.as_str()));
        if let Some((&file, _)) = found {
            let below = [&path[..], std::slice::from_ref(name)].concat();
            add(modules, below, file, &format!("{folder}{name}/"), files);
        }
    }
    modules.insert(path, Module { file, rust });
}
