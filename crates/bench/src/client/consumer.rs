//! A client that takes messages until all that were confirmed have come.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use amqp::transaction::CoordinatorRequest;
use client::{Event, Place, Said, Session, Wanted};

use super::field::Field;
use super::work::Work;

/// How a consumer acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settling {
    /// So many messages at a time.
    pub(crate) group: usize,
    /// The answer that the consumer waits for.
    pub(crate) promise: Promise,
}

/// The answer that a consumer waits for before it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Promise {
    /// Nothing.
    None,
    /// The broker has said that the acknowledgement is safe.
    Answered,
    /// The same, by the commit of a transaction that holds it.
    Committed,
}

impl Settling {
    /// The cheapest way to empty a queue.
    pub(crate) const LAZY: Settling = Settling { group: 100, promise: Promise::None };
}

/// Takes from a place.
#[derive(Debug)]
pub(crate) struct Consumer {
    from: Place,
    wanted: Wanted,
    settling: Settling,
    link: u32,
    coordinator: u32,
    /// Messages that came while it waited, with the numbers of their deliveries.
    waiting: VecDeque<(u32, Vec<u8>)>,
    /// Deliveries that it has looked at and not acknowledged: first, last, count.
    group: Option<(u32, u32, usize)>,
    state: State,
}

/// Its progress.
#[derive(Debug, PartialEq, Eq)]
enum State {
    Taking,
    /// The delivery, and when that began.
    ExpectSettled(u32, Instant),
    ExpectDeclared,
    ExpectDischarged,
    /// All has come; it makes sure that there is nothing more.
    ExpectDrained,
    ExpectDetached,
    Done,
}

impl Consumer {
    pub(crate) fn new(from: &Place, wanted: Wanted, settling: Settling) -> Self {
        Self {
            from: from.clone(),
            wanted,
            settling,
            link: 0,
            coordinator: 0,
            waiting: VecDeque::new(),
            group: None,
            state: State::Taking,
        }
    }

    fn credit(&self) -> u32 {
        CREDIT.max(2 * self.settling.group as u32)
    }

    /// Looks at the messages that came, as long as it need not wait.
    fn take(&mut self, session: &mut Session, field: &mut Field, now: Instant) {
        while self.state == State::Taking {
            let Some((delivery, bytes)) = self.waiting.pop_front() else { break };
            field.see(&bytes, now);
            let (first, _, count) = self.group.unwrap_or((delivery, delivery, 0));
            self.group = Some((first, delivery, count + 1));
            if count + 1 >= self.settling.group {
                self.settle(session, now);
            }
        }
        session.replenish(self.link, self.credit());
    }

    fn settle(&mut self, session: &mut Session, now: Instant) {
        let Some((first, last, _)) = self.group else { return };
        match self.settling.promise {
            Promise::None => session.accept(first, last, true, None),
            Promise::Answered => {
                session.accept(first, last, false, None);
                self.state = State::ExpectSettled(last, now);
            }
            Promise::Committed => {
                let declare = CoordinatorRequest::Declare { global_id: None };
                session.ask(self.coordinator, declare, 0);
                self.state = State::ExpectDeclared;
                return;
            }
        }
        self.group = None;
    }

    fn commit(&mut self, txn_id: &[u8], session: &mut Session) {
        if let Some((first, last, _)) = self.group.take() {
            session.accept(first, last, false, Some(txn_id));
        }
        let discharge = CoordinatorRequest::Discharge { txn_id, fail: false };
        session.ask(self.coordinator, discharge, 0);
        self.state = State::ExpectDischarged;
    }

    fn answered(&mut self, said: Said, session: &mut Session, field: &mut Field) {
        match said {
            Said::Declared(txn_id) => self.commit(&txn_id, session),
            said => {
                if said != Said::Accepted {
                    field.refused(format!("{said:?} to a transaction of a consumer"));
                }
                self.state = State::Taking;
            }
        }
    }

    /// Ends the open group or transaction once all has come.
    fn finish(&mut self, session: &mut Session, field: &mut Field, now: Instant) {
        if self.state != State::Taking || !self.waiting.is_empty() || !field.is_taken() {
            return;
        }
        if self.group.is_some() {
            self.settle(session, now);
        }
        if self.state == State::Taking {
            field.taken(now);
            session.grant(self.link, self.credit(), true);
            self.state = State::ExpectDrained;
        }
    }
}

impl Work for Consumer {
    fn attach(&mut self, session: &mut Session) {
        self.link = session.attach_consumer(&self.from, &self.wanted);
        if self.settling.promise == Promise::Committed {
            self.coordinator = session.attach_coordinator();
        }
    }

    fn handle(&mut self, event: Event, session: &mut Session, field: &mut Field, now: Instant) {
        match event {
            // A message after all had come is noted, and left to the next phase's check.
            Event::Message { bytes, .. } if self.state == State::ExpectDrained => {
                field.see(&bytes, now);
            }
            Event::Message { delivery, bytes, .. } => self.waiting.push_back((delivery, bytes)),
            Event::Settled(delivery, _) => {
                if matches!(self.state, State::ExpectSettled(awaited, _) if awaited == delivery) {
                    self.state = State::Taking;
                }
            }
            Event::Answer(_, said) => self.answered(said, session, field),
            Event::Drained(_) if self.state == State::ExpectDrained => {
                session.detach(self.link);
                self.state = State::ExpectDetached;
            }
            Event::Detached(_) => self.state = State::Done,
            _ => {}
        }
    }

    fn turn(&mut self, session: &mut Session, field: &mut Field, now: Instant) {
        if let State::ExpectSettled(_, since) = self.state
            && now.saturating_duration_since(since) > ANSWER_MAX
        {
            // Proton's brokers settle the deliveries, and do not tell.
            field.leaves_unanswered = true;
            self.settling.promise = Promise::None;
            self.state = State::Taking;
        }
        if self.state == State::Taking {
            self.take(session, field, now);
            self.finish(session, field, now);
        }
    }

    fn is_done(&self) -> bool {
        self.state == State::Done
    }
}

/// Messages that may be on their way to a consumer: more than come in the time that a broker needs
/// to hear of more.
const CREDIT: u32 = 1000;
/// How long the answer to an acknowledgement may take before it is given up.
const ANSWER_MAX: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use amqp::performative::{Disposition, Flow, Performative, Role, Transfer};
    use amqp::state::DeliveryState;
    use testkit::amqp_broker::{Broker, opened, queue, spoken};

    use super::super::field::Extent;
    use super::super::letter::{BodyForm, Shape};
    use super::super::work::tests::hear;
    use super::*;

    /// A consumer of so many messages, which are confirmed and on their way.
    fn ready(settling: Settling, messages: u32) -> (Consumer, Session, Field, Broker) {
        let shape = Shape::new(false, BodyForm::Bytes, 10);
        let mut field = Field::new(shape, Extent::Messages(0));
        let (mut consumer, mut session) =
            (Consumer::new(&queue(), Wanted::default(), settling), opened());
        consumer.attach(&mut session);
        let mut broker = Broker::default().attach("consumer-0", 5, Role::Sender);
        for delivery in 0..messages {
            let mut bytes = Vec::new();
            let number = field.write(&mut bytes);
            field.ledger.confirm(number);
            let delivery_id = Some(delivery);
            let transfer = Transfer { handle: 5, delivery_id, ..Transfer::default() };
            broker = broker.say(Performative::Transfer(transfer), &bytes);
        }
        field.start(Instant::now());
        spoken(&mut session);
        (consumer, session, field, broker)
    }

    fn settled(delivery: u32) -> Broker {
        let disposition = Disposition {
            role: Role::Sender,
            first: delivery,
            last: None,
            settled: true,
            state: Some(DeliveryState::ACCEPTED),
            batchable: false,
        };
        Broker::default().say(Performative::Disposition(disposition), b"")
    }

    #[test]
    fn consumer_awaits_broker_between_messages() {
        let settling = Settling { group: 1, promise: Promise::Answered };
        let (mut consumer, mut session, mut field, broker) = ready(settling, 2);
        hear(&mut consumer, broker, &mut session, &mut field);
        assert_eq!(field.ledger.seen(), 1, "the second waits");
        assert_eq!(spoken(&mut session), ["Disposition", "Flow"]);
        hear(&mut consumer, settled(0), &mut session, &mut field);
        assert_eq!(field.ledger.seen(), 2);
        assert!(field.taking().is_zero(), "its acknowledgement is not safe yet");
        hear(&mut consumer, settled(1), &mut session, &mut field);
        assert!(!field.taking().is_zero());
    }

    #[test]
    fn consumer_gives_up_on_silent_broker() {
        let settling = Settling { group: 1, promise: Promise::Answered };
        let (mut consumer, mut session, mut field, broker) = ready(settling, 3);
        hear(&mut consumer, broker, &mut session, &mut field);
        assert_eq!((field.ledger.seen(), field.leaves_unanswered), (1, false));
        let later = Instant::now() + ANSWER_MAX + Duration::from_millis(1);
        consumer.turn(&mut session, &mut field, later);
        assert_eq!((field.ledger.seen(), field.leaves_unanswered), (3, true));
    }

    #[test]
    fn consumer_acknowledges_groups_and_the_rest() {
        let settling = Settling { group: 2, promise: Promise::None };
        let (mut consumer, mut session, mut field, broker) = ready(settling, 3);
        hear(&mut consumer, broker, &mut session, &mut field);
        assert_eq!(field.ledger.seen(), 3);
        // The pair, credit, the third, and the question whether there is more.
        assert_eq!(spoken(&mut session), ["Disposition", "Flow", "Disposition", "Flow"]);
        let drained = Flow {
            next_incoming_id: Some(0),
            handle: Some(5),
            link_credit: Some(0),
            drain: true,
            ..Flow::default()
        };
        let broker = Broker::default().say(Performative::Flow(drained), b"");
        hear(&mut consumer, broker, &mut session, &mut field);
        assert_eq!(spoken(&mut session), ["Detach"]);
        assert!(field.problems("c", true).is_empty());
    }

    #[test]
    fn consumer_commits_its_deliveries() {
        let settling = Settling { group: 1, promise: Promise::Committed };
        let (mut consumer, mut session, mut field, broker) = ready(settling, 1);
        let broker = broker.attach("coordinator-1", 8, Role::Receiver).credit(8, 0, 10);
        hear(&mut consumer, broker, &mut session, &mut field);
        assert_eq!(spoken(&mut session), ["Transfer", "Flow"]);
        let declared = Broker::default().answer(0, 0, DeliveryState::Declared { txn_id: b"t" });
        hear(&mut consumer, declared, &mut session, &mut field);
        assert_eq!(spoken(&mut session), ["Disposition", "Transfer"]);
        assert!(field.taking().is_zero());
        let committed = Broker::default().answer(1, 1, DeliveryState::ACCEPTED);
        hear(&mut consumer, committed, &mut session, &mut field);
        assert!(!field.taking().is_zero());
    }
}
