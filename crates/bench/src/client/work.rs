//! The work of a client of the fleet.

use std::time::Instant;

use super::field::Field;
use super::session::{Event, Session};

/// One client's part of a phase: decides which messages are sent, and handles received events.
pub(crate) trait Work {
    /// The session is open: attaches the links.
    fn attach(&mut self, session: &mut Session);

    /// Something came.
    fn handle(&mut self, event: Event, session: &mut Session, field: &mut Field, now: Instant);

    /// Works as far as it can now; called from the start on, whenever something came and some ten
    /// times a second.
    fn turn(&mut self, session: &mut Session, field: &mut Field, now: Instant);

    /// True if nothing is left to do.
    fn is_done(&self) -> bool;
}
