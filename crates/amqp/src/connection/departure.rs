//! A message of the engine becomes one for a peer: a header and annotations of our own, then the
//! bytes of the stored message. Only the bytes of dead letters change: they lose their expiry and
//! gain properties.

use alloc::vec::Vec;

use core::ops::Range;

use model::{Delivery, Durability, Format, Nanos, jms_of_priority};

use crate::dead_letter;
use crate::formats::FORMAT;
use crate::message::{self, Header, Message, Properties, Section};

/// The bytes before the stored ones, and where the stored ones begin.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) prefix: Vec<u8>,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Opening {
    /// Words the beginning of a delivery; its moments and `now` are by one clock.
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
                dead_letter::annotate(&mut prefix, dead, Some(message));
                undated(&mut prefix, message);
                dead_letter::describe(&mut prefix, dead, Some(message));
                message.body_and_footer()
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
            dead_letter::annotate(&mut prefix, dead, None);
        }
        let creation_time = i64::try_from(millis(delivery.created)).ok();
        Properties { creation_time, ..Properties::default() }.encode(&mut prefix);
        if let Some(dead) = &delivery.dead {
            dead_letter::describe(&mut prefix, dead, None);
        }
        let Range { start, end } = delivery.payload_range();
        message::data_head(&mut prefix, end - start);
        Self { prefix, start, end }
    }
}

/// The rest of a message's time, in milliseconds; never zero, which clients take for no end.
fn time_left(delivery: &Delivery, now: Nanos) -> Option<u32> {
    let left = millis(delivery.expires?.since(now));
    Some(u32::try_from(left).unwrap_or(u32::MAX).max(1))
}

/// A dead letter's time is not over: if its properties say so, it gets others, since clients
/// discard expired messages unseen.
fn undated(prefix: &mut Vec<u8>, message: &Message<'_>) {
    let properties = message.properties();
    if properties.absolute_expiry_time.is_none() {
        return prefix.extend_from_slice(message.section(Section::Properties));
    }
    Properties { absolute_expiry_time: None, ..properties }.encode(prefix);
}

const fn millis(span: Nanos) -> u64 {
    span.0 / 1_000_000
}

#[cfg(test)]
mod tests {
    use alloc::boxed::Box;

    use model::{DeadLetter, DeadReason, MessageId, Payload, QueueName};

    use super::*;
    use crate::types::Value;

    fn dead(format: Format, body: &[u8]) -> Delivery {
        let dead = DeadLetter {
            reason: DeadReason::Attempts,
            from: QueueName::new("orders").unwrap(),
            subscription: None,
            at: Nanos::from_millis(77),
            attempts: 10,
        };
        Delivery {
            link: None,
            message: MessageId(1),
            count: 1,
            failed: 0,
            priority: 0,
            created: Nanos::ZERO,
            expires: None,
            durability: Durability::None,
            topic: None,
            dead: Some(Box::new(dead)),
            format,
            payload: Payload::WHOLE,
            charge: body.len() as u64,
            body: alloc::sync::Arc::<[u8]>::from(body).into(),
        }
    }

    fn sent(delivery: &Delivery) -> Vec<u8> {
        let Opening { mut prefix, start, end } = Opening::of(delivery, Nanos::ZERO);
        prefix.extend_from_slice(&delivery.body[start..end]);
        prefix
    }

    /// All sections but the application properties leave as they came; those gain the properties
    /// that JMS reads.
    #[test]
    fn dead_letters_gain_properties() {
        let mut body = Vec::new();
        message::message_annotations(&mut body, |map| map.symbol("x-opt-a", Value::Byte(4)));
        let mut rest = Vec::new();
        Properties { subject: Some("s"), ..Properties::default() }.encode(&mut rest);
        let before = rest.len();
        message::application_properties(&mut rest, |map| {
            map.string("key", Value::Short(7));
            map.string("dead_letter_reason", Value::String("earlier"));
        });
        let behind = rest.len();
        message::value(&mut rest, Value::Char('x'));
        rest.extend_from_slice(&[0, 0x53, 0x78, 0xc1, 1, 0]);
        body.extend_from_slice(&rest);
        let sent = sent(&dead(FORMAT, &body));
        let read = Message::scan(&sent).unwrap();
        assert_eq!(read.section(Section::Properties), &rest[..before]);
        assert_eq!(read.body_and_footer(), &rest[behind..]);
        assert_eq!(read.message_annotation("x-opt-a"), Some(Value::Byte(4)));
        let properties = read.application_properties().unwrap();
        let expected = [
            ("key", Value::Short(7)),
            ("dead_letter_reason", Value::String("attempts")),
            ("dead_letter_queue", Value::String("orders")),
            ("dead_letter_time", Value::Long(77)),
            ("dead_letter_attempts", Value::Int(10)),
        ];
        let expected = expected.map(|(name, value)| (Value::String(name), value));
        assert!(properties.iter().eq(expected), "{properties:?}");
    }

    #[test]
    fn dead_letters_without_sections_gain_properties() {
        for (format, body) in [(FORMAT, &[][..]), (Format::RAW, b"job"), (Format::RAW, b"")] {
            let sent = sent(&dead(format, body));
            let read = Message::scan(&sent).unwrap();
            let reason = read.application_property("dead_letter_reason");
            assert_eq!(reason, Some(Value::String("attempts")));
            assert_eq!(read.data().flatten().copied().collect::<Vec<_>>(), body);
        }
        let expired = {
            let mut body = Vec::new();
            let absolute_expiry_time = Some(5);
            Properties { absolute_expiry_time, ..Properties::default() }.encode(&mut body);
            sent(&dead(FORMAT, &body))
        };
        assert_eq!(Message::scan(&expired).unwrap().properties(), Properties::default());
    }
}
