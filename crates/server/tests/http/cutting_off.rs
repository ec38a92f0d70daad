//! Subscribers that do not read, by each protocol, if a topic's rules disconnect them: they hear
//! why, and no other client is any slower for it.

use std::io::Read as _;

use crate::client::{Http, await_follows, http_too};
use crate::common::patience::{until, until_some};
use crate::common::reader::{Reader, Wish};
use crate::common::{Client, amqp_too, memory, redis_too, start};
use server::{Protocol, Running};

const BODY_BYTES: usize = 16 * 1024;

fn address(server: &Running, protocol: Protocol) -> std::net::SocketAddr {
    server.addresses().iter().find(|it| it.protocol == protocol).unwrap().tcp().unwrap()
}

/// A server, and the rules of its topic.
fn ruled(rules: &str) -> (Running, Http) {
    let server = start(http_too(redis_too(amqp_too(memory()))));
    let mut http = Http::to(&server);
    http.begin("PUT /queues/news/policy", &[], rules).answer().says(200, "disconnect");
    (server, http)
}

fn subscriptions(http: &mut Http) -> usize {
    http.ask("GET /subscriptions").body.matches("\"topic\"").count()
}

#[test]
fn slow_amqp_subscriber_is_detached() {
    let (server, mut http) = ruled(r#"{"max_messages":10,"when_full":"disconnect"}"#);
    let wish = |credit| Wish { queue: "news", topic: true, copies: false, credit };
    let amqp = address(&server, Protocol::Amqp);
    let mut slow = Reader::new(amqp, &wish(3));
    until("it subscribes", || subscriptions(&mut http) > 0);
    for number in 0..11 {
        http.post("/topics/news/messages", &number.to_string()).says(201, "");
    }
    let why = slow.detached();
    assert_eq!(
        why,
        "amqp:resource-limit-exceeded (messages were not taken in time: max-messages=10)"
    );
    until("its subscription ends", || subscriptions(&mut http) == 0);
    // The connection goes on, and so does another subscriber.
    slow.attach_sender(1, "default");
    server.shutdown().unwrap();
}

/// As Redis does if a client leaves too much unread.
#[test]
fn slow_redis_subscriber_is_closed() {
    let (server, mut http) = ruled(r#"{"max_messages":70,"when_full":"disconnect"}"#);
    let redis = address(&server, Protocol::Redis);
    let (mut slow, mut quick) = (Client::new(redis), Client::new(redis));
    for client in [&mut slow, &mut quick] {
        client.send("SUBSCRIBE news\r\n");
        let lines: Vec<_> = (0..6).map(|_| client.line()).collect();
        assert_eq!(lines[5], ":1");
    }
    let body = "x".repeat(BODY_BYTES);
    let mut published = 0;
    while subscriptions(&mut http) > 1 {
        http.post("/topics/news/messages", &body).says(201, "message");
        published += 1;
        let lines: Vec<_> = (0..7).map(|_| quick.line()).collect();
        assert_eq!(lines[6], body, "the quick one gets all");
        assert!(published < 10_000, "it costs no more than that");
    }
    let mut rest = Vec::new();
    // Bytes on their way may come, or be lost with the connection.
    let _ = slow.socket.read_to_end(&mut rest);
    assert!(rest.len() < published * BODY_BYTES, "it is closed before all came");
    http.post("/topics/news/messages", "more").says(201, "message");
    assert_eq!((0..7).map(|_| quick.line()).last().unwrap(), "more");
}

#[test]
fn slow_http_follower_is_told() {
    let (server, mut http) = ruled(r#"{"max_messages":100,"when_full":"disconnect"}"#);
    let mut slow = Http::to(&server);
    slow.begin("GET /topics/news/events", &[], "").head();
    await_follows(&mut slow);
    let body = "x".repeat(BODY_BYTES);
    let mut published = 0;
    while subscriptions(&mut http) > 0 {
        http.post("/topics/news/messages", &body).says(201, "");
        published += 1;
        assert!(published < 10_000, "it costs no more than that");
    }
    let mut events = 0;
    let last = loop {
        let data = next_data(&mut slow);
        if data.contains("urn:dunlin:problem") {
            break data;
        }
        events += 1;
    };
    assert!(events < published, "{events} of {published}");
    let why = r#""detail":"messages were not read in time: max-messages=100""#;
    let kind = r#""type":"urn:dunlin:problem:subscription-full""#;
    assert_eq!(last, format!("{{{why},{kind}}}"));
    assert!(slow.line().is_empty() && slow.line().is_empty());
    assert_eq!(slow.line(), "0", "the stream ends");
}

/// The data of the next event.
fn next_data(http: &mut Http) -> String {
    until_some("an event", || http.line().strip_prefix("data: ").map(str::to_owned))
}
