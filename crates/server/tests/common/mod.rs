//! A server of a test's own and a client that speaks lines to it.
#![allow(dead_code, unused_imports, reason = "each test file uses a part")]

pub(crate) mod line;
pub(crate) mod reader;

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use model::StorePolicy;
use server::{Config, Listen, Logger, Protocol, Running, Server};
pub(crate) use testkit::{Directory, LineClient as Client, patience};

/// A configuration for any free port, that keeps nothing and logs nothing.
pub(crate) fn memory() -> Config {
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    Config {
        policy: StorePolicy::Memory,
        listen: vec![Listen::tcp(Protocol::Beanstalkd, address)],
        threads: 2,
        log: Logger::Quiet,
        ..Config::default()
    }
}

/// The same with a second listener, for AMQP.
pub(crate) fn amqp_too(mut config: Config) -> Config {
    config.listen.push(Listen { protocol: Protocol::Amqp, ..config.listen[0].clone() });
    config
}

/// The same with a second listener, for Redis.
pub(crate) fn redis_too(mut config: Config) -> Config {
    config.listen.push(Listen { protocol: Protocol::Redis, ..config.listen[0].clone() });
    config
}

/// A file of users with this text, readable by its owner only.
pub(crate) fn users_file(directory: &Directory, text: &str) -> PathBuf {
    let file = directory.0.join("users.toml");
    std::fs::write(&file, text).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    file
}

/// The same with a journal in `directory`.
pub(crate) fn journal(directory: &Directory, policy: StorePolicy) -> Config {
    Config { data: directory.0.clone(), policy, ..memory() }
}

pub(crate) fn start(config: Config) -> Running {
    Server::start(config).unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn connect(server: &Running) -> Client {
    Client::new(server.addresses()[0].tcp().unwrap())
}

/// A client of the second listener.
pub(crate) fn connect_second(server: &Running) -> Client {
    Client::new(server.addresses()[1].tcp().unwrap())
}
