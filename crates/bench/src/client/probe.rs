//! A client that looks whether a queue is empty, and takes nothing.

use std::time::Instant;

use client::{Event, Place, Session, Wanted};

use super::field::Field;
use super::work::Work;

/// Looks for one message.
#[derive(Debug)]
pub(crate) struct Probe {
    at: Place,
    link: u32,
    has_asked: bool,
    is_done: bool,
}

impl Probe {
    pub(crate) fn new(at: &Place) -> Self {
        Self { at: at.clone(), link: 0, has_asked: false, is_done: false }
    }
}

impl Work for Probe {
    fn attach(&mut self, session: &mut Session) {
        let wanted = Wanted { browse: true, ..Wanted::default() };
        self.link = session.attach_consumer(&self.at, &wanted);
    }

    fn handle(&mut self, event: Event, _: &mut Session, field: &mut Field, _: Instant) {
        match event {
            Event::Message { .. } => {
                field.ledger.foreign();
                self.is_done = true;
            }
            Event::Drained(_) => self.is_done = true,
            _ => {}
        }
    }

    fn turn(&mut self, session: &mut Session, _: &mut Field, _: Instant) {
        if !self.has_asked {
            self.has_asked = true;
            session.grant(self.link, 1, true);
        }
    }

    fn is_done(&self) -> bool {
        self.is_done
    }
}
