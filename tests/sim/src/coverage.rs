//! Counts how often each fault happened in each step.

use std::fmt;

use super::fault::Fault;
use super::step::Step;

/// The table of all faults and steps.
#[derive(Clone, Debug)]
pub struct Coverage([[u64; Step::ALL.len()]; Fault::ALL.len()]);

impl Default for Coverage {
    fn default() -> Self {
        Self([[0; Step::ALL.len()]; Fault::ALL.len()])
    }
}

/// All pairs that can happen.
pub fn cells() -> Vec<(Fault, Step)> {
    let pairs = Fault::ALL
        .into_iter()
        .flat_map(|fault| Step::ALL.map(|step| (fault, step)));
    pairs
        .filter(|(fault, step)| fault.impossible(*step).is_none())
        .collect()
}

/// The pair that a seed aims at.
pub fn aim(seed: u64) -> (Fault, Step) {
    let cells = cells();
    cells[usize::try_from(seed).unwrap_or(0) % cells.len()]
}

impl Coverage {
    /// Counts that a fault happened in a step.
    pub fn add(&mut self, fault: Fault, step: Step) {
        self.0[fault as usize][step as usize] += 1;
    }

    /// Adds all of another table.
    pub fn merge(&mut self, other: &Self) {
        let cells = self.0.iter_mut().flatten().zip(other.0.iter().flatten());
        cells.for_each(|(sum, more)| *sum += more);
    }

    /// How often a fault happened in a step.
    pub fn of(&self, fault: Fault, step: Step) -> u64 {
        self.0[fault as usize][step as usize]
    }

    /// Pairs that never happened but should have, or happened but cannot.
    pub fn gaps(&self) -> Vec<String> {
        let mut gaps = Vec::new();
        for (fault, step) in Fault::ALL
            .into_iter()
            .flat_map(|fault| Step::ALL.map(|step| (fault, step)))
        {
            match (fault.impossible(step), self.of(fault, step)) {
                (None, 0) if fault.rare(step).is_none() => gaps.push(format!("{fault:?} never happened in {step:?}")),
                (Some(reason), met) if met > 0 => {
                    gaps.push(format!("{fault:?} happened {met} times in {step:?}, although {reason}"));
                }
                (None | Some(_), _) => {}
            }
        }
        gaps
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<16}", "")?;
        for step in Step::ALL {
            write!(f, "{:>7}", step.short())?;
        }
        for fault in Fault::ALL {
            write!(f, "\n{:<16}", format!("{fault:?}"))?;
            for step in Step::ALL {
                match (fault.impossible(step), self.of(fault, step)) {
                    (Some(_), 0) => write!(f, "{:>7}", "·")?,
                    (_, met) => write!(f, "{met:>7}")?,
                }
            }
        }
        Ok(())
    }
}
