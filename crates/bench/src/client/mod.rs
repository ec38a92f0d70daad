//! Clients of AMQP 1.0 that load a broker.
//!
//! A [`client::Session`] speaks the protocol and owns no socket; [`fleet`] owns the sockets and one
//! thread; a [`work::Work`] decides which messages a client sends and takes: [`producer`],
//! [`consumer`], [`browser`], [`probe`]. All of them share the [`field::Field`] of a phase.
//! [`ledger`] finds messages that came and should not, and messages that did not come.

mod browser;
mod connection;
mod consumer;
mod field;
mod fleet;
mod ledger;
mod letter;
mod probe;
mod producer;
mod target;
mod work;

pub(crate) use ::client::{Kind, Place, Wanted};
pub(crate) use browser::Browser;
pub(crate) use consumer::{Consumer, Promise, Settling};
pub(crate) use field::{Extent, Field, Meanwhile, Transactions, Travel};
pub(crate) use fleet::Stage;
pub(crate) use letter::{BodyForm, SELECTOR, Shape};
pub(crate) use probe::Probe;
pub(crate) use producer::{Producer, Sending};
pub use target::Target;
pub(crate) use work::Work;
