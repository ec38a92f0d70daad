//! A server as its clients see it.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

mod common;

use common::{Directory, connect, journal, memory, start};
use model::{Nanos, StorePolicy};

#[test]
fn a_job_goes_round() {
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
fn a_waiting_worker_of_another_reactor_is_served() {
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
fn what_was_confirmed_is_there_after_a_restart() {
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
