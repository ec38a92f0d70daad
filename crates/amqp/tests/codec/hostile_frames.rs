//! Streams of frames that lie about themselves.

use amqp::DecodeErrorKind::{self as Kind, *};
use amqp::frame::{Frame, Split};
use amqp::limits::FRAME_BYTES_BEFORE_OPEN_MAX;

use crate::bytes;

fn refused(hex: &str) -> Kind {
    Frame::split(&bytes(hex), FRAME_BYTES_BEFORE_OPEN_MAX).expect_err(hex).kind
}

#[test]
fn hostile_frames_refused_by_their_head() {
    assert_eq!(refused("00000000 02 00 0000"), BadFrameHeader, "no size");
    assert_eq!(refused("00000007 02 00 0000"), BadFrameHeader, "smaller than its head");
    assert_eq!(refused("00000008 01 00 0000"), BadFrameHeader, "a body inside the head");
    assert_eq!(refused("00000008 00 00 0000"), BadFrameHeader, "a body before the head");
    assert_eq!(refused("00000008 03 00 0000"), BadFrameHeader, "a body behind the frame");
    assert_eq!(refused("00000100 ff 00 0000"), BadFrameHeader, "far behind it");
    assert_eq!(refused("00000008 02 02 0000"), UnknownFrameType(2));
    assert_eq!(refused("ffffffff 02 00 0000"), FrameTooLarge, "4 GiB");
    assert_eq!(refused("80000000 02 00 0000"), FrameTooLarge, "negative, as some read it");
    assert_eq!(refused("00001001 02 00 0000"), FrameTooLarge, "one byte too many");
    assert_eq!(refused("47455420 2f 20 4854"), FrameTooLarge, "HTTP");
}

/// The limit holds on the claim: the server need not buffer a frame that it will refuse.
#[test]
fn large_frame_refused_before_its_body() {
    let head = bytes("00001000 02 00 0000");
    assert_eq!(Frame::split(&head, 4096), Ok(Split::Needs(4096 - 8)));
    let error = Frame::split(&head, 4095).unwrap_err();
    assert_eq!(error.condition(), "amqp:connection:framing-error");
}

#[test]
fn split_asks_for_missing_bytes() {
    let stream = bytes("0000000a 02 00 0007 4142");
    for end in 0..stream.len() {
        let Ok(Split::Needs(more)) = Frame::split(&stream[..end], 512) else { panic!("{end}") };
        let asked = if end < 8 { 8 - end } else { stream.len() - end };
        assert_eq!(more, asked);
    }
}
