//! A connection whose other end is the test.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use amqp::frame::{self, FrameKind};
use amqp::performative::{Attach, Open, Performative, Role};
use amqp::protocol_header::ProtocolHeader;
use amqp::terminus::Source;
use model::{DependsOn, Element, Quota, Quotas, Refusal};

use super::*;
use crate::clock::nanos;
use crate::config::Protocol;

/// A connection; the test is its other end.
struct Line {
    peer: UnixStream,
    connection: Connection,
    commons: ProtocolState,
}

const ID: SessionId = SessionId(1);

impl Line {
    fn new(protocol: Protocol) -> Self {
        let mut line = Self::new_unopened(protocol);
        if protocol == Protocol::Beanstalkd {
            // Its producer and its consumer.
            for _ in 0..2 {
                assert!(line.next_command().is_some());
                line.reply(Reply::Done);
            }
        }
        line
    }

    /// The same before its session has opened anything.
    fn new_unopened(protocol: Protocol) -> Self {
        let (peer, socket) = UnixStream::pair().unwrap();
        peer.set_nonblocking(true).unwrap();
        socket.set_nonblocking(true).unwrap();
        let (client, mut commons) = (Client::of_test(socket), ProtocolState::idle());
        let session = Peer::new(protocol, ID, &client, &mut commons, Nanos(0));
        let connection = Connection::new(
            ID,
            client,
            Transport::Plain,
            session,
            ConnectionPermit::of_test(),
            Nanos(0),
        );
        Self { peer, connection, commons }
    }

    /// The peer says this; the first command of it.
    fn say(&mut self, bytes: &str) -> Option<Command> {
        self.peer.write_all(bytes.as_bytes()).unwrap();
        self.receive();
        self.next_command()
    }

    /// Its peer is a user with these quotas.
    fn be_user(&mut self, quotas: &[(Quota, u64)]) {
        let seat = UserQuotas::default().seat(&rights(quotas)).unwrap();
        self.connection.set_seat(Some(seat));
    }

    fn half_close(&mut self) {
        self.peer.shutdown(Shutdown::Write).unwrap();
        self.receive();
    }

    fn receive(&mut self) {
        self.connection.notice(true, false, false);
        self.connection.receive(&mut [0; 1024], 1024, Nanos(0));
    }

    fn next_command(&mut self) -> Option<Command> {
        self.connection.next_command(Nanos(0), &mut self.commons, usize::MAX)
    }

    fn reply(&mut self, reply: Reply) {
        let output = Output { session: ID, after: DependsOn::NOTHING, reply };
        self.connection.reply(output, &mut self.commons, Durable::default());
    }

    /// The bytes that reach the other end.
    fn hear(&mut self) -> String {
        self.connection.send(Durable::default(), usize::MAX, Nanos(0));
        let mut bytes = [0; 1024];
        let count = self.peer.read(&mut bytes).unwrap_or(0);
        String::from_utf8_lossy(&bytes[..count]).into_owned()
    }
}

fn elements() -> Reply {
    Reply::Elements(vec![Element::raw(b"x".as_slice().into())].into())
}

#[test]
fn wrong_protocols_are_closed_unheard() {
    const TLS: &str = "\x16\x03\x01\n";
    for (protocol, bytes, wrong) in [
        (Protocol::Beanstalkd, TLS, WrongProtocol::Tls),
        (Protocol::Beanstalkd, "*1\r\n$4\r\nPING\r\n", WrongProtocol::Redis),
        (Protocol::Redis, TLS, WrongProtocol::Tls),
        (Protocol::Redis, "GET / HTTP/1.1\r\nPING\r\n", WrongProtocol::Http),
        (Protocol::Amqp, "GET / HTTP/1.1\r\n", WrongProtocol::Http),
    ] {
        let mut line = Line::new(protocol);
        assert!(line.say(bytes).is_none());
        assert_eq!(line.connection.wrong_protocol(), Some(wrong), "{bytes}");
        assert_eq!(line.hear(), "", "{bytes}");
        assert!(line.connection.is_finished(), "{bytes}");
    }
    for bytes in [TLS, "AMQP\0\0\t\x01"] {
        let mut line = Line::new(Protocol::Amqp);
        assert!(line.say(&format!("{bytes}12345678")).is_none());
        assert!(line.connection.wrong_protocol().is_some());
        assert!(line.hear().starts_with("AMQP"), "its version is told");
    }
    let mut line = Line::new(Protocol::Redis);
    assert!(line.say("GET x\r\n").is_some());
    assert_eq!(line.connection.wrong_protocol(), None);
}

/// Like an element with a body that has to come back from the log: it is deleted when it is
/// read.
#[test]
fn late_answer_reaches_half_closed_client() {
    let mut line = Line::new(Protocol::Redis);
    assert!(line.say("LPOP l\r\nPING\r\n").is_some());
    line.half_close();
    assert!(line.next_command().is_none());
    assert_eq!(line.hear(), "");
    assert!(!line.connection.is_finished());
    line.reply(elements());
    assert!(line.next_command().is_some(), "what says that it has arrived");
    line.reply(Reply::Done);
    assert!(line.next_command().is_none());
    assert_eq!(line.hear(), "$1\r\nx\r\n+PONG\r\n");
    assert!(line.connection.is_finished());
}

/// They would be popped without a receiver.
#[test]
fn commands_behind_wait_dropped_on_hangup() {
    let mut line = Line::new(Protocol::Redis);
    assert!(line.say("BLPOP a 0\r\nLPOP b\r\n").is_some());
    line.half_close();
    assert!(line.next_command().is_some(), "the wait is ended");
    line.reply(Reply::TimedOut { link: None });
    assert!(line.next_command().is_none());
    assert_eq!(line.hear(), "*-1\r\n");
    assert!(line.connection.is_finished());
}

#[test]
fn wait_ends_at_once_after_hangup() {
    let mut line = Line::new(Protocol::Redis);
    assert!(line.say("LPOP l\r\nBLPOP a 0\r\nLPOP b\r\n").is_some());
    line.half_close();
    assert!(line.next_command().is_none());
    line.reply(Reply::Elements(vec![].into()));
    assert!(line.next_command().is_some(), "what ends at once");
    line.reply(Reply::TimedOut { link: None });
    assert!(line.next_command().is_none());
    assert!(line.hear().ends_with("*-1\r\n"));
    assert!(line.connection.is_finished());
}

#[test]
fn commands_behind_fulfilled_wait_are_done() {
    let mut line = Line::new(Protocol::Redis);
    assert!(line.say("BLPOP a 0\r\nPING\r\n").is_some());
    line.half_close();
    assert!(line.next_command().is_some(), "the wait is ended");
    line.reply(Reply::Popped {
        queue: model::QueueName::new("a").unwrap(),
        elements: vec![Element::raw(b"x".as_slice().into())],
    });
    while line.next_command().is_some() {
        line.reply(Reply::Done);
    }
    assert!(line.hear().ends_with("+PONG\r\n"));
    assert!(line.connection.is_finished());
}

#[test]
fn late_answer_is_given_before_stop() {
    let mut line = Line::new(Protocol::Redis);
    assert!(line.say("LPOP l\r\n").is_some());
    line.connection.abandon_input();
    assert!(line.next_command().is_none());
    assert_eq!(line.hear(), "");
    assert!(!line.connection.is_finished());
    line.reply(elements());
    assert!(line.next_command().is_none());
    assert_eq!(line.hear(), "$1\r\nx\r\n");
    assert!(line.connection.is_finished());
}

#[test]
fn stopping_server_ends_waits_silently() {
    let timed_out = Reply::TimedOut { link: None };
    let late = Reply::Late { ticket: 1, reply: Box::new(Reply::Refused(Refusal::StoreFull)) };
    for (protocol, asked, answer) in [
        (Protocol::Redis, "BLPOP l 0\r\n", timed_out.clone()),
        (Protocol::Beanstalkd, "reserve\r\n", timed_out),
        (Protocol::Beanstalkd, "put 0 0 1 1\r\nx\r\n", late),
    ] {
        let mut line = Line::new(protocol);
        assert!(line.say(asked).is_some());
        if let Reply::Late { ticket, .. } = answer {
            line.reply(Reply::Waits { ticket });
        }
        line.connection.abandon_input();
        assert!(line.next_command().is_some(), "the wait is ended");
        line.hear();
        assert!(!line.connection.is_finished(), "something may have come meanwhile");
        line.reply(answer);
        assert_eq!(line.hear(), "");
        assert!(line.connection.is_finished());
    }
}

#[test]
fn postponed_client_is_not_silent() {
    let mut line = Line::new(Protocol::Amqp);
    line.peer.write_all(&opening()).unwrap();
    line.receive();
    let command = line.next_command().expect("a consumer opens");
    line.connection.postpone(command);
    let minutes = |count: u64| Nanos::from_secs(60 * count);
    for count in 1..10 {
        line.connection.handle_timeout(minutes(count));
    }
    assert!(!line.connection.peer.wants_close(), "its command waits for the log");
    assert!(line.next_command().is_some());
    line.connection.handle_timeout(minutes(12));
    line.connection.handle_timeout(minutes(20));
    assert!(line.connection.peer.wants_close(), "it was heard last after nine minutes");
}

/// Its heartbeats lie unread meanwhile.
#[test]
fn paused_client_is_not_silent() {
    for is_paused in [true, false] {
        let mut line = Line::new(Protocol::Amqp);
        line.peer.write_all(&opening()).unwrap();
        line.receive();
        assert!(line.next_command().is_some(), "a consumer opens");
        line.be_user(if is_paused { &[(Quota::ByteRate, 1)] } else { &[] });
        let mut heartbeat = Vec::new();
        frame::write(&mut heartbeat, FrameKind::Amqp, 0, |_| ());
        line.peer.write_all(&heartbeat).unwrap();
        line.receive();
        assert_eq!(line.connection.paused_until.is_some(), is_paused);
        for count in 1..10 {
            line.connection.handle_timeout(Nanos::from_secs(60 * count));
        }
        assert_eq!(line.connection.peer.wants_close(), !is_paused, "the server does not listen");
    }
}

#[test]
fn higher_rate_ends_pause() {
    let mut line = Line::new(Protocol::Redis);
    line.be_user(&[(Quota::ByteRate, 1)]);
    assert!(line.say("LPOP l\r\n").is_none());
    line.connection
        .set_rights(rights(&[(Quota::ByteRate, 1), (Quota::Links, 9)]), &mut line.commons);
    assert!(line.next_command().is_none(), "its rate is the same");
    line.connection.set_rights(rights(&[(Quota::ByteRate, 1_000)]), &mut line.commons);
    assert!(line.next_command().is_some());
    line.reply(Reply::Done);
    assert!(line.say("LPOP l\r\n").is_some(), "what came before is forgotten");
}

#[test]
fn stopping_server_pauses_none() {
    let mut line = Line::new(Protocol::Redis);
    line.be_user(&[(Quota::ByteRate, 1), (Quota::CommandRate, 1)]);
    assert!(line.say("LPOP l\r\nLPOP l\r\n").is_none());
    line.peer.write_all(b"LPOP l\r\n").unwrap();
    line.connection.leave_seat();
    line.receive();
    line.connection.abandon_input();
    for _ in 0..3 {
        assert!(line.next_command().is_some());
        line.connection.charge_commands(Nanos(0), &Command::ListQueues);
        line.reply(Reply::Elements(vec![].into()));
    }
}

#[test]
fn paused_client_that_left_goes() {
    let mut line = Line::new(Protocol::Redis);
    line.be_user(&[(Quota::ByteRate, 1)]);
    assert!(line.say("LPOP l\r\n").is_none());
    let limits = Limits { idle: None, half_sent: None, ..Limits::default() };
    let paused = line.connection.paused_until;
    let long = Nanos::from_secs(3_600);
    line.connection.paused_until = Some(long);
    assert_eq!(line.connection.deadline(&limits, Nanos(0)), Some(long));
    line.connection.notice(false, false, true);
    assert_eq!(line.connection.deadline(&limits, Nanos(0)), Some(LEFT_SPAN_MAX));
    assert!(paused.is_some() && !line.connection.end_pause(LEFT_SPAN_MAX));
}

fn rights(quotas: &[(Quota, u64)]) -> Arc<Rights> {
    let mut all = Quotas::default();
    quotas.iter().for_each(|(quota, max)| all.set(*quota, Some(*max)));
    Arc::new(Rights::everything("ann").within(all))
}

/// A peer by AMQP opens all that it needs to receive.
fn opening() -> Vec<u8> {
    let mut out = ProtocolHeader::AMQP.encode().to_vec();
    let source = Source { address: Some("q".into()), ..Source::default() };
    let attach = Attach { source: Some(source), ..Attach::new("r", 0, Role::Receiver) };
    for performative in [
        Performative::Open(Box::new(Open::new("peer"))),
        Performative::Begin(Box::default()),
        Performative::Attach(Box::new(attach)),
    ] {
        frame::write(&mut out, FrameKind::Amqp, 0, |out| performative.encode(out));
    }
    out
}

#[test]
fn waiting_client_is_not_idle() {
    let idle = Duration::from_secs(1);
    let limits = Limits { idle: Some(idle), ..Limits::default() };
    let waiting = [
        (Protocol::Redis, "BLPOP l 0\r\n", Reply::TimedOut { link: None }),
        (Protocol::Beanstalkd, "reserve\r\n", Reply::TimedOut { link: None }),
    ];
    for (protocol, asked, answer) in waiting {
        let mut line = Line::new(protocol);
        let due = Some(nanos(idle));
        assert_eq!(line.connection.deadline(&limits, Nanos(0)), due, "it says nothing");
        assert!(line.say(asked).is_some());
        assert_eq!(line.connection.deadline(&limits, Nanos(0)), None, "{asked}");
        line.reply(answer);
        line.hear();
        assert_eq!(line.connection.deadline(&limits, Nanos(0)), due, "it is answered");
    }
    let mut line = Line::new(Protocol::Redis);
    assert!(line.say("SUBSCRIBE news\r\n").is_some());
    line.reply(Reply::Done);
    while line.next_command().is_some() {}
    assert!(line.hear().contains("subscribe"));
    assert_eq!(line.connection.deadline(&limits, Nanos(0)), None, "news may come any time");
}

#[test]
fn stranger_has_a_deadline() {
    for (protocol, said) in [
        (Protocol::Redis, "PING\r\n"),
        (Protocol::Beanstalkd, ""),
        (Protocol::Amqp, "AMQP\x03\x01\0\0"),
    ] {
        let line = Line::new_unopened(protocol);
        let offer = LoginOffer { password: true, ..LoginOffer::default() };
        let mut line =
            Line { connection: line.connection.with_offer(Some(offer), Nanos(0)), ..line };
        assert!(line.say(said).is_none(), "{protocol:?}");
        let limits = Limits { idle: None, half_sent: None, ..Limits::default() };
        let due = line.connection.deadline(&limits, Nanos::from_secs(3));
        assert_eq!(due, Some(LOGIN_SPAN_MAX), "{protocol:?}");
        assert!(line.connection.permit.is_silent(), "a stranger gives way to others");
    }
}

#[test]
fn reset_client_may_log_in_again() {
    let line = Line::new_unopened(Protocol::Redis);
    let offer = LoginOffer { password: true, ..LoginOffer::default() };
    let mut line = Line { connection: line.connection.with_offer(Some(offer), Nanos(0)), ..line };
    let limits = Limits { idle: None, half_sent: None, ..Limits::default() };
    assert!(line.say("AUTH orders secret\r\n").is_none());
    assert!(line.connection.poll_login().is_some());
    let answer =
        LoginAnswer::Granted { rights: Rights::everything("orders").into(), proof: Vec::new() };
    line.connection.handle_login(answer, &mut line.commons);
    assert_eq!(line.hear(), "+OK\r\n");
    assert_eq!(line.connection.deadline(&limits, Nanos::from_secs(1)), None);
    line.say("RESET\r\n");
    while line.next_command().is_some() {
        line.reply(Reply::Done);
    }
    assert!(line.hear().ends_with("+RESET\r\n"));
    let now = Nanos::from_secs(3_600);
    assert_eq!(line.connection.deadline(&limits, now), Some(now + LOGIN_SPAN_MAX));
}

#[test]
fn handshake_has_a_deadline() {
    let (mut peer, socket) = UnixStream::pair().unwrap();
    socket.set_nonblocking(true).unwrap();
    let mut commons = ProtocolState::idle();
    let client = Client::of_test(socket);
    let protocol = Peer::new(Protocol::Redis, ID, &client, &mut commons, Nanos(0));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(rustls::server::ResolvesServerCertUsingSni::new()));
    let transport = Transport::new(Some(Arc::new(config))).unwrap();
    let permit = ConnectionPermit::of_test();
    let mut connection =
        Connection::new(ID, client, transport, protocol, permit, Nanos::from_secs(5));
    let due = Some(Nanos::from_secs(15));
    let limits = Limits { idle: None, ..Limits::default() };
    assert_eq!(connection.deadline(&limits, Nanos::from_secs(5)), due);
    peer.write_all(b"\x16\x03\x01\x01\x00").unwrap();
    connection.notice(true, false, false);
    assert_eq!(connection.receive(&mut [0; 1024], 1024, Nanos::from_secs(9)), 5);
    assert_eq!(connection.deadline(&limits, Nanos::from_secs(9)), due, "no byte puts it off");
    assert!(!connection.is_finished());
    peer.write_all(&[b'x'; 256]).unwrap();
    connection.notice(true, false, false);
    connection.receive(&mut [0; 1024], 1024, Nanos::from_secs(9));
    assert!(connection.is_finished() && connection.tls_failure().is_some());
}

#[test]
fn half_sent_timeout_restarts_per_command() {
    let (mut peer, socket) = UnixStream::pair().unwrap();
    socket.set_nonblocking(true).unwrap();
    let mut commons = ProtocolState::idle();
    let id = SessionId(1);
    let client = Client::of_test(socket);
    let protocol = Peer::new(Protocol::Beanstalkd, id, &client, &mut commons, Nanos(0));
    let mut connection = Connection::new(
        id,
        client,
        Transport::Plain,
        protocol,
        ConnectionPermit::of_test(),
        Nanos(0),
    );
    let limits = Limits::default();
    let most = nanos(limits.half_sent.unwrap());
    let mut sends_at = |bytes: &[u8], seconds| {
        let now = Nanos::from_secs(seconds);
        peer.write_all(bytes).unwrap();
        connection.notice(true, false, false);
        connection.receive(&mut [0; 1024], 1024, now);
        while connection.next_command(now, &mut commons, usize::MAX).is_some() {
            let (session, after) = (SessionId(1), DependsOn::NOTHING);
            let reply = Reply::Done;
            connection.reply(Output { session, after, reply }, &mut commons, Durable::default());
        }
        connection.deadline(&limits, now)
    };
    let ends_from = |seconds| Some(Nanos::from_secs(seconds) + most);
    assert_eq!(sends_at(b"use ", 10), ends_from(10));
    assert_eq!(sends_at(b"a", 20), ends_from(10), "more of the same does not help");
    assert_eq!(sends_at(b"\r\n", 30), None);
    assert_eq!(sends_at(b"use b", 40), ends_from(40));
    assert_eq!(sends_at(b"\r\nuse c", 50), ends_from(50), "another is half sent now");
    assert_eq!(sends_at(b"\r\nlist-tube-used\r\nus", 60), ends_from(60));
    assert_eq!(sends_at(b"e d\r\n", 70), None);
}
