//! A server without descriptors: present clients are served, the journal goes on, and waiting
//! clients get descriptors that come free.

use crate::broker::{Broker, PROTOCOLS};
use crate::common::patience::until;
use crate::common::{Directory, dunlin_after};
use crate::neighbours::{Lines, Neighbours};

/// By all protocols. The neighbours came before.
#[test]
fn connected_clients_served_without_free_descriptors() {
    let directory = Directory::new("no-descriptors");
    let mut command = dunlin_after(&directory, "ulimit -n 40");
    command.args(["serve", "--store", "none"]);
    let broker = Broker::start(directory, command);
    let mut neighbours = Neighbours::of(&broker);
    neighbours.exchange();
    for protocol in PROTOCOLS {
        let crowd: Vec<_> = (0..60).map(|_| broker.socket(protocol)).collect();
        for _ in 0..20 {
            neighbours.exchange();
        }
        drop(crowd);
        // Its place came free.
        Neighbours::of(&broker).exchange();
    }
    broker.server.signal(rustix::process::Signal::TERM);
    let (status, log) = broker.end();
    assert_eq!(status.code(), Some(0));
    let complaints = log.lines().filter(|line| line.contains("cannot accept")).count();
    // One a second at most; the test takes a few.
    assert!((1..30).contains(&complaints), "{complaints} complaints: {log}");
}

/// A journal that may open no more files is full: it refuses, delivers stored messages, and goes
/// on. It never takes the descriptors by which it is reached, before a start or after.
#[test]
fn journal_without_descriptors_refuses_and_recovers() {
    let directory = Directory::new("journal-descriptors");
    let start = |directory: &Directory, journal_io: &str| {
        let mut command = dunlin_after(directory, "ulimit -n 270");
        command.args(["serve", "--listen", "beanstalkd=127.0.0.1:0", "--sync", "never"]);
        command.args(["--segment-bytes", "1", "--max-message-bytes", "65535"]);
        command.args(["--journal-io", journal_io]);
        crate::common::Server::start(command)
    };
    let connect = |server: &crate::common::Server| {
        let socket = std::net::TcpStream::connect(server.address()).unwrap();
        // A client that is not accepted gets no answer.
        socket.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
        Lines::new(socket)
    };
    // With a descriptor for each file it makes twice as many as with the two of direct writes.
    let server = start(&directory, "buffered");
    let mut client = connect(&server);
    let body = "x".repeat(60_000);
    let put = format!("put 0 0 60 {}\r\n{body}", body.len());
    let stored = (1..10_000).take_while(|_| client.ask(&put) != "OUT_OF_MEMORY").count();
    assert!((500..9_999).contains(&stored), "{stored} are stored");
    assert_eq!(connect(&server).ask("list-tube-used"), "USING default");
    server.signal(rustix::process::Signal::KILL);
    server.end();

    // A start finds as many files and no more descriptors, whichever I/O method the disk favours.
    let server = start(&directory, "auto");
    let mut client = connect(&server);
    for id in 1..=stored {
        assert_eq!(client.ask(&format!("delete {id}")), "DELETED");
    }
    // It stores again by itself; until then it says that it does not.
    until("it stores again", || client.ask(&put) != "OUT_OF_MEMORY");
    server.signal(rustix::process::Signal::TERM);
    let (status, log) = server.end();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(!log.contains("cannot accept"), "{log}");
}

/// A start that is allowed fewer than there are files says so, and takes nothing away.
#[test]
fn start_without_descriptors_names_the_mend() {
    let directory = Directory::new("fewer-descriptors");
    let fill = |setup: &str| {
        let mut command = dunlin_after(&directory, setup);
        command.args(["serve", "--listen", "beanstalkd=127.0.0.1:0", "--sync", "never"]);
        command.args(["--segment-bytes", "1", "--max-message-bytes", "65535"]);
        command
    };
    let refusal = |setup: &str| {
        let output = fill(setup).output().unwrap();
        assert!(!output.status.success(), "{setup}: {output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let server = crate::common::Server::start(fill("ulimit -n 270"));
    let mut client = Lines::new(std::net::TcpStream::connect(server.address()).unwrap());
    let body = "x".repeat(60_000);
    let put = format!("put 0 0 60 {}\r\n{body}", body.len());
    for id in 1..=1_500 {
        assert_eq!(client.ask(&put), format!("INSERTED {id}"));
    }
    server.signal(rustix::process::Signal::KILL);
    server.end();
    let (none, few) = (refusal("ulimit -n 40"), refusal("ulimit -n 100"));
    assert!(none.contains("open files") && none.contains("raise `ulimit -n`"), "{none}");
    assert!(few.contains(" files, which take 1 open files each"), "{few}");
    assert!(few.contains("raise `ulimit -n` by 1024"), "{few}");

    let server = crate::common::Server::start(fill("ulimit -n 270"));
    let mut client = Lines::new(std::net::TcpStream::connect(server.address()).unwrap());
    for id in 1..=1_500 {
        assert_eq!(client.ask(&format!("delete {id}")), "DELETED");
    }
}
