//! What a client of the fleet does.

use std::time::Instant;

use super::field::Field;
use super::session::{Event, Session};

/// One client's part of a phase: decides what is sent, and learns what came.
pub(crate) trait Work {
    /// The session is open: attaches the links.
    fn attach(&mut self, session: &mut Session);

    /// Something came.
    fn handle(&mut self, event: Event, session: &mut Session, field: &mut Field, now: Instant);

    /// Does whatever can be done now; called from the start on, whenever something came and some
    /// ten times a second.
    fn turn(&mut self, session: &mut Session, field: &mut Field, now: Instant);

    /// True if nothing is left to do.
    fn is_done(&self) -> bool;
}
