//! Figures with the targets that they are held to, as a table: a share of 1 or more means that the target is met.

use crate::figures::{Rates, print_table};

/// Where a figure has to be, in its unit.
#[derive(Clone, Copy, Debug)]
pub enum Target {
    /// At least so much.
    AtLeast(f64),
    /// At most so much.
    AtMost(f64),
    /// It has none.
    None,
}

/// What was measured, and what with.
#[derive(Default)]
pub struct ResultTable(Vec<Vec<String>>);

impl ResultTable {
    /// Adds why a round of something failed, if one did.
    pub fn trouble(&mut self, what: &str, why: Option<&String>) {
        if let Some(why) = why {
            self.failed(what, why);
        }
    }

    /// Adds a figure of several rounds, if there is any.
    pub fn rounds(&mut self, what: &str, unit: &str, rates: &Rates, target: Target) {
        if rates.median() == 0.0 {
            return;
        }
        let (least, most) = rates.range();
        let value = rates.median();
        let shown = format!("{} ({}..{}) {unit}", short(value), short(least), short(most));
        self.push(what, shown, value, target);
    }

    /// Adds a figure that was measured once.
    pub fn once(&mut self, what: &str, unit: &str, value: f64, target: Target) {
        self.push(what, format!("{} {unit}", short(value)), value, target);
    }

    /// Adds what could not be measured.
    pub fn failed(&mut self, what: &str, why: &str) {
        let cells = [what, &format!("failed: {why}"), "", ""];
        self.0.push(cells.map(str::to_owned).to_vec());
    }

    fn push(&mut self, what: &str, shown: String, value: f64, target: Target) {
        let (shown_target, share) = match target {
            Target::AtLeast(least) => (format!("at least {}", short(least)), Some(value / least)),
            Target::AtMost(most) => (format!("at most {}", short(most)), Some(most / value)),
            Target::None => (String::new(), None),
        };
        let verdict = share.map_or_else(String::new, |share| {
            let word = if share >= 1.0 { "met" } else { "MISSED" };
            format!("{share:.2} {word}")
        });
        self.0.push(vec![what.to_owned(), shown, shown_target, verdict]);
    }

    /// Prints all.
    pub fn print(&self) {
        print_table(&["", "measured", "mark", "share of the mark"], &self.0);
    }
}

/// With three digits, and thousands apart.
fn short(value: f64) -> String {
    let digits = match value.abs() {
        value if value >= 100.0 => 0,
        value if value >= 10.0 => 1,
        _ => 2,
    };
    let text = format!("{value:.digits$}");
    let (whole, rest) = text.split_once('.').map_or((&*text, ""), |(whole, rest)| (whole, rest));
    let mut grouped = String::new();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) && !grouped.ends_with('-') {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if rest.is_empty() {
        grouped
    } else {
        format!("{grouped}.{rest}")
    }
}
