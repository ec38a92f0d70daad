//! Addresses on which a server listens, and those on which it does not.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;

use crate::common::{Directory, memory, start};
use server::{
    Address, Config, Endpoint, Listen, PassedFault, PassedSocket, Protocol, Server, StartError,
    UnixSocket,
};

fn listening(listen: Vec<Listen>) -> Config {
    Config { listen, ..memory() }
}

fn unix(protocol: Protocol, directory: &Directory, name: &str) -> Listen {
    let socket = UnixSocket { path: directory.0.join(name), mode: 0o600, group: None };
    Listen::at(protocol, false, Address::Unix(socket))
}

fn refusal(config: Config) -> StartError {
    Server::start(config).err().expect("it does not start")
}

#[test]
fn exposed_listeners_need_a_word() {
    for protocol in Protocol::ALL {
        for ip in [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()] {
            let mut listen = Listen::tcp(protocol, SocketAddr::new(ip, 0));
            let error = refusal(listening(vec![listen.clone()]));
            assert!(matches!(error, StartError::Insecure { .. }) && error.is_misuse(), "{error}");
            let text = error.to_string();
            assert!(text.contains("everybody") && text.contains("--insecure-listen"), "{text}");
            assert!(text.contains(protocol.name()), "{text}");
            listen.insecure = true;
            start(listening(vec![listen.clone()])).shutdown().unwrap();
            listen.insecure = false;
            let all = Config { insecure: true, ..listening(vec![listen]) };
            start(all).shutdown().unwrap();
        }
    }
    let loopback = Listen::loopback(Protocol::Redis, 0);
    let exposed = Listen::tcp(Protocol::Amqp, SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)));
    let error = refusal(listening(vec![loopback, exposed]));
    assert!(error.to_string().starts_with("amqp would listen on 0.0.0.0:0"), "{error}");
}

#[test]
fn localhost_listens_on_both_addresses() {
    let server = start(listening(vec![Listen::loopback(Protocol::Redis, 0)]));
    let addresses: Vec<_> = server.addresses().iter().filter_map(|it| it.tcp()).collect();
    for address in &addresses {
        assert_eq!(address.port(), addresses[0].port());
        assert_eq!(ping(TcpStream::connect(address).unwrap()), "+PONG\r\n");
    }
    assert_eq!(addresses.len(), if has_ipv6() { 2 } else { 1 });
}

fn has_ipv6() -> bool {
    TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok()
}

fn ping(mut socket: impl std::io::Read + std::io::Write) -> String {
    socket.write_all(b"PING\r\nQUIT\r\n").unwrap();
    let mut answer = [0; 7];
    socket.read_exact(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn foreign_addresses_are_left_out() {
    let here = "127.0.0.1:0".parse().unwrap();
    let elsewhere = "192.0.2.1:0".parse().unwrap();
    let name = |addresses: Vec<SocketAddr>| {
        let listen = Listen::tcp(Protocol::Redis, here);
        vec![Listen { address: Address::Tcp(addresses), insecure: true, ..listen }]
    };
    let server = start(listening(name(vec![elsewhere, here])));
    assert_eq!(server.addresses().len(), 1);
    let error = refusal(listening(name(vec![elsewhere]))).to_string();
    assert!(error.contains("192.0.2.1") && error.contains("of this machine"), "{error}");
}

#[test]
fn wildcard_addresses_share_a_port() {
    if !has_ipv6() {
        return;
    }
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let listen = |ip| Listen::tcp(Protocol::Redis, SocketAddr::new(ip, free));
    let (four, six) = (listen(Ipv4Addr::UNSPECIFIED.into()), listen(Ipv6Addr::UNSPECIFIED.into()));
    for listen in [vec![four.clone(), six.clone()], vec![six.clone(), four.clone()], vec![six]] {
        let server = start(Config { insecure: true, ..listening(listen) });
        ping(TcpStream::connect((Ipv4Addr::LOCALHOST, free)).unwrap());
        ping(TcpStream::connect((Ipv6Addr::LOCALHOST, free)).unwrap());
        server.shutdown().unwrap();
    }
    let error = refusal(Config { insecure: true, ..listening(vec![four.clone(), four]) });
    assert!(error.is_misuse() && error.to_string().contains("two listeners"), "{error}");
}

#[test]
fn unix_sockets_are_served() {
    let directory = Directory::new("sockets");
    let listen: Vec<_> =
        Protocol::ALL.into_iter().map(|it| unix(it, &directory, it.name())).collect();
    let server = start(listening(listen.clone()));
    let path = |protocol: Protocol| directory.0.join(protocol.name());
    let places: Vec<_> = server.addresses().iter().map(|it| it.endpoint.clone()).collect();
    assert_eq!(places, Protocol::ALL.map(|it| Endpoint::Unix(path(it))));
    for protocol in Protocol::ALL {
        let mode = std::fs::metadata(path(protocol)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    assert_eq!(ping(UnixStream::connect(path(Protocol::Redis)).unwrap()), "+PONG\r\n");
    let mut jobs = UnixStream::connect(path(Protocol::Beanstalkd)).unwrap();
    jobs.write_all(b"put 0 0 60 1\r\nx\r\nquit\r\n").unwrap();
    let mut answer = String::new();
    jobs.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "INSERTED 1\r\n");
    let mut amqp = UnixStream::connect(path(Protocol::Amqp)).unwrap();
    amqp.write_all(b"AMQP\0\x01\0\0").unwrap();
    let mut header = [0; 8];
    amqp.read_exact(&mut header).unwrap();
    assert_eq!(&header, b"AMQP\0\x01\0\0");
    let mut http = UnixStream::connect(path(Protocol::Http)).unwrap();
    http.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .unwrap();
    answer.clear();
    http.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    let error = refusal(listening(listen)).to_string();
    assert!(error.contains("unix:") && error.contains("another path"), "{error}");
    server.shutdown().unwrap();
    assert!(Protocol::ALL.iter().all(|it| !path(*it).exists()), "removed at the end");
}

/// A listener that takes the sockets of this name.
fn asks_for(name: &str) -> Listen {
    let address = Address::Passed { name: name.into(), sockets: Vec::new() };
    Listen::at(Protocol::Redis, false, address)
}

fn passed(name: &str, address: impl std::net::ToSocketAddrs) -> PassedSocket {
    PassedSocket::new(name, TcpListener::bind(address).unwrap()).unwrap()
}

#[test]
fn passed_sockets_serve_early_clients() {
    let directory = Directory::new("passed");
    std::fs::create_dir_all(&directory.0).unwrap();
    let path = directory.0.join("s");
    let unix = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let all = vec![
        passed("cache", (Ipv4Addr::LOCALHOST, 0)),
        PassedSocket::new("cache", unix).unwrap(),
        passed("other", (Ipv4Addr::LOCALHOST, 0)),
    ];
    let address = |socket: &PassedSocket| socket.endpoint().tcp().unwrap();
    let early = TcpStream::connect(address(&all[0])).unwrap();
    let places: Vec<_> = all.iter().map(|socket| socket.endpoint().clone()).collect();
    let listen = vec![asks_for("cache"), asks_for("other")];
    let server = start(Config { passed: all, ..listening(listen) });
    let found: Vec<_> = server.addresses().iter().map(|it| it.endpoint.clone()).collect();
    assert_eq!(found, places);
    assert_eq!(ping(early), "+PONG\r\n");
    assert_eq!(ping(UnixStream::connect(&path).unwrap()), "+PONG\r\n");
    assert_eq!(ping(TcpStream::connect(places[2].tcp().unwrap()).unwrap()), "+PONG\r\n");
    server.shutdown().unwrap();
    assert!(path.exists(), "the file is not the server's");
}

#[test]
fn passed_sockets_fit_their_listeners() {
    let local = || passed("cache", (Ipv4Addr::LOCALHOST, 0));
    let refused = |listen: Vec<Listen>, passed: Vec<PassedSocket>| {
        let error = refusal(Config { passed, ..listening(listen) });
        assert!(error.is_misuse(), "{error}");
        error
    };
    let fault = |listen, passed| match refused(listen, passed) {
        StartError::Passed(fault) => fault,
        other => panic!("{other}"),
    };
    let absent = fault(vec![asks_for("x")], vec![local()]);
    assert!(absent.to_string().contains("cache was passed"), "{absent}");
    let none = fault(vec![asks_for("x")], Vec::new());
    assert!(none.to_string().contains("no socket was passed"), "{none}");
    let twice = fault(vec![asks_for("cache"), asks_for("cache")], vec![local()]);
    assert!(matches!(twice, PassedFault::Absent { .. }), "{twice}");
    let left = fault(vec![Listen::loopback(Protocol::Redis, 0)], vec![local()]);
    assert!(left.to_string().contains("PROTOCOL=systemd:cache"), "{left}");
    let open = refused(vec![asks_for("open")], vec![passed("open", (Ipv4Addr::UNSPECIFIED, 0))]);
    assert!(matches!(open, StartError::Insecure { .. }), "{open}");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    assert!(PassedSocket::new("x", client).is_none(), "it does not listen");
}
