//! Errors that peers tell each other (2.8.14).

use alloc::borrow::{Cow, ToOwned};
use alloc::string::String;
use alloc::vec::Vec;

use crate::decode_error::DecodeError;
use crate::encode::{self, ListWriter};
use crate::types::list_reader::ListReader;
use crate::types::reader::{Reader, Result};
use crate::types::{Fields, descriptor};

/// Why a connection, session or link ends, or a message is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The condition, for programs: one of [`condition`], or one of the peer's own.
    pub condition: Cow<'static, str>,
    /// The description, for people.
    pub description: Option<String>,
    /// Further facts, as the condition defines them.
    pub info: Fields,
}

impl Error {
    /// An error with a sentence for people.
    pub fn new(condition: &'static str, description: impl Into<String>) -> Error {
        let description = Some(description.into());
        Error { condition: Cow::Borrowed(condition), description, info: Fields::default() }
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Error> {
        let mut list = ListReader::composite(reader, descriptor::ERROR)?;
        let condition = list.symbol()?;
        let condition = Cow::Owned(list.need(condition, "condition")?.to_owned());
        let description = list.string()?;
        let info = list.fields()?;
        list.finish(reader)?;
        Ok(Error { condition, description, info })
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        encode::composite(out, descriptor::ERROR, |list: &mut ListWriter<'_>| {
            list.symbol(Some(&self.condition));
            list.string(self.description.as_deref());
            list.fields(&self.info);
        });
    }
}

impl From<DecodeError> for Error {
    fn from(error: DecodeError) -> Error {
        Error::new(error.condition(), alloc::format!("{error}"))
    }
}

/// The conditions of the specification (2.8.15 to 2.8.18, 4.5.8).
pub mod condition {
    /// An unexpected failure inside of the broker.
    pub const INTERNAL_ERROR: &str = "amqp:internal-error";
    /// A node, subscription or the like does not exist.
    pub const NOT_FOUND: &str = "amqp:not-found";
    /// The peer may not do that.
    pub const UNAUTHORIZED_ACCESS: &str = "amqp:unauthorized-access";
    /// Bytes that are no AMQP.
    pub const DECODE_ERROR: &str = "amqp:decode-error";
    /// A limit of the broker.
    pub const RESOURCE_LIMIT_EXCEEDED: &str = "amqp:resource-limit-exceeded";
    /// Not possible in the present state or in that way.
    pub const NOT_ALLOWED: &str = "amqp:not-allowed";
    /// A field has a value that is not allowed.
    pub const INVALID_FIELD: &str = "amqp:invalid-field";
    /// The specification has it and the broker has not.
    pub const NOT_IMPLEMENTED: &str = "amqp:not-implemented";
    /// Another client holds it.
    pub const RESOURCE_LOCKED: &str = "amqp:resource-locked";
    /// A condition of the request is not fulfilled.
    pub const PRECONDITION_FAILED: &str = "amqp:precondition-failed";
    /// It is being deleted.
    pub const RESOURCE_DELETED: &str = "amqp:resource-deleted";
    /// Not permitted in the present state.
    pub const ILLEGAL_STATE: &str = "amqp:illegal-state";
    /// A frame cannot be sent within the peer's maximum.
    pub const FRAME_SIZE_TOO_SMALL: &str = "amqp:frame-size-too-small";

    /// An operator closed the connection, or silence did.
    pub const CONNECTION_FORCED: &str = "amqp:connection:forced";
    /// Bytes that are no frame.
    pub const CONNECTION_FRAMING_ERROR: &str = "amqp:connection:framing-error";
    /// The container is to be reached elsewhere.
    pub const CONNECTION_REDIRECT: &str = "amqp:connection:redirect";

    /// More transfers than the session's window.
    pub const SESSION_WINDOW_VIOLATION: &str = "amqp:session:window-violation";
    /// A handle of a link that is attached already.
    pub const SESSION_ERRANT_LINK: &str = "amqp:session:errant-link";
    /// An attach under a handle in use.
    pub const SESSION_HANDLE_IN_USE: &str = "amqp:session:handle-in-use";
    /// A handle of no link.
    pub const SESSION_UNATTACHED_HANDLE: &str = "amqp:session:unattached-handle";

    /// An operator detached the link.
    pub const LINK_DETACH_FORCED: &str = "amqp:link:detach-forced";
    /// A message without credit for it.
    pub const LINK_TRANSFER_LIMIT_EXCEEDED: &str = "amqp:link:transfer-limit-exceeded";
    /// A message larger than the link's maximum.
    pub const LINK_MESSAGE_SIZE_EXCEEDED: &str = "amqp:link:message-size-exceeded";
    /// The address is to be reached elsewhere.
    pub const LINK_REDIRECT: &str = "amqp:link:redirect";
    /// Another session attached a link of this name.
    pub const LINK_STOLEN: &str = "amqp:link:stolen";

    /// The transaction is not known.
    pub const TRANSACTION_UNKNOWN_ID: &str = "amqp:transaction:unknown-id";
    /// The transaction was rolled back.
    pub const TRANSACTION_ROLLBACK: &str = "amqp:transaction:rollback";
    /// The transaction took longer than allowed.
    pub const TRANSACTION_TIMEOUT: &str = "amqp:transaction:timeout";
}
