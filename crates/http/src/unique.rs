//! JSON objects in which each name is given once. RFC 8259, section 4, leaves open which one is
//! meant if it is given twice. Readers of the first and of the last would do different things.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value as Json};

/// An object, of which no part names anything twice.
///
/// # Errors
/// The fault and its position.
pub(crate) fn object(bytes: &[u8]) -> serde_json::Result<Map<String, Json>> {
    match serde_json::from_slice(bytes)? {
        Once(Json::Object(object)) => Ok(object),
        Once(_) => Err(Error::custom("it is another value")),
    }
}

struct Once(Json);

impl<'de> Deserialize<'de> for Once {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader).map(Self)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Json, A::Error> {
        let mut values = Vec::new();
        while let Some(Once(value)) = list.next_element()? {
            values.push(value);
        }
        Ok(Json::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Json, A::Error> {
        let mut object = Map::new();
        while let Some((name, Once(value))) = members.next_entry::<String, _>()? {
            if object.contains_key(&name) {
                return Err(Error::custom(format_args!("{name} is given twice")));
            }
            object.insert(name, value);
        }
        Ok(Json::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unique_object_equals_plain_json() {
        let text = r#"{"a":[null,true,-1,18446744073709551615,1.5,1e300,"x\"ü",{"b":{}}],"c":""}"#;
        assert_eq!(Json::Object(object(text.as_bytes()).unwrap()).to_string(), {
            let plain: Json = serde_json::from_str(text).unwrap();
            plain.to_string()
        });
    }

    #[test]
    fn repeated_name_is_refused_anywhere() {
        for text in [r#"{"a":1,"a":1}"#, r#"{"a":[{"b":1,"c":{},"b":2}]}"#, r#"{"é":1,"\u00e9":2}"#]
        {
            let error = object(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains("is given twice at line 1"), "{error}");
        }
        for text in ["", "1", "[]", r#"{"a":1} x"#, &r#"{"a":"#.repeat(200)] {
            assert!(object(text.as_bytes()).is_err(), "{text}");
        }
    }
}
