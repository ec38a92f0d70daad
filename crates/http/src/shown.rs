//! A message as a client gets it: bytes with headers, or JSON.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use model::{
    Content, DeadLetter, Delivery, Durability, Envelope, Envelopes, Nanos, QueueName,
    jms_of_priority,
};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value as Json, json};

use crate::base64;
use crate::draft::GROUP_BYTES_MAX;
use crate::property;

/// The bytes for a client, without copying them.
pub(crate) fn payload(delivery: &Delivery) -> Bytes {
    struct Body(Arc<[u8]>);
    impl AsRef<[u8]> for Body {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    Bytes::from_owner(Body(delivery.body.share())).slice(delivery.payload_range())
}

/// Adds the headers that describe the body.
pub(crate) fn headers(delivery: &Delivery, envelopes: &Envelopes, headers: &mut HeaderMap) {
    let envelope = (envelopes.read)(delivery.format, &delivery.body).unwrap_or_default();
    let content_type = envelope.content_type.filter(|text| text.len() <= CONTENT_TYPE_BYTES_MAX);
    let content_type = content_type.and_then(|text| HeaderValue::from_str(text).ok());
    let unknown = || HeaderValue::from_static("application/octet-stream");
    headers.insert(CONTENT_TYPE, content_type.unwrap_or_else(unknown));
    let mut number = |name, number: u64| {
        headers.insert(HeaderName::from_static(name), HeaderValue::from(number));
    };
    number("dunlin-message", delivery.message.0);
    number("dunlin-deliveries", delivery.count.into());
    number("dunlin-failed", delivery.failed.into());
    number("dunlin-priority", jms_of_priority(delivery.priority).into());
    let mut word = |name, word| {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(word));
    };
    word("dunlin-durability", durability(delivery.durability));
    if let Some(dead) = &delivery.dead {
        word("dunlin-dead-reason", dead.reason.word());
        if let Ok(from) = HeaderValue::from_str(dead.from.as_str()) {
            headers.insert(HeaderName::from_static("dunlin-dead-from"), from);
        }
    }
    // No client reads a longer one, or one that is no text for headers.
    let group = envelope.group.filter(|name| name.len() <= GROUP_BYTES_MAX);
    if let Some(Ok(group)) = group.map(HeaderValue::from_str) {
        headers.insert(HeaderName::from_static("dunlin-group"), group);
    }
    property_headers(delivery, &envelope, headers);
}

/// The properties as far as a client reads them in headers: a message that it cannot read would
/// come again and again. If there are too many, `Dunlin-Properties-At` names the resource that has
/// them.
fn property_headers(delivery: &Delivery, envelope: &Envelope<'_>, headers: &mut HeaderMap) {
    let Some(list) = property::list(&envelope.properties) else { return };
    if list.len() > PROPERTIES_BYTES_MAX {
        let at = HeaderValue::from_str(&format!("/messages/{}", delivery.message));
        let at = at.expect("invariant: a path of letters and digits");
        headers.insert(HeaderName::from_static("dunlin-properties-at"), at);
        return;
    }
    headers.insert(HeaderName::from_static("dunlin-properties"), list);
    let pairs = envelope.properties.iter();
    let each: Vec<_> = pairs.filter_map(|(name, value)| property::header(name, *value)).collect();
    let bytes: usize = each.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    if each.len() <= PROPERTY_HEADERS_MAX && bytes <= PROPERTIES_BYTES_MAX {
        headers.extend(each);
    }
}

/// All of it as an object.
pub(crate) fn json(delivery: &Delivery, envelopes: &Envelopes) -> Map<String, Json> {
    let envelope = (envelopes.read)(delivery.format, &delivery.body).unwrap_or_default();
    let mut object = Map::new();
    let mut put = |name: &str, value: Json| object.insert(name.to_owned(), value);
    put("id", delivery.message.0.into());
    put("deliveries", delivery.count.into());
    put("failed", delivery.failed.into());
    put("priority", jms_of_priority(delivery.priority).into());
    put("durability", durability(delivery.durability).into());
    put("created", moment(delivery.created));
    put("expires", delivery.expires.map_or(Json::Null, moment));
    put("content_type", envelope.content_type.map_or(Json::Null, Json::from));
    if let Some(topic) = &delivery.topic {
        put("topic", topic.as_str().into());
    }
    if let Some(group) = envelope.group {
        put("group", group.into());
    }
    put("properties", properties(&envelope));
    if let Some(dead) = &delivery.dead {
        put("dead", dead_letter(dead));
    }
    match str::from_utf8(delivery.payload()) {
        Ok(text) => put("body", text.into()),
        Err(_) => put("body_base64", base64::encode(delivery.payload()).into()),
    };
    if let Some(content) = (envelopes.content)(delivery.format, &delivery.body) {
        put("body_value", value(content));
    }
    object
}

/// The text of an object, as which it takes a part of the memory: of a list of messages one at a
/// time is there in values.
pub(crate) fn text(object: &Map<String, Json>) -> Box<RawValue> {
    to_raw_value(object).expect("invariant: values of JSON have a text")
}

/// JSON has no octets: they are base64. A map is an object if its keys are texts, and else a
/// list of pairs.
fn value(content: Content) -> Json {
    match content {
        Content::Null => Json::Null,
        Content::Boolean(value) => value.into(),
        Content::Integer(number) => number.into(),
        Content::Unsigned(number) => number.into(),
        Content::Float(number) => number.into(),
        Content::String(text) => text.into(),
        Content::Binary(bytes) => base64::encode(&bytes).into(),
        Content::List(values) => values.into_iter().map(value).collect(),
        Content::Map(pairs) if are_named(&pairs) => {
            let named = pairs.into_iter().filter_map(|(key, held)| match key {
                Content::String(name) => Some((name, value(held))),
                _ => None,
            });
            Json::Object(named.collect())
        }
        Content::Map(pairs) => pairs
            .into_iter()
            .map(|(key, held)| Json::from_iter([value(key), value(held)]))
            .collect(),
    }
}

/// True if each key is a text, and another one: a string and a symbol may read alike.
fn are_named(pairs: &[(Content, Content)]) -> bool {
    let names = pairs.iter().map(|(key, _)| match key {
        Content::String(name) => Some(name),
        _ => None,
    });
    let names: Option<BTreeSet<&String>> = names.collect();
    names.is_some_and(|names| names.len() == pairs.len())
}

fn properties(envelope: &Envelope<'_>) -> Json {
    let pairs = envelope.properties.iter();
    pairs.map(|(name, value)| ((*name).to_owned(), property::json(*value))).collect()
}

fn dead_letter(dead: &DeadLetter) -> Json {
    let mut object = Map::new();
    let mut put = |name: &str, value: Json| object.insert(name.to_owned(), value);
    put("reason", dead.reason.word().into());
    put("from", dead.from.as_str().into());
    put("at", moment(dead.at));
    put("failed", dead.attempts.into());
    if let Some(name) = &dead.subscription {
        let client = name.client.as_ref().map(QueueName::as_str);
        put("subscription", json!({ "name": name.name.as_str(), "client": client }));
    }
    object.into()
}

const fn durability(level: Durability) -> &'static str {
    match level {
        Durability::None => "none",
        Durability::Written => "written",
        Durability::Synced => "synced",
    }
}

/// A moment, for people and programs.
pub(crate) fn moment(time: Nanos) -> Json {
    time.rfc3339().to_string().into()
}

/// The milliseconds of a span.
pub(crate) const fn millis(time: Nanos) -> u64 {
    time.0 / 1_000_000
}

/// Bytes of properties in one header of all, and in headers of their own: many a client reads 16
/// KiB of headers and not more.
const PROPERTIES_BYTES_MAX: usize = 6 * 1024;

/// Properties with headers of their own: many a client reads 100 headers and not more.
const PROPERTY_HEADERS_MAX: usize = 64;

/// Bytes of a content type as a header.
const CONTENT_TYPE_BYTES_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_become_json() {
        let text = |text: &str| Content::String(text.into());
        let named = Content::Map(vec![
            (text("n"), Content::Unsigned(u64::MAX)),
            (text("bytes"), Content::Binary(vec![255])),
            (text("list"), Content::List(vec![Content::Null, Content::Float(f64::NAN)])),
        ]);
        let shown = value(named).to_string();
        assert_eq!(shown, r#"{"bytes":"/w==","list":[null,null],"n":18446744073709551615}"#);
        let numbered = Content::Map(vec![(Content::Integer(1), text("a")), (text("1"), text("b"))]);
        assert_eq!(value(numbered).to_string(), r#"[[1,"a"],["1","b"]]"#);
        let alike = Content::Map(vec![(text("a"), Content::Null), (text("a"), Content::Null)]);
        assert_eq!(value(alike).to_string(), r#"[["a",null],["a",null]]"#);
        assert_eq!(value(Content::Map(Vec::new())).to_string(), "{}");
    }
}
