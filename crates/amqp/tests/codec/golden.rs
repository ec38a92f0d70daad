//! Frames of Qpid JMS 2.10.0 in a session that has a bit of everything, and our reading of them.
//!
//! `testdata/qpid-jms.txt` has each frame as `> hex` and its meaning below. After a change that is
//! meant, `UPDATE=1 cargo test -p dunlin-amqp golden` writes it anew; read the difference.

use std::fmt::Write as _;
use std::{env, fs};

use amqp::frame::{Frame, FrameKind, Split};
use amqp::message::Message;
use amqp::performative::Performative;
use amqp::sasl::SaslBody;
use amqp::transaction::CoordinatorRequest;

use crate::bytes;

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/qpid-jms.txt");

/// The frames of the file, for other tests.
pub(crate) fn frames() -> Vec<Vec<u8>> {
    let text = fs::read_to_string(PATH).unwrap();
    text.lines().filter_map(|line| line.strip_prefix("> ")).map(bytes).collect()
}

#[test]
fn qpid_jms_frames_match_golden_file() {
    let told = fs::read_to_string(PATH).unwrap();
    let mut read = String::new();
    for line in told.lines().filter(|line| line.starts_with(['#', '>'])) {
        writeln!(read, "{line}").unwrap();
        if let Some(hex) = line.strip_prefix("> ") {
            tell(&bytes(hex), &mut read);
        }
    }
    if env::var_os("UPDATE").is_some() {
        fs::write(PATH, &read).unwrap();
    }
    assert_eq!(read, fs::read_to_string(PATH).unwrap());
}

#[test]
fn qpid_jms_frames_survive_our_encoder() {
    let mut compared = 0;
    for bytes in frames() {
        let Split::Frame { frame, .. } = Frame::split(&bytes, u32::MAX).unwrap() else { panic!() };
        let mut again = Vec::new();
        if frame.kind == FrameKind::Sasl {
            let body = SaslBody::decode(frame.body).unwrap();
            body.encode(&mut again);
            assert_eq!(SaslBody::decode(&again), Ok(body));
        } else if !frame.body.is_empty() {
            let (performative, payload) = Performative::decode(frame.body).unwrap();
            performative.encode(&mut again);
            again.extend_from_slice(payload);
            assert_eq!(Performative::decode(&again), Ok((performative, payload)));
        }
        assert!(again.len() <= frame.body.len(), "ours is the smallest form");
        compared += 1;
    }
    assert!(compared > 35, "{compared} frames");
}

fn tell(bytes: &[u8], out: &mut String) {
    let split = Frame::split(bytes, u32::MAX).unwrap();
    let Split::Frame { frame, length } = split else { panic!("{split:?}") };
    assert_eq!(length, bytes.len());
    if frame.kind == FrameKind::Sasl {
        writeln!(out, "{:?}\n", SaslBody::decode(frame.body).unwrap()).unwrap();
        return;
    }
    if frame.body.is_empty() {
        return out.push_str("alive\n\n");
    }
    let (performative, payload) = Performative::decode(frame.body).unwrap();
    writeln!(out, "channel {}: {performative:?}", frame.channel).unwrap();
    if !payload.is_empty() {
        tell_message(payload, out);
    }
    out.push('\n');
}

fn tell_message(payload: &[u8], out: &mut String) {
    if let Ok(request) = CoordinatorRequest::decode(payload) {
        writeln!(out, "    {request:?}").unwrap();
        return;
    }
    let message = Message::scan(payload).unwrap();
    writeln!(out, "    {:?}", message.header()).unwrap();
    writeln!(out, "    {:?}", message.message_annotations()).unwrap();
    writeln!(out, "    {:?}", message.properties()).unwrap();
    writeln!(out, "    {:?}", message.application_properties()).unwrap();
    let data: Vec<&[u8]> = message.data().collect();
    writeln!(out, "    {:?} {data:?} {:?}", message.body_kind(), message.value()).unwrap();
}
