//! A broker behind sockets: threads, clock, signals, configuration and the loop.
//!
//! ```text
//!  reactor (two at most by default)       committers (two)     housekeeper (one)
//!    wait    epoll, timers, waker            wait for a batch     wait for a chore
//!    read    sockets -> input               write and sync       fill, snapshot, compact
//!    step    LOCK: sessions, broker         LOCK: complete       LOCK: complete
//!    write   lone client: write, sync       ring the reactors
//!    release gates -> sockets
//! ```
//! All decisions are behind one lock in [`core`] and pure; the code outside it moves bytes and
//! waits. It contains neither protocol nor queue rules.
//!
//! [`Server::start`] is all that a program needs to be a broker; [`signals::Caught`] adds the
//! duties of a process of its own to its operator.

mod address;
mod adjust;
mod audit;
mod buffered;
mod cgroup;
mod client;
mod clock;
mod committer;
mod config;
mod connection;
mod connection_permits;
mod connections;
mod core;
mod counters;
mod deadlines;
mod descriptors;
mod doorkeeper;
mod error;
mod events;
mod evictions;
mod facts;
mod file_stamp;
mod gateway_thread;
mod hub;
mod listener;
mod listener_fault;
mod lobby;
mod log;
mod logins;
mod mailbox;
mod memory;
mod outgoing;
mod passed;
mod peer;
pub mod process;
mod reactor;
mod rounds;
mod server;
mod service;
pub mod signals;
mod socket_file;
mod step;
mod system_accounts;
#[cfg(test)]
mod test_harness;
mod tls;
mod turned_away;
mod user_quotas;
mod users_file;
mod wrong_protocol;

pub use address::{Address, Endpoint, Listen, Listening, UnixSocket};
pub use audit::AuditTarget;
pub use config::{Config, Limits, Protocol, THREADS_MAX, threads_default};
pub use counters::{Counters, Latencies};
pub use error::{Failure, StartError};
pub use http_api::AllowedHost;
pub use input::{Admission, NETWORKS_MAX, Network};
pub use listener_fault::ListenerFault;
pub use log::Logger;
pub use memory::MEMORY_LIMIT_MIN;
pub use passed::{PassedFault, PassedSocket};
pub use resp::Side;
pub use server::{Remote, Running, Server};
pub use service::ServiceManager;
pub use system_accounts::{group_number, user_number};
pub use tls::{ClientCertificates, Identity, TlsError, TlsSettings};
pub use users_file::{UsersError, read_users};
