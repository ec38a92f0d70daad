//! One delivery cut into frames of any sizes.

use amqp::frame::{Frame, FrameKind, Split};
use amqp::performative::{Performative, Transfer, TransferFrames};
use amqp::state::DeliveryState;
use proptest::prelude::*;

use crate::strategy;

/// The payload and `more` of each frame, as the peer reads them.
fn read_back(mut stream: &[u8], frame_bytes_max: u32) -> Vec<(Transfer<'_>, &[u8])> {
    let mut read = Vec::new();
    while !stream.is_empty() {
        let split = Frame::split(stream, frame_bytes_max).unwrap();
        let Split::Frame { frame, length } = split else { panic!("{split:?}") };
        assert_eq!((frame.kind, frame.channel), (FrameKind::Amqp, 5));
        let (performative, payload) = Performative::decode(frame.body).unwrap();
        let Performative::Transfer(transfer) = performative else { panic!("{performative:?}") };
        read.push((transfer, payload));
        stream = &stream[length..];
    }
    read
}

fn cut(transfer: &Transfer<'_>, payload: &[u8], frame_bytes_max: u32) -> Vec<u8> {
    let mut out = Vec::new();
    let mut frames = TransferFrames::new(transfer.clone(), 5, payload.len(), frame_bytes_max);
    while let Some(part) = frames.write_next(&mut out) {
        out.extend_from_slice(&payload[part]);
    }
    out
}

proptest! {
    #![proptest_config(strategy::config())]

    #[test]
    fn delivery_is_whole_again(
        length in 0_usize..5000,
        frame_bytes_max in 512_u32..2000,
        tag_bytes in 0_usize..=32,
        more: bool,
        settled: Option<bool>,
        in_transaction: bool,
    ) {
        let payload: Vec<u8> = (0..=255).cycle().take(length).collect();
        let tag = vec![9; tag_bytes];
        let state = DeliveryState::Transactional { txn_id: b"txn", outcome: None };
        let transfer = Transfer {
            handle: 300,
            delivery_id: Some(7),
            delivery_tag: Some(&tag),
            message_format: Some(0),
            settled,
            more,
            state: in_transaction.then_some(state),
            ..Transfer::default()
        };
        let stream = cut(&transfer, &payload, frame_bytes_max);
        let frames = read_back(&stream, frame_bytes_max);
        let whole: Vec<u8> = frames.iter().flat_map(|(_, part)| part.to_vec()).collect();
        prop_assert_eq!(whole, payload);
        let (first, rest) = frames.split_first().unwrap();
        prop_assert_eq!(&Transfer { more, ..first.0.clone() }, &transfer);
        for (next, part) in rest {
            let more = next.more;
            prop_assert_eq!(next, &Transfer { handle: 300, more, ..Transfer::default() });
            prop_assert!(!part.is_empty());
        }
        let last = frames.len() - 1;
        for (index, (transfer, _)) in frames.iter().enumerate() {
            prop_assert_eq!(transfer.more, more || index < last);
        }
    }
}

#[test]
fn transfer_frames_are_filled() {
    let payload = [1; 1500];
    let stream = cut(&Transfer::default(), &payload, 512);
    let sizes: Vec<usize> = read_back(&stream, 512).iter().map(|(_, part)| part.len()).collect();
    assert_eq!(sizes, [492, 492, 492, 24]);
}
