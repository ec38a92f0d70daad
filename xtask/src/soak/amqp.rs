//! AMQP 1.0 as a client of the soak speaks it: one session with a link to send, one to take and one
//! to the coordinator of transactions. It asks for one thing at a time and waits for the answer.
//!
//! Of four messages two are sent by themselves, one in a transaction, and one after a transaction
//! with the same message was rolled back: were that stored, it would come twice. One settlement of
//! four is in a transaction.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use amqp::frame::{self, Frame, FrameKind, Split};
use amqp::message::{self, Header, Message};
use amqp::performative::{
    Attach, Begin, Disposition, Flow, Open, Performative, Role, SenderSettleMode, Transfer,
    TransferFrames,
};
use amqp::protocol_header::ProtocolHeader;
use amqp::state::{DeliveryState, Outcome};
use amqp::terminus::{AttachTarget, Coordinator, Source, Target};
use amqp::transaction::CoordinatorRequest;

use super::workers::{Client, REPLY_MAX, Taken};

/// A client of one queue.
pub(super) struct Amqp {
    socket: TcpStream,
    /// Read, and not understood yet.
    input: Vec<u8>,
    /// True if its messages are persistent.
    durable: bool,
    /// Its frames are no larger.
    frame_bytes: u32,
    /// The part of a delivery that has come, with its number.
    partial: Option<(u32, Vec<u8>)>,
    /// Deliveries that it has sent, by all links.
    sent: u32,
    /// Transfer frames that it has read.
    frames_read: u32,
    /// Deliveries that the broker was allowed so far.
    allowed: u32,
    /// The credit of the links to send and to ask by.
    credited: [bool; 2],
    /// Messages sent and taken, by which it varies how.
    turns: u32,
}

/// Frames of the broker that matter.
enum Heard {
    /// Of a delivery, ours or theirs.
    Answer(u32, Said),
    Message(u32, Vec<u8>),
    /// The link to take by has used up so much credit.
    Drained(u32),
    Other,
}

/// The outcome of a delivery.
#[derive(Debug, PartialEq, Eq)]
enum Said {
    Accepted,
    /// In its transaction.
    Enlisted,
    Declared(Vec<u8>),
    Other(String),
}

impl Amqp {
    pub(super) fn open(address: SocketAddr, queue: &str, durable: bool) -> io::Result<Amqp> {
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(REPLY_MAX))?;
        let mut client = Amqp {
            socket,
            input: Vec::new(),
            durable,
            frame_bytes: FRAME_BYTES,
            partial: None,
            sent: 0,
            frames_read: 0,
            allowed: 0,
            credited: [false; 2],
            turns: 0,
        };
        client.greet(queue)?;
        Ok(client)
    }

    fn greet(&mut self, queue: &str) -> io::Result<()> {
        self.socket.write_all(&ProtocolHeader::AMQP.encode())?;
        let open = Open { max_frame_size: FRAME_BYTES, ..Open::new("soak") };
        self.say(&Performative::Open(Box::new(open)))?;
        let begin = Begin { incoming_window: WINDOW, outgoing_window: WINDOW, ..Begin::default() };
        self.say(&Performative::Begin(Box::new(begin)))?;
        let node = Target { address: Some(queue.to_owned()), ..Target::default() };
        self.say(&sender(SEND, AttachTarget::Node(node)))?;
        let capabilities = ["amqp:local-transactions"].into_iter().collect();
        self.say(&sender(ASK, AttachTarget::Coordinator(Coordinator { capabilities })))?;
        let source = Source { address: Some(queue.to_owned()), ..Source::default() };
        self.say(&Performative::Attach(Box::new(Attach {
            source: Some(source),
            target: Some(AttachTarget::Node(Target::default())),
            ..Attach::new("take", TAKE, Role::Receiver)
        })))?;
        let mut header = [0; ProtocolHeader::BYTES];
        self.socket.read_exact(&mut header)?;
        if header != ProtocolHeader::AMQP.encode() {
            return Err(io::Error::other(format!("the broker speaks {header:?}")));
        }
        while self.credited != [true; 2] {
            self.hear()?;
        }
        Ok(())
    }

    fn say(&mut self, performative: &Performative<'_>) -> io::Result<()> {
        let mut out = Vec::new();
        frame::write(&mut out, FrameKind::Amqp, 0, |out| performative.encode(out));
        self.socket.write_all(&out)
    }

    /// Sends a message by one of the links, and waits for its outcome. A link may have a thousand
    /// unanswered messages and has one, so its credit, once given, needs no counting.
    fn transfer(&mut self, link: u32, bytes: &[u8], within: Option<&[u8]>) -> io::Result<Said> {
        let delivery = self.sent;
        self.sent += 1;
        let tag = delivery.to_be_bytes();
        let transfer = Transfer {
            handle: link,
            delivery_id: Some(delivery),
            delivery_tag: Some(&tag),
            message_format: Some(0),
            state: within.map(|txn_id| DeliveryState::Transactional { txn_id, outcome: None }),
            ..Transfer::default()
        };
        let mut frames = TransferFrames::new(transfer, 0, bytes.len(), self.frame_bytes);
        let mut out = Vec::new();
        while let Some(part) = frames.write_next(&mut out) {
            out.extend_from_slice(bytes.get(part).unwrap_or_default());
        }
        self.socket.write_all(&out)?;
        self.answer(delivery)
    }

    fn answer(&mut self, delivery: u32) -> io::Result<Said> {
        loop {
            if let Heard::Answer(answered, said) = self.hear()?
                && answered == delivery
            {
                return Ok(said);
            }
        }
    }

    /// Does something in a transaction of its own, and ends that.
    fn transact(
        &mut self,
        fail: bool,
        within: impl FnOnce(&mut Self, &[u8]) -> io::Result<Said>,
    ) -> io::Result<Said> {
        let declare = CoordinatorRequest::Declare { global_id: None };
        let txn_id = match self.transfer(ASK, &request(declare), None)? {
            Said::Declared(txn_id) => txn_id,
            other => return Ok(other),
        };
        match within(self, &txn_id)? {
            Said::Enlisted => {
                let discharge = CoordinatorRequest::Discharge { txn_id: &txn_id, fail };
                self.transfer(ASK, &request(discharge), None)
            }
            other => Ok(Said::Other(format!("{other:?} in a transaction"))),
        }
    }

    fn dispose(&mut self, delivery: u32, within: Option<&[u8]>) -> io::Result<Said> {
        let state = match within {
            Some(txn_id) => {
                DeliveryState::Transactional { txn_id, outcome: Some(Outcome::Accepted) }
            }
            None => DeliveryState::ACCEPTED,
        };
        self.say(&Performative::Disposition(Disposition {
            role: Role::Receiver,
            first: delivery,
            last: None,
            settled: false,
            state: Some(state),
            batchable: false,
        }))?;
        self.answer(delivery)
    }

    /// Reads a frame.
    fn hear(&mut self) -> io::Result<Heard> {
        let body = self.frame()?;
        if body.is_empty() {
            return Ok(Heard::Other);
        }
        let (performative, payload) = Performative::decode(&body).map_err(io::Error::other)?;
        match performative {
            Performative::Open(open) => {
                self.frame_bytes = FRAME_BYTES.min(open.max_frame_size);
                Ok(Heard::Other)
            }
            Performative::Transfer(transfer) => Ok(self.hear_transfer(&transfer, payload)),
            Performative::Flow(flow) if flow.handle == Some(TAKE) => {
                Ok(flow.delivery_count.map_or(Heard::Other, Heard::Drained))
            }
            Performative::Flow(flow) => {
                let link = flow.handle.and_then(|link| self.credited.get_mut(link as usize));
                if let (Some(credited), Some(1..)) = (link, flow.link_credit) {
                    *credited = true;
                }
                Ok(Heard::Other)
            }
            Performative::Disposition(told) => Ok(Heard::Answer(told.first, said(told.state))),
            Performative::Detach(_) | Performative::End(_) | Performative::Close(_) => {
                Err(io::Error::other(format!("the broker ended it: {performative:?}")))
            }
            _ => Ok(Heard::Other),
        }
    }

    fn hear_transfer(&mut self, transfer: &Transfer<'_>, payload: &[u8]) -> Heard {
        self.frames_read += 1;
        let begun = self.partial.take().or(transfer.delivery_id.map(|id| (id, Vec::new())));
        let Some((delivery, mut bytes)) = begun else { return Heard::Other };
        bytes.extend_from_slice(payload);
        if transfer.more {
            self.partial = Some((delivery, bytes));
            return Heard::Other;
        }
        Heard::Message(delivery, bytes)
    }

    /// The body of the next frame.
    fn frame(&mut self) -> io::Result<Vec<u8>> {
        loop {
            let split = Frame::split(&self.input, FRAME_BYTES).map_err(io::Error::other)?;
            if let Split::Frame { frame, length } = split {
                let body = frame.body.to_vec();
                self.input.drain(..length);
                return Ok(body);
            }
            let mut scratch = [0; 16 * 1024];
            let count = match self.socket.read(&mut scratch) {
                // A process that was stopped and goes on has lost nothing.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.input.extend_from_slice(scratch.get(..count).unwrap_or_default());
        }
    }

    fn turn(&mut self) -> u32 {
        self.turns += 1;
        self.turns % 4
    }
}

impl Client for Amqp {
    fn send(&mut self, body: &[u8]) -> io::Result<Result<(), String>> {
        let mut bytes = Vec::new();
        Header { durable: self.durable, ..Header::default() }.encode(&mut bytes);
        message::data(&mut bytes, body);
        let in_transaction = |fail, client: &mut Self| {
            client.transact(fail, |client, txn_id| client.transfer(SEND, &bytes, Some(txn_id)))
        };
        let turn = self.turn();
        if turn == 0 {
            let rolled_back = in_transaction(true, self)?;
            if rolled_back != Said::Accepted {
                return Ok(Err(format!("{rolled_back:?} to a rollback")));
            }
        }
        let said = if turn == 1 {
            in_transaction(false, self)?
        } else {
            self.transfer(SEND, &bytes, None)?
        };
        Ok(accepted(said))
    }

    fn take(&mut self) -> io::Result<Option<Taken>> {
        self.allowed += 1;
        self.say(&Performative::Flow(Flow {
            next_incoming_id: Some(self.frames_read),
            incoming_window: WINDOW,
            next_outgoing_id: 0,
            outgoing_window: WINDOW,
            handle: Some(TAKE),
            delivery_count: Some(self.allowed - 1),
            link_credit: Some(1),
            drain: true,
            ..Flow::default()
        }))?;
        loop {
            match self.hear()? {
                Heard::Message(delivery, bytes) => {
                    let message = Message::scan(&bytes).map_err(io::Error::other)?;
                    let body = message.data().flatten().copied().collect();
                    return Ok(Some(Taken { handle: delivery.to_string(), body }));
                }
                Heard::Drained(count) if count == self.allowed => return Ok(None),
                _ => {}
            }
        }
    }

    fn settle(&mut self, taken: &Taken) -> io::Result<Result<(), String>> {
        let delivery = taken.handle.parse().map_err(io::Error::other)?;
        let said = if self.turn() == 0 {
            self.transact(false, |client, txn_id| client.dispose(delivery, Some(txn_id)))?
        } else {
            self.dispose(delivery, None)?
        };
        Ok(accepted(said))
    }
}

fn accepted(said: Said) -> Result<(), String> {
    if said == Said::Accepted { Ok(()) } else { Err(format!("{said:?}")) }
}

fn said(state: Option<DeliveryState<'_>>) -> Said {
    match state {
        Some(DeliveryState::Outcome(Outcome::Accepted)) => Said::Accepted,
        Some(DeliveryState::Transactional { outcome: Some(Outcome::Accepted), .. }) => {
            Said::Enlisted
        }
        Some(DeliveryState::Declared { txn_id }) => Said::Declared(txn_id.to_vec()),
        other => Said::Other(format!("{other:?}")),
    }
}

/// The attach of a link by which messages go.
fn sender(handle: u32, target: AttachTarget) -> Performative<'static> {
    Performative::Attach(Box::new(Attach {
        snd_settle_mode: SenderSettleMode::Unsettled,
        source: Some(Source::default()),
        target: Some(target),
        initial_delivery_count: Some(0),
        ..Attach::new(format!("link {handle}"), handle, Role::Sender)
    }))
}

fn request(request: CoordinatorRequest<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    request.encode(&mut out);
    out
}

/// The links.
const SEND: u32 = 0;
const ASK: u32 = 1;
const TAKE: u32 = 2;

/// So that long messages are several frames.
const FRAME_BYTES: u32 = 16 * 1024;

/// More frames than are on their way at a time.
const WINDOW: u32 = 1 << 20;
