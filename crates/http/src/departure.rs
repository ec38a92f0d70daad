//! Clients that go away. hyper reads nothing while requests that came ahead fill its buffer, and
//! would learn it only when it answers: so the socket is watched beside it.
//!
//! TCP does not tell a client that has closed its connection from one that only sends no more. In
//! both cases its waits end, for nobody may be there to see what comes of them, and it gets no new
//! lease; what does not wait is done and answered. A reset ends all.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::sync::Notify;

use crate::socket::Stream;

/// Whoever asks for something, and may go away before it is done. Clones are the same; the default
/// never leaves.
#[derive(Clone, Debug, Default)]
pub struct Asker(Option<Arc<State>>);

#[derive(Debug, Default)]
struct State {
    has_left: AtomicBool,
    leaves: Notify,
    /// By which it asks, where that can be looked at.
    socket: Option<Arc<Stream>>,
}

impl Asker {
    /// One that never leaves.
    pub(crate) const NOBODY: Self = Self(None);

    /// One that may leave.
    #[must_use]
    pub fn new() -> Self {
        Self(Some(Arc::default()))
    }

    /// It sends nothing more, and is to be kept waiting no longer. The default stays.
    pub fn leave(&self) {
        if let Some(state) = &self.0 {
            state.has_left.store(true, Ordering::Release);
            state.leaves.notify_waiters();
        }
    }

    /// Whether it has left.
    #[must_use]
    pub fn has_left(&self) -> bool {
        self.0.as_ref().is_some_and(|state| state.has_left.load(Ordering::Acquire))
    }

    /// Looks whether it has left: it may have done so since the runtime was told of anything.
    pub(crate) fn look(&self) -> bool {
        let socket = self.0.as_ref().and_then(|state| state.socket.as_ref());
        if socket.is_some_and(|socket| is_closed(socket)) {
            self.leave();
        }
        self.has_left()
    }

    /// Ends when it leaves.
    pub async fn left(&self) {
        let Some(state) = &self.0 else { return std::future::pending().await };
        let leaves = state.leaves.notified();
        tokio::pin!(leaves);
        // Before the look: what is told in between is heard.
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

/// Whether a peer has closed at least its side.
fn is_closed(socket: &Stream) -> bool {
    let mut socket = [PollFd::new(socket, PollFlags::RDHUP)];
    // Without an answer nothing is known.
    poll(&mut socket, Some(&Timespec::default())).is_ok_and(|count| count > 0)
}

/// A socket that one task uses while it is watched.
#[derive(Debug)]
pub(crate) struct Socket(Arc<Stream>);

impl Socket {
    /// The socket, and whoever asks by it.
    pub(crate) fn new(stream: Stream) -> (Self, Asker) {
        let stream = Arc::new(stream);
        let state = State { socket: Some(Arc::clone(&stream)), ..State::default() };
        (Self(stream), Asker(Some(Arc::new(state))))
    }

    /// Tells `asker` to leave when it sends no more, and ends when it is gone: by a reset.
    pub(crate) fn gone(&self, asker: Asker) -> impl Future<Output = ()> + use<> {
        let stream = Arc::clone(&self.0);
        async move {
            // Of urgent data, which nobody sends, it is not told; that a side is closed it is.
            let closed = stream.ready(Interest::PRIORITY | Interest::ERROR).await;
            asker.leave();
            if closed.is_ok_and(|ready| !ready.is_error()) {
                // An error here is a runtime that ends.
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

    /// It is closed where its connection ends, which is next.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
