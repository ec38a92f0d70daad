//! `dunlin bench`, in small.
use std::process::{Child, Command, Stdio};

use crate::common::patience::until;
use crate::common::{ANY, Directory, Server, dunlin, dunlin_after, run, unwritable};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

#[test]
fn bench_drives_its_own_server() {
    let directory = Directory::new("bench");
    let mut command = dunlin(&directory);
    command.args(["bench", "jobs", "--jobs", "200", "--clients", "5", "--json", "--data", "."]);
    let (code, stdout, stderr) = run(command);
    assert_eq!(code, Some(0), "{stderr}");
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(report["ok"], true);
    assert_eq!(report["closing"]["messages"], 200);
    assert!(report["closing"]["share_of_sync_limit"].as_f64().unwrap() > 0.0);
    assert_eq!(std::fs::read_dir(&directory.0).unwrap().count(), 0);
}

#[test]
fn bench_shows_own_servers_counters_only() {
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
fn bench_reports_unwritable_output() {
    let directory = Directory::new("bench-unwritable");
    let jobs = ["jobs", "--jobs", "20", "--clients", "2", "--data", "."];
    let travel_time = ["travel-time", "--seconds", "0.05", "--body", "10", "--data", "."];
    for arguments in [jobs, travel_time] {
        for out in unwritable() {
            let mut command = dunlin(&directory);
            command.arg("bench").args(arguments).stdout(out).stderr(Stdio::piped());
            let ended = command.spawn().unwrap().wait_with_output().unwrap();
            let err = String::from_utf8(ended.stderr).unwrap();
            assert_eq!(ended.status.code(), Some(1), "{err}");
            assert!(err.contains("cannot write to standard output"), "{err}");
            assert_eq!(std::fs::read_dir(&directory.0).unwrap().count(), 0);
        }
    }
}

#[test]
fn absent_server_is_named() {
    let directory = Directory::new("bench-absent");
    let mut command = dunlin(&directory);
    command.args(["bench", "jobs", "--target", "beanstalkd://127.0.0.1:1"]);
    let (code, _, stderr) = run(command);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("127.0.0.1:1"), "{stderr}");
}

/// The report of a benchmark over AMQP in small, which went well and left nothing behind.
fn measured(directory: &Directory, arguments: &[&str]) -> Value {
    let mut command = dunlin(directory);
    command.arg("bench").args(arguments).args(["--json", "--data", "."]);
    let (code, stdout, stderr) = run(command);
    assert_eq!(code, Some(0), "{stderr}");
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(report["ok"], true, "{stdout}");
    assert_eq!(report["problems"], serde_json::json!([]));
    let closing = &report["closing"];
    assert!(closing["durability_cost"].as_f64().unwrap() > 0.0, "{closing}");
    assert!(closing["disk_syncs_per_second_4k"].as_f64().unwrap() > 0.0, "{closing}");
    assert_eq!(std::fs::read_dir(&directory.0).unwrap().count(), 0);
    report
}

#[test]
fn matrix_shows_nonpersistent_is_never_synced() {
    let directory = Directory::new("bench-matrix");
    let few = ["--messages", "30", "--rounds", "1", "--clients", "3", "--seconds", "0.1"];
    let report = measured(&directory, &[&["matrix"][..], &few].concat());
    let cells = report["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 12);
    for cell in cells {
        assert_eq!(cell["messages"], 30, "{cell}");
        let syncs = cell["syncs_per_message"].as_f64().unwrap();
        let is_flushed = cell["store"] == "always" && cell["delivery"] == "persistent";
        assert_eq!(syncs > 0.0, is_flushed, "{cell}");
    }
    let closing = &report["closing"];
    let commits = closing["commits"].as_f64().unwrap();
    let messages = closing["messages"].as_f64().unwrap();
    // The last digit is lost where JSON is read.
    let each = closing["messages_per_commit"].as_f64().unwrap();
    assert!((each - messages / commits).abs() < 1e-9 * each, "{each} of {messages} in {commits}");
    assert!(commits <= messages && closing["syncs"].as_f64().unwrap() <= commits);
}

#[test]
fn transactions_are_counted_as_they_ended() {
    let directory = Directory::new("bench-transactions");
    let few = ["--clients", "1,4", "--operations", "5", "--roll-back-every", "2"];
    let short = ["--seconds", "0.2", "--readers", "2"];
    let report = measured(&directory, &[&["transactions"][..], &few, &short].concat());
    let rows = report["clients"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    for row in rows {
        let count = |name: &str| row[name].as_u64().unwrap();
        assert_eq!(count("failed"), 0);
        let ended = count("committed") + count("aborted");
        assert_eq!(count("aborted"), ended / 2, "{row}");
    }
    let committed = rows[1]["committed"].as_u64().unwrap();
    assert_eq!(report["closing"]["messages"], 5 * committed);
    assert!(report["readers"][0]["trials"].as_u64().unwrap() >= 2);
}

#[test]
fn travel_times_shown_for_each_way() {
    let directory = Directory::new("bench-travel-time");
    let report = measured(&directory, &["travel-time", "--seconds", "0.2"]);
    let rates = report["rates"].as_array().unwrap();
    assert_eq!(rates.len(), 4);
    let positive = |value: &Value| value.as_f64().is_some_and(|number| number > 0.0);
    assert!(rates.iter().all(|row| positive(&row["mean_milliseconds"])));
    let backlog = report["backlog"].as_array().unwrap();
    assert!(backlog.iter().all(|row| positive(&row["received_per_second"])), "{backlog:?}");
    assert!(positive(&backlog[1]["sent_per_second"]) && positive(&backlog[1]["core_for_core"]));
    let tenths = report["tenths"].as_array().unwrap();
    assert_eq!(tenths.len(), 10);
    assert!(tenths.iter().all(|row| positive(&row["queue"])), "{tenths:?}");
}

#[test]
fn factors_have_a_price() {
    let directory = Directory::new("bench-factors");
    let report = measured(&directory, &["factors", "--seconds", "0.1", "--body", "100"]);
    let rows = report["factors"].as_array().unwrap();
    assert_eq!(rows.len(), 13);
    assert_eq!(rows[0]["price_percent"], 0.0);
    assert_eq!(rows[1]["syncs_per_message"], 0.0);
    assert!(rows.iter().all(|row| row["messages"].as_u64().unwrap() > 0), "{rows:?}");
    assert_eq!(report["closing"]["messages"], rows[0]["messages"]);
}

fn send(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

/// A broker of AMQP, and its URL.
fn broker(directory: &Directory) -> (Server, String) {
    let mut command = dunlin(directory);
    command.args(["serve", "--listen", "amqp=127.0.0.1:0,http=127.0.0.1:0"]);
    let server = Server::start(command);
    let url = server.lines[0].replace("listening amqp ", "amqp://somebody:secret@");
    (server, url)
}

/// Messages that wait in a broker, as its own client lists them.
fn waiting(directory: &Directory, server: &Server) -> u64 {
    let url = server.lines[1].replace("listening http ", "http://");
    let mut command = dunlin(directory);
    command.args(["queues", "--json", "--url", &url]);
    let queues = run(command).1;
    let ready = |line| serde_json::from_str::<Value>(line).unwrap()["ready"].as_u64().unwrap();
    queues.lines().map(ready).sum()
}

#[test]
fn running_broker_is_measured_without_restart() {
    let directory = Directory::new("bench-running");
    let (server, url) = broker(&directory);
    let mut command = dunlin(&directory);
    let few = ["--messages", "20", "--rounds", "1", "--clients", "2", "--seconds", "0.1"];
    command.args(["bench", "matrix", "--json", "--target", &url]).args(few);
    let (code, stdout, stderr) = run(command);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(!stdout.contains("secret"), "{stdout}");
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(report["cells"].as_array().unwrap().len(), 4);
    assert!(report["cells"][1]["syncs_per_message"].is_null());
    assert!(report["closing"]["disk_syncs_per_second_4k"].is_null());
    let mut command = dunlin(&directory);
    command.args(["bench", "factors", "--seconds", "0.05", "--body", "10", "--target", &url]);
    assert_eq!(run(command).0, Some(0));
    assert_eq!(waiting(&directory, &server), 0);
}

#[test]
fn foreign_messages_stop_the_bench() {
    let directory = Directory::new("bench-foreign");
    let (server, url) = broker(&directory);
    let http = server.lines[1].replace("listening http ", "http://");
    let mut command = dunlin(&directory);
    command.args(["send", "mail", "precious", "--url", &http]);
    assert_eq!(run(command).0, Some(0));
    let mut command = dunlin(&directory);
    command.args(["bench", "factors", "--queue", "mail", "--target", &url]);
    let (code, _, stderr) = run(command);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("mail holds messages already"), "{stderr}");
    let mut command = dunlin(&directory);
    command.args(["receive", "mail", "--url", &http]);
    assert_eq!(run(command).1.trim(), "precious");
}

#[test]
fn signal_ends_bench_with_partial_report() {
    let directory = Directory::new("bench-cancelled");
    // Under nohup the tests ignore SIGHUP, and so do all processes that they start.
    let is_heard = |signal: &Signal| !signals(std::process::id(), "SigIgn:").contains(signal);
    let all = [Signal::INT, Signal::TERM, Signal::HUP];
    for signal in all.into_iter().filter(is_heard) {
        let child = endless(dunlin(&directory), &directory);
        send(&child, signal);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{signal:?}");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((&report["cancelled"], &report["ok"]), (&true.into(), &false.into()));
        assert_eq!(report["problems"], serde_json::json!([]));
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains("cancelled before the end"), "{stderr}");
        assert_eq!(std::fs::read_dir(&directory.0).unwrap().count(), 0);
    }
}

#[test]
fn hangup_stays_ignored_under_nohup() {
    let directory = Directory::new("bench-nohup");
    let child = endless(dunlin_after(&directory, "trap '' HUP"), &directory);
    let caught = signals(child.id(), "SigCgt:");
    let catches = |signal: Signal| caught.contains(&signal);
    assert_eq!((catches(Signal::HUP), catches(Signal::TERM)), (false, true));
    send(&child, Signal::INT);
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(1));
}

/// Those of three that a line of a process's status names.
fn signals(process: u32, line: &str) -> Vec<Signal> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let mask = status.lines().find_map(|told| told.strip_prefix(line)).unwrap();
    let mask = u64::from_str_radix(mask.trim(), 16).unwrap();
    let is_in = |signal: &Signal| mask >> (signal.as_raw() - 1) & 1 == 1;
    [Signal::INT, Signal::TERM, Signal::HUP].into_iter().filter(is_in).collect()
}

/// A benchmark that goes on until a signal comes, and listens to it.
fn endless(mut command: Command, directory: &Directory) -> Child {
    command.args(["bench", "factors", "--seconds", "600", "--json", "--data", "."]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    // It has its signal handlers before it has a directory.
    until("it has a directory", || std::fs::read_dir(&directory.0).unwrap().count() > 0);
    child
}

#[test]
fn cancelled_bench_leaves_broker_empty() {
    let directory = Directory::new("bench-called-off");
    let (server, url) = broker(&directory);
    let mut command = dunlin(&directory);
    command.args(["bench", "transactions", "--json", "--seconds", "600", "--target", &url]);
    command.args(["--clients", "2", "--operations", "3"]);
    command.stdout(Stdio::piped());
    let child = command.spawn().unwrap();
    until("a hundred wait", || waiting(&directory, &server) >= 100);
    send(&child, Signal::INT);
    let output = child.wait_with_output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["cancelled"], &report["problems"]), (&true.into(), &Value::Array(vec![])));
    assert!(report["clients"][0]["committed"].as_u64().unwrap() > 30, "{report}");
    assert_eq!(waiting(&directory, &server), 0);
}

#[test]
fn unmeasurable_targets_are_named() {
    let directory = Directory::new("bench-mends");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let other = format!("amqp://{}", listener.local_addr().unwrap());
    // Its first words are enough: the client hangs up.
    std::thread::spawn(move || {
        std::io::Write::write_all(&mut listener.accept().unwrap().0, b"220 mail.example\r\n")
    });
    for (arguments, status, says) in [
        (["matrix", "--target", "amqp://127.0.0.1:1"], 1, "amqp://127.0.0.1:1"),
        (["matrix", "--target", &other], 1, "does not speak AMQP 1.0"),
        (["transactions", "--target", "mqtt://h"], 2, "USER:PASSWORD"),
        (["transactions", "--operations", "0"], 2, "operations must be from 1"),
        (["factors", "--data", "/nonexistent/here"], 2, "/nonexistent/here is no directory"),
        (["travel-time", "--seconds", "0"], 2, "no number of seconds"),
    ] {
        let mut command = dunlin(&directory);
        command.arg("bench").args(arguments);
        let (code, _, stderr) = run(command);
        assert_eq!(code, Some(status), "{stderr}");
        assert!(stderr.contains(says), "{stderr}");
    }
}
