//! A server as its clients see it.

use crate::common::patience::until;
use crate::common::reader::{Reader, Wish};
use crate::common::{Directory, amqp_too, connect, journal, memory, start};
use model::{Nanos, StorePolicy};
use server::{Config, Listen, Protocol, Server};

#[test]
fn job_goes_round() {
    let server = start(memory());
    let (mut producer, mut worker) = (connect(&server), connect(&server));
    assert_eq!(producer.put("hello"), "INSERTED 1");
    assert_eq!(worker.ask("reserve"), "RESERVED 1 5");
    assert_eq!(worker.line(), "hello");
    assert_eq!(worker.ask("delete 1"), "DELETED");
    assert_eq!(worker.ask("peek 1"), "NOT_FOUND");
    server.shutdown().unwrap();
}

#[test]
fn default_tube_is_always_kept() {
    let server = start(memory());
    let mut client = connect(&server);
    assert_eq!(client.ask("use a"), "USING a");
    assert_eq!(client.ask("watch a"), "WATCHING 2");
    assert_eq!(client.ask("ignore default"), "WATCHING 1");
    assert_eq!(client.ask("pause-tube default 9"), "PAUSED");
    assert_eq!(client.ask("pause-tube b 9"), "NOT_FOUND");
    assert!(client.ask("stats-tube default").starts_with("OK "));
    let shown = std::iter::repeat_with(|| client.line()).take_while(|line| !line.is_empty());
    let shown: Vec<_> = shown.collect();
    assert!(shown.contains(&"pause: 9\n".to_owned()), "{shown:?}");
    assert!(client.ask("list-tubes").starts_with("OK "));
    let listed: Vec<_> = (0..3).map(|_| client.line()).collect();
    assert_eq!(listed, ["---\n", "- a\n", "- default\n"]);
}

#[test]
fn waiting_workers_across_reactors_are_served() {
    let server = start(memory());
    let mut workers: Vec<_> = (0..8).map(|_| connect(&server)).collect();
    for worker in &mut workers {
        worker.send("reserve\r\n");
    }
    let mut producer = connect(&server);
    for index in 1..=8 {
        assert_eq!(producer.put("x"), format!("INSERTED {index}"));
    }
    let mut got: Vec<_> = workers.iter_mut().map(|worker| worker.line()).collect();
    got.sort();
    let expected: Vec<_> = (1..=8).map(|id| format!("RESERVED {id} 1")).collect();
    assert_eq!(got, expected);
}

#[test]
fn pipelined_commands_are_answered_in_order() {
    const JOBS: usize = 5_000;
    for policy in [StorePolicy::Memory, StorePolicy::Always, StorePolicy::Never] {
        let directory = Directory::new("pipelined");
        let server = start(journal(&directory, policy));
        let mut client = connect(&server);
        let mut reader = client.twin();
        let writer = std::thread::spawn(move || {
            for index in 0..JOBS {
                let body = format!("job {index}");
                client.send(format!(
                    "put 0 0 60 {}\r\n{body}\r\nuse t{}\r\n",
                    body.len(),
                    index % 7
                ));
            }
            client
        });
        for index in 0..JOBS {
            assert_eq!(reader.line(), format!("INSERTED {}", index + 1));
            assert_eq!(reader.line(), format!("USING t{}", index % 7));
        }
        drop(writer.join().unwrap());
        server.shutdown().unwrap();
    }
}

#[test]
fn confirmed_jobs_survive_a_restart() {
    for policy in [StorePolicy::Always, StorePolicy::Periodic(Nanos::from_millis(5))] {
        let directory = Directory::new("restart");
        let server = start(journal(&directory, policy));
        let mut client = connect(&server);
        for index in 1..=20 {
            assert_eq!(client.put(&format!("job {index}")), format!("INSERTED {index}"));
        }
        assert_eq!(client.ask("delete 7"), "DELETED");
        server.shutdown().unwrap();

        let server = start(journal(&directory, policy));
        let mut client = connect(&server);
        for index in (1..=20).filter(|index| *index != 7) {
            let body = format!("job {index}");
            assert_eq!(client.ask("reserve"), format!("RESERVED {index} {}", body.len()));
            assert_eq!(client.line(), body);
        }
        assert_eq!(client.put("next"), "INSERTED 21");
    }
}

#[test]
fn half_closed_client_gets_its_answers() {
    for policy in [StorePolicy::Memory, StorePolicy::Always] {
        let directory = Directory::new("half-close");
        let server = start(journal(&directory, policy));
        let mut client = connect(&server);
        client.send("put 0 0 60 1\r\na\r\nreserve\r\nreserve\r\nuse b\r\n").half_close();
        let answers = String::from_utf8(client.rest()).unwrap();
        assert_eq!(answers, "INSERTED 1\r\nRESERVED 1 1\r\na\r\nTIMED_OUT\r\nUSING b\r\n");
        // And its lease ended with it.
        assert_eq!(connect(&server).ask("reserve"), "RESERVED 1 1");
    }
}

#[test]
fn vanished_client_gives_jobs_back() {
    let server = start(memory());
    let mut first = connect(&server);
    assert_eq!(first.put("x"), "INSERTED 1");
    assert_eq!(first.ask("reserve"), "RESERVED 1 1");
    let mut second = connect(&server);
    second.send("reserve\r\n");
    drop(first);
    assert_eq!(second.line(), "RESERVED 1 1");
}

#[test]
fn quit_closes_behind_earlier_answers() {
    let directory = Directory::new("quit");
    let server = start(journal(&directory, StorePolicy::Always));
    let mut client = connect(&server);
    client.send("put 0 0 60 1\r\na\r\nquit\r\nput 0 0 60 1\r\nb\r\n");
    assert_eq!(client.rest(), b"INSERTED 1\r\n");
    assert_eq!(connect(&server).ask("peek 2"), "NOT_FOUND");
}

#[test]
fn draining_refuses_puts_and_nothing_else() {
    let server = start(memory());
    let mut client = connect(&server);
    assert_eq!(client.put("x"), "INSERTED 1");
    server.remote().drain();
    assert_eq!(client.put("y"), "DRAINING");
    assert_eq!(client.ask("reserve"), "RESERVED 1 1");
    assert_eq!(client.line(), "x");
    assert_eq!(client.ask("delete 1"), "DELETED");
    assert_eq!(connect(&server).put("z"), "DRAINING");
}

#[test]
fn draining_rejects_amqp_messages_at_once() {
    let server = start(amqp_too(memory()));
    assert_eq!(connect(&server).put("x"), "INSERTED 1");
    let wish = Wish { queue: "default", topic: false, copies: false, credit: 10 };
    let mut peer = Reader::new(server.addresses()[1].tcp().unwrap(), &wish);
    assert!(peer.message().is_some());
    peer.attach_sender(1, "default");
    peer.send(0, DATA);
    assert_eq!(peer.outcome(), Ok(()));
    server.remote().drain();
    peer.send(1, DATA);
    let why = "amqp:resource-limit-exceeded (the server is draining";
    assert!(peer.outcome().unwrap_err().starts_with(why));
}

#[test]
fn delays_and_leases_end_by_themselves() {
    let server = start(memory());
    let (mut producer, mut worker) = (connect(&server), connect(&server));
    assert_eq!(producer.ask("put 0 1 1 1\r\na"), "INSERTED 1");
    // The delay ends while the worker waits; then its lease does, told by the margin before.
    assert_eq!(worker.ask("reserve"), "RESERVED 1 1");
    assert_eq!(worker.line(), "a");
    assert_eq!(worker.ask("reserve"), "DEADLINE_SOON");
    // It is ready again when its lease has ended, and so is the job of the worker that took it
    // then.
    assert_eq!(producer.ask("reserve"), "RESERVED 1 1");
    assert_eq!(producer.line(), "a");
    assert_eq!(worker.ask("reserve-with-timeout 9"), "RESERVED 1 1");
    assert_eq!(worker.line(), "a");
    assert_eq!(producer.ask("reserve-with-timeout 0"), "TIMED_OUT");
}

#[test]
fn stopping_keeps_confirmed_jobs() {
    const PUTS: usize = 3_000;
    let directory = Directory::new("stopping");
    let server = start(journal(&directory, StorePolicy::Always));
    let mut client = connect(&server);
    let mut worker = connect(&server);
    worker.send("watch none\r\nignore default\r\nreserve\r\n");
    assert_eq!(worker.line(), "WATCHING 2");
    let mut sender = client.twin();
    let pipe = std::thread::spawn(move || {
        for _ in 0..PUTS {
            // Fails when the server has closed.
            let _ = std::io::Write::write_all(sender.socket.get_mut(), b"put 0 0 60 1\r\nx\r\n");
        }
    });
    assert_eq!(client.line(), "INSERTED 1");
    let stop = std::thread::spawn(move || server.shutdown());
    let mut confirmed = 1;
    while client.try_line().is_some_and(|line| line == format!("INSERTED {}", confirmed + 1)) {
        confirmed += 1;
    }
    stop.join().unwrap().unwrap();
    pipe.join().unwrap();
    assert_eq!(worker.line(), "WATCHING 1");
    assert!(worker.is_closed(), "a waiting worker is let go");

    let server = start(journal(&directory, StorePolicy::Always));
    let mut client = connect(&server);
    assert!(client.ask(&format!("peek {confirmed}")).starts_with("FOUND"));
}

#[test]
fn stopping_two_reactors_keeps_confirmed_jobs() {
    const CLIENTS: usize = 6;
    let directory = Directory::new("stopping-two");
    let server = start(Config { threads: 2, ..journal(&directory, StorePolicy::Always) });
    let clients: Vec<_> = (0..CLIENTS).map(|_| connect(&server)).collect();
    let clients = clients.into_iter().map(|mut client| {
        std::thread::spawn(move || {
            let put = |client: &mut crate::common::Client| client.try_ask("put 0 0 60 1\r\nx");
            let mut ids = Vec::new();
            while let Some(id) = put(&mut client).and_then(|line| {
                line.strip_prefix("INSERTED ").and_then(|id| id.parse::<u64>().ok())
            }) {
                ids.push(id);
            }
            ids
        })
    });
    let clients: Vec<_> = clients.collect();
    until("both have stored a hundred", || server.counters().journal.frames >= 200);
    server.shutdown().unwrap();
    let confirmed: Vec<_> = clients.into_iter().map(|client| client.join().unwrap()).collect();
    assert!(confirmed.iter().all(|ids| !ids.is_empty()), "both reactors served");

    let server = start(journal(&directory, StorePolicy::Always));
    let mut client = connect(&server);
    for id in confirmed.into_iter().flatten() {
        assert_eq!(client.ask(&format!("delete {id}")), "DELETED");
    }
}

#[test]
fn directory_in_use_is_refused() {
    let directory = Directory::new("in-use");
    let _server = start(journal(&directory, StorePolicy::Always));
    let error = Server::start(journal(&directory, StorePolicy::Always)).map(drop).unwrap_err();
    let expected = format!(
        "{} is in use by process {}, stop it or choose another --data",
        directory.0.display(),
        std::process::id()
    );
    assert_eq!(error.to_string(), expected);
}

#[test]
fn address_in_use_is_refused() {
    let server = start(memory());
    let address = server.addresses()[0].tcp().unwrap();
    let listen = vec![Listen::tcp(Protocol::Redis, address)];
    let error = Server::start(Config { listen, ..memory() }).map(drop).unwrap_err();
    let text = error.to_string();
    assert!(text.contains(&address.to_string()) && text.contains("--listen"), "{text}");
}

#[test]
fn counters_distinguish_synced_and_written() {
    let directory = Directory::new("counters");
    let server = start(journal(&directory, StorePolicy::Always));
    let mut client = connect(&server);
    for _ in 0..10 {
        client.put("x");
    }
    let counters = server.counters();
    assert_eq!(counters.journal.frames, 10);
    assert_eq!(counters.journal.syncs, 10, "a lone client's puts are synced one by one");
    assert_eq!(counters.latencies.synced.len(), 10);
    assert_eq!(counters.journal.unsynced_bytes, 0);
    assert!(counters.disk.syncs >= 10);
    drop(server);

    let directory = Directory::new("counters-never");
    let server = start(journal(&directory, StorePolicy::Never));
    let mut client = connect(&server);
    for _ in 0..10 {
        client.put("x");
    }
    let counters = server.counters();
    assert_eq!((counters.journal.frames, counters.journal.syncs), (10, 0));
    assert!(counters.journal.unsynced_bytes > 0, "a power cut would take them");
}

#[test]
fn periodic_store_syncs_without_traffic() {
    let directory = Directory::new("periodic");
    let policy = StorePolicy::Periodic(Nanos::from_millis(10));
    let server = start(journal(&directory, policy));
    assert_eq!(connect(&server).put("x"), "INSERTED 1");
    until("all is synced", || {
        let journal = server.counters().journal;
        journal.unsynced_bytes == 0 && journal.syncs > 0
    });
}

#[test]
fn single_thread_serves_all() {
    let server = start(Config { threads: 1, ..memory() });
    let (mut producer, mut worker) = (connect(&server), connect(&server));
    worker.send("reserve\r\n");
    assert_eq!(producer.put("x"), "INSERTED 1");
    assert_eq!(worker.line(), "RESERVED 1 1");
}

#[test]
fn many_clients_are_all_answered() {
    const CLIENTS: usize = 12;
    const ROUNDS: usize = 150;
    for policy in [StorePolicy::Always, StorePolicy::Never, StorePolicy::Memory] {
        let directory = Directory::new("many");
        let server = start(journal(&directory, policy));
        let address = server.addresses()[0].tcp().unwrap();
        let clients = (0..CLIENTS).map(|index| {
            std::thread::spawn(move || {
                let mut client = crate::common::Client::new(address);
                assert_eq!(client.ask(&format!("watch {index}")), "WATCHING 2");
                assert_eq!(client.ask("ignore default"), "WATCHING 1");
                // Each hands its jobs to the next, so that replies cross the reactors.
                assert!(client.ask(&format!("use {}", (index + 1) % CLIENTS)).starts_with("USING"));
                for _ in 0..ROUNDS {
                    assert!(client.put("x").starts_with("INSERTED "));
                    let reserved = client.ask("reserve");
                    let id = reserved.split(' ').nth(1).unwrap().to_owned();
                    assert_eq!(client.line(), "x");
                    assert_eq!(client.ask(&format!("delete {id}")), "DELETED");
                }
            })
        });
        for client in clients.collect::<Vec<_>>() {
            client.join().unwrap();
        }
        server.shutdown().unwrap();
    }
}

/// A message of AMQP: one section of data.
const DATA: &[u8] = &[0, 0x53, 0x75, 0xa0, 1, b'x'];
