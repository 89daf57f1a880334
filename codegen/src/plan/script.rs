//! The text of a migration as steps, each with its place. What is good or bad about them is not known here.

use std::ops::Range;

use super::migration::STEP;
use crate::dialect::Verb;

/// A migration's text, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script<'t> {
    /// The comments in front of the first step.
    pub comments: Vec<Line<'t>>,
    /// The steps in order.
    pub blocks: Vec<Block<'t>>,
}

/// A line and where it stands, in bytes.
pub type Line<'t> = (Range<usize>, &'t str);

/// A step with what belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block<'t> {
    /// The line `-- step: …`.
    pub range: Range<usize>,
    /// What it does; `None` for a word that no step has.
    pub verb: Option<Verb>,
    /// `model`.
    pub table: &'t str,
    /// `budget`; empty for a table.
    pub object: &'t str,
    /// Its other comments.
    pub comments: Vec<Line<'t>>,
    /// Its statement, on one line; empty for a fill.
    pub statement: String,
}

impl<'t> Script<'t> {
    /// Takes a text apart. Statements in front of the first step belong to none.
    pub fn parse(text: &'t str) -> Self {
        let mut script = Self {
            comments: Vec::new(),
            blocks: Vec::new(),
        };
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let range = start..start + line.trim_end().len();
            start += line.len();
            script.add(range, line.trim());
        }
        script
    }

    fn add(&mut self, range: Range<usize>, line: &'t str) {
        if let Some(words) = line.strip_prefix(STEP) {
            let mut words = words.splitn(3, ' ');
            let mut word = || words.next().unwrap_or_default();
            self.blocks.push(Block {
                range,
                verb: Verb::parse(word()),
                table: word(),
                object: word(),
                comments: Vec::new(),
                statement: String::new(),
            });
        } else if line.starts_with("--") {
            let comments = match self.blocks.last_mut() {
                Some(block) => &mut block.comments,
                None => &mut self.comments,
            };
            comments.push((range, line));
        } else if let Some(block) = self.blocks.last_mut() {
            let space = if block.statement.is_empty() { "" } else { " " };
            block.statement.push_str(space);
            block.statement.push_str(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_ends_where_the_next_one_begins() {
        let text = "-- 0002_a\n\n-- step: add-column t c\n-- a note\nALTER TABLE\n  `t`;\n-- step: fill t c\n";
        let script = Script::parse(text);
        assert_eq!(script.comments, [(0..9, "-- 0002_a")]);
        let [add, fill] = script.blocks.as_slice() else {
            panic!("two steps: {script:?}");
        };
        assert_eq!((add.verb, add.table, add.object), (Some(Verb::AddColumn), "t", "c"));
        assert_eq!(add.statement, "ALTER TABLE `t`;");
        assert_eq!(&text[add.comments[0].0.clone()], "-- a note");
        assert_eq!(
            (fill.verb, fill.object, fill.statement.as_str()),
            (Some(Verb::Fill), "c", "")
        );
    }
}
