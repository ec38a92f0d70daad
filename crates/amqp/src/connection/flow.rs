//! Credit and windows (2.5.6, 2.6.7).

use alloc::vec::Vec;

use model::{Command, LinkId};

use crate::Connection;
use crate::connection::Fault;
use crate::connection::link::{Consumer, Drain, Kind, Link, Producer};
use crate::connection::session::{SessionKey, Waiting};
use crate::connection::work::Work;
use crate::error::{Error, condition};
use crate::performative::{Flow, Performative};

impl Connection {
    pub(super) fn handle_flow(
        &mut self,
        key: SessionKey,
        flow: &Flow,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let Some(session) = self.sessions.get_mut(&key) else { return Ok(()) };
        session.set_windows(flow);
        match flow.handle {
            None if flow.echo && session.begun => {
                let (channel, answer) = (session.channel, session.flow());
                self.write(channel, &Performative::Flow(answer), out);
            }
            None => {}
            Some(handle) => {
                let Some(&id) = session.handles.get(&handle) else {
                    let why = "no link has this handle";
                    let error = Error::new(condition::SESSION_UNATTACHED_HANDLE, why);
                    return Err(Fault::Session(key, error));
                };
                self.handle_link_flow(id, flow, out);
            }
        }
        self.send_waiting(key, out);
        Ok(())
    }

    fn handle_link_flow(&mut self, id: LinkId, flow: &Flow, out: &mut Vec<u8>) {
        let Some(link) = self.links.get_mut(&id).filter(|link| !link.is_ending()) else { return };
        match &mut link.kind {
            Kind::Consumer(consumer) => {
                if let Some(credit) = flow.link_credit {
                    consumer.set_credit(flow.delivery_count, credit, flow.drain);
                    self.unpark(id);
                    self.request_grant(id);
                }
            }
            Kind::Producer(producer) => {
                if let Some(counted) = flow.delivery_count {
                    producer.count(counted);
                }
                self.renew_credit(id, out);
            }
            Kind::Lookup(_) => {}
        }
        if flow.echo {
            self.echo(id, out);
        }
    }

    fn echo(&mut self, id: LinkId, out: &mut Vec<u8>) {
        match self.links.get_mut(&id) {
            Some(link) if link.attach.is_some() => link.echo = true,
            _ => self.write_flow(id, out),
        }
    }

    /// Lets the engine hear of a consumer's credit, once it is open and unless it will already.
    pub(super) fn request_grant(&mut self, id: LinkId) {
        let Some(link) = self.links.get_mut(&id).filter(|link| link.is_open()) else { return };
        let Some(consumer) = link.consumer() else { return };
        if !core::mem::replace(&mut consumer.granting, true) {
            self.work.push_back(Work::Grant(id));
        }
    }

    /// The command that tells the engine how much a consumer may get, if that has changed.
    pub(super) fn grant(&mut self, id: LinkId) -> Option<Command> {
        let link = self.links.get_mut(&id)?;
        let (is_open, session) = (link.is_open(), link.session);
        let consumer = link.consumer()?;
        consumer.granting = false;
        if consumer.drain == Drain::Ended {
            return None;
        }
        let session = self.sessions.get_mut(&session).filter(|_| is_open)?;
        let is_held_back = consumer.credit > 0 && !session.admit(id);
        let limit = if is_held_back { consumer.disposed } else { consumer.limit() };
        // A credit without it would take a drain back that is under way.
        let drain = match consumer.drain {
            Drain::Asked => true,
            Drain::Begun => consumer.credit > 0,
            Drain::None | Drain::Ended => false,
        };
        let lacks_bytes = limit > consumer.disposed && consumer.lags_in_bytes();
        if limit == consumer.said && !lacks_bytes && !drain {
            return None;
        }
        if drain {
            consumer.drain = Drain::Begun;
        }
        let bytes = consumer.limit_bytes();
        (consumer.said, consumer.said_bytes) = (limit, bytes);
        Some(Command::Credit { link: id, limit, bytes, drain })
    }

    /// Gives a producer credit anew when it has used half of it, and its attach was told.
    pub(super) fn renew_credit(&mut self, id: LinkId, out: &mut Vec<u8>) {
        let Some(link) = self.links.get_mut(&id) else { return };
        if !link.is_open() || link.attach.is_some() {
            return;
        }
        if link.producer().is_some_and(Producer::renew) {
            self.write_flow(id, out);
        }
    }

    /// The engine has nothing more for a consumer that asked to use up its credit. The peer is told
    /// so behind the deliveries that wait for the window.
    pub(super) fn emit_drained_later(&mut self, id: LinkId, drain: u32, out: &mut Vec<u8>) {
        let Some(link) = self.links.get(&id).filter(|link| !link.is_ending()) else { return };
        let key = link.session;
        self.let_wait(key, Waiting::Drained(id, drain));
        self.send_waiting(key, out);
    }

    /// "The sender will advance the delivery-count as much as possible, consuming all available
    /// link-credit, and send the flow state to the receiver" (2.6.7). A later flow may have ended
    /// the drain, or begun another; this drain must not use up that credit.
    pub(super) fn emit_drained(&mut self, id: LinkId, drain: u32, out: &mut Vec<u8>) {
        let consumer = self.consumer(id).filter(|consumer| consumer.awaits(drain));
        let Some(consumer) = consumer else { return };
        consumer.exhaust();
        self.write_flow(id, out);
    }

    /// Tells our state of a link and its session.
    pub(super) fn write_flow(&mut self, id: LinkId, out: &mut Vec<u8>) {
        let Some(link) = self.links.get(&id) else { return };
        let Some(session) = self.sessions.get(&link.session) else { return };
        let (channel, flow) = (session.channel, link.flow(session.flow()));
        self.write(channel, &Performative::Flow(flow), out);
    }

    pub(super) fn consumer(&mut self, id: LinkId) -> Option<&mut Consumer> {
        self.links.get_mut(&id)?.consumer()
    }

    pub(super) fn producer(&mut self, id: LinkId) -> Option<&mut Producer> {
        self.links.get_mut(&id)?.producer()
    }
}

impl Link {
    /// The link's part of a flow.
    fn flow(&self, session: Flow) -> Flow {
        let (delivery_count, link_credit, drain) = match &self.kind {
            Kind::Producer(producer) => (producer.delivery_count, producer.credit, false),
            Kind::Consumer(consumer) => {
                (consumer.delivery_count, consumer.credit, consumer.drain != Drain::None)
            }
            Kind::Lookup(_) => (0, 0, false),
        };
        Flow {
            handle: Some(self.handle),
            delivery_count: Some(delivery_count),
            link_credit: Some(link_credit),
            drain,
            ..session
        }
    }
}
