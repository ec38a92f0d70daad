//! The gateway: sessions of the engine for tasks of this process, as HTTP's and those of a program
//! that embeds the broker.
//!
//! ```text
//!  task     a future: a request into the queue, and the wait for its answer
//!  loop     a reactor without sockets: takes the requests that have come, LOCK: steps the broker,
//!           leaves the writing to others, answers what the log is durable enough for
//! ```
//! All leases are of one session, so that any connection may settle what another received; each
//! receive is a link of it. Who follows a topic has a session of its own. Nothing here touches the
//! disk, and nothing waits while the lock is held.

mod figures;
mod gateway_loop;
mod handle;
mod locked_broker;
mod thread;

pub(crate) use thread::HttpThread;
