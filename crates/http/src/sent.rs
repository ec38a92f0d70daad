//! The JSON of a transaction. Each member is given once, an unknown one is refused, and `null` says
//! nothing.

use serde::Deserialize;

use crate::object::Object;
use crate::property::Properties;

/// All of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Transaction {
    pub(crate) send: Option<Vec<Object<Sent>>>,
    pub(crate) settle: Option<Vec<Object<Settled>>>,
    pub(crate) expect: Option<Vec<Object<ExpectedKey>>>,
    pub(crate) put: Option<Vec<Object<PutKey>>>,
    pub(crate) add: Option<Vec<Object<AddedKey>>>,
    pub(crate) delete: Option<Vec<Object<DeletedKey>>>,
}

/// A key of a table that has to be as it is said.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExpectedKey {
    pub(crate) table: String,
    pub(crate) key: Option<String>,
    pub(crate) key_base64: Option<String>,
    pub(crate) value: Option<String>,
    pub(crate) value_base64: Option<String>,
    pub(crate) present: Option<bool>,
}

/// A key that gets a value.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PutKey {
    pub(crate) table: String,
    pub(crate) key: Option<String>,
    pub(crate) key_base64: Option<String>,
    pub(crate) value: Option<String>,
    pub(crate) value_base64: Option<String>,
}

/// A key to which a number is added.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AddedKey {
    pub(crate) table: String,
    pub(crate) key: Option<String>,
    pub(crate) key_base64: Option<String>,
    pub(crate) by: i64,
}

/// A key that goes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeletedKey {
    pub(crate) table: String,
    pub(crate) key: Option<String>,
    pub(crate) key_base64: Option<String>,
}

/// A message to be sent.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sent {
    pub(crate) queue: Option<String>,
    pub(crate) topic: Option<String>,
    pub(crate) body: Option<String>,
    pub(crate) body_base64: Option<String>,
    pub(crate) persistence: Option<String>,
    pub(crate) priority: Option<u8>,
    pub(crate) delay: Option<String>,
    pub(crate) ttl: Option<String>,
    pub(crate) content_type: Option<String>,
    pub(crate) group: Option<String>,
    pub(crate) properties: Option<Properties>,
    pub(crate) key: Option<String>,
}

/// The outcome of a leased message.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settled {
    pub(crate) lease: String,
    pub(crate) r#as: Option<String>,
}
