//! The commands that speak to a running broker: their output, effects and exit status.
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use crate::common::patience::until;
use crate::common::{Directory, Server, dunlin, run, unwritable};
use rustix::process::{Pid, Signal, kill_process};

/// A broker of the test's own, and its URL.
struct Broker {
    server: Server,
    url: String,
}

impl Broker {
    fn start(directory: &Directory, arguments: &[&str]) -> Self {
        let mut command = dunlin(directory);
        command.args(["serve", "--listen", "http=127.0.0.1:0"]).args(arguments);
        let server = Server::start(command);
        let address = server.lines[0].strip_prefix("listening http ").unwrap().to_owned();
        Self { server, url: format!("http://{address}") }
    }

    fn command(&self, directory: &Directory, words: &[&str]) -> Command {
        let mut command = dunlin(directory);
        command.args(words).env("DUNLIN_URL", &self.url);
        command
    }

    /// Exit status, standard output, standard error.
    fn run(&self, directory: &Directory, words: &[&str]) -> (i32, String, String) {
        let (status, out, err) = run(self.command(directory, words));
        (status.unwrap(), out, err)
    }

    /// The output of a command that ends well.
    fn says(&self, directory: &Directory, words: &[&str]) -> String {
        let (status, out, err) = self.run(directory, words);
        assert_eq!(status, 0, "{words:?}: {err}");
        out
    }

    fn fed(&self, directory: &Directory, words: &[&str], input: &str) -> String {
        let mut command = self.command(directory, words);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
    }
}

fn signal(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

#[test]
fn sent_message_is_received_once() {
    let directory = Directory::new("client-send");
    let broker = Broker::start(&directory, &["--store", "none"]);
    assert_eq!(broker.says(&directory, &["send", "mail", "hello"]), "1\n");
    assert_eq!(broker.fed(&directory, &["send", "mail", "-"], "from\nstdin"), "2\n");
    assert_eq!(broker.says(&directory, &["receive", "mail"]), "hello\n");
    let json = broker.says(&directory, &["receive", "mail", "--json", "--wait", "5s"]);
    assert!(json.contains("\"body\":\"from\\nstdin\"") && !json.contains("lease"), "{json}");
    let (status, out, err) = broker.run(&directory, &["receive", "mail"]);
    assert_eq!((status, out.as_str()), (3, ""), "{err}");
    assert!(err.contains("0 of 1 messages came"), "{err}");
}

#[test]
fn lines_become_messages_and_kept_return() {
    let directory = Directory::new("client-lines");
    let broker = Broker::start(&directory, &["--store", "none"]);
    let input: String = (0..25_000).map(|n| format!("line {n}\n")).collect();
    assert_eq!(broker.fed(&directory, &["send", "q", "--lines"], &input), "25000\n");
    let first: String = (0..40).map(|n| format!("line {n}\n")).collect();
    let words = ["receive", "q", "--count", "40", "--keep"];
    assert_eq!(broker.says(&directory, &words), first);
    assert_eq!(broker.says(&directory, &words[..4]), first);
    let queues = broker.says(&directory, &["queues", "--json"]);
    assert!(queues.contains("\"ready\":24960"), "{queues}");
}

#[test]
fn key_deduplicates_each_line() {
    let directory = Directory::new("client-keys");
    let broker = Broker::start(&directory, &["--store", "none"]);
    let input: String = (0..25_000).map(|n| format!("line {n}\n")).collect();
    let words = ["send", "q", "--lines", "--key", "k"];
    assert_eq!(broker.fed(&directory, &words, &input), "25000\n");
    assert_eq!(broker.fed(&directory, &words, &input), "25000\n");
    let queues = broker.says(&directory, &["queues", "--json"]);
    assert!(queues.contains("\"ready\":25000"), "each line once: {queues}");
}

#[test]
fn bounded_queue_slows_sender_of_lines() {
    let directory = Directory::new("client-bounded");
    let bounds = "q:max-messages=100,*:max-bytes=2000,when-full=reject";
    let broker = Broker::start(&directory, &["--store", "none", "--queue", bounds]);
    let input: String = (0..12_500).map(|n| format!("line {n}\n")).collect();
    let words = ["receive", "q", "--count", "12500", "--wait", "20s"];
    let mut receiver = broker.command(&directory, &words);
    let received = directory.file("received", "");
    let mut receiver = receiver.stdout(File::create(&received).unwrap()).spawn().unwrap();
    let words = ["send", "q", "--lines", "--key", "k"];
    assert_eq!(broker.fed(&directory, &words, &input), "12500\n");
    assert!(receiver.wait().unwrap().success());
    let received = std::fs::read_to_string(received).unwrap();
    assert!(received == input, "all, each once and in order");
    assert_eq!(broker.fed(&directory, &words, &input), "12500\n");
    let queues = broker.says(&directory, &["queues", "--json"]);
    assert!(queues.contains("\"ready\":0"), "each line keeps its number: {queues}");

    // A message that can never be stored is refused, and those before it are stored.
    let input = format!("{}{}\nlast\n", "fits\n".repeat(20), "x".repeat(3_000));
    let mut command = broker.command(&directory, &["send", "other", "--lines"]);
    command.stdin(File::open(directory.file("lines", &input)).unwrap());
    let (status, _, err) = run(command);
    assert_eq!(status, Some(1), "{err}");
    assert!(err.contains("queue other is full: max-bytes=2000"), "{err}");
    assert!(err.contains("20 messages were stored before; what follows was not sent"), "{err}");
    assert_eq!(broker.says(&directory, &["receive", "other", "--count", "20"]), input[..100]);
}

#[test]
fn follow_returns_unwritten_messages_on_signal() {
    let directory = Directory::new("client-follow");
    let broker = Broker::start(&directory, &["--store", "none"]);
    let input: String = (0..5_000).map(|n| format!("{n} {}\n", "x".repeat(1_000))).collect();
    broker.fed(&directory, &["send", "q", "--lines"], &input);
    let mut command = broker.command(&directory, &["receive", "q", "--follow"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut lines = Vec::new();
    while lines.len() < 100 {
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        lines.push(line);
    }
    signal(&child, Signal::INT);
    let rest = out.lines().map(|line| format!("{}\n", line.unwrap()));
    lines.extend(rest);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let all: Vec<_> = input.lines().map(|line| format!("{line}\n")).collect();
    assert_eq!(lines, all[..lines.len()], "in order, nothing twice");
    let queues = broker.says(&directory, &["queues", "--json"]);
    let ready = format!("\"ready\":{}", 5_000 - lines.len());
    assert!(queues.contains(&ready) && queues.contains("\"leased\":0,\"name\":\"q\""), "{queues}");
}

#[test]
fn follow_reconnects_to_restarted_broker() {
    let directory = Directory::new("client-reconnect");
    let broker = Broker::start(&directory, &["--data", "store"]);
    let port = broker.url.rsplit(':').next().unwrap().to_owned();
    let mut command = broker.command(&directory, &["receive", "q", "--follow", "--reconnect"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    assert_eq!(broker.says(&directory, &["send", "q", "before"]), "1\n");
    let mut follower = command.spawn().unwrap();
    let mut out = BufReader::new(follower.stdout.take().unwrap());
    let mut err = BufReader::new(follower.stderr.take().unwrap());
    let next = |out: &mut BufReader<_>| {
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        line
    };
    assert_eq!(next(&mut out), "before\n");
    let is_leased = || broker.says(&directory, &["queues", "--json"]).contains("\"leased\":1");
    until("it is acknowledged", || !is_leased());
    // Killed, and gone.
    drop(broker);
    let mut lost = String::new();
    err.read_line(&mut lost).unwrap();
    assert!(lost.starts_with("dunlin: ") && lost.ends_with("; trying again\n"), "{lost}");
    let address = format!("http=127.0.0.1:{port}");
    let mut command = dunlin(&directory);
    command.args(["serve", "--data", "store", "--listen", &address]);
    let broker = Broker { server: Server::start(command), url: format!("http://127.0.0.1:{port}") };
    assert_eq!(broker.says(&directory, &["send", "q", "after"]), "2\n");
    assert_eq!(next(&mut out), "after\n");
    signal(&follower, Signal::INT);
    assert_eq!(follower.wait().unwrap().code(), Some(0));
}

#[test]
fn signalled_receive_reports_missing_messages() {
    let directory = Directory::new("client-signal");
    let broker = Broker::start(&directory, &["--store", "none"]);
    // Larger than a pipe: the second is being written until the test reads on.
    let input: String = (0..5).map(|n| format!("{n} {}\n", "x".repeat(200_000))).collect();
    broker.fed(&directory, &["send", "q", "--lines"], &input);
    let mut command = broker.command(&directory, &["receive", "q", "--count", "5"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut String::new()).unwrap();
    signal(&child, Signal::INT);
    let came = 1 + out.lines().count();
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{came} came: {err}");
    assert!(err.contains(&format!("{came} of 5 messages came")), "{err}");
    let queues = broker.says(&directory, &["queues", "--json"]);
    assert!(queues.contains(&format!("\"ready\":{}", 5 - came)), "{queues}");
}

#[test]
fn message_written_after_lease_returns() {
    let directory = Directory::new("client-late");
    let broker = Broker::start(&directory, &["--store", "none"]);
    // The second is larger than a pipe: it is being written until the test reads on.
    let input: String = [1, 200_000].iter().map(|n| format!("{}\n", "x".repeat(*n))).collect();
    broker.fed(&directory, &["send", "q", "--lines"], &input);
    let words = ["receive", "q", "--count", "2", "--lease", "2s"];
    let mut command = broker.command(&directory, &words);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut String::new()).unwrap();
    let leased = "\"leased\":0,\"name\":\"q\"";
    until("its lease ends", || broker.says(&directory, &["queues", "--json"]).contains(leased));
    assert_eq!(out.lines().count(), 1);
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains("lease"), "{err}");
    // If the machine stood still, the first was acknowledged before the second was written.
    let (_, left, _) = broker.run(&directory, &words[..4]);
    assert!(input.ends_with(&left) && left.len() > 200_000, "{} bytes", left.len());
}

#[test]
fn unwritable_messages_are_given_back() {
    let directory = Directory::new("client-unwritable");
    let broker = Broker::start(&directory, &["--store", "none"]);
    broker.fed(&directory, &["send", "q", "--lines"], "1\n2\n3\n");
    for words in [&["receive", "q", "--count", "3"][..], &["receive", "q", "--follow", "--json"]] {
        for out in unwritable() {
            let mut command = broker.command(&directory, words);
            let child = command.stdout(out).stderr(Stdio::piped()).spawn().unwrap();
            let ended = child.wait_with_output().unwrap();
            let err = String::from_utf8(ended.stderr).unwrap();
            assert_eq!(ended.status.code(), Some(1), "{err}");
            assert!(err.contains("cannot write to standard output"), "{err}");
        }
    }
    let words = ["receive", "q", "--count", "3"];
    assert_eq!(broker.says(&directory, &words), "1\n2\n3\n", "nothing is gone");
}

#[test]
fn oversized_send_repeats_servers_refusal() {
    let directory = Directory::new("client-large");
    let broker = Broker::start(&directory, &["--store", "none"]);
    for words in [&["send", "q"][..], &["send", "q", "--lines"]] {
        let mut command = broker.command(&directory, words);
        // It has no end.
        command.stdin(File::open("/dev/zero").unwrap());
        let (status, out, err) = run(command);
        assert_eq!((status, out.as_str()), (Some(1), ""), "{err}");
        assert!(err.contains("too large") && err.contains("16777216"), "{err}");
    }
    let largest = "x".repeat(16 * 1024 * 1024);
    assert_eq!(broker.fed(&directory, &["send", "q"], &largest), "1\n");
    assert_eq!(broker.fed(&directory, &["send", "q", "--lines"], &format!("{largest}\ny")), "2\n");
}

#[test]
fn excess_properties_refused_before_sending() {
    let directory = Directory::new("client-properties");
    let broker = Broker::start(&directory, &["--store", "none"]);
    for (length, is_taken) in [(11_000, true), (12_600, false), (100_000, false)] {
        let property = format!("p={}", "x".repeat(length));
        let (status, _, err) = broker.run(&directory, &["send", "q", "m", "--property", &property]);
        assert_eq!(status, if is_taken { 0 } else { 2 }, "{length}: {err}");
        assert_eq!(err.contains("12 KiB"), !is_taken, "{length}: {err}");
    }
    // Around the limit the broker and the command line agree, also with other options.
    for length in (11_700..12_300).step_by(20) {
        let property = format!("p={}", "x".repeat(length));
        let key = format!("k{length}");
        let words = ["send", "q", "m", "--property", &property, "--priority", "9", "--key", &key];
        let (status, _, err) = broker.run(&directory, &words);
        assert!(status == 0 || err.contains("12 KiB"), "{length}: {err}");
    }
}

#[test]
fn operators_look_move_and_purge() {
    let directory = Directory::new("client-operate");
    let broker = Broker::start(&directory, &["--store", "none"]);
    for n in ["1", "2", "3"] {
        let property = format!("n={n}");
        broker.says(&directory, &["send", "a", n, "--property", &property, "--priority", "7"]);
    }
    let table = broker.says(&directory, &["browse", "a", "--selector", "n >= 2"]);
    assert_eq!(table.lines().count(), 3, "{table}");
    assert!(table.starts_with("id  state  priority"), "{table}");
    let words = ["move", "a", "b", "--selector", "n = 2"];
    assert_eq!(broker.says(&directory, &words), "1 moved\n");
    let (status, _, err) = broker.run(&directory, &["purge", "a"]);
    assert_eq!(status, 2, "nobody can be asked: {err}");
    assert!(err.contains("--yes"), "{err}");
    assert_eq!(broker.says(&directory, &["purge", "a", "--yes", "--json"]), "{\"deleted\":2}\n");
    assert_eq!(broker.says(&directory, &["receive", "b"]), "2\n");
}

#[test]
fn browse_shows_holder_of_message() {
    let directory = Directory::new("client-holder");
    let worker = "beanstalkd=127.0.0.1:0";
    let broker = Broker::start(&directory, &["--store", "none", "--listen", worker]);
    let at = broker.server.lines.iter().find_map(|line| line.strip_prefix("listening beanstalkd "));
    let mut worker = BufReader::new(TcpStream::connect(at.unwrap()).unwrap());
    worker.get_mut().write_all(b"put 0 0 60 1\r\nx\r\nreserve\r\n").unwrap();
    let answers: Vec<_> = worker.by_ref().lines().take(3).map(Result::unwrap).collect();
    assert_eq!(answers, ["INSERTED 1", "RESERVED 1 1", "x"]);
    let from = worker.get_ref().local_addr().unwrap();
    let table = broker.says(&directory, &["browse", "default"]);
    assert!(table.contains(&format!("leased  beanstalkd {from}, ")), "{table}");
    let line = broker.says(&directory, &["browse", "default", "--json"]);
    assert!(line.contains(&format!("\"connection\":\"beanstalkd {from}\"")), "{line}");
    assert!(line.contains("\"held_millis\":null"), "{line}");
}

#[test]
fn dead_letters_are_shown_and_replayed() {
    let directory = Directory::new("client-dead");
    let broker = Broker::start(&directory, &["--store", "none"]);
    let header = broker.says(&directory, &["dead", "ls"]);
    assert_eq!(header.lines().count(), 1, "{header}");
    broker.says(&directory, &["send", "a", "late", "--ttl", "1ms"]);
    let letters = || broker.says(&directory, &["dead", "ls", "--json"]);
    until("it is a dead letter", || !letters().is_empty());
    let list = broker.says(&directory, &["dead", "ls"]);
    assert!(list.contains("1   expired  a     0       late"), "{list}");
    let letter = broker.says(&directory, &["dead", "show", "1"]);
    assert!(letter.contains("body: late\n") && letter.contains("queue: DLQ\n"), "{letter}");
    let replayed = broker.says(&directory, &["dead", "replay", "--all", "--to", "b"]);
    assert_eq!(replayed, "1 moved\n");
    assert_eq!(broker.says(&directory, &["receive", "b"]), "late\n");
    assert_eq!(broker.run(&directory, &["dead", "replay", "7"]).0, 3);
    assert_eq!(broker.run(&directory, &["dead", "show", "7"]).0, 3);
}

/// A rule that an operator saw confirmed holds after a kill.
#[test]
fn queue_rules_survive_kill_9() {
    let directory = Directory::new("client-policy");
    let configured = ["--data", "store", "--queue", "q:max-messages=5,when-full=reject"];
    let broker = Broker::start(&directory, &configured);
    let shown = broker.says(&directory, &["policy", "show", "q"]);
    assert!(shown.contains("max-messages=5               configured\n"), "{shown}");
    assert!(shown.contains("dead-letters=park-persistent default\n"), "{shown}");
    let words = ["policy", "set", "q", "redelivery-factor=1.5", "redelivery-jitter=0.25"];
    let shown = broker.says(&directory, &words);
    assert!(shown.contains("redelivery-factor=1.5        own\n"), "{shown}");
    assert!(shown.contains("redelivery-jitter=0.25       own\n"), "{shown}");
    let words = ["policy", "reset", "q", "redelivery-factor", "redelivery-jitter"];
    broker.says(&directory, &words);
    let words = ["policy", "set", "q", "max-messages=1", "pop-lease=30s", "--json"];
    let json = broker.says(&directory, &words);
    assert!(json.contains("\"max_messages\":1,") && json.ends_with("}\n"), "{json}");
    broker.server.signal(Signal::KILL);
    broker.server.end();

    let broker = Broker::start(&directory, &configured);
    broker.says(&directory, &["send", "q", "1"]);
    let (status, _, err) = broker.run(&directory, &["send", "q", "2"]);
    assert_eq!(status, 1, "{err}");
    assert!(err.contains("max-messages=1"), "{err}");
    let list = broker.says(&directory, &["policy", "ls"]);
    assert!(list.contains("q      max-messages=1 pop-lease=30s\n"), "{list}");
    let shown = broker.says(&directory, &["policy", "reset", "q", "pop-lease"]);
    assert!(shown.contains("max-messages=1               own\n"), "{shown}");
    let shown = broker.says(&directory, &["policy", "reset", "q"]);
    assert!(shown.contains("max-messages=5               configured\n"), "{shown}");
    broker.says(&directory, &["send", "q", "2"]);
    for (rule, part) in [("max-messages=0", "a number above 0"), ("colour=red", "release-order")] {
        let (status, _, err) = broker.run(&directory, &["policy", "set", "q", rule]);
        assert_eq!(status, 2, "{err}");
        assert!(err.contains(part), "{err}");
    }
}

#[test]
fn health_tells_draining_from_serving() {
    let directory = Directory::new("client-health");
    let broker = Broker::start(&directory, &["--store", "none"]);
    assert_eq!(broker.says(&directory, &["health"]), "ok\n");
    assert_eq!(broker.says(&directory, &["health", "--ready"]), "ready\n");
    assert_eq!(broker.says(&directory, &["health", "--json"]), "{\"status\":\"ok\"}\n");
    broker.server.signal(Signal::USR1);
    until("the drain", || broker.run(&directory, &["health", "--ready"]).0 == 1);
    let (status, out, err) = broker.run(&directory, &["health", "--ready"]);
    assert_eq!((status, out.as_str()), (1, ""), "{err}");
    assert!(err.contains("take no messages"), "{err}");
    assert_eq!(broker.says(&directory, &["health"]), "ok\n");
}

#[test]
fn health_of_silent_server_fails() {
    let directory = Directory::new("client-health-silent");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = |words: &[&str]| {
        let mut command = dunlin(&directory);
        command.args(["health", "--url", &url]).args(words);
        run(command)
    };
    let (status, _, err) = asked(&["--timeout", "100ms"]);
    assert_eq!(status, Some(1), "{err}");
    drop(listener);
    let (status, _, err) = asked(&[]);
    assert_eq!(status, Some(1), "{err}");
    assert!(err.contains("dunlin serve"), "{err}");
}

#[test]
fn client_ignores_proxies_of_environment() {
    let directory = Directory::new("client-proxy");
    let broker = Broker::start(&directory, &[]);
    let mut command = broker.command(&directory, &["send", "mail", "hello"]);
    for name in ["http_proxy", "HTTP_PROXY", "ALL_PROXY"] {
        // No server listens there.
        command.env(name, "http://127.0.0.1:1");
    }
    let (status, out, err) = run(command);
    assert_eq!((status, out.as_str()), (Some(0), "1\n"), "{err}");
}

#[test]
fn commands_document_their_exit_status() {
    let directory = Directory::new("client-help");
    let commands = [
        "send", "receive", "queues", "browse", "move", "purge", "policy", "dead", "table", "health",
    ];
    for command in commands.iter().chain(&["serve", "journal"]) {
        let mut help = dunlin(&directory);
        help.args([command, "--help"]);
        let (status, out, err) = run(help);
        assert_eq!(status, Some(0), "{command}: {err}");
        assert!(out.contains("Exit status: 0 "), "{command}: {out}");
    }
    // As they say of themselves.
    let broker = Broker::start(&directory, &["--store", "none"]);
    for (words, status) in [
        (&["queues"][..], 0),
        (&["browse", "nothing"], 3),
        (&["browse", "nothing", "--selector", "a ="], 2),
        (&["move", "nothing", "b"], 3),
        (&["purge", "nothing", "--yes"], 3),
        (&["purge", "nothing"], 2),
    ] {
        let (found, _, err) = broker.run(&directory, words);
        assert_eq!(found, status, "{words:?}: {err}");
    }
}

#[test]
fn wrong_arguments_have_their_exit_status() {
    let directory = Directory::new("client-wrong");
    let broker = Broker::start(&directory, &["--store", "none"]);
    for (words, status, part) in [
        (&["send", "q", "m", "--priority", "10"][..], 2, "0 to 9"),
        (&["send", "q", "m", "--delay", "5"], 2, "duration"),
        (&["send", "q", "m", "--property", "a=b", "--property", "a=c"], 2, "--property a stands"),
        (&["policy", "set", "q", "max-messages=1", "max-messages=2"], 2, "max-messages stands"),
        (&["receive", "q", "--wait", "0s"], 2, "a number above 0, or leave it out"),
        (&["receive", "q", "--wait", "5"], 2, "us, ms, s, m, h or d"),
        (&["browse", "nothing"], 3, "no queue nothing"),
        (&["purge", "nothing", "--yes"], 3, "no queue nothing"),
        (&["receive", "q", "--follow", "--keep"], 2, "--keep"),
        (&["receive", "q", "--reconnect"], 2, "--follow"),
        (&["send", "q", "m", "--url", "http://127.0.0.1:1"], 1, "dunlin serve"),
        (&["send", "q", "m", "--url", "ftp://127.0.0.1:1"], 2, "--url"),
    ] {
        let (found, _, err) = broker.run(&directory, words);
        assert_eq!(found, status, "{words:?}: {err}");
        assert!(err.contains(part), "{words:?}: {err}");
    }
}

#[test]
fn tables_are_read_and_changed() {
    let directory = Directory::new("client-tables");
    let broker = Broker::start(&directory, &[]);
    fn table<'w>(words: &[&'w str]) -> Vec<&'w str> {
        [&["table"], words].concat()
    }
    let says = |words: &[&str]| broker.says(&directory, &table(words));
    assert_eq!(says(&["put", "accounts", "17", "100"]), "");
    assert_eq!(says(&["get", "accounts", "17"]), "100");
    assert_eq!(says(&["add", "accounts", "17", "-5"]), "95\n");
    assert_eq!(says(&["add", "accounts", "18", "7", "--json"]), "{\"value\":7}\n");
    assert_eq!(broker.fed(&directory, &table(&["put", "accounts", "a/b c"]), "x\ny"), "");
    assert_eq!(says(&["get", "accounts", "a/b c"]), "x\ny");
    let scanned = says(&["scan", "accounts", "--prefix", "1", "--json"]);
    assert_eq!(scanned, "{\"key\":\"17\",\"value\":\"95\"}\n{\"key\":\"18\",\"value\":\"7\"}\n");
    let scanned = says(&["scan", "accounts", "--from", "18", "--to", "2"]);
    assert!(scanned.contains("18") && !scanned.contains("17"), "{scanned}");
    assert!(says(&["ls"]).contains("accounts"));
    assert_eq!(says(&["ls", "--json"]), "{\"keys\":3,\"table\":\"accounts\"}\n");
    assert_eq!(says(&["del", "accounts", "18", "a/b c"]), "2\n");
    for (words, status, part) in [
        (&["get", "accounts", "none"][..], 3, "no such key"),
        (&["del", "accounts", "none"], 3, "no key none"),
        (&["put", "accounts", "17", "1", "--new"], 3, "has key 17 already"),
        (&["add", "accounts", "17", "x"], 2, "invalid value"),
        (&["get", "", "17"], 2, "name"),
    ] {
        let (found, _, err) = broker.run(&directory, &table(words));
        assert_eq!(found, status, "{words:?}: {err}");
        assert!(err.contains(part), "{words:?}: {err}");
    }
    assert_eq!(says(&["get", "accounts", "17"]), "95");
}

#[test]
fn exported_table_is_imported() {
    let directory = Directory::new("client-export");
    let broker = Broker::start(&directory, &[]);
    let lines: Vec<String> =
        (0..2_500).map(|n| format!("{{\"key\":\"{n:04}\",\"value\":\"v{n}\"}}\n")).collect();
    // The last of a key stays.
    let binary = "{\"key_base64\":\"/w==\",\"value_base64\":\"AP8=\"}\n";
    let again = "{\"key\":\"0000\",\"value\":\"first\"}\n\n";
    let input = [again, &lines.concat(), binary].concat();
    let import =
        |table: &str, input: &str| broker.fed(&directory, &["table", "import", table], input);
    assert_eq!(import("t", &input), "2502\n");
    let exported = broker.says(&directory, &["table", "export", "t"]);
    assert_eq!(exported, [&lines.concat(), binary].concat());
    assert_eq!(import("copy", &exported), "2501\n");
    assert_eq!(broker.says(&directory, &["table", "export", "copy"]), exported);
    for (input, part) in [
        ("{\"key\":\"a\",\"value\":\"1\"}\nx\n", "at line 2; 0 keys were put before"),
        ("{\"key\":\"a\",\"values\":\"1\"}\n", "member values is not known"),
        ("{\"key\":\"a\"}\n", "one of value and value_base64"),
    ] {
        let mut command = broker.command(&directory, &["table", "import", "bad"]);
        command.stdin(File::open(directory.file("lines", input)).unwrap());
        let (status, _, err) = run(command);
        assert_eq!(status, Some(2), "{err}");
        assert!(err.contains(part), "{err}");
    }
    assert_eq!(broker.says(&directory, &["table", "ls", "--json"]).lines().count(), 2);
}

/// Every message confirmed before a kill is there after it, once.
#[test]
fn confirmed_messages_survive_kill_9() {
    let directory = Directory::new("client-kill");
    let mut confirmed = 0;
    for _ in 0..3 {
        let broker = Broker::start(&directory, &["--data", "store"]);
        let mut command = broker.command(&directory, &["send", "q", "--lines"]);
        let mut sender = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut input = sender.stdin.take().unwrap();
        for _ in 0..5 {
            let id = broker.says(&directory, &["send", "q", "one"]);
            assert!(id.trim().parse::<u64>().is_ok(), "{id}");
            confirmed += 1;
            // Something is under way when the server is killed.
            input.write_all("many\n".repeat(100).as_bytes()).unwrap();
        }
        broker.server.signal(Signal::KILL);
        drop(input);
        sender.wait().unwrap();
        broker.server.end();
    }
    let broker = Broker::start(&directory, &["--data", "store"]);
    let found = broker.says(&directory, &["browse", "q", "--json", "--max", "100000"]);
    let ones = found.lines().filter(|line| line.contains("\"body\":\"one\"")).count();
    assert_eq!(ones, confirmed);
}
