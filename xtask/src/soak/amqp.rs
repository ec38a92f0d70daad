//! AMQP 1.0 as a client of the soak speaks it: one session with a link to send, one to take and one
//! to the coordinator of transactions. It asks for one thing at a time and waits for the answer.
//!
//! Of four messages two are sent by themselves, one in a transaction, and one after a transaction
//! with the same message was rolled back: were that stored, it would come twice. One settlement of
//! four is in a transaction.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use amqp::message::{self, Header, Message};
use amqp::transaction::CoordinatorRequest;
use client::{Event, Kind, Place, Said, Session, TxnId, Wanted, Wrong};

use super::workers::{Client, REPLY_MAX, Taken};

/// A client of one queue.
pub(super) struct Amqp {
    socket: TcpStream,
    session: Session,
    /// The links to send, to ask and to take by.
    send: u32,
    ask: u32,
    take: u32,
    /// True if its messages are persistent.
    durable: bool,
    /// Messages sent and taken, by which it varies how.
    turns: u32,
}

impl Amqp {
    pub(super) fn open(address: SocketAddr, queue: &str, durable: bool) -> io::Result<Amqp> {
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(REPLY_MAX))?;
        let session = Session::new(None, "soak", "localhost").with_frames(FRAME_BYTES);
        let mut client = Amqp { socket, session, send: 0, ask: 0, take: 0, durable, turns: 0 };
        while client.event()? != Event::Opened {}
        let place = Place { name: queue.to_owned(), kind: Kind::Queue };
        client.send = client.session.attach_producer(&place);
        client.ask = client.session.attach_coordinator();
        client.take = client.session.attach_consumer(&place, &Wanted::default());
        while !client.session.can_send(client.send, 0) || !client.session.can_send(client.ask, 0) {
            client.event()?;
        }
        Ok(client)
    }

    /// The next event of the broker.
    fn event(&mut self) -> io::Result<Event> {
        loop {
            // The session answers some frames itself: that goes before the next read.
            let event = self.session.poll_event().map_err(ended)?;
            self.socket.write_all(&std::mem::take(&mut self.session.out))?;
            if let Some(event) = event {
                return Ok(event);
            }
            let mut scratch = [0; 16 * 1024];
            match self.socket.read(&mut scratch) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.session.handle_bytes(scratch.get(..count).unwrap_or_default()),
                // A process that was stopped and goes on has lost nothing.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends a message by one of the links, and waits for its outcome.
    fn transfer(&mut self, link: u32, bytes: &[u8], within: Option<&TxnId>) -> io::Result<Said> {
        while !self.session.can_send(link, bytes.len()) {
            self.event()?;
        }
        self.session.transfer(link, bytes, 0, within);
        loop {
            if let Event::Answer(_, said) = self.event()? {
                return Ok(said);
            }
        }
    }

    fn request(&mut self, request: CoordinatorRequest<'_>) -> io::Result<Said> {
        let mut bytes = Vec::new();
        request.encode(&mut bytes);
        self.transfer(self.ask, &bytes, None)
    }

    /// Does something in a transaction of its own, and ends that.
    fn transact(
        &mut self,
        fail: bool,
        within: impl FnOnce(&mut Self, &TxnId) -> io::Result<Said>,
    ) -> io::Result<Said> {
        let txn_id = match self.request(CoordinatorRequest::Declare { global_id: None })? {
            Said::Declared(txn_id) => txn_id,
            other => return Ok(other),
        };
        match within(self, &txn_id)? {
            Said::Enlisted => self.request(CoordinatorRequest::Discharge { txn_id: &txn_id, fail }),
            other => Ok(Said::Refused(format!("{other:?} in a transaction"))),
        }
    }

    fn dispose(&mut self, delivery: u32, within: Option<&TxnId>) -> io::Result<Said> {
        self.session.accept(delivery, delivery, false, within);
        loop {
            if let Event::Settled(settled, said) = self.event()?
                && settled == delivery
            {
                return said.ok_or_else(|| io::Error::other("settled without a state"));
            }
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
        let link = self.send;
        let in_transaction = |fail, client: &mut Self| {
            client.transact(fail, |client, txn_id| client.transfer(link, &bytes, Some(txn_id)))
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
            self.transfer(link, &bytes, None)?
        };
        Ok(accepted(said))
    }

    /// The end of the drain follows a message as well.
    fn take(&mut self) -> io::Result<Option<Taken>> {
        self.session.grant(self.take, 1, true);
        let mut taken = None;
        loop {
            match self.event()? {
                Event::Message { delivery, bytes, .. } => {
                    let message = Message::scan(&bytes).map_err(io::Error::other)?;
                    let body = message.data().flatten().copied().collect();
                    taken = Some(Taken { handle: delivery.to_string(), body });
                }
                Event::Drained(_) => return Ok(taken),
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

fn ended(wrong: Wrong) -> io::Error {
    io::Error::other(format!("the broker ended it: {wrong:?}"))
}

/// So that long messages are several frames.
const FRAME_BYTES: u32 = 16 * 1024;
