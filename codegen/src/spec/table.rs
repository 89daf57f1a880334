//! A table of `crds.toml` held against its section of the grammar: unknown keys, values of the wrong sort and missing
//! keys are reported when the table is opened, so that reading it afterwards cannot fail.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Scalar, WithSpan};
use crate::diag::{Collector, messages};
use crate::grammar::{Section, Sort};
use crate::source::{FileId, Span, Text};

/// The text being read and the errors found in it.
pub(super) struct Reader<'a> {
    pub(super) file: FileId,
    pub(super) source: &'a str,
    pub(super) found: &'a mut Collector,
}

impl Reader<'_> {
    pub(super) fn span<T>(&self, spanned: &Spanned<T>) -> Span {
        Span::new(self.file, spanned.span())
    }

    pub(super) fn text(&self, value: &str, span: Span) -> Text {
        let literal = &self.source[span.range()];
        let verbatim_start = literal
            .find(value)
            .filter(|at| literal.len() - value.len() <= 2 * at)
            .map(|at| span.start + at);
        Text {
            value: value.to_owned(),
            span,
            verbatim_start,
        }
    }

    /// The entries of a table in file order; TOML keeps none.
    pub(super) fn entries<'t, 'i>(&self, table: &'t DeTable<'i>) -> Vec<(Text, &'t Spanned<DeValue<'i>>)> {
        let mut entries: Vec<_> = table
            .iter()
            .map(|(key, value)| (self.text(key.get_ref(), self.span(key)), value))
            .collect();
        entries.sort_by_key(|(key, _)| key.span);
        entries
    }

    /// Opens `table` as `section`; `span` is where a reader looks for it.
    pub(super) fn open<'t, 'i>(
        &mut self,
        section: &'static Section,
        span: Span,
        table: &'t DeTable<'i>,
    ) -> Table<'t, 'i> {
        let mut values = Vec::new();
        for (name, value) in self.entries(table) {
            let Some(key) = section.key(&name.value) else {
                self.found.push(messages::unknown_key(section, &name));
                continue;
            };
            // A key with a wrong value counts as present: one error, one message.
            let accepted = self.accepts(key.sort, &name, value);
            values.push((key.name, accepted.then_some(value)));
        }
        for key in section.keys.iter().filter(|key| key.required) {
            if !values.iter().any(|(name, _)| *name == key.name) {
                self.found.push(messages::missing_key(section, key.name, span));
            }
        }
        Table { values }
    }

    /// Whether `value` is of that sort. Tables with keys of their own are looked into when they are opened.
    fn accepts(&mut self, sort: Sort, name: &Text, value: &Spanned<DeValue<'_>>) -> bool {
        let inner = value.get_ref();
        let (right, wanted) = match sort {
            Sort::Text | Sort::Choice(_) => (inner.is_str(), "a string"),
            Sort::Flag => (inner.is_bool(), "true or false"),
            Sort::Count => (count(inner).is_some(), "a whole number above zero"),
            Sort::Scalar => (scalar(inner).is_some(), "a string, a number, true or false"),
            Sort::Table(_) | Sort::Each { .. } | Sort::Fields => (inner.is_table(), "a table"),
            Sort::Texts => {
                let strings = inner
                    .as_array()
                    .is_some_and(|list| list.iter().all(|item| item.get_ref().is_str()));
                (strings, "a list of strings")
            }
            Sort::Entries { .. } => {
                let entries = inner.as_array().is_some_and(|list| {
                    let mut items = list.iter().map(|item| item.get_ref());
                    items.all(|item| item.is_str() || item.is_table())
                });
                (entries, "a list of strings and tables")
            }
        };
        let span = self.span(value);
        if !right {
            let error = messages::wrong_sort(&name.value, wanted, inner.type_str(), span);
            self.found.push(error);
            return false;
        }
        if let (Sort::Choice(choices), Some(word)) = (sort, inner.as_str())
            && !choices.contains(&word)
        {
            let error = messages::unknown_choice(&name.value, word, choices, span);
            self.found.push(error);
            return false;
        }
        true
    }
}

/// A table whose values are known to be of the sort that its section asks for.
pub(super) struct Table<'t, 'i> {
    /// `None` for a key that is there with a value that was reported.
    values: Vec<(&'static str, Option<&'t Spanned<DeValue<'i>>>)>,
}

impl<'t, 'i> Table<'t, 'i> {
    /// A table that holds one key, for entries written in short form.
    pub(super) fn of_one(key: &'static str, value: &'t Spanned<DeValue<'i>>) -> Self {
        Self {
            values: vec![(key, Some(value))],
        }
    }

    pub(super) fn value(&self, key: &str) -> Option<&'t Spanned<DeValue<'i>>> {
        self.values
            .iter()
            .find(|(name, _)| *name == key)
            .and_then(|(_, value)| *value)
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.values.iter().any(|(name, _)| *name == key)
    }

    pub(super) fn table(&self, key: &str) -> Option<&'t DeTable<'i>> {
        self.value(key)?.get_ref().as_table()
    }

    pub(super) fn text(&self, key: &str, reader: &Reader<'_>) -> Option<Text> {
        let value = self.value(key)?;
        Some(reader.text(value.get_ref().as_str()?, reader.span(value)))
    }

    pub(super) fn texts(&self, key: &str, reader: &Reader<'_>) -> Vec<Text> {
        let items = self.value(key).and_then(|value| value.get_ref().as_array());
        items
            .into_iter()
            .flat_map(|items| items.iter())
            .filter_map(|item| Some(reader.text(item.get_ref().as_str()?, reader.span(item))))
            .collect()
    }

    /// The same with the place of the whole list.
    pub(super) fn spanned_texts(&self, key: &str, reader: &Reader<'_>) -> Option<WithSpan<Vec<Text>>> {
        let span = reader.span(self.value(key)?);
        let value = self.texts(key, reader);
        Some(WithSpan { value, span })
    }

    pub(super) fn flag(&self, key: &str, reader: &Reader<'_>) -> Option<WithSpan<bool>> {
        let value = self.value(key)?;
        Some(WithSpan {
            value: value.get_ref().as_bool()?,
            span: reader.span(value),
        })
    }

    pub(super) fn scalar(&self, key: &str, reader: &Reader<'_>) -> Option<WithSpan<Scalar>> {
        let value = self.value(key)?;
        Some(WithSpan {
            value: scalar(value.get_ref())?,
            span: reader.span(value),
        })
    }

    pub(super) fn count(&self, key: &str, reader: &Reader<'_>) -> Option<WithSpan<u32>> {
        let value = self.value(key)?;
        Some(WithSpan {
            value: count(value.get_ref())?,
            span: reader.span(value),
        })
    }
}

fn scalar(value: &DeValue<'_>) -> Option<Scalar> {
    Some(match value {
        DeValue::String(text) => Scalar::Text(text.clone().into_owned()),
        DeValue::Boolean(flag) => Scalar::Flag(*flag),
        DeValue::Integer(integer) => Scalar::Integer(i64::from_str_radix(integer.as_str(), integer.radix()).ok()?),
        DeValue::Float(float) => Scalar::Float(float.as_str().parse().ok().filter(|float: &f64| float.is_finite())?),
        DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => return None,
    })
}

fn count(value: &DeValue<'_>) -> Option<u32> {
    let integer = value.as_integer()?;
    let number = u32::from_str_radix(integer.as_str(), integer.radix()).ok()?;
    (1..=i32::MAX.unsigned_abs()).contains(&number).then_some(number)
}
