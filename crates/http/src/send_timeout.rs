//! Bodies in pieces, for a peer of HTTP/2. Its windows let it leave answers unread for ever, while
//! pings keep the connection alive.
//!
//! The connection asks for the next piece, and drops the pieces that it has: both tell how far the
//! peer is. By HTTP/1.1 the stream tells it.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};

use crate::activity::{Activity, OpenRequest, Unread};
use crate::body::Body;

/// A body in pieces. Each piece waits for the peer.
pub(crate) struct Pieces {
    body: Body,
    /// The connection by HTTP/2.
    activity: Option<Arc<Activity>>,
    /// The rest of the piece that was begun.
    rest: Bytes,
    /// Dropped when the connection asks for more.
    unread: Option<Unread>,
    /// Its request, which is open until the body is dropped.
    _request: OpenRequest,
}

struct Piece {
    bytes: Bytes,
    _unread: Unread,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Pieces {
    pub(crate) fn new(body: Body, activity: Option<Arc<Activity>>, request: OpenRequest) -> Self {
        let has_more = !body.is_end_stream();
        let unread = activity.as_ref().filter(|_| has_more).map(Activity::unread);
        Self { body, activity, rest: Bytes::new(), unread, _request: request }
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
        this.unread = None;
        let Some(activity) = &this.activity else {
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
            this.unread = Some(activity.unread());
        }
        let piece = Piece { bytes, _unread: activity.unread() };
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
    use crate::open::Open;

    fn next(pieces: &mut Pieces) -> Poll<Option<Bytes>> {
        let mut context = Context::from_waker(Waker::noop());
        let frame = Pin::new(pieces).poll_frame(&mut context);
        frame.map(|frame| frame.map(|frame| frame.unwrap().into_data().unwrap()))
    }

    fn pieces(body: Body, activity: &Arc<Activity>) -> Pieces {
        let request = activity.open(&Open::new(1 << 20));
        Pieces::new(body, Some(Arc::clone(activity)), request)
    }

    #[test]
    fn body_waits_until_pieces_are_read() {
        let activity = Arc::new(Activity::new());
        let bytes = Bytes::from(vec![b'x'; 2 * PIECE_BYTES + 1]);
        let mut pieces = pieces(bytes.clone().into(), &activity);
        assert_eq!(pieces.size_hint().exact(), Some(bytes.len() as u64));
        assert_eq!(activity.unread_parts(), 1, "for being asked");
        let mut taken = Vec::new();
        while let Poll::Ready(Some(piece)) = next(&mut pieces) {
            assert!(piece.len() <= PIECE_BYTES && activity.unread_parts() > 0);
            taken.push(piece);
        }
        assert!(pieces.is_end_stream());
        drop(pieces);
        assert_eq!((taken.concat().into(), activity.unread_parts()), (bytes, 3));
        drop(taken);
        assert_eq!(activity.unread_parts(), 0);
    }

    #[test]
    fn body_without_data_never_waits() {
        let activity = Arc::new(Activity::new());
        let empty = pieces(Body::Sent, &activity);
        let (_to, stream) = tokio::sync::mpsc::channel(1);
        let mut stream = pieces(Body::Stream(stream), &activity);
        assert_eq!(activity.unread_parts(), 1, "the stream for being asked");
        assert!(next(&mut stream).is_pending());
        assert_eq!(activity.unread_parts(), 0);
        drop(empty);
    }
}
