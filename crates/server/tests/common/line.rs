//! A client by raw bytes.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use server::{Endpoint, Protocol, Running};

/// Far longer than anything takes that a test waits for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Line(pub(crate) Box<dyn Stream>);

pub(crate) trait Stream: Read + Write + Send {
    /// Another handle of the same connection.
    fn twin(&self) -> Box<dyn Stream>;
}

impl Stream for TcpStream {
    fn twin(&self) -> Box<dyn Stream> {
        Box::new(self.try_clone().unwrap())
    }
}

impl Stream for UnixStream {
    fn twin(&self) -> Box<dyn Stream> {
        Box::new(self.try_clone().unwrap())
    }
}

impl Line {
    pub(crate) fn to(server: &Running, protocol: Protocol) -> Self {
        let mut all = server.addresses().iter();
        match &all.find(|it| it.protocol == protocol).unwrap().endpoint {
            Endpoint::Tcp(address) => {
                let socket = TcpStream::connect(address).unwrap();
                socket.set_read_timeout(Some(PATIENCE)).unwrap();
                Self(Box::new(socket))
            }
            Endpoint::Unix(path) => {
                let socket = UnixStream::connect(path).unwrap();
                socket.set_read_timeout(Some(PATIENCE)).unwrap();
                Self(Box::new(socket))
            }
        }
    }

    pub(crate) fn ask(&mut self, said: impl AsRef<[u8]>, heard: impl AsRef<[u8]>) {
        self.0.write_all(said.as_ref()).unwrap();
        self.hear(heard);
    }

    pub(crate) fn hear(&mut self, heard: impl AsRef<[u8]>) {
        let heard = heard.as_ref();
        let mut answer = vec![0; heard.len()];
        self.0.read_exact(&mut answer).unwrap();
        assert_eq!(String::from_utf8_lossy(&answer), String::from_utf8_lossy(heard));
    }

    /// The line that answers, with its end.
    pub(crate) fn says(&mut self, said: &str) -> String {
        self.0.write_all(said.as_bytes()).unwrap();
        self.line()
    }

    /// The rest of a line, with its end.
    pub(crate) fn line(&mut self) -> String {
        let (mut line, mut byte) = (Vec::new(), [0]);
        while byte[0] != b'\n' {
            self.0.read_exact(&mut byte).unwrap();
            line.push(byte[0]);
        }
        String::from_utf8(line).unwrap()
    }

    /// All that comes until the end.
    pub(crate) fn rest(mut self) -> String {
        let mut rest = Vec::new();
        // A reset ends it too.
        let _ = self.0.read_to_end(&mut rest);
        String::from_utf8_lossy(&rest).into_owned()
    }

    /// Nothing more comes.
    pub(crate) fn end(self) {
        assert_eq!(self.rest(), "");
    }
}
