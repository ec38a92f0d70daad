//! The binary with a listener of each protocol, and how much memory it takes.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use crate::common::{Directory, Server, dunlin};
use crate::login;

pub(crate) const PROTOCOLS: [&str; 4] = ["beanstalkd", "redis", "amqp", "http"];

pub(crate) struct Broker {
    pub(crate) server: Server,
    addresses: Vec<SocketAddr>,
    /// Clients have to log in.
    has_users: bool,
    /// Removed when it has ended.
    directory: Directory,
}

impl Broker {
    /// One that keeps nothing.
    pub(crate) fn in_memory(test: &str, options: &[&str]) -> Self {
        let directory = Directory::new(test);
        let mut command = dunlin(&directory);
        command.args(["serve", "--store", "none"]).args(options);
        Self::start(directory, command)
    }

    /// The same with two users: the neighbour may do everything, the other what the attacks on an
    /// open broker need.
    pub(crate) fn with_users(test: &str, options: &[&str]) -> Self {
        let directory = Directory::new(test);
        for user in [login::NEIGHBOUR, login::GUEST] {
            manage_users(&directory, &["add", user, "--stdin"]);
        }
        manage_users(&directory, &["grant", login::NEIGHBOUR, "send,receive,look,manage *"]);
        for queue in ["q", "l", "default"] {
            let rule = format!("send,receive,look,manage {queue}");
            manage_users(&directory, &["grant", login::GUEST, &rule]);
        }
        let mut command = dunlin(&directory);
        command.args(["serve", "--store", "none", "--users", USERS]).args(options);
        Self { has_users: true, ..Self::start(directory, command) }
    }

    /// Starts `serve` with all listeners, besides the options of the command.
    pub(crate) fn start(directory: Directory, mut command: Command) -> Self {
        for protocol in PROTOCOLS {
            command.args(["--listen", &format!("{protocol}=127.0.0.1:0")]);
        }
        let server = Server::start(command);
        let address = |(line, protocol): (&String, &str)| {
            let address = line.strip_prefix(&format!("listening {protocol} ")).unwrap();
            address.parse().unwrap()
        };
        let addresses = server.lines.iter().zip(PROTOCOLS).map(address).collect();
        Self { server, addresses, has_users: false, directory }
    }

    /// Kills it, and starts another over the directory that it leaves.
    pub(crate) fn killed_and_started(self, options: &[&str]) -> Self {
        self.server.signal(Signal::KILL);
        let Self { server, directory, .. } = self;
        server.end();
        let mut command = dunlin(&directory);
        command.arg("serve").args(options);
        Self::start(directory, command)
    }

    /// Waits for its end: the exit status, and the log.
    pub(crate) fn end(self) -> (ExitStatus, String) {
        self.server.end()
    }

    pub(crate) fn address(&self, protocol: &str) -> SocketAddr {
        self.addresses[PROTOCOLS.iter().position(|it| *it == protocol).unwrap()]
    }

    /// A socket that gives up after 20 seconds.
    pub(crate) fn socket(&self, protocol: &str) -> TcpStream {
        let socket = TcpStream::connect(self.address(protocol)).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        socket.set_nodelay(true).unwrap();
        socket
    }

    /// The same, and its client has logged in where it has to. By HTTP each request does.
    pub(crate) fn admitted(&self, protocol: &str) -> TcpStream {
        let socket = self.socket(protocol);
        if self.has_users { login::log_in(socket, protocol) } else { socket }
    }

    /// The header by which requests of HTTP log in, if they have to.
    pub(crate) fn http_login(&self) -> String {
        if self.has_users { login::header(login::NEIGHBOUR) } else { String::new() }
    }

    /// A socket that these bytes were sent by.
    pub(crate) fn told(&self, protocol: &str, bytes: &[u8]) -> TcpStream {
        let mut socket = self.socket(protocol);
        socket.write_all(bytes).unwrap();
        socket
    }

    /// Bytes of memory that the server's process has.
    pub(crate) fn resident_bytes(&self) -> usize {
        self.status_bytes("VmRSS:")
    }

    /// The most that it had at any time.
    pub(crate) fn resident_bytes_most(&self) -> usize {
        self.status_bytes("VmHWM:")
    }

    fn status_bytes(&self, name: &str) -> usize {
        let path = format!("/proc/{}/status", self.server.id());
        let status = std::fs::read_to_string(path).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().strip_suffix(" kB").unwrap().parse::<usize>().unwrap() * 1024
    }
}

const USERS: &str = "users.toml";

fn manage_users(directory: &Directory, words: &[&str]) {
    let mut command = dunlin(directory);
    command.arg("user").args(words).args(["--users", USERS]);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A command that reads no password ends without it.
    let _ = child.stdin.take().unwrap().write_all(login::PASSWORD.as_bytes());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {said}");
}

/// Everything until the server closes, be it with a reset.
pub(crate) fn rest(mut socket: TcpStream) -> String {
    let mut bytes = Vec::new();
    // Bytes that came before a reset are there all the same; silence is not the end.
    if let Err(error) = socket.read_to_end(&mut bytes) {
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}");
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A peer that sends the same again and again, and reads nothing.
pub(crate) struct Fountain {
    socket: TcpStream,
    pattern: Vec<u8>,
    at: usize,
    /// Bytes that were taken.
    pub(crate) sent: usize,
}

impl Fountain {
    /// `pattern` follows the bytes that the socket has sent.
    pub(crate) fn new(socket: TcpStream, pattern: &[u8]) -> Self {
        socket.set_nonblocking(true).unwrap();
        // Short patterns in long pieces.
        let pattern = pattern.repeat(1 + 64 * 1024 / pattern.len());
        Self { socket, pattern, at: 0, sent: 0 }
    }

    /// Sends until nothing more is taken for now, at most this; false when it was closed.
    pub(crate) fn pour(&mut self, bytes_max: usize) -> bool {
        let last = self.sent + bytes_max;
        while self.sent < last {
            match self.socket.write(&self.pattern[self.at..]) {
                Ok(count) => {
                    self.at = (self.at + count) % self.pattern.len();
                    self.sent += count;
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return true,
                Err(_) => return false,
            }
        }
        true
    }

    /// The bytes that came until the server closed.
    pub(crate) fn rest(self) -> String {
        self.socket.set_nonblocking(false).unwrap();
        rest(self.socket)
    }
}
