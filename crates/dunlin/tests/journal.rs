//! `dunlin journal`: looking into a journal that nobody uses.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

mod common;

use std::os::unix::fs::FileExt as _;

use common::{ANY, Directory, Server, dunlin, run};
use rustix::process::Signal;
use serde_json::Value;

fn journal(directory: &Directory, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = dunlin(directory);
    command.arg("journal").args(arguments).arg("dunlin-data");
    run(command)
}

/// Leaves a journal with two messages behind, as a kill does.
fn filled(test: &str) -> Directory {
    let directory = Directory::new(test);
    let mut command = dunlin(&directory);
    command.arg("serve").args(ANY);
    let server = Server::start(command);
    let mut client = server.connect();
    assert_eq!(client.put("hello"), "INSERTED 1");
    assert_eq!(client.ask("put 7 100 60 2\r\n\u{e9}"), "INSERTED 2");
    let (code, _, stderr) = journal(&directory, &["verify"]);
    assert!(code == Some(1) && stderr.contains("in use"), "{stderr}");
    server.signal(Signal::KILL);
    server.end();
    directory
}

#[test]
fn verify_tells_what_is_there() {
    let directory = filled("verify");
    let (code, stdout, stderr) = journal(&directory, &["verify"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("1 ready, 1 delayed and 0 buried messages"), "{stdout}");
}

#[test]
fn verify_names_file_and_offset_of_rot() {
    let directory = filled("rot");
    let path = directory.0.join("dunlin-data/0000000000000001.segment");
    let file = std::fs::File::options().write(true).open(path).unwrap();
    file.write_all_at(b"rot", 4096 + 90).unwrap();
    let (code, stdout, stderr) = journal(&directory, &["verify"]);
    assert_eq!((code, stdout.as_str()), (Some(1), ""));
    assert!(stderr.contains("0000000000000001.segment"), "{stderr}");
    assert!(stderr.contains("4096"), "{stderr}");
}

#[test]
fn dump_prints_every_record() {
    let directory = filled("dump");
    let (code, stdout, stderr) = journal(&directory, &["dump"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("segment file=\"0000000000000001.segment\""), "{stdout}");
    assert!(stdout.contains("body=5:\"hello\""), "{stdout}");

    let (_, stdout, _) = journal(&directory, &["dump", "--json"]);
    let things: Vec<Value> =
        stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let records: Vec<&Value> = things
        .iter()
        .filter(|thing| thing["kind"] == "frame")
        .flat_map(|frame| frame["records"].as_array().unwrap())
        .collect();
    assert_eq!(records.len(), 2);
    assert_eq!(records[0]["body"], "hello");
    assert_eq!(records[1]["priority"], 7);
    assert_eq!(records[1]["body"], "\u{e9}");
}

#[test]
fn a_journal_that_is_not_there_is_named() {
    let directory = Directory::new("absent");
    for what in ["verify", "dump"] {
        let (code, _, stderr) = journal(&directory, &[what]);
        assert_eq!(code, Some(1));
        assert!(stderr.contains("dunlin-data"), "{stderr}");
        assert!(!directory.0.join("dunlin-data").exists(), "looking creates nothing");
    }
}
