//! The bytes a connection has to send: a stream behind the gate.

use journal::{Durable, Gate};
use model::DependsOn;

/// Bytes on their way out, in order, each with the position it depends on.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    bytes: Vec<u8>,
    /// How many of `bytes` have been sent.
    sent: usize,
    /// The stream offset of the first of `bytes`.
    base: u64,
    gate: Gate,
}

impl Outgoing {
    /// Lets a session append; the appended bytes depend on `after`.
    pub(crate) fn say<R>(&mut self, after: DependsOn, say: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        let before = self.bytes.len();
        let result = self.append(say);
        if self.bytes.len() > before {
            self.gate.push(after, self.end());
        }
        result
    }

    /// Lets a session append the answer to a command that may take several replies. If this one
    /// adds no bytes, the bytes behind it wait for it all the same.
    pub(crate) fn say_in_parts(&mut self, after: DependsOn, say: impl FnOnce(&mut Vec<u8>)) {
        self.append(say);
        self.gate.push(after, self.end());
    }

    fn append<R>(&mut self, say: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        let before = self.bytes.len();
        let result = say(&mut self.bytes);
        assert!(self.bytes.len() >= before, "a session only appends");
        result
    }

    /// The stream offset behind the last byte.
    fn end(&self) -> u64 {
        self.base + self.bytes.len() as u64
    }

    /// The bytes that may leave now.
    pub(crate) fn released(&mut self, durable: Durable) -> &[u8] {
        let end = self.gate.released(durable) - self.base;
        let end = usize::try_from(end).expect("invariant: released bytes are in memory");
        self.bytes.get(self.sent..end).expect("invariant: only released bytes were sent")
    }

    /// Notes that `count` of the released bytes have left.
    pub(crate) fn consume(&mut self, count: usize) {
        self.sent += count;
        assert!(self.sent <= self.bytes.len(), "invariant: only what is there is sent");
        if self.sent == self.bytes.len() {
            self.forget_sent();
            if self.bytes.capacity() > KEPT_BYTES_MAX {
                // Not shrunk: a remainder at the front of a large block keeps the next large block
                // from its place.
                self.bytes = Vec::new();
            }
        } else if self.sent > KEPT_BYTES_MAX && self.sent >= self.bytes.len() / 2 {
            self.forget_sent();
        }
    }

    /// True if bytes wait for a write to complete.
    pub(crate) fn is_held(&self) -> bool {
        self.gate.is_holding()
    }

    /// Bytes not yet sent, held or not.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() - self.sent
    }

    /// Bytes of memory that it takes, but for the reserve of an empty one. The sent bytes of a
    /// large answer stay until half of it is sent, and a buffer grows to twice its content.
    pub(crate) const fn held_bytes(&self) -> usize {
        let all = self.bytes.capacity();
        if all > KEPT_BYTES_MAX { all } else { self.bytes.len() }
    }

    /// Nothing is left to send.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn forget_sent(&mut self) {
        self.bytes.drain(..self.sent);
        self.base += self.sent as u64;
        self.sent = 0;
    }
}

/// Memory that an empty buffer keeps: a turn's answers to a pipelining peer.
const KEPT_BYTES_MAX: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use model::{Durability, Lsn};

    use super::*;

    fn durable(lsn: u64) -> Durable {
        Durable { written: Lsn(lsn), synced: Lsn(lsn) }
    }

    #[test]
    fn outgoing_bytes_leave_as_log_syncs() {
        let mut outgoing = Outgoing::default();
        outgoing.say(DependsOn::NOTHING, |out| out.extend_from_slice(b"free "));
        outgoing
            .say(DependsOn::new(Lsn(3), Durability::Synced), |out| out.extend_from_slice(b"held "));
        outgoing.say(DependsOn::NOTHING, |out| out.extend_from_slice(b"behind"));

        assert_eq!(outgoing.released(durable(2)), b"free ");
        outgoing.consume(2);
        assert_eq!(outgoing.released(durable(2)), b"ee ");
        outgoing.consume(3);
        assert_eq!(outgoing.released(durable(2)), b"");
        assert!(outgoing.is_held());
        assert_eq!(outgoing.released(durable(3)), b"held behind");
        outgoing.consume(11);
        assert!(outgoing.is_empty());
        assert!(!outgoing.is_held());
    }

    #[test]
    fn outgoing_empty_part_holds_next_back() {
        let mut outgoing = Outgoing::default();
        outgoing.say(DependsOn::NOTHING, |out| out.extend_from_slice(b"free "));
        outgoing.say_in_parts(DependsOn::new(Lsn(3), Durability::Synced), |_| {});
        outgoing.say_in_parts(DependsOn::NOTHING, |out| out.extend_from_slice(b"told"));
        assert_eq!(outgoing.released(durable(2)), b"free ");
        assert_eq!(outgoing.released(durable(3)), b"free told");
    }

    #[test]
    fn outgoing_drops_bytes_already_sent() {
        let mut outgoing = Outgoing::default();
        let mut next = 0_u8;
        for round in 0..100_u8 {
            outgoing.say(DependsOn::NOTHING, |out| out.extend(std::iter::repeat_n(round, 10_000)));
            let first = outgoing.released(durable(0)).first().copied();
            assert_eq!(first, Some(next));
            outgoing.consume(9_000);
            next = outgoing.released(durable(0))[0];
        }
        assert_eq!(outgoing.len(), 100_000);
        assert!(outgoing.bytes.len() < 300_000);
    }

    #[test]
    fn outgoing_held_bytes_count_allocation() {
        let mut outgoing = Outgoing::default();
        outgoing.say(DependsOn::NOTHING, |out| out.extend_from_slice(b"short"));
        assert_eq!(outgoing.held_bytes(), 5);
        outgoing.say(DependsOn::NOTHING, |out| out.extend(std::iter::repeat_n(0, 100_000)));
        outgoing.released(durable(0));
        outgoing.consume(40_000);
        assert_eq!(outgoing.len(), 60_005);
        assert!(outgoing.held_bytes() >= 100_005, "{} bytes", outgoing.held_bytes());
        outgoing.consume(60_005);
        assert_eq!(outgoing.held_bytes(), 0);
    }
}
