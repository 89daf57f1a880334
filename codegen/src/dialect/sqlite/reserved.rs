//! Words that name a column in quotes alone, which people who query the tables by hand leave out.
//!
//! <https://sqlite.org/lang_keywords.html>

/// Sorted, for binary search.
#[rustfmt::skip]
pub(super) const WORDS: &[&str] = &[
    "add", "all", "alter", "and", "as", "between", "case", "check", "collate", "commit", "constraint", "create",
    "current_date", "current_time", "current_timestamp", "default", "deferrable", "delete", "distinct", "drop", "else",
    "escape", "except", "exists", "false", "foreign", "from", "group", "having", "in", "index", "insert", "intersect",
    "into", "is", "isnull", "join", "limit", "not", "notnull", "null", "on", "or", "order", "primary", "references",
    "returning", "select", "set", "table", "then", "to", "transaction", "true", "union", "unique", "update", "using",
    "values", "when", "where",
];

#[cfg(test)]
mod tests {
    use super::WORDS;

    #[test]
    fn the_words_are_sorted() {
        assert!(WORDS.is_sorted(), "binary search needs order");
    }
}
