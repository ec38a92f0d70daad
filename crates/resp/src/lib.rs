//! The Redis protocol (RESP2 and RESP3): codec and session.
//!
//! Pure: bytes in, [`model::Command`]s out; [`model::Reply`]s in, bytes out. It contains no
//! socket, no clock and no list; it knows no other protocol. Its promises, and its differences from
//! Redis, are in `docs/reference/protocols/redis.md`.
//!
//! How a server drives one connection:
//!
//! 1. [`Session::new`] when the connection opens.
//! 2. [`InputBuffer::append`] for all bytes that arrive.
//! 3. While [`Session::poll_command`] gives a command: step the engine with it and hand each reply
//!    to [`Session::handle_reply`]. Only the reply to a `PopFirst`, `PopScored`, `Read`, or `Move`
//!    that waits may come later, and `Credit` has none. Both calls append bytes for the peer to
//!    `out`, in order. Bytes of a reply wait until its position is durable. A reply that appends
//!    nothing may be a part of the next answer, so later bytes wait for it as well.
//!    If the client has to log in ([`Session::set_offer`]): hand each step of
//!    [`Session::poll_login`] to the server's users, and their answer to
//!    [`Session::handle_login`].
//! 4. After each call of both, while [`ListenerState::poll_unblocked`] gives a session and a
//!    command: give the engine that command in the name of that session.
//! 5. Messages of subscriptions are replies that come at any time. [`Session::has_more`] tells that
//!    there is more to do: send `out` first, then go on with 3.
//! 6. [`Session::handle_half_close`] when the peer will send no more, which ends a command that
//!    waits.
//! 7. [`Session::close`] when the connection is gone, or once [`Session::wants_close`] and `out`
//!    has been sent.
#![no_std]

extern crate alloc;

mod answer;
mod arguments;
mod catalogue;
mod chance;
mod client_commands;
mod clients;
mod collection_format;
mod collection_specs;
mod collections;
mod context;
mod copying;
mod cursors;
mod fault;
mod greeting;
mod hashes;
mod information;
mod inline;
mod interpreter;
mod key_names;
mod keys;
mod lists;
mod moments;
mod number;
mod parameters;
mod pipelined;
mod programs;
mod query;
mod reader;
mod recent_scripts;
mod reply_format;
mod room;
mod scored_combinations;
mod scored_ranges;
mod script_specs;
mod script_values;
mod scripting;
mod scripts;
mod server_commands;
mod session;
mod sets;
mod shared;
mod sorted_sets;
mod sorting;
mod stream_format;
mod stream_groups;
mod stream_specs;
mod streams;
mod strings;
mod subscriptions;
mod table;
mod topics;
mod transaction;
mod users;
mod value_programs;
mod words;

pub use clients::Ends;
pub use input::InputBuffer;
pub use interpreter::{Interpreter, ScriptHost, ScriptRun};
pub use recent_scripts::{RecentScripts, SCRIPTS_BYTES_MAX, SCRIPTS_MAX};
pub use session::Session;
pub use shared::{InfoFacts, ListenerState, Options, Side};
