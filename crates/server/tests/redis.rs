//! The Redis protocol as clients of a server see it, beside another protocol.

use std::time::Duration;

use crate::common::patience::until;
use crate::common::{
    Client, Directory, connect, connect_second, journal, memory, redis_too, start,
};
use model::StorePolicy;
use server::{Config, Side};

/// An answer of so many lines.
fn answer(client: &mut Client, command: &str, lines: usize) -> Vec<String> {
    client.send(format!("{command}\r\n"));
    (0..lines).map(|_| client.line()).collect()
}

#[test]
fn list_is_queue_of_that_name() {
    let server = start(redis_too(memory()));
    let (mut worker, mut redis) = (connect(&server), connect_second(&server));
    assert_eq!(redis.ask("LPUSH mail first second"), ":2");
    assert_eq!(worker.ask("watch mail"), "WATCHING 2");
    assert!(worker.ask("reserve").ends_with(" 5"));
    assert_eq!(worker.line(), "first");
    assert_eq!(redis.ask("LLEN mail"), ":1");
    assert_eq!(answer(&mut redis, "RPOP mail", 2), ["$6", "second"]);
    assert_eq!(worker.ask("use mail"), "USING mail");
    worker.put("third");
    assert_eq!(answer(&mut redis, "BRPOP mail 0", 5), ["*2", "$4", "mail", "$5", "third"]);
}

#[test]
fn list_head_may_be_left() {
    let server = start(redis_too(Config { list_head: Side::Left, ..memory() }));
    let (mut worker, mut redis) = (connect(&server), connect_second(&server));
    assert_eq!(redis.ask("RPUSH mail first second"), ":2");
    assert_eq!(worker.ask("watch mail"), "WATCHING 2");
    assert!(worker.ask("reserve").ends_with(" 5"));
    assert_eq!(worker.line(), "first");
}

#[test]
fn waiting_clients_of_reactors_are_served() {
    let server = start(redis_too(memory()));
    let mut workers: Vec<_> = (0..8).map(|_| connect_second(&server)).collect();
    for worker in &mut workers {
        worker.send("BLPOP a b 0\r\n");
    }
    let mut producer = connect_second(&server);
    wait_for_blocked(&mut producer, 8);
    for _ in 0..8 {
        assert_eq!(producer.ask("RPUSH b x"), ":1");
    }
    for worker in &mut workers {
        let lines: Vec<_> = (0..5).map(|_| worker.line()).collect();
        assert_eq!(lines, ["*2", "$1", "b", "$1", "x"]);
    }
}

/// Clients of two reactors, the one that ends the waits with nothing else to do.
#[test]
fn client_unblock_ends_a_wait() {
    let server = start(redis_too(memory()));
    let mut workers: Vec<_> = (0..4).map(|_| connect_second(&server)).collect();
    let ids: Vec<_> = workers.iter_mut().map(|worker| worker.ask("CLIENT ID")).collect();
    for worker in &mut workers {
        worker.send("BLPOP a 0\r\n");
    }
    let mut other = connect_second(&server);
    wait_for_blocked(&mut other, 4);
    for (worker, id) in workers.iter_mut().zip(ids) {
        assert_eq!(other.ask(&format!("CLIENT UNBLOCK {} ERROR", &id[1..])), ":1");
        assert_eq!(worker.line(), "-UNBLOCKED client unblocked via CLIENT UNBLOCK");
    }
}

fn wait_for_blocked(client: &mut Client, count: usize) {
    until(&format!("{count} are blocked"), || {
        client.send("INFO clients\r\n");
        let lines: Vec<_> = (0..7).map(|_| client.line()).collect();
        lines.contains(&format!("blocked_clients:{count}"))
    });
}

#[test]
fn messages_reach_subscribers_of_all_reactors() {
    let server = start(redis_too(memory()));
    let mut listeners: Vec<_> = (0..4).map(|_| connect_second(&server)).collect();
    for listener in &mut listeners {
        let heard = answer(listener, "SUBSCRIBE news", 6);
        assert_eq!(heard[5], ":1");
    }
    let mut publisher = connect_second(&server);
    // More than a window of credit holds.
    for _ in 0..300 {
        assert_eq!(publisher.ask("PUBLISH news hello"), ":4");
    }
    for listener in &mut listeners {
        for _ in 0..300 {
            let heard: Vec<_> = (0..7).map(|_| listener.line()).collect();
            assert_eq!(heard, ["*3", "$7", "message", "$4", "news", "$5", "hello"]);
        }
    }
}

#[test]
fn answered_writes_survive_a_restart() {
    let directory = Directory::new("redis-restart");
    let config = || redis_too(journal(&directory, StorePolicy::Always));
    let server = start(config());
    let mut client = connect_second(&server);
    assert_eq!(client.ask("RPUSH l a b c"), ":3");
    assert_eq!(answer(&mut client, "LPOP l", 2), ["$1", "a"]);
    assert_eq!(client.ask("SET k v"), "+OK");
    assert_eq!(client.ask("MULTI"), "+OK");
    assert_eq!(client.ask("RPUSH m x"), "+QUEUED");
    assert_eq!(client.ask("LPOP l"), "+QUEUED");
    assert_eq!(answer(&mut client, "EXEC", 4), ["*2", ":1", "$1", "b"]);
    assert_eq!(answer(&mut client, "CONFIG GET appendfsync", 5)[4], "always");
    server.shutdown().unwrap();
    let server = start(config());
    let mut client = connect_second(&server);
    assert_eq!(answer(&mut client, "LRANGE l 0 -1", 3), ["*1", "$1", "c"]);
    assert_eq!(answer(&mut client, "LRANGE m 0 -1", 3), ["*1", "$1", "x"]);
    assert_eq!(answer(&mut client, "GET k", 2), ["$1", "v"]);
}

#[test]
fn pipelined_commands_are_answered_in_order() {
    const COMMANDS: usize = 5_000;
    let directory = Directory::new("redis-pipeline");
    let server = start(redis_too(journal(&directory, StorePolicy::Always)));
    let mut client = connect_second(&server);
    let mut sender = client.twin();
    let sends = std::thread::spawn(move || {
        for _ in 0..COMMANDS {
            sender.send("RPUSH l x\r\nLPOP l\r\n");
        }
    });
    for _ in 0..COMMANDS {
        let heard: Vec<_> = (0..3).map(|_| client.line()).collect();
        assert_eq!(heard, [":1", "$1", "x"]);
    }
    sends.join().unwrap();
}

#[test]
fn half_closed_client_waits_no_more() {
    let server = start(redis_too(memory()));
    let mut client = connect_second(&server);
    client.send("RPUSH l a\r\nBLPOP nothing 0\r\nLPOP l\r\n").half_close();
    assert_eq!(client.rest(), b":1\r\n*-1\r\n");
    let mut other = connect_second(&server);
    assert_eq!(other.ask("LLEN l"), ":1", "nobody would have got it");
}

#[test]
fn draining_refuses_stores() {
    let server = start(redis_too(memory()));
    let mut client = connect_second(&server);
    assert_eq!(client.ask("RPUSH l a"), ":1");
    let mut begun = connect_second(&server);
    assert_eq!(begun.ask("MULTI"), "+OK");
    assert_eq!(begun.ask("RPUSH l b"), "+QUEUED");
    server.remote().drain();
    let aborted = "-EXECABORT Transaction discarded because of: this server is draining";
    assert!(begun.ask("EXEC").starts_with(aborted));
    assert_eq!(begun.ask("LLEN l"), ":1");
    assert!(client.ask("RPUSH l a").starts_with("-ERR this server is draining"));
    assert_eq!(answer(&mut client, "LPOP l", 2), ["$1", "a"]);
}

#[test]
fn changed_idle_time_is_told() {
    let server = start(redis_too(memory()));
    let mut client = connect_second(&server);
    assert_eq!(answer(&mut client, "CONFIG GET timeout", 5)[4], "0");
    let mut config = redis_too(memory());
    config.limits.idle = Some(Duration::from_secs(90));
    server.remote().reconfigure(config);
    assert_eq!(answer(&mut client, "CONFIG GET timeout", 5)[4], "90");
}
