//! Connections that ask nothing: kept for as long as is set, and then closed.

use std::io::Read as _;
use std::time::{Duration, Instant};

use server::{Config, Limits, Running};

use crate::client::{Http, http_too};
use crate::common::{memory, start};
use crate::frames::Frames;

const IDLE: Duration = Duration::from_millis(100);

fn server(idle: Option<Duration>, half_sent: Option<Duration>) -> Running {
    let limits = Limits { http_idle: idle, half_sent, ..Limits::default() };
    start(http_too(Config { limits, ..memory() }))
}

#[test]
fn idle_connection_is_closed() {
    let server = server(Some(IDLE), None);
    let mut http = Http::to(&server);
    let begin = Instant::now();
    http.ask("GET /health").says(200, "ok");
    assert_eq!(http.line(), "", "it is closed");
    assert!(begin.elapsed() >= IDLE);
}

#[test]
fn idle_timeout_is_not_half_sent() {
    let server = server(None, Some(IDLE));
    let mut http = Http::to(&server);
    http.ask("GET /health").says(200, "ok");
    std::thread::sleep(2 * IDLE);
    http.ask("GET /health").says(200, "ok");
    http.send("GET /health HTTP/1.1\r\n");
    assert_eq!(http.line(), "", "it is closed in the middle of a head");
}

#[test]
fn long_poll_is_not_idle() {
    let server = server(Some(IDLE), Some(IDLE));
    let mut http = Http::to(&server);
    assert_eq!(http.ask("GET /queues/q/messages?wait=300ms").status, 204);
    http.ask("GET /health").says(200, "ok");
}

#[test]
fn idle_http2_connection_ends_with_goodbye() {
    let server = server(Some(IDLE), None);
    let mut frames = Frames::to(&server);
    frames.get("/health");
    let mut heard = Vec::new();
    // A client that does not confirm the goodbye is closed all the same.
    frames.http.socket.read_to_end(&mut heard).unwrap();
    let goaway = [0, 0, 8, 7, 0, 0, 0, 0, 0];
    assert!(heard.windows(goaway.len()).any(|part| part == goaway), "{heard:?}");
}
