//! Clients behind proxies that speak version 2 of the PROXY protocol.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use crate::common::{Directory, memory, start};
use server::{AuditTarget, Config, Listen, Protocol, Running};

/// Far longer than anything takes that a test waits for.
const PATIENCE: Duration = Duration::from_secs(60);

const BARE: &[u8] = b"AMQP\0\x01\0\0";
const QUEUES: &[u8] = b"GET /queues HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// The words of a client of each protocol, and the answer that it hears.
fn talk(protocol: Protocol) -> (&'static [u8], &'static [u8]) {
    match protocol {
        Protocol::Amqp => (BARE, BARE),
        Protocol::Beanstalkd => (b"list-tube-used\r\n", b"USING default\r\n"),
        Protocol::Redis => (b"PING\r\n", b"+PONG\r\n"),
        Protocol::Http => (QUEUES, b"HTTP/1.1 200 OK\r\n"),
    }
}

/// A header of TCP over IPv4 from this address.
fn header(client: [u8; 4], extensions: &[u8]) -> Vec<u8> {
    let mut block = client.to_vec();
    block.extend([192, 0, 2, 1, 0x30, 0x39, 0x1f, 0x90]);
    block.extend(extensions);
    with_command(0x21, 0x11, &block)
}

fn with_command(command: u8, family: u8, block: &[u8]) -> Vec<u8> {
    let mut bytes = b"\r\n\r\n\0\r\nQUIT\n".to_vec();
    bytes.extend([command, family]);
    bytes.extend(u16::try_from(block.len()).unwrap().to_be_bytes());
    bytes.extend(block);
    bytes
}

/// Listeners of all protocols whose proxies are at these addresses.
fn behind(proxies: &str, from: &[&str]) -> Config {
    let listen = |protocol| {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut listen = Listen::tcp(protocol, address);
        listen.admission.proxies.push(proxies.parse().unwrap());
        listen.admission.from = from.iter().map(|text| text.parse().unwrap()).collect();
        listen
    };
    Config { listen: Protocol::ALL.map(listen).to_vec(), ..memory() }
}

fn connect(server: &Running, protocol: Protocol) -> TcpStream {
    let mut all = server.addresses().iter();
    let address = all.find(|it| it.protocol == protocol).and_then(|it| it.tcp()).unwrap();
    let socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.set_nodelay(true).unwrap();
    socket
}

fn hear(socket: &mut TcpStream, heard: &[u8]) {
    let mut answer = vec![0; heard.len()];
    socket.read_exact(&mut answer).unwrap();
    assert_eq!(String::from_utf8_lossy(&answer), String::from_utf8_lossy(heard));
}

/// All that comes until the end; a reset ends it too.
fn rest(socket: &mut TcpStream) -> Vec<u8> {
    let mut rest = Vec::new();
    let _ = socket.read_to_end(&mut rest);
    rest
}

#[test]
fn headers_come_before_the_protocol() {
    let server = start(behind("127.0.0.1", &[]));
    for protocol in Protocol::ALL {
        let (said, heard) = talk(protocol);
        // At once, and in pieces.
        let mut socket = connect(&server, protocol);
        socket.write_all(&[&header([10, 0, 0, 7], &[4, 0, 1, 0])[..], said].concat()).unwrap();
        hear(&mut socket, heard);
        let mut socket = connect(&server, protocol);
        for byte in header([10, 0, 0, 7], &[]) {
            socket.write_all(&[byte]).unwrap();
        }
        socket.write_all(said).unwrap();
        hear(&mut socket, heard);
        // A proxy's own check, and a client of no address.
        for (command, family) in [(0x20, 0), (0x21, 0), (0x20, 0x11)] {
            let mut socket = connect(&server, protocol);
            let header = with_command(command, family, &[0; 12]);
            socket.write_all(&[&header[..], said].concat()).unwrap();
            hear(&mut socket, heard);
        }
    }
}

#[test]
fn header_faults_close_connections() {
    let server = start(behind("127.0.0.1", &[]));
    let too_long = [&with_command(0x21, 0x11, &[])[..14], &[0xff, 0xff]].concat();
    let no_crc = header([10, 0, 0, 7], &[3, 0, 4, 1, 2, 3, 4]);
    let mut count = 0;
    for protocol in Protocol::ALL {
        let (said, _) = talk(protocol);
        let version_1 = b"PROXY TCP4 10.0.0.7 192.0.2.1 5 6\r\n";
        for wrong in [said, version_1, &too_long, &no_crc, &with_command(0x21, 0x11, &[0; 11])] {
            let mut socket = connect(&server, protocol);
            socket.write_all(wrong).unwrap();
            assert_eq!(rest(&mut socket), b"", "{protocol:?} {wrong:?}");
            count += 1;
        }
        // A check that only connects is no fault.
        let mut socket = connect(&server, protocol);
        socket.shutdown(Shutdown::Write).unwrap();
        assert_eq!(rest(&mut socket), b"");
    }
    assert_eq!(server.counters().turned_away, count);
}

#[test]
fn late_headers_close_connections() {
    let server = start(behind("127.0.0.1", &[]));
    let begun = Instant::now();
    let half = &header([10, 0, 0, 7], &[])[..20];
    let mut all = Protocol::ALL.map(|protocol| connect(&server, protocol));
    all.iter_mut().for_each(|socket| socket.write_all(half).unwrap());
    all.iter_mut().for_each(|socket| assert_eq!(rest(socket), b""));
    let span = begun.elapsed();
    assert!(span >= Duration::from_secs(9) && span < Duration::from_secs(30), "{span:?}");
    assert_eq!(server.counters().connections, 0);
    assert_eq!(server.counters().turned_away, 4);
}

#[test]
fn foreign_headers_are_garbage() {
    let server = start(behind("127.0.0.9", &[]));
    for protocol in Protocol::ALL {
        let (said, heard) = talk(protocol);
        let mut socket = connect(&server, protocol);
        socket.write_all(said).unwrap();
        hear(&mut socket, heard);
        let mut socket = connect(&server, protocol);
        socket.write_all(&[&header([10, 0, 0, 7], &[])[..], said].concat()).unwrap();
        let rest = rest(&mut socket);
        assert!(!rest.starts_with(heard), "{protocol:?} {:?}", String::from_utf8_lossy(&rest));
    }
}

#[test]
fn networks_judge_proxied_clients() {
    let server = start(behind("127.0.0.1", &["10.0.0.0/30"]));
    for protocol in Protocol::ALL {
        let (said, heard) = talk(protocol);
        let ask = |header: &[u8]| {
            let mut socket = connect(&server, protocol);
            socket.write_all(&[header, said].concat()).unwrap();
            socket
        };
        hear(&mut ask(&header([10, 0, 0, 3], &[])), heard);
        assert_eq!(rest(&mut ask(&header([10, 0, 0, 4], &[]))), b"");
        hear(&mut ask(&with_command(0x20, 0, &[])), heard);
        assert_eq!(rest(&mut ask(&with_command(0x21, 0, &[]))), b"");
    }
}

#[test]
fn clients_are_known_by_told_addresses() {
    let directory = Directory::new("proxies-audit");
    let file = directory.0.join("users.toml");
    std::fs::write(&file, "[users.jobs]\nallow = [\"send,look,operate *\"]\n").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let audit = directory.0.join("audit.jsonl");
    let mut config = behind("127.0.0.1", &[]);
    for listen in &mut config.listen {
        listen.admission.user = Some("jobs".into());
    }
    let audit_log = Some(AuditTarget::File(audit.clone()));
    let server = start(Config { users: Some(file), audit: audit_log, ..config });
    let mut redis = connect(&server, Protocol::Redis);
    let said = [&header([10, 0, 0, 7], &[])[..], b"CLIENT LIST\r\n"].concat();
    redis.write_all(&said).unwrap();
    let mut answer = [0; 128];
    let count = redis.read(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer[..count]);
    assert!(answer.contains("addr=10.0.0.7:12345 laddr=192.0.2.1:8080"), "{answer}");
    let mut http = connect(&server, Protocol::Http);
    let purge = b"POST /queues/a/purge HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n";
    http.write_all(&[&header([10, 0, 0, 8], &[])[..], purge].concat()).unwrap();
    hear(&mut http, b"HTTP/1.1 403 Forbidden\r\n");
    server.shutdown().unwrap();
    let told = std::fs::read_to_string(audit).unwrap();
    assert!(told.contains("\"from\":\"10.0.0.7:12345\""), "{told}");
    assert!(told.contains("\"from\":\"10.0.0.8:12345\""), "{told}");
}

/// Over HTTP a client elsewhere is not one of this machine, though its proxy is.
#[test]
fn proxied_http_clients_are_elsewhere() {
    let server = start(behind("127.0.0.1", &[]));
    for (client, status) in [([127, 0, 0, 1], "204"), ([10, 0, 0, 7], "403")] {
        let mut http = connect(&server, Protocol::Http);
        let lease = b"GET /queues/a/messages?lease=1s HTTP/1.1\r\nHost: localhost\r\n\r\n";
        http.write_all(&[&header(client, &[])[..], lease].concat()).unwrap();
        hear(&mut http, format!("HTTP/1.1 {status}").as_bytes());
    }
}

/// A proxy has more clients than one client may have connections that have not logged in.
#[test]
fn proxies_are_no_crowd() {
    let mut config = behind("127.0.0.1", &[]);
    config.limits.connections = 2_000;
    let directory = Directory::new("proxies-crowd");
    let file = directory.0.join("users.toml");
    std::fs::write(&file, "[users.jobs]\n").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let server = start(Config { users: Some(file), ..config });
    let mut all: Vec<_> = (0..600_u16)
        .map(|number| {
            let mut socket = connect(&server, Protocol::Redis);
            let [high, low] = number.to_be_bytes();
            socket.write_all(&header([10, 1, high, low], &[])).unwrap();
            socket
        })
        .collect();
    for socket in &mut all {
        socket.write_all(b"PING\r\n").unwrap();
        hear(socket, b"-NOAUTH");
    }
}
