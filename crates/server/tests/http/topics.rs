//! Topics: publishing, and following as server-sent events.

use std::io::BufRead as _;

use server::Limits;

use crate::client::{Http, await_follows, http_too};
use crate::common::patience::until;
use crate::common::{memory, start};

/// The data of the next event.
fn event(http: &mut Http) -> String {
    loop {
        assert!(!http.socket.fill_buf().unwrap().is_empty(), "the stream goes on");
        let line = http.line();
        assert_ne!(line, "0", "the stream goes on");
        if let Some(data) = line.strip_prefix("data: ") {
            return data.to_owned();
        }
    }
}

fn follow(http: &mut Http, topic: &str) {
    let head = http.begin(&format!("GET /topics/{topic}/events"), &[], "").head();
    assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
    // The comment that says so comes when it follows.
    await_follows(http);
}

#[test]
fn followers_get_later_messages() {
    let server = start(http_too(memory()));
    let mut http = Http::to(&server);
    http.post("/topics/news/messages", "too early").says(201, "{\"message\":null}");
    let mut followers: Vec<Http> = (0..2).map(|_| Http::to(&server)).collect();
    for follower in &mut followers {
        follow(follower, "news");
    }
    for n in 0..200 {
        http.post("/topics/news/messages", &format!("n{n}")).says(201, "message");
    }
    for follower in &mut followers {
        for n in 0..200 {
            let data = event(follower);
            assert!(data.contains(&format!("\"body\":\"n{n}\"")), "{data}");
        }
    }
    http.ask("GET /topics").says(200, "\"subscriptions\":2,\"topic\":\"news\"");
    drop(followers);
    until("nobody follows", || !http.ask("GET /topics").body.contains("news"));
}

#[test]
fn pattern_followers_learn_the_topic() {
    let server = start(http_too(memory()));
    let (mut http, mut follower) = (Http::to(&server), Http::to(&server));
    follow(&mut follower, "news.%23");
    http.post("/topics/sports/messages", "no").says(201, "{\"message\":null}");
    http.post("/topics/news.eu/messages", "yes").says(201, "message");
    let data = event(&mut follower);
    assert!(data.contains("\"body\":\"yes\"") && data.contains("\"topic\":\"news.eu\""), "{data}");
    http.post("/topics/news.*/messages", "?").says(400, "news.* is a pattern of topics");
    http.ask("GET /topics/%3E.news/events").says(400, "> is the last word");
    let send = r#"{"send":[{"topic":"news.*","body":"?"}]}"#;
    http.post("/transactions", send).says(400, "news.* is a pattern of topics");
}

#[test]
fn stop_ends_followers() {
    let server = start(http_too(memory()));
    let mut http = Http::to(&server);
    follow(&mut http, "news");
    server.shutdown().unwrap();
    let mut rest = String::new();
    while let line = http.line()
        && !line.is_empty()
    {
        rest.push_str(&line);
    }
    assert!(!rest.contains("data"), "{rest}");
}

/// Their unread events have a bounded room of their own: other clients are answered.
#[test]
fn unread_followers_leave_others_room() {
    let limits = Limits { buffered_bytes: 32 << 20, ..Limits::default() };
    let server = start(http_too(server::Config { limits, ..memory() }));
    let mut http = Http::to(&server);
    // Far more than fits into the buffers of a socket.
    let large = "x".repeat(8 << 20);
    http.post("/queues/q/messages", &large).says(201, "");
    let mut silent: Vec<Http> = (0..4).map(|_| Http::to(&server)).collect();
    for follower in &mut silent {
        follow(follower, "news");
    }
    http.post("/topics/news/messages", &large).says(201, "");
    for _ in 0..3 {
        http.ask("GET /queues/q/messages?browse").says(200, "\"id\":1");
        http.post("/topics/news/messages", "m").says(201, "");
    }
}

/// However much room the followers that read nothing would need: they go, and a follower that reads
/// gets all.
#[test]
fn reading_follower_is_served_beside_unread() {
    let limits = Limits { buffered_bytes: 32 << 20, ..Limits::default() };
    let server = start(http_too(server::Config { limits, ..memory() }));
    let mut http = Http::to(&server);
    let mut silent: Vec<Http> = (0..4).map(|_| Http::to(&server)).collect();
    let mut reader = Http::to(&server);
    for follower in silent.iter_mut().chain([&mut reader]) {
        follow(follower, "news");
    }
    // Far more than fits into the buffers of a socket.
    let large = "x".repeat(8 << 20);
    for _ in 0..3 {
        http.post("/topics/news/messages", &large).says(201, "message");
        assert!(event(&mut reader).contains(&large));
    }
    until("one follows", || http.ask("GET /topics").body.contains("\"subscriptions\":1"));
    http.post("/topics/news/messages", "last").says(201, "message");
    assert!(event(&mut reader).contains("last"));
}
