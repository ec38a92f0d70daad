//! Random commands on streams and their groups. All the while snapshots are taken in small steps,
//! and now and then the log ends somewhere and all else is lost: then every stream is described as
//! it was there. That the answers are right is shown against Redis, in the crate of its protocol.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{
    ClaimTime, ClaimedAs, ClockLead, Command, GroupName, GroupStart, KeyCommand, Nanos,
    NewStreamId, QueueName, ReadPlace, Refusal, Reply, SetRule, StorePolicy, StreamClaim,
    StreamCommand, StreamDescription, StreamId, StreamKept, StreamRange, StreamRead, StreamReader,
    StreamReply, StreamTrim, ValueDeadline,
};
use testkit::{Rng, Seen, seeds};

use crate::support::crashing::Crashing;

const NAMES: [&str; 3] = ["a", "b", "c"];
const GROUPS: [&str; 3] = ["g", "h", ""];
const CONSUMERS: [&str; 3] = ["alice", "bob", ""];
const STEPS: usize = 1_000;
const SEEDS: u64 = 30;

type Picture = BTreeMap<&'static str, StreamDescription>;

struct World {
    rng: Rng,
    engine: Crashing<Picture>,
    now: u64,
    seen: Seen,
}

/// Events that must have happened often enough for the test to mean something.
const EXPECTED: [&str; 9] = [
    "a new entry",
    "entries for a group",
    "entries once more",
    "claimed entries",
    "an entry that is pending and gone",
    "a group is gone",
    "a batch",
    "crash",
    "fuzzy snapshot",
];

#[test]
fn streams_are_what_the_log_says() {
    let mut seen = Seen::default();
    for seed in seeds(SEEDS) {
        let policies = [StorePolicy::Always, StorePolicy::Never, StorePolicy::Memory];
        let mut world = World::new(seed, policies[(seed % 3) as usize]);
        (0..STEPS).for_each(|_| world.step());
        seen.merge(world.seen);
    }
    seen.expect_only(&EXPECTED, 15);
}

impl World {
    fn new(seed: u64, policy: StorePolicy) -> Self {
        let engine = Crashing::new(policy, &Picture::new());
        Self { rng: Rng::new(seed), engine, now: 1_000_000, seen: Seen::default() }
    }

    fn step(&mut self) {
        self.now += self.rng.below(3_000_000);
        match self.rng.below(60) {
            0 if self.engine.is_kept() => self.crash(),
            1 => self.engine.begin_snapshot(),
            2..12 => {
                if self.engine.go_on_with_snapshot() {
                    self.seen.saw("fuzzy snapshot");
                }
            }
            12..16 => while self.engine.do_due(self.now) {},
            16..20 => {
                let commands = (0..self.rng.below(6)).map(|_| self.command()).collect();
                let reply = self.engine.ask(self.now, Command::Batch { commands });
                assert!(matches!(reply, Reply::Batch(_)), "{reply:?}");
                self.seen.saw("a batch");
            }
            _ => {
                let command = self.command();
                let reply = self.engine.ask(self.now, command);
                self.note(&reply);
            }
        }
        let picture = self.picture();
        self.engine.end_step(&picture);
    }

    fn note(&mut self, reply: &Reply) {
        let Reply::Stream(reply) = reply else { return };
        match &**reply {
            StreamReply::Id(_) => self.seen.saw("a new entry"),
            StreamReply::Claimed { removed, .. } if !removed.is_empty() => {
                self.seen.saw("an entry that is pending and gone");
            }
            StreamReply::Claimed { entries, .. } if !entries.is_empty() => {
                self.seen.saw("claimed entries");
            }
            _ => {}
        }
    }

    fn crash(&mut self) {
        let expected = self.engine.crash(&mut self.rng);
        let found = self.picture();
        assert_eq!(found, expected, "streams after the log has ended");
        self.engine.begin_anew(&expected);
        self.seen.saw("crash");
    }

    /// All streams, but for the times that the log does not have.
    fn picture(&mut self) -> Picture {
        let mut picture = Picture::new();
        for key in NAMES {
            let describe = StreamCommand::Describe { name: name(key), whole: Some(0) };
            let reply = match self.engine.ask(self.now, describe.into()) {
                Reply::Stream(reply) => *reply,
                Reply::NotFound | Reply::Refused(Refusal::WrongKind) => continue,
                other => panic!("{other:?}"),
            };
            let StreamReply::Stream(mut stream) = reply else { panic!("{reply:?}") };
            for group in stream.groups.iter_mut().flatten() {
                for consumer in &mut group.consumers {
                    (consumer.seen, consumer.idle, consumer.inactive) = (Nanos(0), Nanos(0), None);
                    consumer.pending.iter_mut().for_each(|entry| entry.idle = Nanos(0));
                }
                group.pending.iter_mut().for_each(|entry| entry.idle = Nanos(0));
            }
            picture.insert(key, stream);
        }
        picture
    }

    fn command(&mut self) -> Command {
        let key = self.rng.pick(&NAMES);
        match self.rng.below(40) {
            0 => Command::Key(KeyCommand::Delete { names: vec![name(key)] }),
            1 => {
                let (from, to) = (name(key), name(self.rng.pick(&NAMES)));
                Command::Key(KeyCommand::Rename { from, to, only_new: false })
            }
            2 if self.rng.one_in(4) => Command::Key(KeyCommand::SetValue {
                name: name(key),
                value: b"x"[..].into(),
                deadline: ValueDeadline::Never,
                rule: SetRule::Always,
                want_old: false,
            }),
            3..20 => self.entry_command(key).into(),
            _ => self.group_command(key).into(),
        }
    }

    fn entry_command(&mut self, key: &str) -> StreamCommand {
        let name = name(key);
        match self.rng.below(8) {
            0..5 => {
                let id = match self.rng.below(4) {
                    0 => NewStreamId::Given(self.id()),
                    1 => NewStreamId::InMillisecond(self.rng.below(20)),
                    _ => NewStreamId::Next,
                };
                let bytes = if self.rng.one_in(10) { 2_000 } else { self.rng.below(20) };
                let value: Arc<[u8]> = vec![b'v'; bytes as usize].into();
                let fields = (0..=self.rng.below(3)).map(|_| (b"f"[..].into(), value.clone()));
                let fields = fields.collect();
                let trim = self.rng.one_in(4).then(|| self.trim());
                let only_existing = self.rng.one_in(5);
                let lead = ClockLead::default();
                StreamCommand::Append { name, id, fields, trim, only_existing, lead }
            }
            5 => StreamCommand::Trim { name, trim: self.trim() },
            6 => StreamCommand::Remove { name, ids: self.ids() },
            _ => {
                let last = StreamId::new(self.now, 0);
                StreamCommand::SetLast { name, last, added: None, removed: None }
            }
        }
    }

    fn group_command(&mut self, key: &str) -> StreamCommand {
        let of = GroupName { stream: name(key), group: text(self.rng.pick(&GROUPS)) };
        let consumer = text(self.rng.pick(&CONSUMERS));
        match self.rng.below(24) {
            0..5 => {
                let last = self.rng.one_in(2).then_some(StreamId::ZERO);
                let start = GroupStart { last, read: self.rng.one_in(2).then_some(0) };
                StreamCommand::CreateGroup { of, start, makes_stream: true }
            }
            5 => {
                let start = GroupStart { last: Some(self.id()), read: None };
                StreamCommand::SetGroup { of, start }
            }
            6 if self.rng.one_in(3) => {
                self.seen.saw("a group is gone");
                StreamCommand::RemoveGroup { of }
            }
            7 => StreamCommand::CreateConsumer { of, consumer },
            8 if self.rng.one_in(3) => StreamCommand::RemoveConsumer { of, consumer },
            9..11 => StreamCommand::Acknowledge { of, ids: self.ids() },
            11..17 => {
                let acknowledges = !self.rng.one_in(4);
                let reader = Some(StreamReader { group: of.group, consumer, acknowledges });
                let places = (0..=self.rng.below(2)).map(|_| {
                    let is_new = !self.rng.one_in(4);
                    let place = if is_new { ReadPlace::New } else { ReadPlace::Behind(self.id()) };
                    let kind = if is_new { "entries for a group" } else { "entries once more" };
                    self.seen.saw(kind);
                    (name(self.rng.pick(&NAMES)), place)
                });
                let places = places.collect();
                let max = Some(1 + self.rng.below(4));
                StreamCommand::Read(StreamRead { reader, places, max, wait: Some(Nanos::ZERO) })
            }
            17..20 => {
                let claim = self.claim(of, consumer);
                let delivered = match self.rng.below(3) {
                    0 => None,
                    1 => Some(ClaimTime::Ago(Nanos(self.rng.below(1_000)))),
                    _ => Some(ClaimTime::At(Nanos(self.rng.below(2 * self.now)))),
                };
                let count = self.rng.one_in(2).then_some(3);
                let last = if self.rng.one_in(3) { self.id() } else { StreamId::ZERO };
                let also_free = self.rng.one_in(2);
                let claimed = ClaimedAs { delivered, count, also_free, last };
                StreamCommand::Claim { claim, ids: self.ids(), claimed }
            }
            20..22 => {
                let (claim, from) = (self.claim(of, consumer), StreamId::ZERO);
                StreamCommand::ClaimNext { claim, from, max: 1 + self.rng.below(4) }
            }
            22 => StreamCommand::CountPending { of },
            _ => {
                let range = StreamRange { first: self.id(), last: self.id(), max: Some(3) };
                let consumer = self.rng.one_in(2).then_some(consumer);
                StreamCommand::ShowPending { of, range, consumer, min_idle: Nanos(0) }
            }
        }
    }

    fn claim(&mut self, of: GroupName, consumer: Arc<[u8]>) -> StreamClaim {
        let (min_idle, only_ids) = (Nanos(self.rng.below(2_000_000)), self.rng.one_in(3));
        StreamClaim { of, consumer, min_idle, only_ids }
    }

    fn trim(&mut self) -> StreamTrim {
        let max = self.rng.one_in(3).then(|| 1 + self.rng.below(3));
        let keep = match self.rng.below(2) {
            0 => StreamKept::Last(self.rng.below(12)),
            _ => StreamKept::From(self.id()),
        };
        StreamTrim { keep, max }
    }

    /// Mostly of an entry that is there: ids are milliseconds of a young clock.
    fn id(&mut self) -> StreamId {
        let now = Nanos(self.now).as_millis();
        StreamId::new(now.saturating_sub(self.rng.below(30)), self.rng.below(2))
    }

    fn ids(&mut self) -> Vec<StreamId> {
        (0..=self.rng.below(12)).map(|_| self.id()).collect()
    }
}

fn name(text: &str) -> QueueName {
    QueueName::new(text).unwrap()
}

fn text(text: &str) -> Arc<[u8]> {
    text.as_bytes().into()
}
