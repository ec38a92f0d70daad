//! The ledger of the JMS clients, as `interop/jms/crash` writes it: attempts and confirmations,
//! line by line in the order in which they happened.

use std::collections::BTreeMap;

use crate::Result;

/// A unit happens as a whole or not at all: a transaction, or one send or acknowledgement without.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unit {
    /// The line from which on it may have happened.
    pub(crate) commit: Option<usize>,
    /// It was confirmed.
    pub(crate) done: bool,
}

/// A message in one place. To a topic it is sent once, and is in every subscription.
#[derive(Clone, Debug)]
pub(crate) struct Copy {
    /// The unit that sent it.
    pub(crate) sender: u64,
    /// A kill does not excuse its loss.
    pub(crate) persistent: bool,
    /// By the life of the broker, then by line.
    pub(crate) deliveries: Vec<Delivery>,
}

/// A copy was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Delivery {
    /// From which life of the broker.
    pub(crate) epoch: u64,
    /// The line that says so. A late client writes it when the broker has long been killed.
    pub(crate) line: usize,
    /// The unit that takes it, if that happens.
    pub(crate) unit: u64,
}

/// All that the clients wrote.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    /// By number.
    pub(crate) units: BTreeMap<u64, Unit>,
    /// By message and place.
    pub(crate) copies: BTreeMap<(String, String), Copy>,
    /// Faults that no order of events explains, one sentence each.
    pub(crate) broken: Vec<String>,
    /// In the end everything was taken from everywhere.
    pub(crate) drained: bool,
}

impl Ledger {
    /// Reads all lines.
    ///
    /// # Errors
    /// When a line is none of a ledger.
    pub(crate) fn read(text: &str) -> Result<Ledger> {
        let mut ledger = Ledger::default();
        for (number, line) in (1..).zip(text.lines()) {
            let words: Vec<&str> = line.split(' ').collect();
            ledger.note(number, &words).ok_or(format!("line {number} of the ledger: {line}"))?;
        }
        for copy in ledger.copies.values_mut() {
            copy.deliveries.sort();
        }
        Ok(ledger)
    }

    fn note(&mut self, line: usize, words: &[&str]) -> Option<()> {
        match words {
            ["send", unit, message, places, kind] => {
                self.sent(unit.parse().ok()?, message, places, *kind == "persistent")
            }
            ["got", unit, epoch, message, place] => {
                let (unit, epoch) = (unit.parse().ok()?, epoch.parse().ok()?);
                self.got(Delivery { epoch, line, unit }, message, place)
            }
            ["commit", unit] => self.unit(unit)?.commit = Some(line),
            ["done", unit] => {
                let unit = self.unit(unit)?;
                unit.commit?;
                unit.done = true;
            }
            ["broken", what @ ..] => self.broken.push(what.join(" ")),
            ["drained"] => self.drained = true,
            _ => return None,
        }
        Some(())
    }

    fn unit(&mut self, number: &str) -> Option<&mut Unit> {
        Some(self.units.entry(number.parse().ok()?).or_default())
    }

    fn sent(&mut self, sender: u64, message: &str, places: &str, persistent: bool) {
        self.units.entry(sender).or_default();
        for place in places.split(',') {
            let copy = Copy { sender, persistent, deliveries: Vec::new() };
            self.copies.insert((message.to_owned(), place.to_owned()), copy);
        }
    }

    fn got(&mut self, delivery: Delivery, message: &str, place: &str) {
        self.units.entry(delivery.unit).or_default();
        match self.copies.get_mut(&(message.to_owned(), place.to_owned())) {
            Some(copy) => copy.deliveries.push(delivery),
            None => self.broken.push(format!("{message} came from {place}, where it was not sent")),
        }
    }
}
