//! A message as a client sends it, before it is one of the engine's.

use std::collections::BTreeSet;
use std::sync::Arc;

use hyper::HeaderMap;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderName};
use model::{
    Durability, Envelope, Envelopes, Format, JMS_PRIORITY_DEFAULT, JMS_PRIORITY_MAX, MessageGroup,
    Nanos, NewMessage, Persistence, limits, priority_of_jms,
};

use crate::base64;
use crate::origin::CLIENT;
use crate::problem::{Problem, Result};
use crate::property::{PREFIX, Properties, Property};
use crate::query::duration;
use crate::send::SMALLER;
use crate::sent::Sent;
use crate::standards;

/// All but the body.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Draft {
    persistence: Persistence,
    priority: u8,
    delay: Nanos,
    ttl: Option<Nanos>,
    pub(crate) content_type: Option<String>,
    group: Option<String>,
    properties: Vec<Property>,
    pub(crate) key: Option<String>,
}

impl Default for Draft {
    fn default() -> Self {
        Self {
            persistence: Persistence::Persistent,
            priority: JMS_PRIORITY_DEFAULT,
            delay: Nanos::ZERO,
            ttl: None,
            content_type: None,
            group: None,
            properties: Vec::new(),
            key: None,
        }
    }
}

impl Draft {
    /// A draft of the request's headers.
    pub(crate) fn of_headers(headers: &HeaderMap) -> Result<Self> {
        check_headers(headers)?;
        let mut draft = Self::default();
        if let Some(text) = header(headers, "dunlin-persistence")? {
            draft.persistence = persistence(text)?;
        }
        if let Some(text) = header(headers, "dunlin-priority")? {
            draft.priority = priority(text.parse().ok())?;
        }
        if let Some(text) = header(headers, "dunlin-delay")? {
            draft.delay = duration("dunlin-delay", text, DELAY_MAX)?;
        }
        if let Some(text) = header(headers, "dunlin-ttl")? {
            draft.ttl = Some(ttl("dunlin-ttl", text)?);
        }
        draft.content_type = content_type(header(headers, CONTENT_TYPE.as_str())?);
        draft.group = header(headers, "dunlin-group")?.map(group).transpose()?;
        draft.key = header(headers, "idempotency-key")?.map(key).transpose()?;
        if let Some(text) = header(headers, "dunlin-properties")? {
            draft.properties = listed(text)?;
        }
        for (name, value) in headers {
            draft.properties.extend(Property::of_header(name, value)?);
            draft.properties.extend(standards::attribute(name, value)?);
        }
        draft.check_properties()?;
        standards::add_trace(&mut draft.properties, headers);
        Ok(draft)
    }

    /// A draft of a JSON object, and its body.
    pub(crate) fn of_json(sent: Sent) -> Result<(Self, Vec<u8>)> {
        let mut draft = Self::default();
        if let Some(text) = &sent.persistence {
            draft.persistence = persistence(text)?;
        }
        if let Some(number) = sent.priority {
            draft.priority = priority(Some(number))?;
        }
        if let Some(text) = &sent.delay {
            draft.delay = duration("delay", text, DELAY_MAX)?;
        }
        if let Some(text) = &sent.ttl {
            draft.ttl = Some(ttl("ttl", text)?);
        }
        let printable = |text: &String| text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        if !sent.content_type.as_ref().is_none_or(printable) {
            return Err(Problem::bad_request("content_type has to be printable ASCII"));
        }
        draft.content_type = sent.content_type;
        draft.group = sent.group.as_deref().map(group).transpose()?;
        draft.key = sent.key.as_deref().map(key).transpose()?;
        draft.properties = sent.properties.unwrap_or_default().0;
        match (sent.body, sent.body_base64) {
            (Some(text), None) => Ok((draft, text.into_bytes())),
            (None, Some(text)) => match base64::decode(&text) {
                Some(body) => Ok((draft, body)),
                None => Err(Problem::bad_request("body_base64 is not padded base64 (RFC 4648)")),
            },
            _ => Err(Problem::bad_request("a message has one of body and body_base64")),
        }
    }

    fn check_properties(&self) -> Result<()> {
        let most = PROPERTIES_MAX;
        if self.properties.len() > most {
            return Err(Problem::bad_request(format!("a message has {most} properties at most")));
        }
        let mut names = BTreeSet::new();
        match self.properties.iter().find(|it| !names.insert(it.name.as_str())) {
            Some(Property { name, .. }) => {
                Err(Problem::bad_request(format!("property {name} is given twice")))
            }
            None => Ok(()),
        }
    }

    /// The engine's message of the present moment, by the engine's clock and by the machine's. Only
    /// a message with more than a payload gets an envelope.
    pub(crate) fn message(
        &self,
        body: &[u8],
        (now, wall): (Nanos, Nanos),
        envelopes: &Envelopes,
        bytes_max: usize,
    ) -> Result<NewMessage> {
        let (format, body): (_, Arc<[u8]>) = if self.is_just_a_body() {
            (Format::RAW, Arc::from(body))
        } else {
            let (format, body) = (envelopes.seal)(&self.envelope(wall), body);
            (format, Arc::from(body))
        };
        if body.len() > bytes_max {
            return Err(Problem::too_large("a message with its properties", bytes_max, SMALLER));
        }
        Ok(NewMessage {
            priority: priority_of_jms(self.priority),
            delay: self.delay,
            expires: self.ttl.map(|ttl| now + ttl),
            persistence: self.persistence,
            send_id: self.key.as_deref().map(Arc::from),
            group: self.group.as_deref().map(MessageGroup::named),
            format,
            ..NewMessage::new(body)
        })
    }

    fn is_just_a_body(&self) -> bool {
        self.content_type.is_none() && self.group.is_none() && self.properties.is_empty()
    }

    fn envelope(&self, wall: Nanos) -> Envelope<'_> {
        let millis = |span: Nanos| span.0 / 1_000_000;
        let properties = self.properties.iter();
        Envelope {
            durable: !matches!(
                self.persistence,
                Persistence::NonPersistent | Persistence::Exactly(Durability::None)
            ),
            priority: self.priority,
            ttl_millis: self.ttl.map(|ttl| u32::try_from(millis(ttl)).unwrap_or(u32::MAX)),
            created_millis: i64::try_from(millis(wall)).ok(),
            content_type: self.content_type.as_deref(),
            group: self.group.as_deref(),
            properties: properties.map(|it| (it.name.as_str(), it.value.borrowed())).collect(),
        }
    }
}

/// Refuses headers that it does not know or cannot keep: a misspelt header would have no effect.
fn check_headers(headers: &HeaderMap) -> Result<()> {
    if let Some(coding) = header(headers, CONTENT_ENCODING.as_str())?
        && !coding.eq_ignore_ascii_case("identity")
    {
        return Err(Problem::bad_request(format!(
            "the body is stored as it came, and nobody would learn that it is {coding}: leave \
             content-encoding out and say what it is by content-type or a property"
        )));
    }
    let is_unknown =
        |name: &&str| is_ours(name) && !HEADERS.contains(name) && !name.starts_with(PREFIX);
    match headers.keys().map(HeaderName::as_str).find(is_unknown) {
        Some(name) => Err(Problem::bad_request(format!(
            "header {name} is not known here, which are: {}, {PREFIX}NAME",
            HEADERS.join(", ")
        ))),
        None => Ok(()),
    }
}

/// Refuses the headers of one message if each message has its own in the body: they would have no
/// effect.
pub(crate) fn refuse_headers(headers: &HeaderMap) -> Result<()> {
    let is_of_one =
        |name: &&str| is_ours(name) || standards::is_of_event(name) || *name == "idempotency-key";
    match headers.keys().map(HeaderName::as_str).find(is_of_one) {
        Some(name) => Err(Problem::bad_request(format!(
            "header {name} is for one message: here each of send has members for it, persistence, \
             priority, delay, ttl, properties and key"
        ))),
        None => Ok(()),
    }
}

/// True if a header says something of a message in words of ours.
fn is_ours(name: &str) -> bool {
    name.starts_with("dunlin-") && name != CLIENT.as_str()
}

fn header<'h>(headers: &'h HeaderMap, name: &str) -> Result<Option<&'h str>> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(Problem::bad_request(format!("header {name} is given twice")));
    }
    let text = value.to_str();
    text.map(Some).map_err(|_| Problem::bad_request(format!("header {name} is not plain ASCII")))
}

fn persistence(text: &str) -> Result<Persistence> {
    match text {
        "persistent" => Ok(Persistence::Persistent),
        "none" => Ok(Persistence::NonPersistent),
        "written" => Ok(Persistence::Exactly(Durability::Written)),
        "synced" => Ok(Persistence::Exactly(Durability::Synced)),
        _ => Err(Problem::bad_request(format!(
            "persistence is {text:?} and has to be persistent, none, written or synced"
        ))),
    }
}

fn priority(number: Option<u8>) -> Result<u8> {
    number.filter(|number| *number <= JMS_PRIORITY_MAX).ok_or_else(|| {
        Problem::bad_request("a priority is a number from 0 to 9, which is the most urgent")
    })
}

fn ttl(name: &str, text: &str) -> Result<Nanos> {
    let ttl = duration(name, text, DELAY_MAX)?;
    if ttl == Nanos::ZERO {
        return Err(Problem::bad_request(format!("{name} is 0: leave it out, or take 1ms")));
    }
    Ok(ttl)
}

/// The type of the body, unless it is one that curl and browsers send by themselves: that says
/// nothing.
fn content_type(text: Option<&str>) -> Option<String> {
    let text = text?.trim();
    let essence = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let says_nothing = SAY_NOTHING.contains(&essence.as_str());
    (!says_nothing).then(|| text.to_owned())
}

fn key(text: &str) -> Result<String> {
    let most = limits::SEND_ID_BYTES_MAX;
    if text.is_empty() || text.len() > most {
        return Err(Problem::bad_request(format!("an idempotency key has 1 to {most} bytes")));
    }
    Ok(text.to_owned())
}

fn group(text: &str) -> Result<String> {
    let most = GROUP_BYTES_MAX;
    let is_printable = text.bytes().all(|byte| byte.is_ascii_graphic());
    if text.is_empty() || text.len() > most || !is_printable {
        return Err(Problem::bad_request(format!(
            "the name of a group has 1 to {most} letters, digits and signs of ASCII"
        )));
    }
    Ok(text.to_owned())
}

/// The properties of the header that holds all of them. Names keep their case there.
fn listed(text: &str) -> Result<Vec<Property>> {
    serde_json::from_str(text)
        .map(|Properties(all)| all)
        .map_err(|error| Problem::bad_request(format!("header dunlin-properties: {error}")))
}

/// Headers of our own that a message may have, beside those of its properties.
const HEADERS: [&str; 6] = [
    "dunlin-persistence",
    "dunlin-priority",
    "dunlin-delay",
    "dunlin-ttl",
    "dunlin-group",
    "dunlin-properties",
];

const SAY_NOTHING: [&str; 2] = ["application/x-www-form-urlencoded", "application/octet-stream"];

/// A message that is further away than a year is a mistake of units.
pub(crate) const DELAY_MAX: Nanos = Nanos::from_secs(366 * 86_400);

/// Bytes of the name of a group.
pub(crate) const GROUP_BYTES_MAX: usize = 255;

/// Properties of one message.
pub(crate) const PROPERTIES_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;
    use crate::property::Owned;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        pairs.iter().map(pair).collect()
    }

    fn of(pairs: &[(&'static str, &'static str)]) -> Result<Draft> {
        Draft::of_headers(&headers(pairs))
    }

    fn of_json(text: &str) -> Result<(Draft, Vec<u8>)> {
        let sent = serde_json::from_str(text);
        Draft::of_json(sent.map_err(|error| Problem::bad_request(error.to_string()))?)
    }

    const PLAIN: Envelopes = Envelopes {
        seal: |_, payload| (Format(1), payload.to_vec()),
        read: |_, _| None,
        content: |_, _| None,
    };

    #[test]
    fn headers_and_json_say_the_same() {
        let by_headers = of(&[
            ("dunlin-persistence", "none"),
            ("dunlin-priority", "9"),
            ("dunlin-delay", "5s"),
            ("dunlin-ttl", "1m"),
            ("content-type", "text/plain"),
            ("dunlin-group", "orders-7"),
            ("idempotency-key", "k"),
            ("dunlin-property-n", "5"),
        ]);
        let json = r#"{
            "persistence": "none", "priority": 9, "delay": "5s", "ttl": "1m", "body": "b",
            "content_type": "text/plain", "group": "orders-7", "key": "k", "properties": {"n": 5}
        }"#;
        let (by_json, body) = of_json(json).unwrap();
        assert_eq!(by_headers.unwrap(), by_json);
        assert_eq!(body, b"b");
        let message = by_json.message(&body, (Nanos::SECOND, Nanos::SECOND), &PLAIN, 10).unwrap();
        assert_eq!(message.priority, 0);
        assert_eq!(message.persistence, Persistence::NonPersistent);
        assert_eq!(message.expires, Some(Nanos::from_secs(61)));
        assert_eq!((message.delay, message.format), (Nanos::from_secs(5), Format(1)));
        assert_eq!(message.send_id.as_deref(), Some("k"));
        assert_eq!(message.group, Some(MessageGroup::named("orders-7")));
    }

    #[test]
    fn properties_header_keeps_case_of_names() {
        let both = of(&[
            ("dunlin-properties", r#"{"Color":"red","n":5,"text":"5","\u00fc":null}"#),
            ("dunlin-property-size", "7"),
        ]);
        let property = |name: &str, value| Property { name: name.into(), value };
        let expected = [
            property("Color", Owned::String("red".into())),
            property("n", Owned::Integer(5)),
            property("text", Owned::String("5".into())),
            property("ü", Owned::Null),
            property("size", Owned::Integer(7)),
        ];
        assert_eq!(both.unwrap().properties, expected);
    }

    #[test]
    fn draft_without_facts_has_no_envelope() {
        for quiet in ["application/octet-stream", "Application/X-WWW-Form-URLencoded; a=b"] {
            let draft = of(&[("content-type", quiet)]).unwrap();
            let message = draft.message(b"b", (Nanos::ZERO, Nanos::ZERO), &PLAIN, 10).unwrap();
            assert_eq!(message.format, Format::RAW);
        }
    }

    #[test]
    fn senseless_draft_headers_are_refused() {
        let wrong = [
            ("dunlin-persistence", "yes"),
            ("dunlin-priority", "10"),
            ("dunlin-priority", "-1"),
            ("dunlin-delay", "5"),
            ("dunlin-ttl", "0"),
            ("idempotency-key", ""),
            ("dunlin-group", ""),
            ("dunlin-group", "a b"),
            ("dunlin-property-", "x"),
            ("dunlin-persistance", "synced"),
            ("dunlin-durability", "synced"),
            ("dunlin-", "x"),
            ("content-encoding", "gzip"),
            ("dunlin-properties", "Color=red"),
            ("dunlin-properties", "[1]"),
            ("dunlin-properties", r#"{"a":{}}"#),
            ("dunlin-properties", r#"{"a":0.1000000000000000055}"#),
            ("dunlin-properties", r#"{"a":1,"a":1}"#),
        ];
        assert!(of(&[("content-encoding", "Identity"), ("dunlin-property-foo", "1")]).is_ok());
        let misspelt = of(&[("dunlin-persistance", "synced")]).unwrap_err().detail;
        assert!(misspelt.contains("dunlin-persistence"), "{misspelt}");
        let twice = [("dunlin-properties", r#"{"x":1}"#), ("dunlin-property-x", "1")];
        assert!(of(&twice).unwrap_err().detail.contains("property x is given twice"));
        for pair in wrong {
            assert_eq!(of(&[pair]).unwrap_err().kind, "bad-request", "{pair:?}");
        }
        for text in [
            r#"{}"#,
            r#"{"body": "a", "body_base64": "YQ=="}"#,
            r#"{"body": 5}"#,
            r#"{"body_base64": "?"}"#,
            r#"{"body": "a", "priority": "5"}"#,
            r#"{"body": "a", "priority": 10}"#,
            r#"{"body": "a", "priority": 256}"#,
            r#"{"body": "a", "properties": [1]}"#,
            r#"{"body": "a", "properties": {"x": {}}}"#,
            r#"{"body": "a", "properties": {"x": 1e400}}"#,
            r#"{"body": "a", "properties": {"x": 12345678901234567890}}"#,
            r#"{"body": "a", "properties": {"x": 1, "x": 1}}"#,
            r#"{"body": "a", "body": "b"}"#,
            r#"{"body": "a", "content_type": "a\nb"}"#,
            r#"{"body": "a", "colour": "red"}"#,
        ] {
            assert_eq!(of_json(text).unwrap_err().kind, "bad-request", "{text}");
        }
        assert!(of_json(r#"{"body": "a", "ttl": null, "key": null}"#).is_ok(), "not said");
    }

    #[test]
    fn message_over_limit_is_refused() {
        let draft = Draft::default();
        assert!(draft.message(b"12345", (Nanos::ZERO, Nanos::ZERO), &PLAIN, 5).is_ok());
        let problem = draft.message(b"123456", (Nanos::ZERO, Nanos::ZERO), &PLAIN, 5).unwrap_err();
        assert_eq!(problem.status.as_u16(), 413);
    }
}
