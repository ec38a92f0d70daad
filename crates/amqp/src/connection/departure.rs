//! A message of the engine becomes one for a peer: a header and annotations of our own, and then
//! bytes of the stored one, which are never touched but for the expiry of dead letters.

use alloc::vec::Vec;

use model::{DeadLetter, Delivery, Durability, Format, Nanos, jms_of_priority};

use crate::encode::MapWriter;
use crate::formats::FORMAT;
use crate::message::{self, Header, Message, Properties, Section};
use crate::types::Value;

const DEAD_REASON: &str = "x-opt-dead-letter-reason";
const DEAD_QUEUE: &str = "x-opt-dead-letter-queue";
const DEAD_TIME: &str = "x-opt-dead-letter-time";
const DEAD_ATTEMPTS: &str = "x-opt-dead-letter-attempts";
const DEAD: [&str; 4] = [DEAD_REASON, DEAD_QUEUE, DEAD_TIME, DEAD_ATTEMPTS];

/// What stands before the stored bytes, and where those begin.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) prefix: Vec<u8>,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Opening {
    /// Words the beginning of a delivery.
    pub(crate) fn of(delivery: &Delivery, now: Nanos) -> Self {
        let stored = (delivery.format == FORMAT).then(|| Message::head_of_stored(&delivery.body));
        match stored.flatten() {
            Some(message) => Self::of_stored(delivery, &message, now),
            None => Self::of_raw(delivery, now),
        }
    }

    /// Only the delivery count and the time to live change (3.2.1); delivery annotations were for
    /// us alone (3.2.2).
    fn of_stored(delivery: &Delivery, message: &Message<'_>, now: Nanos) -> Self {
        let header = message.header();
        let ttl = header.ttl.and(time_left(delivery, now));
        let mut prefix = Vec::new();
        Header { ttl, first_acquirer: false, delivery_count: delivery.failed, ..header }
            .encode(&mut prefix);
        let rest = match &delivery.dead {
            None => message.without_header(),
            Some(dead) => {
                annotate(&mut prefix, dead, Some(message));
                let rest = message.without_annotations();
                rest.get(undated(&mut prefix, message)..).unwrap_or_default()
            }
        };
        let end = delivery.body.len();
        Self { prefix, start: end - rest.len(), end }
    }

    /// A message of another protocol: its payload is one data section (3.2.6).
    fn of_raw(delivery: &Delivery, now: Nanos) -> Self {
        debug_assert!(delivery.format == Format::RAW, "our own were checked when they came");
        let header = Header {
            durable: delivery.durability != Durability::None,
            priority: jms_of_priority(delivery.priority),
            ttl: time_left(delivery, now),
            delivery_count: delivery.failed,
            ..Header::default()
        };
        let mut prefix = Vec::new();
        header.encode(&mut prefix);
        if let Some(dead) = &delivery.dead {
            annotate(&mut prefix, dead, None);
        }
        let creation_time = i64::try_from(millis(delivery.created)).ok();
        Properties { creation_time, ..Properties::default() }.encode(&mut prefix);
        let payload = delivery.payload();
        message::data_head(&mut prefix, payload.len());
        let start = if payload.is_empty() { delivery.body.len() } else { delivery.payload.start };
        Self { prefix, start, end: start + payload.len() }
    }
}

/// What is left of a message's time, in milliseconds; never zero, which clients take for no end.
fn time_left(delivery: &Delivery, now: Nanos) -> Option<u32> {
    let left = millis(delivery.expires?.since(now));
    Some(u32::try_from(left).unwrap_or(u32::MAX).max(1))
}

/// The message's own annotations, and why it is among the dead letters.
fn annotate(prefix: &mut Vec<u8>, dead: &DeadLetter, message: Option<&Message<'_>>) {
    message::message_annotations(prefix, |map: &mut MapWriter<'_>| {
        if let Some(own) = message.and_then(Message::message_annotations) {
            map.copy(own, &DEAD);
        }
        let at = i64::try_from(millis(dead.at)).unwrap_or(i64::MAX);
        map.symbol(DEAD_REASON, Value::String(dead.reason.word()));
        map.symbol(DEAD_QUEUE, Value::String(dead.from.as_str()));
        map.symbol(DEAD_TIME, Value::Timestamp(at));
        map.symbol(DEAD_ATTEMPTS, Value::Uint(dead.attempts));
    });
}

/// A dead letter's time is not over: where its properties say so, it gets others, since clients
/// throw away what has expired, unseen. Gives how many of the stored bytes these stand for.
fn undated(prefix: &mut Vec<u8>, message: &Message<'_>) -> usize {
    let properties = message.properties();
    if properties.absolute_expiry_time.is_none() {
        return 0;
    }
    Properties { absolute_expiry_time: None, ..properties }.encode(prefix);
    message.section(Section::Properties).len()
}

const fn millis(span: Nanos) -> u64 {
    span.0 / 1_000_000
}
