//! A client's requests to the transaction coordinator (4.5.2, 4.5.3): the body of its messages.

use alloc::vec::Vec;

use crate::decode_error::{DecodeError, DecodeErrorKind as Kind};
use crate::encode;
use crate::message::Message;
use crate::state::txn_id;
use crate::types::descriptor;
use crate::types::list_reader::ListReader;

/// A request to the coordinator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoordinatorRequest<'a> {
    /// Begins a transaction.
    Declare {
        /// The id of a distributed transaction, when it is to be part of one.
        global_id: Option<&'a [u8]>,
    },
    /// Ends a transaction.
    Discharge {
        /// Which.
        txn_id: &'a [u8],
        /// True if it is to be rolled back.
        fail: bool,
    },
}

impl<'a> CoordinatorRequest<'a> {
    /// Decodes a message to the coordinator: one amqp-value section with the request (4.2, 4.3).
    ///
    /// # Errors
    /// When the message is malformed or its body is no request.
    pub fn decode(message: &'a [u8]) -> Result<CoordinatorRequest<'a>, DecodeError> {
        let mut reader = Message::scan(message)?.value_reader()?;
        let unknown = reader.error(Kind::UnknownDescriptor);
        let code = reader.composite()?;
        let mut list = ListReader::new(&mut reader)?;
        let request = match code {
            descriptor::DECLARE => CoordinatorRequest::Declare { global_id: list.binary()? },
            descriptor::DISCHARGE => {
                CoordinatorRequest::Discharge { txn_id: txn_id(&mut list)?, fail: list.flag()? }
            }
            _ => return Err(unknown),
        };
        list.finish(&mut reader)?;
        reader.finish()?;
        Ok(request)
    }

    /// Appends a message with the request.
    pub fn encode(&self, out: &mut Vec<u8>) {
        encode::described(out, descriptor::AMQP_VALUE);
        match self {
            CoordinatorRequest::Declare { global_id } => {
                encode::composite(out, descriptor::DECLARE, |list| list.binary(*global_id));
            }
            CoordinatorRequest::Discharge { txn_id, fail } => {
                encode::composite(out, descriptor::DISCHARGE, |list| {
                    list.binary(Some(txn_id));
                    list.boolean(Some(*fail));
                });
            }
        }
    }
}
