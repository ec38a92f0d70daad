//! Commands that stand one behind the other and are alike are asked of the engine at once. For all
//! rules of a list and all waiting clients, each is answered as if it had come alone.

use client::resp::command as encoded;
use engine::{EngineOptions, QueuePolicies};
use model::{Nanos, QueueBounds, QueuePolicy, StorePolicy, WhenFull};
use resp::Options;
use testkit::Rng;

use crate::ours::Ours;

const CONNECTIONS: u64 = 4;

const KEYS: [&str; 3] = ["a", "b", "v"];

/// Some commands of one client, of which many are alike.
pub(crate) fn burst(random: &mut Rng) -> Vec<Vec<String>> {
    let mut commands = Vec::new();
    for _ in 0..1 + random.index(4) {
        let key = random.pick(&KEYS[..2]);
        let name = random
            .pick(&["LPUSH", "RPUSH", "LPOP", "RPOP", "LPUSHX", "LLEN", "rpush", "GET", "get"]);
        if random.index(8) == 0 {
            let database = random.pick(&["0", "0", "1", "2"]);
            commands.push(["SELECT", database].map(str::to_owned).to_vec());
        }
        for _ in 0..random.pick(&[1, 1, 2, 3, 9, 80]) {
            let element = random.pick(&["x", "y", "z", "", "another"]);
            let words: &[&str] = match name {
                "LPOP" | "RPOP" | "LLEN" => &[name, key],
                // Lists, too, and missing keys.
                "GET" | "get" => &[name, random.pick(&["a", "b", "v", "w", "none"])],
                _ => &[name, key, element],
            };
            commands.push(words.iter().map(|word| (*word).to_owned()).collect());
        }
    }
    commands
}

/// One and the same broker twice: the first is sent commands in one piece, the other one by one.
struct Twins([Ours; 2]);

impl Twins {
    fn new(options: &EngineOptions) -> Self {
        let twin = || {
            let mut ours = Ours::with_engine(Options::default(), options.clone());
            (0..CONNECTIONS).for_each(|_| _ = ours.connect());
            ours
        };
        Self([twin(), twin()])
    }

    fn send(&mut self, connection: u64, commands: &[Vec<u8>], story: &str) {
        let Self([whole, single]) = self;
        whole.send(connection, &commands.concat());
        commands.iter().for_each(|command| single.send(connection, command));
        self.compare(story);
    }

    fn pass_time(&mut self, story: &str) {
        // Clients that wait for a place or for memory go on by time. Each step takes a microsecond
        // and the twins take different numbers of steps, so no sum of waits may end about here.
        self.0.iter_mut().for_each(|twin| twin.pass_time(Nanos::from_millis(120)));
        self.compare(story);
    }

    fn compare(&mut self, story: &str) {
        let Self([whole, single]) = self;
        for connection in 1..=CONNECTIONS {
            let heard = [whole.output(connection), single.output(connection)];
            let [whole, single] = heard.map(|bytes| String::from_utf8(bytes).unwrap());
            assert_eq!(whole, single, "{story}: connection {connection}");
        }
    }

    /// Plays bursts of several clients, some of which wait at times.
    fn play(&mut self, seed: u64, waits: bool) {
        let random = &mut Rng::new(seed);
        self.send(1, &[encoded(&["SET", "v", "a value"])], "the value");
        for round in 0..60 {
            let story = format!("seed {seed}, round {round}");
            let connection = 1 + random.index(CONNECTIONS as usize) as u64;
            let mut commands: Vec<Vec<u8>> =
                burst(random).iter().map(|words| encoded(words)).collect();
            if waits && random.index(3) == 0 {
                let key = random.pick(&KEYS[..2]);
                let name = random.pick(&["BLPOP", "BRPOP"]);
                commands.push(encoded(&[name, key, "0.05"]));
            }
            if random.index(8) == 0 {
                let odd: [&[&str]; 7] = [
                    &["LPUSH", "v", "x"],
                    &["SET", "w", "another value", "PX", "150"],
                    &["GET", ""],
                    &["RPOP", "v"],
                    &["MULTI"],
                    &["EXEC"],
                    &["CLIENT", "REPLY", "SKIP"],
                ];
                let odd = encoded(random.pick(&odd));
                commands.splice(0..0, [odd.clone(), odd]);
            }
            self.send(connection, &commands, &story);
            if random.index(2) == 0 {
                self.pass_time(&story);
            }
        }
    }
}

fn options(policy: QueuePolicy) -> EngineOptions {
    let queue_policies = QueuePolicies { default: policy, ..QueuePolicies::default() };
    EngineOptions { queue_policies, ..EngineOptions::new(StorePolicy::Memory) }
}

fn bounded(when_full: WhenFull) -> QueuePolicy {
    let bounds = QueueBounds { messages_max: Some(7), when_full, ..QueueBounds::default() };
    QueuePolicy { bounds, ..QueuePolicy::default() }
}

#[test]
fn pipelined_commands_answer_as_if_alone() {
    for seed in 0..12 {
        let mut twins = Twins::new(&options(QueuePolicy::default()));
        twins.play(seed, false);
        let [whole, single] = &twins.0;
        assert!(whole.steps() < single.steps(), "many are asked at once");
    }
}

#[test]
fn waiting_client_is_served_mid_pipeline() {
    for seed in 0..12 {
        Twins::new(&options(QueuePolicy::default())).play(1_000 + seed, true);
    }
}

#[test]
fn lists_with_bounds_keep_them() {
    let rules = [WhenFull::Block, WhenFull::Reject, WhenFull::DropOldest, WhenFull::DeadLetter];
    for seed in 0..12 {
        let when_full = rules[seed as usize % rules.len()];
        Twins::new(&options(bounded(when_full))).play(2_000 + seed, seed % 3 == 0);
    }
}

#[test]
fn protected_pops_are_held_singly() {
    let pop_lease = Some(Nanos::from_secs(5));
    for seed in 0..12 {
        let policy = QueuePolicy { pop_lease, ..QueuePolicy::default() };
        let mut twins = Twins::new(&options(policy));
        twins.play(3_000 + seed, seed % 2 == 0);
        // The last client that popped is gone: its last elements are back, and nothing else.
        for twin in &mut twins.0 {
            (1..CONNECTIONS).for_each(|connection| twin.close(connection));
        }
        for key in KEYS {
            let stock = [encoded(&["DISCARD"]), encoded(&["LRANGE", key, "0", "-1"])];
            twins.0.iter_mut().for_each(|twin| twin.send(CONNECTIONS, &stock.concat()));
            let heard = twins.0.each_mut().map(|twin| twin.output(CONNECTIONS));
            assert_eq!(heard[0], heard[1], "seed {seed}");
        }
    }
}

#[test]
fn pipelined_push_waits_for_memory_alone() {
    for seed in 0..10 {
        let memory_limit = 1 << 20;
        let engine = EngineOptions { memory_limit, ..options(QueuePolicy::default()) };
        let mut twins = Twins::new(&engine);
        let random = &mut Rng::new(4_000 + seed);
        let body = "x".repeat(40_000);
        for round in 0..12 {
            let story = format!("seed {seed}, round {round}");
            let key = random.pick(&KEYS[..2]);
            let pushes = vec![encoded(&["RPUSH", key, &body]); 1 + random.index(12)];
            twins.send(1 + random.index(3) as u64, &pushes, &story);
            let pops = vec![encoded(&["LPOP", key]); random.index(9)];
            twins.send(CONNECTIONS, &pops, &story);
            twins.pass_time(&story);
        }
    }
}

#[test]
fn pipeline_cut_anywhere_answers_alike() {
    let push = encoded(&["RPUSH", "a", "x"]);
    let pop = encoded(&["LPOP", "a"]);
    let whole = [push.repeat(3), pop.repeat(4), push.clone()].concat();
    for cut in 0..whole.len() {
        let mut ours = Ours::new(Options::default());
        let client = ours.connect();
        ours.send(client, &whole[..cut]);
        ours.send(client, &whole[cut..]);
        let heard = String::from_utf8(ours.output(client)).unwrap();
        let element = "$1\r\nx\r\n";
        assert_eq!(heard, format!(":1\r\n:2\r\n:3\r\n{}$-1\r\n:1\r\n", element.repeat(3)), "{cut}");
    }
}

#[test]
fn large_elements_come_in_several_answers() {
    let mut ours = Ours::new(Options::default());
    let client = ours.connect();
    let body = "x".repeat(50_000);
    ours.send(client, &encoded(&["RPUSH", "a", &body]).repeat(10));
    ours.send(client, &encoded(&["LPOP", "a"]).repeat(12));
    let counts: String = (1..=10).map(|count| format!(":{count}\r\n")).collect();
    let elements = format!("$50000\r\n{body}\r\n").repeat(10);
    let heard = String::from_utf8(ours.output(client)).unwrap();
    assert!(heard == format!("{counts}{elements}$-1\r\n$-1\r\n"), "each in its place");
}

#[test]
fn large_values_come_in_several_answers() {
    let mut ours = Ours::new(Options::default());
    let client = ours.connect();
    let value = "x".repeat(50_000);
    let look = |name: &str| encoded(&["GET", name]);
    ours.send(client, &encoded(&["SET", "v", &value]));
    ours.send(client, &encoded(&["RPUSH", "a", "x"]));
    let before = ours.output(client);
    assert_eq!(before, b"+OK\r\n:1\r\n");
    let looks = [look("v").repeat(5), look("a"), look("none"), look("v").repeat(4)];
    ours.send(client, &looks.concat());
    let shown = format!("$50000\r\n{value}\r\n");
    let wrong = "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";
    let expected = format!("{}{wrong}$-1\r\n{}", shown.repeat(5), shown.repeat(4));
    let heard = String::from_utf8(ours.output(client)).unwrap();
    assert!(heard == expected, "each in its place");
}

#[test]
fn pipelined_commands_behind_wait_are_held() {
    let mut ours = Ours::with_engine(Options::default(), options(bounded(WhenFull::Block)));
    let client = ours.connect();
    let body = "x".repeat(1_000);
    ours.send(client, &encoded(&["RPUSH", "a", &body]).repeat(40));
    let held = ours.collected_bytes(client);
    assert!(held > 30 * 1_000, "{held} of what waits behind the one that waits for a place");
}
