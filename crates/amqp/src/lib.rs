//! AMQP 1.0: codec and connection.
//!
//! Pure: bytes in, [`model::Command`]s out; [`model::Reply`]s in, bytes out. It contains no socket,
//! no clock and no queue; it knows no other protocol. Numbers in parentheses are sections of the
//! OASIS standard of 29 October 2012. Its promises are in `docs/reference/protocols/amqp.md`.
//!
//! * [`protocol_header`], [`frame`]: the stream of bytes cut into layers and frames
//! * [`sasl`], [`performative`]: the body of a frame
//! * [`terminus`], [`state`], [`error`], [`transaction`]: the parts of performatives and messages
//! * [`message`]: the sections of a message
//! * [`types`], [`encode`]: values of any type
//!
//! Decoding is total: any bytes give a value or a [`DecodeError`]. Nothing is allocated or walked
//! by a size or count that a peer claims before the bytes are there; [`limits`] has the rest.
//! Encoding always picks the smallest form and leaves out defaults.
//!
//! How a server drives one connection. All calls append to the same `out`, which is sent in order:
//!
//! 1. [`Connection::new`] when the connection opens.
//! 2. [`InputBuffer::append`] for all bytes that arrive.
//! 3. While [`Connection::poll_command`] gives a command: step the engine with it and hand each
//!    reply to [`Connection::handle_reply`], as well as those that come by others' commands. Keep
//!    the [`Event`] that it gives until the log is as durable as it asks for.
//!    If the peer has to log in ([`Connection::set_offer`]): hand each step of
//!    [`Connection::poll_login`] to the server's users, and their answer to
//!    [`Connection::handle_login`].
//! 4. [`Connection::emit`] for each event that is due, then [`Connection::flush`] once; that again
//!    once `out` was sent while [`Connection::is_congested`]. If memory is scarce,
//!    [`Connection::allow`] before.
//! 5. [`Connection::has_more`] after 3 or 4: there are new commands, go on with 3.
//!    [`Connection::take_steps`] gives its cost beside the engine's steps.
//! 6. [`Connection::handle_timeout`] when [`Connection::poll_timeout`] is past.
//! 7. [`Connection::handle_half_close`] when the peer will send no more.
//! 8. The end, once [`Connection::wants_close`] and `out` has been sent.
//!
//! [`formats`] is for the engine: how it looks into messages that came by AMQP.
//! [`envelopes`] is for protocols that make messages with more than a payload.
#![no_std]

extern crate alloc;

pub mod bearer;
mod connection;
mod content;
mod dead_letter;
mod decode_error;
pub mod encode;
mod envelope;
pub mod error;
mod formats;
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

pub use connection::{Connection, Event, Options};
pub use decode_error::{DecodeError, DecodeErrorKind};
pub use envelope::envelopes;
pub use formats::{FORMAT, formats};
pub use input::InputBuffer;
