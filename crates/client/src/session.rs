//! One client of AMQP 1.0 as a pure machine: bytes in, events and bytes out.
//!
//! ```text
//! ExpectSaslHeader -> ExpectMechanisms -> ExpectOutcome
//!                                         -> ExpectHeader -> ExpectOpen -> ExpectBegin -> Open
//! ```
//! It opens a connection with one session, attaches links, and keeps the windows and credits of
//! both ends. It owns no socket and does not decide which messages to send. Calls append to
//! [`Session::out`]. [`Session::handle_bytes`] takes received bytes; [`Session::poll_event`] gives
//! their events, until there are no more.

use std::collections::BTreeMap;

use amqp::frame::{self, Frame, FrameKind, Split};
use amqp::performative::{
    Attach, Begin, Close, Detach, Disposition, Flow, Open, Performative, Role, Transfer,
    TransferFrames,
};
use amqp::protocol_header::ProtocolHeader;
use amqp::sasl::{SaslBody, SaslCode};
use amqp::state::{DeliveryState, Outcome};
use amqp::transaction::CoordinatorRequest;

use crate::links::{self, Link, Place, Wanted};

/// A client's end of a connection.
#[derive(Debug)]
pub struct Session {
    /// Bytes for the socket, in order.
    pub out: Vec<u8>,
    state: State,
    user: Option<(String, String)>,
    container: String,
    hostname: String,
    input: Vec<u8>,
    /// Bytes of `input` that were read.
    consumed: usize,
    /// Neither end sends larger frames.
    frame_bytes: u32,
    /// Half of the silence after which the broker would close the connection.
    keep_alive_millis: Option<u32>,
    links: Vec<Link>,
    /// Our numbers of the links by the broker's.
    handles: BTreeMap<u32, u32>,
    /// Deliveries that were sent and not answered, with their sender's tags.
    unanswered: BTreeMap<u32, u64>,
    next_delivery: u32,
    frames_sent: u32,
    /// Transfer frames that the broker takes before it must tell more.
    window: u32,
    frames_read: u32,
    /// A delivery of which more is to come: link, number, bytes.
    partial: Option<(u32, u32, Vec<u8>)>,
    /// Events of the last disposition that are not polled yet.
    answers: Vec<Event>,
}

/// The frame that it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    ExpectSaslHeader,
    ExpectMechanisms,
    ExpectOutcome,
    ExpectHeader,
    ExpectOpen,
    ExpectBegin,
    Open,
    Closed,
}

/// Frames of the broker that matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The session is open; links can be attached.
    Opened,
    /// A link may send, or may send again.
    Credit,
    /// The outcome of a sent delivery, by its sender's tag.
    Answer(u64, Said),
    /// The broker has settled this delivery, as the client asked: its state.
    Settled(u32, Option<Said>),
    /// A delivery by a link.
    Message {
        /// Which of ours.
        link: u32,
        /// Its number.
        delivery: u32,
        /// All sections.
        bytes: Vec<u8>,
    },
    /// The link has nothing more for the credit that it had.
    Drained(u32),
    /// A link was detached as asked.
    Detached(u32),
}

/// The outcome of a sent delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// It is safe.
    Accepted,
    /// It is part of its transaction.
    Enlisted,
    /// A transaction was begun.
    Declared(Vec<u8>),
    /// It was refused: the condition, with its text.
    Refused(String),
}

/// Why a client cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// The received bytes are not AMQP 1.0: in words, or the bytes.
    NotAmqp(String),
    /// The broker does not take these credentials; the mechanisms that it offers.
    Unauthenticated(String),
    /// The broker ended the connection, the session or a link: condition and text.
    Ended(String),
}

/// A transaction, by the broker's name for it.
pub type TxnId = [u8];

/// The beginning and end of a client.
impl Session {
    /// A client that has just connected.
    #[must_use]
    pub fn new(user: Option<(&str, &str)>, container: &str, hostname: &str) -> Self {
        Self {
            out: ProtocolHeader::SASL.encode().to_vec(),
            state: State::ExpectSaslHeader,
            user: user.map(|(name, password)| (name.to_owned(), password.to_owned())),
            container: container.to_owned(),
            hostname: hostname.to_owned(),
            input: Vec::new(),
            consumed: 0,
            frame_bytes: FRAME_BYTES,
            keep_alive_millis: None,
            links: Vec::new(),
            handles: BTreeMap::new(),
            unanswered: BTreeMap::new(),
            next_delivery: 0,
            frames_sent: 0,
            window: 0,
            frames_read: 0,
            partial: None,
            answers: Vec::new(),
        }
    }

    /// The same with frames of at most so many bytes, in both directions.
    #[must_use]
    pub fn with_frames(self, frame_bytes: u32) -> Self {
        Self { frame_bytes, ..self }
    }

    /// Says goodbye.
    pub fn close(&mut self) {
        if !matches!(self.state, State::Closed) {
            self.say(&Performative::Close(Close::default()));
            self.state = State::Closed;
        }
    }

    /// True if it has said goodbye.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// True if every link can send or receive.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.state == State::Open && self.links.iter().all(Link::is_ready)
    }

    /// Says that it is alive; in vain before the session is open.
    pub fn stay_alive(&mut self) {
        if self.state == State::Open {
            frame::write(&mut self.out, FrameKind::Amqp, 0, |_| ());
        }
    }

    /// How long it may be silent.
    #[must_use]
    pub fn keep_alive_millis(&self) -> Option<u32> {
        self.keep_alive_millis
    }
}

/// Links, and deliveries over them.
impl Session {
    /// Attaches a link to send by; returns its handle.
    pub fn attach_producer(&mut self, to: &Place) -> u32 {
        self.attach(Role::Sender, |handle| links::producer(handle, to))
    }

    /// Attaches the link for transactions.
    pub fn attach_coordinator(&mut self) -> u32 {
        self.attach(Role::Sender, links::coordinator)
    }

    /// Attaches a link to receive by.
    pub fn attach_consumer(&mut self, from: &Place, wanted: &Wanted) -> u32 {
        self.attach(Role::Receiver, |handle| links::consumer(handle, from, wanted))
    }

    /// Ends a link for good: a subscription of its own ends with it.
    pub fn detach(&mut self, handle: u32) {
        self.say(&Performative::Detach(Detach { handle, closed: true, error: None }));
    }

    /// True if a message of so many bytes can be sent by the link now.
    #[must_use]
    pub fn can_send(&self, handle: u32, bytes: usize) -> bool {
        let frames = bytes as u32 / (self.frame_bytes - FRAME_HEAD_BYTES_MAX) + 1;
        self.link(handle).is_some_and(|link| link.credit > 0) && self.window >= frames
    }

    /// Sends a message, which its answer will call `tag`. It must be possible.
    pub fn transfer(&mut self, handle: u32, bytes: &[u8], tag: u64, within: Option<&TxnId>) {
        let delivery = self.next_delivery;
        self.next_delivery = delivery.wrapping_add(1);
        let name = delivery.to_be_bytes();
        let transfer = Transfer {
            handle,
            delivery_id: Some(delivery),
            delivery_tag: Some(&name),
            message_format: Some(0),
            settled: Some(false),
            state: within.map(|txn_id| DeliveryState::Transactional { txn_id, outcome: None }),
            ..Transfer::default()
        };
        let mut frames = TransferFrames::new(transfer, 0, bytes.len(), self.frame_bytes);
        while let Some(part) = frames.write_next(&mut self.out) {
            self.out.extend_from_slice(bytes.get(part).unwrap_or_default());
            self.frames_sent = self.frames_sent.wrapping_add(1);
            self.window = self.window.saturating_sub(1);
        }
        self.unanswered.insert(delivery, tag);
        if let Some(link) = self.links.get_mut(handle as usize) {
            link.count = link.count.wrapping_add(1);
            link.credit = link.credit.saturating_sub(1);
        }
    }

    /// Asks the coordinator to begin or end a transaction.
    pub fn ask(&mut self, handle: u32, request: CoordinatorRequest<'_>, tag: u64) {
        let mut bytes = Vec::new();
        request.encode(&mut bytes);
        self.transfer(handle, &bytes, tag, None);
    }

    /// Lets a link have `credit` messages on their way; with `drain` as many as are there now.
    pub fn grant(&mut self, handle: u32, credit: u32, drain: bool) {
        let Some(link) = self.links.get_mut(handle as usize) else { return };
        link.credit = credit;
        let delivery_count = Some(link.count);
        self.say(&Performative::Flow(Flow {
            handle: Some(handle),
            delivery_count,
            link_credit: Some(credit),
            drain,
            ..self.windows()
        }));
    }

    /// Keeps so much credit with a link; tells more once half is used.
    pub fn replenish(&mut self, handle: u32, credit: u32) {
        if self.link(handle).is_some_and(|link| link.credit <= credit / 2) {
            self.grant(handle, credit, false);
        }
    }

    /// Tells that the deliveries `first` to `last` were worked on. Unless `settled`, the broker
    /// answers with [`Event::Settled`] once that is safe.
    pub fn accept(&mut self, first: u32, last: u32, settled: bool, within: Option<&TxnId>) {
        let state = match within {
            Some(txn_id) => {
                DeliveryState::Transactional { txn_id, outcome: Some(Outcome::Accepted) }
            }
            None => DeliveryState::ACCEPTED,
        };
        self.say(&Performative::Disposition(Disposition {
            role: Role::Receiver,
            first,
            last: Some(last),
            settled,
            state: Some(state),
            batchable: false,
        }));
    }

    fn attach(&mut self, role: Role, attach: impl FnOnce(u32) -> Attach) -> u32 {
        let free = self.links.iter().position(|link| link.is_gone);
        let place = free.unwrap_or(self.links.len());
        let handle = place as u32;
        let attach = attach(handle);
        let link = Link::new(role, attach.name.clone());
        match self.links.get_mut(place) {
            Some(gone) => *gone = link,
            None => self.links.push(link),
        }
        self.say(&Performative::Attach(Box::new(attach)));
        handle
    }

    /// The fields that every flow has.
    fn windows(&self) -> Flow {
        Flow {
            next_incoming_id: Some(self.frames_read),
            incoming_window: WINDOW,
            next_outgoing_id: self.frames_sent,
            outgoing_window: WINDOW,
            ..Flow::default()
        }
    }

    fn link(&self, handle: u32) -> Option<&Link> {
        self.links.get(handle as usize)
    }

    fn say(&mut self, performative: &Performative<'_>) {
        frame::write(&mut self.out, FrameKind::Amqp, 0, |out| performative.encode(out));
    }
}

/// Received frames.
impl Session {
    /// Takes bytes of the socket.
    pub fn handle_bytes(&mut self, bytes: &[u8]) {
        self.input.drain(..self.consumed);
        self.consumed = 0;
        self.input.extend_from_slice(bytes);
    }

    /// The next thing that the broker said; nothing once all that came is read.
    ///
    /// # Errors
    /// When the client cannot go on.
    pub fn poll_event(&mut self) -> Result<Option<Event>, Wrong> {
        loop {
            if let Some(answer) = self.answers.pop() {
                return Ok(Some(answer));
            }
            // The bytes are lent while they are understood.
            let input = std::mem::take(&mut self.input);
            let rest = input.get(self.consumed..).unwrap_or_default();
            let read = self.read(rest);
            self.input = input;
            let (length, event) = read?;
            if length == 0 {
                return Ok(None);
            }
            self.consumed += length;
            if event.is_some() {
                return Ok(event);
            }
        }
    }

    /// Reads the frame or header at the front; 0 bytes of it while it is not whole.
    fn read(&mut self, bytes: &[u8]) -> Result<(usize, Option<Event>), Wrong> {
        if matches!(self.state, State::ExpectSaslHeader | State::ExpectHeader) {
            let header = ProtocolHeader::decode(bytes).map_err(|_| not_amqp(bytes))?;
            let Some(header) = header else { return Ok((0, None)) };
            return self.hear_header(header).map(|()| (ProtocolHeader::BYTES, None));
        }
        let split = Frame::split(bytes, FRAME_BYTES);
        let split = split.map_err(|error| Wrong::NotAmqp(error.to_string()))?;
        let Split::Frame { frame, length } = split else { return Ok((0, None)) };
        if frame.body.is_empty() {
            return Ok((length, None));
        }
        let event = match frame.kind {
            FrameKind::Sasl => self.hear_sasl(frame.body).map(|()| None),
            FrameKind::Amqp => self.hear(frame.body),
        };
        Ok((length, event?))
    }

    fn hear_header(&mut self, header: ProtocolHeader) -> Result<(), Wrong> {
        let expects_sasl = self.state == State::ExpectSaslHeader;
        let expected = if expects_sasl { ProtocolHeader::SASL } else { ProtocolHeader::AMQP };
        if header != expected {
            let shown = header.encode();
            return Err(Wrong::NotAmqp(format!("it begins with {}", shown.escape_ascii())));
        }
        self.state = if expects_sasl { State::ExpectMechanisms } else { State::ExpectOpen };
        Ok(())
    }

    fn hear_sasl(&mut self, body: &[u8]) -> Result<(), Wrong> {
        let sasl = SaslBody::decode(body).map_err(|error| Wrong::NotAmqp(error.to_string()))?;
        match (self.state, sasl) {
            (State::ExpectMechanisms, SaslBody::Mechanisms(mechanisms)) => {
                let wanted = if self.user.is_some() { "PLAIN" } else { "ANONYMOUS" };
                if !mechanisms.contains(wanted) {
                    let offered: Vec<&str> = mechanisms.iter().collect();
                    return Err(Wrong::Unauthenticated(format!(
                        "it offers {}",
                        offered.join(", ")
                    )));
                }
                self.introduce(wanted);
                self.state = State::ExpectOutcome;
                Ok(())
            }
            (State::ExpectOutcome, SaslBody::Outcome { code: SaslCode::Ok, .. }) => {
                self.open();
                self.state = State::ExpectHeader;
                Ok(())
            }
            (State::ExpectOutcome, SaslBody::Outcome { code, .. }) => {
                Err(Wrong::Unauthenticated(format!("it said {code:?}")))
            }
            (_, other) => Err(Wrong::NotAmqp(format!("{other:?} in {:?}", self.state))),
        }
    }

    fn introduce(&mut self, mechanism: &str) {
        let response = match &self.user {
            Some((name, password)) => format!("\0{name}\0{password}"),
            None => self.container.clone(),
        };
        let init = SaslBody::Init {
            mechanism,
            initial_response: Some(response.as_bytes()),
            hostname: Some(&self.hostname),
        };
        frame::write(&mut self.out, FrameKind::Sasl, 0, |out| init.encode(out));
    }

    fn open(&mut self) {
        self.out.extend_from_slice(&ProtocolHeader::AMQP.encode());
        let open = Open {
            hostname: Some(self.hostname.clone()),
            max_frame_size: self.frame_bytes,
            ..Open::new(self.container.as_str())
        };
        self.say(&Performative::Open(Box::new(open)));
        let begin = Begin { incoming_window: WINDOW, outgoing_window: WINDOW, ..Begin::default() };
        self.say(&Performative::Begin(Box::new(begin)));
    }

    fn hear(&mut self, body: &[u8]) -> Result<Option<Event>, Wrong> {
        let heard = Performative::decode(body);
        let (performative, payload) = heard.map_err(|error| Wrong::NotAmqp(error.to_string()))?;
        match performative {
            Performative::Open(open) => {
                self.frame_bytes = self.frame_bytes.min(open.max_frame_size);
                self.keep_alive_millis = open.idle_time_out.map(|millis| millis / 2);
                self.state = State::ExpectBegin;
                Ok(None)
            }
            Performative::Begin(begin) => {
                self.window = begin.incoming_window;
                self.state = State::Open;
                Ok(Some(Event::Opened))
            }
            Performative::Attach(attach) => Ok(self.hear_attach(&attach)),
            Performative::Flow(flow) => Ok(self.hear_flow(&flow)),
            Performative::Transfer(transfer) => Ok(self.hear_transfer(&transfer, payload)),
            Performative::Disposition(told) => Ok(self.hear_disposition(&told)),
            Performative::Detach(detach) => match detach.error {
                Some(error) => Err(ended(Some(&error))),
                None => Ok(self.hear_detach(&detach)),
            },
            Performative::End(end) => Err(ended(end.error.as_deref())),
            Performative::Close(_) if self.is_closed() => Ok(None),
            Performative::Close(close) => Err(ended(close.error.as_deref())),
        }
    }

    /// Each end has numbers of its own for a link; the name is common to both (2.6.1).
    fn hear_attach(&mut self, attach: &Attach) -> Option<Event> {
        let is_it = |link: &Link| link.name == attach.name && !link.is_gone;
        let handle = self.links.iter().position(is_it)?;
        self.handles.insert(attach.handle, handle as u32);
        let link = self.links.get_mut(handle)?;
        // A link without that end is one that the broker refuses: its detach says why (2.6.3).
        let is_there = match link.role {
            Role::Sender => attach.target.is_some(),
            Role::Receiver => attach.source.is_some(),
        };
        link.is_attached = is_there;
        None
    }

    fn hear_detach(&mut self, detach: &Detach) -> Option<Event> {
        let handle = self.handles.remove(&detach.handle)?;
        self.links.get_mut(handle as usize)?.is_gone = true;
        Some(Event::Detached(handle))
    }

    fn hear_flow(&mut self, flow: &Flow) -> Option<Event> {
        let seen = flow.next_incoming_id.unwrap_or(0);
        let ahead = self.frames_sent.wrapping_sub(seen);
        self.window = flow.incoming_window.saturating_sub(ahead);
        if flow.echo {
            self.say(&Performative::Flow(self.windows()));
        }
        let Some(handle) = flow.handle else { return Some(Event::Credit) };
        let handle = *self.handles.get(&handle)?;
        let link = self.links.get_mut(handle as usize)?;
        match link.role {
            Role::Sender => {
                let limit = flow.delivery_count.unwrap_or(0).wrapping_add(flow.link_credit?);
                let credit = limit.wrapping_sub(link.count);
                link.credit = if credit > u32::MAX / 2 { 0 } else { credit };
                Some(Event::Credit)
            }
            Role::Receiver if flow.drain && flow.link_credit == Some(0) => {
                link.count = flow.delivery_count.unwrap_or(link.count);
                link.credit = 0;
                Some(Event::Drained(handle))
            }
            Role::Receiver => None,
        }
    }

    fn hear_transfer(&mut self, transfer: &Transfer<'_>, payload: &[u8]) -> Option<Event> {
        self.frames_read = self.frames_read.wrapping_add(1);
        let begun = self.partial.take();
        let handle = *self.handles.get(&transfer.handle)?;
        let begun = begun.or(transfer.delivery_id.map(|id| (handle, id, Vec::new())));
        let (handle, delivery, mut bytes) = begun?;
        if transfer.aborted {
            return None;
        }
        bytes.extend_from_slice(payload);
        if transfer.more {
            self.partial = Some((handle, delivery, bytes));
            return None;
        }
        if let Some(link) = self.links.get_mut(handle as usize) {
            link.count = link.count.wrapping_add(1);
            link.credit = link.credit.saturating_sub(1);
        }
        Some(Event::Message { link: handle, delivery, bytes })
    }

    fn hear_disposition(&mut self, told: &Disposition<'_>) -> Option<Event> {
        let last = told.last.unwrap_or(told.first);
        let count = last.wrapping_sub(told.first).min(UNANSWERED_MAX);
        let deliveries = (0..=count).map(|index| told.first.wrapping_add(index));
        let said = told.state.as_ref().map(said);
        if told.role == Role::Sender {
            self.answers.extend(deliveries.map(|delivery| Event::Settled(delivery, said.clone())));
        } else {
            let said = said?;
            let unanswered = &mut self.unanswered;
            let tags = deliveries.filter_map(|delivery| unanswered.remove(&delivery));
            self.answers.extend(tags.map(|tag| Event::Answer(tag, said.clone())));
            if !told.settled {
                let settled = Disposition { role: Role::Sender, settled: true, ..told.clone() };
                self.say(&Performative::Disposition(settled));
            }
        }
        self.answers.reverse();
        self.answers.pop()
    }
}

fn said(state: &DeliveryState<'_>) -> Said {
    match state {
        DeliveryState::Outcome(Outcome::Accepted) => Said::Accepted,
        DeliveryState::Transactional { outcome: None | Some(Outcome::Accepted), .. } => {
            Said::Enlisted
        }
        DeliveryState::Declared { txn_id } => Said::Declared(txn_id.to_vec()),
        DeliveryState::Outcome(Outcome::Rejected(Some(error)))
        | DeliveryState::Transactional { outcome: Some(Outcome::Rejected(Some(error))), .. } => {
            Said::Refused(shown(error))
        }
        DeliveryState::Outcome(outcome)
        | DeliveryState::Transactional { outcome: Some(outcome), .. } => {
            Said::Refused(format!("{outcome:?}").to_lowercase())
        }
        DeliveryState::Received { .. } => Said::Refused("received in part".to_owned()),
    }
}

fn ended(error: Option<&amqp::error::Error>) -> Wrong {
    Wrong::Ended(error.map_or_else(|| "without a reason".to_owned(), shown))
}

fn shown(error: &amqp::error::Error) -> String {
    match &error.description {
        Some(text) => format!("{}: {text}", error.condition),
        None => error.condition.to_string(),
    }
}

/// The first 80 bytes, made printable.
fn not_amqp(bytes: &[u8]) -> Wrong {
    let shown = bytes.get(..80).unwrap_or(bytes);
    Wrong::NotAmqp(format!("it says \"{}\"", shown.escape_ascii()))
}

/// As large as ours take.
const FRAME_BYTES: u32 = 64 * 1024;
/// Bytes that a frame has beside payload, at most: with the id of a transaction.
const FRAME_HEAD_BYTES_MAX: u32 = 256;
/// More frames than are ever on their way.
const WINDOW: u32 = 1 << 30;
/// More deliveries than are ever unanswered.
const UNANSWERED_MAX: u32 = 1 << 20;
