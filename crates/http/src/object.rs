//! Bodies that have to be JSON objects: how they are read, and the errors for those that are none.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

use crate::problem::Problem;

/// The members of a JSON object. Without this, an array would be taken too, its values in the order
/// in which the members stand in the code.
#[derive(Debug)]
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Reader(PhantomData)).map(Self)
    }
}

struct Reader<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Reader<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(members))
    }
}

/// A refusal of a body that `error` tells of.
pub(crate) fn unreadable(body: &[u8], error: &serde_json::Error) -> Problem {
    Problem::bad_request(match body.trim_ascii_start().first() {
        None => "the body is empty, and has to be a JSON object".to_owned(),
        Some(b'{') if error.is_data() => format!("the body: {error}"),
        Some(_) => format!("the body is no JSON object: {error}"),
    })
}
