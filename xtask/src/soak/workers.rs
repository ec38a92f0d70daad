//! The clients of a soak: each sends and takes by one protocol, and tells the ledger.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use client::resp;
use testkit::Rng;

use super::amqp::Amqp;
use super::ledger::Ledger;
use crate::wire::Connection;

/// One protocol's way to store a message, to take one, and to settle it.
pub(super) trait Client {
    /// Stores it; the inner error is an answer other than a confirmation.
    fn send(&mut self, body: &[u8]) -> io::Result<Result<(), String>>;
    /// Takes a message that is ready.
    fn take(&mut self) -> io::Result<Option<Taken>>;
    /// Settles a taken message; the inner error is an answer other than a confirmation.
    fn settle(&mut self, taken: &Taken) -> io::Result<Result<(), String>>;
}

/// A message, and how its protocol calls it.
pub(super) struct Taken {
    pub(super) handle: String,
    pub(super) body: Vec<u8>,
}

/// Sends and takes at random, until the connection breaks. Of `backlog` messages and more it takes
/// rather than it sends.
pub(super) fn work(
    client: &mut dyn Client,
    ledger: &Mutex<Ledger>,
    random: &mut Rng,
    backlog: usize,
) -> io::Result<()> {
    loop {
        let takes = if lock(ledger).backlog() > backlog { 7 } else { 4 };
        for _ in 0..=random.below(16) {
            if random.below(10) < takes {
                take_and_settle(client, ledger, random)?;
            } else {
                send(client, ledger)?;
            }
        }
    }
}

/// Takes everything. The ledger notes the missing messages.
pub(super) fn empty(client: &mut dyn Client, ledger: &Mutex<Ledger>) -> io::Result<()> {
    while let Some(taken) = client.take()? {
        settle(client, ledger, &taken)?;
    }
    lock(ledger).emptied();
    Ok(())
}

fn send(client: &mut dyn Client, ledger: &Mutex<Ledger>) -> io::Result<()> {
    let (number, body) = lock(ledger).intend_send();
    match client.send(&body)? {
        Ok(()) => lock(ledger).confirmed(number),
        Err(answer) => lock(ledger).refused(number, &answer),
    }
    Ok(())
}

fn take_and_settle(
    client: &mut dyn Client,
    ledger: &Mutex<Ledger>,
    random: &mut Rng,
) -> io::Result<()> {
    let Some(taken) = client.take()? else { return Ok(()) };
    if random.one_in(50) {
        // This worker keeps it until the server ends; then another may take it.
        lock(ledger).delivered(&taken.body);
        return Ok(());
    }
    settle(client, ledger, &taken)
}

fn settle(client: &mut dyn Client, ledger: &Mutex<Ledger>, taken: &Taken) -> io::Result<()> {
    let Some(number) = lock(ledger).delivered(&taken.body) else { return Ok(()) };
    lock(ledger).intend_settle(number);
    match client.settle(taken)? {
        Ok(()) => lock(ledger).settled(number),
        Err(answer) => lock(ledger).not_settled(number, &answer),
    }
    Ok(())
}

pub(super) fn lock(ledger: &Mutex<Ledger>) -> MutexGuard<'_, Ledger> {
    // A panic elsewhere ends the run anyway; its reason matters, not the poison.
    ledger.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A client of this protocol.
pub(super) fn connect(protocol: &str, address: SocketAddr) -> io::Result<Box<dyn Client>> {
    Ok(match protocol {
        "beanstalkd" => Box::new(Beanstalkd::open(address)?),
        "redis" => Box::new(Redis(Connection::open(address)?)),
        "amqp" => Box::new(Amqp::open(address, "soak-amqp", true)?),
        VOLATILE => Box::new(Amqp::open(address, "soak-amqp-volatile", false)?),
        _ => Box::new(Http(Stream::open(address)?)),
    })
}

/// The name of AMQP with messages that are kept in memory alone.
pub(super) const VOLATILE: &str = "amqp, not persistent";

struct Beanstalkd(Connection);

impl Beanstalkd {
    fn open(address: SocketAddr) -> io::Result<Beanstalkd> {
        let mut connection = Connection::open(address)?;
        connection.ask("use soak-beanstalkd")?;
        connection.ask("watch soak-beanstalkd")?;
        Ok(Beanstalkd(connection))
    }
}

impl Client for Beanstalkd {
    fn send(&mut self, body: &[u8]) -> io::Result<Result<(), String>> {
        // A lease outlives the run: an unsettled job comes back by a restart alone.
        let line = format!("put 1000 0 1000000 {}\r\n", body.len());
        self.0.send(&[line.as_bytes(), body, b"\r\n"].concat())?;
        let reply = self.0.reply()?;
        Ok(if reply.word() == "INSERTED" { Ok(()) } else { Err(reply.line) })
    }

    fn take(&mut self) -> io::Result<Option<Taken>> {
        let reply = self.0.ask("reserve-with-timeout 0")?;
        let handle = reply.id().filter(|_| reply.word() == "RESERVED");
        Ok(handle.map(|id| Taken { handle: id.to_string(), body: reply.body }))
    }

    fn settle(&mut self, taken: &Taken) -> io::Result<Result<(), String>> {
        let reply = self.0.ask(&format!("delete {}", taken.handle))?;
        Ok(if reply.line == "DELETED" { Ok(()) } else { Err(reply.line) })
    }
}

/// Elements go from one list to another, and are removed there once they are done: a worker that
/// dies in between leaves them.
struct Redis(Connection);

impl Redis {
    fn ask<T>(&mut self, words: &[&[u8]], take: impl Fn(resp::Reply<'_>) -> T) -> io::Result<T> {
        self.0.send(&resp::command(words))?;
        let parse = |bytes: &[u8]| {
            let parsed = resp::Reply::parse(bytes)?;
            Ok(parsed.map(|(reply, length)| (take(reply), length)))
        };
        self.0.next(parse)
    }

    /// Makes elements ready again that an earlier life took and did not settle.
    fn return_taken(&mut self) -> io::Result<()> {
        let words: [&[u8]; 5] = [b"LMOVE", HELD, READY, b"LEFT", b"RIGHT"];
        while self.ask(&words, |reply| reply != resp::Reply::Nil)? {}
        Ok(())
    }
}

const READY: &[u8] = b"soak-redis";
const HELD: &[u8] = b"soak-redis-held";

impl Client for Redis {
    fn send(&mut self, body: &[u8]) -> io::Result<Result<(), String>> {
        self.ask(&[b"LPUSH", READY, body], |reply| match reply {
            resp::Reply::Integer(_) => Ok(()),
            other => Err(format!("{other:?}")),
        })
    }

    fn take(&mut self) -> io::Result<Option<Taken>> {
        self.ask(&[b"LMOVE", READY, HELD, b"RIGHT", b"LEFT"], |reply| match reply {
            resp::Reply::Nil => None,
            resp::Reply::Bulk(body) => Some(Taken { handle: String::new(), body: body.to_vec() }),
            other => Some(Taken { handle: format!("{other:?}"), body: Vec::new() }),
        })
    }

    fn settle(&mut self, taken: &Taken) -> io::Result<Result<(), String>> {
        self.ask(&[b"LREM", HELD, b"1", &taken.body], |reply| match reply {
            resp::Reply::Integer(1) => Ok(()),
            other => Err(format!("{other:?}")),
        })
    }
}

/// Makes messages ready again that earlier lives took and did not settle, if the protocol does not
/// do so itself.
pub(super) fn return_taken(protocol: &str, address: SocketAddr) -> io::Result<()> {
    if protocol == "redis" { Redis(Connection::open(address)?).return_taken() } else { Ok(()) }
}

struct Http(Stream);

impl Http {
    /// The status, the lease if there is one, and the body.
    fn ask(&mut self, what: &str, body: &[u8]) -> io::Result<(u16, String, Vec<u8>)> {
        let length = body.len();
        let head =
            format!("{what} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n");
        self.0.send(&[head.as_bytes(), body].concat())?;
        let status = self.0.line()?.split(' ').nth(1).and_then(|status| status.parse().ok());
        let (mut lease, mut length) = (String::new(), 0);
        loop {
            let line = self.0.line()?;
            match line.split_once(": ") {
                Some(("dunlin-lease", value)) => lease = value.to_owned(),
                Some(("content-length", value)) => length = value.parse().unwrap_or_default(),
                Some(_) => {}
                None => break,
            }
        }
        Ok((status.ok_or(io::ErrorKind::InvalidData)?, lease, self.0.bytes(length)?))
    }
}

impl Client for Http {
    fn send(&mut self, body: &[u8]) -> io::Result<Result<(), String>> {
        let (status, _, _) = self.ask("POST /queues/soak-http/messages", body)?;
        Ok(if status == 201 { Ok(()) } else { Err(status.to_string()) })
    }

    fn take(&mut self) -> io::Result<Option<Taken>> {
        let (status, handle, body) = self.ask("GET /queues/soak-http/messages?lease=24h", &[])?;
        Ok((status == 200).then_some(Taken { handle, body }))
    }

    fn settle(&mut self, taken: &Taken) -> io::Result<Result<(), String>> {
        let (status, _, _) = self.ask(&format!("DELETE /leases/{}", taken.handle), &[])?;
        Ok(if status == 204 { Ok(()) } else { Err(status.to_string()) })
    }
}

/// A socket that is read by lines and by lengths.
struct Stream(BufReader<TcpStream>);

/// A reply that takes longer than this is a server that hangs.
pub(super) const REPLY_MAX: Duration = Duration::from_secs(30);

impl Stream {
    fn open(address: SocketAddr) -> io::Result<Stream> {
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(REPLY_MAX))?;
        Ok(Stream(BufReader::new(socket)))
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.get_mut().write_all(bytes)
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        let line = line.strip_suffix("\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok(line.to_owned())
    }

    fn bytes(&mut self, count: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; count];
        self.0.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}
