//! The knowledge of the workers of one protocol: messages that are there, and messages that may be.
//!
//! It forgets messages that are gone for sure, so that a run may last for days. Bodies follow from
//! their numbers; an unknown number below the next is that of a message that is gone.

use std::collections::BTreeMap;

use testkit::Rng;

/// One body in so many is about as long as every protocol allows.
const LONG_ONE_IN: u64 = 50;
const LONG_BYTES: u64 = 60_000;
const SHORT_BYTES: u64 = 1_500;

/// The messages of one protocol that are not known to be gone.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    next: u64,
    open: BTreeMap<u64, Presence>,
    /// Messages with a confirmed settlement.
    pub(super) settled: u64,
    pub(super) violations: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    /// Sent and not answered: it may be there.
    Sent,
    /// Confirmed, or delivered and not settled: it has to be there.
    There,
    /// About to be settled and not answered: it may be there.
    Settling,
}

impl Ledger {
    /// A message that is about to be sent: its number and body.
    pub(super) fn intend_send(&mut self) -> (u64, Vec<u8>) {
        let number = self.next;
        self.next += 1;
        self.open.insert(number, Presence::Sent);
        (number, body(number))
    }

    /// It was confirmed; it may have been delivered and settled since, or be about to be.
    pub(super) fn confirmed(&mut self, number: u64) {
        if self.open.get(&number) == Some(&Presence::Sent) {
            self.set(number, Presence::There);
        }
    }

    /// It was refused, and must never be seen.
    pub(super) fn refused(&mut self, number: u64, answer: &str) {
        self.open.remove(&number);
        self.violations.push(format!("message {number} was refused: {answer}"));
    }

    /// Something was delivered; gives its number, unless it should not have been.
    pub(super) fn delivered(&mut self, bytes: &[u8]) -> Option<u64> {
        let Some(number) = number_of(bytes).filter(|number| *number < self.next) else {
            self.violations.push(format!("{} bytes came that nobody sent", bytes.len()));
            return None;
        };
        if bytes != body(number) {
            self.violations.push(format!("message {number} has a changed body"));
            return None;
        }
        if !self.open.contains_key(&number) {
            self.violations.push(format!("message {number} came back after it was gone"));
            return None;
        }
        self.set(number, Presence::There);
        Some(number)
    }

    /// It is about to be settled.
    pub(super) fn intend_settle(&mut self, number: u64) {
        self.set(number, Presence::Settling);
    }

    /// The settlement was confirmed.
    pub(super) fn settled(&mut self, number: u64) {
        self.open.remove(&number);
        self.settled += 1;
    }

    /// The settlement was refused, though this worker held the delivery.
    pub(super) fn not_settled(&mut self, number: u64, answer: &str) {
        self.violations.push(format!("message {number} could not be settled: {answer}"));
    }

    /// Everything was taken from the server: each message that had to be there is lost.
    pub(super) fn emptied(&mut self) {
        for (number, presence) in std::mem::take(&mut self.open) {
            if presence == Presence::There {
                self.violations.push(format!("message {number} is lost"));
            }
        }
    }

    /// The server began anew: messages that are in memory alone are gone.
    pub(super) fn forgotten(&mut self) {
        self.open.clear();
    }

    /// How many messages may be there.
    pub(super) fn backlog(&self) -> usize {
        self.open.len()
    }

    fn set(&mut self, number: u64, presence: Presence) {
        if let Some(open) = self.open.get_mut(&number) {
            *open = presence;
        }
    }
}

/// The body of a message, of bytes that no protocol takes for its own.
fn body(number: u64) -> Vec<u8> {
    let mut random = Rng::new(number);
    let most = if random.one_in(LONG_ONE_IN) { LONG_BYTES } else { SHORT_BYTES };
    let mut body = format!("message {number} ").into_bytes();
    let first = random.below(26);
    body.extend((0..random.below(most)).map(|at| b'a' + ((first + at) % 26) as u8));
    body
}

fn number_of(body: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(body).ok()?;
    text.strip_prefix("message ")?.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ledger_misses_only_confirmed_messages() {
        let mut ledger = Ledger::default();
        let (first, _) = ledger.intend_send();
        let (second, body) = ledger.intend_send();
        let (third, _) = ledger.intend_send();
        ledger.confirmed(second);
        ledger.confirmed(third);
        assert_eq!(ledger.delivered(&body), Some(second));
        ledger.intend_settle(second);
        ledger.emptied();
        assert_eq!(ledger.violations, [format!("message {third} is lost")], "not {first}");
        assert_eq!(ledger.backlog(), 0);
    }

    /// The sender may get the confirmation, or read it, after a consumer had the message.
    #[test]
    fn late_confirmed_message_may_be_gone() {
        let mut ledger = Ledger::default();
        let (number, body) = ledger.intend_send();
        assert_eq!(ledger.delivered(&body), Some(number));
        ledger.intend_settle(number);
        ledger.confirmed(number);
        ledger.emptied();
        assert_eq!(ledger.violations, [] as [&str; 0]);
    }

    #[test]
    fn settled_message_must_not_return() {
        let mut ledger = Ledger::default();
        let (number, body) = ledger.intend_send();
        assert_eq!(ledger.delivered(&body), Some(number), "before it was confirmed");
        ledger.settled(number);
        ledger.confirmed(number);
        assert_eq!(ledger.delivered(&body), None);
        assert_eq!(ledger.violations, ["message 0 came back after it was gone"]);
    }

    #[test]
    fn forgotten_message_must_not_return() {
        let mut ledger = Ledger::default();
        let (number, body) = ledger.intend_send();
        ledger.confirmed(number);
        ledger.forgotten();
        ledger.emptied();
        assert_eq!(ledger.violations, [] as [&str; 0]);
        assert_eq!(ledger.delivered(&body), None);
        assert_eq!(ledger.violations, ["message 0 came back after it was gone"]);
    }

    #[test]
    fn unsent_message_is_noticed() {
        let mut ledger = Ledger::default();
        let (_, mut body) = ledger.intend_send();
        body.push(b'!');
        assert_eq!(ledger.delivered(&body), None);
        assert_eq!(ledger.delivered(b"message 1 x"), None);
        assert_eq!(ledger.delivered(&[0xff]), None);
        assert_eq!(ledger.violations.len(), 3);
    }
}
