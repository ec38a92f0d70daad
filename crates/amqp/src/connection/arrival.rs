//! A message of a peer becomes one of the engine.

use alloc::format;
use alloc::sync::Arc;

use model::{Destination, Nanos, NewMessage, Persistence, WallClock, priority_of_jms};

use crate::connection::address;
use crate::connection::limits::LEASE;
use crate::error::{Error, condition};
use crate::formats::FORMAT;
use crate::limits::APPLICATION_PROPERTIES_MAX;
use crate::message::{MESSAGE_FORMAT, Message, Place, Section};
use crate::state::Modified;
use crate::types::Value;

/// When a message may be delivered, in milliseconds since 1970.
const DELIVERY_TIME: &str = "x-opt-delivery-time";

/// How many milliseconds later than now a message may be delivered.
const DELIVERY_DELAY: &str = "x-opt-delivery-delay";

/// Its sender's own name for it, by which it is stored once however often it is sent.
const SEND_ID: &str = "x-opt-dunlin-send-id";

/// The type of the destination, as Qpid JMS tells it to an anonymous terminus.
const JMS_DESTINATION: &str = "x-opt-jms-dest";

/// A message with where it goes by its own account.
pub(crate) struct Arrival {
    pub(crate) message: NewMessage,
    /// Looked for only if the link's target names no node.
    pub(crate) to: Option<Destination>,
    /// Bytes of it that were looked at: all but the body.
    pub(crate) looked_at: usize,
}

/// The present moment by the connection's clock, and the machine's clock beside it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Present<'a> {
    pub(crate) now: Nanos,
    pub(crate) clock: &'a WallClock,
}

impl Present<'_> {
    /// The moment `millis` after 1970 by the machine's clock, as the engine's time.
    fn at(self, millis: u64) -> Nanos {
        self.clock.engine_time(Nanos::from_millis(millis))
    }
}

/// Reads the fields of a message that the engine has to know; its bytes stay as they are.
///
/// # Errors
///
/// The error that the peer is told: the message is malformed, has too much in it, or goes nowhere
/// though `is_relayed`.
pub(crate) fn read(
    body: Arc<[u8]>,
    format: u32,
    is_relayed: bool,
    user: Option<&str>,
    present: Present<'_>,
) -> Result<Arrival, Error> {
    if format != MESSAGE_FORMAT {
        return Err(Error::new(condition::NOT_IMPLEMENTED, "unknown message format"));
    }
    let message = Message::scan(&body)?;
    if message.application_properties().is_some_and(|map| map.len() > APPLICATION_PROPERTIES_MAX) {
        let why = format!(
            "a message has {APPLICATION_PROPERTIES_MAX} application properties at most: send fewer"
        );
        return Err(Error::new(condition::RESOURCE_LIMIT_EXCEEDED, why));
    }
    if let Some(user) = user {
        check_user(user, &message)?;
    }
    let header = message.header();
    let persistence =
        if header.durable { Persistence::Persistent } else { Persistence::NonPersistent };
    let annotations = message.message_annotations();
    let [time, delay, send_id] =
        annotations.map_or([None; 3], |map| map.get_each([DELIVERY_TIME, DELIVERY_DELAY, SEND_ID]));
    let new = NewMessage {
        priority: priority_of_jms(header.priority),
        delay: self::delay(time, delay, present)?,
        lease: LEASE,
        expires: expires(&message, present),
        persistence,
        send_id: self::send_id(send_id)?,
        group: message.group(),
        format: FORMAT,
        body: body.clone(),
    };
    let to = if is_relayed { Some(destination(&message)?) } else { None };
    let looked_at = body.len() - message.section(Section::Body).len();
    Ok(Arrival { message: new, to, looked_at })
}

/// "Each message sent via the anonymous terminus names its destination in its `to`."
fn destination(message: &Message<'_>) -> Result<Destination, Error> {
    let Some(Value::String(to)) = message.property(Place::To) else {
        return Err(Error::new(condition::NOT_FOUND, "the message names no destination"));
    };
    address::destination_of_message(to, message.message_annotation(JMS_DESTINATION))
}

/// A message says that it is of its sender, or does not say whose it is (3.2.4): consumers trust
/// the name.
fn check_user(user: &str, message: &Message<'_>) -> Result<(), Error> {
    match message.property(Place::UserId) {
        None | Some(Value::Null) => Ok(()),
        Some(Value::Binary(id)) if id == user.as_bytes() => Ok(()),
        Some(_) => Err(Error::new(
            condition::UNAUTHORIZED_ACCESS,
            "the message's user-id is not the user who sends it: leave it out",
        )),
    }
}

/// A sender that names a message relies on the name: an invalid one is an error.
fn send_id(annotation: Option<Value<'_>>) -> Result<Option<Arc<str>>, Error> {
    match annotation {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(id)) => Ok(Some(Arc::from(id))),
        Some(_) => Err(Error::new(condition::INVALID_FIELD, "the deduplication id is no string")),
    }
}

/// A sender that delays a message relies on that, too. A number below zero is a time that is over,
/// or none.
fn delay(
    time: Option<Value<'_>>,
    delay: Option<Value<'_>>,
    present: Present<'_>,
) -> Result<Nanos, Error> {
    let (time, delay) = (millis(time, DELIVERY_TIME)?, millis(delay, DELIVERY_DELAY)?);
    let until = time.map(|millis| present.at(millis).since(present.now));
    Ok(until.or_else(|| delay.map(Nanos::from_millis)).unwrap_or_default())
}

/// How long a message that a consumer gives back is hidden, if the consumer says so by the
/// annotations of a sender, as for RabbitMQ. An annotation that is no time leaves it to the rules
/// of the queue, for a disposition cannot be refused.
pub(crate) fn redelivery(modified: &Modified, present: Present<'_>) -> Option<Nanos> {
    let read = |symbol| modified.message_annotations.get(symbol);
    let millis = |symbol| millis_of(read(symbol)?, symbol).ok().map(Option::unwrap_or_default);
    let until = millis(DELIVERY_TIME).map(|millis| present.at(millis).since(present.now));
    until.or_else(|| millis(DELIVERY_DELAY).map(Nanos::from_millis))
}

/// The milliseconds that an annotation tells, by a number of any type.
fn millis(annotation: Option<Value<'_>>, symbol: &str) -> Result<Option<u64>, Error> {
    annotation.map_or(Ok(None), |value| millis_of(value, symbol))
}

fn millis_of(value: Value<'_>, symbol: &str) -> Result<Option<u64>, Error> {
    let float = match value {
        Value::Null => return Ok(None),
        Value::Ulong(millis) => return Ok(Some(millis)),
        Value::Float(number) => Some(f64::from(number)),
        Value::Double(number) => Some(number),
        _ => None,
    };
    match (float.filter(|number| number.is_finite()), value.as_i64()) {
        // A number beyond the range becomes the largest.
        (Some(number), _) => Ok((number >= 0.0).then_some(number as u64)),
        (None, Some(number)) => Ok(u64::try_from(number).ok()),
        (None, None) => {
            let why = format!("{symbol} is no number of milliseconds");
            Err(Error::new(condition::INVALID_FIELD, why))
        }
    }
}

/// By the time to live if there is one, since it needs no common clock (3.2.1); else by the
/// sender's absolute time (3.2.4), where zero stands for never, as in JMS.
fn expires(message: &Message<'_>, present: Present<'_>) -> Option<Nanos> {
    if let Some(ttl) = message.header().ttl.filter(|ttl| *ttl > 0) {
        return Some(present.now + Nanos::from_millis(ttl.into()));
    }
    let millis = message.absolute_expiry_time().filter(|millis| *millis > 0)?;
    u64::try_from(millis).ok().map(|millis| present.at(millis))
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec::Vec;

    use super::*;
    use crate::message::{self, Properties, data, message_annotations};

    /// The wall shows 1,000 s; the log remembers 5,000 s, from where the clock goes on.
    const WALL_MILLIS: i64 = 1_000_000;
    const NOW: Nanos = Nanos::from_secs(5_000);

    /// Reads a message at that moment.
    fn read_now(bytes: Vec<u8>) -> Result<Arrival, Error> {
        let clock = WallClock::default();
        clock.set(NOW, Nanos::from_secs(1_000));
        read(bytes.into(), MESSAGE_FORMAT, false, None, Present { now: NOW, clock: &clock })
    }

    fn read_of(annotation: Option<(&str, i64)>, absolute_expiry_time: Option<i64>) -> NewMessage {
        let annotation = annotation.map(|(symbol, millis)| (symbol, Value::Long(millis)));
        read_with(annotation, absolute_expiry_time).expect("a message")
    }

    fn read_with(
        annotation: Option<(&str, Value<'_>)>,
        absolute_expiry_time: Option<i64>,
    ) -> Result<NewMessage, Error> {
        let mut bytes = Vec::new();
        message_annotations(&mut bytes, |map| {
            if let Some((symbol, value)) = annotation {
                map.symbol(symbol, value);
            }
        });
        Properties { absolute_expiry_time, ..Properties::default() }.encode(&mut bytes);
        data(&mut bytes, b"body");
        Ok(read_now(bytes)?.message)
    }

    /// Selectors look through all properties: there may be many, but not any number.
    #[test]
    fn application_properties_are_bounded() {
        let with_properties = |count: usize| {
            let mut bytes = Vec::new();
            message::application_properties(&mut bytes, |map| {
                (0..count).for_each(|name| map.string(&name.to_string(), Value::Null));
            });
            read_now(bytes).map(drop)
        };
        assert_eq!(with_properties(APPLICATION_PROPERTIES_MAX), Ok(()));
        let error = with_properties(APPLICATION_PROPERTIES_MAX + 1).unwrap_err();
        assert_eq!(error.condition, condition::RESOURCE_LIMIT_EXCEEDED);
        assert!(error.description.is_some_and(|why| why.ends_with("at most: send fewer")));
    }

    #[test]
    fn absolute_times_use_wall_clock() {
        let in_a_minute = WALL_MILLIS + 60_000;
        let minute = Nanos::from_secs(60);
        assert_eq!(read_of(Some((DELIVERY_TIME, in_a_minute)), None).delay, minute);
        assert_eq!(read_of(Some((DELIVERY_TIME, WALL_MILLIS - 1)), None).delay, Nanos::ZERO);
        assert_eq!(read_of(Some((DELIVERY_TIME, i64::MIN)), None).delay, Nanos::ZERO);
        assert_eq!(read_of(Some((DELIVERY_DELAY, 60_000)), None).delay, minute);
        let mortal = read_of(None, Some(in_a_minute));
        assert_eq!(mortal.expires, Some(NOW + minute));
        assert_eq!(read_of(None, Some(i64::MAX)).expires, Some(Nanos::MAX));
    }

    #[test]
    fn delays_are_numbers_of_any_type() {
        let minute = Some(Nanos::from_secs(60));
        let cases = [
            (Value::Ushort(60_000), minute),
            (Value::Timestamp(60_000), minute),
            (Value::Float(60_000.0), minute),
            (Value::Double(60_000.9), minute),
            (Value::Ulong(u64::MAX), Some(Nanos::MAX)),
            (Value::Double(f64::MAX), Some(Nanos::MAX)),
            (Value::Double(-0.5), Some(Nanos::ZERO)),
            (Value::Null, Some(Nanos::ZERO)),
            (Value::Double(f64::INFINITY), None),
            (Value::Float(f32::NAN), None),
            (Value::String("60000"), None),
            (Value::Decimal32([0; 4]), None),
            (Value::Boolean(true), None),
            (Value::Uuid([0; 16]), None),
        ];
        for (value, expected) in cases {
            let read = read_with(Some((DELIVERY_DELAY, value)), None);
            assert_eq!(read.as_ref().ok().map(|message| message.delay), expected, "{value:?}");
            assert!(read.err().is_none_or(|error| error.condition == condition::INVALID_FIELD));
        }
    }
}
