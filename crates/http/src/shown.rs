//! A message as a client gets it: bytes with headers, or JSON.

use std::sync::Arc;

use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use model::{
    DeadLetter, Delivery, Durability, Envelope, Envelopes, Nanos, QueueName, jms_of_priority,
};
use serde_json::{Map, Value as Json, json};

use crate::base64;
use crate::property;

/// The bytes for a client, without copying them.
pub(crate) fn payload(delivery: &Delivery) -> Bytes {
    struct Body(Arc<[u8]>);
    impl AsRef<[u8]> for Body {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    let end = delivery.payload.end.min(delivery.body.len());
    let start = delivery.payload.start.min(end);
    Bytes::from_owner(Body(delivery.body.share())).slice(start..end)
}

/// What stands beside the bytes.
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
    property_headers(delivery, &envelope, headers);
}

/// The properties as far as a client reads them in headers: a message that it cannot read would
/// come again and again. Where there are too many `Dunlin-Properties-At` says where they are.
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
    put("properties", properties(&envelope));
    if let Some(dead) = &delivery.dead {
        put("dead", dead_letter(dead));
    }
    match str::from_utf8(delivery.payload()) {
        Ok(text) => put("body", text.into()),
        Err(_) => put("body_base64", base64::encode(delivery.payload()).into()),
    };
    object
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

/// Of a span.
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
