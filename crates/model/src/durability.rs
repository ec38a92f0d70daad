//! How durable a thing is, and which position an output waits for.

use core::cmp::Ordering;

use crate::{Lsn, Nanos};

/// The failure that a change survives. Ordered: each level includes those before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Durability {
    /// Memory only: lost with the process.
    #[default]
    None,
    /// Handed to the operating system: survives a crash of the process, not of the machine.
    Written,
    /// Flushed to the device: survives power loss.
    Synced,
}

/// A sender's wish for one message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Persistence {
    /// As durable as the store's policy makes it. The default of every protocol that has no say.
    #[default]
    Persistent,
    /// Memory only, in any store.
    NonPersistent,
    /// This level and no other; a store that keeps nothing still keeps nothing.
    Exactly(Durability),
}

/// The meaning of "persistent" in this store: `--store` and `--sync`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorePolicy {
    /// `--store none`: nothing is journalled.
    Memory,
    /// `--sync always`: synced before it is confirmed.
    Always,
    /// `--sync 25ms`: written before it is confirmed, synced at least this often.
    Periodic(Nanos),
    /// `--sync never`: written before it is confirmed, never synced on purpose.
    Never,
}

impl StorePolicy {
    /// The level that a message of this persistence gets in such a store.
    #[must_use]
    pub const fn durability(self, persistence: Persistence) -> Durability {
        match (self, persistence) {
            (Self::Memory, _) | (_, Persistence::NonPersistent) => Durability::None,
            (_, Persistence::Exactly(level)) => level,
            (Self::Always, Persistence::Persistent) => Durability::Synced,
            (Self::Periodic(_) | Self::Never, Persistence::Persistent) => Durability::Written,
        }
    }
}

/// The position that an output waits for: it may leave once the log is durable at `level` up to and
/// with `lsn`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DependsOn {
    /// The last frame that it depends on.
    pub lsn: Lsn,
    /// How durable that frame must be.
    pub level: Durability,
}

impl DependsOn {
    /// Depends on nothing; never waits.
    pub const NOTHING: Self = Self { lsn: Lsn::ZERO, level: Durability::None };

    /// Waits for `lsn` at `level`; a level of [`Durability::None`] waits for nothing.
    #[must_use]
    pub fn new(lsn: Lsn, level: Durability) -> Self {
        if level == Durability::None { Self::NOTHING } else { Self { lsn, level } }
    }

    /// Waits for both of two moments of one log. The log grows durable in order, and a frame counts
    /// only when it is as durable as it asks itself. So it is enough to wait for the later. To ask
    /// the later frame for the level of the earlier could be to wait for ever: nothing may sync it.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match self.lsn.cmp(&other.lsn) {
            Ordering::Less => other,
            Ordering::Greater => self,
            Ordering::Equal => Self { level: self.level.max(other.level), ..self },
        }
    }
}

/// How far the log is durable. Both only ever grow, and `synced <= written`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Durable {
    /// Handed to the operating system up to here.
    pub written: Lsn,
    /// On the device up to here.
    pub synced: Lsn,
}

impl Durable {
    /// True if an output that depends on `after` may leave.
    #[must_use]
    pub fn covers(self, after: DependsOn) -> bool {
        match after.level {
            Durability::None => true,
            Durability::Written => self.written >= after.lsn,
            Durability::Synced => self.synced >= after.lsn,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depends_on_keeps_the_later_frame() {
        let synced = DependsOn::new(Lsn(3), Durability::Synced);
        let written = DependsOn::new(Lsn(5), Durability::Written);
        assert_eq!(synced.and(written), written);
        assert_eq!(written.and(synced), written);
        assert_eq!(written.and(DependsOn::NOTHING), written);
        let both = written.and(DependsOn::new(Lsn(5), Durability::Synced));
        assert_eq!(both, DependsOn::new(Lsn(5), Durability::Synced));
    }
}
