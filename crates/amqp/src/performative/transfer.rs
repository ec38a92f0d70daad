//! Transfer: a message or a part of one (2.7.5), and how a message is cut into frames (2.6.14).

use alloc::vec::Vec;
use core::ops::Range;

use crate::encode;
use crate::frame::{FRAME_HEAD_BYTES, FrameKind, write_head};
use crate::limits::{DELIVERY_TAG_BYTES_MAX, FRAME_BYTES_MIN};
use crate::performative::ReceiverSettleMode;
use crate::state::DeliveryState;
use crate::types::descriptor;
use crate::types::list_reader::ListReader;
use crate::types::reader::Result;

/// Carries a message or a part of one, which follows the performative.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transfer<'a> {
    /// The link.
    pub handle: u32,
    /// The delivery's number in the session; has to be there in its first transfer.
    pub delivery_id: Option<u32>,
    /// The sender's name for the delivery, unique while it is not settled; in the first transfer.
    pub delivery_tag: Option<&'a [u8]>,
    /// 0 for the message format of the specification (2.8.11); in the first transfer.
    pub message_format: Option<u32>,
    /// True if the sender has forgotten the delivery; absent: as an earlier transfer of it told.
    pub settled: Option<bool>,
    /// True if more transfers follow for the delivery.
    pub more: bool,
    /// Which end settles first; absent: as the link says.
    pub rcv_settle_mode: Option<ReceiverSettleMode>,
    /// The delivery's state at the sender, such as its transaction.
    pub state: Option<DeliveryState<'a>>,
    /// True if a delivery of an earlier attachment goes on.
    pub resume: bool,
    /// True if the delivery is to be forgotten.
    pub aborted: bool,
    /// True if an answer may wait for others.
    pub batchable: bool,
}

impl<'a> Transfer<'a> {
    pub(super) fn read(list: &mut ListReader<'a>) -> Result<Transfer<'a>> {
        let handle = list.uint()?;
        Ok(Transfer {
            handle: list.need(handle, "handle")?,
            delivery_id: list.uint()?,
            delivery_tag: delivery_tag(list)?,
            message_format: list.uint()?,
            settled: list.boolean()?,
            more: list.flag()?,
            rcv_settle_mode: ReceiverSettleMode::read(list)?,
            state: list.described(DeliveryState::decode)?,
            resume: list.flag()?,
            aborted: list.flag()?,
            batchable: list.flag()?,
        })
    }

    /// Appends the performative; the payload has to follow.
    pub fn encode(&self, out: &mut Vec<u8>) {
        encode::composite(out, descriptor::TRANSFER, |list| {
            list.uint(Some(self.handle));
            list.uint(self.delivery_id);
            list.binary(self.delivery_tag);
            list.uint(self.message_format);
            list.boolean(self.settled);
            list.flag(self.more);
            list.ubyte(self.rcv_settle_mode.map(ReceiverSettleMode::code));
            list.field(self.state.as_ref(), |out, state| state.encode(out));
            list.flag(self.resume);
            list.flag(self.aborted);
            list.flag(self.batchable);
        });
    }
}

/// A tag of at most 32 octets (2.8.7).
fn delivery_tag<'a>(list: &mut ListReader<'a>) -> Result<Option<&'a [u8]>> {
    let tag = list.binary()?;
    let too_long = tag.is_some_and(|tag| tag.len() > DELIVERY_TAG_BYTES_MAX);
    if too_long { Err(list.invalid("delivery-tag")) } else { Ok(tag) }
}

/// Cuts one delivery into as many frames as the peer's largest frame asks for.
///
/// Each [`TransferFrames::write_next`] appends the head of a frame; the part of the payload that
/// it returns has to follow right behind.
///
/// ```
/// use amqp::performative::{Transfer, TransferFrames};
///
/// let (mut out, payload) = (Vec::new(), [7; 1000]);
/// let transfer =
///     Transfer { delivery_id: Some(1), delivery_tag: Some(b"t"), ..Transfer::default() };
/// let mut frames = TransferFrames::new(transfer, 0, payload.len(), 512);
/// while let Some(part) = frames.write_next(&mut out) {
///     out.extend_from_slice(&payload[part]);
/// }
/// assert_eq!(out[..4], 512_u32.to_be_bytes());
/// ```
#[derive(Clone, Debug)]
pub struct TransferFrames<'a> {
    /// The performative of the next frame.
    transfer: Transfer<'a>,
    channel: u16,
    frame_bytes_max: usize,
    /// The part of the payload that is not in a frame yet; nothing once the last frame was written.
    left: Option<Range<usize>>,
}

impl<'a> TransferFrames<'a> {
    /// Cuts a payload of `payload_bytes`; `transfer.more` tells whether more of the delivery
    /// follows behind it.
    pub fn new(
        transfer: Transfer<'a>,
        channel: u16,
        payload_bytes: usize,
        frame_bytes_max: u32,
    ) -> TransferFrames<'a> {
        debug_assert!(frame_bytes_max >= FRAME_BYTES_MIN, "an open that says less is refused");
        let frame_bytes_max = frame_bytes_max.max(FRAME_BYTES_MIN) as usize;
        TransferFrames { transfer, channel, frame_bytes_max, left: Some(0..payload_bytes) }
    }

    /// Appends the head of the next frame and gives the part of the payload that follows it.
    ///
    /// # Panics
    /// When `transfer.state` alone is larger than a frame; only a rejection's text could be.
    pub fn write_next(&mut self, out: &mut Vec<u8>) -> Option<Range<usize>> {
        let left = self.left.take()?;
        let start = out.len();
        let whole = self.write_transfer(out, start, self.transfer.more);
        if whole + left.len() <= self.frame_bytes_max {
            write_head(out, start, FrameKind::Amqp, self.channel, left.len());
            return Some(left);
        }
        let head = self.write_transfer(out, start, true);
        assert!(head < self.frame_bytes_max, "a frame holds some payload behind its head");
        let middle = (left.start + self.frame_bytes_max - head).min(left.end);
        let part = left.start..middle;
        write_head(out, start, FrameKind::Amqp, self.channel, part.len());
        let (handle, more) = (self.transfer.handle, self.transfer.more);
        self.transfer = Transfer { handle, more, ..Transfer::default() };
        self.left = Some(middle..left.end);
        Some(part)
    }

    /// Writes head and performative from `start` on, and tells their bytes.
    fn write_transfer(&self, out: &mut Vec<u8>, start: usize, more: bool) -> usize {
        out.truncate(start);
        out.resize(start + FRAME_HEAD_BYTES, 0);
        if more == self.transfer.more {
            self.transfer.encode(out);
        } else {
            Transfer { more, ..self.transfer.clone() }.encode(out);
        }
        out.len() - start
    }
}
