//! `dunlin journal`: looking into a journal that no broker uses.
use std::os::unix::fs::FileExt as _;
use std::process::Stdio;

use crate::common::{ANY, Directory, Server, dunlin, run, unwritable};
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
fn verify_counts_records() {
    let directory = filled("verify");
    let (code, stdout, stderr) = journal(&directory, &["verify"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("1 ready, 1 delayed and 0 buried messages"), "{stdout}");
}

#[test]
fn verify_reports_unwritable_output() {
    let directory = filled("verify-unwritable");
    for out in unwritable() {
        let mut command = dunlin(&directory);
        command.args(["journal", "verify", "dunlin-data"]).stdout(out).stderr(Stdio::piped());
        let ended = command.spawn().unwrap().wait_with_output().unwrap();
        let err = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(1), "{err}");
        assert!(err.contains("cannot write to standard output"), "{err}");
    }
}

#[test]
fn verify_names_file_and_offset() {
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
fn missing_journal_is_named() {
    let directory = Directory::new("absent");
    for what in ["verify", "dump", "explain"] {
        let (code, _, stderr) = journal(&directory, &[what]);
        assert_eq!(code, Some(1));
        assert!(stderr.contains("dunlin-data"), "{stderr}");
        assert!(!directory.0.join("dunlin-data").exists(), "looking creates nothing");
    }
    std::fs::create_dir(directory.0.join("dunlin-data")).unwrap();
    // Empty at first, then with a foreign file, then with files that lie beside a journal.
    for file in [None, Some("notes.txt"), Some("lock"), Some("0000000000000001.spill")] {
        if let Some(file) = file {
            std::fs::write(directory.0.join("dunlin-data").join(file), "").unwrap();
        }
        for what in ["verify", "dump", "explain"] {
            let (code, _, stderr) = journal(&directory, &[what]);
            assert_eq!(code, Some(1), "{file:?}");
            assert!(stderr.contains("dunlin-data holds no journal"), "{stderr}");
        }
    }
}

#[test]
fn explain_shows_use_of_each_file() {
    let directory = filled("explain");
    let (code, stdout, stderr) = journal(&directory, &["explain"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.starts_with("file"), "{stdout}");
    assert!(stdout.contains("writing") && stdout.contains("1 in default, "), "{stdout}");

    let (_, stdout, _) = journal(&directory, &["explain", "--json"]);
    let files: Vec<Value> =
        stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(files[0]["file"], "0000000000000001.segment");
    assert_eq!((&files[0]["kept_for"], &files[0]["live_records"]), (&"writing".into(), &2.into()));
    assert_eq!(files[0]["queues"][0]["queue"], "default");
    assert_eq!(files[0]["queues"][0]["messages"], 2);
    assert!(files.len() > 1 && files[1..].iter().all(|file| file["live_records"] == 0));
}

#[test]
fn explain_asks_a_running_broker() {
    let directory = Directory::new("explain-url");
    let mut command = dunlin(&directory);
    command.arg("serve").args(ANY).args(["--listen", "http=127.0.0.1:0"]);
    let server = Server::start(command);
    assert_eq!(server.connect().put("hello"), "INSERTED 1");
    let http = server.lines.iter().find_map(|line| line.strip_prefix("listening http "));
    let url = format!("http://{}", http.unwrap());
    let mut command = dunlin(&directory);
    command.args(["journal", "explain", &url, "--json"]);
    let (code, stdout, stderr) = run(command);
    assert_eq!(code, Some(0), "{stderr}");
    let first: Value = serde_json::from_str(stdout.lines().next().unwrap()).unwrap();
    assert_eq!((&first["kept_for"], &first["live_records"]), (&"writing".into(), &1.into()));
    assert_eq!(first["queues"][0]["oldest"], 1);
    assert!(stdout.contains("\"spare\""), "{stdout}");
    server.signal(Signal::TERM);
    assert_eq!(server.end().0.code(), Some(0));
}
