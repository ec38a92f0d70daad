//! Frames (2.3): a stream of bytes cut into them, and their heads written.
//!
//! ```text
//! +0 size: 4 octets, the head included    +4 doff: where the body begins, in words of 4 octets
//! +5 type: 0 AMQP, 1 SASL                 +6 channel: 2 octets, of AMQP frames
//! +8 an extended header, ignored          +4*doff the body
//! ```

use alloc::vec::Vec;

use crate::decode_error::{DecodeError, DecodeErrorKind as Kind};

/// Bytes of a frame's head without an extended header.
pub const FRAME_HEAD_BYTES: usize = 8;

/// The data offset, in words, of a frame without an extended header.
const DOFF_MIN: u8 = 2;

/// The layer that a frame belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// The connection and its sessions.
    Amqp,
    /// The authentication before it.
    Sasl,
}

/// One frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The layer that it belongs to.
    pub kind: FrameKind,
    /// The session's channel; ignored in SASL frames (5.3.1).
    pub channel: u16,
    /// The performative and its payload. Empty: only that the peer is alive (2.4.5).
    pub body: &'a [u8],
}

/// The front of a stream of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split<'a> {
    /// Not yet a whole frame: this many bytes are missing, at least.
    Needs(usize),
    /// A frame.
    Frame {
        /// The frame.
        frame: Frame<'a>,
        /// The bytes that it takes in the stream.
        length: usize,
    },
}

impl Frame<'_> {
    /// Takes the frame at the front of `bytes`. Its claims are checked against `frame_bytes_max`
    /// and against sense as soon as its head is there.
    ///
    /// # Errors
    /// When the head is wrong. The stream cannot be read any further then.
    pub fn split(bytes: &[u8], frame_bytes_max: u32) -> Result<Split<'_>, DecodeError> {
        let Some((head, _)) = bytes.split_first_chunk::<FRAME_HEAD_BYTES>() else {
            return Ok(Split::Needs(FRAME_HEAD_BYTES - bytes.len()));
        };
        let [s0, s1, s2, s3, doff, kind, c0, c1] = *head;
        let size = u32::from_be_bytes([s0, s1, s2, s3]);
        let body_start = usize::from(doff) * 4;
        if size > frame_bytes_max {
            return Err(DecodeError::new(Kind::FrameTooLarge, 0));
        }
        let length = size as usize;
        if doff < DOFF_MIN || body_start > length {
            return Err(DecodeError::new(Kind::BadFrameHeader, 0));
        }
        assert!(length >= FRAME_HEAD_BYTES, "a frame holds its head, whatever its peer claims");
        let kind = FrameKind::of(kind)?;
        let Some(frame) = bytes.get(..length) else {
            return Ok(Split::Needs(length - bytes.len()));
        };
        let channel = u16::from_be_bytes([c0, c1]);
        let body = frame.get(body_start..).unwrap_or_default();
        Ok(Split::Frame { frame: Frame { kind, channel, body }, length })
    }
}

impl FrameKind {
    fn of(code: u8) -> Result<FrameKind, DecodeError> {
        match code {
            0 => Ok(FrameKind::Amqp),
            1 => Ok(FrameKind::Sasl),
            _ => Err(DecodeError::new(Kind::UnknownFrameType(code), 5)),
        }
    }

    fn code(self) -> u8 {
        self as u8
    }
}

/// Appends a frame. `write` appends its body. A frame without a body keeps a connection alive.
pub fn write(out: &mut Vec<u8>, kind: FrameKind, channel: u16, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.resize(start + FRAME_HEAD_BYTES, 0);
    write(out);
    write_head(out, start, kind, channel, 0);
}

/// Fills in the head of the frame that begins at `start` and goes on for `payload_bytes` behind
/// the end of `out`.
pub(crate) fn write_head(
    out: &mut [u8],
    start: usize,
    kind: FrameKind,
    channel: u16,
    payload_bytes: usize,
) {
    let bytes = out.len() - start + payload_bytes;
    let size = u32::try_from(bytes).expect("invariant: a frame is bounded by a u32 of bytes");
    let [s0, s1, s2, s3] = size.to_be_bytes();
    let [c0, c1] = channel.to_be_bytes();
    let head = [s0, s1, s2, s3, DOFF_MIN, kind.code(), c0, c1];
    let room = out.get_mut(start..).and_then(<[u8]>::first_chunk_mut);
    *room.expect("invariant: room for the head was made where the frame begins") = head;
}
