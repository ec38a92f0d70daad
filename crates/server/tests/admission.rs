//! The clients that listeners take, and as whom: users of listeners, networks, processes.

use std::io::Read as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::MetadataExt as _;

use crate::common::line::Line;
use crate::common::{Directory, memory, start, users_file};
use server::{
    Address, AuditTarget, Config, Listen, ListenerFault, Protocol, Server, StartError, UnixSocket,
};

/// A listener of each protocol, whose clients are this user.
fn of_user(user: &str) -> Vec<Listen> {
    let listen = |protocol| {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut listen = Listen::tcp(protocol, address);
        listen.admission.user = Some(user.into());
        listen
    };
    Protocol::ALL.map(listen).to_vec()
}

const SASL: &[u8] = b"AMQP\x03\x01\0\0";
const BARE: &[u8] = b"AMQP\0\x01\0\0";
const QUEUES: &str = "GET /queues HTTP/1.1\r\nHost: localhost\r\n\r\n";

#[test]
fn listener_user_needs_no_login() {
    let directory = Directory::new("admission-user");
    let text = "[users.jobs]\nallow = [\"send,look mine\"]\n";
    let users = Some(users_file(&directory, text));
    let server = start(Config { listen: of_user("jobs"), users, ..memory() });
    let mut redis = Line::to(&server, Protocol::Redis);
    redis.ask("ACL WHOAMI\r\nLPUSH mine x\r\n", "$4\r\njobs\r\n:1\r\n");
    redis.ask("LPUSH other x\r\n", "-NOPERM user jobs may not send here");
    let mut redis = Line::to(&server, Protocol::Redis);
    redis.ask("AUTH jobs x\r\n", "-ERR this listener has a user of its own");
    let mut jobs = Line::to(&server, Protocol::Beanstalkd);
    jobs.ask("use mine\r\nuse other\r\n", "USING mine\r\nDENIED\r\n");
    let mut jobs = Line::to(&server, Protocol::Beanstalkd);
    jobs.ask("auth jobs secret\r\n", "DENIED\r\n");
    Line::to(&server, Protocol::Amqp).ask(BARE, BARE);
    let mut amqp = Line::to(&server, Protocol::Amqp);
    amqp.ask(SASL, SASL);
    Line::to(&server, Protocol::Http).ask(QUEUES, "HTTP/1.1 200 OK\r\n");
    let header = QUEUES.replace("\r\n\r\n", "\r\nAuthorization: Bearer x\r\n\r\n");
    Line::to(&server, Protocol::Http).ask(header, "HTTP/1.1 403 Forbidden\r\n");
}

#[test]
fn listener_user_may_come_and_go() {
    let directory = Directory::new("admission-gone");
    let jobs = "[users.jobs]\nallow = [\"send,look *\"]\n";
    let file = users_file(&directory, jobs);
    let audit = directory.0.join("audit.jsonl");
    let config = Config {
        listen: of_user("jobs"),
        users: Some(file),
        audit: Some(AuditTarget::File(audit.clone())),
        ..memory()
    };
    let server = start(config);
    let mut open = Line::to(&server, Protocol::Redis);
    open.ask("LPUSH l x\r\n", ":1\r\n");
    for text in [format!("{jobs}disabled = true\n"), String::new()] {
        users_file(&directory, &text);
        server.remote().reload();
        assert!(Line::to(&server, Protocol::Redis).rest().starts_with("-NOAUTH the user of this"));
        assert_eq!(Line::to(&server, Protocol::Beanstalkd).rest(), "DENIED\r\n");
        let mut amqp = Line::to(&server, Protocol::Amqp);
        amqp.ask(BARE, SASL);
        assert_eq!(amqp.rest(), "");
        Line::to(&server, Protocol::Http).ask(QUEUES, "HTTP/1.1 401 Unauthorized\r\n");
    }
    assert_eq!(open.rest(), "", "it ended with its user");
    assert_eq!(server.counters().turned_away, 8);
    users_file(&directory, jobs);
    server.remote().reload();
    Line::to(&server, Protocol::Redis).ask("LLEN l\r\n", ":1\r\n");
    server.shutdown().unwrap();
    let told = std::fs::read_to_string(audit).unwrap();
    assert!(told.contains("\"how\":\"listener\""), "{told}");
    assert!(told.contains("\"outcome\":\"refused\",\"user\":\"jobs\""), "{told}");
}

#[test]
fn listener_user_needs_users() {
    let error = Server::start(Config { listen: of_user("jobs"), ..memory() }).err().unwrap();
    assert!(
        matches!(error, StartError::Listener(ListenerFault::NoUsers { .. })) && error.is_misuse(),
        "{error}"
    );
    assert!(error.to_string().contains("--users"), "{error}");
}

#[test]
fn exposed_listener_user_needs_networks() {
    let directory = Directory::new("admission-exposed");
    let file = users_file(&directory, "[users.jobs]\n");
    let exposed = |by_tls, from: &[&str], insecure| {
        let address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let address = Address::Tcp(vec![address]);
        let mut listen = Listen::at(Protocol::Redis, by_tls, address);
        listen.insecure = insecure;
        listen.admission.user = Some("jobs".into());
        listen.admission.from = from.iter().map(|text| text.parse().unwrap()).collect();
        Config { listen: vec![listen], users: Some(file.clone()), ..memory() }
    };
    let refusal = |config| Server::start(config).err().unwrap();
    let error = refusal(exposed(false, &["10.0.0.0/8"], false));
    assert!(matches!(error, StartError::Insecure { .. }), "{error}");
    let error = refusal(exposed(true, &[], false));
    assert!(matches!(error, StartError::Listener(ListenerFault::OpenUser { .. })), "{error}");
    assert!(error.is_misuse());
    assert!(error.to_string().contains("from=10.0.0.0/24"), "{error}");
    // It has all that it needs but a certificate.
    let error = refusal(exposed(true, &["10.0.0.0/8"], false));
    assert!(matches!(error, StartError::NoCertificate { .. }), "{error}");
    start(exposed(false, &[], true)).shutdown().unwrap();
}

#[test]
fn foreign_addresses_are_closed() {
    let from = |text: &str| {
        let listen = |protocol| {
            let mut listen = Listen::tcp(protocol, SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
            listen.admission.from.push(text.parse().unwrap());
            listen
        };
        Config { listen: Protocol::ALL.map(listen).to_vec(), ..memory() }
    };
    let server = start(from("127.0.0.0/8"));
    Line::to(&server, Protocol::Redis).ask("PING\r\n", "+PONG\r\n");
    Line::to(&server, Protocol::Http).ask(QUEUES, "HTTP/1.1 200 OK\r\n");
    let server = start(from("127.0.0.2"));
    for protocol in Protocol::ALL {
        assert_eq!(Line::to(&server, protocol).rest(), "", "{protocol:?}");
    }
    assert_eq!((server.counters().turned_away, server.counters().connections), (4, 0));
}

#[test]
fn networks_are_not_for_sockets() {
    let directory = Directory::new("admission-unix");
    let mut listen = unix(&directory, Protocol::Redis);
    listen.admission.from.push("10.0.0.0/8".parse().unwrap());
    let error = Server::start(Config { listen: vec![listen], ..memory() }).err().unwrap();
    let told = matches!(error, StartError::Listener(ListenerFault::AddressesOfUnix { .. }));
    assert!(told && error.is_misuse(), "{error}");
}

fn unix(directory: &Directory, protocol: Protocol) -> Listen {
    let path = directory.0.join(protocol.name());
    let socket = UnixSocket { path, mode: 0o600, group: None };
    Listen::at(protocol, false, Address::Unix(socket))
}

#[test]
fn processes_are_users_on_sockets() {
    let directory = Directory::new("admission-process");
    let own = std::fs::metadata(&directory.0).unwrap().uid();
    let text = |number: u32| {
        let rules = "allow = [\"send,look,manage *\"]";
        format!("[users.web]\nunix-users = [\"{number}\"]\n{rules}\n[users.other]\n{rules}\n")
    };
    let file = users_file(&directory, &text(own));
    let listen = Protocol::ALL.map(|protocol| unix(&directory, protocol)).to_vec();
    let server = start(Config { listen, users: Some(file), ..memory() });
    Line::to(&server, Protocol::Redis).ask("ACL WHOAMI\r\n", "$3\r\nweb\r\n");
    let mut jobs = Line::to(&server, Protocol::Beanstalkd);
    jobs.ask("use mine\r\n", "USING mine\r\n");
    Line::to(&server, Protocol::Http).ask(QUEUES, "HTTP/1.1 200 OK\r\n");
    let mut amqp = Line::to(&server, Protocol::Amqp);
    amqp.ask(SASL, SASL);
    let mut frame = [0; 128];
    let count = amqp.0.read(&mut frame).unwrap();
    assert!(String::from_utf8_lossy(&frame[..count]).contains("EXTERNAL"), "{frame:?}");
    let mut open = Line::to(&server, Protocol::Redis);
    open.ask("LPUSH l x\r\n", ":1\r\n");
    // Another number from now on: the open connection stays its user's, new ones have to log in.
    users_file(&directory, &text(own + 1));
    server.remote().reload();
    open.ask("LLEN l\r\n", ":1\r\n");
    Line::to(&server, Protocol::Redis).ask("PING\r\n", "-NOAUTH");
    Line::to(&server, Protocol::Http).ask(QUEUES, "HTTP/1.1 401 Unauthorized\r\n");
    // An unknown name leaves the users as they were.
    users_file(&directory, &text(own).replace(&format!("\"{own}\""), "\"no-such-user\""));
    server.remote().reload();
    Line::to(&server, Protocol::Redis).ask("PING\r\n", "-NOAUTH");
}
