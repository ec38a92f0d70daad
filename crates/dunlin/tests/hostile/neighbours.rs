//! Ordinary clients, one by each protocol, while other peers do their worst.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use testkit::amqp_peer::AmqpPeer;

use crate::broker::Broker;

pub(crate) struct Neighbours {
    beanstalkd: Lines,
    redis: Lines,
    amqp: AmqpPeer,
    http: Lines,
    exchanges: u32,
}

impl Neighbours {
    pub(crate) fn of(broker: &Broker) -> Self {
        let mut beanstalkd = Lines::new(broker.admitted("beanstalkd"));
        assert_eq!(beanstalkd.ask("use neighbour"), "USING neighbour");
        assert_eq!(beanstalkd.ask("watch neighbour"), "WATCHING 2");
        assert_eq!(beanstalkd.ask("ignore default"), "WATCHING 1");
        let amqp = broker.admitted("amqp");
        // Other neighbours have credit on a queue of their own.
        let port = amqp.local_addr().unwrap().port();
        Self {
            beanstalkd,
            redis: Lines::new(broker.admitted("redis")),
            amqp: AmqpPeer::worker(amqp, &format!("neighbour-{port}")),
            http: Lines { login: broker.http_login(), ..Lines::new(broker.socket("http")) },
            exchanges: 0,
        }
    }

    /// The names of all queues, as the neighbour by HTTP sees them.
    pub(crate) fn queues(&mut self) -> Vec<String> {
        let (status, _, body) = self.http.request("GET", "/queues", "");
        assert_eq!(status, 200, "{body}");
        let list: serde_json::Value = serde_json::from_str(&body).unwrap();
        let queues = list["queues"].as_array().unwrap();
        queues.iter().map(|queue| queue["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Each stores a message, gets this message, and settles it.
    pub(crate) fn exchange(&mut self) {
        self.exchanges += 1;
        let body = format!("exchange-{:06}", self.exchanges);
        self.by_beanstalkd(&body);
        self.by_redis(&body);
        self.amqp.send(&body);
        self.amqp.receive(&body);
        self.by_http(&body);
    }

    fn by_beanstalkd(&mut self, body: &str) {
        let inserted = self.beanstalkd.ask(&format!("put 0 0 60 {}\r\n{body}", body.len()));
        let id = inserted.strip_prefix("INSERTED ").unwrap_or_else(|| panic!("{inserted}"));
        assert_eq!(self.beanstalkd.ask("reserve"), format!("RESERVED {id} {}", body.len()));
        assert_eq!(self.beanstalkd.line(), body);
        assert_eq!(self.beanstalkd.ask(&format!("delete {id}")), "DELETED");
    }

    fn by_redis(&mut self, body: &str) {
        assert_eq!(self.redis.ask(&format!("LPUSH neighbour-redis {body}")), ":1");
        assert_eq!(self.redis.ask("RPOP neighbour-redis"), format!("${}", body.len()));
        assert_eq!(self.redis.line(), body);
    }

    fn by_http(&mut self, body: &str) {
        let path = "/queues/neighbour-http/messages";
        let (status, _, _) = self.http.request("POST", path, body);
        assert_eq!(status, 201);
        let (status, lease, got) = self.http.request("GET", &format!("{path}?wait=20s"), "");
        assert_eq!((status, got.as_str()), (200, body));
        let (status, _, _) = self.http.request("DELETE", &format!("/leases/{lease}"), "");
        assert_eq!(status, 204);
    }
}

/// A socket that answers in lines.
pub(crate) struct Lines {
    pub(crate) socket: BufReader<TcpStream>,
    /// A header of each request, if there is one.
    pub(crate) login: String,
}

impl Lines {
    pub(crate) fn new(socket: TcpStream) -> Self {
        Self { socket: BufReader::new(socket), login: String::new() }
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        self.socket.get_mut().write_all(bytes.as_ref()).unwrap();
        self
    }

    pub(crate) fn ask(&mut self, command: &str) -> String {
        self.send(format!("{command}\r\n")).line()
    }

    /// The next line; empty when the server closed.
    pub(crate) fn line(&mut self) -> String {
        let mut line = Vec::new();
        self.socket.read_until(b'\n', &mut line).unwrap();
        String::from_utf8(line).unwrap().trim_end().to_owned()
    }

    pub(crate) fn skip(&mut self, bytes: usize) {
        std::io::copy(&mut (&mut self.socket).take(bytes as u64), &mut std::io::sink()).unwrap();
    }

    /// By HTTP/1.1: the status, the lease if there is one, and the body.
    pub(crate) fn request(
        &mut self,
        method: &str,
        path: &str,
        body: &str,
    ) -> (u16, String, String) {
        let (length, login) = (body.len(), &self.login);
        let head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n{login}");
        self.send(format!("{head}content-length: {length}\r\n\r\n{body}"));
        let status = self.line();
        let (mut lease, mut length) = (String::new(), 0);
        loop {
            let line = self.line();
            match line.split_once(": ") {
                Some(("dunlin-lease", value)) => lease = value.to_owned(),
                Some(("content-length", value)) => length = value.parse().unwrap(),
                Some(_) => {}
                None => break,
            }
        }
        let mut body = vec![0; length];
        self.socket.read_exact(&mut body).unwrap();
        let status = status.split(' ').nth(1).unwrap_or_else(|| panic!("closed: {status}"));
        (status.parse().unwrap(), lease, String::from_utf8(body).unwrap())
    }
}
