//! Messages of the peer: transfers become deliveries, deliveries become puts (2.6.14, 2.7.5).

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use model::{Command, DependsOn, LinkId, QueueName, Reply, TableStep, TransactionId};

use crate::Connection;
use crate::connection::arrival::Present;
use crate::connection::event::{Answer, Awaited, Fact, Incoming, transaction};
use crate::connection::link::{Enlisted, Partial, Recipient};
use crate::connection::session::SessionKey;
use crate::connection::{Fault, arrival, refusal, tables};
use crate::error::{Error, condition};
use crate::performative::{Performative, Role, Transfer};
use crate::state::DeliveryState;

/// A delivery of which the last frame has come; its bytes are the payload of that frame, or all of
/// them.
struct Whole<'p> {
    head: Partial,
    last: &'p [u8],
}

impl Connection {
    pub(super) fn receive(
        &mut self,
        key: SessionKey,
        transfer: &Transfer<'_>,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let id = self.count_transfer(key, transfer.handle, out)?;
        match self.assemble(id, transfer, payload)? {
            Some(whole) if !whole.head.resumes => self.receive_whole(key, id, whole),
            // A delivery that gets no answer has used its credit all the same.
            Some(_) => self.renew_credit(id, out),
            None if transfer.aborted => self.renew_credit(id, out),
            None => {}
        }
        Ok(())
    }

    /// Counts a transfer frame in the session's window (2.5.6) and finds its link.
    fn count_transfer(
        &mut self,
        key: SessionKey,
        handle: u32,
        out: &mut Vec<u8>,
    ) -> Result<LinkId, Fault> {
        let fault = |condition, why| Fault::Session(key, Error::new(condition, why));
        let unknown = || fault(condition::SESSION_UNATTACHED_HANDLE, "no link has this handle");
        let session = self.sessions.get_mut(&key).ok_or_else(unknown)?;
        if !session.receive() {
            return Err(fault(condition::SESSION_WINDOW_VIOLATION, "more transfers than allowed"));
        }
        let id = session.handles.get(&handle).copied();
        if session.renew() && session.begun {
            let (channel, flow) = (session.channel, session.flow());
            self.write(channel, &Performative::Flow(flow), out);
        }
        id.ok_or_else(unknown)
    }

    /// Adds a frame to its delivery. Gives the delivery once it is whole.
    fn assemble<'p>(
        &mut self,
        id: LinkId,
        transfer: &Transfer<'_>,
        payload: &'p [u8],
    ) -> Result<Option<Whole<'p>>, Fault> {
        let bytes_max = self.options.max_message_bytes;
        let fault = |condition, why| Fault::Link(id, Error::new(condition, why));
        let Some(link) = self.links.get_mut(&id).filter(|link| !link.is_ending()) else {
            self.lose_part(Enlisted::of(transfer).transaction());
            return Ok(None);
        };
        let Some(producer) = link.producer() else {
            return Err(fault(condition::NOT_ALLOWED, "the link is for the other direction"));
        };
        let begun = producer.partial.take();
        if begun.is_none() && !producer.begin() {
            return Err(fault(
                condition::LINK_TRANSFER_LIMIT_EXCEEDED,
                "a delivery without credit",
            ));
        }
        let before = begun.as_ref().map_or(0, |partial| partial.bytes.len());
        self.held_bytes -= before;
        // "Aborted messages SHOULD be discarded by the recipient" (2.7.5).
        if transfer.aborted {
            return Ok(None);
        }
        let enlisted = begun.as_ref().and_then(|partial| partial.enlisted.transaction());
        let head = match begun {
            Some(begun) => (*begun).go_on(transfer),
            None => Partial::begin(transfer),
        };
        let mut head = match head {
            Ok(head) => head,
            Err(why) => {
                self.lose_part(enlisted);
                return Err(fault(condition::NOT_ALLOWED, why));
            }
        };
        if before as u64 + payload.len() as u64 > bytes_max {
            let why = "the message is larger than the link takes";
            let error = Error::new(condition::LINK_MESSAGE_SIZE_EXCEEDED, why);
            self.set_rollback_only(head.enlisted.transaction(), &error);
            return Err(Fault::Link(id, error));
        }
        if !transfer.more {
            return Ok(Some(Whole { head, last: payload }));
        }
        if !head.resumes {
            head.bytes.extend_from_slice(payload);
            self.held_bytes += head.bytes.len();
        }
        producer.partial = Some(Box::new(head));
        Ok(None)
    }

    fn receive_whole(&mut self, key: SessionKey, link: LinkId, whole: Whole<'_>) {
        let Whole { mut head, last } = whole;
        let body = if head.bytes.is_empty() {
            Arc::from(last)
        } else {
            head.bytes.extend_from_slice(last);
            Arc::from(core::mem::take(&mut head.bytes))
        };
        let transaction = head.enlisted.transaction();
        let incoming =
            Incoming { session: key, link, id: head.id, settled: head.settled, transaction };
        let Some(producer) = self.producer(link) else { return };
        producer.unanswered += 1;
        match &producer.to {
            Recipient::Coordinator(_) => self.coordinate(incoming, &body),
            _ if head.enlisted == Enlisted::Unknown => {
                let error = Error::new(condition::TRANSACTION_UNKNOWN_ID, "no such transaction");
                self.reject(incoming, error);
            }
            Recipient::Table(table) => {
                let table = Ok(table.clone());
                self.change_table(incoming, table, &body, head.format);
            }
            Recipient::Relay => match tables::named_by(&body) {
                Some(table) => self.change_table(incoming, table, &body, head.format),
                None => self.put(incoming, body, head.format, true),
            },
            Recipient::Node => self.put(incoming, body, head.format, false),
        }
    }

    pub(super) fn present(&self) -> Present<'_> {
        Present { now: self.now, clock: &self.options.wall_clock }
    }

    fn put(&mut self, incoming: Incoming, body: Arc<[u8]>, format: u32, is_relayed: bool) {
        let Incoming { link, transaction, .. } = incoming;
        if self.options.draining.has_begun() {
            return self.refuse(incoming, refusal::draining());
        }
        match arrival::read(body, format, is_relayed, self.user().map(|it| &**it), self.present()) {
            Err(error) => self.refuse(incoming, error),
            Ok(arrival) => {
                self.looked_at(arrival.looked_at);
                let message = arrival.message;
                let command = match arrival.to {
                    Some(to) => Command::PutTo { to, message, transaction },
                    None => Command::Put { link, message, transaction },
                };
                self.ask(command, Awaited::Put(incoming));
            }
        }
    }

    /// A message says a step on a table.
    fn change_table(
        &mut self,
        incoming: Incoming,
        table: Result<QueueName, Error>,
        body: &[u8],
        format: u32,
    ) {
        self.looked_at(body.len());
        let steps = table.and_then(|table| tables::steps(&table, body, format));
        let stores = steps.as_ref().is_ok_and(|steps| steps.iter().any(TableStep::stores));
        if stores && self.options.draining.has_begun() {
            return self.refuse(incoming, refusal::draining());
        }
        let commands = steps.and_then(|steps| tables::commands(steps, incoming.transaction));
        let (last, before) = match commands.map(|mut commands| (commands.pop(), commands)) {
            Ok((Some(last), before)) => (last, before),
            Ok((None, _)) => return,
            Err(error) => return self.refuse(incoming, error),
        };
        // If one of these is refused so is the last, for the transaction can only roll back.
        before.into_iter().for_each(|command| self.ask(command, Awaited::Ignored));
        self.ask(last, Awaited::Put(incoming));
    }

    /// Rejects a message, and the transaction that it was to be part of.
    fn refuse(&mut self, incoming: Incoming, error: Error) {
        self.set_rollback_only(incoming.transaction, &error);
        self.reject(incoming, error);
    }

    /// Tells the peer that its delivery is refused, in its turn.
    pub(super) fn reject(&mut self, incoming: Incoming, error: Error) {
        self.ask_nothing(Awaited::Rejected(incoming, Box::new(error)));
    }

    /// The engine has stored a message, or not.
    pub(super) fn stored(
        &mut self,
        incoming: Incoming,
        after: DependsOn,
        reply: &Reply,
    ) -> Option<(DependsOn, Fact)> {
        let answer = match reply {
            Reply::Refused(refusal) => {
                let error = refusal::error(refusal);
                self.set_rollback_only(incoming.transaction, &error);
                Answer::rejected(error)
            }
            _ => Answer::accepted(incoming.transaction),
        };
        self.answered(incoming, after, answer)
    }

    /// The outcome of a delivery is known. A peer that has settled does not wait for it.
    pub(super) fn answered(
        &mut self,
        incoming: Incoming,
        after: DependsOn,
        answer: Answer,
    ) -> Option<(DependsOn, Fact)> {
        if !incoming.settled {
            return Some((after, Fact::Answered(incoming, answer)));
        }
        let producer = self.producer(incoming.link)?;
        producer.unanswered -= 1;
        producer.is_due().then_some((DependsOn::NOTHING, Fact::Answerable(incoming.link)))
    }

    pub(super) fn emit_answer(&mut self, incoming: &Incoming, answer: Answer, out: &mut Vec<u8>) {
        if let Some(producer) = self.producer(incoming.link) {
            producer.unanswered -= 1;
        }
        if let Some(channel) = self.channel_of(incoming.session) {
            self.answer(channel, Role::Receiver, incoming.id, answer, out);
            self.renew_credit(incoming.link, out);
        }
    }
}

impl Partial {
    /// The first transfer of a delivery tells all of it (2.7.5).
    fn begin(transfer: &Transfer<'_>) -> Result<Self, &'static str> {
        let Some(id) = transfer.delivery_id else { return Err("a delivery begins without its id") };
        if transfer.delivery_tag.is_none() {
            return Err("a delivery begins without its tag");
        }
        Ok(Self {
            id,
            settled: transfer.settled.unwrap_or_default(),
            format: transfer.message_format.unwrap_or_default(),
            enlisted: Enlisted::of(transfer),
            resumes: transfer.resume,
            bytes: Vec::new(),
        })
    }

    /// Another transfer of it. One of another delivery may not come in between (2.6.14).
    fn go_on(mut self, transfer: &Transfer<'_>) -> Result<Self, &'static str> {
        if transfer.delivery_id.is_some_and(|id| id != self.id) {
            return Err("a delivery begins before the last one ended");
        }
        // "If settled on any of the transfers, the delivery is settled" (2.7.5).
        self.settled |= transfer.settled.unwrap_or_default();
        if self.enlisted == Enlisted::No {
            self.enlisted = Enlisted::of(transfer);
        }
        Ok(self)
    }
}

impl Enlisted {
    pub(super) const fn transaction(self) -> Option<TransactionId> {
        match self {
            Self::In(transaction) => Some(transaction),
            Self::No | Self::Unknown => None,
        }
    }

    fn of(transfer: &Transfer<'_>) -> Self {
        match transfer.state {
            Some(DeliveryState::Transactional { txn_id, .. }) => {
                transaction(txn_id).map_or(Self::Unknown, Self::In)
            }
            _ => Self::No,
        }
    }
}
