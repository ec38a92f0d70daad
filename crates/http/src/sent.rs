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
