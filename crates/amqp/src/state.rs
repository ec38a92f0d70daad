//! The states of a delivery (3.4, 4.5).

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::decode_error::DecodeErrorKind as Kind;
use crate::encode;
use crate::error::Error;
use crate::types::list_reader::ListReader;
use crate::types::reader::{Reader, Result};
use crate::types::{Fields, descriptor};

/// The state of a delivery, as transfers and dispositions carry it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliveryState<'a> {
    /// How much of a message has arrived, on links that are resumed (3.4.1).
    Received {
        /// The section where the rest begins.
        section_number: u32,
        /// The byte of that section.
        section_offset: u64,
    },
    /// A terminal state.
    Outcome(Outcome),
    /// A transaction was begun (4.5.5).
    Declared {
        /// Its id.
        txn_id: &'a [u8],
    },
    /// The delivery belongs to a transaction (4.5.6).
    Transactional {
        /// The transaction's id.
        txn_id: &'a [u8],
        /// The outcome of the delivery if the transaction commits.
        outcome: Option<Outcome>,
    },
}

/// How a delivery ends (3.4.2 to 3.4.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Processed; it can be forgotten.
    Accepted,
    /// Invalid, and it will not become better.
    Rejected(Option<Box<Error>>),
    /// Not processed at all.
    Released,
    /// Not processed, and something about it changed.
    Modified(Modified),
}

/// How a message that comes back has changed (3.4.5).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Modified {
    /// True if the attempt counts.
    pub delivery_failed: bool,
    /// True if this link must not get it again.
    pub undeliverable_here: bool,
    /// Annotations that replace those of the message.
    pub message_annotations: Fields,
}

impl DeliveryState<'_> {
    /// The message was processed.
    pub const ACCEPTED: DeliveryState<'static> = DeliveryState::Outcome(Outcome::Accepted);

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            DeliveryState::Received { section_number, section_offset } => {
                encode::composite(out, descriptor::RECEIVED, |list| {
                    list.uint(Some(*section_number));
                    list.ulong(Some(*section_offset));
                });
            }
            DeliveryState::Outcome(outcome) => outcome.encode(out),
            DeliveryState::Declared { txn_id } => {
                encode::composite(out, descriptor::DECLARED, |list| list.binary(Some(txn_id)));
            }
            DeliveryState::Transactional { txn_id, outcome } => {
                encode::composite(out, descriptor::TRANSACTIONAL_STATE, |list| {
                    list.binary(Some(txn_id));
                    list.field(outcome.as_ref(), |out, outcome| outcome.encode(out));
                });
            }
        }
    }
}

impl<'a> DeliveryState<'a> {
    pub(crate) fn decode(reader: &mut Reader<'a>) -> Result<DeliveryState<'a>> {
        let unknown = reader.error(Kind::UnknownDescriptor);
        let code = reader.composite()?;
        let mut list = ListReader::new(reader)?;
        let state = match code {
            descriptor::RECEIVED => received(&mut list)?,
            descriptor::DECLARED => DeliveryState::Declared { txn_id: txn_id(&mut list)? },
            descriptor::TRANSACTIONAL_STATE => DeliveryState::Transactional {
                txn_id: txn_id(&mut list)?,
                outcome: list.described(Outcome::decode)?,
            },
            _ => Outcome::read(code, &mut list)?.map(DeliveryState::Outcome).ok_or(unknown)?,
        };
        list.finish(reader)?;
        Ok(state)
    }
}

fn received<'a>(list: &mut ListReader<'a>) -> Result<DeliveryState<'a>> {
    let section_number = list.uint()?;
    let section_number = list.need(section_number, "section-number")?;
    let section_offset = list.ulong()?;
    let section_offset = list.need(section_offset, "section-offset")?;
    Ok(DeliveryState::Received { section_number, section_offset })
}

pub(crate) fn txn_id<'a>(list: &mut ListReader<'a>) -> Result<&'a [u8]> {
    let txn_id = list.binary()?;
    list.need(txn_id, "txn-id")
}

impl Outcome {
    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Outcome> {
        let unknown = reader.error(Kind::UnknownDescriptor);
        let code = reader.composite()?;
        let mut list = ListReader::new(reader)?;
        let outcome = Outcome::read(code, &mut list)?.ok_or(unknown)?;
        list.finish(reader)?;
        Ok(outcome)
    }

    /// The fields of the outcome `code`; nothing if that is no outcome.
    fn read(code: u64, list: &mut ListReader<'_>) -> Result<Option<Outcome>> {
        let outcome = match code {
            descriptor::ACCEPTED => Outcome::Accepted,
            descriptor::REJECTED => Outcome::Rejected(list.described(Error::decode)?.map(Box::new)),
            descriptor::RELEASED => Outcome::Released,
            descriptor::MODIFIED => Outcome::Modified(Modified {
                delivery_failed: list.flag()?,
                undeliverable_here: list.flag()?,
                message_annotations: list.fields()?,
            }),
            _ => return Ok(None),
        };
        Ok(Some(outcome))
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Outcome::Accepted => encode::composite(out, descriptor::ACCEPTED, |_| ()),
            Outcome::Released => encode::composite(out, descriptor::RELEASED, |_| ()),
            Outcome::Rejected(error) => encode::composite(out, descriptor::REJECTED, |list| {
                list.field(error.as_ref(), |out, error| error.encode(out));
            }),
            Outcome::Modified(modified) => encode::composite(out, descriptor::MODIFIED, |list| {
                list.flag(modified.delivery_failed);
                list.flag(modified.undeliverable_here);
                list.fields(&modified.message_annotations);
            }),
        }
    }
}
