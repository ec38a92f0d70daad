//! Headers that other standards give to messages: W3C's trace context and CloudEvents' attributes.
//!
//! They become properties under the names that both have in AMQP (`traceparent`, `cloudEvents_id`),
//! so that consumers of AMQP find them, and leave as the same headers again.

use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};
use model::{PropertyValue, TRACE_CONTEXT};

use crate::problem::{Problem, Result};
use crate::property::{Owned, Property, json};

/// The attribute of an event, if the header is one (`ce-NAME`).
///
/// # Errors
/// It has no name, or its value is not UTF-8.
pub(crate) fn attribute(name: &HeaderName, value: &HeaderValue) -> Result<Option<Property>> {
    let Some(attribute) = name.as_str().strip_prefix(EVENT) else { return Ok(None) };
    if attribute.is_empty() {
        return Err(Problem::bad_request("a header ce- names no attribute of an event"));
    }
    let text = decoded(value.as_bytes()).ok_or_else(|| {
        Problem::bad_request(format!("header {name} is not percent-encoded UTF-8"))
    })?;
    let [prefix, _] = EVENT_PROPERTIES;
    Ok(Some(Property { name: format!("{prefix}{attribute}"), value: Owned::String(text) }))
}

/// Adds the trace context. A property of that name that the sender gave has precedence. A malformed
/// context is left out, as tracing asks of all that pass it on: no message is refused for it.
pub(crate) fn add_trace(properties: &mut Vec<Property>, headers: &HeaderMap) {
    for name in TRACE_CONTEXT {
        let values: Option<Vec<&str>> =
            headers.get_all(name).iter().map(|value| value.to_str().ok()).collect();
        // Only lists may stand in several headers.
        let values = values.filter(|all| all.len() <= 1 || name != PARENT).unwrap_or_default();
        let text = values.join(",");
        if !text.is_empty() && !properties.iter().any(|it| it.name == name) {
            properties.push(Property { name: name.to_owned(), value: Owned::String(text) });
        }
    }
}

/// True if a header says something of one event.
pub(crate) fn is_of_event(name: &str) -> bool {
    name.starts_with(EVENT)
}

/// The header of these standards that a property is; `None`: it is none.
pub(crate) fn header(name: &str, value: PropertyValue<'_>) -> Option<(HeaderName, HeaderValue)> {
    let text = match value {
        PropertyValue::Null | PropertyValue::Opaque => return None,
        PropertyValue::String(text) => text.to_owned(),
        value => json(value).to_string(),
    };
    if TRACE_CONTEXT.contains(&name) {
        let value = HeaderValue::from_str(&text).ok()?;
        return Some((HeaderName::from_bytes(name.as_bytes()).ok()?, value));
    }
    let attribute = EVENT_PROPERTIES.iter().find_map(|prefix| name.strip_prefix(prefix))?;
    let name = HeaderName::from_bytes(format!("{EVENT}{attribute}").as_bytes()).ok()?;
    let value = HeaderValue::from_str(&encoded(&text)).ok()?;
    (name.as_str() != EVENT).then_some((name, value))
}

/// A value of an event's header: in quotes or not, and some of it percent-encoded. A `%` before
/// anything else is itself, since many a library encodes nothing.
fn decoded(value: &[u8]) -> Option<String> {
    let value = value.trim_ascii();
    let quoted = value.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\""));
    let mut rest = quoted.unwrap_or(value);
    let mut text = Vec::with_capacity(rest.len());
    loop {
        let (byte, after) = match rest {
            [] => return String::from_utf8(text).ok(),
            [b'\\', byte, after @ ..] if quoted.is_some() => (*byte, after),
            [byte, after @ ..] => percent(rest).unwrap_or((*byte, after)),
        };
        text.push(byte);
        rest = after;
    }
}

/// The byte of `%` and two digits at the beginning, and the rest.
fn percent(text: &[u8]) -> Option<(u8, &[u8])> {
    let [b'%', high, low, after @ ..] = text else { return None };
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let byte = digit(high)? * 16 + digit(low)?;
    Some((u8::try_from(byte).ok()?, after))
}

/// The reverse: all that is not printable, spaces, quotes and `%`.
fn encoded(text: &str) -> String {
    let mut value = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'"' | b'%' => value.push_str(&format!("%{byte:02X}")),
            b'!'..=b'~' => value.push(char::from(byte)),
            _ => value.push_str(&format!("%{byte:02X}")),
        }
    }
    value
}

/// The one of trace context that is given once.
const PARENT: &str = "traceparent";

/// The prefix of an event's headers.
const EVENT: &str = "ce-";

/// The prefixes of their names in AMQP: one that JMS can select by, and that of older libraries.
const EVENT_PROPERTIES: [&str; 2] = ["cloudEvents_", "cloudEvents:"];

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute_of(value: &[u8]) -> Result<Option<Property>> {
        attribute(&HeaderName::from_static("ce-subject"), &HeaderValue::from_bytes(value).unwrap())
    }

    #[test]
    fn attributes_are_read_and_written() {
        for (value, text, written) in [
            ("/orders/7", "/orders/7", "/orders/7"),
            ("5", "5", "5"),
            ("Euro%20%E2%82%AC%20%F0%9F%98%80", "Euro € 😀", "Euro%20%E2%82%AC%20%F0%9F%98%80"),
            ("€", "€", "%E2%82%AC"),
            ("\"a \\\"b\\\" %41\"", "a \"b\" A", "a%20%22b%22%20A"),
            ("100%", "100%", "100%25"),
            ("%4", "%4", "%254"),
            ("%+4", "%+4", "%25+4"),
            ("\"", "\"", "%22"),
            ("", "", ""),
        ] {
            let Property { name, value } = attribute_of(value.as_bytes()).unwrap().unwrap();
            assert_eq!(
                (name.as_str(), &value),
                ("cloudEvents_subject", &Owned::String(text.into()))
            );
            for name in ["cloudEvents_subject", "cloudEvents:subject"] {
                let (name, value) = header(name, PropertyValue::String(text)).unwrap();
                assert_eq!((name.as_str(), value.to_str().unwrap()), ("ce-subject", written));
            }
        }
        assert!(attribute_of(b"%ff").unwrap_err().detail.contains("ce-subject"));
        assert!(attribute_of(b"\xff").is_err());
        let nameless = HeaderName::from_static("ce-");
        assert!(attribute(&nameless, &HeaderValue::from_static("x")).is_err());
    }

    #[test]
    fn other_properties_are_no_headers() {
        for name in ["id", "cloudEvents_", "cloudEvents_a b", "CloudEvents_id", "Traceparent"] {
            assert_eq!(header(name, PropertyValue::String("x")), None, "{name}");
        }
        assert_eq!(header("traceparent", PropertyValue::String("a\nb")), None);
        assert_eq!(header("cloudEvents_time", PropertyValue::Opaque), None);
        let (_, value) = header("cloudEvents_sequence", PropertyValue::Integer(5)).unwrap();
        assert_eq!(value, "5");
    }

    #[test]
    fn trace_context_refuses_no_message() {
        let mut headers = HeaderMap::new();
        let mut add = |name: &'static str, value: &[u8]| {
            headers.append(HeaderName::from_static(name), HeaderValue::from_bytes(value).unwrap())
        };
        add("traceparent", b"00-1-2-01");
        add("tracestate", b"a=1");
        add("tracestate", b"b=2");
        add("baggage", b"\xff");
        let property = |name: &str, text: &str| Property {
            name: name.into(),
            value: Owned::String(text.into()),
        };
        let mut properties = Vec::new();
        add_trace(&mut properties, &headers);
        let both = [property("traceparent", "00-1-2-01"), property("tracestate", "a=1,b=2")];
        assert_eq!(properties, both);

        let mut properties = vec![property("traceparent", "of the sender")];
        add_trace(&mut properties, &headers);
        assert_eq!(properties, [property("traceparent", "of the sender"), both[1].clone()]);

        headers.append(PARENT, HeaderValue::from_static("00-3-4-01"));
        let mut properties = Vec::new();
        add_trace(&mut properties, &headers);
        assert_eq!(properties, both[1..], "which it is, nobody knows");
    }
}
