//! A session against a broker of a few frames.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use amqp::error::{Error, condition};
use amqp::performative::{Detach, Flow, Performative as P, Role, Transfer};
use amqp::protocol_header::ProtocolHeader;
use amqp::sasl::{SaslBody, SaslCode};
use amqp::state::{DeliveryState, Outcome};
use amqp::types::Symbols;
use client::{Event, Said, Session, Wanted, Wrong};
use testkit::amqp_broker::{Broker, opened, queue, spoken};

/// One with a link to send by, number 7 at the broker, and credit for so many.
fn with_producer(credit: u32) -> Session {
    let mut session = opened();
    let handle = session.attach_producer(&queue());
    assert!(!session.is_ready());
    let broker = Broker::default().attach("producer-0", 7, Role::Receiver).credit(7, 0, credit);
    assert_eq!(broker.tell(&mut session).unwrap(), [Event::Credit]);
    assert!(session.is_ready());
    assert_eq!(handle, 0);
    session
}

#[test]
fn session_introduces_itself_and_opens() {
    let mut session = opened();
    assert!(session.is_ready());
    assert_eq!(session.keep_alive_millis(), Some(15_000));
    assert_eq!(spoken(&mut session), ["Open", "Begin"]);
}

#[test]
fn session_reads_byte_by_byte() {
    let mut session = Session::new(None, "bench", "localhost");
    let mut events = Vec::new();
    for byte in Broker::open().0 {
        session.handle_bytes(&[byte]);
        while let Some(event) = session.poll_event().unwrap() {
            events.push(event);
        }
    }
    assert_eq!(events, [Event::Opened]);
}

#[test]
fn refused_login_reports_its_reason() {
    let mut session = Session::new(Some(("u", "secret")), "bench", "localhost");
    let plain = SaslBody::Mechanisms(Symbols::from(["PLAIN"]));
    let refusal = SaslBody::Outcome { code: SaslCode::Auth, additional_data: None };
    let broker = Broker::default().header(ProtocolHeader::SASL).sasl(plain.clone()).sasl(refusal);
    let told = broker.tell(&mut session);
    assert_eq!(told, Err(Wrong::Unauthenticated("it said Auth".to_owned())));
    assert!(session.out.windows(9).any(|bytes| bytes == b"\0u\0secret"));

    let mut nobody = Session::new(None, "bench", "localhost");
    let told = Broker::default().header(ProtocolHeader::SASL).sasl(plain).tell(&mut nobody);
    assert_eq!(told, Err(Wrong::Unauthenticated("it offers PLAIN".to_owned())));
}

#[test]
fn other_protocols_are_not_amqp() {
    for bytes in [&b"HTTP/1.1 400 Bad Request\r\n"[..], b"AMQP\0\0\x09\x01", b"-ERR unknown\r\n"] {
        let mut session = Session::new(None, "bench", "localhost");
        session.handle_bytes(bytes);
        let wrong = session.poll_event().unwrap_err();
        assert!(matches!(wrong, Wrong::NotAmqp(_)), "{wrong:?}");
    }
}

#[test]
fn session_sends_within_credit_and_window() {
    let mut session = with_producer(3);
    assert!(session.can_send(0, 10));
    // The credit's flow told a window of 1000 frames; a frame is at most 64 KiB.
    assert!(!session.can_send(0, 1001 * 65_536));
    for tag in 0..3 {
        session.transfer(0, b"m", tag, None);
    }
    assert!(!session.can_send(0, 10), "its credit is used up");
    let events = Broker::default().credit(7, 1, 3).tell(&mut session).unwrap();
    assert_eq!(events, [Event::Credit]);
    session.transfer(0, b"m", 3, None);
    assert!(!session.can_send(0, 10), "of the new credit two were on their way");
}

#[test]
fn answers_carry_their_tags_in_order() {
    let mut session = with_producer(9);
    for tag in [40, 41, 42, 43] {
        session.transfer(0, b"m", tag, None);
    }
    let full = Error::new(condition::RESOURCE_LIMIT_EXCEEDED, "full");
    let rejected = DeliveryState::Outcome(Outcome::Rejected(Some(Box::new(full))));
    let broker = Broker::default()
        .answer(1, 2, DeliveryState::ACCEPTED)
        .answer(0, 0, rejected)
        .answer(3, 3, DeliveryState::Declared { txn_id: b"t" })
        .answer(3, 3, DeliveryState::ACCEPTED);
    let refused = Said::Refused("amqp:resource-limit-exceeded: full".to_owned());
    assert_eq!(
        broker.tell(&mut session).unwrap(),
        [
            Event::Answer(41, Said::Accepted),
            Event::Answer(42, Said::Accepted),
            Event::Answer(40, refused),
            Event::Answer(43, Said::Declared(b"t".to_vec())),
        ]
    );
}

#[test]
fn message_parts_join_and_drains_show() {
    let mut session = opened();
    let link = session.attach_consumer(&queue(), &Wanted::default());
    session.grant(link, 10, true);
    let part = |more, delivery_id| {
        P::Transfer(Transfer { handle: 5, delivery_id, more, ..Transfer::default() })
    };
    let drained = Flow {
        next_incoming_id: Some(0),
        handle: Some(5),
        delivery_count: Some(10),
        link_credit: Some(0),
        drain: true,
        ..Flow::default()
    };
    let broker = Broker::default()
        .attach("consumer-0", 5, Role::Sender)
        .say(part(true, Some(8)), b"ab")
        .say(part(false, None), b"c")
        .say(P::Flow(drained), b"");
    let message = Event::Message { link, delivery: 8, bytes: b"abc".to_vec() };
    assert_eq!(broker.tell(&mut session).unwrap(), [message, Event::Drained(link)]);
}

#[test]
fn link_number_is_reused() {
    let mut session = opened();
    let first = session.attach_consumer(&queue(), &Wanted::default());
    session.detach(first);
    let detach = Detach { handle: 5, closed: true, error: None };
    let broker = Broker::default().attach("consumer-0", 5, Role::Sender);
    let events = broker.say(P::Detach(detach), b"").tell(&mut session).unwrap();
    assert_eq!(events, [Event::Detached(first)]);
    assert_eq!(session.attach_consumer(&queue(), &Wanted::default()), first);
}

#[test]
fn broker_detach_reports_its_reason() {
    let mut session = opened();
    session.attach_producer(&queue());
    let error = Some(Box::new(Error::new(condition::NOT_FOUND, "no queue q")));
    let detach = Detach { handle: 0, closed: true, error };
    let told = Broker::default().say(P::Detach(detach), b"").tell(&mut session);
    assert_eq!(told, Err(Wrong::Ended("amqp:not-found: no queue q".to_owned())));
}
