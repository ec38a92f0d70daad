//! The performatives: the bodies of AMQP frames (2.7).

mod attach;
mod begin;
mod detach;
mod disposition;
mod flow;
mod open;
mod transfer;

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::decode_error::{DecodeError, DecodeErrorKind as Kind};
use crate::types::descriptor;
use crate::types::list_reader::ListReader;
use crate::types::reader::{Reader, Result};

pub use attach::{Attach, SenderSettleMode, Unsettled};
pub use begin::Begin;
pub use detach::{Close, Detach, End};
pub use disposition::Disposition;
pub use flow::Flow;
pub use open::Open;
pub use transfer::{Transfer, TransferFrames};

/// The body of a frame. Parts that are kept are owned; parts that come a million times borrow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Performative<'a> {
    /// Begins a connection.
    Open(Box<Open>),
    /// Begins a session.
    Begin(Box<Begin>),
    /// Attaches a link to a session.
    Attach(Box<Attach>),
    /// Tells windows and credit.
    Flow(Flow),
    /// Carries a message or a part of one.
    Transfer(Transfer<'a>),
    /// Tells the outcomes of deliveries.
    Disposition(Disposition<'a>),
    /// Detaches a link.
    Detach(Detach),
    /// Ends a session.
    End(End),
    /// Ends a connection.
    Close(Close),
}

/// The end of a link that speaks (2.8.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It sends messages.
    Sender,
    /// It receives messages.
    Receiver,
}

/// Which end settles first (2.8.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReceiverSettleMode {
    /// The receiver, of its own accord.
    #[default]
    First,
    /// The receiver after the sender has.
    Second,
}

impl<'a> Performative<'a> {
    /// Decodes the body of an AMQP frame: the performative, and the payload of a transfer. A frame
    /// without a body only says that the peer is alive (2.4.5); it is not for here.
    ///
    /// # Errors
    /// When the bytes are no performative, or payload follows one that has none.
    pub fn decode(
        body: &'a [u8],
    ) -> core::result::Result<(Performative<'a>, &'a [u8]), DecodeError> {
        let mut reader = Reader::new(body);
        let unknown = reader.error(Kind::UnknownDescriptor);
        let code = reader.composite()?;
        let mut list = ListReader::new(&mut reader)?;
        let performative = match code {
            descriptor::TRANSFER => Performative::Transfer(Transfer::read(&mut list)?),
            descriptor::DISPOSITION => Performative::Disposition(Disposition::read(&mut list)?),
            descriptor::FLOW => Performative::Flow(Flow::read(&mut list)?),
            descriptor::OPEN => Performative::Open(Box::new(Open::read(&mut list)?)),
            descriptor::BEGIN => Performative::Begin(Box::new(Begin::read(&mut list)?)),
            descriptor::ATTACH => Performative::Attach(Box::new(Attach::read(&mut list)?)),
            descriptor::DETACH => Performative::Detach(Detach::read(&mut list)?),
            descriptor::END => Performative::End(End::read(&mut list)?),
            descriptor::CLOSE => Performative::Close(Close::read(&mut list)?),
            _ => return Err(unknown),
        };
        list.finish(&mut reader)?;
        if code != descriptor::TRANSFER {
            reader.finish()?;
        }
        Ok((performative, reader.rest()))
    }

    /// Appends the performative, without the head of its frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Performative::Open(open) => open.encode(out),
            Performative::Begin(begin) => begin.encode(out),
            Performative::Attach(attach) => attach.encode(out),
            Performative::Flow(flow) => flow.encode(out),
            Performative::Transfer(transfer) => transfer.encode(out),
            Performative::Disposition(disposition) => disposition.encode(out),
            Performative::Detach(detach) => detach.encode(out),
            Performative::End(end) => end.encode(out),
            Performative::Close(close) => close.encode(out),
        }
    }
}

impl Role {
    fn read(list: &mut ListReader<'_>) -> Result<Role> {
        let is_receiver = list.boolean()?;
        let is_receiver = list.need(is_receiver, "role")?;
        Ok(if is_receiver { Role::Receiver } else { Role::Sender })
    }

    fn field(self) -> Option<bool> {
        Some(self == Role::Receiver)
    }
}

impl ReceiverSettleMode {
    fn read(list: &mut ListReader<'_>) -> Result<Option<ReceiverSettleMode>> {
        match list.ubyte()? {
            None => Ok(None),
            Some(0) => Ok(Some(ReceiverSettleMode::First)),
            Some(1) => Ok(Some(ReceiverSettleMode::Second)),
            Some(_) => Err(list.invalid("rcv-settle-mode")),
        }
    }

    fn code(self) -> u8 {
        self as u8
    }
}
