//! Servers with real sockets and threads, and their clients, in one process.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

mod admission;
mod backlog;
mod blocked_sends;
mod common;
mod connection_permits;
mod ending;
mod limits;
mod listening;
mod logins;
mod proxies;
mod redis;
mod serving;
mod tls;
