//! The `dunlin` binary: its command line, and nothing that decides about messages.

mod bench;
mod cli;
mod client;
mod exit;
mod journal_dump;
mod journal_explain;
mod journal_open;
mod journal_repair;
mod journal_salvage;
mod journal_verify;
mod listen;
#[cfg(test)]
mod package_test;
mod parse;
#[cfg(test)]
mod reference_test;
mod serve;
mod settings;
mod user;
mod variables;

use std::process::ExitCode;

use crate::cli::{Command, ConfigCommand, Journal};

fn main() -> ExitCode {
    let end = match variables::parse().command {
        Command::Serve(serve) => serve::run(*serve),
        Command::Config { config: ConfigCommand::Check(serve) } => serve::check(*serve),
        Command::Client(client) => client::run(client),
        Command::Journal { journal: Journal::Verify { dir } } => journal_verify::run(&dir),
        Command::Journal { journal: Journal::Dump { dir, json } } => journal_dump::run(&dir, json),
        Command::Journal { journal: Journal::Repair { dir, accept_loss, json } } => {
            journal_repair::run(&dir, accept_loss, json)
        }
        Command::Journal { journal: Journal::Salvage { dir, to, json } } => {
            journal_salvage::run(&dir, &to, json)
        }
        Command::Journal { journal: Journal::Explain { place, json } } => {
            journal_explain::run(&place, json)
        }
        Command::User { user } => user::run(user),
        Command::Bench { bench } => bench::run(bench),
    };
    exit::code(end)
}
