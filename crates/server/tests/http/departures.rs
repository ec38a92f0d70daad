//! Clients that go away while they wait, by a reset, by closing, by both versions of HTTP. Their
//! waiting requests are not done, and their places are free.

use std::net::Shutdown;
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;
use server::{Config, Running};

use crate::client::{Http, await_waiting, http_too};
use crate::common::patience::until;
use crate::common::{memory, start};
use crate::frames::Frames;

/// How a client goes.
type Leave = fn(Http);

fn reset(http: Http) {
    set_socket_linger(http.socket.get_ref(), Some(Duration::ZERO)).unwrap();
    drop(http);
}

fn close(http: Http) {
    drop(http);
}

const LEAVES: [Leave; 2] = [reset, close];

/// A server with a queue `q` that has a place for one message, and one in it.
fn full() -> (Running, Http) {
    let block_timeout = Some(Duration::from_secs(3600));
    let server = start(http_too(Config { block_timeout, ..memory() }));
    let mut http = Http::to(&server);
    http.begin("PUT /queues/q/policy", &[], "{\"max_messages\":1}").answer().says(200, "");
    http.post("/queues/q/messages", "first").says(201, "");
    (server, http)
}

fn await_blocked_sends(http: &mut Http, count: u64) {
    let blocked_sends = format!("\"blocked_sends\":{count}");
    until("so many wait", || http.ask("GET /queues/q").body.contains(&blocked_sends));
}

/// After a place came free no message of clients that left is stored.
fn assert_only_first(server: &Running, http: &mut Http) {
    await_blocked_sends(http, 0);
    until("their connections are closed", || server.counters().connections == 1);
    let (body, lease) = http.receive("q");
    assert_eq!(body, "first");
    assert_eq!(http.ask(&format!("DELETE /leases/{lease}")).status, 204);
    http.post("/queues/q/messages", "last").says(201, "");
    assert_eq!(http.receive("q").0, "last");
}

const SEND: &str = "POST /queues/q/messages";

#[test]
fn pipelined_sends_end_with_their_client() {
    for leave in LEAVES {
        let (server, mut http) = full();
        let mut gone = Http::to(&server);
        let body = "x".repeat(5_000);
        for _ in 0..10 {
            gone.begin(SEND, &[], &body);
        }
        await_blocked_sends(&mut http, 1);
        leave(gone);
        assert_only_first(&server, &mut http);
    }
}

#[test]
fn waiting_batches_end_with_their_client() {
    let transaction = r#"{"send":[{"queue":"q","body":"gone"}]}"#;
    for leave in LEAVES {
        let (server, mut http) = full();
        for (what, body) in [
            ("POST /queues/q/messages?lines", "gone"),
            ("POST /queues/q/messages?count=1", "gone"),
            ("POST /transactions", transaction),
        ] {
            let mut gone = Http::to(&server);
            gone.begin(what, &[], body).begin(what, &[], body);
            await_blocked_sends(&mut http, 1);
            leave(gone);
            await_blocked_sends(&mut http, 0);
        }
        assert_only_first(&server, &mut http);
    }
}

#[test]
fn pipelined_receives_take_no_lease() {
    for leave in LEAVES {
        let server = start(http_too(memory()));
        let mut http = Http::to(&server);
        let mut gone = Http::to(&server);
        for _ in 0..10 {
            gone.begin("GET /queues/q/messages?wait=1h", &[], "");
        }
        await_waiting(&mut http, "q", 1);
        leave(gone);
        until("their connection is closed", || server.counters().connections == 1);
        for body in ["one", "two"] {
            http.post("/queues/q/messages", body).says(201, "");
        }
        for body in ["one", "two"] {
            let answer = http.ask("GET /queues/q/messages?wait=20s");
            assert_eq!(
                (answer.body.as_str(), answer.header("dunlin-deliveries")),
                (body, Some("1"))
            );
        }
    }
}

#[test]
fn receive_of_many_ends_with_client() {
    for leave in LEAVES {
        let server = start(http_too(memory()));
        let mut http = Http::to(&server);
        let mut gone = Http::to(&server);
        gone.begin("GET /queues/q/messages?wait=1h&max=10", &[], "");
        gone.begin("GET /queues/q/messages?max=10", &[], "");
        await_waiting(&mut http, "q", 1);
        leave(gone);
        until("their connection is closed", || server.counters().connections == 1);
        http.post("/queues/q/messages", "m").says(201, "");
        let answer = http.ask("GET /queues/q/messages?wait=20s");
        assert_eq!(answer.header("dunlin-deliveries"), Some("1"));
    }
}

#[test]
fn half_closed_client_gets_answers() {
    let server = start(http_too(memory()));
    let mut half = Http::to(&server);
    for n in 0..5 {
        half.begin("POST /queues/q/messages", &[], &n.to_string());
    }
    half.socket.get_ref().shutdown(Shutdown::Write).unwrap();
    for n in 1..=5 {
        half.answer().says(201, &format!("{{\"message\":{n}}}"));
    }
    assert_eq!(half.line(), "", "then it is closed");
}

#[test]
fn half_closed_client_waits_no_longer() {
    let (server, mut http) = full();
    let mut half = Http::to(&server);
    half.begin(SEND, &[], "gone").begin(SEND, &[], "gone");
    half.begin("GET /queues/q/messages", &[], "").begin("GET /health", &[], "");
    await_blocked_sends(&mut http, 1);
    half.socket.get_ref().shutdown(Shutdown::Write).unwrap();
    half.answer().says(507, "queue-full");
    half.answer().says(507, "queue-full");
    half.answer().says(503, "client-left");
    half.answer().says(200, "ok");
    assert_eq!(half.line(), "", "then it is closed");
    assert_only_first(&server, &mut http);
}

#[test]
fn follower_that_closed_is_gone() {
    for leave in LEAVES {
        let server = start(http_too(memory()));
        let mut http = Http::to(&server);
        let mut gone = Http::to(&server);
        gone.begin("GET /topics/t/events", &[], "").begin("GET /topics/t/events", &[], "");
        until("it follows", || http.ask("GET /topics").body.contains("\"subscriptions\":1"));
        leave(gone);
        until("it does not", || http.ask("GET /topics").body.contains("\"topics\":[]"));
        until("its connection is closed", || server.counters().connections == 1);
    }
}

#[test]
fn http2_streams_end_with_their_client() {
    for (leave, name) in [
        (Frames::cancel as fn(Frames, [u32; 2]) -> Option<Frames>, "cancel"),
        (Frames::reset, "reset"),
        (Frames::close, "close"),
    ] {
        println!("{name}");
        let (server, mut http) = full();
        let mut frames = Frames::to(&server);
        let send = frames.post("/queues/q/messages", b"gone");
        let receive = frames.get("/queues/other/messages?wait=1h");
        await_blocked_sends(&mut http, 1);
        await_waiting(&mut http, "other", 1);
        let frames = leave(frames, [send, receive]);
        await_blocked_sends(&mut http, 0);
        until("nobody waits", || http.ask("GET /queues/other").status == 404);
        http.post("/queues/other/messages", "m").says(201, "");
        let answer = http.ask("GET /queues/other/messages?wait=20s");
        assert_eq!(answer.header("dunlin-deliveries"), Some("1"));
        drop(frames);
        assert_only_first(&server, &mut http);
    }
}
