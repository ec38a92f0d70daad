//! The commands for both brokers: random ones of several connections, malformed lines, and changes
//! by time.

use testkit::Rng;

use crate::differential::Pair;

const PEERS: usize = 4;

const TUBES: [&str; 5] = ["default", "a", "b", "123", "null"];

#[test]
fn random_commands_are_answered_alike() {
    for seed in 0..40 {
        let Some(mut pair) = Pair::start(PEERS) else { return };
        let mut random = Rng::new(seed);
        let mut waiting = None;
        for _ in 0..300 {
            step(&mut pair, &mut random, &mut waiting);
        }
        take_stock(&mut pair);
        pair.half_close_all();
    }
}

#[test]
fn puts_are_refused_alike() {
    let Some(mut pair) = Pair::start(2) else { return };
    let (largest, larger) = ("x".repeat(65_535), "x".repeat(65_536));
    pair.send(0, &format!("put 0 0 1000 65535\r\n{largest}\r\nlist-tube-used\r\n"));
    pair.send(1, "reserve\r\nreserve-job {0}\r\npeek {0}\r\n");
    pair.send(0, &format!("put 0 0 1000 65536\r\n{larger}\r\nlist-tube-used\r\n"));
    pair.send(0, &format!("put 0 0 1000 65536 x\r\n{larger}xxlist-tube-used\r\n"));
    pair.drain();
    pair.send(0, "put 0 0 1000 1\r\nx\r\nput 0 0 1000 1\r\nxyzlist-tube-used\r\n");
    pair.send(0, &format!("put 0 0 1000 65536\r\n{larger}\r\nput x\r\n"));
    pair.send(1, "release {0} 1 0\r\nkick 1\r\ndelete {0}\r\nstats\r\n");
    pair.half_close_all();
}

/// A job keeps its tube even if no worker watches it; `default` needs nothing to be kept.
#[test]
fn tubes_come_and_go_alike() {
    let Some(mut pair) = Pair::start(1) else { return };
    pair.send(0, "use a\r\nwatch b\r\nignore default\r\nlist-tubes\r\nstats-tube default\r\n");
    pair.send(0, "put 0 0 1000 1\r\nx\r\nuse c\r\nlist-tubes\r\nstats-tube a\r\n");
    pair.send(0, "delete {0}\r\nlist-tubes\r\nstats-tube a\r\nstats-tube b\r\n");
    pair.send(0, "watch c\r\nignore b\r\nlist-tubes\r\nuse default\r\nlist-tubes\r\n");
    pair.send(0, "pause-tube b 1\r\nstats-tube c\r\n");
    pair.half_close_all();
}

#[test]
fn default_tube_always_exists() {
    let Some(mut pair) = Pair::start(1) else { return };
    pair.send(0, "use a\r\nwatch a\r\nignore default\r\nlist-tubes\r\nstats\r\n");
    pair.send(0, "pause-tube default 1000\r\nstats-tube default\r\npause-tube b 1\r\n");
    pair.send(0, "use default\r\nput 0 0 1000 1\r\nx\r\nuse a\r\nstats-tube default\r\n");
    pair.send(0, "delete {0}\r\nstats-tube default\r\nlist-tubes\r\n");
    pair.send(0, "pause-tube default 0\r\nstats-tube default\r\nstats\r\n");
    pair.half_close_all();
}

#[test]
fn watched_tubes_are_listed_alike() {
    let Some(mut pair) = Pair::start(1) else { return };
    pair.compare_order();
    let mut random = Rng::new(0);
    for _ in 0..500 {
        let (word, tube) = (random.pick(&["watch", "ignore"]), random.index(9));
        pair.send(0, &format!("{word} t{tube}\r\nlist-tubes-watched\r\n"));
    }
    pair.half_close_all();
}

/// Between two moments that the clock decides there is room of seconds, for a machine that is
/// busy with something else.
#[test]
fn timed_events_happen_alike() {
    let Some(mut pair) = Pair::start(4) else { return };
    a_delay_ends(&mut pair);
    a_lease_ends(&mut pair);
    a_wait_ends(&mut pair);
    a_pause_ends(&mut pair);
    a_worker_is_warned(&mut pair);
    take_stock(&mut pair);
    pair.half_close_all();
}

fn a_delay_ends(pair: &mut Pair) {
    pair.send(0, "put 0 1 1000 5\r\nhello\r\n");
    pair.send(1, "reserve\r\n");
    pair.wait(1);
    pair.send(1, "stats-job {0}\r\ndelete {0}\r\n");
}

fn a_lease_ends(pair: &mut Pair) {
    pair.send(0, "put 0 0 3 5\r\nhello\r\n");
    pair.send(1, "reserve-with-timeout 100\r\n");
    pair.send(2, "reserve\r\n");
    pair.wait(2);
    pair.send(1, "delete {1}\r\nrelease {1} 0 0\r\ntouch {1}\r\nbury {1} 0\r\n");
    pair.send(2, "release {1} 0 0\r\n");
    pair.send(1, "stats-job {1}\r\nstats\r\ndelete {1}\r\n");
}

fn a_wait_ends(pair: &mut Pair) {
    pair.send(2, "reserve-with-timeout 1\r\nlist-tube-used\r\n");
    pair.wait(2);
}

fn a_pause_ends(pair: &mut Pair) {
    pair.send(0, "put 0 0 1000 5\r\nhello\r\n");
    pair.send(0, "pause-tube default 2\r\n");
    pair.send(1, "peek-ready\r\nreserve-with-timeout 0\r\n");
    pair.send(1, "reserve\r\n");
    pair.wait(1);
    pair.send(1, "stats-tube default\r\ndelete {2}\r\n");
}

/// A job that runs for two seconds: a reserve waits for one of them. A job that runs for one: not
/// even that. A ready job comes first.
fn a_worker_is_warned(pair: &mut Pair) {
    pair.send(0, "put 0 0 2 5\r\nhello\r\n");
    pair.send(3, "reserve\r\n");
    pair.send(3, "reserve\r\n");
    pair.wait(3);
    pair.half_close(3);
    pair.send(0, "delete {3}\r\nput 0 0 1 3\r\none\r\nput 0 0 1000 3\r\ntwo\r\n");
    pair.send(1, "reserve\r\nreserve\r\nreserve\r\n");
    pair.half_close(1);
    pair.send(0, "delete {4}\r\n");
}

/// One peer sends one to three commands. At most one peer waits: beanstalkd's choice among several
/// depends on more than the time of waiting. While one waits, no command makes several jobs ready:
/// beanstalkd hands over the first, ours the most urgent. No command follows the end of a pause at
/// once: beanstalkd serves waiting peers by its timer, so a reserve in the same packet is sometimes
/// faster.
fn step(pair: &mut Pair, random: &mut Rng, waiting: &mut Option<usize>) {
    if waiting.is_some_and(|peer| !pair.is_waiting(peer)) {
        *waiting = None;
    }
    let peer = 1 + random.index(pair.peers() - 1);
    if !pair.is_open(peer) {
        return;
    }
    if random.index(60) == 0 && (waiting.is_none() || *waiting == Some(peer)) {
        pair.half_close(peer);
        pair.connect();
        return;
    }
    if *waiting == Some(peer) {
        return;
    }
    let mut commands = String::new();
    for _ in 0..1 + random.index(3) {
        let command = command(pair.jobs(), waiting.is_some(), random);
        commands.push_str(&command);
        if waiting.is_some() && command.starts_with("pause-tube") {
            break;
        }
    }
    if waiting.is_none() && random.index(8) == 0 {
        commands.push_str(random.pick(&["reserve\r\n", "reserve-with-timeout 100000\r\n"]));
        *waiting = Some(peer);
    }
    pair.send(peer, &commands);
}

fn command(jobs: usize, waiting: bool, random: &mut Rng) -> String {
    let job = job(jobs, random);
    let tube = random.pick(&TUBES);
    let priority = random.pick(&[0, 1, 1, 1023, 1024, u32::MAX]);
    let delay = random.pick(&[0, 0, 0, 1_000, 2_000]);
    match random.index(40) {
        0..8 => put(priority, delay, random),
        8 => format!("use {tube}\r\n"),
        9..12 => format!("watch {tube}\r\n"),
        12 => format!("ignore {tube}\r\n"),
        13..17 => "reserve-with-timeout 0\r\n".into(),
        17 => format!("reserve-job {job}\r\n"),
        18 | 19 => format!("delete {job}\r\n"),
        20..23 => format!("release {job} {priority} {delay}\r\n"),
        23..25 => format!("bury {job} {priority}\r\n"),
        25 => format!("touch {job}\r\n"),
        26 => format!("kick-job {job}\r\n"),
        27 => format!("kick {}\r\n", random.index(if waiting { 2 } else { 4 })),
        28 => format!("pause-tube {tube} {}\r\n", random.pick(&[0, 0, 1_000])),
        29 => format!("peek {job}\r\n"),
        30 => "peek-ready\r\n".into(),
        31 => "peek-delayed\r\n".into(),
        32 => "peek-buried\r\n".into(),
        33 => format!("stats-job {job}\r\n"),
        34 => format!("stats-tube {tube}\r\n"),
        35 => "stats\r\n".into(),
        36 => "list-tubes\r\nlist-tubes-watched\r\nlist-tube-used\r\n".into(),
        _ => malformed(&job, waiting, random),
    }
}

/// The place of the id of a job, seldom of none.
fn job(jobs: usize, random: &mut Rng) -> String {
    if jobs == 0 || random.index(20) == 0 {
        return random.pick(&["0", "999999", "18446744073709551615"]).into();
    }
    // The latest jobs are those that still live.
    let latest = jobs.min(1 + random.index(60));
    let back = random.index(latest);
    format!("{{{}}}", jobs - 1 - back)
}

fn put(priority: u32, delay: u32, random: &mut Rng) -> String {
    let lease = random.pick(&[1_000, 100_000, u32::MAX]);
    let (size, body) = random.pick(&[
        (0, ""),
        (5, "hello"),
        (10, "\r\ndelete\r\n"),
        (5, "longer!"),
        (6, "short"),
        (5, "five\n"),
    ]);
    format!("put {priority} {delay} {lease} {size}\r\n{body}\r\n")
}

/// A line that may be wrong in one place. It holds no CR but at its end, and is not 225 bytes
/// long: there the two differ.
fn malformed(job: &str, waiting: bool, random: &mut Rng) -> String {
    const NUMBERS: [&str; 14] = [
        "",
        " ",
        "x",
        "-1",
        "+1",
        " 900000007",
        "00900000007",
        "1x",
        "1 ",
        "4294967295",
        "4294967296",
        "\t1",
        "18446744073709551615",
        "18446744073709551616",
    ];
    const NAMES: [&str; 10] = ["", "-a", " a", "a ", "a b", "a:b", "\0", "é", "+", "a/b;c.d$e_(f)"];
    let (number, name) = (random.pick(&NUMBERS), random.pick(&NAMES));
    let long = "x".repeat(random.pick(&[190, 200, 201, 216, 217, 218, 300, 500]));
    let line = match random.index(24) {
        0 => format!("put {number} 0 1000 0\r\n"),
        1 => format!("put 0 {number} 1000 0\r\n"),
        2 => format!("put 0 0 1000{number} 0\r\n"),
        3 => format!("delete {number}"),
        4 => format!("release {job} {number} 0"),
        5 => format!("release {job} 0 {number}"),
        6 => format!("bury {job} {number}"),
        7 => format!("touch {number}"),
        8 => format!("peek {number}"),
        9 if waiting => "kick".into(),
        9 => format!("kick {number}"),
        10 => format!("kick-job {number}"),
        11 => format!("reserve-job {number}"),
        12 => format!("stats-job {number}"),
        13 => format!("pause-tube {name} 0"),
        14 => format!("pause-tube a {number}"),
        15 => format!("use {name}"),
        16 => format!("watch {name}"),
        17 => format!("ignore {name}"),
        18 => format!("stats-tube {name}"),
        19 => format!("use {long}"),
        20 => long,
        21 => format!("{}{name}", random.pick(&WORDS)),
        22 if !waiting => format!("{} {number}", random.pick(&WORDS)),
        _ => random.pick(&["", "reserve 1", "RESERVE", "stats\n", "\nstats", "put", "a\0b"]).into(),
    };
    format!("{line}\r\n")
}

/// Not `reserve`, which may wait, nor `quit`, after which beanstalkd answers nothing.
const WORDS: [&str; 23] = [
    "put",
    "peek",
    "peek-ready",
    "peek-delayed",
    "peek-buried",
    "reserve-job",
    "reservex",
    "delete",
    "release",
    "bury",
    "kick",
    "kick-job",
    "touch",
    "stats-job",
    "stats-tube",
    "stats",
    "use",
    "watch",
    "ignore",
    "list-tubes-watched",
    "list-tube-used",
    "list-tubes",
    "pause-tube",
];

/// Every job and tube as both see it at the end.
fn take_stock(pair: &mut Pair) {
    for job in 0..pair.jobs() {
        pair.send(0, &format!("peek {{{job}}}\r\nstats-job {{{job}}}\r\n"));
    }
    for tube in TUBES {
        pair.send(0, &format!("stats-tube {tube}\r\n"));
    }
    pair.send(0, "list-tubes\r\nstats\r\n");
}
