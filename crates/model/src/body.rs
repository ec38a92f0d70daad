//! The bytes of a message on their way to the session that asked for them.

use alloc::sync::Arc;
use core::fmt;
use core::num::NonZeroU64;
use core::ops::{Deref, Range};

use crate::{Format, Formats, Lsn, MessageId, PayloadReader};

/// A message's bytes, or where they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// They.
    Here(Arc<[u8]>),
    /// They left memory. The engine says so; the broker brings them back before anything of it
    /// reaches a session.
    PagedOut(PagedOut),
}

/// The location of the bytes of a message that left memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagedOut {
    /// The place that has them.
    pub place: BodyPlace,
    /// The message that they belong to: a frame may have several.
    pub message: MessageId,
    /// How many they are at most.
    pub bytes: u32,
}

/// A place that has the bytes of a message that left memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BodyPlace {
    /// A frame of the log, perhaps with those of others.
    Frame(Lsn),
    /// The spill, there: nothing else is at that place.
    Spill(NonZeroU64),
}

/// Bytes that a reply shows, and their meaning.
#[derive(Debug)]
pub struct Shows<'a> {
    /// They.
    pub body: &'a mut Body,
}

impl Body {
    /// Their location, unless they are in memory.
    #[must_use]
    pub const fn paged_out(&self) -> Option<PagedOut> {
        match self {
            Self::Here(_) => None,
            Self::PagedOut(paged_out) => Some(*paged_out),
        }
    }

    /// How many bytes they are, at most.
    #[must_use]
    pub fn bytes_max(&self) -> usize {
        match self {
            Self::Here(body) => body.len(),
            Self::PagedOut(paged_out) => paged_out.bytes as usize,
        }
    }

    /// They, to be kept.
    ///
    /// # Panics
    /// When they are away: no session meets that.
    #[must_use]
    pub fn share(&self) -> Arc<[u8]> {
        match self {
            Self::Here(body) => Arc::clone(body),
            Self::PagedOut(paged_out) => {
                panic!("the body of message {} is here", paged_out.message)
            }
        }
    }
}

/// # Panics
/// When they are away: no session meets that.
impl Deref for Body {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Here(body) => body,
            Self::PagedOut(paged_out) => {
                panic!("the body of message {} is here", paged_out.message)
            }
        }
    }
}

impl From<Arc<[u8]>> for Body {
    fn from(body: Arc<[u8]>) -> Self {
        Self::Here(body)
    }
}

impl Shows<'_> {
    /// The bytes have come.
    pub fn fill(self, body: Arc<[u8]>) {
        *self.body = Body::Here(body);
    }
}

/// How to find the bytes of a body that are for a protocol that does not know its format. Only a
/// session that asks pays for that.
#[derive(Clone, Copy)]
pub struct Payload(PayloadReader);

impl Payload {
    /// All bytes, in any format.
    pub const WHOLE: Self = Self(Formats::RAW.payload);

    /// As these readers find them.
    #[must_use]
    pub const fn by(formats: &Formats) -> Self {
        Self(formats.payload)
    }

    /// Which bytes they are.
    #[must_use]
    pub fn range(self, format: Format, body: &[u8]) -> Range<usize> {
        if format == Format::RAW { 0..body.len() } else { (self.0)(format, body) }
    }
}

/// It says nothing about a body.
impl PartialEq for Payload {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Payload {}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Payload")
    }
}
