//! A client that reads without taking: one trial after another, each a look at the first messages.

use std::time::Instant;

use client::{Event, Place, Session, Wanted};

use super::field::Field;
use super::work::Work;

/// Looks through the first messages of a queue again and again, while producers send.
#[derive(Debug)]
pub(crate) struct Browser {
    from: Place,
    /// Messages of a trial.
    reads: u32,
    link: u32,
    read: u32,
    first: u32,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Attached, before the first trial.
    Attached,
    Reading,
    ExpectDetached,
    Done,
}

impl Browser {
    pub(crate) fn new(from: &Place, reads: u32) -> Self {
        Self { from: from.clone(), reads, link: 0, read: 0, first: 0, state: State::Attached }
    }

    fn read(&mut self, delivery: u32, bytes: &[u8], session: &mut Session, field: &mut Field) {
        field.glimpse(bytes);
        if self.read == 0 {
            self.first = delivery;
        }
        self.read += 1;
        if self.read == self.reads {
            session.accept(self.first, delivery, true, None);
            session.detach(self.link);
            self.state = State::ExpectDetached;
        }
    }
}

impl Work for Browser {
    fn attach(&mut self, session: &mut Session) {
        let wanted = Wanted { browse: true, ..Wanted::default() };
        self.link = session.attach_consumer(&self.from, &wanted);
    }

    fn handle(&mut self, event: Event, session: &mut Session, field: &mut Field, now: Instant) {
        match event {
            Event::Message { delivery, bytes, .. } if self.state == State::Reading => {
                self.read(delivery, &bytes, session, field);
            }
            Event::Detached(_) => {
                field.trials += 1;
                field.answered(now);
                if field.is_open(now) {
                    self.attach(session);
                    self.state = State::Attached;
                } else {
                    self.state = State::Done;
                }
            }
            _ => {}
        }
    }

    fn turn(&mut self, session: &mut Session, _: &mut Field, _: Instant) {
        if self.state == State::Attached {
            self.read = 0;
            session.grant(self.link, self.reads, false);
            self.state = State::Reading;
        }
    }

    fn is_done(&self) -> bool {
        self.state == State::Done
    }
}
