//! A stream whose peer goes on with what it has begun, or is given up: the first bytes, which say
//! whether it speaks HTTP/1.1 or HTTP/2, and each frame of the latter. Heads of HTTP/1.1 are timed
//! beside it (activity.rs) and bodies where they are read.
//!
//! And one that takes what it is answered, or is given up: what it leaves unread has a part of the
//! room that all answers share.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use crate::activity::Activity;

/// Reading ends with an error where something stays half sent for too long, and writing where
/// nothing is taken for as long. It counts only while somebody waits for more: what lies unread
/// here is not its peer's fault.
pub(crate) struct ReadTimeout<S> {
    stream: S,
    activity: Arc<Activity>,
    /// How long something may stay half sent, or not taken, if not for ever.
    most: Option<Duration>,
    progress: Progress,
    /// When what is half sent now has been so for too long.
    deadline: Option<Pin<Box<Sleep>>>,
    /// When what is being written has not been taken for too long.
    untaken: Option<Pin<Box<Sleep>>>,
}

impl<S> ReadTimeout<S> {
    pub(crate) const fn new(stream: S, activity: Arc<Activity>, most: Option<Duration>) -> Self {
        let progress = Progress::Undecided { seen: 0 };
        Self { stream, activity, most, progress, deadline: None, untaken: None }
    }

    /// Ends when the peer is to be given up.
    fn poll_late(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        let Some(most) = self.most.filter(|_| self.progress.is_half_sent()) else {
            return Poll::Pending;
        };
        poll_over(&mut self.deadline, most, context)
    }

    /// What came of a write: where nothing was taken, and for how long that has been so.
    fn taken(
        &mut self,
        written: Poll<io::Result<usize>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.untaken = None;
            self.activity.note_written();
            return written;
        }
        let Some(most) = self.most else { return Poll::Pending };
        poll_over(&mut self.untaken, most, context).map(Err)
    }
}

/// Ends with an error when so much time is over, which begins now if it has not yet.
fn poll_over(
    deadline: &mut Option<Pin<Box<Sleep>>>,
    most: Duration,
    context: &mut Context<'_>,
) -> Poll<io::Error> {
    let deadline = deadline.get_or_insert_with(|| Box::pin(sleep(most)));
    ready!(deadline.as_mut().poll(context));
    Poll::Ready(io::ErrorKind::TimedOut.into())
}

impl<S: AsyncRead + Unpin> AsyncRead for ReadTimeout<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let Poll::Ready(read) = Pin::new(&mut this.stream).poll_read(context, buffer) else {
            return this.poll_late(context).map(Err);
        };
        let came = buffer.filled().get(before..).unwrap_or_default();
        if this.progress.advance(came) {
            // What is half sent now is another.
            this.deadline = None;
        }
        if matches!(this.progress, Progress::Http1) && !came.is_empty() {
            this.activity.note_read();
        }
        Poll::Ready(read)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ReadTimeout<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.taken(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.taken(written, context)
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

/// How far the peer has come with what it sends.
enum Progress {
    /// So many bytes came, all as HTTP/2 begins.
    Undecided {
        seen: usize,
    },
    /// Not our business: HTTP/1.1.
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

    /// Takes note of what came; tells whether something was completed by it.
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

/// Where frames of HTTP/2 begin and end; nothing else about them.
struct Frames {
    head: [u8; HEAD_BYTES],
    /// How much of the head has come; all of it while there is more of its payload to come.
    seen: usize,
    /// Bytes of the payload that have yet to come.
    left: usize,
    /// Another frame has to follow: the first one after the preface, or the rest of a head.
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

    /// Takes a part of a frame, and gives what is behind that.
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

/// How a connection of HTTP/2 begins.
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

    /// Sends all as one, and each byte by itself.
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
    fn what_is_half_sent_is_known() {
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
    fn who_takes_nothing_is_given_up() {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let (near, mut far) = tokio::io::duplex(4);
            let mut prompt =
                ReadTimeout::new(near, Arc::new(Activity::new()), Some(Duration::from_millis(1)));
            prompt.write_all(b"took").await.unwrap();
            far.read_exact(&mut [0; 4]).await.unwrap();
            prompt.write_all(b"left").await.unwrap();
            let error = prompt.write_all(b"more").await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
            far.read_exact(&mut [0; 4]).await.unwrap();
            prompt.write_all(b"then").await.unwrap();
            assert!(prompt.untaken.is_none(), "the next time begins anew");
        });
    }

    #[test]
    fn the_time_begins_anew_with_what_is_completed() {
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
