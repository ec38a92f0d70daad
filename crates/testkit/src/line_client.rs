//! A client of protocols of lines, for tests with a real server.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// A client. An answer that does not come within 20 seconds fails the test: each method panics
/// unless it says otherwise.
#[derive(Debug)]
pub struct LineClient {
    /// What it is connected by.
    pub socket: BufReader<TcpStream>,
}

/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(20);

#[allow(clippy::missing_panics_doc, reason = "the type says it once")]
impl LineClient {
    /// Connects.
    #[must_use]
    pub fn new(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.set_nodelay(true).unwrap();
        Self { socket: BufReader::new(socket) }
    }

    /// The same connection for another thread.
    #[must_use]
    pub fn twin(&self) -> Self {
        Self { socket: BufReader::new(self.socket.get_ref().try_clone().unwrap()) }
    }

    /// Sends these bytes.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        self.socket.get_mut().write_all(bytes.as_ref()).unwrap();
        self
    }

    /// The next line, without its end; empty when the server closed or reset.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        match self.socket.read_line(&mut line) {
            Ok(_) => line.trim_end_matches("\r\n").to_owned(),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => String::new(),
            Err(error) => panic!("{error}"),
        }
    }

    /// The next line, unless the server closed.
    pub fn try_line(&mut self) -> Option<String> {
        let mut line = String::new();
        self.socket.read_line(&mut line).ok().filter(|count| *count > 0)?;
        Some(line.trim_end_matches("\r\n").to_owned())
    }

    /// The first line of the answer.
    pub fn ask(&mut self, command: &str) -> String {
        self.send(format!("{command}\r\n")).line()
    }

    /// The same, unless the connection is gone.
    pub fn try_ask(&mut self, command: &str) -> Option<String> {
        self.socket.get_mut().write_all(format!("{command}\r\n").as_bytes()).ok()?;
        self.try_line()
    }

    /// The answer to a put of beanstalkd.
    pub fn put(&mut self, body: &str) -> String {
        self.ask(&put(body))
    }

    /// The same, unless the server ends.
    pub fn try_put(&mut self, body: &str) -> Option<String> {
        self.try_ask(&put(body))
    }

    /// Everything until the server closes.
    pub fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        self.socket.read_to_end(&mut rest).unwrap();
        rest
    }

    /// Says that nothing more comes.
    pub fn half_close(&mut self) -> &mut Self {
        self.socket.get_ref().shutdown(Shutdown::Write).unwrap();
        self
    }

    /// True if the server has ended. If it resets more than a thousand connections at once, the
    /// system drops some resets, even on loopback. A client that sends something is reset again.
    pub fn is_gone(&mut self) -> bool {
        self.socket.get_mut().write_all(b"\r\n").is_err() || self.is_closed()
    }

    /// True if the server has closed: an end or a reset, not silence.
    pub fn is_closed(&mut self) -> bool {
        match self.socket.read(&mut [0]) {
            Ok(count) => count == 0,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}

fn put(body: &str) -> String {
    format!("put 0 0 60 {}\r\n{body}", body.len())
}
