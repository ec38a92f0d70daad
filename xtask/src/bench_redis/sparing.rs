//! A client that spares the processor: a write and a read a request, and next to nothing beside.
//!
//! `redis-benchmark` takes more processor time for a request than a server does. So the quicker of
//! two servers on the same cores waits for it, and both seem equal. With this client the
//! measurement is that of the server.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use client::resp::{Reply, command};
use rustix::event::{Timespec, epoll};

use crate::Result;

/// Sends the same command `count` times by so many clients, each of which waits for its answer
/// before it sends again. Gives commands a second.
///
/// # Errors
/// When the server refuses a command, sends a wrong answer, hangs up, or sends nothing for
/// `patience`.
pub(super) fn drive(
    address: SocketAddr,
    clients: u32,
    count: u64,
    words: &[&str],
    patience: Duration,
) -> Result<f64> {
    let request = command(words);
    let watch = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let mut connections = Vec::new();
    for index in 0..clients {
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        epoll::add(
            &watch,
            &socket,
            epoll::EventData::new_u64(index.into()),
            epoll::EventFlags::IN,
        )?;
        connections.push(Connection { socket, answer: Vec::new() });
    }
    let begun = Instant::now();
    let mut asked = u64::from(clients).min(count);
    for connection in connections.iter_mut().take(usize::try_from(asked)?) {
        connection.ask(&request)?;
    }
    let mut answered = 0;
    let mut events = Vec::with_capacity(EVENTS_MAX);
    let patience = Timespec { tv_sec: i64::try_from(patience.as_secs())?, tv_nsec: 0 };
    while answered < count {
        events.clear();
        epoll::wait(&watch, rustix::buffer::spare_capacity(&mut events), Some(&patience))?;
        if events.is_empty() {
            return Err(format!("{address} says nothing").into());
        }
        for event in &events {
            let connection = connections.get_mut(usize::try_from(event.data.u64())?);
            let connection = connection.ok_or("an event of nobody")?;
            if !connection.hear()? {
                continue;
            }
            answered += 1;
            if asked < count {
                asked += 1;
                connection.ask(&request)?;
            }
        }
    }
    Ok(count as f64 / begun.elapsed().as_secs_f64())
}

struct Connection {
    socket: TcpStream,
    /// The part of the answer that has come.
    answer: Vec<u8>,
}

impl Connection {
    /// A request is far smaller than a socket's send buffer.
    fn ask(&mut self, request: &[u8]) -> Result<()> {
        Ok(self.socket.write_all(request)?)
    }

    /// True if the answer has come.
    fn hear(&mut self) -> Result<bool> {
        let mut scratch = [0; READ_BYTES];
        match self.socket.read(&mut scratch) {
            Ok(0) => return Err("the server hung up".into()),
            Ok(read) => self.answer.extend_from_slice(scratch.get(..read).unwrap_or_default()),
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return Err(error.into()),
        }
        let is_whole = is_whole(&self.answer)?;
        if is_whole {
            self.answer.clear();
        }
        Ok(is_whole)
    }
}

/// True if this is an answer, a number or a word, and nothing behind it; an error where it can
/// become none.
fn is_whole(answer: &[u8]) -> Result<bool> {
    match Reply::parse(answer) {
        Ok(None) => Ok(false),
        Ok(Some((Reply::Integer(_) | Reply::Bulk(_) | Reply::Nil, length))) => {
            if length == answer.len() { Ok(true) } else { Err("more than one answer".into()) }
        }
        _ => Err(format!("answered: {}", String::from_utf8_lossy(answer).trim_end()).into()),
    }
}

const EVENTS_MAX: usize = 256;
const READ_BYTES: usize = 4 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_is_whole_with_last_byte() {
        for whole in [&b":17\r\n"[..], b"$3\r\nabc\r\n", b"$-1\r\n", b"$0\r\n\r\n"] {
            assert!(is_whole(whole).unwrap());
            for end in 0..whole.len() {
                assert!(!is_whole(&whole[..end]).unwrap(), "{whole:?} up to {end}");
            }
            assert!(is_whole(&[whole, b":"].concat()).is_err(), "{whole:?} and more");
        }
        let refused = is_whole(b"-OOM no memory\r\n").unwrap_err();
        assert_eq!(refused.to_string(), "answered: -OOM no memory");
    }
}
