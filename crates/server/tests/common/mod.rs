//! A server of a test's own and a client that speaks lines to it.
#![allow(dead_code, reason = "each test file uses a part")]

pub(crate) mod patience;
pub(crate) mod reader;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use model::StorePolicy;
use server::{Config, Listen, Log, Protocol, Running, Server};

/// A configuration for any free port, that keeps nothing and logs nothing.
pub(crate) fn memory() -> Config {
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    Config {
        policy: StorePolicy::Memory,
        listen: vec![Listen::tcp(Protocol::Beanstalkd, address)],
        threads: 2,
        log: Log::Quiet,
        ..Config::default()
    }
}

/// The same with a second listener, for AMQP.
pub(crate) fn amqp_too(mut config: Config) -> Config {
    config.listen.push(Listen { protocol: Protocol::Amqp, ..config.listen[0].clone() });
    config
}

/// The same with a second listener, for Redis.
pub(crate) fn redis_too(mut config: Config) -> Config {
    config.listen.push(Listen { protocol: Protocol::Redis, ..config.listen[0].clone() });
    config
}

/// The same with a journal in `directory`.
pub(crate) fn journal(directory: &Directory, policy: StorePolicy) -> Config {
    Config { data: directory.0.clone(), policy, ..memory() }
}

/// A directory that is removed when the test ends.
pub(crate) struct Directory(pub(crate) PathBuf);

impl Directory {
    pub(crate) fn new(test: &str) -> Self {
        let name = format!("dunlin-server-{}-{test}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // A test that failed before its server started leaves nothing to remove.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn start(config: Config) -> Running {
    Server::start(config).unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn connect(server: &Running) -> Client {
    Client::new(server.addresses()[0].tcp().unwrap())
}

/// A client of the second listener.
pub(crate) fn connect_second(server: &Running) -> Client {
    Client::new(server.addresses()[1].tcp().unwrap())
}

/// A client. An answer that does not come within [`PATIENCE`] fails the test.
pub(crate) struct Client {
    pub(crate) socket: BufReader<TcpStream>,
}

/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(20);

impl Client {
    pub(crate) fn new(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.set_nodelay(true).unwrap();
        Self { socket: BufReader::new(socket) }
    }

    /// The same connection for another thread.
    pub(crate) fn twin(&self) -> Self {
        Self { socket: BufReader::new(self.socket.get_ref().try_clone().unwrap()) }
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        self.socket.get_mut().write_all(bytes.as_ref()).unwrap();
        self
    }

    /// The next line, without its end; empty when the server closed.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.socket.read_line(&mut line).unwrap();
        line.trim_end_matches("\r\n").to_owned()
    }

    /// The next line, unless the server closed.
    pub(crate) fn try_line(&mut self) -> Option<String> {
        let mut line = String::new();
        self.socket.read_line(&mut line).ok().filter(|count| *count > 0)?;
        Some(line.trim_end_matches("\r\n").to_owned())
    }

    pub(crate) fn ask(&mut self, command: &str) -> String {
        self.send(format!("{command}\r\n")).line()
    }

    /// The answer, unless the connection is gone.
    pub(crate) fn try_ask(&mut self, command: &str) -> Option<String> {
        self.socket.get_mut().write_all(format!("{command}\r\n").as_bytes()).ok()?;
        self.try_line()
    }

    pub(crate) fn put(&mut self, body: &str) -> String {
        self.ask(&format!("put 0 0 60 {}\r\n{body}", body.len()))
    }

    /// Everything until the server closes.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        self.socket.read_to_end(&mut rest).unwrap();
        rest
    }

    pub(crate) fn half_close(&mut self) -> &mut Self {
        self.socket.get_ref().shutdown(Shutdown::Write).unwrap();
        self
    }

    /// True if the server has closed: an end or a reset, not silence.
    pub(crate) fn is_closed(&mut self) -> bool {
        match self.socket.read(&mut [0]) {
            Ok(count) => count == 0,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}
