//! Which clients get a connection if as many are open as may be.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use crate::common::patience::until;
use crate::common::{Client, amqp_too, memory, redis_too, start};
use server::{Config, Limits, Listen, Protocol, Running};

const CONNECTIONS_MAX: usize = 20;

/// Beanstalkd, AMQP, Redis and HTTP, with so few connections.
fn crowded() -> (Running, Vec<SocketAddr>) {
    let limits = Limits { connections: CONNECTIONS_MAX, ..Limits::default() };
    let mut config = redis_too(amqp_too(Config { limits, ..memory() }));
    config.listen.push(Listen { protocol: Protocol::Http, ..config.listen[0].clone() });
    let server = start(config);
    let addresses = server.addresses().iter().filter_map(|it| it.tcp()).collect();
    (server, addresses)
}

fn is_served(address: SocketAddr, index: usize) -> bool {
    let mut socket = TcpStream::connect(address).unwrap();
    let (asked, said): (&[u8], &[u8]) = match index {
        0 => (b"list-tube-used\r\n", b"USING"),
        1 => (b"AMQP\0\x01\0\0", b"AMQP"),
        2 => (b"PING\r\n", b"+PONG"),
        _ => (b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n", b"HTTP/"),
    };
    let mut answer = [0; 5];
    let count = said.len().min(5);
    let exchanged = socket.write_all(asked).and_then(|()| socket.read_exact(&mut answer[..count]));
    exchanged.is_ok() && answer[..count] == said[..count]
}

#[test]
fn silent_connections_give_way() {
    for silent in 0..4 {
        let (server, addresses) = crowded();
        let connect = |_| TcpStream::connect(addresses[silent]).unwrap();
        let held: Vec<_> = (0..2 * CONNECTIONS_MAX).map(connect).collect();
        until("all permits are taken", || server.counters().connections >= CONNECTIONS_MAX);
        for (index, address) in addresses.iter().enumerate() {
            assert!(is_served(*address, index), "protocol {index} beside silent ones of {silent}");
        }
        drop(held);
        until("all are closed", || server.counters().connections == 0);
    }
}

/// Bytes that are no command do not count.
#[test]
fn half_command_keeps_no_permit() {
    let (server, addresses) = crowded();
    let half = |index: usize| {
        let mut socket = TcpStream::connect(addresses[index]).unwrap();
        socket.write_all(if index == 0 { b"nonsense\r\nput" } else { b"*1\r\n$4\r\nPI" }).unwrap();
        socket
    };
    let _held: Vec<_> =
        (0..2 * CONNECTIONS_MAX).map(|it| half(if it % 2 == 0 { 0 } else { 2 })).collect();
    until("all permits are taken", || server.counters().connections >= CONNECTIONS_MAX);
    assert!(is_served(addresses[0], 0) && is_served(addresses[2], 2));
}

#[test]
fn operators_have_permits_of_their_own() {
    let (server, addresses) = crowded();
    let mut spoken: Vec<_> = (0..CONNECTIONS_MAX).map(|_| Client::new(addresses[2])).collect();
    for client in &mut spoken {
        assert_eq!(client.ask("PING"), "+PONG");
    }
    for (index, address) in addresses.iter().enumerate().take(3) {
        assert!(!is_served(*address, index), "all permits are taken");
    }
    assert!(is_served(addresses[3], 3), "but those of operators");
    for client in &mut spoken {
        assert_eq!(client.ask("PING"), "+PONG", "no client gave way");
    }
    drop(spoken);
    until("all are closed", || server.counters().connections == 0);
    assert!(is_served(addresses[0], 0));
}
