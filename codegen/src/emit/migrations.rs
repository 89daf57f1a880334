//! The table of the planned migrations, as the runtime takes them. Their texts lie in files of their own, which people
//! read and `plan` writes.

use proc_macro2::Literal;
use quote::quote;

use super::rust;
use crate::artifact::{Artifacts, RelativePath};
use crate::plan::Migration;

/// The one file.
pub(super) fn emit(migrations: &[Migration]) -> Artifacts {
    let doc = "The migrations that lead to the tables of these kinds, in order.";
    let imports = quote! { use kindex_model::kind::Migration; };
    let entries = migrations.iter().map(|migration| {
        let Migration {
            number,
            name,
            compatible,
            dialects,
            checksum,
        } = migration;
        let (number, compatible) = (Literal::u32_unsuffixed(*number), Literal::u32_unsuffixed(*compatible));
        let dialects = dialects.iter().copied();
        let texts = dialects
            .clone()
            .map(|dialect| format!("../../{}", migration.path(dialect)));
        let words = dialects.map(|dialect| dialect.word());
        quote! {
            Migration {
                number: #number,
                name: #name,
                compatible: #compatible,
                texts: &[#((#words, include_str!(#texts))),*],
                checksum: #checksum,
            }
        }
    });
    let items = quote! {
        /// Every planned migration, from the first on.
        pub static MIGRATIONS: &[Migration] = &[#(#entries),*];
    };
    Artifacts::from([(
        RelativePath::new("generated/src/migrations.rs"),
        rust::file(doc, [imports, items]),
    )])
}
