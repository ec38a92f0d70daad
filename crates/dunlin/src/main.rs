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
    abort_on_panic();
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

/// A panic ends the process at once, for what an invariant does not hold of is not to be stored.
/// The errors of scripts unwind, so that the profile cannot say so. Tests find out by unwinding.
fn abort_on_panic() {
    if cfg!(debug_assertions) {
        return;
    }
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        std::process::abort();
    }));
}
