//! The commands that speak to a running broker, over HTTP.

mod credentials;
mod dead;
mod health;
mod operate;
mod pages;
mod policy;
mod receive;
mod send;
pub(crate) mod table;
mod tables;
pub(crate) mod tables_cli;
pub(crate) mod web;

use crate::cli::{Client, Dead, QueuePolicy};
use crate::exit::Error;

/// Does one of them.
pub(crate) fn run(client: Client) -> Result<(), Error> {
    match client {
        Client::Send(send) => send::run(&send),
        Client::Receive(receive) => receive::run(&receive),
        Client::Queues { server } => operate::queues(&server),
        Client::Browse(browse) => operate::browse(&browse),
        Client::Move(chosen) => operate::move_messages(&chosen),
        Client::Purge(purge) => operate::purge(&purge),
        Client::Policy { policy: QueuePolicy::Ls { server } } => policy::list(&server),
        Client::Policy { policy: QueuePolicy::Show { queue, server } } => {
            policy::show(&queue, &server)
        }
        Client::Policy { policy: QueuePolicy::Set { queue, rules, server } } => {
            policy::set(&queue, &rules, &server)
        }
        Client::Policy { policy: QueuePolicy::Reset { queue, rules, server } } => {
            policy::reset(&queue, &rules, &server)
        }
        Client::Dead { dead: Dead::Ls { queue, server } } => dead::list(&queue, &server),
        Client::Dead { dead: Dead::Show { id, server } } => dead::show(id, &server),
        Client::Dead { dead: Dead::Replay(replay) } => dead::replay(&replay),
        Client::Table { table } => tables::run(&table),
        Client::Health(health) => health::run(&health),
    }
}
