//! Answers that a peer does not take, of one connection by HTTP/2. Its windows let it leave them
//! for as long as it likes, while the connection itself is as lively as ever by pings.
//!
//! A body leaves in pieces. Whether it is asked for another, and the connection lets go of those
//! that it has, tells how far its peer is with it; by HTTP/1.1 the stream tells that.

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

/// What one connection has not taken, since when.
#[derive(Debug, Default)]
pub(crate) struct SendTimeout {
    since: Mutex<Waits>,
    begun: Notify,
}

#[derive(Debug, Default)]
struct Waits {
    count: u64,
    /// As they came.
    by_number: BTreeMap<u64, Instant>,
}

/// Something that waits for the peer, until it is dropped.
struct Wait {
    all: Arc<SendTimeout>,
    number: u64,
}

impl SendTimeout {
    fn waits(&self) -> MutexGuard<'_, Waits> {
        self.since.lock().expect("invariant: nobody panics with what waits")
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

    /// Ends when something has waited for so long, if that is not for ever.
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

/// A body in pieces, each of which waits for its peer.
pub(crate) struct Pieces {
    body: Body,
    /// `None`: its connection tells by itself.
    untaken: Option<Arc<SendTimeout>>,
    /// It was begun, and this is left of it.
    rest: Bytes,
    /// Until it is asked for more.
    wait: Option<Wait>,
    /// Its request, which is open as long.
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

/// What a peer has to take within the time, or none of it counts as taken.
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
    fn a_body_waits_for_its_peer_until_all_pieces_are_taken() {
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
    fn a_body_that_has_nothing_to_say_waits_for_nobody() {
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
    fn who_leaves_something_for_too_long_is_found() {
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
