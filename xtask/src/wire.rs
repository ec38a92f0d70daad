//! A client over a socket: sends bytes, reads replies, keeps them apart when pipelined.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use client::{Garbage, beanstalkd};

/// A reply that takes longer than this is a server that hangs.
const REPLY_MAX: Duration = Duration::from_secs(30);

/// One connection to a server.
pub(crate) struct Connection {
    stream: TcpStream,
    /// Bytes that came and were not taken.
    input: Vec<u8>,
}

/// One reply of beanstalkd: its words and, where the reply has one, its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    /// The reply's line without the line end.
    pub(crate) line: String,
    /// The body behind a `RESERVED`, `FOUND` or `OK`; else empty.
    pub(crate) body: Vec<u8>,
}

impl Connection {
    /// Connects to `address`.
    pub(crate) fn open(address: SocketAddr) -> io::Result<Connection> {
        let stream = TcpStream::connect_timeout(&address, Duration::from_secs(5))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(REPLY_MAX))?;
        Ok(Connection { stream, input: Vec::new() })
    }

    /// Sends `bytes` as they are.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Sends one command line to beanstalkd and waits for its reply.
    pub(crate) fn ask(&mut self, command: &str) -> io::Result<Reply> {
        self.send(format!("{command}\r\n").as_bytes())?;
        self.reply()
    }

    /// Waits for the next reply of beanstalkd.
    pub(crate) fn reply(&mut self) -> io::Result<Reply> {
        self.next(|bytes| {
            let parsed = beanstalkd::Reply::parse(bytes, usize::MAX)?;
            Ok(parsed.map(|(reply, length)| {
                let body = reply.body.unwrap_or_default().to_vec();
                (Reply { line: reply.line.to_owned(), body }, length)
            }))
        })
    }

    /// Waits for the reply that `parse` finds at the front, with its length.
    pub(crate) fn next<T>(
        &mut self,
        parse: impl Fn(&[u8]) -> Result<Option<(T, usize)>, Garbage>,
    ) -> io::Result<T> {
        loop {
            let parsed = parse(&self.input).map_err(|_| io::ErrorKind::InvalidData)?;
            if let Some((reply, length)) = parsed {
                self.input.drain(..length);
                return Ok(reply);
            }
            let mut scratch = [0; 16 * 1024];
            match self.stream.read(&mut scratch) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.input.extend_from_slice(scratch.get(..count).unwrap_or_default()),
                // A process that was stopped and goes on has lost nothing.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(name_silence(error)),
            }
        }
    }
}

/// The system's word for a read that waited too long says nothing to a reader.
fn name_silence(error: io::Error) -> io::Error {
    if error.kind() != io::ErrorKind::WouldBlock {
        return error;
    }
    io::Error::new(io::ErrorKind::TimedOut, "the server is silent: no reply in 30 s")
}

impl Reply {
    /// The reply's first word.
    pub(crate) fn word(&self) -> &str {
        self.line.split(' ').next().unwrap_or_default()
    }

    /// The job's id, which is the first number of the replies that have one.
    pub(crate) fn id(&self) -> Option<u64> {
        self.line.split(' ').nth(1)?.parse().ok()
    }

    /// The value of `key` in a body of statistics.
    pub(crate) fn value(&self, key: &str) -> Option<String> {
        let text = std::str::from_utf8(&self.body).ok()?;
        let value = |line: &str| Some(line.strip_prefix(key)?.strip_prefix(": ")?.to_owned());
        text.lines().find_map(value)
    }
}
