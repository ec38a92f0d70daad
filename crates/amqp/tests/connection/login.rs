//! Credentials on their way through a connection.

use std::sync::Arc;

use amqp::frame::{self, FrameKind};
use amqp::protocol_header::ProtocolHeader;
use amqp::sasl::SaslBody;
use amqp::{Connection, InputBuffer, Options};
use model::{LoginAnswer, LoginOffer, LoginStep, Nanos, SessionId};

const OFFER: LoginOffer = LoginOffer { password: true, ..LoginOffer::NOTHING };

/// `Debug` shows bytes as a list of numbers: these of `canary` are looked for as well.
fn assert_hidden(shown: &str) {
    assert!(!shown.contains("canary"), "{shown}");
    assert!(!shown.contains("99, 97, 110"), "{shown}");
}

#[test]
fn debug_hides_credentials() {
    let now = Nanos::from_secs(1_000);
    let mut connection = Connection::new(SessionId(1), Arc::new(Options::default()), now);
    connection.set_offer(Some(OFFER));
    assert!(connection.needs_login());
    let mut bytes = ProtocolHeader::SASL.encode().to_vec();
    let init = SaslBody::Init {
        mechanism: "PLAIN",
        initial_response: Some(b"\0alice\0canary"),
        hostname: None,
    };
    assert_hidden(&format!("{init:?}"));
    frame::write(&mut bytes, FrameKind::Sasl, 0, |out| init.encode(out));
    let (mut input, mut out) = (InputBuffer::new(), Vec::new());
    for byte in bytes {
        input.append(&[byte]);
        assert!(connection.poll_command(now, &mut input, &mut out).is_none());
        assert_hidden(&format!("{connection:?} {input:?}"));
    }
    let step = connection.poll_login().expect("a step");
    assert_hidden(&format!("{step:?} {connection:?}"));
    assert!(matches!(step, LoginStep::Password { .. }));
    assert!(connection.poll_login().is_none(), "one step at a time");
    let granted = LoginAnswer::Granted {
        rights: model::Rights::everything("alice").into(),
        proof: Vec::new(),
    };
    connection.handle_login(granted, &mut out);
    assert_eq!(connection.user().map(|user| &**user), Some("alice"));
    assert!(!connection.needs_login() && connection.has_more());
}

/// Sends an init of XOAUTH2 with a token so long; gives the step, if there is one.
fn token_step(offer: LoginOffer, token_bytes: usize) -> Option<LoginStep> {
    let now = Nanos::from_secs(1_000);
    let mut connection = Connection::new(SessionId(1), Arc::new(Options::default()), now);
    connection.set_offer(Some(offer));
    let mut bytes = ProtocolHeader::SASL.encode().to_vec();
    let response = format!("user=alice\u{1}auth=Bearer {}\u{1}\u{1}", "x".repeat(token_bytes));
    let initial_response = Some(response.as_bytes());
    let init = SaslBody::Init { mechanism: "XOAUTH2", initial_response, hostname: Some("shop") };
    frame::write(&mut bytes, FrameKind::Sasl, 0, |out| init.encode(out));
    let (mut input, mut out) = (InputBuffer::new(), Vec::new());
    input.append(&bytes);
    assert!(connection.poll_command(now, &mut input, &mut out).is_none());
    connection.poll_login()
}

#[test]
fn token_fits_where_it_is_offered() {
    let with_token = LoginOffer { token: true, ..OFFER };
    for bytes in [1, 4_096, 8_192, 12_000] {
        let step = token_step(with_token, bytes);
        let Some(LoginStep::Token { user, token }) = step else { panic!("{step:?}") };
        assert_eq!((&*user, token.expose().len()), ("alice", bytes));
    }
    assert_eq!(token_step(with_token, 12_288), None);
    assert_eq!(token_step(OFFER, 100), None);
    assert_hidden(&format!("{:?}", token_step(with_token, 5)));
}
