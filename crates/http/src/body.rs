//! Bodies: of answers as they leave, of requests as they are read.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::Response;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, timeout};

use crate::byte_budget::{BodyKind, ByteBudget};
use crate::byte_share::{ByteShare, Permit};
use crate::departure::Asker;
use crate::problem::{Problem, Result};

/// An answer.
pub(crate) type Answer = Response<Body>;

/// The body of an answer.
pub(crate) enum Body {
    /// All of it, the action for an answer that never leaves, and the room that was taken for it.
    Whole(Bytes, Option<Unsent>, Option<Permit>),
    /// Nothing more.
    Sent,
    /// Piece by piece.
    Stream(mpsc::Receiver<Bytes>),
}

/// Does something unless the bytes that it stays with were handed to the connection.
pub(crate) struct Unsent(Option<Box<dyn FnOnce() + Send>>);

impl Unsent {
    pub(crate) fn new(undo: impl FnOnce() + Send + 'static) -> Self {
        Self(Some(Box::new(undo)))
    }

    /// Nothing is to be undone.
    pub(crate) fn sent(mut self) {
        self.0 = None;
    }
}

impl Drop for Unsent {
    fn drop(&mut self) {
        if let Some(undo) = self.0.take() {
            undo();
        }
    }
}

impl Body {
    /// Takes room for the bytes until the connection has let go of them.
    pub(crate) fn held(self, share: &ByteShare) -> Result<Self> {
        match self {
            Self::Whole(bytes, unsent, permit) => {
                let permit = permit.unwrap_or_else(|| share.permit());
                Ok(Self::Whole(permit.hold_within(bytes)?, unsent, None))
            }
            body => Ok(body),
        }
    }
}

impl<T: Into<Bytes>> From<T> for Body {
    fn from(bytes: T) -> Self {
        Self::Whole(bytes.into(), None, None)
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<std::result::Result<Frame<Bytes>, Self::Error>>> {
        if let Self::Stream(pieces) = &mut *self {
            return pieces.poll_recv(context).map(|piece| piece.map(|it| Ok(Frame::data(it))));
        }
        match std::mem::replace(&mut *self, Self::Sent) {
            Self::Whole(bytes, unsent, _) => {
                if let Some(unsent) = unsent {
                    unsent.sent();
                }
                Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
            }
            Self::Sent | Self::Stream(_) => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            // One that waits to be sent has to be asked for, also if it is empty.
            Self::Whole(bytes, unsent, _) => bytes.is_empty() && unsent.is_none(),
            Self::Sent => true,
            Self::Stream(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes, ..) => SizeHint::with_exact(bytes.len() as u64),
            Self::Sent => SizeHint::with_exact(0),
            Self::Stream(_) => SizeHint::default(),
        }
    }
}

/// Reads the bodies of requests within limits.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    pub(crate) budget: ByteBudget,
    /// How long a body may pause.
    pub(crate) idle: Option<Duration>,
}

/// A body that is being read, piece by piece.
pub(crate) struct Reading<'r> {
    reader: &'r Reader,
    kind: BodyKind,
    /// The bytes that it holds.
    permit: Permit,
    body: Incoming,
    /// The client that sends it.
    asker: &'r Asker,
    /// Bytes that may still come.
    left: usize,
    max: usize,
    mend: &'static str,
    /// Told to end: others wait for its room.
    end: Arc<Notify>,
    /// When its first bytes came, or as many as [`STEP_BYTES`] more.
    since: Instant,
    /// Bytes that have come since then.
    came: usize,
}

/// A body, and the room that it takes.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) bytes: Bytes,
    pub(crate) permit: Permit,
}

impl Reader {
    /// Begins to read a body of `max` bytes at most; one that says that it is larger is not read.
    /// `mend` tells the client the remedy.
    pub(crate) fn begin<'r>(
        &'r self,
        kind: BodyKind,
        body: Incoming,
        asker: &'r Asker,
        max: usize,
        mend: &'static str,
    ) -> Result<Reading<'r>> {
        if body.size_hint().lower() > max as u64 {
            return Err(Problem::too_large("the body", max, mend));
        }
        let (end, since) = (Arc::default(), Instant::now());
        Ok(Reading {
            reader: self,
            kind,
            permit: self.budget.body(kind),
            body,
            asker,
            left: max,
            max,
            mend,
            end,
            since,
            came: 0,
        })
    }
}

impl Reading<'_> {
    /// All of it. Only bytes that have come take room from others, a claimed length does not.
    pub(crate) async fn whole(mut self) -> Result<Read> {
        let mut bytes = BytesMut::new();
        while let Some(piece) = self.next().await? {
            let needed = bytes.len() + piece.len();
            if needed > bytes.capacity() {
                let larger = needed.max(2 * bytes.len());
                self.extend(larger).await?;
                bytes.reserve(larger - bytes.len());
            }
            bytes.extend_from_slice(&piece);
        }
        Ok(Read { bytes: bytes.freeze(), permit: self.permit })
    }

    /// Makes it room for so many bytes in all. The time of that wait does not count as silence. The
    /// wait ends if the client leaves.
    pub(crate) async fn extend(&mut self, bytes: usize) -> Result<()> {
        let before = Instant::now();
        tokio::select! {
            biased;
            extended = self.reader.budget.extend(&mut self.permit, self.kind, bytes) => extended?,
            () = self.asker.left() => return Err(Problem::client_left()),
        }
        let waited = before.elapsed();
        self.since += waited;
        // The end of the stream may lie behind bytes that the server does not read meanwhile.
        if waited >= LOOK_AFTER && self.asker.look() {
            return Err(Problem::client_left());
        }
        Ok(())
    }

    /// The next piece. Fails for a silent client that holds room for which others wait.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>> {
        let has_room = self.left < self.max;
        let silence = has_room.then(|| self.permit.share().silence(self.since, &self.end));
        let piece = tokio::select! {
            biased;
            piece = self.reader.next_piece(&mut self.body) => piece?,
            () = self.end.notified() => return Err(Problem::too_slow()),
        };
        drop(silence);
        let Some(piece) = piece else { return Ok(None) };
        self.came += piece.len();
        if self.came >= STEP_BYTES || !has_room {
            (self.came, self.since) = (0, Instant::now());
        }
        let left = self.left.checked_sub(piece.len());
        self.left = left.ok_or_else(|| Problem::too_large("the body", self.max, self.mend))?;
        Ok(Some(piece))
    }
}

impl Reader {
    async fn next_piece(&self, body: &mut Incoming) -> Result<Option<Bytes>> {
        loop {
            let frame = match self.idle {
                Some(idle) => timeout(idle, body.frame()).await.map_err(|_| Problem::too_slow())?,
                None => body.frame().await,
            };
            match frame {
                None => return Ok(None),
                Some(Err(error)) => {
                    return Err(Problem::bad_request(format!("the body broke off: {error}")));
                }
                Some(Ok(frame)) => {
                    // Trailers say nothing here.
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }
}

/// A client that waited so long for room may have left.
const LOOK_AFTER: Duration = Duration::from_millis(1);

/// A client that sends less than this at a time counts as silent while others wait.
const STEP_BYTES: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn body(undone: &Arc<AtomicBool>) -> Body {
        let undone = Arc::clone(undone);
        let unsent = Unsent::new(move || undone.store(true, Ordering::Relaxed));
        Body::Whole(Bytes::new(), Some(unsent), None)
    }

    #[test]
    fn unsent_body_is_undone() {
        let undone = Arc::new(AtomicBool::new(false));
        drop(body(&undone));
        assert!(undone.swap(false, Ordering::Relaxed));
        let mut sent = body(&undone);
        assert!(!sent.is_end_stream(), "it is asked for");
        let mut context = Context::from_waker(std::task::Waker::noop());
        assert!(Pin::new(&mut sent).poll_frame(&mut context).is_ready());
        assert!(sent.is_end_stream());
        drop(sent);
        assert!(!undone.load(Ordering::Relaxed));
    }
}
