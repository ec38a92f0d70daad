//! AMQP 1.0: the codec.
//!
//! Pure: bytes in, values out, and the reverse. It contains no socket, no clock and no queue; it
//! knows no other protocol. Numbers in parentheses are sections of the OASIS standard of
//! 29 October 2012.
//!
//! * [`protocol_header`], [`frame`]: the stream of bytes cut into layers and frames
//! * [`sasl`], [`performative`]: what the body of a frame says
//! * [`terminus`], [`state`], [`error`], [`transaction`]: what performatives and messages carry
//! * [`message`]: the sections of a message
//! * [`types`], [`encode`]: values of any type
//!
//! Decoding is total: any bytes give a value or a [`DecodeError`]. Nothing is allocated or walked
//! by a size or count that a peer claims before the bytes are there; [`limits`] has the rest.
//! Encoding always picks the smallest form and leaves out what is default.
#![no_std]

extern crate alloc;

mod decode_error;
pub mod encode;
pub mod error;
pub mod frame;
pub mod limits;
pub mod message;
pub mod performative;
pub mod protocol_header;
pub mod sasl;
pub mod state;
pub mod terminus;
pub mod transaction;
pub mod types;

pub use decode_error::{DecodeError, DecodeErrorKind};
