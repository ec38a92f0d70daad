//! `dunlin bench jobs`, in small.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

mod common;

use common::{ANY, Directory, Server, dunlin, run};
use serde_json::Value;

#[test]
fn it_drives_a_server_of_its_own_and_cleans_up() {
    let directory = Directory::new("bench");
    let mut command = dunlin(&directory);
    command.args(["bench", "jobs", "--jobs", "200", "--clients", "5", "--json", "--data", "."]);
    let (code, stdout, stderr) = run(command);
    assert_eq!(code, Some(0), "{stderr}");
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(report["ok"], true);
    assert_eq!(std::fs::read_dir(&directory.0).unwrap().count(), 0);
}

#[test]
fn it_drives_another_server_and_shows_the_counters_of_its_own_only() {
    let directory = Directory::new("bench-target");
    let mut command = dunlin(&directory);
    command.args(["serve", "--store", "none"]).args(ANY);
    let server = Server::start(command);
    let target = format!("beanstalkd://{}", server.address());
    let mut command = dunlin(&directory);
    command.args(["bench", "jobs", "--jobs", "100", "--clients", "2", "--target", &target]);
    let (code, stdout, stderr) = run(command);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("jobs/s") && !stdout.contains("counters:"), "{stdout}");

    let mut command = dunlin(&directory);
    command.args(["bench", "jobs", "--jobs", "100", "--clients", "2", "--store", "none"]);
    let (code, stdout, _) = run(command);
    assert_eq!(code, Some(0));
    assert!(stdout.contains("counters:"), "{stdout}");
}

#[test]
fn an_absent_server_is_named() {
    let directory = Directory::new("bench-absent");
    let mut command = dunlin(&directory);
    command.args(["bench", "jobs", "--target", "beanstalkd://127.0.0.1:1"]);
    let (code, _, stderr) = run(command);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("127.0.0.1:1"), "{stderr}");
}
