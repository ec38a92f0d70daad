//! The thread of HTTP: its runtime, the loop of the gateway, and the locked core as a broker.
//!
//! ```text
//!  task     a future: a request into the queue, and the wait for its answer
//!  loop     a reactor without sockets: takes the requests that have come, LOCK: steps the broker,
//!           leaves the writing to others, answers what the log is durable enough for
//! ```
//! The state of the gateway is in `http::gateway`. Nothing here touches the disk, and nothing waits
//! while it holds the lock.

mod figures;
mod gateway_loop;
mod handle;
mod locked_broker;
mod thread;

pub(crate) use thread::HttpThread;
