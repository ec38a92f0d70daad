//! Messages that other protocols make with more than a payload, as AMQP would have brought them. So
//! every consumer and every selector sees all parts that their sender gave.

use alloc::vec::Vec;

use model::{Envelope, Envelopes, Format, PropertyValue};

use crate::content::content;
use crate::formats::{FORMAT, seen};
use crate::message::{self, Header, Message, Properties};
use crate::types::Value;

/// How to make messages of [`FORMAT`] out of payloads, and how to read them.
#[must_use]
pub fn envelopes() -> Envelopes {
    Envelopes { seal, read, content }
}

/// A header, properties, and the payload as one data section.
fn seal(envelope: &Envelope<'_>, payload: &[u8]) -> (Format, Vec<u8>) {
    let Envelope { durable, priority, ttl_millis: ttl, content_type, group, .. } = *envelope;
    let mut out = Vec::with_capacity(payload.len() + SECTIONS_BYTES_USUAL);
    Header { durable, priority, ttl, ..Header::default() }.encode(&mut out);
    let creation_time = envelope.created_millis;
    let properties =
        Properties { content_type, creation_time, group_id: group, ..Properties::default() };
    properties.encode(&mut out);
    if !envelope.properties.is_empty() {
        message::application_properties(&mut out, |map| {
            for (name, value) in &envelope.properties {
                map.string(name, written(*value));
            }
        });
    }
    message::data(&mut out, payload);
    (FORMAT, out)
}

fn written(value: PropertyValue<'_>) -> Value<'_> {
    match value {
        // Values of other protocols have none of the types that are opaque to them.
        PropertyValue::Null | PropertyValue::Opaque => Value::Null,
        PropertyValue::Boolean(value) => Value::Boolean(value),
        PropertyValue::Integer(value) => Value::Long(value),
        PropertyValue::Float(value) => Value::Double(value),
        PropertyValue::String(text) => Value::String(text),
    }
}

fn read(format: Format, body: &[u8]) -> Option<Envelope<'_>> {
    let message = Message::head_of_stored((format == FORMAT).then_some(body)?)?;
    let (header, properties) = (message.header(), message.properties());
    let application = message.application_properties();
    let pairs = application.iter().flat_map(|map| map.sound_pairs());
    Some(Envelope {
        durable: header.durable,
        priority: header.priority,
        ttl_millis: header.ttl,
        created_millis: properties.creation_time,
        content_type: properties.content_type,
        group: properties.group_id,
        properties: pairs.filter_map(|(name, value)| Some((name.as_str()?, seen(value)))).collect(),
    })
}

/// Descriptors, a content type and a few properties.
const SECTIONS_BYTES_USUAL: usize = 128;

#[cfg(test)]
mod tests {
    use model::{Found, Nanos, Subject};

    use super::*;
    use crate::formats::formats;

    fn envelope() -> Envelope<'static> {
        Envelope {
            durable: true,
            priority: 7,
            ttl_millis: Some(5_000),
            created_millis: Some(1_700_000_000_000),
            content_type: Some("text/plain"),
            group: Some("orders-7"),
            properties: alloc::vec![
                ("region", PropertyValue::String("EU")),
                ("amount", PropertyValue::Integer(-3)),
                ("rate", PropertyValue::Float(1.5)),
                ("urgent", PropertyValue::Boolean(true)),
                ("nothing", PropertyValue::Null),
            ],
        }
    }

    #[test]
    fn sealed_envelope_is_read_back() {
        let (format, body) = seal(&envelope(), b"payload");
        assert_eq!(read(format, &body), Some(envelope()));
        assert!(Message::scan(&body).is_ok(), "any client can read it");
    }

    #[test]
    fn sealed_envelope_serves_selectors_and_payload() {
        let formats = formats();
        let (format, body) = seal(&envelope(), b"payload");
        let subject = Subject {
            format,
            body: &body,
            priority: 0,
            is_persistent: false,
            created: Nanos::ZERO,
            expires: None,
            failed: 0,
            death: None,
        };
        let outline = (formats.outline)(format, &body);
        let found = Found { outline: &outline, index: &[] };
        let seen = |name| (formats.property)(&subject, found, name);
        assert_eq!(seen("region"), PropertyValue::String("EU"));
        assert_eq!(seen("amount"), PropertyValue::Integer(-3));
        assert_eq!(seen("JMSPriority"), PropertyValue::Integer(7));
        assert_eq!(seen("JMSTimestamp"), PropertyValue::Integer(1_700_000_000_000));
        assert_eq!(&body[(formats.payload)(format, &body)], b"payload");
        let (format, body) = seal(&Envelope::default(), b"");
        assert!((formats.payload)(format, &body).is_empty());
    }

    fn fingerprint(envelope: &Envelope<'_>, payload: &[u8]) -> u64 {
        let (format, body) = seal(envelope, payload);
        (formats().fingerprint)(format, &body)
    }

    #[test]
    fn fingerprint_covers_message_content() {
        let said = fingerprint(&envelope(), b"payload");
        let mut again = Envelope {
            durable: false,
            priority: 1,
            ttl_millis: None,
            created_millis: Some(1),
            ..envelope()
        };
        again.properties.reverse();
        again.properties.push(("traceparent", PropertyValue::String("00-1-2-01")));
        assert_eq!(fingerprint(&again, b"payload"), said, "it says the same");
        let mut others = alloc::vec![envelope(); 6];
        others[0].content_type = Some("text/html");
        others[1].content_type = None;
        others[2].properties.pop();
        others[3].properties[0] = ("region", PropertyValue::String("US"));
        others[4].properties[0] = ("Region", PropertyValue::String("EU"));
        others[5].properties[1] = ("amount", PropertyValue::Float(-3.0));
        let mut seen = alloc::vec![said, fingerprint(&envelope(), b"Payload")];
        seen.extend(others.iter().map(|other| fingerprint(other, b"payload")));
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 8, "each says something else");
    }

    #[test]
    fn fingerprint_knows_no_protocol() {
        let raw = (formats().fingerprint)(Format::RAW, b"payload");
        assert_eq!(fingerprint(&Envelope::default(), b"payload"), raw);
        assert_eq!(raw, model::fingerprint(b"payload", 0));
    }

    #[test]
    fn read_finds_no_envelope_in_others() {
        assert_eq!(read(Format::RAW, b"payload"), None);
        assert_eq!(read(FORMAT, &[0, 0x53, 0x73, 0xff]), None);
    }
}
