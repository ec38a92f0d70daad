//! The real Redis, in a process of its own.

use std::env;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::framing;

const SKIP: &str = "DUNLIN_SKIP_REDIS";

/// A stuck comparison ends after this long.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server that ends with its owner.
pub(crate) struct Redis {
    process: Child,
    port: u16,
}

/// A client of it.
pub(crate) struct Client {
    stream: TcpStream,
    received: Vec<u8>,
    /// Bytes that went and came, as far as it lives.
    traffic: Traffic,
}

/// Bytes as Redis counts them: read ones, and written ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Traffic {
    input: usize,
    output: usize,
}

/// A connection that asks how far Redis is.
pub(crate) struct Observer {
    client: Client,
    /// The traffic of earlier connections before.
    before: Traffic,
}

impl Redis {
    /// `None` if the comparison is not wanted.
    pub(crate) fn start() -> Option<Self> {
        if env::var_os(SKIP).is_some() {
            return None;
        }
        (0..3).find_map(|_| Self::try_start()).or_else(|| panic!("redis-server does not listen"))
    }

    /// Another process may take the free port before Redis does.
    fn try_start() -> Option<Self> {
        let port = free_port();
        let process = Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--save", ""])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| {
                panic!(
                    "redis-server does not start ({error}): install the package `redis-server`, or \
                     set {SKIP}=1 to do without the comparison with it"
                )
            });
        let mut server = Self { process, port };
        server.listens().then_some(server)
    }

    fn listens(&mut self) -> bool {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if self.answers() {
                return true;
            }
            if self.process.try_wait().unwrap().is_some() {
                return false;
            }
            thread::sleep(Duration::from_millis(2));
        }
        false
    }

    fn answers(&self) -> bool {
        let Ok(mut stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)) else {
            return false;
        };
        let mut answer = [0; 64];
        let asked = stream.write_all(b"PING\r\n").is_ok();
        asked && stream.read(&mut answer).is_ok_and(|count| answer[..count] == *b"+PONG\r\n")
    }

    pub(crate) fn connect(&self) -> Client {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).unwrap();
        stream.set_nodelay(true).unwrap();
        Client { stream, received: Vec::new(), traffic: Traffic::default() }
    }

    /// Observes so many connections, which have said nothing yet, once Redis has let go of all
    /// earlier ones. Until then one of those may wait, and be served.
    pub(crate) fn observe(&self, connections: usize) -> Observer {
        let mut observer = Observer { client: self.connect(), before: Traffic::default() };
        let deadline = Instant::now() + PATIENCE;
        while observer.ask("connected_clients") != connections + 1 {
            assert!(Instant::now() < deadline, "earlier connections do not end");
        }
        let output = observer.client.traffic.output;
        let now = observer.traffic();
        let input = now.input - observer.client.traffic.input;
        observer.before = Traffic { input, output: now.output - output };
        observer
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.process.kill().expect("redis-server ran until now");
        self.process.wait().expect("it is our child");
    }
}

impl Client {
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
        self.traffic.input += bytes.len();
    }

    /// Waits for the next answer.
    pub(crate) fn answer(&mut self) -> Vec<u8> {
        loop {
            if let Some(answer) = framing::take(&mut self.received) {
                return answer;
            }
            assert!(self.receive(PATIENCE), "Redis does not answer");
        }
    }

    /// The next answer if it has arrived already.
    pub(crate) fn arrived(&mut self) -> Option<Vec<u8>> {
        self.receive_what_is_there();
        framing::take(&mut self.received)
    }

    fn receive_what_is_there(&mut self) {
        self.stream.set_nonblocking(true).unwrap();
        while self.receive(PATIENCE) {}
        self.stream.set_nonblocking(false).unwrap();
    }

    /// Takes in the bytes that arrive within `patience`; false if none do.
    fn receive(&mut self, patience: Duration) -> bool {
        self.stream.set_read_timeout(Some(patience)).unwrap();
        let mut buffer = [0; 64 * 1024];
        match self.stream.read(&mut buffer) {
            Ok(0) => panic!("Redis closed the connection"),
            Ok(count) => {
                self.received.extend_from_slice(&buffer[..count]);
                self.traffic.output += count;
                true
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Err(error) => panic!("the connection to Redis broke: {error}"),
        }
    }

    /// All bytes until the server has closed its end.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        self.stream.set_read_timeout(Some(PATIENCE)).unwrap();
        self.traffic.output += self.stream.read_to_end(&mut self.received).unwrap();
        core::mem::take(&mut self.received)
    }
}

impl Observer {
    /// Waits until Redis has read all that these clients sent, and they all that it wrote to them.
    pub(crate) fn settle(&mut self, clients: &mut [Client]) {
        let deadline = Instant::now() + PATIENCE;
        let sent: usize = clients.iter().map(|client| client.traffic.input).sum();
        while self.traffic().input != self.before.input + self.client.traffic.input + sent {
            assert!(Instant::now() < deadline, "Redis does not read");
        }
        // It writes at the end of the turn in which it reads, and the next question comes later.
        let own = self.client.traffic.output;
        let written = self.traffic().output - self.before.output - own;
        while clients.iter().map(|client| client.traffic.output).sum::<usize>() != written {
            assert!(Instant::now() < deadline, "what Redis wrote does not arrive");
            clients.iter_mut().for_each(Client::receive_what_is_there);
        }
    }

    /// The bytes that Redis had read up to and with this question, and those it had written.
    fn traffic(&mut self) -> Traffic {
        let stats = self.info();
        let input = number(&stats, "total_net_input_bytes");
        Traffic { input, output: number(&stats, "total_net_output_bytes") }
    }

    fn ask(&mut self, name: &str) -> usize {
        number(&self.info(), name)
    }

    fn info(&mut self) -> String {
        self.client.send(b"INFO\r\n");
        String::from_utf8(self.client.answer()).unwrap()
    }
}

/// The value of a line `name:value`.
fn number(info: &str, name: &str) -> usize {
    let value = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    value.unwrap_or_else(|| panic!("INFO has no {name}")).parse().unwrap()
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap().port()
}
