//! The cursors of SCAN. A cursor is a number to clients, and the place behind a name to the engine.

use alloc::collections::VecDeque;

use model::QueueName;

/// Cursors that are remembered: of SCANs under way, each needs one or two.
const CURSORS_MAX: usize = 4_096;

/// The latest cursors of all connections; one that was forgotten is refused as invalid.
#[derive(Debug, Default)]
pub(crate) struct Cursors {
    names: VecDeque<QueueName>,
    /// How many were forgotten.
    forgotten: u64,
}

impl Cursors {
    /// The number of a new one; never 0, which is the beginning.
    pub(crate) fn remember(&mut self, name: QueueName) -> u64 {
        if self.names.len() == CURSORS_MAX {
            self.names.pop_front();
            self.forgotten += 1;
        }
        self.names.push_back(name);
        self.forgotten + self.names.len() as u64
    }

    /// The name behind which it goes on.
    pub(crate) fn find(&self, cursor: u64) -> Option<QueueName> {
        let index = cursor.checked_sub(self.forgotten + 1)?;
        self.names.get(usize::try_from(index).ok()?).cloned()
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    #[test]
    fn latest_cursors_are_known() {
        let mut cursors = Cursors::default();
        let name = |number: usize| QueueName::new(&format!("q{number}")).unwrap();
        for number in 1..=CURSORS_MAX + 10 {
            assert_eq!(cursors.remember(name(number)), number as u64);
            assert_eq!(cursors.find(number as u64), Some(name(number)));
        }
        assert_eq!(cursors.find(10), None);
        assert_eq!(cursors.find(11), Some(name(11)));
        assert_eq!(cursors.find(0), None);
        assert_eq!(cursors.find(u64::MAX), None);
        assert_eq!(cursors.names.len(), CURSORS_MAX);
    }
}
