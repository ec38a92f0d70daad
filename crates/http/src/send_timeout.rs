//! The timeout of answers that a peer of HTTP/2 does not read. Its windows let it leave them unread
//! for ever, while pings keep the connection alive.
//!
//! A body leaves in pieces. The connection asks for the next piece, and drops the pieces that it
//! has: both tell how far the peer is. By HTTP/1.1 the stream tells it.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::activity::OpenRequest;
use crate::body::Body;
use crate::open::Admitted;

/// The parts of answers that one connection has not read, and since when.
#[derive(Debug, Default)]
pub(crate) struct SendTimeout {
    since: Mutex<Waits>,
    begun: Notify,
}

#[derive(Debug, Default)]
struct Waits {
    count: u64,
    /// In the order in which they came.
    by_number: BTreeMap<u64, Instant>,
}

/// A part that waits for the peer, until it is dropped.
struct Wait {
    all: Arc<SendTimeout>,
    number: u64,
}

impl SendTimeout {
    fn waits(&self) -> MutexGuard<'_, Waits> {
        self.since.lock().expect("invariant: no thread panics with the waits")
    }

    fn wait(self: &Arc<Self>) -> Wait {
        let mut waits = self.waits();
        waits.count += 1;
        let number = waits.count;
        waits.by_number.insert(number, Instant::now());
        drop(waits);
        self.begun.notify_one();
        Wait { all: Arc::clone(self), number }
    }

    fn oldest(&self) -> Option<Instant> {
        self.waits().by_number.first_key_value().map(|(_, since)| *since)
    }

    /// Waits until a part has waited for so long. `None`: for ever.
    pub(crate) async fn reach(&self, most: Option<Duration>) {
        let Some(most) = most else { return std::future::pending().await };
        loop {
            match self.oldest() {
                Some(since) if since.elapsed() >= most => return,
                Some(since) => sleep_until(since + most).await,
                None => self.begun.notified().await,
            }
        }
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        self.all.waits().by_number.remove(&self.number);
    }
}

/// A body in pieces. Each piece waits for the peer.
pub(crate) struct Pieces {
    body: Body,
    /// `None`: the stream of its connection tells it.
    untaken: Option<Arc<SendTimeout>>,
    /// The rest of the piece that was begun.
    rest: Bytes,
    /// Dropped when the connection asks for more.
    wait: Option<Wait>,
    /// Its request, which is open until the body is dropped.
    _request: (Option<Admitted>, OpenRequest),
}

struct Piece {
    bytes: Bytes,
    _wait: Wait,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Pieces {
    pub(crate) fn new(
        body: Body,
        untaken: Option<Arc<SendTimeout>>,
        request: (Option<Admitted>, OpenRequest),
    ) -> Self {
        let has_more = !body.is_end_stream();
        let wait = untaken.as_ref().filter(|_| has_more).map(SendTimeout::wait);
        Self { body, untaken, rest: Bytes::new(), wait, _request: request }
    }
}

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = self.get_mut();
        this.wait = None;
        let Some(untaken) = &this.untaken else {
            return Pin::new(&mut this.body).poll_frame(context);
        };
        if this.rest.is_empty() {
            let frame = ready!(Pin::new(&mut this.body).poll_frame(context));
            let data = frame.and_then(Result::ok).and_then(|frame| frame.into_data().ok());
            let Some(data) = data else { return Poll::Ready(None) };
            this.rest = data;
        }
        let bytes = this.rest.split_to(this.rest.len().min(PIECE_BYTES));
        if !this.rest.is_empty() {
            this.wait = Some(untaken.wait());
        }
        let piece = Piece { bytes, _wait: untaken.wait() };
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_owner(piece)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let hint = self.body.size_hint();
        let rest = self.rest.len() as u64;
        hint.exact().map_or(hint, |exact| SizeHint::with_exact(exact + rest))
    }
}

/// Bytes of a piece. The peer has to read a whole piece within the timeout.
const PIECE_BYTES: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;
    use crate::activity::Activity;

    fn next(pieces: &mut Pieces) -> Poll<Option<Bytes>> {
        let mut context = Context::from_waker(Waker::noop());
        let frame = Pin::new(pieces).poll_frame(&mut context);
        frame.map(|frame| frame.map(|frame| frame.unwrap().into_data().unwrap()))
    }

    fn open() -> (Option<Admitted>, OpenRequest) {
        (None, Arc::new(Activity::new()).open())
    }

    fn waiting(untaken: &SendTimeout) -> usize {
        untaken.waits().by_number.len()
    }

    #[test]
    fn body_waits_until_pieces_are_read() {
        let untaken = Arc::new(SendTimeout::default());
        let bytes = Bytes::from(vec![b'x'; 2 * PIECE_BYTES + 1]);
        let mut pieces = Pieces::new(bytes.clone().into(), Some(Arc::clone(&untaken)), open());
        assert_eq!(pieces.size_hint().exact(), Some(bytes.len() as u64));
        assert_eq!(waiting(&untaken), 1, "for being asked");
        let mut taken = Vec::new();
        while let Poll::Ready(Some(piece)) = next(&mut pieces) {
            assert!(piece.len() <= PIECE_BYTES && waiting(&untaken) > 0);
            taken.push(piece);
        }
        assert!(pieces.is_end_stream());
        drop(pieces);
        assert_eq!((taken.concat().into(), waiting(&untaken)), (bytes, 3));
        drop(taken);
        assert_eq!(waiting(&untaken), 0);
    }

    #[test]
    fn body_without_data_never_waits() {
        let untaken = Arc::new(SendTimeout::default());
        let empty = Pieces::new(Body::Sent, Some(Arc::clone(&untaken)), open());
        let (_to, stream) = tokio::sync::mpsc::channel(1);
        let mut stream = Pieces::new(Body::Stream(stream), Some(Arc::clone(&untaken)), open());
        assert_eq!(waiting(&untaken), 1, "the stream for being asked");
        assert!(next(&mut stream).is_pending());
        assert_eq!(waiting(&untaken), 0);
        drop(empty);
    }

    #[test]
    fn overdue_part_is_found() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let untaken = Arc::new(SendTimeout::default());
            let left = async {
                drop(untaken.wait());
                std::future::pending::<()>().await;
                drop(untaken.wait());
            };
            tokio::select! {
                biased;
                () = left => {}
                () = untaken.reach(Some(Duration::ZERO)) => panic!("it was taken"),
                () = tokio::task::yield_now() => {}
            }
            let _left = untaken.wait();
            untaken.reach(Some(Duration::from_millis(1))).await;
        });
    }
}
