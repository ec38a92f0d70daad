//! The servers that Dunlin is compared with, each in a process of its own.

use std::env;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use crate::patience::until;

/// A stuck comparison ends after this long.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A server that ends with its owner. Its methods panic when it cannot be used.
#[derive(Debug)]
pub struct ForeignServer {
    process: Child,
    /// The place where it listens.
    pub address: SocketAddr,
}

/// A client that takes in bytes as they come. Its methods panic when the server is gone, unless
/// they say otherwise.
#[derive(Debug)]
pub struct ByteClient {
    stream: TcpStream,
    /// Bytes that came and were not taken.
    pub received: Vec<u8>,
    /// How many bytes went.
    pub sent_total: usize,
    /// How many bytes came.
    pub received_total: usize,
}

#[allow(clippy::missing_panics_doc, reason = "the type says it once")]
impl ForeignServer {
    /// beanstalkd without a log. It answers an empty line, and does not count it.
    #[must_use]
    pub fn beanstalkd() -> Self {
        Self::start("beanstalkd", ["-l", "-p"], &[], b"\r\n")
    }

    /// Redis without a file.
    #[must_use]
    pub fn redis() -> Self {
        Self::start("redis-server", ["--bind", "--port"], &["--save", ""], b"PING\r\n")
    }

    /// A server to compare with, unless this variable is set.
    #[must_use]
    pub fn unless_skipped(variable: &str, start: fn() -> Self) -> Option<Self> {
        env::var_os(variable).is_none().then(start)
    }

    /// Its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// A client of it.
    #[must_use]
    pub fn connect(&self) -> ByteClient {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_nodelay(true).unwrap();
        ByteClient { stream, received: Vec::new(), sent_total: 0, received_total: 0 }
    }

    fn start(program: &str, [host, port]: [&str; 2], options: &[&str], probe: &[u8]) -> Self {
        let address = own_address();
        let process = Command::new(program)
            .args([host, &address.ip().to_string(), port, &address.port().to_string()])
            .args(options)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| {
                panic!(
                    "{program} does not start ({error}): install the package `{program}`, or set \
                     DUNLIN_SKIP_BEANSTALKD=1 or DUNLIN_SKIP_REDIS=1 to compare with nothing"
                )
            });
        let mut server = Self { process, address };
        until(&format!("{program} listens"), || {
            let ended = server.process.try_wait().unwrap();
            assert_eq!(ended, None, "{program} cannot listen on {address}");
            answers(address, probe)
        });
        server
    }
}

impl Drop for ForeignServer {
    fn drop(&mut self) {
        self.process.kill().expect("it ran until now");
        self.process.wait().expect("it is our child");
    }
}

#[allow(clippy::missing_panics_doc, reason = "the type says it once")]
impl ByteClient {
    /// Sends these bytes.
    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
        self.sent_total += bytes.len();
    }

    /// Takes in bytes that come within `patience`; false if none do.
    ///
    /// # Errors
    /// When the server has closed, or the connection broke.
    pub fn receive(&mut self, patience: Duration) -> Result<bool, String> {
        self.stream.set_read_timeout(Some(patience)).unwrap();
        let mut buffer = [0; 64 * 1024];
        match self.stream.read(&mut buffer) {
            Ok(0) => Err("the server closed the connection".into()),
            Ok(count) => {
                self.received.extend_from_slice(&buffer[..count]);
                self.received_total += count;
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(format!("the connection to the server broke: {error}")),
        }
    }

    /// Takes in the bytes that have come already.
    pub fn receive_all(&mut self) {
        self.stream.set_nonblocking(true).unwrap();
        while self.receive(PATIENCE).unwrap() {}
        self.stream.set_nonblocking(false).unwrap();
    }

    /// Says that nothing more comes.
    pub fn half_close(&mut self) {
        self.stream.shutdown(Shutdown::Write).unwrap();
    }

    /// All bytes that were not taken, and all until the server has closed.
    pub fn rest(&mut self) -> Vec<u8> {
        self.stream.set_read_timeout(Some(PATIENCE)).unwrap();
        self.received_total += self.stream.read_to_end(&mut self.received).unwrap();
        std::mem::take(&mut self.received)
    }
}

/// True if a server answers there, and closes once its peer says no more. A connection alone proves
/// nothing: to a port without a listener it may come from this very port and be answered by itself.
/// And one that was closed before it was served was seen to take beanstalkd's next one with it.
fn answers(address: SocketAddr, probe: &[u8]) -> bool {
    let Ok(mut stream) = TcpStream::connect(address) else { return false };
    let itself = stream.local_addr().ok() == Some(address);
    let asked = !itself && stream.write_all(probe).is_ok();
    asked
        && stream.shutdown(Shutdown::Write).is_ok()
        && stream.read_to_end(&mut Vec::new()).is_ok_and(|count| count > 0)
}

/// On a loopback host that no other server has: a port that is free now may be taken the next
/// moment, unless no other process looks for one on that host.
fn own_address() -> SocketAddr {
    static SERVERS: AtomicU8 = AtomicU8::new(1);
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let host = Ipv4Addr::new(127, high, low, SERVERS.fetch_add(1, Ordering::Relaxed));
    let listener = TcpListener::bind((host, 0)).expect("a loopback port is free");
    listener.local_addr().expect("a listener has an address")
}
