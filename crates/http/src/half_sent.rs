//! A stream that tells the activity of its connection how far the peer is. The peer has sent a part
//! and not the rest: of the first bytes, which tell HTTP/1.1 from HTTP/2, or of a frame of HTTP/2.
//! Or it reads nothing of an answer: unread answers take a part of the budget that all answers
//! share.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::activity::{Activity, Unread};

/// The stream. Something counts as half sent only from when a read waits for more bytes: bytes that
/// this server leaves unread are not the peer's fault.
pub(crate) struct WatchedStream<S> {
    stream: S,
    activity: Arc<Activity>,
    progress: Progress,
    /// A write that the peer does not take.
    unread: Option<Unread>,
}

impl<S> WatchedStream<S> {
    pub(crate) const fn new(stream: S, activity: Arc<Activity>) -> Self {
        Self { stream, activity, progress: Progress::Undecided { seen: 0 }, unread: None }
    }

    /// Passes on the result of a write.
    fn note_write(&mut self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.unread = None;
            self.activity.note_written();
        } else {
            self.unread.get_or_insert_with(|| self.activity.unread());
        }
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WatchedStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let Poll::Ready(read) = Pin::new(&mut this.stream).poll_read(context, buffer) else {
            if this.progress.is_half_sent() {
                this.activity.note_half_sent();
            }
            return Poll::Pending;
        };
        let came = buffer.filled().get(before..).unwrap_or_default();
        if this.progress.advance(came) {
            // Another thing is half sent now.
            this.activity.note_completed();
        }
        if matches!(this.progress, Progress::Http1) && !came.is_empty() {
            this.activity.note_read();
        }
        Poll::Ready(read)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WatchedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.note_write(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.note_write(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// How far the peer has come with the bytes that it sends.
enum Progress {
    /// `seen` bytes came, all of them the beginning of HTTP/2.
    Undecided {
        seen: usize,
    },
    /// HTTP/1.1: timed elsewhere.
    Http1,
    Http2(Frames),
}

impl Progress {
    const fn is_half_sent(&self) -> bool {
        match self {
            Self::Undecided { .. } => true,
            Self::Http1 => false,
            Self::Http2(frames) => frames.is_half_sent(),
        }
    }

    /// Notes bytes that came. Tells whether they completed something.
    fn advance(&mut self, came: &[u8]) -> bool {
        match self {
            Self::Undecided { seen } => {
                let left = PREFACE.get(*seen..).unwrap_or_default();
                let length = left.len().min(came.len());
                let (begin, rest) = came.split_at(length);
                if !left.starts_with(begin) {
                    *self = Self::Http1;
                    return true;
                }
                *seen += length;
                if *seen == PREFACE.len() {
                    *self = Self::Http2(Frames::new());
                    return self.advance(rest);
                }
                false
            }
            Self::Http1 => false,
            Self::Http2(frames) => frames.advance(came),
        }
    }
}

/// The beginnings and ends of frames of HTTP/2. It knows nothing else of them.
struct Frames {
    head: [u8; HEAD_BYTES],
    /// Bytes of the frame's head that have come: all of them while its payload comes.
    seen: usize,
    /// Bytes of the payload that have yet to come.
    left: usize,
    /// Another frame has to follow: the first after the preface, or the rest of a head.
    is_more_due: bool,
}

impl Frames {
    const fn new() -> Self {
        Self { head: [0; HEAD_BYTES], seen: 0, left: 0, is_more_due: true }
    }

    const fn is_half_sent(&self) -> bool {
        self.seen > 0 || self.is_more_due
    }

    fn advance(&mut self, mut came: &[u8]) -> bool {
        let mut is_completed = false;
        while !came.is_empty() {
            came = self.take(came);
            if self.seen == HEAD_BYTES && self.left == 0 {
                self.seen = 0;
                self.is_more_due = self.begins_a_head() && !self.ends_a_head();
                is_completed |= !self.is_more_due;
            }
        }
        is_completed
    }

    /// Takes a part of a frame. Returns the bytes behind it.
    fn take<'a>(&mut self, came: &'a [u8]) -> &'a [u8] {
        if self.seen == HEAD_BYTES {
            let (_, rest) = came.split_at(self.left.min(came.len()));
            self.left -= came.len() - rest.len();
            return rest;
        }
        let missing = self.head.get_mut(self.seen..).unwrap_or_default();
        let length = missing.len().min(came.len());
        let (part, rest) = came.split_at(length);
        missing.iter_mut().zip(part).for_each(|(byte, came)| *byte = *came);
        self.seen += length;
        if self.seen == HEAD_BYTES {
            let [a, b, c, ..] = self.head;
            self.left = u32::from_be_bytes([0, a, b, c]) as usize;
        }
        rest
    }

    /// HEADERS, PUSH_PROMISE or CONTINUATION.
    const fn begins_a_head(&self) -> bool {
        matches!(self.head[3], 1 | 5 | 9)
    }

    /// END_HEADERS.
    const fn ends_a_head(&self) -> bool {
        self.head[4] & 4 != 0
    }
}

/// The preface of a connection of HTTP/2.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Bytes of a frame before its payload.
const HEAD_BYTES: usize = 9;

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
    const DATA: &[u8] = &[0, 0, 3, 0, 0, 0, 0, 0, 1, b'a', b'b', b'c'];
    const HEADERS: &[u8] = &[0, 0, 1, 1, 0, 0, 0, 0, 1, 0x82];
    const CONTINUATION: &[u8] = &[0, 0, 1, 9, 4, 0, 0, 0, 1, 0x84];

    /// Sends all bytes at once, and then one by one.
    fn is_half_sent(parts: &[&[u8]]) -> bool {
        let bytes = parts.concat();
        let mut at_once = Progress::Undecided { seen: 0 };
        at_once.advance(&bytes);
        let mut one_by_one = Progress::Undecided { seen: 0 };
        for byte in bytes.chunks(1) {
            one_by_one.advance(byte);
        }
        assert_eq!(at_once.is_half_sent(), one_by_one.is_half_sent(), "{bytes:?}");
        at_once.is_half_sent()
    }

    #[test]
    fn half_sent_parts_are_known() {
        for half in [&b""[..], b"P", &PREFACE[..16], PREFACE] {
            assert!(is_half_sent(&[half]), "{half:?}");
        }
        for whole in [&b"G"[..], b"POST", b"PRI * HTTP/1.1"] {
            assert!(!is_half_sent(&[whole]), "{whole:?}");
        }
        assert!(!is_half_sent(&[PREFACE, SETTINGS]));
        assert!(!is_half_sent(&[PREFACE, SETTINGS, DATA]));
        for end in 1..DATA.len() {
            assert!(is_half_sent(&[PREFACE, SETTINGS, DATA, &DATA[..end]]), "{end}");
        }
        assert!(is_half_sent(&[PREFACE, SETTINGS, HEADERS]), "its end has yet to come");
        assert!(!is_half_sent(&[PREFACE, SETTINGS, HEADERS, CONTINUATION]));
    }

    #[test]
    fn peer_that_reads_nothing_is_closed() {
        use std::time::Duration;

        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

        use crate::activity::{Overdue, Timeouts};

        let send = Some(Duration::from_millis(1));
        let timeouts = Timeouts { idle: None, head: None, send };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let (near, mut far) = tokio::io::duplex(4);
            let activity = Arc::new(Activity::new());
            let mut stream = WatchedStream::new(near, Arc::clone(&activity));
            stream.write_all(b"took").await.unwrap();
            far.read_exact(&mut [0; 4]).await.unwrap();
            stream.write_all(b"left").await.unwrap();
            tokio::select! {
                overdue = activity.overdue(timeouts) => assert_eq!(overdue, Overdue::Send),
                _ = stream.write_all(b"more") => panic!("there is no room"),
            }
            far.read_exact(&mut [0; 4]).await.unwrap();
            stream.write_all(b"then").await.unwrap();
            assert_eq!(activity.unread_parts(), 0, "the next time begins anew");
        });
    }

    #[test]
    fn completed_parts_restart_the_timeout() {
        let mut progress = Progress::Undecided { seen: 0 };
        assert!(!progress.advance(&PREFACE[..5]));
        assert!(!progress.advance(&PREFACE[5..]));
        assert!(progress.advance(&[SETTINGS, &DATA[..3]].concat()));
        assert!(!progress.advance(&DATA[3..6]));
        assert!(progress.advance(&[&DATA[6..], HEADERS].concat()));
        let more = &[0, 0, 0, 9, 0, 0, 0, 0, 1];
        assert!(!progress.advance(more), "a head that goes on and on has not ended");
        assert!(progress.advance(CONTINUATION));
        let mut progress = Progress::Undecided { seen: 0 };
        assert!(!progress.advance(b"P"));
        assert!(progress.advance(b"OST / HTTP/1.1"), "what comes now has a clock of its own");
    }
}
