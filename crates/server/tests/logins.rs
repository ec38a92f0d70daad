//! Clients of a broker that has users: each protocol, what strangers may do, and files that change.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

mod common;

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use access::Verifier;
use amqp::frame::{self, FrameKind};
use amqp::sasl::SaslBody;
use amqp::types::Symbols;
use common::{Directory, memory, start};
use model::{ScramHash, Secret};
use server::{Config, Listen, Protocol, Running, Server, StartError, UsersError};

/// Far longer than anything takes that a test waits for.
const PATIENCE: Duration = Duration::from_secs(60);

/// A file with users of these names and passwords, readable by its owner only.
fn users(directory: &Directory, all: &[(&str, &str)]) -> PathBuf {
    let user = |(name, password): &(&str, &str)| {
        let password = Secret::from(password.as_bytes());
        let [one, other] = [ScramHash::Sha256, ScramHash::Sha512]
            .map(|hash| Verifier::derive(hash, &password, b"salt of a test").text());
        format!("[users.{name}]\nscram-sha-256 = \"{one}\"\nscram-sha-512 = \"{other}\"\n")
    };
    let file = directory.0.join("users.toml");
    std::fs::write(&file, all.iter().map(user).collect::<String>()).unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    file
}

fn listen(protocol: Protocol) -> Listen {
    Listen::tcp(protocol, SocketAddr::from(([127, 0, 0, 1], 0)))
}

fn with_users(file: PathBuf) -> Config {
    Config { listen: Protocol::ALL.map(listen).to_vec(), users: Some(file), ..memory() }
}

/// A client by raw bytes.
struct Line(TcpStream);

impl Line {
    fn to(server: &Running, protocol: Protocol) -> Self {
        let mut all = server.addresses().iter();
        let address = all.find(|it| it.protocol == protocol).and_then(|it| it.tcp()).unwrap();
        let socket = TcpStream::connect(address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(socket)
    }

    fn ask(&mut self, said: impl AsRef<[u8]>, heard: impl AsRef<[u8]>) {
        self.0.write_all(said.as_ref()).unwrap();
        self.hear(heard);
    }

    fn hear(&mut self, heard: impl AsRef<[u8]>) {
        let heard = heard.as_ref();
        let mut answer = vec![0; heard.len()];
        self.0.read_exact(&mut answer).unwrap();
        assert_eq!(String::from_utf8_lossy(&answer), String::from_utf8_lossy(heard));
    }

    /// Nothing more comes.
    fn end(mut self) {
        let mut rest = Vec::new();
        // A reset ends it too.
        let _ = self.0.read_to_end(&mut rest);
        assert!(rest.is_empty(), "{:?}", String::from_utf8_lossy(&rest));
    }
}

#[test]
fn redis_clients_log_in() {
    let directory = Directory::new("logins-redis");
    let server = start(with_users(users(&directory, &[("orders", "correct horse")])));
    let mut line = Line::to(&server, Protocol::Redis);
    line.ask("PING\r\n", "-NOAUTH Authentication required.\r\n");
    line.ask("LPUSH l 1\r\n", "-NOAUTH Authentication required.\r\n");
    let good = "*3\r\n$4\r\nAUTH\r\n$6\r\norders\r\n$13\r\ncorrect horse\r\n";
    let mut line = Line::to(&server, Protocol::Redis);
    // Commands behind it wait for the login.
    line.ask(format!("{good}LPUSH l 1\r\nACL WHOAMI\r\n"), "+OK\r\n:1\r\n$6\r\norders\r\n");
    line.ask("RESET\r\nPING\r\n", "+RESET\r\n-NOAUTH Authentication required.\r\n");
    let wrong = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
    line.ask("AUTH orders wrong-password\r\n", wrong);
}

/// As after the restart of a broker: all come at once.
#[test]
fn hundreds_log_in_at_once() {
    let directory = Directory::new("logins-many");
    let server = start(with_users(users(&directory, &[("orders", "correct-horse")])));
    let log_in = "AUTH orders correct-horse\r\n";
    Line::to(&server, Protocol::Redis).ask(log_in, "+OK\r\n");
    let mut lines: Vec<_> = (0..400).map(|_| Line::to(&server, Protocol::Redis)).collect();
    lines.iter_mut().for_each(|line| line.0.write_all(log_in.as_bytes()).unwrap());
    lines.iter_mut().for_each(|line| line.hear("+OK\r\n"));
}

#[test]
fn beanstalkd_clients_log_in() {
    let directory = Directory::new("logins-beanstalkd");
    let server = start(with_users(users(&directory, &[("orders", "correct-horse")])));
    let mut line = Line::to(&server, Protocol::Beanstalkd);
    line.ask("put 0 0 60 2\r\n", "DENIED\r\n");
    line.end();
    let mut line = Line::to(&server, Protocol::Beanstalkd);
    line.ask("auth orders correct-horse\r\nput 0 0 60 2\r\nhi\r\n", "OK\r\nINSERTED 1\r\n");
}

#[test]
fn amqp_peers_log_in() {
    const HEADER: &[u8] = b"AMQP\x03\x01\0\0";
    let directory = Directory::new("logins-amqp");
    let server = start(with_users(users(&directory, &[("orders", "correct-horse")])));
    let sasl = |body: SaslBody<'_>| {
        let mut out = Vec::new();
        frame::write(&mut out, FrameKind::Sasl, 0, |out| body.encode(out));
        out
    };
    let offered = ["SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"];
    for (password, code, is_good) in [("correct-horse", 0, true), ("wrong-password", 1, false)] {
        let mut line = Line::to(&server, Protocol::Amqp);
        line.ask(HEADER, HEADER);
        line.hear(sasl(SaslBody::Mechanisms(Symbols::from(offered))));
        let response = format!("\0orders\0{password}");
        let init = SaslBody::Init {
            mechanism: "PLAIN",
            initial_response: Some(response.as_bytes()),
            hostname: None,
        };
        line.0.write_all(&sasl(init)).unwrap();
        let code = if code == 0 { amqp::sasl::SaslCode::Ok } else { amqp::sasl::SaslCode::Auth };
        line.hear(sasl(SaslBody::Outcome { code, additional_data: None }));
        if is_good {
            line.ask(b"AMQP\0\x01\0\0", b"AMQP\0\x01\0\0");
        } else {
            line.end();
        }
    }
    // Without a layer of SASL the peer names no user.
    let mut line = Line::to(&server, Protocol::Amqp);
    line.ask(b"AMQP\0\x01\0\0", HEADER);
    line.end();
}

#[test]
fn http_clients_log_in() {
    let directory = Directory::new("logins-http");
    let server = start(with_users(users(&directory, &[("orders", "correct-horse")])));
    let get =
        |path: &str, login: &str| format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{login}\r\n");
    let mut line = Line::to(&server, Protocol::Http);
    line.ask(get("/queues", ""), "HTTP/1.1 401 Unauthorized\r\n");
    let mut line = Line::to(&server, Protocol::Http);
    line.ask(get("/health", ""), "HTTP/1.1 200 OK\r\n");
    // `orders:correct-horse`
    let good = "Authorization: Basic b3JkZXJzOmNvcnJlY3QtaG9yc2U=\r\n";
    let mut line = Line::to(&server, Protocol::Http);
    line.ask(get("/queues", good), "HTTP/1.1 200 OK\r\n");
    let wrong = "Authorization: Basic b3JkZXJzOndyb25nLXBhc3N3b3Jk\r\n";
    let mut line = Line::to(&server, Protocol::Http);
    line.ask(get("/queues", wrong), "HTTP/1.1 401 Unauthorized\r\n");
}

#[test]
fn changed_users_log_in() {
    let directory = Directory::new("logins-reload");
    let file = users(&directory, &[("old", "correct-horse")]);
    let server = start(with_users(file.clone()));
    let log_in = |user: &str, answer: &str| {
        let mut line = Line::to(&server, Protocol::Redis);
        line.ask(format!("AUTH {user} correct-horse\r\n"), answer);
        line
    };
    let mut old = log_in("old", "+OK\r\n");
    users(&directory, &[("new", "correct-horse")]);
    server.remote().reload();
    log_in("new", "+OK\r\n");
    old.ask("PING\r\n", "+PONG\r\n");
    // A broken file changes nothing.
    std::fs::write(&file, "[users.").unwrap();
    server.remote().reload();
    log_in("new", "+OK\r\n");
    log_in("old", "-WRONGPASS");
}

#[test]
fn unusable_users_files_are_refused() {
    let directory = Directory::new("logins-files");
    let refusal = |file: &PathBuf| Server::start(with_users(file.clone())).err().unwrap();
    let file = users(&directory, &[("orders", "correct-horse")]);
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
    let error = refusal(&file);
    assert!(matches!(error, StartError::Users(UsersError::File(_))), "{error}");
    assert!(error.to_string().contains("600"), "{error}");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    std::fs::write(&file, "[users.orders]\nadmin = true\n").unwrap();
    let error = refusal(&file);
    assert!(error.to_string().contains("admin"), "{error}");
    let absent = directory.0.join("absent.toml");
    assert!(refusal(&absent).to_string().contains("absent.toml"));
}

#[test]
fn exposed_listeners_need_tls_beside_users() {
    let directory = Directory::new("logins-exposed");
    let file = users(&directory, &[("orders", "correct-horse")]);
    let exposed = |by_tls| {
        let address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let listen = Listen { by_tls, ..Listen::tcp(Protocol::Redis, address) };
        Config { listen: vec![listen], ..with_users(file.clone()) }
    };
    let error = Server::start(exposed(false)).err().unwrap();
    assert!(matches!(error, StartError::Insecure { .. }), "{error}");
    // It has all that it needs but a certificate.
    let error = Server::start(exposed(true)).err().unwrap();
    assert!(matches!(error, StartError::NoCertificate { .. }), "{error}");
}
