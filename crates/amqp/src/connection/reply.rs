//! The meaning of the engine's replies. Each but the unsolicited ones answers the oldest polled
//! command that is not answered. A message that waits for a place in its queue stays unsettled at
//! its peer until then, and its link gets no credit for it.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use model::{
    Command, Delivery, DependsOn, Destination, Durability, LinkId, Refusal, Reply, Settlement,
};

use crate::Connection;
use crate::connection::event::{Answer, Awaited, Departing, Fact, Settling};
use crate::connection::handshake::invalid_container;
use crate::connection::link::{Drain, Kind, Link, Standing};
use crate::connection::session::Session;
use crate::connection::work::settle;
use crate::connection::{Phase, address, elsewhere, refusal};
use crate::error::{Error, condition};
use crate::terminus::AttachTarget;

type Emission = Option<(DependsOn, Fact)>;

impl Connection {
    pub(super) fn conclude(&mut self, after: DependsOn, reply: Reply) -> Emission {
        let is_over = matches!(self.phase, Phase::Closing(_) | Phase::Closed);
        match reply {
            Reply::Delivered(_)
            | Reply::Drained { .. }
            | Reply::ConsumerClosed { .. }
            | Reply::ConsumerCutOff { .. }
                if is_over =>
            {
                None
            }
            Reply::Delivered(delivery) => self.take_delivery(after, delivery),
            Reply::Drained { link, delivered } => self.take_drained(after, link, delivered),
            Reply::ConsumerClosed { link } => {
                let why = "the destination was deleted";
                self.lose_consumer(link, Error::new(condition::RESOURCE_DELETED, why))
            }
            Reply::ConsumerCutOff { link, full } => {
                self.lose_consumer(link, refusal::cut_off(&full))
            }
            Reply::Waits { ticket } => {
                let awaited = self.next_awaited();
                self.blocked_sends.insert(ticket, awaited);
                None
            }
            Reply::Late { ticket, reply } => {
                let awaited = self.blocked_sends.remove(&ticket);
                let awaited = awaited.expect("invariant: what comes late was said to wait");
                if is_over { None } else { self.answer_awaited(awaited, after, *reply) }
            }
            reply => {
                let awaited = self.next_awaited();
                if is_over { None } else { self.answer_awaited(awaited, after, reply) }
            }
        }
    }

    fn next_awaited(&mut self) -> Awaited {
        self.awaited.pop_front().expect("invariant: the engine replies once to a command")
    }

    fn answer_awaited(&mut self, awaited: Awaited, after: DependsOn, reply: Reply) -> Emission {
        let in_order = self.latest;
        match awaited {
            Awaited::Ignored => None,
            Awaited::Identified => Some((in_order, self.identified(&reply))),
            Awaited::Recognised => {
                self.peer.is_identified |= !matches!(reply, Reply::Refused(_));
                None
            }
            Awaited::Begun(session) => Some((in_order, Fact::Begun(session))),
            Awaited::Created(link) => self.created(link, reply),
            Awaited::QueueSearched(link, destination, meaning) => {
                self.queue_searched(link, destination, meaning, &reply)
            }
            Awaited::Attached(link) => self.attached(link, reply),
            Awaited::Refused(link, error) => Some((in_order, Fact::AttachRefused(link, error))),
            Awaited::Found(link) => self.found(link, reply),
            Awaited::Put(incoming) => self.stored(incoming, after, &reply),
            Awaited::Rejected(incoming, error) => {
                self.answered(incoming, after, Answer::rejected(*error))
            }
            Awaited::Declared(incoming, transaction) => {
                self.declared(incoming, transaction, after, &reply)
            }
            Awaited::Discharged(incoming, transaction) => {
                self.discharged(incoming, transaction, after, &reply)
            }
            Awaited::Settled(settling) => self.settled(settling, after, &reply),
            Awaited::Unsubscribed(link) => {
                let error = self.unsubscribed(&reply);
                Some((in_order, Fact::Detached(link, Departing { closed: true, error })))
            }
            Awaited::Detached(link, how) => Some((in_order, Fact::Detached(link, how))),
            Awaited::Ended(session, error) => Some((in_order, Fact::Ended(session, error))),
            Awaited::Closed => Some((in_order, Fact::Closed)),
        }
    }

    fn identified(&mut self, reply: &Reply) -> Fact {
        match reply {
            Reply::Refused(Refusal::ClientInUse) => {
                Fact::OpenRefused(Box::new(invalid_container("the container id is in use")))
            }
            Reply::Refused(refusal) => Fact::OpenRefused(Box::new(refusal::error(refusal))),
            _ => {
                self.peer.is_identified = true;
                Fact::Opened
            }
        }
    }

    /// A temporary destination is there: now the link to it can be opened.
    fn created(&mut self, id: LinkId, reply: Reply) -> Emission {
        let destination = match reply {
            Reply::Created(destination) => destination,
            Reply::Refused(refusal) => return self.attached(id, Reply::Refused(refusal)),
            _ => return None,
        };
        let link = self.links.get_mut(&id).filter(|link| !link.is_ending());
        let Some(link) = link else {
            self.ask(Command::DeleteTemporary { destination }, Awaited::Ignored);
            let error = Error::new(condition::RESOURCE_DELETED, "the link was detached before");
            return Some((self.latest, Fact::AttachRefused(id, Box::new(error))));
        };
        link.temporary = Some(destination.clone());
        let address = Some(destination.name().as_str().into());
        if let Some(attach) = &mut link.attach {
            match (&link.kind, &mut attach.source, &mut attach.target) {
                (Kind::Consumer(_), Some(source), _) => source.address = address,
                (_, _, Some(AttachTarget::Node(target))) => target.address = address,
                _ => {}
            }
        }
        self.open_at(id, destination)
    }

    /// A name that means something else elsewhere is a queue if that queue is there.
    fn queue_searched(
        &mut self,
        id: LinkId,
        queue: Destination,
        meaning: &'static str,
        reply: &Reply,
    ) -> Emission {
        let is_ending = self.links.get(&id).is_none_or(Link::is_ending);
        if matches!(reply, Reply::QueueStatistics(_)) && !is_ending {
            return self.open_at(id, queue);
        }
        self.begin_ending(id);
        let error = match reply {
            Reply::Refused(refusal) => refusal::error(refusal),
            _ => elsewhere::refusal(meaning),
        };
        let error = Box::new(error);
        Some((self.latest, Fact::AttachRefused(id, error)))
    }

    fn open_at(&mut self, id: LinkId, destination: Destination) -> Emission {
        match self.opening(id, destination) {
            Ok(command) => {
                self.ask(command, Awaited::Attached(id));
                None
            }
            Err(error) => {
                self.begin_ending(id);
                Some((self.latest, Fact::AttachRefused(id, Box::new(error))))
            }
        }
    }

    fn attached(&mut self, id: LinkId, reply: Reply) -> Emission {
        let after = self.latest;
        let link = self.links.get_mut(&id)?;
        link.after = after;
        if let Reply::Refused(refusal) = reply {
            let error = Box::new(refusal::error(&refusal));
            self.begin_ending(id);
            return Some((after, Fact::AttachRefused(id, error)));
        }
        if link.standing == Standing::Opening {
            link.standing = Standing::Open;
            self.request_grant(id);
        }
        Some((after, Fact::Attached(id)))
    }

    /// A subscription that is to be ended was looked for (section R5 of JMS' mapping: an attach
    /// without a source asks for it, and gets it).
    fn found(&mut self, id: LinkId, reply: Reply) -> Emission {
        let Reply::Subscription(subscription) = reply else {
            let error = Box::new(Error::new(condition::NOT_FOUND, "no such subscription"));
            self.begin_ending(id);
            return Some((self.latest, Fact::AttachRefused(id, error)));
        };
        let link = self.links.get_mut(&id)?;
        if let Some(attach) = &mut link.attach {
            attach.source = Some(address::source(&subscription));
        }
        self.attached(id, Reply::Done)
    }

    fn unsubscribed(&self, reply: &Reply) -> Option<Box<Error>> {
        match reply {
            Reply::Refused(refusal) => Some(Box::new(refusal::error(refusal))),
            Reply::NotFound => {
                Some(Box::new(Error::new(condition::NOT_FOUND, "no such subscription")))
            }
            _ => None,
        }
    }

    /// The peer's disposition of a delivery in a transaction, or with the wish for an answer. If
    /// the transaction does not take it, it is as after a rollback.
    fn settled(&mut self, settling: Settling, after: DependsOn, reply: &Reply) -> Emission {
        let Settling { session, delivery, message, transaction, answer } = settling;
        let Reply::Refused(refusal) = reply else {
            return answer.map(|answer| (after, Fact::Settled(session, delivery, answer)));
        };
        if let Some(message) = message {
            self.ask(settle(message, Settlement::Fail, None), Awaited::Ignored);
        }
        let error = refusal::error(refusal);
        self.set_rollback_only(transaction, &error);
        answer.map(|_| (after, Fact::Settled(session, delivery, Answer::rejected(error))))
    }

    /// A message for a consumer, which may have gone.
    fn take_delivery(&mut self, after: DependsOn, delivery: Box<Delivery>) -> Emission {
        let link = self.links.get_mut(&delivery.link?)?;
        let (opened, is_ending) = (link.after, link.is_ending());
        let consumer = link.consumer()?;
        let is_held = !consumer.browses;
        if is_ending {
            if is_held {
                self.release(VecDeque::from([delivery.message]));
            }
            return None;
        }
        if is_held {
            let is_new = consumer.unsent.insert(delivery.message);
            assert!(is_new, "invariant: what is held is not delivered again");
        }
        // A durable delivery keeps its order on the link; another may overtake it (JMS 3.1, 6.2.9).
        // Otherwise a message with a failed delivery just journalled comes behind its followers.
        let mut after = after.and(opened);
        if delivery.durability != Durability::None {
            consumer.latest = consumer.latest.and(after);
            after = consumer.latest;
        }
        Some((after, Fact::Delivered(delivery)))
    }

    fn take_drained(&mut self, after: DependsOn, id: LinkId, delivered: u64) -> Emission {
        let link = self.links.get_mut(&id).filter(|link| !link.is_ending())?;
        let opened = link.after;
        let is_full = self.sessions.get(&link.session).is_some_and(Session::is_full);
        let consumer = link.consumer()?;
        if consumer.drain != Drain::Begun {
            // The peer has changed its mind, or drains anew: it keeps the credit that the engine
            // took.
            consumer.said = delivered;
            self.request_grant(id);
            return None;
        }
        if consumer.is_throttled() && delivered >= consumer.said && !is_full {
            // The engine's limit is reached, the peer's is not: it goes on with the next one. In a
            // session that is full there is none, and to ask again would be to ask for ever.
            consumer.drain = Drain::Asked;
            if consumer.limit() > consumer.said {
                self.request_grant(id);
            }
            return None;
        }
        (consumer.said, consumer.drain) = (delivered, Drain::Ended);
        Some((after.and(opened), Fact::Drained(id, consumer.drains)))
    }

    /// The source of a consumer was deleted, or the consumer left too much there.
    fn lose_consumer(&mut self, id: LinkId, error: Error) -> Emission {
        let link = self.links.get(&id).filter(|link| !link.is_ending())?;
        let after = self.latest.and(link.after);
        self.begin_ending(id);
        let how = Departing { closed: true, error: Some(Box::new(error)) };
        Some((after, Fact::Detached(id, how)))
    }
}
