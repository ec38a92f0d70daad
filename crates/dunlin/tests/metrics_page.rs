//! The page that tells the metrics has those that the broker shows.
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;

use crate::common::{Directory, Server, dunlin};

const OPENING: &str = "\
# Metrics

You learn here each figure of `GET /metrics`, in the text format of Prometheus.

This page is generated: `UPDATE=1 cargo test -p dunlin metrics_page` writes it. Names begin
with `dunlin_`. Figures of queues have the label `queue`, states the label `state`, summaries the
label `quantile` and the suffixes `_sum` and `_count`.

";

#[test]
fn metrics_page_is_current() {
    let directory = Directory::new("metrics-page");
    let mut command = dunlin(&directory);
    command.args(["serve", "--listen", "http=127.0.0.1:0"]);
    let server = Server::start(command);
    let address = server.lines[0].strip_prefix("listening http ").unwrap().to_owned();
    let mut socket = TcpStream::connect(&address).unwrap();
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    drop(server);
    let page = page_of(&answer);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/metrics.md");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&file, &page).unwrap();
        return;
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    let again = "UPDATE=1 cargo test -p dunlin metrics_page";
    assert!(written == page, "docs/reference/metrics.md is not what the broker shows: {again}");
}

/// A line a metric, in the order in which the broker shows them.
fn page_of(answer: &str) -> String {
    let mut page = String::from(OPENING);
    let mut lines = answer.lines();
    while let Some(line) = lines.next() {
        let Some((name, help)) =
            line.strip_prefix("# HELP dunlin_").and_then(|t| t.split_once(' '))
        else {
            continue;
        };
        let kind = lines.next().and_then(|line| line.rsplit(' ').next()).unwrap_or_default();
        let mut text = format!("* `{name}` ({kind}):");
        for word in help.split_whitespace() {
            let last = text.rsplit('\n').next().unwrap_or_default().chars().count();
            let space = if last + 1 + word.chars().count() > 116 { "\n  " } else { " " };
            let _ = write!(text, "{space}{word}");
        }
        page.push_str(&text);
        page.push('\n');
    }
    page
}
