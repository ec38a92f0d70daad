//! `dunlin receive`: messages written to standard output are acknowledged, and only those.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Map, Value as Json, json};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::cli::Receive;
use crate::client::table::say;
use crate::client::web::{Answer, Web, encoded, with_query};
use crate::exit::Error;
use crate::parse;

/// Receives until the requested messages are there, or a signal ends it.
pub(crate) fn run(receive: &Receive) -> Result<(), Error> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))
            .map_err(|error| Error::Other(format!("cannot listen to signals: {error}")))?;
    }
    let web = Web::of(&receive.server)?;
    let mut receiver = Receiver { web, receive, stop, kept: Vec::new() };
    let end = if receive.reconnect { receiver.reconnect() } else { receiver.receive_all() };
    let kept = std::mem::take(&mut receiver.kept);
    end.and(receiver.give_back(&kept))
}

struct Receiver<'a> {
    web: Web,
    receive: &'a Receive,
    /// A signal came.
    stop: Arc<AtomicBool>,
    /// Leases that are given back at the end.
    kept: Vec<String>,
}

impl Receiver<'_> {
    /// Receives from any broker that is there, until a signal comes or something fails that a
    /// broker that comes back does not mend.
    fn reconnect(&mut self) -> Result<(), Error> {
        let (mut pause, mut told) = (PAUSE_MIN, String::new());
        loop {
            let began = Instant::now();
            let lost = match self.receive_all() {
                Err(Error::Unreachable(why) | Error::Unanswered(why)) => why,
                end => return end,
            };
            // It was there for a while: this is another loss.
            if began.elapsed() > PAUSE_MAX {
                (pause, told) = (PAUSE_MIN, String::new());
            }
            if lost != told {
                tell(&format!("{lost}; trying again"));
                told = lost;
            }
            if self.stops_within(pause) {
                return Ok(());
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Waits, and tells whether a signal came meanwhile.
    fn stops_within(&self, pause: Duration) -> bool {
        let end = Instant::now() + pause;
        while !self.stop.load(Ordering::Relaxed) && Instant::now() < end {
            std::thread::sleep(PAUSE_MIN.min(end.saturating_duration_since(Instant::now())));
        }
        self.stop.load(Ordering::Relaxed)
    }

    fn receive_all(&mut self) -> Result<(), Error> {
        let mut left = if self.receive.follow { u64::MAX } else { self.receive.count };
        while left > 0 {
            let messages = self.next_some(left.min(BATCH))?;
            if messages.is_empty() {
                // They did not come, or a signal did.
                return if self.receive.follow { Ok(()) } else { Err(self.nothing(left)) };
            }
            left -= self.hand_out(messages)?;
        }
        Ok(())
    }

    /// Up to so many messages, waiting for the first as long as was asked; none when that is over
    /// or a signal came. A request is short, so that a signal is soon obeyed.
    fn next_some(&self, max: u64) -> Result<Vec<Map<String, Json>>, Error> {
        let mut left = self.receive.wait.unwrap_or_default();
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Ok(Vec::new());
            }
            let slice = if self.receive.follow { SLICE } else { left.min(SLICE) };
            let messages = self.ask(max, slice)?;
            left = left.saturating_sub(slice);
            if !messages.is_empty() || (left.is_zero() && !self.receive.follow) {
                return Ok(messages);
            }
        }
    }

    fn ask(&self, max: u64, wait: Duration) -> Result<Vec<Map<String, Json>>, Error> {
        let path = format!("/queues/{}/messages", encoded(&self.receive.queue));
        let query = [
            ("max", Some(max.to_string())),
            ("wait", Some(format!("{}ms", wait.as_millis()))),
            ("lease", self.receive.lease.clone()),
        ];
        let mut answer = self.web.get(&with_query(path, &query))?.object()?;
        let Some(Json::Array(messages)) = answer.remove("messages") else { return Ok(Vec::new()) };
        let objects = messages.into_iter().filter_map(|message| match message {
            Json::Object(object) => Some(object),
            _ => None,
        });
        Ok(objects.collect())
    }

    /// Writes the messages, acknowledges the written ones and returns their number. A message that
    /// cannot be written goes back, and so do those behind it or behind a signal.
    fn hand_out(&mut self, messages: Vec<Map<String, Json>>) -> Result<u64, Error> {
        let mut batch = Batch::new(messages.iter().map(lease).collect());
        let end = self.write_all(&mut batch, messages);
        let acknowledged = self.acknowledge_written(&mut batch);
        let returned = self.give_back(batch.unwritten());
        end.and(acknowledged).and(returned)?;
        Ok(batch.written as u64)
    }

    /// Writes all until a signal comes. The reader of the output may be slow: written messages are
    /// acknowledged soon then, and the others stay leased.
    fn write_all(
        &mut self,
        batch: &mut Batch,
        messages: Vec<Map<String, Json>>,
    ) -> Result<(), Error> {
        for message in messages {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            if batch.leased.elapsed() > self.lease() / 4 {
                self.extend(batch.unwritten())?;
                batch.leased = Instant::now();
            }
            self.write(message)?;
            batch.written += 1;
            if batch.acknowledged_at.elapsed() > UNACKNOWLEDGED {
                self.acknowledge_written(batch)?;
            }
        }
        Ok(())
    }

    fn acknowledge_written(&mut self, batch: &mut Batch) -> Result<(), Error> {
        let written = batch.take_written();
        if self.receive.keep {
            self.kept.extend_from_slice(written);
            return Ok(());
        }
        self.acknowledge(written)
    }

    /// For how long messages are leased.
    fn lease(&self) -> Duration {
        let asked = self.receive.lease.as_deref().and_then(|text| parse::duration(text).ok());
        asked.unwrap_or(LEASE)
    }

    /// The reader of the output may be slow: messages that are not written yet stay leased.
    fn extend(&self, leases: &[String]) -> Result<(), Error> {
        for lease in leases {
            let span = self.receive.lease.clone();
            let path = with_query(format!("/leases/{lease}/extend"), &[("lease", span)]);
            self.done(self.web.post(&path, &[], b"")?)?;
        }
        Ok(())
    }

    /// A lease was settled or extended. If the lease is over since the broker restarted, the
    /// restarted broker delivers the message again.
    fn done(&self, answer: Answer) -> Result<(), Error> {
        let is_over = answer.status == GONE;
        match answer.object() {
            Err(error) if is_over && self.receive.reconnect => {
                tell(&error.to_string());
                Ok(())
            }
            end => end.map(drop),
        }
    }

    fn write(&self, mut message: Map<String, Json>) -> Result<(), Error> {
        if self.receive.server.json {
            message.remove("lease");
            return say(format!("{}\n", Json::Object(message)).as_bytes());
        }
        let mut bytes = body(&message)?;
        bytes.push(b'\n');
        say(&bytes)
    }

    /// As one, which is one sync.
    fn acknowledge(&self, leases: &[String]) -> Result<(), Error> {
        let one = |lease: &String| self.done(self.web.delete(&format!("/leases/{lease}"))?);
        if let [] | [_] = leases {
            return leases.iter().try_for_each(one);
        }
        let settle: Vec<Json> = leases.iter().map(|lease| json!({ "lease": lease })).collect();
        let body = json!({ "settle": settle }).to_string();
        let answer = self.web.post("/transactions", &[], body.as_bytes())?;
        if answer.status != GONE {
            return answer.object().map(drop);
        }
        // Nothing has happened: the lease of one is over, those of the others are not.
        let each: Vec<Result<(), Error>> = leases.iter().map(one).collect();
        each.into_iter().collect()
    }

    /// A lease that is over by now is no loss.
    fn give_back(&self, leases: &[String]) -> Result<(), Error> {
        for lease in leases {
            self.web.post(&format!("/leases/{lease}/release"), &[], b"")?;
        }
        Ok(())
    }

    fn nothing(&self, left: u64) -> Error {
        let Receive { queue, count, .. } = self.receive;
        Error::Nothing(format!("{} of {count} messages came from {queue} in time", count - left))
    }
}

/// Messages that came with one answer.
struct Batch {
    leases: Vec<String>,
    /// So many are out.
    written: usize,
    /// So many of these are acknowledged.
    acknowledged: usize,
    acknowledged_at: Instant,
    leased: Instant,
}

impl Batch {
    fn new(leases: Vec<String>) -> Self {
        let now = Instant::now();
        Self { leases, written: 0, acknowledged: 0, acknowledged_at: now, leased: now }
    }

    fn unwritten(&self) -> &[String] {
        self.leases.get(self.written..).unwrap_or_default()
    }

    /// Takes the leases of messages that are written and not acknowledged: the caller acknowledges
    /// them.
    fn take_written(&mut self) -> &[String] {
        let first = std::mem::replace(&mut self.acknowledged, self.written);
        self.acknowledged_at = Instant::now();
        self.leases.get(first..self.written).unwrap_or_default()
    }
}

/// Reports a problem that is no reason to end.
fn tell(what: &str) {
    // Without a reader of standard error the message is lost.
    let _ = writeln!(std::io::stderr(), "dunlin: {what}");
}

fn lease(message: &Map<String, Json>) -> String {
    message.get("lease").and_then(Json::as_str).unwrap_or_default().to_owned()
}

/// The bytes of a message; of a map, list or number of AMQP its JSON.
pub(crate) fn body(message: &Map<String, Json>) -> Result<Vec<u8>, Error> {
    if let Some(value) = message.get("body_value") {
        return Ok(value.to_string().into_bytes());
    }
    let text = |name| message.get(name).and_then(Json::as_str);
    if let Some(text) = text("body") {
        return Ok(text.as_bytes().to_vec());
    }
    let encoded = text("body_base64").unwrap_or_default();
    parse::base64(encoded).ok_or_else(|| Error::Other("the server sent a broken body".into()))
}

/// Messages that are asked for at once.
const BATCH: u64 = 64;

/// Written messages are acknowledged once their whole batch is written, and otherwise after so
/// long.
const UNACKNOWLEDGED: Duration = Duration::from_millis(100);

/// The status where a lease is over.
const GONE: u16 = 410;

/// How long it is waited before a broker that was not there is asked again: longer each time.
const PAUSE_MIN: Duration = Duration::from_millis(100);

/// And at most so long.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// How long one request waits: as long as a signal may have to.
const SLICE: Duration = Duration::from_secs(1);

/// How long the server leases a message unless it is asked for another time.
const LEASE: Duration = Duration::from_secs(30);
