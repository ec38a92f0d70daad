//! The world around one broker: clients, a clock, a disk, and bad luck.
//!
//! Each step lets one thing happen, drawn from the seed. Clients send, read or leave; the server
//! takes a turn; the disk performs or completes a call; time passes; the process falls. After a
//! fall the next process recovers, and may fall in the middle of the recovery. The oracle judges
//! the recovered state, and new clients connect. At the end the faults stop and the process shuts
//! down in order. Then nothing at all may be missing, and clients take out and delete everything.

mod winding_up;

use std::collections::BTreeMap;
use std::rc::Rc;

use broker::{Broker, Fetch, JournalFailed};
use http_api::Token;
use journal::{Disk, JournalOptions};
use model::{Nanos, PolicyChange, StorePolicy};

use crate::inspection::inspect;
use crate::registration::CONTAINERS;
use crate::server::Server;
use crate::workload::{BODY_BYTES_MAX, Character};
use crate::{
    AmqpClient, AmqpWish, Answer, Client, Counted, Fall, Fault, FaultyDisk, HttpClient, HttpWish,
    KeyOracle, Oracle, Outside, Paged, ReadReply, RedisClient, Rng, Scenario, Value, Wish, Words,
    amqp_workload, http_workload, key_inspection, redis_client, redis_workload, registration,
    rules,
};

/// One simulation.
pub struct World<D: Disk> {
    scenario: Scenario,
    rng: Rng,
    /// Chance of the operator: its draws are independent of all others.
    operator: Rng,
    now: Nanos,
    /// The disk under the broker: the faulty disk, or a wrapper that lies about it.
    disk: Rc<D>,
    faulty: FaultyDisk,
    outside: Outside,
    server: Option<Server<D>>,
    /// How and when the last process fell, until the next has recovered.
    fallen: Option<(Fall, Nanos)>,
    /// Milliseconds by which the machine's clock is ahead of the broker's.
    ahead: i64,
    next_client: u64,
    /// Bytes of all files when the last process began.
    used_at_start: u64,
    tally: Tally,
}

/// Counts of events, so that a test is sure that they happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Processes that fell.
    pub falls: u64,
    /// Recoveries that succeeded.
    pub recoveries: u64,
    /// Recoveries that fell themselves.
    pub recoveries_fallen: u64,
    /// Processes that stopped because the journal failed.
    pub failures: u64,
    /// Replies that clients read.
    pub replies: u64,
    /// Puts among these that were refused for want of room.
    pub refusals: u64,
    /// Calls to the disk.
    pub calls: u64,
    /// Snapshots that were completed.
    pub snapshots: u64,
    /// Segments that were used again.
    pub segments_recycled: u64,
    /// Segments that were compacted.
    pub compactions: u64,
    /// Outcomes of sends and messages that met a bound.
    pub scarcity: Counted,
    /// Bodies that left memory without being in the log.
    pub spilled: u64,
    /// Bodies among these that were copied elsewhere, since their file was mostly dead.
    pub moved: u64,
    /// Commands of Redis, alike, that were done at once.
    pub runs: u64,
    /// Durable subscriptions that recoveries found.
    pub subscriptions: u64,
    /// Keys that recoveries found.
    pub keys: u64,
    /// Queues and topics that recoveries found with rules of their own.
    pub rules: u64,
}

impl<D: Disk + 'static> World<D> {
    /// A world before its first process. The broker sees `disk`, which is `faulty` or a wrapper of
    /// it.
    pub fn new(scenario: Scenario, faulty: FaultyDisk, disk: D) -> Self {
        faulty.set_trace(scenario.trace);
        let oracle = Oracle::new(scenario.policy, scenario.lag());
        let Scenario { bounds, topic_bounds, block_timeout, .. } = scenario;
        let oracle = oracle.bounded(bounds, topic_bounds, block_timeout);
        let oracle = oracle.cramped(scenario.memory_limit, scenario.is_bounded());
        let oracle = oracle.remembering(scenario.dedup_window);
        let oracle = oracle.short_of_room(scenario.may_lack_room());
        let oracle = oracle.with_dead_letters(scenario.dead_letters_max);
        let keys = KeyOracle::new(scenario.policy, scenario.lag());
        let keys = keys.bounded(scenario.list_bounds, scenario.block_timeout);
        let keys = keys.cramped(scenario.memory_limit < u64::MAX);
        let keys = keys.answering(scenario.reply_bytes_max);
        Self {
            rng: Rng::new(scenario.seed).fork(),
            operator: Rng::new(scenario.seed ^ OPERATOR),
            now: Nanos::from_secs(1_000_000),
            disk: Rc::new(disk),
            faulty,
            outside: Outside {
                clients: BTreeMap::new(),
                amqp_clients: BTreeMap::new(),
                redis_clients: BTreeMap::new(),
                http_clients: BTreeMap::new(),
                oracle,
                keys,
                trace: scenario.trace,
            },
            server: None,
            fallen: None,
            ahead: 0,
            next_client: 1,
            used_at_start: 0,
            tally: Tally::default(),
            scenario,
        }
    }

    /// Runs the scenario to its end.
    ///
    /// # Panics
    /// When a promise was broken.
    pub fn run(mut self) -> Tally {
        for _ in 0..self.scenario.steps {
            self.step();
        }
        self.finish();
        self.tally.calls = self.faulty.calls();
        self.tally.scarcity = self.outside.oracle.counted();
        self.tally.scarcity += self.outside.keys.counted();
        self.tally
    }

    /// Brings the first process up, without faults of its own.
    pub fn start(&mut self) {
        self.recover(false);
    }

    /// A client connects; returns its number.
    pub fn connect(&mut self, character: Character) -> u64 {
        let id = self.next_client;
        self.next_client += 1;
        self.trace(|| format!("client {id} connects: {character:?}"));
        self.outside.clients.insert(id, Client::new(id, character));
        self.server().connect(id);
        id
    }

    /// A client of AMQP connects, of this container; returns its number.
    pub fn connect_amqp(&mut self, container: &str) -> u64 {
        let id = self.next_client;
        self.next_client += 1;
        self.trace(|| format!("client {id} connects by AMQP: {container}"));
        let frame_bytes = self.rng.pick(&[512, 4096, 65_536]);
        self.outside.amqp_clients.insert(id, AmqpClient::new(id, container, frame_bytes));
        self.server().connect_amqp(id);
        id
    }

    /// A client of AMQP asks for one thing, and all that is under way happens. `None`: the process
    /// fell.
    pub fn ask_amqp(&mut self, id: u64, wish: AmqpWish) -> Option<()> {
        self.trace(|| format!("client {id} wants {}", wish.summary()));
        self.amqp_client(id).send(wish);
        self.settle()
    }

    /// A client of AMQP as it is now.
    ///
    /// # Panics
    /// When it is gone.
    #[must_use]
    pub fn amqp(&self, id: u64) -> &AmqpClient {
        self.outside.amqp_clients.get(&id).expect("invariant: connected")
    }

    /// A client of Redis connects; returns its number.
    pub fn connect_redis(&mut self) -> u64 {
        let id = self.next_client;
        self.next_client += 1;
        self.trace(|| format!("client {id} connects by Redis' protocol"));
        self.outside.redis_clients.insert(id, RedisClient::new(id));
        self.server().connect_redis(id);
        id
    }

    /// A client of Redis sends commands in one go, and all that is under way happens. Returns the
    /// last answer, unless the last command waits. `None`: the process fell.
    pub fn ask_redis(&mut self, id: u64, commands: &[Words]) -> Option<Option<Value>> {
        self.server.as_ref()?;
        let client = self.outside.redis_clients.get_mut(&id).expect("invariant: connected");
        for words in commands {
            if self.scenario.trace {
                eprintln!("{} client {id} wants {}", self.now, redis_client::summary(words));
            }
            client.send(words.clone());
        }
        self.settle()?;
        let client = self.outside.redis_clients.get(&id).expect("invariant: connected");
        Some(client.last_answer().filter(|_| !client.waits()).cloned())
    }

    /// A client of HTTP connects; returns its number.
    pub fn connect_http(&mut self) -> u64 {
        let id = self.next_client;
        self.next_client += 1;
        self.trace(|| format!("client {id} connects by HTTP"));
        self.outside.http_clients.insert(id, HttpClient::new(id));
        self.server().connect_http(id);
        id
    }

    /// A client's connection breaks.
    pub fn disconnect(&mut self, id: u64) {
        self.trace(|| format!("client {id} leaves"));
        let server = self.server.as_mut().expect("invariant: it runs");
        server.disconnect(id, &mut self.outside);
    }

    /// A client asks for one thing and waits for the reply, while nothing else happens. `None`:
    /// the process fell.
    ///
    /// # Panics
    /// When no reply comes.
    pub fn ask(&mut self, id: u64, wish: Wish) -> Option<Answer> {
        self.outside.clients.get_mut(&id).expect("invariant: connected").send(wish);
        self.settle()?;
        self.outside.clients.get(&id).and_then(Client::last_answer)
    }

    /// A client asks for one thing, while slow disk calls stay under way; returns the answer if it
    /// does not depend on them.
    pub fn ask_meanwhile(&mut self, id: u64, wish: Wish) -> Option<Answer> {
        self.outside.clients.get_mut(&id).expect("invariant: connected").send(wish);
        self.go_on(id)?;
        let client = self.outside.clients.get(&id).filter(|client| client.is_content());
        client.and_then(Client::last_answer)
    }

    /// The same of a client of AMQP; true if all that it waits for has come.
    pub fn ask_amqp_meanwhile(&mut self, id: u64, wish: AmqpWish) -> Option<bool> {
        self.amqp_client(id).send(wish);
        self.go_on(id)?;
        Some(self.amqp_client(id).is_content())
    }

    /// The current virtual time.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.server.as_ref().map_or(self.now, |server| server.now)
    }

    /// All that a client sends arrives, and all happens that needs no time to pass.
    fn go_on(&mut self, id: u64) -> Option<()> {
        self.deliver_all();
        self.turn();
        self.quiesce()?;
        self.turn();
        self.quiesce()?;
        self.read_client(id, usize::MAX);
        self.deliver_all();
        self.turn();
        self.quiesce()?;
        self.read_client(id, usize::MAX);
        Some(())
    }

    fn deliver_all(&mut self) {
        let server = self.server.as_mut().expect("invariant: it runs");
        for (id, client) in &mut self.outside.clients {
            deliver(*id, client, client.outbound.len(), server);
        }
        for (id, client) in &mut self.outside.amqp_clients {
            server.receive(*id, &client.outbound.drain(..).collect::<Vec<_>>());
        }
        for (id, client) in &mut self.outside.redis_clients {
            server.receive(*id, &client.outbound.drain(..).collect::<Vec<_>>());
        }
    }

    /// Lets time pass; everything due on the way happens, also at the disk.
    pub fn pass(&mut self, span: Nanos) {
        let until = self.now + span;
        self.trace(|| format!("waits until {until}"));
        while let Some(server) = &mut self.server {
            let arrived = server.advance(until, &mut self.outside);
            self.now = server.now;
            if arrived {
                break;
            }
            self.progress();
        }
    }

    /// Processes from the next one on have a log of other sizes.
    pub fn resize_log(&mut self, change: impl FnOnce(&mut JournalOptions)) {
        change(&mut self.scenario.journal);
    }

    /// The process falls, and with it the disk calls under way.
    pub fn fall(&mut self, fall: Fall) {
        self.trace(|| format!("it falls: {fall:?}"));
        self.tally.falls += 1;
        if let Some(mut server) = self.server.take() {
            let counters = server.broker.counters();
            self.tally.snapshots += counters.snapshots;
            self.tally.segments_recycled += counters.segments_recycled;
            self.tally.compactions += counters.compactions;
            self.tally.spilled += server.broker.spill_counters().bodies;
            self.tally.moved += server.broker.spill_counters().moved;
            self.tally.runs += server.runs;
            let (disk, rng) = (&*self.disk, &mut self.rng);
            self.faulty.in_flight(|| server.perform_rest(disk, rng));
        }
        match fall {
            Fall::Process => self.faulty.kill(),
            Fall::Power => self.faulty.cut_power(),
        }
        // Bytes that a failing device had not synced are lost, though only the process ended.
        let struck = self.faulty.take_struck();
        let lossy = struck.iter().any(|(_, fault)| !matches!(fault, Fault::Crash(_)));
        let (worst, since) = self.fallen.unwrap_or((Fall::Process, self.now));
        let power = lossy || fall == Fall::Power || worst == Fall::Power;
        self.fallen = Some((if power { Fall::Power } else { Fall::Process }, since));
        self.outside.clients.clear();
        self.outside.amqp_clients.clear();
        self.outside.redis_clients.clear();
        self.outside.http_clients.clear();
        self.faulty.inject_at_random(0, &[]);
    }

    /// Lets one thing happen.
    fn step(&mut self) {
        if self.server.is_none() {
            self.recover(self.scenario.falls_per_thousand > 0);
            let Scenario { faults_per_million, faults, .. } = &self.scenario;
            self.faulty.inject_at_random(*faults_per_million, faults);
        }
        self.fill_up();
        if self.rng.chance(self.scenario.falls_per_thousand, 1000) {
            return self.fall_anyhow();
        }
        if self.scenario.rules_per_thousand > 0 {
            self.operate();
        }
        match self.rng.below(24) {
            0..=6 => self.act(),
            7..=10 => self.turn(),
            11..=16 => self.progress(),
            17..=20 => self.read(),
            21 | 22 => self.wait(),
            _ => self.befall(),
        }
    }

    /// There are always as many clients as the scenario says.
    fn fill_up(&mut self) {
        while (self.outside.clients.len() as u64) < self.scenario.clients {
            let character = Character::draw(&mut self.rng);
            self.connect(character);
        }
        while (self.outside.amqp_clients.len() as u64) < self.scenario.amqp_clients {
            let container = self.rng.pick(&CONTAINERS);
            self.connect_amqp(container);
        }
        while (self.outside.redis_clients.len() as u64) < self.scenario.redis_clients {
            self.connect_redis();
        }
        while (self.outside.http_clients.len() as u64) < self.scenario.http_clients {
            self.connect_http();
        }
    }

    /// The operator may change rules, and reads the answers to its changes that are safe.
    fn operate(&mut self) {
        let server = self.server.as_mut().expect("invariant: it runs");
        if self.operator.chance(self.scenario.rules_per_thousand, 1000) {
            let names: Vec<_> = rules::names().collect();
            let name = registration::name(self.operator.pick(&names));
            let change = PolicyChange::to(rules::draw(&mut self.operator));
            server.rule(name, change, &mut self.outside);
        }
        if self.operator.coin() {
            server.tell_operator(&mut self.outside);
        }
    }

    /// Some client sends something.
    fn act(&mut self) {
        let id = self.some_client();
        if self.outside.amqp_clients.contains_key(&id) {
            return self.act_amqp(id);
        }
        if self.outside.redis_clients.contains_key(&id) {
            return self.act_redis(id);
        }
        if self.outside.http_clients.contains_key(&id) {
            return self.act_http(id);
        }
        let known: Vec<u64> = self.outside.oracle.ids().collect();
        let client = self.outside.clients.get_mut(&id).expect("invariant: drawn from these");
        while !client.is_half_closed() && client.outstanding() < self.scenario.pipeline {
            let mut wish = client.wish(&mut self.rng, &known);
            if let Wish::Put { persistence, .. } = &mut wish {
                *persistence = self.rng.pick(&self.scenario.persistences);
            }
            if self.scenario.redis_clients > 0 && meets_lists(&wish, &known) {
                break;
            }
            if self.scenario.trace {
                eprintln!("{} client {id} wants {}", self.now, wish.summary());
            }
            client.send(wish);
            if self.rng.coin() {
                break;
            }
        }
    }

    fn act_amqp(&mut self, id: u64) {
        let Scenario { pipeline, persistences, trace, .. } = &self.scenario;
        let client = self.outside.amqp_clients.get_mut(&id).expect("invariant: connected");
        while client.outstanding() < *pipeline {
            let wish = amqp_workload::wish(client, &mut self.rng, persistences);
            let Some(mut wish) = wish else { return };
            if let AmqpWish::Send { to, message, transaction, .. } = &mut wish {
                let oracle = Some(&self.outside.oracle).filter(|_| transaction.is_some());
                message.send_id =
                    self.scenario.draw_send_id(&mut self.rng, to, &mut message.body, oracle);
            }
            if *trace {
                eprintln!("{} client {id} wants {}", self.now, wish.summary());
            }
            client.send(wish);
            if self.rng.chance(1, 4) {
                break;
            }
        }
    }

    fn act_redis(&mut self, id: u64) {
        let Scenario { pipeline, trace, clients, steps_clock, .. } = &self.scenario;
        let client = self.outside.redis_clients.get_mut(&id).expect("invariant: connected");
        while client.outstanding() < *pipeline {
            let mut words = redis_workload::wish(client, &mut self.rng);
            if *steps_clock && self.rng.coin() {
                let wall = self.now.0 / 1_000_000;
                words = redis_workload::by_clock(words, wall.saturating_add_signed(self.ahead));
            }
            if *clients > 0 && words == crate::words(&["DBSIZE"]) {
                // Tubes are counted as well.
                return;
            }
            if *trace {
                eprintln!("{} client {id} wants {}", self.now, redis_client::summary(&words));
            }
            client.send(words);
            if self.rng.chance(1, 4) {
                break;
            }
        }
    }

    fn act_http(&mut self, id: u64) {
        let Scenario { pipeline, persistences, trace, .. } = &self.scenario;
        let clients = self.outside.http_clients.values();
        let leases: Vec<Token> = clients.flat_map(|client| client.leases.clone()).collect();
        let client = self.outside.http_clients.get_mut(&id).expect("invariant: connected");
        while client.outstanding() < *pipeline {
            let mut wish = http_workload::wish(client, &mut self.rng, persistences, &leases);
            if let HttpWish::Send { to, post } = &mut wish {
                post.send_id = self.scenario.draw_send_id(&mut self.rng, to, &mut post.body, None);
            }
            if *trace {
                eprintln!("{} client {id} wants {}", self.now, wish.summary());
            }
            client.send(wish);
            if self.rng.coin() {
                break;
            }
        }
    }

    /// The server takes in some of the bytes that clients sent, and takes a turn.
    fn turn(&mut self) {
        let server = self.server.as_mut().expect("invariant: it runs");
        for (id, client) in &mut self.outside.clients {
            let all = client.outbound.len();
            let bytes = if self.rng.chance(3, 4) { all } else { self.rng.index(all + 1) };
            deliver(*id, client, bytes, server);
        }
        for (id, client) in &mut self.outside.amqp_clients {
            let all = client.outbound.len();
            let bytes = if self.rng.chance(3, 4) { all } else { self.rng.index(all + 1) };
            server.receive(*id, &client.outbound.drain(..bytes).collect::<Vec<_>>());
        }
        for (id, client) in &mut self.outside.redis_clients {
            let all = client.outbound.len();
            let bytes = if self.rng.chance(3, 4) { all } else { self.rng.index(all + 1) };
            server.receive(*id, &client.outbound.drain(..bytes).collect::<Vec<_>>());
        }
        server.turn(&mut self.outside);
        server.broker.check();
        if server.is_settled() {
            self.outside.oracle.assert_placed();
            self.outside.oracle.assert_cut_off();
            self.outside.keys.assert_placed(server.now);
            self.outside.oracle.assert_kept_in_mind(server.broker.memory_bytes());
        }
        self.check_space();
        self.check_memory();
    }

    /// Messages may take little more memory than the limit: bodies that the disk has not written
    /// yet, and one waiting send more than fits. Elements that a command reads may be in memory
    /// besides. The bytes that a send to a topic brings are not known before.
    fn check_memory(&mut self) {
        let Scenario { memory_limit: limit, amqp_clients, .. } = self.scenario;
        if limit == u64::MAX || amqp_clients > 0 {
            return;
        }
        let bytes = self.server().broker.memory_bytes();
        let looked_into = self.outside.keys.bytes();
        let allowed = limit + limit / 2 + limit / 16 + 2 * LARGEST_BYTES + looked_into;
        assert!(bytes <= allowed, "{bytes} bytes of memory instead of {allowed}");
    }

    /// Asserts that segments and snapshots take no more than they may, or did at the start. The
    /// spill takes no more than it may, and no other file grows.
    fn check_space(&self) {
        let used = self.faulty.used();
        if let Some(most) = self.scenario.journal.disk_bytes_max {
            let spill = self.scenario.journal.spill_bytes_max;
            let allowed = most.max(self.used_at_start) + spill + EPOCH_BYTES;
            assert!(used <= allowed, "{used} bytes instead of {allowed}");
        }
        if let Some(most) = self.scenario.journal.segments_max {
            let segments = self.faulty.segments();
            assert!(segments <= most, "{segments} segments instead of {most}");
        }
    }

    /// The disk performs a call, or the broker hears of one.
    fn progress(&mut self) {
        let server = self.server.as_mut().expect("invariant: it runs");
        if !server.is_busy() {
            return self.turn();
        }
        let is_slow = || self.faulty.take_slow();
        let outside = &mut self.outside;
        let outcome = server.progress(&*self.disk, &mut self.rng, &is_slow, outside);
        if let Err(failed) = outcome {
            self.trace(|| format!("the process stops: {failed}"));
            self.tally.failures += 1;
            self.fall_anyhow();
        } else if self.faulty.stopped() {
            self.fall_anyhow();
        }
    }

    /// Some client reads, perhaps slowly.
    fn read(&mut self) {
        let id = self.some_client();
        let bytes_max = if self.rng.chance(1, 4) { self.rng.index(50) } else { usize::MAX };
        self.read_client(id, bytes_max);
    }

    fn read_client(&mut self, id: u64, bytes_max: usize) {
        if self.outside.http_clients.contains_key(&id) {
            return self.read_http_client(id);
        }
        let bytes = self.server().release(id, bytes_max);
        if self.outside.amqp_clients.contains_key(&id) {
            return self.read_amqp_client(id, &bytes);
        }
        if self.outside.redis_clients.contains_key(&id) {
            return self.read_redis_client(id, bytes.len() as u64);
        }
        let Outside { clients, oracle, .. } = &mut self.outside;
        // A client that has left may have been there when the turn began.
        let Some(client) = clients.get_mut(&id) else { return };
        for (answer, changes) in client.read(&bytes) {
            if self.scenario.trace {
                eprintln!("{} client {id} reads {}", self.now, answer.summary());
            }
            self.tally.replies += 1;
            self.tally.refusals += u64::from(answer.line == "OUT_OF_MEMORY");
            oracle.told(self.now, changes);
        }
        if client.is_half_closed() && client.is_content() {
            let server = self.server.as_mut().expect("invariant: it runs");
            server.disconnect(id, &mut self.outside);
        }
    }

    fn read_amqp_client(&mut self, id: u64, bytes: &[u8]) {
        let Outside { amqp_clients, oracle, .. } = &mut self.outside;
        let client = amqp_clients.get_mut(&id).expect("invariant: connected");
        for (text, changes) in client.read(bytes) {
            if self.scenario.trace {
                eprintln!("{} client {id} reads {text}", self.now);
            }
            self.tally.replies += 1;
            oracle.told(self.now, changes);
        }
        if client.is_closed() {
            let server = self.server.as_mut().expect("invariant: it runs");
            server.disconnect(id, &mut self.outside);
        }
    }

    fn read_http_client(&mut self, id: u64) {
        for (heard, changes) in self.server().release_http(id) {
            self.trace(|| format!("client {id} reads {heard:?}"));
            self.tally.replies += 1;
            let Outside { http_clients, oracle, .. } = &mut self.outside;
            let client = http_clients.get_mut(&id).expect("invariant: connected");
            client.hear(heard);
            changes.into_iter().for_each(|changes| oracle.told(self.now, changes));
        }
    }

    fn read_redis_client(&mut self, id: u64, bytes: u64) {
        let Outside { redis_clients, keys, .. } = &mut self.outside;
        let client = redis_clients.get_mut(&id).expect("invariant: connected");
        for ReadReply { needs, is_refusal } in client.read(bytes) {
            if self.scenario.trace {
                eprintln!("{} client {id} reads what needs {needs} steps", self.now);
            }
            self.tally.replies += 1;
            self.tally.refusals += u64::from(is_refusal);
            keys.told(self.now, needs);
        }
    }

    /// Time passes.
    fn wait(&mut self) {
        let micros = match self.rng.below(8) {
            0 => self.rng.between(1_000_000, 4_000_000),
            1 => self.rng.between(10_000, 200_000),
            _ => self.rng.between(10, 10_000),
        };
        self.pass(Nanos(micros * 1000));
    }

    /// The operator of the machine sets its clock, forwards or back.
    fn set_clock(&mut self) {
        let server = self.server.as_mut().expect("invariant: it runs");
        if !server.may_set_clock() {
            return;
        }
        self.ahead = self.rng.pick(&[0, 0, 3_600_000, 86_400_000, 31_536_000_000, -50_000, -900]);
        if !self.scenario.defects.keeps_first_clock {
            server.set_clock(self.ahead);
        }
        self.outside.keys.set_clock(self.ahead);
        self.trace(|| format!("the clock is set {} ms ahead", self.ahead));
    }

    /// Rare events.
    fn befall(&mut self) {
        if self.scenario.steps_clock && self.rng.coin() {
            return self.set_clock();
        }
        match self.rng.below(4) {
            3 => {
                let id = self.some_client();
                if let Some(client) = self.outside.clients.get_mut(&id) {
                    client.half_close();
                    self.trace(|| format!("client {id} closes its half"));
                }
            }
            0 => {
                let id = self.some_client();
                self.disconnect(id);
            }
            1 if self.scenario.quota.is_some() => {
                let quota = self.scenario.quota.filter(|_| self.rng.chance(3, 4));
                self.trace(|| format!("room for {quota:?} bytes"));
                self.faulty.set_quota(quota);
            }
            _ => self.wait(),
        }
    }

    fn fall_anyhow(&mut self) {
        let any = if self.rng.coin() { Fall::Power } else { Fall::Process };
        self.fall(self.scenario.fall.unwrap_or(any));
    }

    /// Brings up a process, over as many falls as it takes, and lets the oracle judge it.
    fn recover(&mut self, threatened: bool) {
        loop {
            self.now = self.now + Nanos::from_millis(1);
            let call = self.faulty.calls() + self.rng.between(1, 60);
            if threatened && self.rng.chance(1, 4) {
                self.faulty.inject(call, self.rng.pick(&self.scenario.faults));
            }
            let opened = self.open().map_err(|error| error.to_string());
            let opened = opened
                .and_then(|broker| self.catch_up(broker).map_err(|failed| failed.to_string()));
            self.faulty.withdraw(call);
            match opened {
                Ok(broker) => return self.welcome(broker),
                Err(error) => {
                    assert!(self.faulty.has_struck(), "recovery refused without a fault: {error}");
                    self.trace(|| format!("recovery fails: {error}"));
                    self.tally.recoveries_fallen += 1;
                    self.fall_anyhow();
                }
            }
        }
    }

    fn open(&mut self) -> Result<Broker<D::File>, broker::OpenError> {
        let options = self.scenario.options();
        if self.scenario.policy == StorePolicy::Memory {
            return Ok(Broker::in_memory(options.engine));
        }
        self.used_at_start = self.faulty.used();
        let look = || broker::verify(&*self.disk, options.clone(), &mut |_| {});
        let seen = self.faulty.undisturbed(look);
        let (broker, recovery) = Broker::open(&*self.disk, options)?;
        assert_eq!(seen.ok(), Some(recovery), "who verifies sees what recovery finds");
        Ok(broker)
    }

    /// Messages that expired while no process ran go now: while one is there, it hides the messages
    /// behind it. A broker needs room for a frame to remove them.
    fn catch_up(&self, mut broker: Broker<D::File>) -> Result<Broker<D::File>, JournalFailed> {
        let now = self.now;
        loop {
            while broker.stalled()
                && let Some(chore) = broker.poll_chore(now)
            {
                let done = chore.perform(&*self.disk);
                broker.handle_chore(now, done)?;
            }
            let mut outputs = Vec::new();
            broker.handle_timeout(now, &mut outputs);
            assert!(outputs.is_empty(), "nobody is there to hear of it: {outputs:?}");
            let Some(write) = broker.poll_write(now) else { return Ok(broker) };
            let result = write.perform(&*self.disk);
            broker.handle_write(now, write, result)?;
        }
    }

    fn welcome(&mut self, broker: Broker<D::File>) {
        let (disk, faulty) = (Rc::clone(&self.disk), self.faulty.clone());
        let reader = move |fetch: Fetch<D::File>| faulty.unnoticed(|| fetch.perform(&*disk));
        let mut broker = Paged::new(broker, Rc::new(reader));
        let found = inspect(&mut broker, self.now, self.outside.oracle.last_id());
        let subscriptions = found.subscriptions.len();
        self.trace(|| format!("recovered {} things", found.found.len()));
        self.tally.subscriptions += subscriptions as u64;
        self.tally.rules += found.rules.len() as u64;
        let (fall, fell) = self.fallen.take().unwrap_or((Fall::Process, self.now));
        self.outside.oracle.recovered(fall, fell, self.now, &found);
        let keys = key_inspection::picture(&mut broker, self.now);
        self.tally.keys += keys.0.len() as u64;
        let ages = key_inspection::ages(&mut broker, self.now);
        self.outside.keys.recovered(fall, fell, self.now, &keys, &ages);
        self.tally.recoveries += 1;
        // The recovery has already waited for slow calls.
        let _ = self.faulty.take_slow();
        let Scenario { policy, defects, .. } = self.scenario;
        let mut server = Server::new(broker, self.now, policy, defects, &mut self.outside);
        if self.scenario.scheduled {
            server.schedule_writes();
        }
        server.set_clock(self.ahead);
        if self.scenario.has_users {
            server.invite_intruder();
        }
        self.server = Some(server);
    }

    /// Goes on until every client has its answers, except clients that wait for a message.
    fn settle(&mut self) -> Option<()> {
        for _ in 0..SETTLE_ROUNDS_MAX {
            let ids = self.client_ids();
            let server = self.server.as_mut()?;
            for (id, client) in &mut self.outside.clients {
                deliver(*id, client, client.outbound.len(), server);
            }
            self.turn();
            self.quiesce()?;
            ids.iter().for_each(|id| self.read_client(*id, usize::MAX));
            let all = self.outside.clients.values().all(Client::is_content);
            let all = all && self.outside.redis_clients.values().all(RedisClient::is_content);
            let all = all && self.outside.http_clients.values().all(HttpClient::is_content);
            if all && self.outside.amqp_clients.values().all(AmqpClient::is_content) {
                self.outside.oracle.assert_served(self.now);
                self.outside.keys.assert_served();
                return Some(());
            }
            self.pass(self.scenario.patience());
            self.server.as_ref()?;
        }
        let stalled = self.server().broker.stalled();
        let Outside { clients, amqp_clients, redis_clients, http_clients, .. } = &self.outside;
        panic!(
            "clients wait for ever, stalled: {stalled}: {clients:?} {amqp_clients:?} \
             {redis_clients:?} {http_clients:?}"
        );
    }

    /// Until nothing is under way at the disk.
    fn quiesce(&mut self) -> Option<()> {
        for _ in 0..QUIESCE_STEPS_MAX {
            if !self.server.as_ref()?.is_busy() {
                return Some(());
            }
            self.progress();
        }
        panic!("housekeeping never ends");
    }

    fn amqp_client(&mut self, id: u64) -> &mut AmqpClient {
        self.outside.amqp_clients.get_mut(&id).expect("invariant: connected")
    }

    fn some_client(&mut self) -> u64 {
        let ids = self.client_ids();
        self.rng.pick(&ids)
    }

    fn client_ids(&self) -> Vec<u64> {
        let Outside { clients, amqp_clients, redis_clients, http_clients, .. } = &self.outside;
        let ids = clients.keys().chain(amqp_clients.keys()).chain(redis_clients.keys());
        ids.chain(http_clients.keys()).copied().collect()
    }

    fn server(&mut self) -> &mut Server<D> {
        self.server.as_mut().expect("invariant: it runs")
    }

    fn trace(&self, text: impl FnOnce() -> String) {
        if self.scenario.trace {
            eprintln!("{} {}", self.now, text());
        }
    }
}

/// True if it may concern elements of lists, of which the oracle of messages knows nothing.
fn meets_lists(wish: &Wish, known: &[u64]) -> bool {
    let names_another = wish.message().is_some_and(|id| !known.contains(&id));
    names_another || matches!(wish, Wish::Stats | Wish::ListQueues)
}

/// So many bytes reach the server, and the end of the stream behind the last.
fn deliver<D: Disk>(id: u64, client: &mut Client, bytes: usize, server: &mut Server<D>) {
    let bytes: Vec<u8> = client.outbound.drain(..bytes).collect();
    server.receive(id, &bytes);
    if client.is_half_closed() && client.outbound.is_empty() {
        server.half_close(id);
    }
}

/// Makes the operator's part of a seed another than the rest.
const OPERATOR: u64 = 0x6f70_6572_6174_6f72;

/// The file that counts openings.
const EPOCH_BYTES: u64 = 4096;

/// The largest message in memory, with all around it.
const LARGEST_BYTES: u64 = BODY_BYTES_MAX as u64 + 1024;

/// More messages than there are.
const ALL: u32 = 100_000;

/// Longer than any delay of a message to a topic.
const DELAYS_SECONDS_MAX: u32 = 1;

/// Rounds after which a client that has no answer never will.
const SETTLE_ROUNDS_MAX: usize = 200;

/// Calls to the disk after which housekeeping that goes on never ends.
const QUIESCE_STEPS_MAX: usize = 10_000;
