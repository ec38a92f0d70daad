//! The commands that speak to a broker, where the connection breaks before its answer.
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use crate::common::{Directory, dunlin, run};

/// A server that takes requests, gives these answers and then, instead of one more, closes.
fn breaking(answers: &'static [&'static str]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut client = BufReader::new(listener.accept().unwrap().0);
        for answer in answers {
            take_request(&mut client);
            let head = format!("HTTP/1.1 201 Created\r\ncontent-length: {}", answer.len());
            client.get_mut().write_all(format!("{head}\r\n\r\n{answer}").as_bytes()).unwrap();
        }
        take_request(&mut client);
    });
    url
}

fn take_request(client: &mut BufReader<TcpStream>) {
    let (mut length, mut is_held_back) = (0, false);
    for line in client.by_ref().lines().map(|line| line.unwrap().to_ascii_lowercase()) {
        if let Some(bytes) = line.strip_prefix("content-length: ") {
            length = bytes.parse().unwrap();
        }
        // Its body is sent when it is asked for.
        is_held_back |= line.starts_with("expect: ");
        if line.is_empty() {
            break;
        }
    }
    if is_held_back {
        client.get_mut().write_all(b"HTTP/1.1 100 Continue\r\n\r\n").unwrap();
    }
    client.read_exact(&mut vec![0; length]).unwrap();
}

/// The text that a command prints if its request is not answered.
fn told(url: &str, words: &[&str], input: &str) -> String {
    let directory = Directory::new(&format!("unanswered-{}", url.rsplit(':').next().unwrap()));
    let mut command = dunlin(&directory);
    command.args(words).args(["--url", url]);
    command.stdin(std::fs::File::open(directory.file("input", input)).unwrap());
    let (code, out, err) = run(command);
    assert_eq!((code, out.as_str()), (Some(1), ""), "{words:?}: {err}");
    assert!(!err.contains("dunlin serve"), "it was there: {err}");
    assert!(err.contains(url) && err.contains("no answer came"), "{err}");
    err
}

#[test]
fn broken_answer_admits_possible_effect() {
    for words in [
        &["send", "q", "m"][..],
        &["move", "a", "b"],
        &["purge", "q", "--yes"],
        &["policy", "set", "q", "max-messages=1"],
        &["policy", "reset", "q"],
        &["dead", "replay", "--all"],
    ] {
        let err = told(&breaking(&[]), words, "");
        assert!(err.contains("it may have been done, in whole or in part"), "{words:?}: {err}");
    }
    let err = told(&breaking(&[]), &["send", "q", "m", "--key", "k"], "");
    assert!(err.contains("with this --key nothing is stored twice"), "{err}");
    for words in [&["queues"][..], &["browse", "q"], &["receive", "q"]] {
        let err = told(&breaking(&[]), words, "");
        assert!(err.contains("ask again") && !err.contains("done"), "{words:?}: {err}");
    }
}

#[test]
fn possibly_stored_lines_are_named() {
    let input: String = (0..10_005).map(|n| format!("{n}\n")).collect();
    let words = ["send", "q", "--lines", "--key", "k"];
    let err = told(&breaking(&["{\"count\":10000}"]), &words, &input);
    assert!(
        err.contains("10000 messages were stored before, lines 10001 to 10005 may be"),
        "{err}"
    );
    assert!(err.contains("with this --key nothing is stored twice"), "{err}");
    let err = told(&breaking(&[]), &words[..3], "1\n2\n");
    assert!(err.contains("0 messages were stored before, lines 1 to 2 may be stored"), "{err}");
    assert!(err.contains("with --key it could be sent again"), "{err}");
}
