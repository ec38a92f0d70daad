//! Servers that do not do as they should: the run ends with a clear error and never hangs.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use bench::BenchError;
use bench::jobs::{Mode, run};

use crate::common::{options, quietly};

#[test]
fn refused_connection_names_the_server() {
    let error = quietly(&options("127.0.0.1:1".parse().unwrap(), Mode::Put)).unwrap_err();
    assert!(matches!(error, BenchError::Connect { .. }), "{error}");
    assert!(error.to_string().contains("beanstalkd://127.0.0.1:1: "), "{error}");
}

#[test]
fn server_that_closes_is_lost() {
    let error = against(|_| Reaction::Close);
    assert!(matches!(error, BenchError::Lost { .. }), "{error}");
    assert!(error.to_string().contains("asking \"stats\""), "{error}");
}

#[test]
fn server_that_speaks_http_is_named() {
    let error = against(|_| Reaction::Say("HTTP/1.1 400 Bad Request\r\n"));
    let shown = "not a reply of a beanstalkd server while asking \"stats\": \"HTTP/1.1 400";
    assert!(error.to_string().starts_with(shown), "{error}");
}

#[test]
fn server_without_tubes_is_named() {
    let error = against(|command| match command {
        "stats" => polite(command),
        _ => Reaction::Say("UNKNOWN_COMMAND\r\n"),
    });
    assert!(error.to_string().starts_with("the server said UNKNOWN_COMMAND while"), "{error}");
}

#[test]
fn server_that_closes_midway_is_lost() {
    let error = against_put(Reaction::Close);
    assert!(matches!(error, BenchError::Lost { .. }), "{error}");
    assert!(error.to_string().contains("in put (0 of 1000 jobs done, client "), "{error}");
}

#[test]
fn reply_cut_short_is_garbage() {
    let error = against_put(Reaction::SayAndClose("INSERT"));
    assert!(matches!(&error, BenchError::Garbage { reply, .. } if reply == "INSERT"), "{error}");
}

#[test]
fn reply_of_garbage_is_recognised() {
    for garbage in ["\0\u{1}\u{2}\r\n", "INSERTED many\r\n", "RESERVED 1 99999999999\r\n"] {
        let error = against_put(Reaction::Say(garbage));
        assert!(matches!(error, BenchError::Garbage { .. }), "{error}");
        assert!(error.to_string().is_ascii(), "{error}");
    }
}

#[test]
fn reply_without_end_is_garbage() {
    let error = against_put(Reaction::Flood);
    assert!(matches!(error, BenchError::Garbage { .. }), "{error}");
}

#[test]
fn reply_to_another_command_is_garbage() {
    let error = against_put(Reaction::Say("DELETED\r\n"));
    assert!(matches!(error, BenchError::Garbage { .. }), "{error}");
}

#[test]
fn replies_over_requests_are_garbage() {
    let error = against_put(Reaction::Say("INSERTED 1\r\n".repeat(20).leak()));
    assert!(matches!(error, BenchError::Garbage { .. }), "{error}");
}

#[test]
fn server_that_falls_silent_is_named() {
    let error = against_put(Reaction::Say(""));
    assert!(matches!(error, BenchError::Silent { .. }), "{error}");
    assert!(error.to_string().contains("waiting for put"), "{error}");
    let error = against(|_| Reaction::Say(""));
    assert!(matches!(error, BenchError::Silent { .. }), "{error}");
}

#[test]
fn cancelled_run_ends_with_silent_server() {
    static CANCEL: AtomicBool = AtomicBool::new(false);
    let address = serve(|command| {
        CANCEL.fetch_or(command == "put", Ordering::Relaxed);
        if CANCEL.load(Ordering::Relaxed) { Reaction::Say("") } else { polite(command) }
    });
    let report = run(&options(address, Mode::PutDelete), &CANCEL, &mut |_| {}).unwrap();
    assert!(report.cancelled);
    assert_eq!(report.jobs_left, None);
    let before_the_start = run(&options(address, Mode::PutDelete), &CANCEL, &mut |_| {});
    assert!(matches!(before_the_start, Err(BenchError::Cancelled)));
}

#[test]
fn repeated_job_id_is_noticed() {
    let address = serve(|command| match command {
        "put" => Reaction::Say("INSERTED 1\r\n"),
        "reserve-with-timeout" => Reaction::Say("RESERVED 1 1\r\na\r\n"),
        "delete" => Reaction::Say("DELETED\r\n"),
        _ => polite(command),
    });
    let mut options = options(address, Mode::PutDelete);
    (options.pipeline, options.body_bytes) = (1, 1);
    let report = quietly(&options).unwrap();
    let error = report.verdict().unwrap_err().to_string();
    assert!(error.contains("put: ids given twice: 999"), "{error}");
}

/// The reaction of a server to a command.
#[derive(Clone, Copy)]
enum Reaction {
    Say(&'static str),
    SayAndClose(&'static str),
    Close,
    /// Sends bytes that make no line until the client has gone.
    Flood,
}

/// As a good server with no jobs.
fn polite(command: &str) -> Reaction {
    match command {
        "stats" => Reaction::Say("OK 4\r\n---\n\r\n"),
        "stats-tube" => Reaction::Say("NOT_FOUND\r\n"),
        "use" => Reaction::Say("USING t\r\n"),
        _ => Reaction::Say("WATCHING 1\r\n"),
    }
}

fn against_put(reaction: Reaction) -> BenchError {
    against(move |command| if command == "put" { reaction } else { polite(command) })
}

fn against(react: impl Fn(&str) -> Reaction + Copy + Send + 'static) -> BenchError {
    let mut options = options(serve(react), Mode::PutDelete);
    options.reply_timeout = Duration::from_millis(300);
    quietly(&options).unwrap_err()
}

/// A server that reacts to the first word of each command, on threads that end with the test.
fn serve(react: impl Fn(&str) -> Reaction + Copy + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || converse(&stream.unwrap(), react));
        }
    });
    address
}

fn converse(mut stream: &TcpStream, react: impl Fn(&str) -> Reaction) {
    let mut lines = BufReader::new(stream).lines();
    while let Some(Ok(line)) = lines.next() {
        let command = line.split(' ').next().unwrap();
        if command == "put" {
            lines.next();
        }
        let said = match react(command) {
            Reaction::Say(reply) => stream.write_all(reply.as_bytes()),
            Reaction::SayAndClose(reply) => {
                stream.write_all(reply.as_bytes()).and_then(|()| close(stream))
            }
            Reaction::Close => close(stream),
            Reaction::Flood => loop {
                if let Err(gone) = stream.write_all(&[b'x'; 4096]) {
                    break Err(gone);
                }
            },
        };
        if said.is_err() {
            return;
        }
    }
}

/// Only the sending half: unread bytes of the client would turn a close to a reset.
fn close(stream: &TcpStream) -> io::Result<()> {
    stream.shutdown(Shutdown::Write)
}
