//! How links, sessions and the connection end, by the peer's wish or for an error (2.4.3, 2.5.5,
//! 2.6.5, 2.6.6).
//!
//! Deliveries that were sent and not settled, or not sent at all, go back to where they were. No
//! attempt is counted: only a lost connection counts attempts. A broker that keeps no state of
//! links across connections has nothing to resume (2.6.13).

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use model::{Command, LinkId, MessageId};

use crate::Connection;
use crate::connection::event::{Awaited, Departing};
use crate::connection::link::{Kind, Recipient, Standing, drain_unsent};
use crate::connection::session::{SessionKey, Unsettled, Waiting};
use crate::connection::work::Work;
use crate::connection::{Fault, Phase};
use crate::error::{Error, condition};
use crate::performative::{Close, Detach, End, Performative, Role};

/// Links.
impl Connection {
    pub(super) fn detach_by_peer(&mut self, key: SessionKey, detach: &Detach) -> Result<(), Fault> {
        let session = self.sessions.get_mut(&key);
        let Some(id) = session.and_then(|session| session.handles.remove(&detach.handle)) else {
            let error = Error::new(condition::SESSION_UNATTACHED_HANDLE, "no link has this handle");
            return Err(Fault::Session(key, error));
        };
        let Some(link) = self.links.get_mut(&id) else { return Ok(()) };
        link.peer_detached = true;
        if link.is_ending() {
            if link.detached {
                self.forget_link(id);
            }
            if let Some(session) = self.sessions.get_mut(&key) {
                session.released_ranges.forget(id);
            }
            return Ok(());
        }
        self.begin_ending(id);
        self.finish_detach(id, detach.closed);
        Ok(())
    }

    /// Deletes the entities that go with a link that the peer closes, and then answers.
    fn finish_detach(&mut self, id: LinkId, closed: bool) {
        let kind = self.links.get_mut(&id).filter(|_| closed).map(|link| &mut link.kind);
        if let Some(Kind::Lookup(wanted)) = kind {
            if let Some(name) = wanted.take() {
                return self.ask(Command::Unsubscribe { name }, Awaited::Unsubscribed(id));
            }
        } else if let Some(Kind::Consumer(consumer)) = kind
            && let Some(name) = consumer.durable.take()
        {
            // Refused while others share it: the last one to close it deletes it.
            self.ask(Command::Unsubscribe { name: *name }, Awaited::Ignored);
        }
        self.ask_nothing(Awaited::Detached(id, Departing { closed, error: None }));
    }

    /// Ends a link for an error.
    pub(super) fn detach_link(&mut self, id: LinkId, error: Error) {
        if self.links.get(&id).is_some_and(|link| !link.is_ending()) {
            self.begin_ending(id);
            let how = Departing { closed: true, error: Some(Box::new(error)) };
            self.ask_nothing(Awaited::Detached(id, how));
        }
    }

    /// From here on the link is none for the engine.
    pub(super) fn begin_ending(&mut self, id: LinkId) {
        let Some(link) = self.links.get_mut(&id).filter(|link| !link.is_ending()) else { return };
        link.standing = Standing::Ending;
        let role = link.peer_role() == Role::Sender;
        let key = (role, link.name.clone());
        let temporary = link.temporary.take();
        if self.names.get(&key) == Some(&id) {
            self.names.remove(&key);
        }
        self.close_end(id);
        if let Some(destination) = temporary {
            self.ask(Command::DeleteTemporary { destination }, Awaited::Ignored);
        }
    }

    fn close_end(&mut self, id: LinkId) {
        let Some(link) = self.links.get_mut(&id) else { return };
        let session = link.session;
        match &mut link.kind {
            Kind::Producer(producer) => {
                self.held_bytes -= producer.partial_bytes();
                let partial = producer.partial.take();
                let to = core::mem::replace(&mut producer.to, Recipient::Relay);
                self.lose_part(partial.and_then(|partial| partial.enlisted.transaction()));
                match to {
                    Recipient::Node => {
                        self.ask(Command::CloseProducer { link: id }, Awaited::Ignored);
                    }
                    Recipient::Relay | Recipient::Table(_) => {}
                    Recipient::Coordinator(open) => self.roll_back_all(open),
                }
            }
            Kind::Consumer(consumer) => {
                let mut unfinished = drain_unsent(consumer);
                let unsettled = core::mem::take(&mut consumer.unsettled);
                let ended_by_us = (!link.peer_detached).then_some(id);
                self.ask(Command::CloseConsumer { link: id }, Awaited::Ignored);
                if !unsettled.is_empty() {
                    unfinished.extend(self.take_back(session, unsettled, ended_by_us));
                }
                self.forget_waiting(session, id);
                self.release(unfinished);
            }
            Kind::Lookup(_) => {}
        }
    }

    /// Gives back the unsettled deliveries of a link, but for those that the peer was heard to
    /// settle already. Says which link we ended, if the peer did not.
    fn take_back(
        &mut self,
        key: SessionKey,
        own: BTreeSet<u64>,
        ended_by_us: Option<LinkId>,
    ) -> Vec<MessageId> {
        let settled = self.settling(key);
        let Some(session) = self.sessions.get_mut(&key) else { return Vec::new() };
        let mut messages = Vec::new();
        for delivery in own.into_iter().filter(|delivery| !settled.has(*delivery)) {
            session.released_ranges.note(ended_by_us, delivery);
            let Some(unsettled) = session.unsettled.remove(&delivery) else { continue };
            self.held_bytes -= unsettled.bytes();
            messages.extend(unsettled.message);
        }
        let readmitted = session.readmit();
        self.work.extend(readmitted.into_iter().map(Work::Grant));
        messages
    }

    /// Leaves the waiting entries of other links alone: there may be very many.
    fn forget_waiting(&mut self, key: SessionKey, id: LinkId) {
        let Some(consumer) = self.consumer(id) else { return };
        let places = core::mem::take(&mut consumer.places);
        let parked = core::mem::take(&mut consumer.parked);
        for (_, outgoing) in parked {
            self.held_bytes -= Waiting::Delivery(outgoing).bytes();
        }
        let Some(session) = self.sessions.get_mut(&key) else { return };
        session.forget_held_back(id);
        let own = places.into_iter().filter_map(|place| session.waiting.remove(&place));
        self.held_bytes -= own.map(|waiting| waiting.bytes()).sum::<usize>();
    }

    pub(super) fn emit_detach(&mut self, id: LinkId, how: Departing, out: &mut Vec<u8>) {
        let Some(link) = self.links.get_mut(&id) else { return };
        let handle = link.handle;
        let was_detached = core::mem::replace(&mut link.detached, true);
        let (session, is_gone) = (link.session, link.peer_detached);
        if is_gone {
            self.forget_link(id);
        }
        let Some(channel) = self.channel_of(session) else { return };
        if !was_detached {
            let detach = Detach { handle, closed: how.closed, error: how.error };
            self.write(channel, &Performative::Detach(detach), out);
        }
    }

    /// Both of its ends have detached, or its session has ended.
    pub(super) fn forget_link(&mut self, id: LinkId) {
        self.link_bytes -= self.links.remove(&id).map_or(0, |link| link.bytes());
    }
}

/// Sessions.
impl Connection {
    pub(super) fn end_by_peer(&mut self, channel: u16, key: SessionKey) {
        self.channels.remove(&channel);
        let Some(session) = self.sessions.get_mut(&key) else { return };
        session.peer_ended = true;
        if !session.ending {
            self.begin_session_end(key);
            self.ask_nothing(Awaited::Ended(key, None));
        } else if session.ended {
            self.forget_session(key);
        }
    }

    /// Ends a session for an error.
    pub(super) fn end_session(&mut self, key: SessionKey, error: Error) {
        if self.sessions.get(&key).is_some_and(|session| !session.ending) {
            self.begin_session_end(key);
            self.ask_nothing(Awaited::Ended(key, Some(Box::new(error))));
        }
    }

    fn begin_session_end(&mut self, key: SessionKey) {
        let settled = self.settling(key);
        let Some(session) = self.sessions.get_mut(&key) else { return };
        session.ending = true;
        let unsettled = session.unsettled.extract_if(.., |delivery, _| !settled.has(*delivery));
        let unsettled: Vec<_> = unsettled.map(|(_, unsettled)| unsettled).collect();
        self.held_bytes -= unsettled.iter().map(Unsettled::bytes).sum::<usize>();
        let waiting = core::mem::take(&mut session.waiting);
        self.held_bytes -= waiting.values().map(Waiting::bytes).sum::<usize>();
        let links: Vec<_> = session.handles.values().copied().collect();
        for link in links {
            if let Some(consumer) = self.consumer(link) {
                consumer.unsettled.clear();
            }
            self.begin_ending(link);
        }
        self.release(unsettled.into_iter().filter_map(|unsettled| unsettled.message).collect());
    }

    pub(super) fn emit_end(
        &mut self,
        key: SessionKey,
        error: Option<Box<Error>>,
        out: &mut Vec<u8>,
    ) {
        let Some(session) = self.sessions.get_mut(&key) else { return };
        session.ended = true;
        let (channel, is_gone) = (session.channel, session.peer_ended);
        self.write(channel, &Performative::End(End { error }), out);
        if is_gone {
            self.forget_session(key);
        }
    }

    fn forget_session(&mut self, key: SessionKey) {
        let Some(session) = self.sessions.remove(&key) else { return };
        for link in session.handles.values() {
            self.forget_link(*link);
        }
    }
}

/// The connection.
impl Connection {
    pub(super) fn close_by_peer(&mut self) {
        self.phase = Phase::Leaving;
        let sessions: Vec<_> = self.sessions.keys().copied().collect();
        for session in sessions {
            if self.sessions.get(&session).is_some_and(|session| !session.ending) {
                self.begin_session_end(session);
            }
        }
        self.ask_nothing(Awaited::Closed);
    }

    pub(super) fn emit_close(&mut self, out: &mut Vec<u8>) {
        self.write(0, &Performative::Close(Close { error: None }), out);
        self.phase = Phase::Closed;
    }
}
