//! Properties of messages, as headers and as JSON.
//!
//! The header `Dunlin-Properties` holds all of them as an object. Beside it each may have a header
//! of its own; the name there has no case. There a value is a number, `true`, `false` or a text. It
//! is a number if that is written just so again: `007`, `1.50`, `1e3` and more digits than are held
//! stay texts. A text that looks like one of the others, or is not plain ASCII, is written as a
//! JSON string. Properties that have headers in other standards are in these: see [`standards`].

use std::collections::BTreeSet;
use std::fmt;

use hyper::header::{HeaderName, HeaderValue};
use model::PropertyValue;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value as Json};

use crate::draft::PROPERTIES_MAX;
use crate::number;
use crate::problem::{Problem, Result};
use crate::standards;

/// A property that a sender gave.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Property {
    pub(crate) name: String,
    pub(crate) value: Owned,
}

/// A [`PropertyValue`] of its own.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Owned {
    Null,
    Boolean(bool),
    Integer(i64),
    Float(f64),
    String(String),
}

impl Owned {
    pub(crate) fn borrowed(&self) -> PropertyValue<'_> {
        match self {
            Self::Null => PropertyValue::Null,
            Self::Boolean(value) => PropertyValue::Boolean(*value),
            Self::Integer(value) => PropertyValue::Integer(*value),
            Self::Float(value) => PropertyValue::Float(*value),
            Self::String(text) => PropertyValue::String(text),
        }
    }

    /// The value of a header.
    fn of_header(text: &str) -> Self {
        let is_written_so = |number: &Self| format!("{}", json(number.borrowed())) == text;
        let number = number::exact(text).filter(is_written_so);
        let word = || match serde_json::from_str::<Json>(text) {
            Ok(Json::Bool(value)) => Some(Self::Boolean(value)),
            Ok(Json::String(text)) => Some(Self::String(text)),
            _ => None,
        };
        number.or_else(word).unwrap_or_else(|| Self::String(text.into()))
    }

    /// The value of sound JSON.
    ///
    /// # Errors
    /// The values that it may have.
    fn of_json(text: &str) -> std::result::Result<Self, &'static str> {
        match serde_json::from_str::<Json>(text) {
            Ok(Json::Null) => Ok(Self::Null),
            Ok(Json::Bool(value)) => Ok(Self::Boolean(value)),
            Ok(Json::String(text)) => Ok(Self::String(text)),
            Ok(Json::Array(_) | Json::Object(_)) => Err("a text, a number, true, false or null"),
            // Any number.
            _ => number::exact(text).ok_or(
                "a number that 64 bits or a double hold exactly, or a text, which keeps its digits",
            ),
        }
    }
}

/// All properties of a message as an object of JSON, in which each name is given once.
#[derive(Debug, Default)]
pub(crate) struct Properties(pub(crate) Vec<Property>);

impl<'de> Deserialize<'de> for Properties {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_map(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Properties;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of texts, numbers, true, false and null")
    }

    fn visit_map<A: MapAccess<'de>>(
        self,
        mut members: A,
    ) -> std::result::Result<Properties, A::Error> {
        let (mut properties, mut names) = (Vec::new(), BTreeSet::new());
        // As a text: of a number that was read the digits are gone.
        while let Some((name, value)) = members.next_entry::<String, &RawValue>()? {
            if properties.len() == PROPERTIES_MAX {
                let most = PROPERTIES_MAX;
                return Err(A::Error::custom(format_args!(
                    "a message has {most} properties at most"
                )));
            }
            if !names.insert(name.clone()) {
                return Err(A::Error::custom(format_args!("property {name} is given twice")));
            }
            let value = Owned::of_json(value.get()).map_err(|what| {
                A::Error::custom(format_args!("property {name} has to be {what}"))
            })?;
            properties.push(Property { name, value });
        }
        Ok(Properties(properties))
    }
}

impl Property {
    /// The property of a header `Dunlin-Property-NAME`, if it is one.
    pub(crate) fn of_header(name: &HeaderName, value: &HeaderValue) -> Result<Option<Self>> {
        let Some(property) = name.as_str().strip_prefix(PREFIX) else { return Ok(None) };
        if property.is_empty() {
            return Err(Problem::bad_request("a header dunlin-property- names no property"));
        }
        let text = value.to_str().map_err(|_| {
            Problem::bad_request(format!("header {name} is not plain ASCII: use a JSON string"))
        })?;
        Ok(Some(Self { name: property.to_owned(), value: Owned::of_header(text.trim()) }))
    }
}

/// The header of a property; `None` if there can be no such header.
pub(crate) fn header(name: &str, value: PropertyValue<'_>) -> Option<(HeaderName, HeaderValue)> {
    if let Some(header) = standards::header(name, value) {
        return Some(header);
    }
    let name = HeaderName::from_bytes(format!("{PREFIX}{name}").as_bytes()).ok()?;
    let text = match value {
        PropertyValue::Null | PropertyValue::Opaque => return None,
        PropertyValue::String(text) if is_plain(text) => text.to_owned(),
        value => ascii(&json(value).to_string()),
    };
    Some((name, HeaderValue::from_str(&text).ok()?))
}

/// The header of all properties: an object in which names keep their case. `None`: there are none.
pub(crate) fn list(properties: &[(&str, PropertyValue<'_>)]) -> Option<HeaderValue> {
    let pairs = properties.iter().map(|(name, value)| ((*name).to_owned(), json(*value)));
    let object: Map<String, Json> = pairs.collect();
    if object.is_empty() {
        return None;
    }
    HeaderValue::from_str(&ascii(&Json::Object(object).to_string())).ok()
}

/// As JSON, which has no word for opaque values.
pub(crate) fn json(value: PropertyValue<'_>) -> Json {
    match value {
        PropertyValue::Null | PropertyValue::Opaque => Json::Null,
        PropertyValue::Boolean(value) => value.into(),
        PropertyValue::Integer(value) => value.into(),
        PropertyValue::Float(value) => Number::from_f64(value).map_or(Json::Null, Json::Number),
        PropertyValue::String(text) => text.into(),
    }
}

/// True if a text is itself in a header.
fn is_plain(text: &str) -> bool {
    let printable = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    printable && text.trim() == text && Owned::of_header(text) == Owned::String(text.into())
}

/// JSON without characters that a header cannot hold.
fn ascii(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    let mut units = [0; 2];
    for character in json.chars() {
        if (' '..='~').contains(&character) {
            text.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut units) {
            text.push_str(&format!("\\u{unit:04x}"));
        }
    }
    text
}

/// The prefix of the headers of properties.
pub(crate) const PREFIX: &str = "dunlin-property-";

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Owned {
        let name = HeaderName::from_static("dunlin-property-x");
        let value = HeaderValue::from_str(text).unwrap();
        let property = Property::of_header(&name, &value).unwrap().unwrap();
        assert_eq!(property.name, "x");
        property.value
    }

    #[test]
    fn header_value_is_number_boolean_text() {
        assert_eq!(read("5"), Owned::Integer(5));
        assert_eq!(read("-2.5"), Owned::Float(-2.5));
        assert_eq!(read("true"), Owned::Boolean(true));
        assert_eq!(read("EU"), Owned::String("EU".into()));
        assert_eq!(read("\"5\""), Owned::String("5".into()));
        assert_eq!(read("\"gr\\u00fcn\""), Owned::String("grün".into()));
        assert_eq!(read("[1]"), Owned::String("[1]".into()));
        assert_eq!(read("null"), Owned::String("null".into()));
        assert_eq!(read("1e+21"), Owned::Float(1e21), "as it is written");
        for text in ["007", "1.50", "1e3", "-0", "1e400", "+1", "12345678901234567890123"] {
            assert_eq!(read(text), Owned::String(text.into()), "{text}");
        }
        assert_eq!(read(""), Owned::String(String::new()));
    }

    #[test]
    fn written_values_are_read_back() {
        for text in [
            "EU",
            "5",
            "true",
            "\"",
            "grün",
            "a\nb",
            " x ",
            "",
            "\u{1f426}",
            "null",
            "1.50",
            "-0",
            "007",
        ] {
            let (_, value) = header("x", PropertyValue::String(text)).unwrap();
            assert_eq!(read(value.to_str().unwrap()), Owned::String(text.into()), "{text:?}");
        }
        for value in [Owned::Integer(-3), Owned::Float(1.5), Owned::Boolean(false)] {
            let (_, text) = header("x", value.borrowed()).unwrap();
            assert_eq!(read(text.to_str().unwrap()), value);
        }
        assert_eq!(header("x", PropertyValue::Null), None);
        assert_eq!(header("a b", PropertyValue::Integer(1)), None);
    }
}
