//! Properties of a connection and the engine behind it that hold for any bytes of a peer: run by
//! the fuzzer in `fuzz/`, and by a test.

use std::collections::VecDeque;
use std::sync::Arc;

use amqp::frame::{self, FrameKind};
use amqp::performative::{Attach, Begin, Flow, Open, Performative, Role, Transfer};
use amqp::protocol_header::ProtocolHeader;
use amqp::terminus::{AttachTarget, Coordinator, Source, Target};
use amqp::transaction::CoordinatorRequest;
use amqp::{Connection, Event, InputBuffer, Options};
use engine::{Effects, Engine, EngineOptions};
use model::{
    BrokerStatistics, Capacity, Command, DependsOn, Destination, LoginAnswer, LoginOffer,
    LoginStep, Lsn, Nanos, NewMessage, QueueName, SessionId, StorePolicy,
};

/// The first byte of the input: how the rest is sent.
#[derive(Clone, Copy)]
pub(crate) struct Manner(pub(crate) u8);

impl Manner {
    /// The peer has opened, and has links in both directions and a transaction.
    pub(crate) const GREETED: u8 = 1;
    /// The rest is bodies of frames, each behind its length and channel, and gets sound heads.
    pub(crate) const FRAMED: u8 = 2;
    /// The log is synced now and then only.
    pub(crate) const LAGS: u8 = 4;
    /// The peer has to log in.
    pub(crate) const LOGIN: u8 = 32;

    fn has(self, flag: u8) -> bool {
        self.0 & flag != 0
    }

    fn chunk_bytes(self) -> usize {
        [usize::MAX, 1, 7, 100][usize::from(self.0 >> 3 & 3)]
    }
}

/// A peer sends this to a broker that has some messages, and goes without a word.
pub(crate) fn peer(input: &[u8]) {
    let Some((&manner, bytes)) = input.split_first() else { return };
    let manner = Manner(manner);
    let mut world = World::new();
    if manner.has(Manner::LOGIN) {
        let offer = LoginOffer {
            password: true,
            certificate: true,
            anonymous: true,
            token: true,
            ..LoginOffer::default()
        };
        world.connection.set_offer(Some(offer));
    }
    if manner.has(Manner::GREETED) {
        world.receive(&greeting());
        world.sync();
    }
    let framed = manner.has(Manner::FRAMED).then(|| frames(bytes));
    let bytes = framed.as_deref().unwrap_or(bytes);
    for (number, chunk) in bytes.chunks(manner.chunk_bytes()).enumerate() {
        world.receive(chunk);
        if !manner.has(Manner::LAGS) || number % 4 == 3 {
            world.sync();
        }
    }
    world.sync();
    world.pass(Nanos::from_secs(3_600));
    world.lose();
}

/// Bodies behind a length and a channel become frames; an empty one keeps the connection alive.
fn frames(mut bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    while let [length, channel, rest @ ..] = bytes {
        let (body, rest) = rest.split_at(usize::from(*length).min(rest.len()));
        let channel = u16::from(channel & 3);
        frame::write(&mut out, FrameKind::Amqp, channel, |out| out.extend_from_slice(body));
        bytes = rest;
    }
    out
}

/// A broker with one peer.
struct World {
    engine: Engine,
    effects: Effects,
    connection: Connection,
    input: InputBuffer,
    held: VecDeque<(DependsOn, Event)>,
    out: Vec<u8>,
    now: Nanos,
    durable: Lsn,
    /// Bytes that the peer has sent so far.
    received: usize,
    /// Commands of the peer so far.
    commands: u64,
}

const PEER: SessionId = SessionId(1);
const STRANGER: SessionId = SessionId(2);

/// Bytes of all messages that are there before the peer comes.
const BEFORE_BYTES: usize = 4_000;

impl World {
    fn new() -> Self {
        let formats = amqp::formats();
        let mut engine =
            Engine::new(EngineOptions { formats, ..EngineOptions::new(StorePolicy::Always) });
        engine.open_session(STRANGER);
        engine.open_session(PEER);
        let now = Nanos::from_secs(1_000_000);
        let options = Options {
            max_frame_bytes: 1_024,
            max_message_bytes: 4_000,
            channels_max: 4,
            links_max: 8,
            ..Options::default()
        };
        let mut world = Self {
            engine,
            effects: Effects::default(),
            connection: Connection::new(PEER, Arc::new(options), now),
            input: InputBuffer::new(),
            held: VecDeque::new(),
            out: Vec::new(),
            now,
            durable: Lsn::ZERO,
            received: 0,
            commands: 0,
        };
        world.stock();
        world
    }

    /// Some messages of another protocol.
    fn stock(&mut self) {
        for bytes in [0, 100, 3_000] {
            let to = Destination::Queue(QueueName::new("orders").unwrap());
            let message = NewMessage::new(vec![b'x'; bytes].into());
            let command = Command::PutTo { to, message, transaction: None };
            self.engine.handle(self.now, STRANGER, command, Capacity::UNBOUNDED, &mut self.effects);
            self.effects.clear();
        }
    }

    fn receive(&mut self, bytes: &[u8]) {
        self.received += bytes.len();
        self.now = self.now + Nanos::from_millis(100);
        let frames = (self.input.len() + bytes.len()) / 8 + 1;
        self.input.append(bytes);
        self.turn(frames);
    }

    /// Everything is synced.
    fn sync(&mut self) {
        self.durable = self.engine.last_lsn();
        self.turn(self.received / 8 + 1);
    }

    /// Until nothing happens any more, which has to be soon: the consequences of `frames` frames.
    fn turn(&mut self, frames: usize) {
        let commands = self.commands;
        let (before, bytes) = (total(&self.engine.statistics()), self.received + BEFORE_BYTES);
        self.poll();
        while self.emit() {
            self.poll();
        }
        if self.commands > commands {
            self.engine.check();
        }
        let messages = before.max(total(&self.engine.statistics()));
        // At worst each frame makes all messages come again, or browses them, on each link.
        let per_frame = (messages + 16) * 9;
        assert!(self.commands - commands <= frames as u64 * per_frame, "it goes on for ever");
        let bytes_max = frames * 9 * (bytes + (messages as usize + 16) * 512);
        assert!(self.out.len() <= bytes_max, "{} bytes for {frames} frames", self.out.len());
        assert!(self.connection.held_bytes() <= 9 * bytes + messages as usize * 512);
        self.out.clear();
    }

    fn poll(&mut self) {
        while let Some(command) =
            self.connection.poll_command(self.now, &mut self.input, &mut self.out)
        {
            assert!(!self.connection.needs_login(), "a peer that has not logged in does nothing");
            self.commands += 1;
            self.engine.handle(self.now, PEER, command, Capacity::UNBOUNDED, &mut self.effects);
            self.deliver();
        }
    }

    fn deliver(&mut self) {
        for output in self.effects.outputs.drain(..) {
            assert_eq!(output.session, PEER, "nobody else has asked for anything");
            self.held.extend(self.connection.handle_reply(output.after, output.reply));
        }
        self.effects.clear();
    }

    /// Gives whether there is more to poll.
    fn emit(&mut self) -> bool {
        for (after, event) in std::mem::take(&mut self.held) {
            if after.lsn <= self.durable {
                self.connection.emit(event, &mut self.out);
            } else {
                self.held.push_back((after, event));
            }
        }
        self.connection.flush(&mut self.out);
        self.log_in();
        self.connection.has_more()
    }

    /// The answers depend on the length of the messages.
    fn log_in(&mut self) {
        let Some(step) = self.connection.poll_login() else { return };
        let (input, out) = (self.input.len(), self.out.len());
        assert!(self.connection.poll_command(self.now, &mut self.input, &mut self.out).is_none());
        let is_idle = self.input.len() == input && self.out.len() == out;
        assert!(is_idle, "the peer waits for the answer");
        let granted = || LoginAnswer::Granted {
            rights: model::Rights::everything("user").into(),
            proof: vec![b'v'; 100],
        };
        let answer = match step {
            LoginStep::ScramFirst { .. } => LoginAnswer::Challenge(vec![b'r'; 200]),
            LoginStep::ScramFinal { message } if message.expose().len() % 2 == 1 => granted(),
            LoginStep::Password { password, .. } if password.expose().is_empty() => {
                LoginAnswer::Busy
            }
            LoginStep::ScramFinal { .. } | LoginStep::Token { .. } => LoginAnswer::Refused,
            _ => granted(),
        };
        self.connection.handle_login(answer, &mut self.out);
    }

    fn pass(&mut self, time: Nanos) {
        self.now = self.now + time;
        while self.engine.poll_timeout().is_some_and(|deadline| deadline <= self.now) {
            self.engine.handle_timeout(self.now, Capacity::UNBOUNDED, &mut self.effects);
            self.deliver();
        }
        self.connection.handle_timeout(self.now, &mut self.out);
        self.sync();
    }

    /// Nothing is held after its end, and all that was there before can be had.
    fn lose(mut self) {
        self.connection.handle_half_close();
        self.engine.note_begun(PEER, self.connection.begun());
        self.engine.close_session(self.now, PEER, Capacity::UNBOUNDED, &mut self.effects);
        self.engine.check();
        assert_eq!(self.engine.statistics().leased, 0, "nobody is there who could hold one");
        assert!(self.effects.outputs.is_empty(), "nobody is there to be told");
    }
}

fn total(count: &BrokerStatistics) -> u64 {
    count.ready + count.leased + count.delayed + count.buried
}

/// A peer that has links in both directions, and a transaction.
fn greeting() -> Vec<u8> {
    let mut out = ProtocolHeader::AMQP.encode().to_vec();
    let mut put = |performative: Performative<'_>, payload: &[u8]| {
        frame::write(&mut out, FrameKind::Amqp, 0, |out| {
            performative.encode(out);
            out.extend_from_slice(payload);
        });
    };
    put(Performative::Open(Box::new(Open { max_frame_size: 700, ..Open::new("peer") })), &[]);
    let begin = Begin { incoming_window: 100, outgoing_window: 100, ..Begin::default() };
    put(Performative::Begin(Box::new(begin)), &[]);
    let orders = || Some("orders".to_owned());
    let target = AttachTarget::Node(Target { address: orders(), ..Target::default() });
    let source = Source { address: orders(), ..Source::default() };
    let coordinator = AttachTarget::Coordinator(Coordinator::default());
    for (handle, role, target) in [
        (0, Role::Sender, target),
        (1, Role::Receiver, AttachTarget::Node(Target::default())),
        (2, Role::Sender, coordinator),
    ] {
        let attach = Attach {
            source: Some(source.clone()),
            target: Some(target),
            initial_delivery_count: (role == Role::Sender).then_some(0),
            ..Attach::new(format!("link {handle}"), handle, role)
        };
        put(Performative::Attach(Box::new(attach)), &[]);
    }
    let (handle, link_credit) = (Some(1), Some(20));
    let delivery_count = Some(0);
    let (incoming_window, outgoing_window) = (100, 100);
    put(
        Performative::Flow(Flow {
            incoming_window,
            outgoing_window,
            handle,
            delivery_count,
            link_credit,
            ..Flow::default()
        }),
        &[],
    );
    let mut declare = Vec::new();
    CoordinatorRequest::Declare { global_id: None }.encode(&mut declare);
    let (delivery_id, delivery_tag) = (Some(0), Some(&b"0"[..]));
    let transfer = Transfer { handle: 2, delivery_id, delivery_tag, ..Transfer::default() };
    put(Performative::Transfer(transfer), &declare);
    out
}
