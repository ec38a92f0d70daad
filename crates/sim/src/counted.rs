//! Outcomes of sends and messages that met a limit.

use std::fmt;
use std::ops::AddAssign;

/// How often each outcome happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// They were told to wait.
    pub waits: u64,
    /// They had waited, and went on.
    pub went_on: u64,
    /// They were refused because of a bound.
    pub held_off: u64,
    /// Messages that went because of others.
    pub shed: u64,
    /// Messages that were to become dead letters while the device was full.
    pub set_aside: u64,
    /// Consumers that the engine disconnected for unread messages.
    pub cut_off: u64,
    /// Dead letters that went for others.
    pub evicted: u64,
    /// They waited when their client was gone.
    pub abandoned: u64,
}

impl AddAssign for Counted {
    fn add_assign(&mut self, other: Self) {
        self.waits += other.waits;
        self.went_on += other.went_on;
        self.held_off += other.held_off;
        self.shed += other.shed;
        self.set_aside += other.set_aside;
        self.cut_off += other.cut_off;
        self.evicted += other.evicted;
        self.abandoned += other.abandoned;
    }
}

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { waits, went_on, held_off, shed, set_aside, cut_off, evicted, abandoned } = self;
        write!(
            f,
            "{waits} waits, {went_on} not in vain, {held_off} held off, {shed} shed, \
             {set_aside} set aside, {cut_off} cut off, {evicted} evicted, {abandoned} abandoned"
        )
    }
}
