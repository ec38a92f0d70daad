//! The messages that are sent, and how they are known again.
//!
//! Each carries its number and when it was sent as application properties, which every broker
//! keeps, so that messages without a body are known too. The numbers of a run begin somewhere at
//! random: a message of an earlier run or of a foreign client is not taken for one of this.

use amqp::message::{self, BodyKind, Header, Message};
use amqp::types::Value;

/// The form of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyForm {
    /// One data section.
    Bytes,
    /// One string.
    Text,
    /// None at all.
    Nothing,
}

/// The body and header of all messages of a phase.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    durable: bool,
    form: BodyForm,
    body: String,
}

/// The marks that a message carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// Which of the run's.
    pub(crate) number: u64,
    /// When it was sent, in nanoseconds of the run's clock.
    pub(crate) sent_ns: u64,
}

/// A message that came instead of one of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Odd {
    /// One without its marks: not ours.
    Foreign,
    /// Ours, with another body or header.
    Changed,
}

impl Shape {
    /// Messages of so many bytes of body.
    pub(crate) fn new(durable: bool, form: BodyForm, body_bytes: usize) -> Self {
        let letters = b'a'..=b'z';
        let bytes = if form == BodyForm::Nothing { 0 } else { body_bytes };
        Self { durable, form, body: letters.cycle().take(bytes).map(char::from).collect() }
    }

    /// A message with all its sections.
    pub(crate) fn encode(&self, stamp: Stamp, out: &mut Vec<u8>) {
        Header { durable: self.durable, ..Header::default() }.encode(out);
        message::application_properties(out, |map| {
            map.string(NUMBER, signed(stamp.number));
            map.string(SENT, signed(stamp.sent_ns));
        });
        match self.form {
            BodyForm::Bytes => message::data(out, self.body.as_bytes()),
            BodyForm::Text => message::value(out, Value::String(&self.body)),
            BodyForm::Nothing => message::value(out, Value::Null),
        }
    }

    /// Looks at a message that came.
    pub(crate) fn check(&self, bytes: &[u8]) -> Result<Stamp, Odd> {
        let message = Message::scan(bytes).map_err(|_| Odd::Foreign)?;
        let mark = |name| message.application_property(name).and_then(|value| value.as_i64());
        let (number, sent) = mark(NUMBER).zip(mark(SENT)).ok_or(Odd::Foreign)?;
        if !self.is_body_of(&message) || message.header().durable != self.durable {
            return Err(Odd::Changed);
        }
        Ok(Stamp { number: number as u64, sent_ns: sent as u64 })
    }

    fn is_body_of(&self, message: &Message<'_>) -> bool {
        let is_whole = |text: &[u8]| text == self.body.as_bytes();
        match (self.form, message.body_kind()) {
            (BodyForm::Nothing, BodyKind::Empty) => true,
            // Brokers that store messages in a form of their own send no body as no bytes.
            (BodyForm::Bytes | BodyForm::Nothing, BodyKind::Data) => {
                let mut parts = message.data();
                let first = parts.next().unwrap_or_default();
                parts.next().is_none() && is_whole(first)
            }
            (form, BodyKind::Value) => match message.value() {
                Ok(Some(Value::Null)) => form == BodyForm::Nothing,
                Ok(Some(Value::Binary(bytes))) => form == BodyForm::Bytes && is_whole(bytes),
                Ok(Some(Value::String(text))) => is_whole(text.as_bytes()),
                _ => false,
            },
            _ => false,
        }
    }
}

/// A selector that is true of every message here, and has to be looked at for each.
pub(crate) const SELECTOR: &str = "dunlin_bench_number >= 0";

/// Numbers and times of a run are far below half of all.
fn signed(number: u64) -> Value<'static> {
    Value::Long(number as i64)
}

const NUMBER: &str = "dunlin_bench_number";
const SENT: &str = "dunlin_bench_sent";

#[cfg(test)]
mod tests {
    use super::*;

    const STAMP: Stamp = Stamp { number: 7 << 40, sent_ns: 9 };

    #[test]
    fn letter_is_recognised_in_every_form() {
        for form in [BodyForm::Bytes, BodyForm::Text, BodyForm::Nothing] {
            for durable in [true, false] {
                let shape = Shape::new(durable, form, 1000);
                let mut bytes = Vec::new();
                shape.encode(STAMP, &mut bytes);
                assert_eq!(shape.check(&bytes), Ok(STAMP));
                assert_eq!(Message::scan(&bytes).unwrap().header().durable, durable);
                let other = Shape::new(!durable, form, 1000);
                assert_eq!(other.check(&bytes), Err(Odd::Changed));
            }
        }
    }

    #[test]
    fn letter_check_finds_changed_and_foreign() {
        let shape = Shape::new(true, BodyForm::Bytes, 3);
        let mut bytes = Vec::new();
        shape.encode(STAMP, &mut bytes);
        *bytes.last_mut().unwrap() = b'x';
        assert_eq!(shape.check(&bytes), Err(Odd::Changed));
        let mut bytes = Vec::new();
        message::data(&mut bytes, b"abc");
        assert_eq!(shape.check(&bytes), Err(Odd::Foreign));
        assert_eq!(shape.check(b"abc"), Err(Odd::Foreign));
    }
}
