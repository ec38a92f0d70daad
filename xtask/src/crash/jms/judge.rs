//! Judges the broker by the ledger of the JMS clients.
//!
//! Each copy of a message is evidence whether the units it met happened. If it came at all, its
//! sender happened. If it came again, the unit that took it did not happen; if it did not come
//! again, that unit happened. All is taken from everywhere in the end, so a message that never came
//! is evidence too. Then, for each unit:
//!
//! 1. A confirmed unit happened: all it sent came, nothing that it took came again.
//! 2. A unit that was never asked for, such as a rolled back one, did not happen: nothing it sent
//!    came, and all that it took came again. Nor did anything come before its commit was asked for.
//! 3. A unit that was asked for and not answered happened as a whole or not at all, sends and takes
//!    alike.
//!
//! So a message is taken exactly once, and again only where the confirmation did not arrive.

use std::collections::BTreeMap;
use std::fmt;

use super::ledger::{Copy, Ledger, Unit};

/// Evidence of the copies about one unit: a sentence for it, and one against it.
#[derive(Default)]
struct Evidence {
    happened: Option<String>,
    did_not: Option<String>,
}

/// The totals of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Copies of messages that came.
    pub(crate) came: u64,
    /// Of these, those that came again.
    pub(crate) again: u64,
    /// Units that were confirmed.
    pub(crate) confirmed: u64,
    /// Units without an answer.
    pub(crate) in_doubt: u64,
}

/// Broken promises, one sentence each.
pub(crate) fn judge(ledger: &Ledger) -> Vec<String> {
    let mut violations = ledger.broken.clone();
    if !ledger.drained {
        violations.push("the ledger ends before everything was taken".to_owned());
        return violations;
    }
    let mut evidence: BTreeMap<u64, Evidence> = BTreeMap::new();
    for ((message, place), copy) in &ledger.copies {
        let name = format!("{message} in {place}");
        hear(&name, copy, &mut evidence);
        violations.extend(too_early(&name, copy, ledger));
    }
    for (number, evidence) in evidence {
        let unit = ledger.units.get(&number).cloned().unwrap_or_default();
        violations.extend(verdict(number, &unit, evidence));
    }
    violations
}

/// Counts the copies and units of the ledger.
pub(crate) fn count(ledger: &Ledger) -> Counts {
    let mut counts = Counts::default();
    for copy in ledger.copies.values() {
        counts.came += u64::from(!copy.deliveries.is_empty());
        counts.again += u64::from(copy.deliveries.len() > 1);
    }
    for unit in ledger.units.values() {
        counts.confirmed += u64::from(unit.done);
        counts.in_doubt += u64::from(unit.commit.is_some() && !unit.done);
    }
    counts
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts { came, again, confirmed, in_doubt } = self;
        write!(f, "{came} messages came, {again} of them again; ")?;
        write!(f, "{confirmed} sends, acknowledgements and commits confirmed, {in_doubt} in doubt")
    }
}

/// Adds the evidence of one copy about its sender and its takers.
fn hear(name: &str, copy: &Copy, evidence: &mut BTreeMap<u64, Evidence>) {
    let mut say = |unit, happened, what: &str| {
        let evidence: &mut Evidence = evidence.entry(unit).or_default();
        let side = if happened { &mut evidence.happened } else { &mut evidence.did_not };
        side.get_or_insert_with(|| format!("{name} {what}"));
    };
    if !copy.deliveries.is_empty() {
        say(copy.sender, true, "came");
    } else if copy.persistent {
        say(copy.sender, false, "never came");
    }
    let Some((last, before)) = copy.deliveries.split_last() else { return };
    for delivery in before {
        say(delivery.unit, false, "was taken and came again");
    }
    if copy.persistent {
        say(last.unit, true, "was taken and did not come again");
    }
}

/// No client may see a message before its sender has asked for its commit.
fn too_early(name: &str, copy: &Copy, ledger: &Ledger) -> Option<String> {
    let asked = ledger.units.get(&copy.sender)?.commit?;
    let first = copy.deliveries.iter().map(|delivery| delivery.line).min()?;
    (first < asked).then(|| format!("{name} came before unit {} was committed", copy.sender))
}

fn verdict(number: u64, unit: &Unit, evidence: Evidence) -> Option<String> {
    match (unit.commit.is_some(), unit.done, evidence) {
        (true, true, Evidence { did_not: Some(what), .. }) => {
            Some(format!("unit {number} was confirmed, but {what}"))
        }
        (true, false, Evidence { happened: Some(one), did_not: Some(other) }) => {
            Some(format!("unit {number} happened by half: {one}, but {other}"))
        }
        (false, _, Evidence { happened: Some(what), .. }) => {
            Some(format!("unit {number} was never committed, but {what}"))
        }
        _ => None,
    }
}

#[cfg(test)]
#[path = "judge_test.rs"]
mod tests;
