//! A small beanstalkd client: sends bytes, reads replies, keeps them apart when pipelined.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A reply that takes longer than this is a server that hangs.
const REPLY_MAX: Duration = Duration::from_secs(30);

/// One connection to a server.
pub(crate) struct Connection {
    stream: TcpStream,
    replies: BufReader<TcpStream>,
}

/// One reply: its words and, where the reply has one, its body.
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
        let replies = BufReader::new(stream.try_clone()?);
        Ok(Connection { stream, replies })
    }

    /// Sends `bytes` as they are.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Sends one command line and waits for its reply.
    pub(crate) fn ask(&mut self, command: &str) -> io::Result<Reply> {
        self.send(format!("{command}\r\n").as_bytes())?;
        self.reply()
    }

    /// Waits for the next reply.
    pub(crate) fn reply(&mut self) -> io::Result<Reply> {
        let mut line = String::new();
        self.replies.read_line(&mut line).map_err(name_silence)?;
        let Some(line) = line.strip_suffix("\r\n") else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        let mut reply = Reply { line: line.to_owned(), body: Vec::new() };
        if matches!(reply.word(), "RESERVED" | "FOUND" | "OK") {
            reply.body = self.body(reply.last_number().ok_or(io::ErrorKind::InvalidData)?)?;
        }
        Ok(reply)
    }

    fn body(&mut self, bytes: u64) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        (&mut self.replies).take(bytes + 2).read_to_end(&mut body)?;
        if !body.ends_with(b"\r\n") || body.len() as u64 != bytes + 2 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        body.truncate(body.len() - 2);
        Ok(body)
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

    fn last_number(&self) -> Option<u64> {
        self.line.rsplit(' ').next()?.parse().ok()
    }
}
