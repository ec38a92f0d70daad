//! Decisions of a seed before anything happens.

use std::rc::Rc;

use broker::BrokerOptions;
use engine::{
    DeadLetters, DeadLettersMax, EngineOptions, QueuePolicies, QueuePolicy, ReleaseOrder,
};
use journal::{JournalOptions, SEGMENTS_MIN};
use model::{
    Destination, Durability, Nanos, Persistence, QueueBounds, QueueName, StorePolicy, WhenFull,
    limits,
};

use crate::oracle::MAX_DELIVERY_ATTEMPTS;
use crate::{
    Fall, Fault, FaultyDisk, Moment, Oracle, Rng, ServerDefects, keyspace, redis_workload,
    registration, workload,
};

/// The settings of one simulation.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Decides everything else.
    pub seed: u64,
    /// The meaning of "persistent".
    pub policy: StorePolicy,
    /// Sizes of the journal.
    pub journal: JournalOptions,
    /// Clients of beanstalkd's protocol that are connected at a time.
    pub clients: u64,
    /// Clients of AMQP that are connected at a time.
    pub amqp_clients: u64,
    /// Clients of Redis that are connected at a time.
    pub redis_clients: u64,
    /// Clients of HTTP that are connected at a time.
    pub http_clients: u64,
    /// Requests that one client may have outstanding.
    pub pipeline: usize,
    /// Steps of the scheduler.
    pub steps: u64,
    /// How many of a million disk calls fail.
    pub faults_per_million: u64,
    /// The faults that they fail with.
    pub faults: Vec<Fault>,
    /// A call may be slow, and everything else that waits for the disk may wait for it.
    pub stalls: bool,
    /// How many of a thousand steps end the process.
    pub falls_per_thousand: u64,
    /// Every fall is of this kind; `None`: of any.
    pub fall: Option<Fall>,
    /// Bytes that the disk has room for, at times.
    pub quota: Option<u64>,
    /// Bytes of bodies that memory keeps besides the log. Zero: they leave at once. Some KiB: some
    /// are read ahead. Or any number.
    pub log_bodies_max: u64,
    /// Levels that senders ask of the store, one drawn for each message.
    pub persistences: Vec<Persistence>,
    /// How many of a hundred messages have a sender's name, among those that may have one.
    pub named_per_hundred: u64,
    /// How long such names are remembered.
    pub dedup_window: Nanos,
    /// How many dead letters there may be, in lives in which nothing falls; `None`: any number.
    pub dead_letters_max: Option<u64>,
    /// How much each of the queues may hold.
    pub bounds: QueueBounds,
    /// The same of each subscription of a topic.
    pub topic_bounds: QueueBounds,
    /// In so many of a thousand steps an operator gives a queue or a topic bounds of its own.
    pub rules_per_thousand: u64,
    /// The same of lists.
    pub list_bounds: QueueBounds,
    /// Bytes of memory that messages may take.
    pub memory_limit: u64,
    /// Bytes that one reply may show.
    pub reply_bytes_max: usize,
    /// How long a line of senders may stand still.
    pub block_timeout: Nanos,
    /// The server's own scheduler decides when the log is written; else any thread does at any
    /// time.
    pub scheduled: bool,
    /// The machine's clock is set at times, and clients name moments by it.
    pub steps_clock: bool,
    /// All clients are one user, and another one tries what it may not.
    pub has_users: bool,
    /// Defects for tests of the oracle.
    pub defects: ServerDefects,
    /// Print each step.
    pub trace: bool,
}

impl Scenario {
    /// The scenario of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let period = Nanos::from_millis(25);
        let policy = rng.pick(&[
            StorePolicy::Always,
            StorePolicy::Always,
            StorePolicy::Always,
            StorePolicy::Periodic(period),
            StorePolicy::Periodic(period),
            StorePolicy::Never,
            StorePolicy::Memory,
        ]);
        let journal = journal(policy, &mut rng);
        let tight = journal.segment_bytes * rng.between(5, 9);
        let mut scenario = Self {
            seed,
            policy,
            journal,
            clients: rng.between(1, 6),
            amqp_clients: 0,
            redis_clients: 0,
            http_clients: 0,
            pipeline: rng.pick(&[1, 1, 3, 16]),
            steps: rng.between(50, 600),
            faults_per_million: rng.pick(&[0, 0, 0, 500, 5000]),
            faults: FAULTS.to_vec(),
            stalls: false,
            falls_per_thousand: rng.pick(&[0, 3, 10, 30]),
            fall: None,
            quota: rng.chance(3, 4).then_some(tight),
            log_bodies_max: u64::MAX,
            persistences: if rng.chance(1, 3) { MIXED.to_vec() } else { PLAIN.to_vec() },
            named_per_hundred: 0,
            dedup_window: Nanos::from_secs(2),
            dead_letters_max: None,
            bounds: QueueBounds::default(),
            topic_bounds: QueueBounds::default(),
            rules_per_thousand: 0,
            list_bounds: QueueBounds::default(),
            memory_limit: u64::MAX,
            reply_bytes_max: limits::REPLY_BYTES_MAX,
            block_timeout: Nanos::from_secs(30),
            scheduled: false,
            steps_clock: false,
            has_users: Rng::new(seed ^ USERS_SALT).chance(1, 3),
            defects: ServerDefects::default(),
            trace: false,
        };
        // Last, so that those seeds live as before that have no such clients.
        scenario.amqp_clients = rng.pick(&[0, 1, 2, 4]);
        if scenario.amqp_clients > 0 {
            // It is full in some of the scarce lives.
            scenario.quota = None;
            scenario.faults.retain(|fault| *fault != Fault::Full);
        }
        scenario.invite_redis(&mut rng, tight);
        scenario.bound_the_disk(&mut rng, tight);
        scenario.scheduled = rng.coin();
        scenario.steps_clock = rng.chance(1, 3);
        scenario
    }

    /// Some full devices are bounds that the journal knows, of bytes or of files; and in half of
    /// the lives bodies leave memory soon.
    fn bound_the_disk(&mut self, rng: &mut Rng, tight: u64) {
        if self.quota.is_some() && rng.coin() {
            let most = tight.max(self.journal.disk_bytes_min());
            (self.quota, self.journal.disk_bytes_max) = (None, Some(most));
        }
        if rng.coin() {
            self.log_bodies_max = rng.pick(&[0, 0, 4, 32]) * 1024;
            let kib = rng.pick(&[0, 16, 16, 16, 64, 256, 256, 1024]);
            self.journal.spill_bytes_max = kib * 1024;
        }
        if self.journal.disk_bytes_max.is_some() && rng.coin() {
            self.journal.disk_bytes_max = None;
            self.journal.segments_max = Some(SEGMENTS_MIN + rng.pick(&[0, 0, 1, 4]));
        }
    }

    /// The same, and in some of the lives something is scarce, and more than one thing may be:
    ///
    /// * without lists: places in queues in one of four lives, memory in one of five;
    /// * with lists: places there in one of three, memory in one of four, and the bytes that a
    ///   reply shows in half of the others;
    /// * with topics: places in subscriptions in one of four.
    ///
    /// In one of sixteen lives without lists bounds change all the time. Beside clients of AMQP
    /// there may be clients of HTTP, messages that are sent again, and a full device.
    #[must_use]
    pub fn scarce(seed: u64) -> Self {
        let mut scenario = Self::new(seed);
        let mut rng = Rng::new(seed).fork().fork();
        if scenario.redis_clients > 0 {
            if rng.chance(1, 3) {
                scenario.narrow_lists(&mut rng);
            }
            if rng.chance(1, 4) {
                scenario.cramp(&mut rng);
            }
            if !scenario.is_bounded() && scenario.memory_limit == u64::MAX && rng.coin() {
                scenario.reply_bytes_max = rng.pick(&[300, 400, 3_000, 14_000]);
            }
        } else if rng.chance(1, 4) {
            scenario.narrow(&mut rng);
            if rng.chance(1, 4) {
                scenario.cramp(&mut rng);
            }
        } else if rng.chance(1, 4) {
            scenario.cramp(&mut rng);
        }
        if scenario.memory_limit < u64::MAX {
            // Not all that leaves memory is to be in the log.
            scenario.persistences = MIXED.to_vec();
        }
        if scenario.amqp_clients > 0 && rng.chance(1, 4) {
            scenario.narrow_topics(&mut rng);
        }
        if scenario.redis_clients == 0 && rng.chance(1, 16) {
            scenario.invite_operator(&mut rng);
        }
        scenario.invite_http(&mut rng);
        if scenario.amqp_clients > 0 && !scenario.is_bounded() && rng.chance(1, 3) {
            scenario.quota = Some(scenario.journal.segment_bytes * rng.between(5, 9));
            scenario.faults.push(Fault::Full);
        }
        scenario.bound_dead_letters(seed);
        scenario
    }

    /// Memory holds next to nothing.
    pub fn cramp(&mut self, rng: &mut Rng) {
        // A recovery finds memory for the messages by which it is inspected.
        let kib = match (self.amqp_clients, self.redis_clients) {
            (0, 0) => rng.pick(&[16, 24, 48]),
            (0, _) => rng.pick(&[32, 40, 48]),
            _ => rng.pick(&[64, 96]),
        };
        self.memory_limit = kib * 1024;
        // Bodies leave memory only for the sake of the limit.
        self.log_bodies_max = u64::MAX;
        self.journal.spill_bytes_max = rng.pick(&[0, 0, 16, 256]) * 1024;
        self.block_timeout = Nanos::from_millis(rng.pick(&[20, 200, 2000]));
    }

    /// Queues hold next to nothing.
    pub fn narrow(&mut self, rng: &mut Rng) {
        let all = [WhenFull::Block, WhenFull::Reject, WhenFull::DropOldest, WhenFull::DeadLetter];
        self.bound(bounds(rng, &all));
        self.block_timeout = Nanos::from_millis(rng.pick(&[20, 200, 2000]));
    }

    /// Subscriptions of topics hold next to nothing.
    pub fn narrow_topics(&mut self, rng: &mut Rng) {
        self.bound_topics(bounds(rng, &ANY_WAY));
        self.block_timeout = Nanos::from_millis(rng.pick(&[20, 200, 2000]));
    }

    /// An operator gives queues and topics other bounds all the time.
    pub fn invite_operator(&mut self, rng: &mut Rng) {
        self.rules_per_thousand = rng.pick(&[5, 20, 60]);
        self.block_timeout = Nanos::from_millis(rng.pick(&[20, 200, 2000]));
        self.leave_room_to_shed();
    }

    /// In one in eight of the lives with clients of AMQP, and with room, there may be a few dead
    /// letters and no more. Drawn by itself, so that all else is as it was.
    fn bound_dead_letters(&mut self, seed: u64) {
        let mut rng = Rng::new(seed ^ DEAD_LETTERS_SALT);
        if self.amqp_clients > 0 && !self.may_lack_room() && rng.chance(1, 8) {
            self.dead_letters_max = Some(rng.between(1, 5));
        }
    }

    /// Half of the lives with clients of AMQP have clients of HTTP as well. In one of three,
    /// senders name their messages.
    fn invite_http(&mut self, rng: &mut Rng) {
        if self.amqp_clients > 0 {
            self.http_clients = rng.pick(&[0, 0, 1, 3]);
            self.named_per_hundred = rng.pick(&[0, 0, 40]);
        }
    }

    /// One life in four is that of clients of Redis, alone or beside those of beanstalkd.
    fn invite_redis(&mut self, rng: &mut Rng, tight: u64) {
        if !rng.chance(1, 4) {
            return;
        }
        self.redis_clients = rng.between(1, 5);
        self.amqp_clients = 0;
        // Also where clients of AMQP had cleared it: a full device is nothing new to this oracle.
        self.quota = rng.chance(3, 4).then_some(tight);
        if rng.coin() {
            self.clients = 0;
        }
    }

    /// Lists hold next to nothing.
    pub fn narrow_lists(&mut self, rng: &mut Rng) {
        self.bound_lists(bounds(rng, &ANY_WAY));
        self.block_timeout = Nanos::from_millis(rng.pick(&[20, 200, 2000]));
    }

    /// Lists hold no more than that.
    pub fn bound_lists(&mut self, bounds: QueueBounds) {
        self.list_bounds = bounds;
        if bounds.when_full == WhenFull::DeadLetter {
            // Elements that stay for want of room are unknown to the oracle of lists.
            self.have_room();
        }
        self.give_room_to_shed(bounds.of_queue());
    }

    /// Queues hold no more than that.
    pub fn bound(&mut self, bounds: QueueBounds) {
        self.bounds = bounds;
        self.give_room_to_shed(bounds);
    }

    /// Subscriptions of topics hold no more than that.
    pub fn bound_topics(&mut self, bounds: QueueBounds) {
        self.topic_bounds = bounds;
        self.give_room_to_shed(bounds);
    }

    fn give_room_to_shed(&mut self, bounds: QueueBounds) {
        if !bounds.holds_off() {
            self.leave_room_to_shed();
        }
    }

    /// The device is never full.
    pub fn have_room(&mut self) {
        (self.quota, self.journal.disk_bytes_max) = (None, None);
        self.journal.segments_max = None;
        self.faults.retain(|fault| *fault != Fault::Full);
    }

    /// A message without a place leaves with the message that comes: one frame takes both. Commits
    /// are frames, if there are any. Then the device is never full, since the oracle of consumers
    /// does not know a full device.
    fn leave_room_to_shed(&mut self) {
        self.journal.frame_payload_bytes_max = workload::BODY_BYTES_MAX + 8 * 1024;
        if self.amqp_clients > 0 {
            self.have_room();
            self.journal.segment_bytes = LARGE_SEGMENT_BYTES;
            self.journal.frame_payload_bytes_max = LARGE_SEGMENT_BYTES as usize / 4;
        }
    }

    /// The sender's name of a message, if any: one of two names, so that senders repeat it. Mostly
    /// all sends of one name have the same body, else the broker refuses them. A send in a
    /// transaction has no name of which this oracle is unsure: no answer tells if the message was
    /// stored.
    pub(crate) fn draw_send_id(
        &self,
        rng: &mut Rng,
        to: &Destination,
        body: &mut Rc<[u8]>,
        oracle: Option<&Oracle>,
    ) -> Option<Rc<str>> {
        let is_named = self.named_per_hundred > 0 && rng.chance(self.named_per_hundred, 100);
        let name = is_named.then(|| rng.pick(&["first", "second"]))?;
        let is_sure = oracle.is_none_or(|oracle| !oracle.is_unsure_of(to, name));
        if !rng.chance(1, 8) {
            *body = name.as_bytes().into();
        }
        is_sure.then(|| name.into())
    }

    /// The broker's options.
    #[must_use]
    pub fn options(&self) -> BrokerOptions {
        BrokerOptions {
            engine: EngineOptions {
                queue_policies: self.queue_policies(),
                dedup_window: self.dedup_window,
                block_timeout: self.block_timeout,
                reply_bytes_max: self.reply_bytes_max,
                formats: amqp::formats(),
                log_bodies_max: self.log_bodies_max,
                memory_limit: self.memory_limit,
                dead_letters_max: DeadLettersMax {
                    messages: self.dead_letters_max.unwrap_or(u64::MAX),
                    ..DeadLettersMax::default()
                },
                ..EngineOptions::new(self.policy)
            },
            journal: self.journal.clone(),
        }
    }

    /// True if the device is full at times.
    pub(crate) fn may_lack_room(&self) -> bool {
        let is_bounded =
            self.journal.disk_bytes_max.is_some() || self.journal.segments_max.is_some();
        is_bounded
            || self.quota.is_some()
            || self.faults_per_million > 0 && self.faults.contains(&Fault::Full)
    }

    /// True if queues, topics or lists may have bounds.
    #[must_use]
    pub const fn is_bounded(&self) -> bool {
        let bounded = self.bounds.is_bounded() || self.topic_bounds.is_bounded();
        bounded || self.list_bounds.is_bounded() || self.rules_per_thousand > 0
    }

    fn queue_policies(&self) -> QueuePolicies {
        let mut policies = QueuePolicies::default();
        policies.default.max_delivery_attempts = MAX_DELIVERY_ATTEMPTS;
        let default = policies.default;
        let mut name = |name, policy| {
            let name = QueueName::new(name).expect("invariant: a queue's name");
            policies.named.insert(name, policy);
        };
        for queue in workload::QUEUES {
            let goes_back = workload::releases_to_the_back(queue);
            let release_order = if goes_back { ReleaseOrder::Back } else { ReleaseOrder::Front };
            let parks_all = workload::parks_all(queue);
            let dead_letters = if parks_all { DeadLetters::Park } else { default.dead_letters };
            let (bounds, redelivery) = (self.bounds, workload::redelivery(queue));
            let own = QueuePolicy { release_order, dead_letters, redelivery, ..default };
            name(queue, QueuePolicy { bounds, ..own });
        }
        for topic in registration::TOPICS {
            name(topic, QueuePolicy { bounds: self.topic_bounds, ..default });
        }
        for list in redis_workload::LISTS {
            let pop_lease = keyspace::is_protected(list).then_some(keyspace::POP_LEASE);
            name(list, QueuePolicy { pop_lease, bounds: self.list_bounds, ..default });
        }
        policies
    }

    /// Within this time something happens for each client that waits, except for one that waits for
    /// a message.
    #[must_use]
    pub fn patience(&self) -> Nanos {
        let has_lines = self.is_bounded() || self.memory_limit < u64::MAX;
        let line = if has_lines { self.block_timeout } else { Nanos::ZERO };
        line.max(Nanos::from_millis(300))
    }

    /// How late a periodic sync may be: a write under way, then the sync itself, and a step. One of
    /// them may be slow.
    #[must_use]
    pub fn lag(&self) -> Nanos {
        let stall = if self.stalls { FaultyDisk::STALL } else { Nanos::ZERO };
        Nanos::from_millis(100) + stall
    }
}

/// Makes the draw of users another one than all others.
const USERS_SALT: u64 = 0x5553_4552;

/// Makes other draws of a seed.
const DEAD_LETTERS_SALT: u64 = 0x6465_6164;

/// Some bounds, so narrow that they are always met.
fn bounds(rng: &mut Rng, all: &[WhenFull]) -> QueueBounds {
    let messages_max = rng.pick(&[None, Some(1), Some(2), Some(5), Some(20)]);
    let bytes_max = rng.pick(&[None, None, Some(100), Some(600), Some(6000)]);
    let target_age = rng.chance(1, 4).then(|| Nanos::from_millis(rng.pick(&[50, 1000])));
    let bounds = QueueBounds { messages_max, bytes_max, when_full: rng.pick(all), target_age };
    let bounds =
        if bounds.holds_off() { bounds } else { QueueBounds { target_age: None, ..bounds } };
    if bounds.is_bounded() { bounds } else { QueueBounds { messages_max: Some(3), ..bounds } }
}

/// Sizes so small that segments roll, snapshots are taken and space is reclaimed all the time.
fn journal(policy: StorePolicy, rng: &mut Rng) -> JournalOptions {
    let mut options = JournalOptions::new(policy);
    options.frame_payload_bytes_max = workload::BODY_BYTES_MAX + 1024;
    options.segment_bytes = rng.pick(&[64, 64, 96, 256]) * 1024;
    options.extent_bytes = rng.pick(&[8, 16, 32]) * 1024;
    options.reserve_bytes = rng.pick(&[32, 64]) * 1024;
    options.batch_bytes = rng.pick(&[16, 16, 64]) * 1024;
    options
}

/// All ways to treat a message that does not fit.
pub(crate) const ANY_WAY: [WhenFull; 6] = [
    WhenFull::Block,
    WhenFull::Block,
    WhenFull::Reject,
    WhenFull::DropOldest,
    WhenFull::DeadLetter,
    WhenFull::Disconnect,
];

/// So large that commits of the workload are frames.
const LARGE_SEGMENT_BYTES: u64 = 512 * 1024;

/// The only persistence of senders by a protocol that offers no choice.
const PLAIN: [Persistence; 1] = [Persistence::Persistent];

/// Messages of all levels in one store.
const MIXED: [Persistence; 7] = [
    Persistence::Persistent,
    Persistence::Persistent,
    Persistence::NonPersistent,
    Persistence::NonPersistent,
    Persistence::Exactly(Durability::None),
    Persistence::Exactly(Durability::Written),
    Persistence::Exactly(Durability::Synced),
];

/// Everything that can go wrong in a call.
const FAULTS: [Fault; 6] = [
    Fault::Io,
    Fault::Full,
    Fault::Short,
    Fault::Crash(Moment::Before),
    Fault::Crash(Moment::During),
    Fault::Crash(Moment::After),
];
