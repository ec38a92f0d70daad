//! A client that sends.

use std::time::Instant;

use amqp::transaction::CoordinatorRequest;
use client::{Event, Place, Said, Session};

use super::field::Field;
use super::work::Work;

/// How a producer sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sending {
    /// Each message by itself, so many of them unanswered.
    Plain { outstanding: usize },
    /// So many messages a transaction, every so manieth of which is rolled back.
    Transacted { messages: usize, roll_back_every: Option<u64> },
}

/// Sends to a place until the field says that it is enough.
#[derive(Debug)]
pub(crate) struct Producer {
    to: Place,
    sending: Sending,
    link: u32,
    coordinator: u32,
    state: State,
    /// Messages unanswered, outside of transactions.
    unanswered: usize,
    /// Which of all transactions this is.
    begun: u64,
    scratch: Vec<u8>,
    is_done: bool,
}

/// The state of its transaction.
#[derive(Debug)]
enum State {
    Idle,
    ExpectDeclared,
    Filling { txn_id: Vec<u8>, numbers: Vec<u64> },
    ExpectDischarged { numbers: Vec<u64>, fail: bool },
}

impl Producer {
    pub(crate) fn new(to: &Place, sending: Sending) -> Self {
        Self {
            to: to.clone(),
            sending,
            link: 0,
            coordinator: 0,
            state: State::Idle,
            unanswered: 0,
            begun: 0,
            scratch: Vec::new(),
            is_done: false,
        }
    }

    fn send_plain(
        &mut self,
        outstanding: usize,
        session: &mut Session,
        field: &mut Field,
        now: Instant,
    ) {
        while self.unanswered < outstanding && field.is_open(now) && self.can_send(session) {
            self.send(session, field, None);
            self.unanswered += 1;
        }
        self.end(self.unanswered == 0 && !field.is_open(now), field, now);
    }

    fn send_transacted(
        &mut self,
        messages: usize,
        roll_back_every: Option<u64>,
        session: &mut Session,
        field: &mut Field,
        now: Instant,
    ) {
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Idle if !field.is_open(now) => self.end(true, field, now),
            State::Idle if session.can_send(self.coordinator, 0) => {
                let declare = CoordinatorRequest::Declare { global_id: None };
                session.ask(self.coordinator, declare, REQUEST);
                self.begun = field.begin();
                self.state = State::ExpectDeclared;
            }
            State::Filling { txn_id, mut numbers } => {
                while numbers.len() < messages && self.can_send(session) {
                    numbers.push(self.send(session, field, Some(&txn_id)));
                }
                if numbers.len() < messages || !session.can_send(self.coordinator, 0) {
                    self.state = State::Filling { txn_id, numbers };
                    return;
                }
                let fail = roll_back_every.is_some_and(|every| self.begun.is_multiple_of(every));
                let discharge = CoordinatorRequest::Discharge { txn_id: &txn_id, fail };
                session.ask(self.coordinator, discharge, REQUEST);
                self.state = State::ExpectDischarged { numbers, fail };
            }
            state => self.state = state,
        }
    }

    fn can_send(&self, session: &Session) -> bool {
        // The first message is small enough for any window.
        session.can_send(self.link, self.scratch.len())
    }

    fn send(&mut self, session: &mut Session, field: &mut Field, within: Option<&[u8]>) -> u64 {
        self.scratch.clear();
        let number = field.write(&mut self.scratch);
        session.transfer(self.link, &self.scratch, number, within);
        number
    }

    /// The coordinator has answered.
    fn answered(&mut self, said: Said, field: &mut Field, now: Instant) {
        match (std::mem::replace(&mut self.state, State::Idle), said) {
            (State::ExpectDeclared, Said::Declared(txn_id)) => {
                self.state = State::Filling { txn_id, numbers: Vec::new() };
            }
            (State::ExpectDischarged { numbers, fail: false }, Said::Accepted) => {
                numbers.into_iter().for_each(|number| field.ledger.confirm(number));
                field.transactions.committed += 1;
                field.answered(now);
            }
            (State::ExpectDischarged { numbers, fail }, said) => {
                numbers.into_iter().for_each(|number| field.ledger.void(number));
                if fail && said == Said::Accepted {
                    field.transactions.aborted += 1;
                } else {
                    field.transactions.failed += 1;
                    field.refused(format!("{said:?} to the end of a transaction"));
                }
            }
            (state, said) => {
                self.state = if let State::ExpectDeclared = state { State::Idle } else { state };
                field.transactions.failed += 1;
                field.refused(format!("{said:?} to the begin of a transaction"));
                // It would be refused for ever.
                field.stop();
            }
        }
    }

    /// It is done once.
    fn end(&mut self, is_due: bool, field: &mut Field, now: Instant) {
        if is_due && !self.is_done {
            self.is_done = true;
            field.produced(now);
        }
    }
}

impl Work for Producer {
    fn attach(&mut self, session: &mut Session) {
        self.link = session.attach_producer(&self.to);
        if let Sending::Transacted { .. } = self.sending {
            self.coordinator = session.attach_coordinator();
        }
    }

    fn handle(&mut self, event: Event, _: &mut Session, field: &mut Field, now: Instant) {
        let Event::Answer(tag, said) = event else { return };
        match said {
            said if tag == REQUEST => self.answered(said, field, now),
            Said::Enlisted => {}
            Said::Accepted => {
                field.ledger.confirm(tag);
                field.answered(now);
                self.unanswered -= 1;
            }
            said if self.unanswered > 0 => {
                field.ledger.void(tag);
                field.refused(format!("{said:?} to a message"));
                self.unanswered -= 1;
            }
            // Its transaction fails for that, and says so.
            _ => {}
        }
    }

    fn turn(&mut self, session: &mut Session, field: &mut Field, now: Instant) {
        match self.sending {
            Sending::Plain { outstanding } => {
                self.send_plain(outstanding, session, field, now);
            }
            Sending::Transacted { messages, roll_back_every } => {
                self.send_transacted(messages, roll_back_every, session, field, now);
            }
        }
    }

    fn is_done(&self) -> bool {
        self.is_done
    }
}

/// The tag of a request to the coordinator; no message has it.
const REQUEST: u64 = u64::MAX;

#[cfg(test)]
mod tests {
    use amqp::performative::Role;
    use amqp::state::{DeliveryState, Outcome};
    use testkit::amqp_broker::{Broker, opened, queue};

    use super::super::field::{Extent, Transactions};
    use super::super::letter::{BodyForm, Shape};
    use super::super::work::tests::hear;
    use super::*;

    /// A producer that is ready to send so many messages, and its session.
    fn ready(sending: Sending, messages: u64) -> (Producer, Session, Field) {
        let shape = Shape::new(true, BodyForm::Bytes, 10);
        let mut field = Field::new(shape, Extent::Messages(messages));
        field.producing = 1;
        let (mut producer, mut session) = (Producer::new(&queue(), sending), opened());
        producer.attach(&mut session);
        let broker = Broker::default()
            .attach("producer-0", 7, Role::Receiver)
            .attach("coordinator-1", 8, Role::Receiver)
            .credit(7, 0, 100)
            .credit(8, 0, 100);
        field.start(Instant::now());
        hear(&mut producer, broker, &mut session, &mut field);
        (producer, session, field)
    }

    #[test]
    fn producer_bounds_unanswered_messages() {
        let (mut producer, mut session, mut field) = ready(Sending::Plain { outstanding: 2 }, 3);
        assert_eq!(field.ledger.sent(), 2);
        let accepted = Broker::default().answer(0, 0, DeliveryState::ACCEPTED);
        hear(&mut producer, accepted, &mut session, &mut field);
        assert_eq!((field.ledger.sent(), field.ledger.confirmed()), (3, 1));
        let released = DeliveryState::Outcome(Outcome::Released);
        let rest = Broker::default().answer(1, 1, DeliveryState::ACCEPTED).answer(2, 2, released);
        assert!(!producer.is_done());
        hear(&mut producer, rest, &mut session, &mut field);
        assert!(producer.is_done() && field.producing == 0);
        assert_eq!((field.ledger.sent(), field.ledger.confirmed()), (3, 2));
        assert_eq!(field.problems("p", false).len(), 1, "a refusal is told");
    }

    #[test]
    fn producer_fills_commits_and_rolls_back() {
        let sending = Sending::Transacted { messages: 2, roll_back_every: Some(2) };
        let (mut producer, mut session, mut field) = ready(sending, 4);
        let declared = |delivery| {
            Broker::default().answer(delivery, delivery, DeliveryState::Declared { txn_id: b"t" })
        };
        let enlisted = DeliveryState::Transactional { txn_id: b"t", outcome: None };
        // Deliveries: 0 begins, 1 and 2 are messages, 3 commits.
        assert_eq!(field.ledger.sent(), 0);
        hear(&mut producer, declared(0), &mut session, &mut field);
        assert_eq!(field.ledger.sent(), 2);
        let enlisted = Broker::default().answer(1, 2, enlisted);
        hear(&mut producer, enlisted, &mut session, &mut field);
        assert_eq!(field.ledger.confirmed(), 0, "only the commit confirms");
        let committed = Broker::default().answer(3, 3, DeliveryState::ACCEPTED);
        hear(&mut producer, committed, &mut session, &mut field);
        assert_eq!(field.ledger.confirmed(), 2);
        hear(&mut producer, declared(4), &mut session, &mut field);
        let rolled_back = Broker::default().answer(7, 7, DeliveryState::ACCEPTED);
        hear(&mut producer, rolled_back, &mut session, &mut field);
        assert!(producer.is_done());
        assert_eq!((field.ledger.sent(), field.ledger.confirmed()), (4, 2));
        let expected = Transactions { committed: 1, aborted: 1, failed: 0 };
        assert_eq!(field.transactions, expected);
        assert!(field.problems("p", false).is_empty());
    }

    #[test]
    fn refused_commit_confirms_nothing() {
        let sending = Sending::Transacted { messages: 1, roll_back_every: None };
        let (mut producer, mut session, mut field) = ready(sending, 1);
        let declared = Broker::default().answer(0, 0, DeliveryState::Declared { txn_id: b"t" });
        hear(&mut producer, declared, &mut session, &mut field);
        let refused = DeliveryState::Outcome(Outcome::Rejected(None));
        hear(&mut producer, Broker::default().answer(2, 2, refused), &mut session, &mut field);
        assert_eq!(field.ledger.confirmed(), 0);
        assert_eq!(field.transactions.failed, 1);
        assert_eq!(field.problems("p", false).len(), 1);
    }
}
