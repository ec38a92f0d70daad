//! Messages that were sent, that the broker confirmed, and that it gave back.
//!
//! At the end every confirmed message must have come once, no message that was rolled back or
//! refused may have come, and no other one.

/// The messages of a phase, by their numbers.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// The number of the first message; those of other phases and runs are far from it.
    base: u64,
    marks: Vec<u8>,
    confirmed: u64,
    /// Of the confirmed ones.
    seen: u64,
    wrong: Wrong,
}

/// Counts of the broker's faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Wrong {
    again: u64,
    unknown: u64,
    void: u64,
    changed: u64,
}

impl Ledger {
    /// With numbers that no other ledger has.
    pub(crate) fn new() -> Self {
        use std::sync::atomic::{AtomicU64, Ordering};
        use std::time::{SystemTime, UNIX_EPOCH};
        static LEDGERS: AtomicU64 = AtomicU64::new(0);
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        // 2^30 messages a ledger; ledgers of a process one after another, and runs of different
        // seconds apart by 2^13 ledgers.
        let run = since.as_secs() % (1 << 18);
        let ledger = (run << 13) | (LEDGERS.fetch_add(1, Ordering::Relaxed) % (1 << 13));
        Self {
            base: (ledger + 1) << 30,
            marks: Vec::new(),
            confirmed: 0,
            seen: 0,
            wrong: Wrong::default(),
        }
    }

    /// The number of one more message, which is about to be sent.
    pub(crate) fn send(&mut self) -> u64 {
        self.marks.push(0);
        self.base + self.marks.len() as u64 - 1
    }

    /// The broker has it.
    pub(crate) fn confirm(&mut self, number: u64) {
        let mark = mark(self.base, &mut self.marks, number);
        let mark = mark.expect("invariant: only what was sent is confirmed");
        assert!(*mark & (CONFIRMED | VOID) == 0, "a message is answered for once");
        *mark |= CONFIRMED;
        self.confirmed += 1;
        self.seen += u64::from(*mark & SEEN > 0);
    }

    /// The broker must not have it: it was rolled back or refused.
    pub(crate) fn void(&mut self, number: u64) {
        let mark = mark(self.base, &mut self.marks, number);
        let mark = mark.expect("invariant: only what was sent is given up");
        assert!(*mark & (CONFIRMED | VOID) == 0, "a message is answered for once");
        *mark |= VOID;
        self.wrong.void += u64::from(*mark & SEEN > 0);
    }

    /// It came; its place among all that were sent, if it is one of them and came once.
    pub(crate) fn see(&mut self, number: u64) -> Option<u64> {
        let Some(mark) = mark(self.base, &mut self.marks, number) else {
            self.wrong.unknown += 1;
            return None;
        };
        if *mark & SEEN > 0 {
            self.wrong.again += 1;
            return None;
        }
        *mark |= SEEN;
        self.seen += u64::from(*mark & CONFIRMED > 0);
        self.wrong.void += u64::from(*mark & VOID > 0);
        Some(number - self.base)
    }

    /// A copy of it came, which it may do any number of times.
    pub(crate) fn glimpse(&mut self, number: u64) {
        match mark(self.base, &mut self.marks, number) {
            Some(mark) => self.wrong.void += u64::from(*mark & VOID > 0),
            None => self.wrong.unknown += 1,
        }
    }

    /// Something came that is not as it was sent.
    pub(crate) fn changed(&mut self) {
        self.wrong.changed += 1;
    }

    /// A message came that no client of the run sent.
    pub(crate) fn foreign(&mut self) {
        self.wrong.unknown += 1;
    }

    /// How many were sent.
    pub(crate) fn sent(&self) -> u64 {
        self.marks.len() as u64
    }

    /// How many the broker has confirmed.
    pub(crate) fn confirmed(&self) -> u64 {
        self.confirmed
    }

    /// How many of these came.
    pub(crate) fn seen(&self) -> u64 {
        self.seen
    }

    /// Problems that a user must not overlook, a sentence each; with `taken` all messages should
    /// have come.
    pub(crate) fn problems(&self, taken: bool) -> Vec<String> {
        let lost = if taken { self.confirmed - self.seen } else { 0 };
        let wrong = [
            ("confirmed messages that never came", lost),
            ("messages that came again", self.wrong.again),
            ("messages that nobody here sent", self.wrong.unknown),
            ("messages that came though they were rolled back or refused", self.wrong.void),
            ("messages that came back changed", self.wrong.changed),
        ];
        let wrong = wrong.into_iter().filter(|(_, count)| *count > 0);
        wrong.map(|(what, count)| format!("{what}: {count}")).collect()
    }
}

fn mark(base: u64, marks: &mut [u8], number: u64) -> Option<&mut u8> {
    marks.get_mut(usize::try_from(number.checked_sub(base)?).ok()?)
}

const CONFIRMED: u8 = 1;
const VOID: u8 = 2;
const SEEN: u8 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ledger_accepts_one_arrival_per_message() {
        let mut ledger = Ledger::new();
        let (first, second, third) = (ledger.send(), ledger.send(), ledger.send());
        // It may come before its sender knows that it is safe.
        assert_eq!(ledger.see(first), Some(0));
        ledger.confirm(first);
        ledger.confirm(second);
        ledger.void(third);
        assert_eq!(ledger.see(second), Some(1));
        assert_eq!((ledger.sent(), ledger.confirmed(), ledger.seen()), (3, 2, 2));
        assert!(ledger.problems(true).is_empty());
    }

    #[test]
    fn ledger_reports_lost_and_repeated_messages() {
        let mut ledger = Ledger::new();
        let numbers: Vec<u64> = (0..3).map(|_| ledger.send()).collect();
        ledger.confirm(numbers[0]);
        ledger.void(numbers[1]);
        ledger.confirm(numbers[2]);
        assert_eq!(ledger.see(numbers[0]), Some(0));
        assert_eq!(ledger.see(numbers[0]), None);
        assert_eq!(ledger.see(numbers[1]), Some(1));
        assert_eq!(ledger.see(7), None);
        ledger.changed();
        assert_eq!(
            ledger.problems(true),
            [
                "confirmed messages that never came: 1",
                "messages that came again: 1",
                "messages that nobody here sent: 1",
                "messages that came though they were rolled back or refused: 1",
                "messages that came back changed: 1",
            ]
        );
        assert_eq!(ledger.problems(false).len(), 4);
    }

    #[test]
    fn ledgers_have_numbers_of_their_own() {
        let (mut one, mut other) = (Ledger::new(), Ledger::new());
        let number = one.send();
        other.send();
        assert_eq!(other.see(number), None);
        assert!(i64::try_from(number).is_ok());
    }
}
