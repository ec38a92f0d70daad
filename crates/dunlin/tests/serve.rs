//! `dunlin serve`: the contract of its command line, its signals and its exit status.
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::MetadataExt as _;
use std::process::Stdio;

use crate::common::patience::until;
use crate::common::{ANY, Client, Directory, Server, dunlin, dunlin_after, run};
use rustix::fs::{CWD, Mode, mkfifoat};
use rustix::process::{Pid, Signal, kill_process};

fn serve(directory: &Directory, arguments: &[&str]) -> Server {
    let mut command = dunlin(directory);
    command.arg("serve").args(ANY).args(arguments);
    Server::start(command)
}

#[test]
fn serve_prints_addresses_then_ready() {
    let directory = Directory::new("ready");
    let mut command = dunlin(&directory);
    command.args(["serve", "--store", "none"]).args(ANY).args(ANY);
    let server = Server::start(command);
    assert_eq!(server.lines.len(), 3);
    for line in &server.lines[..2] {
        let address = line.strip_prefix("listening beanstalkd ").unwrap();
        assert_ne!(address.parse::<std::net::SocketAddr>().unwrap().port(), 0, "{line}");
        assert_eq!(Client::new(address.parse().unwrap()).ask("list-tube-used"), "USING default");
    }
    assert!(!directory.0.join("dunlin-data").exists(), "a store of none leaves nothing");
    let (status, stderr) = {
        server.signal(Signal::TERM);
        server.end()
    };
    assert_eq!(status.code(), Some(0), "{stderr}");
}

#[test]
fn served_files_belong_to_owner_alone() {
    let directory = Directory::new("serve-owner");
    let server = serve(&directory, &[]);
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
    assert!(status.contains("Umask:\t0077"), "{status}");
    let data = directory.0.join("dunlin-data");
    assert_eq!(std::fs::metadata(&data).unwrap().mode() & 0o777, 0o700);
    for file in std::fs::read_dir(&data).unwrap() {
        let file = file.unwrap();
        assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600, "{:?}", file.path());
    }
    server.signal(Signal::TERM);
    let (_, log) = server.end();
    assert_eq!(log.contains("runs as root"), rustix::process::geteuid().is_root(), "{log}");
}

#[test]
fn jobs_survive_sigterm_in_default_directory() {
    let directory = Directory::new("default-data");
    let server = serve(&directory, &[]);
    assert_eq!(server.connect().put("x"), "INSERTED 1");
    server.signal(Signal::TERM);
    assert_eq!(server.end().0.code(), Some(0));
    assert!(directory.0.join("dunlin-data").is_dir());
    let server = serve(&directory, &["--data", "./dunlin-data"]);
    assert_eq!(server.connect().ask("peek 1"), "FOUND 1 1");
    server.signal(Signal::INT);
    let (status, stderr) = server.end();
    assert_eq!(status.code(), Some(0));
    assert!(stderr.contains("1 ready"), "the log tells what was recovered: {stderr}");
}

#[test]
fn jobs_survive_kill_under_every_sync() {
    for sync in ["always", "25ms", "never"] {
        let directory = Directory::new(&format!("kill-{sync}"));
        let server = serve(&directory, &["--sync", sync]);
        assert_eq!(server.connect().put("x"), "INSERTED 1");
        server.signal(Signal::KILL);
        server.end();
        let server = serve(&directory, &["--sync", sync]);
        assert_eq!(server.connect().ask("peek 1"), "FOUND 1 1", "{sync}");
    }
}

#[test]
fn flags_overrule_variables_variables_overrule_file() {
    let directory = Directory::new("precedence");
    let file = directory.file(
        "dunlin.toml",
        "store = 'none'\nmax-message-bytes = 1\nlisten = ['beanstalkd=127.0.0.1:0']\n\
         [queues.r]\nrelease-order = 'back'\n",
    );
    let largest = |flag: Option<&str>, variable: Option<&str>| {
        let mut command = dunlin(&directory);
        command.arg("serve").arg("--config").arg(&file);
        command.args(flag.map(|bytes| ["--max-message-bytes", bytes]).into_iter().flatten());
        command.envs(variable.map(|bytes| ("DUNLIN_MAX_MESSAGE_BYTES", bytes)));
        let server = Server::start(command);
        let mut client = server.connect();
        (1..5).take_while(|bytes| client.put(&"x".repeat(*bytes)) != "JOB_TOO_BIG").count()
    };
    assert_eq!(largest(None, None), 1);
    assert_eq!(largest(None, Some("2")), 2);
    assert_eq!(largest(Some("3"), Some("2")), 3);

    let mut command = dunlin(&directory);
    command.arg("serve").env("DUNLIN_CONFIG", &file);
    let server = Server::start(command);
    let mut client = server.connect();
    client.send("use r\r\nwatch r\r\nput 0 0 60 1\r\na\r\nput 0 0 60 1\r\nb\r\n");
    client.send("reserve\r\nrelease 1 0 0\r\nreserve\r\n");
    let lines: Vec<_> = (0..8).map(|_| client.line()).collect();
    assert_eq!(lines[7], "RESERVED 2 1", "released to the back: {lines:?}");
}

#[test]
fn variables_may_list_what_flags_repeat() {
    let directory = Directory::new("variables");
    let mut command = dunlin(&directory);
    command.arg("serve").env("DUNLIN_STORE", "none");
    command.env("DUNLIN_LISTEN", "beanstalkd=127.0.0.1:0,beanstalkd=127.0.0.1:0");
    assert_eq!(Server::start(command).lines.len(), 3);
}

#[test]
fn wrong_settings_are_named_with_alternatives() {
    let directory = Directory::new("wrong");
    let unknown = directory.file("unknown.toml", "sink = '25ms'\n");
    let value = directory.file("value.toml", "sync = 'often'\n");
    let cases: [(&[&str], &[&str]); 16] = [
        (&["--sync", "often"], &["--sync", "often", "25ms"]),
        (&["--sync", "0ms"], &["--sync", "above 0"]),
        (&["--store", "disk"], &["--store", "journal", "none"]),
        (&["--listen", "smtp=127.0.0.1:25"], &["smtp", "beanstalkd"]),
        (&["--journal-io", "mmap"], &["--journal-io", "direct"]),
        (&["--queue", "a:order=up"], &["--queue", "release-order"]),
        (
            &["--queue", "a:max-messages=1", "--queue", "a:max-messages=2"],
            &["a:max-messages stands twice"],
        ),
        (&["--queue", "*:max-bytes=1,max-bytes=1"], &["*:max-bytes stands twice"]),
        (&["--config", unknown.to_str().unwrap()], &["unknown.toml", "sink", "`sync`"]),
        (&["--config", value.to_str().unwrap()], &["value.toml", "sync", "25ms"]),
        (&["--config", "absent.toml"], &["absent.toml", "--config"]),
        (&["--threads", "0"], &["threads", "1 to"]),
        (&["--max-connections", "0"], &["connections", "1 to"]),
        (&["--max-message-bytes", "0"], &["messages", "1 to"]),
        (&["--max-buffered-bytes", "1"], &["bytes", "or more"]),
        (&["--listen", "http=0.0.0.0:0"], &["http", "--insecure"]),
    ];
    for (arguments, words) in cases {
        let mut command = dunlin(&directory);
        command.arg("serve").args(arguments);
        let (code, stdout, stderr) = run(command);
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{arguments:?}");
        for word in words {
            assert!(stderr.contains(word), "{arguments:?} does not name {word}: {stderr}");
        }
    }
}

#[test]
fn taken_directory_or_port_is_refused() {
    let directory = Directory::new("taken");
    let server = serve(&directory, &[]);
    let refused = |arguments: &[&str]| {
        let mut command = dunlin(&directory);
        command.arg("serve").args(arguments);
        let (code, stdout, stderr) = run(command);
        assert_eq!((code, stdout.as_str()), (Some(1), ""), "{stderr}");
        stderr
    };
    let stderr = refused(&ANY);
    let expected = format!(
        "./dunlin-data is in use by process {}, stop it or choose another --data",
        server.id()
    );
    assert!(stderr.contains(&expected), "{stderr}");
    let listen = format!("beanstalkd={}", server.address());
    let stderr = refused(&["--store", "none", "--listen", &listen]);
    assert!(stderr.contains(&server.address().to_string()), "{stderr}");
    assert!(stderr.contains("--listen"), "{stderr}");
    let stderr = refused(&["--data", "/proc/dunlin", "--listen", "beanstalkd=127.0.0.1:0"]);
    assert!(stderr.contains("/proc/dunlin"), "{stderr}");
}

/// A server that has begun to start, and waits for the rest of its settings.
fn starting(directory: &Directory) -> (std::process::Child, File) {
    let settings = directory.0.join("settings.toml");
    mkfifoat(CWD, &settings, Mode::RWXU).unwrap();
    let mut command = dunlin(directory);
    command.arg("serve").args(ANY).args(["--store", "none", "--config"]).arg(&settings);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // It is opened for writing when the other end is open for reading.
    (child, File::options().write(true).open(&settings).unwrap())
}

#[test]
fn signals_are_obeyed_while_it_starts() {
    let directory = Directory::new("starting");
    let (mut child, settings) = starting(&directory);
    let pid = Pid::from_child(&child);
    kill_process(pid, Signal::HUP).unwrap();
    kill_process(pid, Signal::USR1).unwrap();
    drop(settings);
    let mut log = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(log.any(|line| line.contains("draining")), "it drains once it is there");
    kill_process(pid, Signal::TERM).unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn starting_server_is_stopped_at_once() {
    for signal in [Signal::TERM, Signal::INT] {
        let directory = Directory::new("not-started");
        let (mut child, _settings) = starting(&directory);
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert!(child.wait().unwrap().success(), "{signal:?}");
    }
}

#[test]
fn sigusr1_drains_sighup_shows_counters() {
    let directory = Directory::new("signals");
    let server = serve(&directory, &[]);
    let mut client = server.connect();
    assert_eq!(client.put("x"), "INSERTED 1");
    server.signal(Signal::USR1);
    let mut next = 1;
    until("it drains", || {
        next += 1;
        client.put("y") == "DRAINING"
    });
    assert_eq!(client.ask(&format!("peek {next}")), "NOT_FOUND");
    server.signal(Signal::HUP).signal(Signal::TERM);
    let (status, stderr) = server.end();
    assert_eq!(status.code(), Some(0));
    assert!(stderr.contains("draining"), "{stderr}");
    assert!(stderr.contains("syncs") && stderr.contains("synced:"), "{stderr}");
    let stamped = |line: &str| line.starts_with("20") && line[..24].ends_with('Z');
    assert!(stderr.lines().filter(|line| !line.starts_with("  ")).all(stamped), "{stderr}");
}

#[test]
fn unread_log_holds_up_nothing() {
    let directory = Directory::new("unread");
    let server = serve(&directory, &["--store", "none"]);
    let mut client = server.connect();
    // Until the pipe, of 64 KiB, has taken nothing for a while.
    let (mut unread, mut unheard) = (0, 0);
    until("the pipe is full", || {
        server.signal(Signal::HUP);
        assert!(client.put("x").starts_with("INSERTED "));
        let now = server.unread_log();
        unheard = if now > unread || now < 40_000 { 0 } else { unheard + 1 };
        unread = now;
        unheard == 100
    });
    server.signal(Signal::TERM);
    assert!(client.is_closed());
    let (status, log) = server.end();
    assert_eq!(status.code(), Some(0));
    assert!((40_000..=65_536).contains(&log.len()), "{} bytes", log.len());
}

#[test]
fn second_sigint_ends_server_at_once() {
    let directory = Directory::new("interrupted");
    let server = serve(&directory, &["--store", "none"]);
    let mut greedy = server.connect();
    assert_eq!(greedy.put(&"x".repeat(60_000)), "INSERTED 1");
    // Unread answers keep the first signal from ending it.
    greedy.send("peek 1\r\n".repeat(500));
    assert_eq!(greedy.line(), "FOUND 1 60000");
    server.signal(Signal::INT);
    let late = server.connect_until_refused();
    server.signal(Signal::INT);
    assert_eq!(server.end().0.code(), Some(130));
    assert!(late.is_none_or(|mut client| client.is_gone()));
}

#[test]
fn unwritable_journal_exits_with_status_74() {
    let directory = Directory::new("failing");
    // A file may not grow beyond 40 MiB: the part of a segment that a start prepares fits, its
    // growth fails.
    let mut command = dunlin_after(&directory, "ulimit -f 81920");
    command.args(["serve", "--segment-bytes", "64M"]).args(ANY);
    let server = Server::start(command);
    let mut client = server.connect();
    let body = "x".repeat(60_000);
    let mut confirmed = 0;
    while client.try_put(&body) == Some(format!("INSERTED {}", confirmed + 1)) {
        confirmed += 1;
        assert!(confirmed < 10_000, "it grows although it may not");
    }
    assert_ne!(confirmed, 0, "what was prepared was there");
    let (status, stderr) = server.end();
    assert_eq!(status.code(), Some(74), "{stderr}");
    assert!(stderr.contains(".segment") && stderr.contains("ulimit -f"), "{stderr}");

    let server = serve(&directory, &[]);
    let mut client = server.connect();
    for message in 1..=confirmed {
        assert_eq!(client.ask(&format!("delete {message}")), "DELETED");
    }
}

#[test]
fn start_fails_without_first_log_room() {
    let directory = Directory::new("no-first-room");
    let mut command = dunlin_after(&directory, "ulimit -f 24576");
    command.arg("serve").args(ANY);
    let (code, stdout, stderr) = run(command);
    assert_eq!((code, stdout.as_str()), (Some(1), ""), "{stderr}");
    assert!(stderr.contains(".segment") && stderr.contains("ulimit -f"), "{stderr}");
    let server = serve(&directory, &[]);
    assert_eq!(server.connect().put("x"), "INSERTED 1", "it left nothing in the way");
}

#[test]
fn accept_without_descriptors_does_not_spin() {
    let directory = Directory::new("descriptors");
    let mut command = dunlin_after(&directory, "ulimit -n 24");
    command.args(["serve", "--store", "none"]).args(ANY);
    let server = Server::start(command);
    let mut clients: Vec<_> = (0..30).map(|_| server.connect()).collect();
    let mut first = clients.remove(0);
    assert_eq!(first.ask("list-tube-used"), "USING default");
    let before = processor_ticks(server.id());
    std::thread::sleep(std::time::Duration::from_millis(300));
    let spent = processor_ticks(server.id()) - before;
    assert!(spent < 10, "{spent} of 30 hundredths of a second were burnt");
    assert_eq!(first.ask("list-tube-used"), "USING default");
    let mut last = clients.pop().unwrap();
    drop(clients);
    assert_eq!(last.ask("list-tube-used"), "USING default", "places came free");
    server.signal(Signal::TERM);
    let (status, stderr) = server.end();
    assert_eq!(status.code(), Some(0));
    assert!(stderr.contains("cannot accept connections"), "{stderr}");
}

#[test]
fn connections_leave_the_journal_its_descriptors() {
    let directory = Directory::new("few-descriptors");
    let mut command = dunlin_after(&directory, "ulimit -n 260");
    command.arg("serve").args(ANY);
    let server = Server::start(command);
    let mut clients: Vec<_> = (0..4).map(|_| server.connect()).collect();
    for client in &mut clients {
        assert_eq!(client.ask("list-tube-used"), "USING default");
    }
    assert!(server.connect().is_closed(), "the fifth is one too many");
    assert_eq!(clients[0].put("x"), "INSERTED 1");
    server.signal(Signal::TERM);
    let (status, stderr) = server.end();
    assert_eq!(status.code(), Some(0));
    assert!(stderr.contains("at most 4 connections: the system allows 260"), "{stderr}");
    assert!(stderr.contains("raise `ulimit -n`"), "{stderr}");
    assert!(stderr.contains("refusing connections: 4 are open"), "{stderr}");
}

fn processor_ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<_> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

/// Bytes of all files of the journal; one that has just gone, or has another name now, has none.
fn journal_bytes(directory: &Directory) -> u64 {
    let files = std::fs::read_dir(directory.0.join("dunlin-data")).unwrap();
    files.map(|file| file.unwrap().metadata().map_or(0, |metadata| metadata.len())).sum()
}

#[test]
fn disk_limit_holds_until_deletes() {
    let directory = Directory::new("disk-limit");
    let limits = ["--disk-limit", "12M", "--segment-bytes", "1", "--max-message-bytes", "65535"];
    let server = serve(&directory, &limits);
    let mut client = server.connect();
    let body = "x".repeat(60_000);
    let stored = (1..1000).take_while(|_| client.put(&body) != "OUT_OF_MEMORY").count();
    assert!((40..200).contains(&stored), "{stored} messages of 60,000 bytes fit into 12 MiB");
    let most = (12 << 20) + 4096;
    assert!(journal_bytes(&directory) <= most, "{} bytes", journal_bytes(&directory));
    for id in 1..=stored {
        assert_eq!(client.ask(&format!("delete {id}")), "DELETED");
    }
    // It takes messages again by itself; until then it says that it does not.
    until("it takes messages again", || client.put(&body) != "OUT_OF_MEMORY");
    assert!(journal_bytes(&directory) <= most, "{} bytes", journal_bytes(&directory));
    server.signal(Signal::TERM);
    assert_eq!(server.end().0.code(), Some(0));
}

#[test]
fn disk_limit_below_journal_is_refused() {
    let directory = Directory::new("disk-limit-small");
    let mut command = dunlin(&directory);
    command.arg("serve").args(ANY).args(["--disk-limit", "64M"]);
    let (code, _, stderr) = run(command);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("--disk-limit") && stderr.contains("--max-message-bytes"), "{stderr}");
}

#[test]
fn config_check_names_faults() {
    let directory = Directory::new("config-check");
    let check = |text: &str, arguments: &[&str]| {
        directory.file("broker.toml", text);
        let mut command = dunlin(&directory);
        command.args(["config", "check", "--config", "broker.toml"]).args(arguments);
        run(command)
    };
    let (status, out, err) = check("listen = ['redis=127.0.0.1:1', 'amqp=127.0.0.1:2']", &[]);
    assert_eq!((status, out.as_str(), err.as_str()), (Some(0), "sound: 2 listeners\n", ""));
    for (text, arguments, status, told) in [
        ("sink = 1", &[][..], 2, "sink"),
        ("sync = 'often'", &[], 2, "broker.toml: sync: "),
        ("threads = 0", &[], 2, "threads"),
        ("disk-limit = '1K'", &[], 2, "--disk-limit"),
        ("", &["--listen", "redis=0.0.0.0:1"], 2, "--insecure-listen"),
        ("", &["--listen", "rediss=127.0.0.1:1"], 2, "--tls-cert"),
        ("", &["--users", "missing.toml"], 1, "missing.toml"),
    ] {
        let (found, out, err) = check(text, arguments);
        assert_eq!((found, out.as_str()), (Some(status), ""), "{text} {arguments:?}: {err}");
        assert!(err.contains(told), "{text} {arguments:?}: {err}");
    }
    let (status, _, err) = check(&"#".repeat(17 << 20), &[]);
    assert!(status == Some(2) && err.contains("broker.toml: it has more than"), "{err}");
    assert!(!directory.0.join("dunlin-data").exists(), "a check leaves nothing");
}

#[test]
fn sighup_changes_settings() {
    let directory = Directory::new("reload");
    directory.file("broker.toml", "threads = 1");
    let server = serve(&directory, &["--config", "broker.toml", "--store", "none"]);
    let mut client = server.connect();
    assert_eq!(client.put("x"), "INSERTED 1");
    directory.file("broker.toml", "threads = 2\nidle-timeout = '50ms'\nallowed-hosts = ['a.b']");
    server.signal(Signal::HUP);
    assert!(client.is_closed(), "it is idle");
    directory.file("broker.toml", "threads = 3\nidle-timeout = 'soon'");
    server.signal(Signal::HUP);
    // A connection comes while the signals are obeyed; they are in order.
    server.signal(Signal::TERM);
    let (status, log) = server.end();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(log.contains("settings that hold from now on: idle-timeout, allowed-hosts\n"), "{log}");
    assert!(log.contains("settings that hold from the next start: threads\n"), "{log}");
    assert!(log.contains("settings stay as they were: broker.toml: idle-timeout: "), "{log}");
}
