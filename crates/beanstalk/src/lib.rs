//! The beanstalkd protocol: codec and session.
//!
//! Pure: bytes in, [`model::Command`]s out; [`model::Reply`]s in, bytes out. It
//! contains no socket, no clock and no queue; it knows no other protocol. Its promises, and
//! its differences from beanstalkd, are in `docs/reference/protocols/beanstalkd.md`.
//!
//! How a server drives one connection, on an engine that keeps the queue [`default_tube`]:
//!
//! 1. [`Session::new`] when the connection opens.
//! 2. [`InputBuffer::append`] for all bytes that arrive.
//! 3. While [`Session::poll_command`] gives a command: step the engine with it and hand the reply
//!    to [`Session::handle_reply`]. Only the reply to a `Receive` may come later; until then
//!    `poll_command` gives nothing. Both append bytes for the peer to `out`, in order.
//!    If the client has to log in ([`Session::set_offer`]): hand each step of
//!    [`Session::poll_login`] to the server's users, and their answer to
//!    [`Session::handle_login`].
//! 4. [`Session::has_more`] after `poll_command` gave nothing: send `out` first, then go on with 3.
//! 5. [`Session::handle_half_close`] when the peer will send no more, which ends a waiting
//!    `reserve`.
//! 6. [`Session::close`] when the connection is gone, or once [`Session::wants_close`] and `out`
//!    has been sent.
#![no_std]

extern crate alloc;

mod answer;
mod arguments;
mod body;
mod request;
mod session;
mod shared;
mod verb;
mod watched;
mod yaml;

pub use input::InputBuffer;
pub use session::{Session, default_tube};
pub use shared::{JournalFacts, ListenerState, StatsFacts};
