//! A [`Session`] on a socket that never blocks.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use client::{Session, Wrong};

use super::target::Target;
use crate::error::BenchError;

/// A client and its socket.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) session: Session,
    stream: TcpStream,
    written: usize,
    is_blocked: bool,
    last_write: Instant,
}

impl Connection {
    /// Connects; the caller flushes the first bytes.
    pub(super) fn open(target: &Target, container: &str) -> Result<Self, BenchError> {
        let (host, port) = target.host_and_port();
        let refused = |cause| BenchError::Connect { address: target.to_string(), cause };
        let stream = connect(host, port).map_err(refused)?;
        let prepared = stream.set_nodelay(true).and_then(|()| stream.set_nonblocking(true));
        prepared.map_err(BenchError::io("make a socket non-blocking"))?;
        let user = target.user().map(|user| (&*user.name, &*user.password));
        let session = Session::new(user, container, host);
        let last_write = Instant::now();
        Ok(Self { session, stream, written: 0, is_blocked: false, last_write })
    }

    /// Reads the bytes that have come, as far as `scratch` holds them; `false` if those were all.
    pub(super) fn read(&mut self, scratch: &mut [u8]) -> io::Result<bool> {
        match self.stream.read(scratch) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(bytes) => {
                self.session.handle_bytes(scratch.get(..bytes).unwrap_or_default());
                Ok(bytes == scratch.len())
            }
            Err(error) if is_transient(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Writes as many bytes as the socket takes.
    pub(super) fn flush(&mut self, now: Instant) -> io::Result<()> {
        while let Some(rest) = self.session.out.get(self.written..).filter(|it| !it.is_empty()) {
            match self.stream.write(rest) {
                Ok(bytes) => {
                    self.written += bytes;
                    self.last_write = now;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.is_blocked = true;
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        self.session.out.clear();
        self.written = 0;
        self.is_blocked = false;
        Ok(())
    }

    /// True if the socket did not take everything; it must then be watched for room.
    pub(super) fn is_blocked(&self) -> bool {
        self.is_blocked
    }

    /// Says that it is alive before the broker takes it for dead.
    pub(super) fn stay_alive(&mut self, now: Instant) -> io::Result<()> {
        let silence = Duration::from_millis(self.session.keep_alive_millis().unwrap_or(0).into());
        if !silence.is_zero() && now.saturating_duration_since(self.last_write) > silence / 2 {
            self.session.stay_alive();
        }
        self.flush(now)
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// As an error for the user.
pub(super) fn explain(wrong: Wrong, target: &Target, doing: &str) -> BenchError {
    let broker = target.to_string();
    match wrong {
        Wrong::NotAmqp(what) => BenchError::NotAmqp { broker, what },
        Wrong::Unauthenticated(what) => {
            BenchError::Unauthenticated { broker, named: target.user().is_some(), what }
        }
        Wrong::Ended(why) => BenchError::Ended { doing: doing.to_owned(), why },
    }
}

/// Tries each address of the name in turn.
fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_MAX) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

const CONNECT_MAX: Duration = Duration::from_secs(5);
