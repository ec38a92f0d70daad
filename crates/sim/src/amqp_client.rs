//! One simulated client of AMQP: the messages that it sends, the answers that it still expects, the
//! deliveries that it holds.
//!
//! It speaks the protocol over two byte streams. It checks that the session asks the engine for the
//! things that it meant. It also checks that each frame that it reads agrees with the engine. It
//! reads one answer for each thing that awaits one. It reads each delivery within its credit and
//! with its header.

mod link;
mod reading;
mod wish;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use amqp::frame::{self, FrameKind};
use amqp::message::Message;
use amqp::performative::{
    Attach, Begin, Close, Detach, Disposition, Flow, Open, Performative, Role, Transfer,
    TransferFrames,
};
use amqp::protocol_header::ProtocolHeader;
use amqp::state::{DeliveryState, Outcome};
use amqp::transaction::CoordinatorRequest;
use model::{Command, Delivery, Destination, Durability, Reply, Settlement, TransactionId};

use crate::history::Changes;
use link::{End, Link, Standing};

pub use wish::{AmqpWish, Draft, Subscribing, Verdict};

/// A client and its end of one connection.
#[derive(Debug)]
pub struct AmqpClient {
    /// Its number, never used twice.
    pub id: u64,
    /// Bytes that the server has not received yet.
    pub outbound: VecDeque<u8>,
    /// The name of its container.
    pub container: Rc<str>,
    /// Its frames are no larger than that, and those that it reads.
    frame_bytes: u32,
    inbound: Vec<u8>,
    standing: Connected,
    links: BTreeMap<u32, Link>,
    next_handle: u32,
    next_delivery: u32,
    /// Transfer frames that it read.
    frames_read: u32,
    /// Requests that the session has to make of the engine next.
    intents: VecDeque<Intent>,
    /// The request that the engine is to answer now.
    current: Option<Intent>,
    /// Requests that the engine answers later, by ticket.
    blocked: BTreeMap<u64, Option<Intent>>,
    /// Answers that it must read about deliveries of its own.
    answers: BTreeMap<u32, (Answer, Changes)>,
    /// Answers that it must read about deliveries that it settles.
    settlings: BTreeMap<u32, (Answer, Changes)>,
    /// Messages that the engine delivered to its consumers and that it has not read.
    coming: Vec<Coming>,
    /// A delivery of which it has not read all: link, number, bytes.
    partial: Option<(u32, u32, Vec<u8>)>,
    /// Deliveries that it read and has not settled, by their numbers.
    held: BTreeMap<u32, Held>,
    /// Open ones.
    transactions: Vec<u64>,
    /// Those of which a part was refused: they cannot commit.
    failed_transactions: BTreeSet<u64>,
    /// Changes reflected by ends of drains that it has not read, by link.
    drained: BTreeMap<u32, Changes>,
    /// Consumers that the engine has disconnected, of which it has not heard.
    cut_off: BTreeSet<u32>,
    /// Answers about deliveries that it released after the engine had disconnected their consumer.
    /// The engine may have returned these before: then no answer comes.
    possible: BTreeMap<u32, Answer>,
}

/// How far the connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Connected {
    Header,
    Open,
    Begin,
    Ready,
    /// It has said its close.
    Closing,
    Closed,
}

/// A request that the session has to make of the engine.
#[derive(Clone, Debug)]
enum Intent {
    Send {
        delivery: u32,
        to: Destination,
        bytes: Vec<u8>,
        transaction: Option<u64>,
        settled: bool,
    },
    Settle {
        handle: u32,
        delivery: u32,
        message: u64,
        verdict: Verdict,
        transaction: Option<u64>,
        settled: bool,
    },
    Declare {
        delivery: u32,
    },
    Discharge {
        delivery: u32,
        transaction: u64,
        fail: bool,
    },
}

/// An answer that it must read about a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Answer {
    Outcome(Outcome),
    Enlisted(u64, Outcome),
    Declared,
    Refused,
}

/// A message on its way to the client.
#[derive(Debug)]
struct Coming {
    handle: u32,
    message: u64,
    durable: bool,
    priority: u8,
    failed: u32,
    dead: Option<&'static str>,
    body: Vec<u8>,
    changes: Changes,
    /// The link is gone: it may come or not.
    returned: bool,
}

/// A message that it read and has not settled.
#[derive(Clone, Copy, Debug)]
struct Held {
    handle: u32,
    message: u64,
    /// It went back already, as it will hear.
    returned: bool,
}

impl AmqpClient {
    /// A client that has just connected, of this container. It opens the connection, a session,
    /// and the links by which it commits and sends to anywhere.
    #[must_use]
    pub fn new(id: u64, container: &str, frame_bytes: u32) -> Self {
        let mut client = Self {
            id,
            outbound: ProtocolHeader::AMQP.encode().into(),
            container: container.into(),
            frame_bytes,
            inbound: Vec::new(),
            standing: Connected::Header,
            links: BTreeMap::new(),
            next_handle: 0,
            next_delivery: 0,
            frames_read: 0,
            intents: VecDeque::new(),
            current: None,
            blocked: BTreeMap::new(),
            answers: BTreeMap::new(),
            settlings: BTreeMap::new(),
            coming: Vec::new(),
            partial: None,
            held: BTreeMap::new(),
            transactions: Vec::new(),
            failed_transactions: BTreeSet::new(),
            drained: BTreeMap::new(),
            cut_off: BTreeSet::new(),
            possible: BTreeMap::new(),
        };
        let open = Open { max_frame_size: frame_bytes, ..Open::new(container) };
        client.say(&Performative::Open(Box::new(open)));
        let begin = Begin { incoming_window: WINDOW, outgoing_window: WINDOW, ..Begin::default() };
        client.say(&Performative::Begin(Box::new(begin)));
        client.attach(End::Coordinator { sent: 0, limit: 0 }, wish::coordinator);
        let relay = |handle| wish::producer(handle, None);
        client.attach(End::Producer { to: None, sent: 0, limit: 0 }, relay);
        client
    }

    /// How many of its wishes are not answered.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        let unsettled = self.links.values().filter(|link| !link.is_settled()).count();
        let answers = self.answers.len() + self.settlings.len();
        self.intents.len() + self.blocked.len() + answers + unsettled
    }

    /// True if nothing is unanswered, and nothing on its way.
    #[must_use]
    pub fn is_content(&self) -> bool {
        let is_here = |coming: &Coming| coming.returned;
        match self.standing {
            Connected::Closed => true,
            Connected::Ready => {
                let all_read = self.cut_off.is_empty() && self.coming.iter().all(is_here);
                self.outstanding() == 0 && all_read
            }
            _ => false,
        }
    }

    /// True if the connection is open and more can be wished.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.standing == Connected::Ready
    }

    /// True if both ends have closed the connection.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.standing == Connected::Closed
    }

    /// True if it has a link by which it can send there now.
    #[must_use]
    pub fn can_send(&self, to: &Destination) -> bool {
        self.way_to(to).is_some()
    }

    /// True if it can begin or end a transaction now.
    #[must_use]
    pub fn can_transact(&self) -> bool {
        self.is_ready() && self.links.get(&COORDINATOR).is_some_and(Link::has_credit)
    }

    /// Links that can be detached: all but the coordinator's and the relay.
    #[must_use]
    pub fn detachable(&self) -> Vec<u32> {
        let open = |(_, link): &(&u32, &Link)| link.is_settled();
        self.links.range(RELAY + 1..).filter(open).map(|(handle, _)| *handle).collect()
    }

    /// Its consumers.
    #[must_use]
    pub fn consumers(&self) -> Vec<u32> {
        let is_consumer = |(_, link): &(&u32, &Link)| {
            link.is_settled() && matches!(link.end, End::Consumer { .. })
        };
        self.links.iter().filter(is_consumer).map(|(handle, _)| *handle).collect()
    }

    /// Those of which it has asked for all there is, and not heard that this was all.
    #[must_use]
    pub fn draining(&self) -> Vec<u32> {
        let drains = |(_, link): &(&u32, &Link)| {
            link.standing == Standing::Open
                && matches!(link.end, End::Consumer { drains: true, .. })
        };
        self.links.iter().filter(drains).map(|(handle, _)| *handle).collect()
    }

    /// Deliveries that it has not settled.
    #[must_use]
    pub fn held(&self) -> Vec<u32> {
        self.held.keys().copied().collect()
    }

    /// Its open transactions.
    #[must_use]
    pub fn transactions(&self) -> &[u64] {
        &self.transactions
    }

    /// Sends the frames of this wish.
    pub fn send(&mut self, wish: AmqpWish) {
        match wish {
            AmqpWish::Produce { to } => {
                let end = End::Producer { to: Some(to.clone()), sent: 0, limit: 0 };
                self.attach(end, |handle| wish::producer(handle, Some(&to)));
            }
            AmqpWish::Consume { queue, credit } => {
                self.consume(credit, |handle| wish::consumer(handle, &queue));
            }
            AmqpWish::Subscribe { to, credit } => {
                self.consume(credit, |handle| wish::subscriber(handle, &to));
            }
            AmqpWish::Credit { handle, more } => self.allow(handle, more, false),
            AmqpWish::Drain { handle } => self.allow(handle, 0, true),
            AmqpWish::Detach { handle, closed } => self.detach(handle, closed),
            AmqpWish::Unsubscribe { name } => {
                let handle = self.attach(End::Lookup, |handle| wish::lookup(handle, &name));
                self.detach(handle, true);
            }
            AmqpWish::Send { to, message, transaction, settled } => {
                self.transmit(to, &message, transaction, settled);
            }
            AmqpWish::Settle { delivery, verdict, transaction, settled } => {
                self.settle(delivery, verdict, transaction, settled);
            }
            AmqpWish::Declare => {
                let delivery =
                    self.ask_coordinator(CoordinatorRequest::Declare { global_id: None });
                self.intents.push_back(Intent::Declare { delivery });
            }
            AmqpWish::Discharge { transaction, fail } => {
                self.transactions.retain(|open| *open != transaction);
                let txn_id = &transaction.to_be_bytes();
                let request = CoordinatorRequest::Discharge { txn_id, fail };
                let delivery = self.ask_coordinator(request);
                self.intents.push_back(Intent::Discharge { delivery, transaction, fail });
            }
            AmqpWish::Close => {
                self.standing = Connected::Closing;
                self.say(&Performative::Close(Close::default()));
            }
        }
    }

    /// The session asked the engine on behalf of this client.
    ///
    /// # Panics When the command is not the one that the client meant.
    pub fn commanded(&mut self, command: &Command) {
        let is_due = match command {
            Command::Put { .. } | Command::PutTo { .. } | Command::Begin { .. } => true,
            Command::Commit { .. } | Command::Rollback { .. } | Command::Settle { .. } => {
                self.intents.front().is_some_and(|intent| self.is_meant(intent, command))
            }
            _ => false,
        };
        self.current = if is_due { self.intents.pop_front() } else { None };
        match (&self.current, command) {
            (Some(intent), _) => {
                assert!(self.is_meant(intent, command), "{intent:?} became {command:?}");
            }
            // A message goes back by itself if it was not sent, or its link has gone. If a
            // transaction refused the settlement, the message is as after a rollback.
            (None, Command::Settle { message, settlement, transaction: None }) => {
                let back = matches!(settlement, Settlement::Return | Settlement::Fail);
                assert!(back, "client {} never asked for {command:?}", self.id);
                self.expect_no_more(message.0);
            }
            (None, Command::Rollback { .. }) => {
                assert_eq!(self.standing, Connected::Closing, "who rolls back by itself closes");
            }
            (None, Command::Commit { .. } | Command::Put { .. } | Command::PutTo { .. }) => {
                panic!("client {} never asked for {command:?}", self.id);
            }
            _ => {}
        }
    }

    /// True if a session that read this intent may give the engine that command. A transaction that
    /// can only roll back is rolled back, even if the client meant to commit it.
    fn is_meant(&self, intent: &Intent, command: &Command) -> bool {
        if let (Intent::Discharge { transaction: meant, .. }, Command::Rollback { transaction }) =
            (intent, command)
            && self.failed_transactions.contains(meant)
        {
            return transaction.0 == *meant;
        }
        intent.is_meant_by(command)
    }

    /// The session returns a message that the client did not settle. A link that stays open never
    /// sent it, for want of credit. A link that goes may have: the client's settlements of it that
    /// the session has not passed on have no effect, and their transactions cannot commit.
    fn expect_no_more(&mut self, message: u64) {
        let Self { links, cut_off, .. } = &*self;
        let stays = |handle: &u32| {
            let link = links.get(handle).filter(|_| !cut_off.contains(handle));
            link.is_some_and(|link| link.standing == Standing::Open)
        };
        let staying: BTreeSet<u32> = links.keys().copied().filter(stays).collect();
        self.coming.retain_mut(|coming| {
            coming.returned |= coming.message == message;
            let is_staying = staying.contains(&coming.handle);
            coming.message != message || !is_staying || self.standing == Connected::Closing
        });
        let held = self.held.values_mut().filter(|held| held.message == message);
        held.for_each(|held| held.returned = true);
        let is_vain = |intent: &mut Intent| match intent {
            Intent::Settle { message: it, transaction, .. } if *it == message => Some(*transaction),
            _ => None,
        };
        let vain: Vec<_> = self.intents.iter_mut().filter_map(is_vain).collect();
        self.failed_transactions.extend(vain.into_iter().flatten());
        self.intents.retain_mut(|intent| is_vain(intent).is_none());
    }

    /// The engine has disconnected one of its consumers.
    pub fn lose(&mut self, handle: u32) {
        if self.links.contains_key(&handle) {
            self.cut_off.insert(handle);
        }
    }

    /// The engine answered the request: the client must read this answer.
    pub fn answered(&mut self, reply: &Reply, changes: Changes) {
        let refused = matches!(reply, Reply::Refused(_));
        if refused || *reply == Reply::NotFound {
            self.failed_transactions.extend(self.current.as_ref().and_then(Intent::transaction));
        }
        let unless = |answer| if refused { Answer::Refused } else { answer };
        let within = |transaction: Option<u64>, outcome| match transaction {
            Some(transaction) => Answer::Enlisted(transaction, outcome),
            None => Answer::Outcome(outcome),
        };
        match self.current.take() {
            Some(Intent::Send { delivery, transaction, settled: false, .. }) => {
                let answer = unless(within(transaction, Outcome::Accepted));
                self.answers.insert(delivery, (answer, changes));
            }
            Some(Intent::Settle {
                handle, delivery, verdict, transaction, settled: false, ..
            }) => {
                let answer = unless(within(transaction, verdict.outcome()));
                let may_be_back = verdict == Verdict::Released && transaction.is_none();
                if may_be_back && self.cut_off.contains(&handle) {
                    self.possible.insert(delivery, answer);
                } else {
                    self.settlings.insert(delivery, (answer, changes));
                }
            }
            Some(Intent::Declare { delivery }) => {
                self.answers.insert(delivery, (unless(Answer::Declared), changes));
            }
            Some(Intent::Discharge { delivery, transaction, fail }) => {
                let accepted = Answer::Outcome(Outcome::Accepted);
                let is_failed = self.failed_transactions.contains(&transaction) && !fail;
                let answer = if is_failed { Answer::Refused } else { unless(accepted) };
                self.answers.insert(delivery, (answer, changes));
            }
            _ => {}
        }
    }

    /// The engine answers the request later.
    pub fn waits(&mut self, ticket: u64) {
        self.blocked.insert(ticket, self.current.take());
    }

    /// The engine answered a request that waited.
    ///
    /// # Panics
    /// When nothing waited with this ticket.
    pub fn answered_late(&mut self, ticket: u64, reply: &Reply, changes: Changes) {
        let intent = self.blocked.remove(&ticket);
        self.current = intent.unwrap_or_else(|| panic!("{} waits for no {ticket}", self.id));
        self.answered(reply, changes);
    }

    /// The engine gave a message to a consumer of this client. Its links are numbered as they were
    /// attached, here and there.
    pub fn awaits(&mut self, delivery: &Delivery, changes: Changes) {
        // A message that came by AMQP keeps its header, even as a dead letter.
        let stored = Message::scan(&delivery.body).ok().filter(|_| delivery.format == amqp::FORMAT);
        let urgency = u8::try_from(delivery.priority / 256).unwrap_or(u8::MAX);
        let plain = (delivery.durability > Durability::None, 9_u8.saturating_sub(urgency));
        let header = stored.map(|message| message.header());
        let (durable, priority) = header.map_or(plain, |header| (header.durable, header.priority));
        self.coming.push(Coming {
            handle: delivery.link.expect("a consumer of AMQP is a link").0,
            message: delivery.message.0,
            durable,
            priority,
            failed: delivery.failed,
            dead: delivery.dead.as_ref().map(|dead| dead.reason.word()),
            body: delivery.payload().to_vec(),
            changes,
            returned: false,
        });
    }

    /// The engine told a consumer that drains that there is nothing more.
    pub fn awaits_drained(&mut self, handle: u32, changes: Changes) {
        self.drained.insert(handle, changes);
    }
}

/// Frames that it sends.
impl AmqpClient {
    fn say(&mut self, performative: &Performative<'_>) {
        let mut bytes = Vec::new();
        frame::write(&mut bytes, FrameKind::Amqp, 0, |out| performative.encode(out));
        self.outbound.extend(bytes);
    }

    fn attach(&mut self, end: End, attach: impl FnOnce(u32) -> Attach) -> u32 {
        let handle = self.next_handle;
        self.next_handle += 1;
        let attach = attach(handle);
        if attach.source.is_some() {
            self.give_up_stolen(&attach.name);
        }
        self.links.insert(handle, Link::new(attach.name.clone(), end));
        self.say(&Performative::Attach(Box::new(attach)));
        handle
    }

    /// A consumer of the same name is moved to the new link. A link that only looks for one takes
    /// nothing over.
    fn give_up_stolen(&mut self, name: &str) {
        let is_it = |link: &Link| link.name == name && matches!(link.end, End::Consumer { .. });
        let stolen = self.links.iter().filter(|(_, link)| is_it(link)).map(|(handle, _)| *handle);
        for handle in stolen.collect::<Vec<_>>() {
            self.forget_deliveries(handle);
        }
    }

    /// Deliveries that it holds of a link go back without its doing.
    fn forget_deliveries(&mut self, handle: u32) {
        if let Some(link) = self.links.get_mut(&handle) {
            link.standing = Standing::Detaching;
        }
        self.held.retain(|_, held| held.handle != handle);
    }

    fn consume(&mut self, credit: u32, attach: impl FnOnce(u32) -> Attach) {
        let end = End::Consumer { received: 0, limit: 0, drains: false };
        let handle = self.attach(end, attach);
        self.allow(handle, credit, false);
    }

    fn allow(&mut self, handle: u32, more: u32, drain: bool) {
        let Some(Link { end: End::Consumer { received, limit, drains }, .. }) =
            self.links.get_mut(&handle)
        else {
            return;
        };
        *limit += more;
        *drains = drain;
        self.drained.remove(&handle);
        let flow = Flow {
            next_incoming_id: Some(self.frames_read),
            incoming_window: WINDOW,
            next_outgoing_id: 0,
            outgoing_window: WINDOW,
            handle: Some(handle),
            delivery_count: Some(*received),
            link_credit: Some(*limit - *received),
            drain,
            ..Flow::default()
        };
        self.say(&Performative::Flow(flow));
    }

    fn detach(&mut self, handle: u32, closed: bool) {
        self.forget_deliveries(handle);
        if let Some(link) = self.links.get_mut(&handle) {
            link.has_detached = true;
        }
        self.say_detach(handle, closed);
    }

    fn say_detach(&mut self, handle: u32, closed: bool) {
        self.say(&Performative::Detach(Detach { handle, closed, error: None }));
    }

    /// A link to that very destination, or else the relay, if it has credit.
    fn way_to(&self, to: &Destination) -> Option<u32> {
        let own = |(_, link): &(&u32, &Link)| {
            let End::Producer { to: Some(its), .. } = &link.end else { return false };
            its == to && link.has_credit()
        };
        let own = self.links.iter().find(own).map(|(handle, _)| *handle);
        let relay = self.links.get(&RELAY).filter(|link| link.has_credit()).map(|_| RELAY);
        own.or(relay).filter(|_| self.is_ready())
    }

    fn transmit(
        &mut self,
        to: Destination,
        message: &Draft,
        transaction: Option<u64>,
        settled: bool,
    ) {
        let handle = self.way_to(&to).expect("invariant: the caller asked whether it can send");
        let bytes = message.encode(&to);
        let txn_id = transaction.map(u64::to_be_bytes);
        let state =
            txn_id.as_ref().map(|txn_id| DeliveryState::Transactional { txn_id, outcome: None });
        let delivery = self.transfer(handle, &bytes, state, settled);
        self.intents.push_back(Intent::Send { delivery, to, bytes, transaction, settled });
    }

    fn ask_coordinator(&mut self, request: CoordinatorRequest<'_>) -> u32 {
        self.transfer(COORDINATOR, &wish::request(request), None, false)
    }

    fn transfer(
        &mut self,
        handle: u32,
        bytes: &[u8],
        state: Option<DeliveryState<'_>>,
        settled: bool,
    ) -> u32 {
        let delivery = self.next_delivery;
        self.next_delivery += 1;
        self.links.get_mut(&handle).expect("invariant: the caller found it").count();
        let tag = delivery.to_be_bytes();
        let transfer = Transfer {
            handle,
            delivery_id: Some(delivery),
            delivery_tag: Some(&tag),
            message_format: Some(0),
            settled: settled.then_some(true),
            state,
            ..Transfer::default()
        };
        let mut frames = TransferFrames::new(transfer, 0, bytes.len(), self.frame_bytes);
        let mut out = Vec::new();
        while let Some(part) = frames.write_next(&mut out) {
            out.extend_from_slice(bytes.get(part).unwrap_or_default());
        }
        self.outbound.extend(out);
        delivery
    }

    fn settle(&mut self, delivery: u32, verdict: Verdict, transaction: Option<u64>, settled: bool) {
        let held = self.held.remove(&delivery).expect("invariant: it is held");
        let txn_id = transaction.map(u64::to_be_bytes);
        let outcome = verdict.outcome();
        let state = match &txn_id {
            Some(txn_id) => DeliveryState::Transactional { txn_id, outcome: Some(outcome) },
            None => DeliveryState::Outcome(outcome),
        };
        let disposition = Disposition {
            role: Role::Receiver,
            first: delivery,
            last: None,
            settled,
            state: Some(state),
            batchable: false,
        };
        self.say(&Performative::Disposition(disposition));
        let Held { handle, message, returned } = held;
        if returned {
            self.failed_transactions.extend(transaction);
            return;
        }
        let intent = Intent::Settle { handle, delivery, message, verdict, transaction, settled };
        self.intents.push_back(intent);
    }
}

impl Intent {
    /// The transaction that it is part of.
    const fn transaction(&self) -> Option<u64> {
        match self {
            Self::Send { transaction, .. } | Self::Settle { transaction, .. } => *transaction,
            _ => None,
        }
    }

    /// True if a session that read this may ask the engine for that.
    fn is_meant_by(&self, command: &Command) -> bool {
        let is_in = |meant: Option<u64>, said: &Option<TransactionId>| {
            meant == said.map(|transaction| transaction.0)
        };
        match (self, command) {
            (
                Self::Send { bytes, transaction: meant, .. },
                Command::Put { message, transaction, .. },
            ) => message.body[..] == bytes[..] && is_in(*meant, transaction),
            (
                Self::Send { to: there, bytes, transaction: meant, .. },
                Command::PutTo { to, message, transaction },
            ) => to == there && message.body[..] == bytes[..] && is_in(*meant, transaction),
            (
                Self::Settle { message: it, verdict, transaction: meant, .. },
                Command::Settle { message, settlement, transaction },
            ) => {
                let meant_how = verdict.settlement();
                // A link that has taken its credit back only fetched it ahead.
                let is_back = *settlement == Settlement::Return && meant_how == Settlement::Release;
                let same = message.0 == *it && (*settlement == meant_how || is_back);
                same && is_in(*meant, transaction)
            }
            (Self::Declare { .. }, Command::Begin { .. }) => true,
            (
                Self::Discharge { transaction: meant, fail: false, .. },
                Command::Commit { transaction },
            )
            | (
                Self::Discharge { transaction: meant, fail: true, .. },
                Command::Rollback { transaction },
            ) => transaction.0 == *meant,
            _ => false,
        }
    }
}

/// The link by which transactions are begun and ended.
const COORDINATOR: u32 = 0;

/// The link by which a message goes wherever it says.
const RELAY: u32 = 1;

/// More transfer frames than are under way at a time.
const WINDOW: u32 = 1 << 30;
