//! The work of a client of the fleet.

use std::time::Instant;

use client::{Event, Session};

use super::field::Field;

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

#[cfg(test)]
pub(super) mod tests {
    use testkit::amqp_broker::Broker;

    use super::*;

    /// Gives the frames of a broker to a worker, and lets it work as far as it can.
    pub(in crate::client) fn hear(
        work: &mut dyn Work,
        broker: Broker,
        session: &mut Session,
        field: &mut Field,
    ) {
        let now = Instant::now();
        for event in broker.tell(session).unwrap() {
            work.handle(event, session, field, now);
        }
        work.turn(session, field, now);
    }
}
