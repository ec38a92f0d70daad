//! A client of HTTP/1.1 that keeps its connection.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::common::patience::until;
use server::{Config, Listen, Protocol, Running};

/// The same configuration with a second listener, for HTTP.
pub(crate) fn http_too(mut config: Config) -> Config {
    config.listen.push(Listen { protocol: Protocol::Http, ..config.listen[0].clone() });
    config
}

/// A client. An answer that does not come within 20 seconds fails the test.
pub(crate) struct Http {
    pub(crate) socket: BufReader<TcpStream>,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Http {
    pub(crate) fn to(server: &Running) -> Self {
        let http = server.addresses().iter().find(|it| it.protocol == Protocol::Http).unwrap();
        Self::at(http.tcp().unwrap())
    }

    pub(crate) fn at(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Self { socket: BufReader::new(socket) }
    }

    pub(crate) fn send(&mut self, text: &str) -> &mut Self {
        self.socket.get_mut().write_all(text.as_bytes()).unwrap();
        self
    }

    /// Asks without waiting for the answer.
    pub(crate) fn begin(&mut self, what: &str, headers: &[&str], body: &str) -> &mut Self {
        let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
        let length = body.len();
        self.send(&format!(
            "{what} HTTP/1.1\r\nhost: localhost\r\n{headers}content-length: {length}\r\n\r\n{body}"
        ))
    }

    pub(crate) fn ask(&mut self, what: &str) -> Answer {
        self.begin(what, &[], "").answer()
    }

    pub(crate) fn post(&mut self, path: &str, body: &str) -> Answer {
        self.begin(&format!("POST {path}"), &[], body).answer()
    }

    pub(crate) fn post_with(&mut self, path: &str, headers: &[&str], body: &str) -> Answer {
        self.begin(&format!("POST {path}"), headers, body).answer()
    }

    pub(crate) fn head(&mut self) -> Answer {
        let status = self.line();
        let status = status.split(' ').nth(1).unwrap_or_else(|| panic!("{status:?}"));
        let mut headers = Vec::new();
        loop {
            let line = self.line();
            let Some((name, value)) = line.split_once(": ") else { break };
            headers.push((name.to_owned(), value.to_owned()));
        }
        Answer { status: status.parse().unwrap(), headers, body: String::new() }
    }

    pub(crate) fn answer(&mut self) -> Answer {
        let mut answer = self.head();
        let length = answer.header("content-length").unwrap_or("0").parse().unwrap();
        let mut body = vec![0; length];
        self.socket.read_exact(&mut body).unwrap();
        answer.body = String::from_utf8(body).unwrap();
        answer
    }

    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.socket.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Receives one message: its body and its lease.
    pub(crate) fn receive(&mut self, queue: &str) -> (String, String) {
        let answer = self.ask(&format!("GET /queues/{queue}/messages?wait=20s"));
        assert_eq!(answer.status, 200, "{answer:?}");
        let lease = answer.header("dunlin-lease").unwrap().to_owned();
        (answer.body, lease)
    }
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// The body must hold this.
    pub(crate) fn says(&self, status: u16, part: &str) {
        assert_eq!(self.status, status, "{self:?}");
        assert!(self.body.contains(part), "{part} in {self:?}");
    }
}

/// Until so many wait for a message of the queue.
pub(crate) fn await_waiting(http: &mut Http, queue: &str, count: u64) {
    let (asked, waiting) = (format!("GET /queues/{queue}"), format!("\"waiting\":{count}"));
    until("they wait for a message", || http.ask(&asked).body.contains(&waiting));
}

/// Until the stream says that it follows its topic.
pub(crate) fn await_follows(http: &mut Http) {
    until("it follows", || http.line() == ": follows");
}
