//! The gate: no output leaves before the position it depends on is durable.

use std::collections::VecDeque;

use model::{DependsOn, Durable};

/// The gate of one connection's outgoing byte stream. The stream stays in order: bytes behind a
/// held one are held too.
#[derive(Debug, Default)]
pub struct Gate {
    held: VecDeque<(DependsOn, u64)>,
    released: u64,
}

impl Gate {
    /// The bytes up to stream offset `end` that no earlier call named depend on `after`.
    ///
    /// # Panics
    /// When `end` is before that of an earlier call.
    pub fn push(&mut self, after: DependsOn, end: u64) {
        let last = self.held.back().map_or(self.released, |(_, end)| *end);
        assert!(end >= last, "a stream's offsets ascend");
        match self.held.back_mut() {
            Some((held, held_end)) if *held == after => *held_end = end,
            _ => self.held.push_back((after, end)),
        }
    }

    /// The stream offset up to which bytes may leave.
    pub fn released(&mut self, durable: Durable) -> u64 {
        assert!(durable.synced <= durable.written, "what is synced is written");
        while let Some((after, end)) = self.held.front().copied() {
            if !durable.covers(after) {
                break;
            }
            debug_assert!(end >= self.released, "released bytes are not taken back");
            self.released = end;
            self.held.pop_front();
        }
        self.released
    }

    /// True if bytes are held that a more durable log would release.
    #[must_use]
    pub fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use model::{Durability, Lsn};

    use super::*;

    fn durable(written: u64, synced: u64) -> Durable {
        Durable { written: Lsn(written), synced: Lsn(synced) }
    }

    #[test]
    fn output_without_dependency_leaves_at_once() {
        let mut gate = Gate::default();
        gate.push(DependsOn::NOTHING, 10);
        assert_eq!(gate.released(durable(0, 0)), 10);
    }

    #[test]
    fn gate_levels_wait_for_own_positions() {
        let mut gate = Gate::default();
        gate.push(DependsOn::new(Lsn(5), Durability::Written), 10);
        gate.push(DependsOn::new(Lsn(5), Durability::Synced), 20);
        assert_eq!(gate.released(durable(4, 4)), 0);
        assert_eq!(gate.released(durable(5, 4)), 10);
        assert!(gate.is_holding());
        assert_eq!(gate.released(durable(5, 5)), 20);
        assert!(!gate.is_holding());
    }

    #[test]
    fn gate_keeps_order_of_outputs() {
        let mut gate = Gate::default();
        gate.push(DependsOn::new(Lsn(9), Durability::Synced), 10);
        gate.push(DependsOn::NOTHING, 20);
        assert_eq!(gate.released(durable(8, 8)), 0);
        assert_eq!(gate.released(durable(9, 9)), 20);
    }
}
