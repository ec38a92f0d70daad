//! One simulated client of Redis: the commands that it sends, and the replies that it still
//! expects.
//!
//! It speaks RESP2 over two byte streams. The oracle judges each reply where the server says it, in
//! the order in which the engine performed the commands. This client counts how much of the replies
//! it has read.

mod value;

use std::collections::VecDeque;
use std::rc::Rc;

pub use value::Value;
pub(crate) use value::brief;

/// A command and its arguments.
pub type Words = Vec<Rc<[u8]>>;

/// A client and its end of one connection.
#[derive(Debug)]
pub struct RedisClient {
    /// Its number, never used twice.
    pub id: u64,
    /// Bytes that the server has not received yet.
    pub outbound: VecDeque<u8>,
    asked: VecDeque<Asked>,
    /// The first of these waits for an element.
    waits: bool,
    /// It was told to wait for a place, and may wait for an element by now.
    lined: bool,
    /// Since `MULTI`, these.
    batch: Option<Vec<Words>>,
    /// Said by the server, and not yet a whole reply.
    said: Vec<u8>,
    /// Bytes of all whole replies.
    said_bytes: u64,
    /// The ends in the stream of replies that it has not read.
    unread: VecDeque<(u64, ReadReply)>,
    read_bytes: u64,
    last: Option<Value>,
}

/// The meaning for the oracle of a reply that a client has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadReply {
    /// On how many steps it depends.
    pub needs: usize,
    /// There was no room for the command.
    pub is_refusal: bool,
}

/// A command that is under way.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Itself.
    pub words: Words,
    /// The role of the command.
    pub meant: Meant,
}

/// The role of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meant {
    /// Itself.
    Command,
    /// It is one of a batch that is being collected.
    Queued,
    /// The batch that was collected.
    Batch(Vec<Words>),
}

impl RedisClient {
    /// A client that has just connected.
    #[must_use]
    pub fn new(id: u64) -> Self {
        Self {
            id,
            outbound: VecDeque::new(),
            asked: VecDeque::new(),
            waits: false,
            lined: false,
            batch: None,
            said: Vec::new(),
            said_bytes: 0,
            unread: VecDeque::new(),
            read_bytes: 0,
            last: None,
        }
    }

    /// How many of its commands are unanswered.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.asked.len() + self.unread.len()
    }

    /// The command that it sent last, if that is not answered.
    #[must_use]
    pub fn asked_last(&self) -> Option<&Words> {
        self.asked.back().map(|asked| &asked.words)
    }

    /// How many commands it has collected since `MULTI`.
    #[must_use]
    pub fn collected(&self) -> Option<usize> {
        self.batch.as_ref().map(Vec::len)
    }

    /// True if it has read everything but, at most, an answer to an endless wait.
    #[must_use]
    pub fn is_content(&self) -> bool {
        let endless = |asked: &Asked| {
            let is_move = || asked.words.first().is_some_and(|name| &**name == b"BLMOVE");
            asked.words.last().is_some_and(|word| &**word == b"0") && (self.waits || is_move())
        };
        let waits = (self.waits || self.lined) && self.asked.front().is_some_and(endless);
        self.unread.is_empty() && (waits || self.asked.is_empty())
    }

    /// The server's last reply.
    #[must_use]
    pub fn last_answer(&self) -> Option<&Value> {
        self.last.as_ref()
    }

    /// Sends this.
    pub fn send(&mut self, words: Words) {
        self.outbound.extend(encode(&words));
        let meant = self.collect(&words);
        self.asked.push_back(Asked { words, meant });
    }

    /// The command that the server is at.
    ///
    /// # Panics
    /// When it sent none.
    #[must_use]
    pub fn asking(&self) -> &Asked {
        let asked = self.asked.front();
        asked.unwrap_or_else(|| panic!("client {} asked for nothing", self.id))
    }

    /// The engine lets it wait.
    pub fn wait(&mut self) {
        self.waits = true;
    }

    /// The engine lets it wait for a place.
    pub fn line_up(&mut self) {
        self.lined = true;
    }

    /// True if the engine lets it wait.
    #[must_use]
    pub fn waits(&self) -> bool {
        self.waits
    }

    /// The server said more; `judge` tells on how many steps a whole reply depends.
    pub fn hear(&mut self, bytes: &[u8], mut judge: impl FnMut(&Asked, bool, &Value) -> usize) {
        self.said.extend_from_slice(bytes);
        while let Some((value, length)) = Value::parse(&self.said) {
            self.said.drain(..length);
            self.said_bytes += length as u64;
            let asked = self.asked.pop_front();
            let asked = asked.unwrap_or_else(|| panic!("{} heard {value:?} unasked", self.id));
            let waited = std::mem::take(&mut self.waits);
            self.lined = false;
            let is_refusal = value == Value::error("OOM");
            let needs = judge(&asked, waited, &value);
            self.unread.push_back((self.said_bytes, ReadReply { needs, is_refusal }));
            self.last = Some(value);
        }
    }

    /// The client reads so many bytes more; returns a note for each reply that they complete.
    pub fn read(&mut self, bytes: u64) -> Vec<ReadReply> {
        self.read_bytes += bytes;
        let whole = self.unread.iter().take_while(|(end, _)| *end <= self.read_bytes).count();
        self.unread.drain(..whole).map(|(_, told)| told).collect()
    }

    fn collect(&mut self, words: &Words) -> Meant {
        match (words.first().map(|word| &**word), &mut self.batch) {
            (Some(b"MULTI"), None) => self.batch = Some(Vec::new()),
            (Some(b"DISCARD"), Some(_)) => self.batch = None,
            (Some(b"EXEC"), Some(_)) => {
                return Meant::Batch(self.batch.take().unwrap_or_default());
            }
            (_, Some(batch)) => {
                batch.push(words.clone());
                return Meant::Queued;
            }
            (_, None) => {}
        }
        Meant::Command
    }
}

/// A command of these words.
#[must_use]
pub fn words(words: &[&str]) -> Words {
    words.iter().map(|word| Rc::from(word.as_bytes())).collect()
}

/// For a trace.
pub(crate) fn summary(words: &Words) -> String {
    words.iter().map(|word| brief(word)).collect::<Vec<_>>().join(" ")
}

/// The bytes on the wire.
fn encode(words: &Words) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_encodes_as_resp_array() {
        let mut client = RedisClient::new(1);
        client.send(words(&["LPUSH", "l1", ""]));
        let sent: Vec<u8> = client.outbound.iter().copied().collect();
        assert_eq!(sent, b"*3\r\n$5\r\nLPUSH\r\n$2\r\nl1\r\n$0\r\n\r\n");
    }

    #[test]
    fn exec_batches_the_queued_commands() {
        let mut client = RedisClient::new(1);
        let push = words(&["LPUSH", "l1", "a"]);
        let all = [words(&["MULTI"]), push.clone(), words(&["EXEC"]), push.clone()];
        all.into_iter().for_each(|words| client.send(words));
        let meant: Vec<Meant> = client.asked.iter().map(|asked| asked.meant.clone()).collect();
        let batch = Meant::Batch(vec![push]);
        assert_eq!(meant, [Meant::Command, Meant::Queued, batch, Meant::Command]);
    }

    #[test]
    fn reply_is_read_with_last_byte() {
        let mut client = RedisClient::new(1);
        client.send(words(&["PING"]));
        client.hear(b"+PO", |_, _, _| panic!("it is not whole"));
        client.hear(b"NG\r\n", |_, _, _| 7);
        assert_eq!(client.read(6), []);
        assert!(!client.is_content());
        assert_eq!(client.read(1), [ReadReply { needs: 7, is_refusal: false }]);
        assert!(client.is_content());
    }
}
