//! Rules that are given and taken away at random, with senders in between, against a plain map. A
//! crash leaves any number of frames, with a snapshot from any time before or without one. Then the
//! rules are those of these frames, and the queues obey them.

use std::collections::BTreeMap;

use engine::{Effects, Engine, EngineOptions, QueueBounds, QueuePolicies, QueuePolicy, WhenFull};
use model::{
    AdminCommand, Capacity, Command, Destination, Lsn, Nanos, NewMessage, OwnPolicy, PolicyChange,
    QueueName, QueueRule, Refusal, ReleaseOrder, Reply, RuleKey, SessionId, StatedPolicy,
    StorePolicy, Thousandths,
};
use testkit::{Rng, Seen, seeds};

use crate::support::log::{Log, Snapshot};

const BY: SessionId = SessionId(1);
const QUEUES: [&str; 4] = ["a", "b", "named", "unused"];
const STEPS: usize = 400;

type Rules = BTreeMap<QueueName, OwnPolicy>;

struct World {
    rng: Rng,
    now: Nanos,
    engine: Engine,
    effects: Effects,
    log: Log,
    snapshot: Option<Snapshot>,
    rules: Rules,
    /// The rules as they were after each frame.
    history: BTreeMap<Lsn, Rules>,
    seen: Seen,
}

#[test]
fn policies_match_frames_left_by_crash() {
    let mut seen = Seen::default();
    for seed in seeds(60) {
        let mut world = World::new(Rng::new(seed));
        (0..STEPS).for_each(|_| world.step());
        seen.merge(world.seen);
    }
    let rare = ["given", "same", "taken away", "at odds", "cut", "by snapshot", "stored", "full"];
    seen.expect(&rare, 51);
}

impl World {
    fn new(rng: Rng) -> Self {
        let mut engine = Engine::new(options());
        crate::support::users::open(&mut engine, BY);
        Self {
            rng,
            now: Nanos::SECOND,
            engine,
            effects: Effects::default(),
            log: Log::default(),
            snapshot: None,
            rules: Rules::new(),
            history: BTreeMap::from([(Lsn::ZERO, Rules::new())]),
            seen: Seen::default(),
        }
    }

    fn step(&mut self) {
        match self.rng.below(16) {
            0..5 => self.change(),
            5..11 => self.put(),
            11 => {
                let queue = self.queue();
                self.ask(Command::Admin(Box::new(AdminCommand::Delete { queue })));
            }
            12 if self.snapshot.is_none() => self.snapshot = Some(Snapshot::begin(&self.engine, 1)),
            13 => {
                let queue = self.queue();
                self.check_rules(&queue);
            }
            14 if self.rng.one_in(4) => self.crash(),
            _ => self.now = self.now + Nanos::from_millis(self.rng.below(500)),
        }
        if let Some(snapshot) = self.snapshot.as_mut().filter(|snapshot| snapshot.end.is_none()) {
            snapshot.step(&self.engine);
        }
        self.pass_time();
        self.engine.check();
    }

    fn queue(&mut self) -> QueueName {
        name(self.rng.pick(&QUEUES))
    }

    fn rule(&mut self) -> QueueRule {
        let number = self.rng.one_in(4).then_some(1 + self.rng.below(3));
        match self.rng.below(7) {
            0 => QueueRule::ReleaseOrder(ReleaseOrder::Back),
            1 => QueueRule::MaxDeliveryAttempts(self.rng.below(3) as u32),
            2 | 3 => QueueRule::MessagesMax(number.or(Some(2))),
            4 => QueueRule::BytesMax(number.map(|number| 8 * number)),
            5 => QueueRule::WhenFull(self.rng.pick(&[
                WhenFull::Reject,
                WhenFull::DropOldest,
                WhenFull::DeadLetter,
            ])),
            _ => QueueRule::TargetAge(number.map(Nanos::from_secs)),
        }
    }

    fn redelivery_rule(&mut self) -> QueueRule {
        let span = self.rng.one_in(4).then_some(Nanos::SECOND);
        let number = self.rng.below(1_001) as u32;
        match self.rng.below(4) {
            0 => QueueRule::RedeliveryDelay(span),
            1 => QueueRule::RedeliveryFactor(Thousandths(1_000 + number)),
            2 => QueueRule::RedeliveryMax(span),
            _ => QueueRule::RedeliveryJitter(Thousandths(number)),
        }
    }

    fn change(&mut self) {
        let queue = self.queue();
        let before = self.rules.get(&queue).copied().unwrap_or_default();
        let change = if self.rng.one_in(5) {
            PolicyChange::to(OwnPolicy::default())
        } else {
            let mut set = OwnPolicy::default();
            (0..self.rng.below(3)).for_each(|_| set.set(self.rule()));
            if self.rng.one_in(4) {
                set.set(self.redelivery_rule());
            }
            let forget =
                if self.rng.one_in(3) { vec![self.rng.pick(&RuleKey::ALL)] } else { vec![] };
            PolicyChange { forget, set }
        };
        let own = change.applied_to(before);
        let is_at_odds = own.over(configured(&queue)).bounds.are_at_odds();
        let is_refused = is_at_odds && own != before && !own.is_empty();
        let change = Box::new(change);
        let frames = self.log.frames.len();
        if !is_refused {
            self.rules.retain(|name, _| *name != queue);
            self.rules.extend((!own.is_empty()).then_some((queue.clone(), own)));
        }
        let change = AdminCommand::ChangePolicy { queue: queue.clone(), change };
        let reply = self.ask(Command::Admin(Box::new(change)));
        if is_refused {
            assert_eq!(reply, Reply::Refused(Refusal::PolicyAtOdds));
            return self.seen.saw("at odds");
        }
        assert_eq!(reply, Reply::Policy(Box::new(stated(&queue, own))));
        let is_recorded = self.log.frames.len() > frames;
        assert_eq!(is_recorded, own != before, "what changes is a record");
        self.seen.saw(match own {
            own if own == before => "same",
            own if own.is_empty() => "taken away",
            _ => "given",
        });
    }

    /// A refused send exceeds a bound that holds now.
    fn put(&mut self) {
        let queue = self.queue();
        let own = self.rules.get(&queue).copied().unwrap_or_default();
        let bounds = own.over(configured(&queue)).bounds;
        let message = NewMessage::new(vec![0; 1 + self.rng.below(12) as usize].into());
        let to = Destination::Queue(queue);
        match self.ask(Command::PutTo { to, message, transaction: None }) {
            Reply::Refused(Refusal::QueueFull(_)) => {
                assert!(bounds.is_bounded());
                self.seen.saw("full");
            }
            Reply::Waits { .. } => assert!(bounds.is_bounded(), "who waits has what to wait for"),
            Reply::Stored { .. } => self.seen.saw("stored"),
            other => panic!("{other:?}"),
        }
    }

    /// Some of the last frames are gone, and the snapshot if it needs them.
    fn crash(&mut self) {
        let lost = self.rng.below(4).min(self.log.frames.len() as u64) as usize;
        let frames = self.log.frames.len() - lost;
        let last = Lsn(frames as u64);
        let whole = self.snapshot.take().filter(|it| it.end.is_some_and(|end| end <= last));
        let snapshot = whole.filter(|_| !self.rng.one_in(3));
        self.log = self.log.cut(frames);
        self.engine = self.log.recover(options(), snapshot.as_ref());
        self.log.adopt(&self.engine);
        crate::support::users::open(&mut self.engine, BY);
        self.engine.check();
        self.history.retain(|lsn, _| *lsn <= last);
        self.rules = self.history.last_key_value().unwrap().1.clone();
        for queue in QUEUES {
            self.check_rules(&name(queue));
        }
        let all = AdminCommand::ListPolicies { after: None, max: usize::MAX };
        let Reply::OwnPolicies(all) = self.ask(Command::Admin(Box::new(all))) else { panic!() };
        let all: Rules = all.into_iter().map(|(name, own)| (name, *own)).collect();
        assert_eq!(all, self.rules);
        self.seen.saw(if snapshot.is_some() { "by snapshot" } else { "cut" });
    }

    fn check_rules(&mut self, queue: &QueueName) {
        let own = self.rules.get(queue).copied().unwrap_or_default();
        let reply =
            self.ask(Command::Admin(Box::new(AdminCommand::Policy { queue: queue.clone() })));
        assert_eq!(reply, Reply::Policy(Box::new(stated(queue, own))));
    }

    fn ask(&mut self, command: Command) -> Reply {
        self.engine.handle(self.now, BY, command, Capacity::UNBOUNDED, &mut self.effects);
        let reply = self.effects.outputs.remove(0).reply;
        self.absorb();
        reply
    }

    fn pass_time(&mut self) {
        while self.engine.poll_timeout().is_some_and(|at| at <= self.now) {
            self.engine.handle_timeout(self.now, Capacity::UNBOUNDED, &mut self.effects);
            self.absorb();
        }
    }

    fn absorb(&mut self) {
        self.log.absorb(&self.effects);
        self.effects.clear();
        self.history.insert(Lsn(self.log.frames.len() as u64), self.rules.clone());
    }
}

fn stated(queue: &QueueName, own: OwnPolicy) -> StatedPolicy {
    let configured = configured(queue);
    StatedPolicy { holds: own.over(configured), own, configured }
}

fn configured(queue: &QueueName) -> QueuePolicy {
    options().queue_policies.of(queue)
}

fn options() -> EngineOptions {
    let bounds = QueueBounds { messages_max: Some(3), ..QueueBounds::default() };
    let policy = QueuePolicy { bounds, ..QueuePolicy::default() };
    let named = [(name("named"), policy)].into();
    let queue_policies = QueuePolicies { named, ..QueuePolicies::default() };
    let options = EngineOptions::new(StorePolicy::Always);
    EngineOptions { queue_policies, block_timeout: Nanos::SECOND, ..options }
}

fn name(text: &str) -> QueueName {
    QueueName::new(text).unwrap()
}
