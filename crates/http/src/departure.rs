//! Clients that leave. While pipelined requests fill its buffer, hyper reads nothing, and would
//! notice only when it answers. So a task watches the socket beside it.
//!
//! TCP does not tell a closed connection from a client that only sends no more. In both cases the
//! waits of the client end, for it may not be there to read their answers, and it gets no new
//! lease. Requests that do not wait are done and answered. A reset ends all of them.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::sync::Notify;

use crate::socket::Stream;

/// The client of a request, which may leave before it is answered. Clones are the same client. The
/// default never leaves.
#[derive(Clone, Debug, Default)]
pub struct Asker(Option<Arc<State>>);

#[derive(Debug, Default)]
struct State {
    has_left: AtomicBool,
    leaves: Notify,
    /// Its socket, where the state of that is known.
    socket: Option<Arc<Stream>>,
}

impl Asker {
    /// A client that never leaves.
    pub(crate) const NOBODY: Self = Self(None);

    /// A client that may leave.
    #[must_use]
    pub fn new() -> Self {
        Self(Some(Arc::default()))
    }

    /// The client sends nothing more: its waits end. The default does not leave.
    pub fn leave(&self) {
        if let Some(state) = &self.0 {
            state.has_left.store(true, Ordering::Release);
            state.leaves.notify_waiters();
        }
    }

    /// True if the client has left.
    #[must_use]
    pub fn has_left(&self) -> bool {
        self.0.as_ref().is_some_and(|state| state.has_left.load(Ordering::Acquire))
    }

    /// Asks the socket whether the client has left, which the runtime may not know yet.
    pub(crate) fn look(&self) -> bool {
        let socket = self.0.as_ref().and_then(|state| state.socket.as_ref());
        if socket.is_some_and(|socket| is_closed(socket)) {
            self.leave();
        }
        self.has_left()
    }

    /// Waits until the client leaves.
    pub async fn left(&self) {
        let Some(state) = &self.0 else { return std::future::pending().await };
        let leaves = state.leaves.notified();
        tokio::pin!(leaves);
        // Before the check: a notification in between is not lost.
        leaves.as_mut().enable();
        if !self.has_left() {
            leaves.await;
        }
    }
}

impl PartialEq for Asker {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

impl Eq for Asker {}

/// True if the peer has closed at least its side.
fn is_closed(socket: &Stream) -> bool {
    let mut socket = [PollFd::new(socket, PollFlags::RDHUP)];
    // A failed poll tells nothing.
    poll(&mut socket, Some(&Timespec::default())).is_ok_and(|count| count > 0)
}

/// A socket that one task uses while another watches it.
#[derive(Debug)]
pub(crate) struct Socket(Arc<Stream>);

impl Socket {
    /// The socket and its client.
    pub(crate) fn new(stream: Stream) -> (Self, Asker) {
        let stream = Arc::new(stream);
        let state = State { socket: Some(Arc::clone(&stream)), ..State::default() };
        (Self(stream), Asker(Some(Arc::new(state))))
    }

    /// Lets `asker` leave once the peer sends no more. Ends at a reset.
    pub(crate) fn gone(&self, asker: Asker) -> impl Future<Output = ()> + use<> {
        let stream = Arc::clone(&self.0);
        async move {
            // This wakes for a closed side, and for urgent data, which no client sends.
            let closed = stream.ready(Interest::PRIORITY | Interest::ERROR).await;
            asker.leave();
            if closed.is_ok_and(|ready| !ready.is_error()) {
                // It fails only if the runtime ends.
                let _ = stream.ready(Interest::ERROR).await;
            }
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.0.poll_read_ready(context))?;
            match self.0.try_read_buf(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return Poll::Ready(read.map(drop)),
            }
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.0.poll_write_ready(context))?;
            match self.0.try_write_vectored(parts) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return Poll::Ready(written),
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// The end of the connection, which is next, closes it.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
