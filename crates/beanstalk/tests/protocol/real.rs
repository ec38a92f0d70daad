//! The real beanstalkd, in a process of its own.

use std::env;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::answers::{self, Answer};

const SKIP: &str = "DUNLIN_SKIP_BEANSTALKD";

/// A stuck comparison ends after this long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A server that ends with its owner.
pub(crate) struct Beanstalkd {
    process: Child,
    port: u16,
}

/// A client of it.
pub(crate) struct Client {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Beanstalkd {
    /// `None` if the comparison is not wanted.
    pub(crate) fn start() -> Option<Self> {
        if env::var_os(SKIP).is_some() {
            return None;
        }
        (0..3).find_map(|_| Self::try_start()).or_else(|| panic!("beanstalkd does not listen"))
    }

    /// Another process may take the free port before beanstalkd does.
    fn try_start() -> Option<Self> {
        let port = free_port();
        let process = Command::new("beanstalkd")
            .args(["-l", "127.0.0.1", "-p", &port.to_string()])
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| {
                panic!(
                    "beanstalkd does not start ({error}): install the package `beanstalkd`, or \
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

    /// A connection alone proves nothing: to a free port it may come from this very port and be
    /// answered by itself. An empty line is answered and not counted. Once beanstalkd has closed
    /// its end, it counts this connection among the open ones no more.
    fn answers(&self) -> bool {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let Ok(mut stream) = TcpStream::connect(address) else { return false };
        let itself = stream.local_addr().ok() == Some(address);
        let asked = !itself && stream.write_all(b"\r\n").is_ok();
        asked
            && stream.shutdown(Shutdown::Write).is_ok()
            && stream.read_to_end(&mut Vec::new()).is_ok_and(|count| count > 0)
    }

    /// The signal is pending when this returns, so it comes before all later commands.
    pub(crate) fn drain(&self) {
        let status = Command::new("kill").args(["-USR1", &self.process.id().to_string()]).status();
        assert!(status.unwrap().success(), "beanstalkd could not be signalled");
    }

    pub(crate) fn connect(&self) -> Client {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).unwrap();
        stream.set_nodelay(true).unwrap();
        Client { stream, received: Vec::new() }
    }
}

impl Drop for Beanstalkd {
    fn drop(&mut self) {
        self.process.kill().expect("beanstalkd ran until now");
        self.process.wait().expect("it is our child");
    }
}

impl Client {
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Waits for the next answer; an error says that none came.
    pub(crate) fn answer(&mut self) -> Result<Answer, String> {
        loop {
            if let Some(answer) = answers::take(&mut self.received) {
                return Ok(answer);
            }
            if !self.receive(PATIENCE)? {
                return Err("beanstalkd does not answer".into());
            }
        }
    }

    /// Waits a moment for the next answer, and leaves it to be taken.
    pub(crate) fn is_answered(&mut self) -> bool {
        let arrived = self.receive(Duration::from_millis(100)).expect("an open connection");
        arrived && answers::take(&mut self.received.clone()).is_some()
    }

    /// Takes in the bytes that arrive within `patience`; false if none do.
    fn receive(&mut self, patience: Duration) -> Result<bool, String> {
        self.stream.set_read_timeout(Some(patience)).unwrap();
        let mut buffer = [0; 64 * 1024];
        match self.stream.read(&mut buffer) {
            Ok(0) => Err("beanstalkd closed the connection".into()),
            Ok(count) => {
                self.received.extend_from_slice(&buffer[..count]);
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(format!("the connection to beanstalkd broke: {error}")),
        }
    }

    pub(crate) fn half_close(&mut self) {
        self.stream.shutdown(Shutdown::Write).unwrap();
    }

    /// All bytes until the server has closed its end.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        self.stream.set_read_timeout(Some(PATIENCE)).unwrap();
        self.stream.read_to_end(&mut self.received).unwrap();
        core::mem::take(&mut self.received)
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap().port()
}
