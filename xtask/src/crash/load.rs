//! One client of a crash run: random commands, pipelined, until its connection breaks.

use std::io;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use testkit::Rng;

use super::ledger::{Ledger, Place};
use crate::wire::{Connection, Reply};

/// Longer than any run: no job changes its state by the clock alone.
const LONG_SECONDS: u32 = 100_000;
/// Tubes that the clients share.
const TUBES: u64 = 3;

/// A client, its connection and the jobs it may do something with.
pub(crate) struct Client<'a> {
    connection: Connection,
    ledger: &'a Mutex<Ledger>,
    random: Rng,
    /// How often it takes rather than puts, of 10.
    takes: u64,
    held: Vec<Owned>,
    /// Buried or delayed by this client, so no other one touches them.
    pub(crate) parked: Vec<Owned>,
}

/// A job that this client alone may settle.
#[derive(Clone, Copy)]
pub(crate) struct Owned {
    /// Its number in the ledger.
    pub(crate) number: u64,
    /// Its id at the server.
    pub(crate) id: u64,
}

/// A command that was sent for a job, and the state that its confirmation gives.
struct Sent {
    job: Owned,
    moves: u64,
    then: Then,
}

enum Then {
    Deleted,
    Parked(&'static str, Place),
    Ready(&'static str, Place),
}

impl<'a> Client<'a> {
    /// Connects a client and lets it watch all tubes of the run.
    pub(crate) fn open(
        address: SocketAddr,
        ledger: &'a Mutex<Ledger>,
        random: Rng,
        takes: u64,
    ) -> io::Result<Client<'a>> {
        let mut connection = Connection::open(address)?;
        for tube in 0..TUBES {
            connection.ask(&format!("watch load-{tube}"))?;
        }
        Ok(Client { connection, ledger, random, takes, held: Vec::new(), parked: Vec::new() })
    }

    /// Works until the connection breaks.
    pub(crate) fn run(mut self) {
        // The end is always an error: the server is killed under the client.
        while self.step().is_ok() {}
    }

    fn step(&mut self) -> io::Result<()> {
        if self.random.below(10) >= self.takes {
            return self.put();
        }
        self.take()?;
        self.settle_held()?;
        self.settle_parked()
    }

    fn put(&mut self) -> io::Result<()> {
        let mut bytes = format!("use load-{}\r\n", self.random.below(TUBES)).into_bytes();
        let mut sent = Vec::new();
        for _ in 0..=self.random.below(16) {
            let place = self.place_of_put();
            let filler = self.filler();
            let (number, body) = self.ledger().intend_put(&filler);
            let delay = if place.state == "delayed" { LONG_SECONDS } else { 0 };
            let length = body.len();
            let priority = place.priority.unwrap_or_default();
            let line = format!("put {priority} {delay} {LONG_SECONDS} {length}\r\n");
            bytes.extend_from_slice(line.as_bytes());
            bytes.extend_from_slice(&body);
            bytes.extend_from_slice(b"\r\n");
            sent.push((number, place));
        }
        self.connection.send(&bytes)?;
        self.connection.reply()?;
        for (number, place) in sent {
            let reply = self.connection.reply()?;
            self.put_answered(number, place, &reply);
        }
        Ok(())
    }

    fn put_answered(&mut self, number: u64, place: Place, reply: &Reply) {
        let (word, id) = (reply.word(), reply.id());
        let ("INSERTED", Some(id)) = (word, id) else {
            self.ledger().refused(number);
            return self.ledger().violate(format!("a put was answered {}", reply.line));
        };
        self.ledger().inserted(number, id, place);
        if place.state == "delayed" {
            self.parked.push(Owned { number, id });
        }
    }

    fn place_of_put(&mut self) -> Place {
        let state = if self.random.one_in(12) { "delayed" } else { "ready" };
        Place { state, priority: Some(self.random.below(5000) as u32) }
    }

    /// Mostly short, sometimes about the largest body there is.
    fn filler(&mut self) -> Vec<u8> {
        let bytes = if self.random.one_in(100) { 60_000 } else { 1 + self.random.below(1500) };
        let first = self.random.below(256) as u8;
        (0..bytes).map(|i| first.wrapping_add(i as u8)).collect()
    }

    fn take(&mut self) -> io::Result<()> {
        let count = 1 + self.random.below(24) as usize;
        self.connection.send(&b"reserve-with-timeout 0\r\n".repeat(count))?;
        for _ in 0..count {
            let reply = self.connection.reply()?;
            if let ("RESERVED", Some(id)) = (reply.word(), reply.id())
                && let Some(number) = self.ledger().delivered(id, &reply.body)
            {
                self.held.push(Owned { number, id });
            }
        }
        Ok(())
    }

    fn settle_held(&mut self) -> io::Result<()> {
        // Some stay held, so that a crash finds leases.
        let jobs = std::mem::take(&mut self.held);
        let (jobs, held) = jobs.into_iter().partition(|_| !self.random.one_in(8));
        self.held = held;
        self.settle(jobs, Client::settle_one)
    }

    fn settle_parked(&mut self) -> io::Result<()> {
        let count = self.random.below(6) as usize;
        let jobs = self.parked.split_off(self.parked.len().saturating_sub(count));
        self.settle(jobs, Client::unpark_one)
    }

    /// Sends one command for each job and reads the answers.
    fn settle(
        &mut self,
        jobs: Vec<Owned>,
        command: impl Fn(&mut Self, Owned) -> (String, Then),
    ) -> io::Result<()> {
        let (mut lines, mut sent) = (String::new(), Vec::new());
        for job in jobs {
            let (line, then) = command(self, job);
            let moves = self.ledger().unplace(job.number);
            if matches!(then, Then::Deleted) {
                self.ledger().intend_delete(job.number);
            }
            lines.push_str(&line);
            sent.push(Sent { job, moves, then });
        }
        self.connection.send(lines.as_bytes())?;
        for sent in sent {
            let reply = self.connection.reply()?;
            self.settled(sent, &reply.line);
        }
        Ok(())
    }

    fn settle_one(&mut self, job: Owned) -> (String, Then) {
        let (id, priority) = (job.id, self.random.below(5000) as u32);
        let place = |state| Place { state, priority: Some(priority) };
        match self.random.below(10) {
            0 => (format!("bury {id} {priority}\r\n"), Then::Parked("BURIED", place("buried"))),
            1 => (
                format!("release {id} {priority} {LONG_SECONDS}\r\n"),
                Then::Parked("RELEASED", place("delayed")),
            ),
            2 => {
                (format!("release {id} {priority} 0\r\n"), Then::Ready("RELEASED", place("ready")))
            }
            _ => (format!("delete {id}\r\n"), Then::Deleted),
        }
    }

    fn unpark_one(&mut self, job: Owned) -> (String, Then) {
        if self.random.one_in(2) {
            return (format!("delete {}\r\n", job.id), Then::Deleted);
        }
        let place = Place { state: "ready", priority: None };
        (format!("kick-job {}\r\n", job.id), Then::Ready("KICKED", place))
    }

    fn settled(&mut self, sent: Sent, line: &str) {
        let Sent { job, moves, then } = sent;
        let expected = match then {
            Then::Deleted => "DELETED",
            Then::Parked(word, _) | Then::Ready(word, _) => word,
        };
        if line != expected {
            let what = format!("{line} instead of {expected} for job {} ({})", job.number, job.id);
            return self.ledger().violate(what);
        }
        match then {
            Then::Deleted => self.ledger().deleted(job.number),
            Then::Ready(_, place) => self.ledger().placed(job.number, moves, place),
            Then::Parked(_, place) => {
                self.ledger().placed(job.number, moves, place);
                self.parked.push(job);
            }
        }
    }

    fn ledger(&self) -> MutexGuard<'a, Ledger> {
        // A panic elsewhere ends the run anyway; its reason matters, not the poison.
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
