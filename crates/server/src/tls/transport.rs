//! The bytes of one connection between its socket and its session: as they are, or by TLS.

use std::io::{self, BufRead as _, IoSlice, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::io::{Errno, retry_on_intr};
use rustix::net::{SendAncillaryBuffer, SendFlags, send, sendmsg};
use rustls::{Error, ServerConfig, ServerConnection};

use super::names::names;

/// How a connection's bytes go over its socket.
#[derive(Debug)]
pub(crate) enum Transport {
    /// As they are.
    Plain,
    /// Encrypted.
    Tls(Box<TlsStream>),
}

/// The server's end of TLS over one socket that never blocks.
#[derive(Debug)]
pub(crate) struct TlsStream {
    connection: ServerConnection,
    /// An upper bound of the encrypted bytes that the socket has not taken.
    unsent: usize,
}

/// The fate of bytes to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    /// How many left the connection's own buffer.
    pub(crate) taken: usize,
    /// The socket may take more.
    pub(crate) is_writable: bool,
}

/// The kind of received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    /// The peer has said that nothing follows.
    pub(crate) is_end: bool,
    /// They belonged to the handshake, which costs more than to read them.
    pub(crate) is_handshake: bool,
}

impl Transport {
    /// The transport of a new connection, by TLS if there is a configuration.
    ///
    /// # Errors
    /// `rustls` refuses the configuration.
    pub(crate) fn new(tls: Option<Arc<ServerConfig>>) -> Result<Self, Error> {
        let Some(config) = tls else { return Ok(Self::Plain) };
        let mut connection = ServerConnection::new(config)?;
        connection.set_buffer_limit(Some(UNSENT_BYTES_MAX));
        Ok(Self::Tls(Box::new(TlsStream { connection, unsent: 0 })))
    }

    /// True if it is encrypted.
    pub(crate) const fn is_tls(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    /// True while the peers agree about keys: no byte of the session may be sent.
    pub(crate) fn is_handshaking(&self) -> bool {
        match self {
            Self::Plain => false,
            Self::Tls(stream) => stream.connection.is_handshaking(),
        }
    }

    /// The names of the peer's verified certificate, if it showed one.
    pub(crate) fn certificate_names(&self) -> Vec<Box<str>> {
        let Self::Tls(stream) = self else { return Vec::new() };
        let own = stream.connection.peer_certificates().and_then(<[_]>::first);
        own.map(names).unwrap_or_default()
    }

    /// Bytes wait for the socket that are no longer in the connection's own buffer.
    pub(crate) fn wants_write(&self) -> bool {
        match self {
            Self::Plain => false,
            Self::Tls(stream) => stream.connection.wants_write(),
        }
    }

    /// How many.
    pub(crate) const fn unsent_bytes(&self) -> usize {
        match self {
            Self::Plain => 0,
            Self::Tls(stream) => stream.unsent,
        }
    }

    /// Takes bytes from the socket, and gives plain ones to `take`.
    ///
    /// # Errors
    /// The peer broke the rules of TLS. It is told at the next [`Transport::send`].
    pub(crate) fn receive(
        &mut self,
        received: &[u8],
        take: impl FnMut(&[u8]),
    ) -> Result<Received, Error> {
        match self {
            Self::Plain => {
                let mut take = take;
                take(received);
                Ok(Received { is_end: false, is_handshake: false })
            }
            Self::Tls(stream) => stream.receive(received, take),
        }
    }

    /// Sends as many of the bytes as the socket takes.
    ///
    /// # Errors
    /// The socket is broken.
    pub(crate) fn send(&mut self, socket: &OwnedFd, bytes: &[u8]) -> Result<Sent, Errno> {
        match self {
            Self::Plain => match retry_on_intr(|| send(socket, bytes, SendFlags::NOSIGNAL)) {
                Ok(taken) => Ok(Sent { taken, is_writable: taken == bytes.len() }),
                Err(Errno::AGAIN) => Ok(Sent { taken: 0, is_writable: false }),
                Err(errno) => Err(errno),
            },
            Self::Tls(stream) => stream.send(socket, bytes),
        }
    }

    /// Says that nothing follows, if the socket takes it at once.
    pub(crate) fn close(&mut self, socket: &OwnedFd) {
        if let Self::Tls(stream) = self {
            stream.connection.send_close_notify();
            // The socket is closed next. A peer that does not read does not get it.
            let _ = stream.flush(socket);
        }
    }
}

impl TlsStream {
    fn receive(
        &mut self,
        mut received: &[u8],
        mut take: impl FnMut(&[u8]),
    ) -> Result<Received, Error> {
        let is_handshake = self.connection.is_handshaking();
        let mut is_end = false;
        while !received.is_empty() && !is_end {
            let count = self.connection.read_tls(&mut received);
            if !count.is_ok_and(|count| count > 0) {
                return Err(Error::General("more bytes than a message has".into()));
            }
            let state = self.connection.process_new_packets();
            self.take_plain(&mut take);
            is_end = state?.peer_has_closed();
        }
        Ok(Received { is_end, is_handshake })
    }

    fn take_plain(&mut self, take: &mut impl FnMut(&[u8])) {
        let mut reader = self.connection.reader();
        // An error says that there is nothing now, or nothing any more.
        while let Ok(plain) = reader.fill_buf()
            && !plain.is_empty()
        {
            let count = plain.len();
            take(plain);
            reader.consume(count);
        }
    }

    fn send(&mut self, socket: &OwnedFd, bytes: &[u8]) -> Result<Sent, Errno> {
        let mut taken = 0;
        loop {
            if !self.flush(socket)? {
                return Ok(Sent { taken, is_writable: false });
            }
            let rest = bytes.get(taken..).unwrap_or_default();
            if rest.is_empty() || self.connection.is_handshaking() {
                return Ok(Sent { taken, is_writable: true });
            }
            let count = self.connection.writer().write(rest).unwrap_or_default();
            assert!(count > 0, "invariant: what was flushed left room");
            taken += count;
            self.unsent += count + RECORD_BYTES * (1 + count / RECORD_BODY_BYTES);
        }
    }

    /// Writes the encrypted bytes; false if the socket takes no more.
    fn flush(&mut self, socket: &OwnedFd) -> Result<bool, Errno> {
        while self.connection.wants_write() {
            let count = self.connection.write_tls(&mut Socket(socket));
            match count.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO)) {
                Ok(count) => self.unsent = self.unsent.saturating_sub(count),
                Err(Errno::AGAIN) => return Ok(false),
                Err(errno) => return Err(errno),
            }
        }
        self.unsent = 0;
        Ok(true)
    }
}

/// Writes to a socket without a signal, several records by one call.
struct Socket<'a>(&'a OwnedFd);

impl Write for Socket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(retry_on_intr(|| send(self.0, bytes, SendFlags::NOSIGNAL))?)
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let none = || SendAncillaryBuffer::default();
        Ok(retry_on_intr(|| sendmsg(self.0, parts, &mut none(), SendFlags::NOSIGNAL))?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Encrypted bytes of a connection that its socket has not taken.
const UNSENT_BYTES_MAX: usize = 64 * 1024;

/// Bytes of a record but its body, at most.
const RECORD_BYTES: usize = 32;

/// Bytes of the body of a full record.
const RECORD_BODY_BYTES: usize = 16 * 1024;
