//! HTTP/1.1 and h2c: send, receive and settle messages, follow topics, and answer operators.
//! docs/reference/protocols/http.md is for users.
//!
//! It knows no engine and no log: its tasks ask a [`Gateway`], which takes work and gives answers
//! when they are safe. [`GatewayState`] is the gateway that ships: it steps a [`BrokerTurn`], which
//! the server and the simulator implement. The caller also hands it functions
//! ([`model::Envelopes`]) that put messages with more than a payload into envelopes, so that
//! consumers of all protocols see it.
//!
//! [`serve`] runs on a tokio runtime of its caller's. One request blocks no other: each waits for
//! its own answer, within the limits of
//! [docs/reference/limits.md](../../../docs/reference/limits.md).

mod activity;
mod app;
mod base64;
mod body;
mod byte_budget;
mod byte_share;
mod cursor;
mod departure;
mod draft;
mod gateway;
mod guard;
mod half_sent;
mod journal;
mod latest;
mod login;
mod memory_gauge;
mod number;
mod object;
mod open;
mod operate;
mod origin;
mod policies;
mod portions;
mod problem;
mod property;
mod query;
mod receive;
mod route;
mod send;
mod send_timeout;
mod sent;
mod serve;
mod shown;
mod socket;
mod standards;
mod status;
mod table_steps;
mod tables;
mod token;
mod topics;
mod transactions;
mod unique;

pub use app::{Adjustable, Options};
pub use departure::Asker;
pub use gateway::{
    Actor, BrokerTurn, ConnectionPermit, Events, Figures, Following, Gateway, GatewayClient,
    GatewayError, GatewayOptions, GatewayState, Leased, LoginClient, NewConnection, QueueFigures,
    REQUESTS_MAX, Readiness, RequestQueue, Sample, SegmentFigures, Settling, Step, Summary,
    TRANSACTIONS_MAX, WINDOW, Wanted, Work,
};
pub use origin::{AllowedHost, NotAHost};
pub use serve::{Stage, serve, serve_stream};
pub use socket::{Listener, ListenerSocket, TlsConfig};
pub use token::{NotAToken, Token};
