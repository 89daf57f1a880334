//! Rust files as `syn` reads them, boiled down to what the rules ask for: the text without comments and literals,
//! comments alone, literals, functions, methods, modules and imports. Lines and columns stay where they were. Knows no
//! rule.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use proc_macro2::{Ident, Literal, Span, TokenStream, TokenTree};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, ExprStruct, ImplItem, Item, Macro, Member, Token, UseTree};

use super::declarations::{Declaration, declarations};
use super::free_functions::FreeFunctions;
use super::globs::globs;
use super::methods::Methods;
use super::panics::panics;
use super::tokens::{braces, each_sequence, is_punct, line};

/// One file.
pub(super) struct Rust {
    /// Without comments and the contents of texts.
    pub(super) code: String,
    /// Only the comments, their slashes included.
    pub(super) comments: String,
    /// The texts in literals, each with its line from zero.
    pub(super) texts: Vec<(usize, String)>,
    /// First line, from zero, and number of lines of every function with a body.
    pub(super) functions: Vec<(usize, usize)>,
    /// The files that this one makes part of its crate, those of tests too.
    pub(super) declarations: Vec<Declaration>,
    /// The modules that the file declares, in order, without those of tests.
    pub(super) modules: Vec<String>,
    /// What the file takes out of its modules: the name, and the path from the module on.
    pub(super) exported: BTreeMap<String, Vec<String>>,
    /// Paths outside of tests that begin with `crate` or `super` and name something.
    pub(super) imports: BTreeSet<Vec<String>>,
    /// Paths outside of tests of which everything is imported.
    pub(super) globs: BTreeSet<Vec<String>>,
    pub(super) methods: Methods,
    pub(super) free_functions: FreeFunctions,
    /// Where methods of traits panic: the line, from zero, and the macro.
    pub(super) panics: Vec<(usize, String)>,
    /// The literals of structs that take nothing from a base.
    pub(super) structs: Vec<StructLiteral>,
    tests: Vec<Range<usize>>,
}

/// A literal that spells every field of its struct.
pub(super) struct StructLiteral {
    /// From zero.
    pub(super) line: usize,
    /// Without its path; `Self` stays.
    pub(super) name: String,
    pub(super) fields: BTreeSet<String>,
}

impl Rust {
    /// Reads a text that compiles.
    pub(super) fn parse(text: &str) -> syn::Result<Self> {
        let syntax = syn::parse_file(text)?;
        let mut tests = Tests::default();
        tests.visit_file(&syntax);
        let mut structs = Structs::default();
        structs.visit_file(&syntax);
        let mut marks = Marks {
            text,
            marks: vec![Mark::Between; text.len()],
            texts: Vec::new(),
        };
        let mut functions = Vec::new();
        let mut imports = Vec::new();
        let tokens: TokenStream = text.parse()?;
        each_sequence(tokens.clone(), &mut |sequence| {
            marks.read(sequence);
            functions.extend(functions_in(sequence));
            imports.extend(imports_in(sequence));
        });
        functions.sort_unstable();
        let is_test = |line: usize| tests.lines.iter().any(|lines| lines.contains(&line));
        imports.retain(|(line, _)| !is_test(*line));
        let globs = globs(&syntax).into_iter().filter(|(line, _)| !is_test(*line));
        let globs = globs.map(|(_, path)| path).collect();
        let modules = declared(&syntax.items);
        let exported = exported(&syntax.items, &modules);
        let free_functions = FreeFunctions::read(&syntax, tokens.clone(), &modules, &exported, is_test);
        Ok(Self {
            code: marks.only(Mark::Code),
            comments: marks.only(Mark::Between),
            texts: marks.texts,
            functions,
            declarations: declarations(&syntax),
            exported,
            modules,
            imports: imports.into_iter().map(|(_, path)| path).collect(),
            globs,
            methods: Methods::read(&syntax, tokens, is_test),
            free_functions,
            panics: panics(&syntax),
            structs: structs.found,
            tests: tests.lines,
        })
    }

    /// Whether a line, from zero, belongs to an item for tests.
    pub(super) fn is_test(&self, line: usize) -> bool {
        self.tests.iter().any(|lines| lines.contains(&line))
    }
}

/// What a byte belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    /// Comments and white space.
    Between,
    Code,
    Text,
}

struct Marks<'t> {
    text: &'t str,
    marks: Vec<Mark>,
    texts: Vec<(usize, String)>,
}

impl Marks<'_> {
    /// A doc comment is an attribute, all of whose tokens stand where the comment does.
    fn read(&mut self, sequence: &[TokenTree]) {
        for token in sequence {
            let at = &self.text[token.span().byte_range()];
            if at.starts_with("//") || at.starts_with("/*") {
                continue;
            }
            match token {
                TokenTree::Group(group) => {
                    self.mark(group.span_open(), Mark::Code);
                    self.mark(group.span_close(), Mark::Code);
                }
                TokenTree::Literal(literal) => match text_of(literal) {
                    Some(text) => {
                        self.mark(literal.span(), Mark::Text);
                        self.texts.push((line(literal.span()), text));
                    }
                    None => self.mark(literal.span(), Mark::Code),
                },
                TokenTree::Ident(_) | TokenTree::Punct(_) => self.mark(token.span(), Mark::Code),
            }
        }
    }

    fn mark(&mut self, span: Span, mark: Mark) {
        self.marks[span.byte_range()].fill(mark);
    }

    /// The text with blanks for everything else.
    fn only(&self, wanted: Mark) -> String {
        let characters = self.text.char_indices();
        let kept = characters.map(|(at, c)| if c == '\n' || self.marks[at] == wanted { c } else { ' ' });
        kept.collect()
    }
}

/// The value of a literal that is a text, of characters or bytes.
fn text_of(literal: &Literal) -> Option<String> {
    let spelled = literal.to_string();
    let quoted = spelled.trim_start_matches(['b', 'c', 'r', '#']).starts_with('"');
    quoted.then(|| syn::parse_str::<syn::LitStr>(&spelled).map_or(spelled, |text| text.value()))
}

/// Also those that a macro takes or makes.
fn functions_in(sequence: &[TokenTree]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for (at, pair) in sequence.windows(2).enumerate() {
        let [TokenTree::Ident(word), name] = pair else { continue };
        let is_named = matches!(name, TokenTree::Ident(_)) || is_punct(name, '$');
        if *word != "fn" || !is_named {
            continue;
        }
        let rest = &sequence[at..];
        let ends = |token: &&TokenTree| is_punct(token, ';') || braces(token).is_some();
        if let Some(body) = rest.iter().find(ends).and_then(braces) {
            let first = line(word.span());
            found.push((first, line(body.span_close()) + 1 - first));
        }
    }
    found
}

/// Paths as imports and expressions have them, each with its line.
fn imports_in(sequence: &[TokenTree]) -> Vec<(usize, Vec<String>)> {
    let mut found = Vec::new();
    for (at, token) in sequence.iter().enumerate() {
        let TokenTree::Ident(start) = token else { continue };
        let goes_on = at > 0 && is_punct(&sequence[at - 1], ':') && at > 1 && is_punct(&sequence[at - 2], ':');
        if goes_on || (*start != "crate" && *start != "super") {
            continue;
        }
        let named = |path: &Vec<String>| path.iter().any(|name| name != "crate" && name != "super");
        let paths = paths(&sequence[at..]).into_iter().filter(named);
        found.extend(paths.map(|path| (line(start.span()), path)));
    }
    found
}

/// The path with which the tokens begin, or one for each member of its group.
fn paths(tokens: &[TokenTree]) -> Vec<Vec<String>> {
    match tokens {
        [TokenTree::Ident(name), rest @ ..] => {
            let below = match rest {
                [first, second, rest @ ..] if is_punct(first, ':') && is_punct(second, ':') => paths(rest),
                _ => Vec::new(),
            };
            match below.is_empty() {
                true => vec![vec![name.to_string()]],
                false => below
                    .into_iter()
                    .map(|path| [vec![name.to_string()], path].concat())
                    .collect(),
            }
        }
        [TokenTree::Group(group), ..] => {
            let members: Vec<TokenTree> = group.stream().into_iter().collect();
            members.split(|token| is_punct(token, ',')).flat_map(paths).collect()
        }
        _ => Vec::new(),
    }
}

/// Lines of items that only tests compile.
#[derive(Default)]
struct Tests {
    lines: Vec<Range<usize>>,
}

impl Tests {
    fn add(&mut self, attributes: &[Attribute], span: Span) {
        let of_tests = |attribute: &Attribute| {
            attribute.path().is_ident("cfg")
                && attribute
                    .parse_args::<syn::Path>()
                    .is_ok_and(|path| path.is_ident("test"))
        };
        if attributes.iter().any(of_tests) {
            self.lines.push(line(span)..span.end().line);
        }
    }
}

impl<'ast> Visit<'ast> for Tests {
    fn visit_item(&mut self, item: &'ast Item) {
        self.add(attributes(item), item.span());
        visit::visit_item(self, item);
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        if let ImplItem::Fn(function) = item {
            self.add(&function.attrs, item.span());
        }
        visit::visit_impl_item(self, item);
    }
}

/// Struct literals without a base, those among the arguments of a macro too.
#[derive(Default)]
struct Structs {
    found: Vec<StructLiteral>,
}

impl<'ast> Visit<'ast> for Structs {
    fn visit_expr_struct(&mut self, literal: &'ast ExprStruct) {
        let name = literal.path.segments.last();
        if let (Some(name), None) = (name, &literal.dot2_token) {
            let fields = literal.fields.iter().filter_map(|field| match &field.member {
                Member::Named(field) => Some(field.to_string()),
                Member::Unnamed(_) => None,
            });
            self.found.push(StructLiteral {
                line: line(literal.span()),
                name: name.ident.to_string(),
                fields: fields.collect(),
            });
        }
        visit::visit_expr_struct(self, literal);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        let arguments = call.parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated);
        for argument in arguments.iter().flatten() {
            self.visit_expr(argument);
        }
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// The modules that lie in files of their own and are compiled without tests too.
fn declared(items: &[Item]) -> Vec<String> {
    let modules = items.iter().filter_map(|item| match item {
        Item::Mod(module) if module.content.is_none() => Some(module),
        _ => None,
    });
    let mut tests = Tests::default();
    let kept = modules.filter(|module| {
        tests.lines.clear();
        tests.add(&module.attrs, module.span());
        tests.lines.is_empty()
    });
    kept.map(|module| module.ident.to_string()).collect()
}

/// What `use module::…` makes known under a name of its own.
fn exported(items: &[Item], modules: &[String]) -> BTreeMap<String, Vec<String>> {
    let mut exported = BTreeMap::new();
    for item in items {
        let Item::Use(item) = item else { continue };
        let tree = match &item.tree {
            UseTree::Path(path) if path.ident == "self" => &*path.tree,
            tree => tree,
        };
        let UseTree::Path(path) = tree else { continue };
        if modules.contains(&path.ident.to_string()) {
            leaves(tree, &[], &mut exported);
        }
    }
    exported
}

/// The names that a tree makes known, with their paths. A module that is named by `self` has its own name already.
fn leaves(tree: &UseTree, above: &[String], found: &mut BTreeMap<String, Vec<String>>) {
    let below = |name: &Ident| [above, &[name.to_string()]].concat();
    match tree {
        UseTree::Path(path) => leaves(&path.tree, &below(&path.ident), found),
        UseTree::Name(name) if name.ident != "self" => {
            found.insert(name.ident.to_string(), below(&name.ident));
        }
        UseTree::Rename(rename) => {
            found.insert(rename.rename.to_string(), below(&rename.ident));
        }
        UseTree::Group(group) => group.items.iter().for_each(|item| leaves(item, above, found)),
        _ => {}
    }
}

#[test]
fn texts_and_comments_are_distinguished_from_code() {
    let text = concat!(
        "fn f() {\n",
        "    let a = \"// no \\\" comment\"; // yes: \"quoted\"\n",
        "    let b = r#\"fn f() { \" }\"#; /* one /* two */ still */ let c = '\"'; let d: &'a str;\n",
        "    let e = '\\''; let f = b\"x\"; for_r(\"y\");\n",
        "}\n\n/// What it is.\nstruct S;\n",
    );
    let file = Rust::parse(text).expect("Rust");
    let code: Vec<String> = file.code.lines().map(squeeze).collect();
    assert_eq!(code[1], "let a = ;");
    assert_eq!(code[2], "let b = ; let c = '\"'; let d: &'a str;");
    assert_eq!(code[3], "let e = '\\''; let f = ; for_r( );");
    assert_eq!(code[6], "");
    let comments: Vec<String> = file.comments.lines().map(squeeze).collect();
    assert_eq!(comments[1], "// yes: \"quoted\"");
    assert_eq!(comments[2], "/* one /* two */ still */");
    assert_eq!(comments[6], "/// What it is.");
    assert_eq!(file.texts[0], (1, "// no \" comment".to_owned()));
    assert_eq!(file.code.len(), text.len());
}

#[test]
fn functions_end_with_their_bodies() {
    let text = concat!(
        "fn one() {\n    a();\n}\n\n",
        "trait T {\n    fn two(&self);\n    const fn three()\n    where\n        Self: Sized,\n    {\n        b();\n    }\n}\n\n",
        "proptest! {\n    #[test]\n    fn four(a in 0..1) {\n        c();\n    }\n}\n",
    );
    let file = Rust::parse(text).expect("Rust");
    assert_eq!(file.functions, [(0, 3), (6, 6), (16, 3)]);
}

#[test]
fn groups_and_single_paths_are_both_imports() {
    let text = "pub mod a;\nmod b;\npub(crate) mod c;\n#[cfg(test)]\nmod tests;\nmod inline {}\n\
                use crate::d::B;\nuse crate::{e::{D, E}, f, g::H};\nfn x() { let i = super::super::i(); j!(super::k::l) }\n\
                pub use b::{m::N, o as p};\n#[cfg(test)]\nmod more { use crate::z; }\n";
    let file = Rust::parse(text).expect("Rust");
    let imports: Vec<String> = file.imports.iter().map(|path| path.join("::")).collect();
    assert_eq!(
        imports,
        [
            "crate::d::B",
            "crate::e::D",
            "crate::e::E",
            "crate::f",
            "crate::g::H",
            "super::k::l",
            "super::super::i"
        ]
    );
    assert_eq!(file.modules, ["a", "b", "c"]);
    let exported: Vec<String> = file
        .exported
        .iter()
        .map(|(name, path)| format!("{name} {}", path.join("::")))
        .collect();
    assert_eq!(exported, ["N b::m::N", "p b::o"]);
    assert!(file.is_test(4) && file.is_test(11) && !file.is_test(6));
}

#[cfg(test)]
fn squeeze(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}
