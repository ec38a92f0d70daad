//! Answers to operators while the disk of the log hangs.

use std::sync::Arc;
use std::time::Duration;

use http_api::{Options, serve_stream};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::runtime::Builder;
use tokio::time::sleep;

use crate::gateway::Ours;

async fn ask(stream: &mut DuplexStream, request: &str) -> String {
    let (line, body) = request.split_once('\n').unwrap_or((request, ""));
    let length = body.len();
    let head = format!("{line} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n");
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    let mut heard = String::new();
    loop {
        let mut piece = [0; 65_536];
        let count = stream.read(&mut piece).await.unwrap();
        assert!(count > 0, "{heard}");
        heard.push_str(str::from_utf8(&piece[..count]).unwrap());
        let Some((head, body)) = heard.split_once("\r\n\r\n") else { continue };
        let length = head.split("content-length: ").nth(1).unwrap().lines().next().unwrap();
        if body.len() == length.parse::<usize>().unwrap() {
            return heard;
        }
    }
}

fn options() -> Options {
    Options {
        message_bytes_max: 1_000,
        buffered_bytes: 1 << 20,
        block_timeout: Duration::ZERO,
        half_sent: None,
        idle: None,
        stop: Duration::ZERO,
        allowed_hosts: Vec::new(),
        envelopes: amqp::envelopes(),
        held_bytes: Arc::default(),
    }
}

fn says(answer: &str, status: &str, part: &str) {
    assert!(answer.starts_with(&format!("HTTP/1.1 {status}")) && answer.contains(part), "{answer}");
}

#[test]
fn operators_see_the_latest_figures() {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let ours = Ours::new();
        let (mut client, server) = duplex(1 << 20);
        let serving = serve_stream(server, ours.clone(), options());
        let asking = async {
            for queue in ["a", "b", "c"] {
                let put = format!("POST /queues/{queue}/messages\nm");
                says(&ask(&mut client, &put).await, "201", "");
            }
            says(&ask(&mut client, "GET /queues").await, "200", "\"age_millis\":0,");
            let aged = "dunlin_queue_figures_age_seconds 0\n";
            says(&ask(&mut client, "GET /metrics").await, "200", aged);
            // No client asked for these queues yet; but a sample is taken once a second.
            sleep(Duration::from_millis(1_500)).await;
            ours.hang();
            sleep(Duration::from_secs(60)).await;
            let page = ask(&mut client, "GET /queues?after=a&max=1").await;
            says(&page, "200", "\"age_millis\":61500,\"next\":\"b\",");
            says(&page, "200", "\"name\":\"b\"");
            says(&ask(&mut client, "GET /queues/c").await, "200", "\"age_millis\":62500,");
            let metrics = ask(&mut client, "GET /metrics").await;
            says(&metrics, "200", "dunlin_queue_figures_age_seconds 63.5\n");
            says(&metrics, "200", "queue=\"a\",state=\"ready\"} 1\n");
            says(&ask(&mut client, "GET /queues/d").await, "503", "log-hangs");
            // No client had asked for the log before, and it tells only durable facts.
            says(&ask(&mut client, "GET /journal").await, "503", "log-hangs");
        };
        tokio::select! {
            () = serving => panic!("the connection ended"),
            () = asking => {}
        }
    });
}

#[test]
fn journal_shows_age_while_hanging() {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let ours = Ours::new();
        let (mut client, server) = duplex(1 << 20);
        let asking = async {
            says(&ask(&mut client, "GET /journal").await, "200", "\"age_millis\":0");
            ours.hang();
            sleep(Duration::from_secs(9)).await;
            says(&ask(&mut client, "GET /journal").await, "200", "\"age_millis\":10000");
        };
        tokio::select! {
            () = serve_stream(server, ours.clone(), options()) => panic!("the connection ended"),
            () = asking => {}
        }
    });
}
