//! The most work of a turn, and the sessions it is for: counted in steps, without a clock.

use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use amqp::frame::{self, FrameKind};
use amqp::performative::{Attach, Begin, Disposition, Flow, Open, Performative, Role};
use amqp::protocol_header::ProtocolHeader;
use amqp::state::{DeliveryState, Outcome};
use amqp::terminus::Source;
use broker::IDLE_WRITE_DELAY;
use engine::{QueuePolicies, QueuePolicy};
use model::StorePolicy;

use super::*;
use crate::config::Protocol;
use crate::connection_permits::{Exit, Origin};
use crate::events::EventSet;
use crate::mailbox::Arrival;
use crate::reactor::READ_BYTES_PER_TURN;
use crate::test_harness::{fresh_hub, journal_hub, run_chores, write_all, write_handed};
use crate::{Config, Limits, Logger};

/// One reactor of a broker in memory. The test takes its turns.
struct Turns<'a> {
    reactor: Reactor<'a>,
}

struct Client {
    socket: UnixStream,
}

fn hub() -> Hub {
    hub_with(Limits::default())
}

fn hub_with(limits: Limits) -> Hub {
    hub_of(Config { limits, ..Config::default() })
}

fn hub_of(config: Config) -> Hub {
    let (policy, log) = (StorePolicy::Memory, Logger::Quiet);
    let config = Config { policy, threads: 1, log, ..config };
    crate::server::build(&config, None).unwrap()
}

impl<'a> Turns<'a> {
    fn new(hub: &'a Hub) -> Self {
        let event_set = EventSet::new(hub.mailbox(0).event().unwrap()).unwrap();
        Self { reactor: Reactor::new(hub, 0, event_set, None) }
    }

    fn connect(&mut self) -> Client {
        self.connect_by(Protocol::Beanstalkd)
    }

    fn connect_by(&mut self, protocol: Protocol) -> Client {
        let (socket, theirs) = UnixStream::pair().unwrap();
        socket.set_nonblocking(true).unwrap();
        theirs.set_nonblocking(true).unwrap();
        let hub = self.reactor.hub;
        let theirs = Arc::new(OwnedFd::from(theirs));
        let exit = Exit::Socket(Arc::downgrade(&theirs));
        let permit = hub.permits.admit(Origin::Local, exit, false).unwrap().permit;
        hub.mailbox(0).deliver(Arrival {
            client: crate::client::Client::new(theirs, model::Introduction::Unknown),
            protocol,
            tls: None,
            offer: None,
            permit,
            since: hub.clock.now(),
        });
        self.turn();
        Client { socket }
    }

    /// Takes a turn; something must be there to do. Gives the steps that it took.
    fn turn(&mut self) -> u64 {
        let before = self.reactor.hub.lock().broker.steps();
        self.reactor.turn().unwrap();
        self.reactor.hub.lock().broker.steps() - before
    }

    fn is_busy(&self) -> bool {
        !self.reactor.lists.attention.is_empty() || self.reactor.lists.have_leaving()
    }

    /// Takes turns until all that was sent is answered.
    fn run_until_idle(&mut self) {
        self.turn();
        while self.is_busy() {
            self.turn();
        }
    }

    /// Takes a turn whether or not there is something to do.
    fn turn_if_any(&mut self) {
        self.reactor.hub.mailbox(0).notify_mail();
        self.turn();
    }

    fn open(&self) -> usize {
        self.reactor.hub.permits.open()
    }
}

impl Client {
    fn send(&mut self, commands: &str) {
        self.socket.write_all(commands.as_bytes()).unwrap();
    }

    /// The lines that have come since the last call.
    fn lines(&mut self) -> Vec<String> {
        let mut bytes = vec![0; 1 << 20];
        let count = self.socket.read(&mut bytes).unwrap_or(0);
        String::from_utf8_lossy(&bytes[..count]).lines().map(str::to_owned).collect()
    }

    /// Watches so many tubes more, in turns that are taken on the way.
    fn watch(&mut self, turns: &mut Turns<'_>, count: usize) {
        for chunk in (0..count).collect::<Vec<_>>().chunks(1_000) {
            let commands: String =
                chunk.iter().map(|index| format!("watch t{index}\r\n")).collect();
            self.send(&commands);
            turns.run_until_idle();
            assert_eq!(self.lines().len(), chunk.len());
        }
    }
}

const PUT: &str = "put 0 0 60 1\r\nx\r\n";

#[test]
fn reserve_from_many_tubes_stays_fair() {
    const WATCHED: usize = 9_999;
    let hub = hub();
    let mut turns = Turns::new(&hub);
    let (mut greedy, mut other) = (turns.connect(), turns.connect());
    greedy.watch(&mut turns, WATCHED);
    greedy.send(&"reserve-with-timeout 0\r\n".repeat(200));
    let mut answered = 0;
    for asked in 1..=50 {
        other.send(PUT);
        let steps = turns.turn();
        assert_eq!(other.lines(), [format!("INSERTED {asked}")], "in the turn in which it asked");
        assert!(steps < 3 * WATCHED as u64, "{steps} steps in a turn");
        answered += greedy.lines().len();
    }
    assert!((50..=150).contains(&answered), "a reserve a turn, with its body: {answered} lines");
}

#[test]
fn skipped_connections_come_first_next_turn() {
    const CLIENTS: usize = 60;
    let per_turn = (STEPS_PER_TURN / STEPS_PER_CONNECTION) as usize;
    let hub = hub();
    let mut turns = Turns::new(&hub);
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| turns.connect()).collect();
    for client in &mut clients {
        client.send(&PUT.repeat(2_000));
    }
    let mut rounds = vec![0; CLIENTS];
    for turn in 1..=2 * CLIENTS.div_ceil(per_turn) {
        let steps = turns.turn();
        assert!(steps <= STEPS_PER_TURN + 17, "{steps} steps in a turn");
        for (client, rounds) in clients.iter_mut().zip(&mut rounds) {
            *rounds += usize::from(!client.lines().is_empty());
        }
        let (least, most) = (rounds.iter().min().unwrap(), rounds.iter().max().unwrap());
        assert!(most - least <= 1, "everybody once before anybody twice, in turn {turn}");
    }
    assert!(rounds.iter().all(|rounds| *rounds >= 2), "{rounds:?}");
}

#[test]
fn closing_connections_do_not_delay_others() {
    const LEAVING: usize = 40;
    const WATCHED: usize = 2_000;
    let hub = hub();
    let mut turns = Turns::new(&hub);
    let mut leaving: Vec<_> = (0..LEAVING).map(|_| turns.connect()).collect();
    for client in &mut leaving {
        client.watch(&mut turns, WATCHED);
    }
    let mut staying = turns.connect();
    drop(leaving);
    let mut count = 0;
    while turns.open() > 1 {
        staying.send(PUT);
        let steps = turns.turn();
        assert_eq!(staying.lines().len(), 1, "answered in the turn in which it asked");
        assert!(steps < CLOSING_STEPS_PER_TURN + 2 * WATCHED as u64, "{steps} steps in a turn");
        count += 1;
    }
    let least = (LEAVING * WATCHED) as u64 / (CLOSING_STEPS_PER_TURN + WATCHED as u64);
    assert!(count > least, "{count} turns");
}

#[test]
fn connections_closing_together_fail_message_once() {
    const GONE: usize = 40;
    let default = QueuePolicy { max_delivery_attempts: 2, ..QueuePolicy::default() };
    let queues = QueuePolicies { default, ..QueuePolicies::default() };
    let hub = hub_of(Config { queues, ..Config::default() });
    let mut turns = Turns::new(&hub);
    let mut gone: Vec<_> = (0..GONE).map(|_| turns.connect_by(Protocol::Amqp)).collect();
    for client in &mut gone {
        client.socket.write_all(&consumer("default")).unwrap();
        turns.run_until_idle();
    }
    let mut other = turns.connect();
    other.send(PUT);
    turns.run_until_idle();
    let reserved = |other: &mut Client, turns: &mut Turns<'_>| {
        other.send("stats-tube default\r\n");
        turns.run_until_idle();
        let lines = other.lines();
        ["reserved", "ready"].map(|state| lines.contains(&format!("current-jobs-{state}: 1")))
    };
    assert_eq!(reserved(&mut other, &mut turns), [true, false], "one of them has it");
    gone.into_iter().rev().for_each(drop);
    while turns.open() > 1 {
        turns.turn();
    }
    assert_eq!(reserved(&mut other, &mut turns), [false, true], "it failed once, not twice");
}

#[test]
fn blocking_pops_queue_in_arrival_order() {
    let hub = hub();
    let mut turns = Turns::new(&hub);
    let mut clients: Vec<_> = (0..6).map(|_| turns.connect_by(Protocol::Redis)).collect();
    let mut pusher = turns.connect_by(Protocol::Redis);
    for client in &mut clients {
        client.send("BLPOP k 0\r\n");
    }
    turns.turn();
    for index in 0..clients.len() {
        pusher.send(&format!("RPUSH k {index}\r\n"));
        turns.run_until_idle();
    }
    for (index, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.lines(), ["*2", "$1", "k", "$1", &index.to_string()]);
    }
}

#[test]
fn amqp_consumers_queue_in_arrival_order() {
    let hub = hub();
    let mut turns = Turns::new(&hub);
    let mut clients: Vec<_> = (0..6).map(|_| turns.connect_by(Protocol::Amqp)).collect();
    turns.run_until_idle();
    for client in &mut clients {
        client.socket.write_all(&consumer("default")).unwrap();
    }
    let mut other = turns.connect();
    other.send("put 0 0 60 7\r\nfor one\r\n");
    turns.run_until_idle();
    let texts: Vec<_> = clients.iter_mut().map(|client| client.lines().concat()).collect();
    let got: Vec<_> = texts.iter().map(|text| text.contains("for one")).collect();
    assert_eq!(got, [true, false, false, false, false, false]);
}

#[test]
fn closed_connections_are_not_counted() {
    let hub = hub();
    let mut turns = Turns::new(&hub);
    let mut first = turns.connect_by(Protocol::Redis);
    let (second, third) = (turns.connect(), turns.connect());
    let mut asking = turns.connect();
    asking.send("stats\r\n");
    turns.run_until_idle();
    assert!(asking.lines().contains(&"current-connections: 3".to_owned()));
    drop(second);
    asking.send("stats\r\n");
    drop(third);
    turns.turn();
    assert!(asking.lines().contains(&"current-connections: 1".to_owned()));
    let mut gone = turns.connect();
    gone.send("quit\r\n");
    asking.send("stats\r\n");
    turns.turn();
    assert!(asking.lines().contains(&"current-connections: 1".to_owned()), "not one that quit");
    drop(turns.connect_by(Protocol::Redis));
    first.send("INFO clients\r\n");
    turns.turn();
    assert!(first.lines().contains(&"connected_clients:1".to_owned()));
}

#[test]
fn ended_subscriptions_are_not_published_to() {
    let hub = hub();
    let mut turns = Turns::new(&hub);
    let mut leaving = turns.connect_by(Protocol::Redis);
    let mut closing = turns.connect_by(Protocol::Redis);
    let mut publisher = turns.connect_by(Protocol::Redis);
    for client in [&mut leaving, &mut closing] {
        client.send("SUBSCRIBE news\r\n");
    }
    turns.run_until_idle();
    publisher.send("PUBLISH news a\r\n");
    turns.run_until_idle();
    assert_eq!(publisher.lines(), [":2"]);
    leaving.send("UNSUBSCRIBE news\r\n");
    publisher.send("PUBLISH news b\r\n");
    drop(closing);
    turns.turn();
    assert_eq!(publisher.lines(), [":0"]);
}

#[test]
fn held_jobs_return_before_later_commands() {
    let hub = hub();
    let mut turns = Turns::new(&hub);
    let mut worker = turns.connect();
    worker.send(&format!("{PUT}reserve\r\n"));
    turns.run_until_idle();
    let mut other = turns.connect();
    drop(worker);
    other.send("reserve-with-timeout 0\r\n");
    turns.turn();
    assert_eq!(other.lines(), ["RESERVED 1 1", "x"]);
}

/// The bytes of an AMQP client that wants a hundred messages.
fn consumer(queue: &str) -> Vec<u8> {
    let mut out = ProtocolHeader::AMQP.encode().to_vec();
    let source = Source { address: Some(queue.into()), ..Source::default() };
    let attach = Attach { source: Some(source), ..Attach::new("consumer", 0, Role::Receiver) };
    let flow = Flow {
        incoming_window: 100,
        handle: Some(0),
        delivery_count: Some(0),
        link_credit: Some(100),
        ..Flow::default()
    };
    for performative in [
        Performative::Open(Box::new(Open::new("client"))),
        Performative::Begin(Box::new(Begin { incoming_window: 100, ..Begin::default() })),
        Performative::Attach(Box::new(attach)),
        Performative::Flow(flow),
    ] {
        frame::write(&mut out, FrameKind::Amqp, 0, |out| performative.encode(out));
    }
    out
}

/// The bytes of a client that accepts a message, and asks for no answer.
fn acceptance(delivery: u32) -> Vec<u8> {
    let mut out = Vec::new();
    let disposition = Performative::Disposition(Disposition {
        role: Role::Receiver,
        first: delivery,
        last: None,
        settled: true,
        state: Some(DeliveryState::Outcome(Outcome::Accepted)),
        batchable: false,
    });
    frame::write(&mut out, FrameKind::Amqp, 0, |out| disposition.encode(out));
    out
}

#[test]
fn unawaited_frames_share_the_next_sync() {
    let (data, hub) = journal_hub("unheard");
    let mut turns = Turns::new(&hub);
    let mut taker = turns.connect_by(Protocol::Amqp);
    taker.socket.write_all(&consumer("default")).unwrap();
    turns.run_until_idle();
    let mut other = turns.connect();
    other.send(PUT);
    turns.turn();
    write_all(&hub);
    turns.run_until_idle();
    assert_eq!(other.lines(), ["INSERTED 1"]);
    run_chores(&hub);

    taker.socket.write_all(&acceptance(0)).unwrap();
    turns.turn();
    let mut core = hub.lock();
    let unwritten = core.broker.unwritten();
    assert_eq!((unwritten.frames, core.broker.statistics().leased), (1, 0));
    let since = unwritten.since.unwrap();
    assert!(core.idle_write(since).is_none() && !core.is_write_due(since));
    let until = core.deadline(since).unwrap();
    assert!(since < until && until <= since + IDLE_WRITE_DELAY, "not for ever");
    assert!(core.is_write_due(since + IDLE_WRITE_DELAY));

    drop(core);
    // The writer of an overdue idle write: no reactor, for no client waits and others may ask.
    let mut core = hub.lock();
    core.scheduler.forget_latency();
    let transfer = core.idle_write(since + IDLE_WRITE_DELAY).unwrap();
    assert!(
        !core.scheduler.belongs_to_reactor(&transfer, 0)
            && !core.scheduler.belongs_to_reactor(&transfer, 9)
    );
    core.hand_over(transfer);
    drop(core);
    assert_eq!(write_handed(&hub), 1);
    other.send(PUT);
    turns.turn();
    write_all(&hub);
    turns.run_until_idle();
    assert_eq!(other.lines(), ["INSERTED 2"]);
    run_chores(&hub);
    taker.socket.write_all(&acceptance(1)).unwrap();
    turns.turn();
    let since = hub.lock().broker.unwritten().since.unwrap();
    assert!(!hub.lock().is_write_due(since));
    other.send("reserve-with-timeout 0\r\n");
    turns.turn();
    assert!(hub.lock().is_write_due(since), "that there is nothing depends on it");
    write_all(&hub);
    turns.run_until_idle();
    assert_eq!(other.lines(), ["TIMED_OUT"]);
    drop(turns);
    drop(hub);
    std::fs::remove_dir_all(data).unwrap();
}

/// A chore moves the watermark of the log, and a batch that ends behind it waits for that chore. No
/// reactor spins meanwhile, and the thread that completes the chore begins the write.
#[test]
fn write_behind_watermark_waits_for_chore() {
    let (data, hub) = journal_hub("watermark");
    let mut turns = Turns::new(&hub);
    let mut client = turns.connect();
    let put = format!("put 0 0 60 60000\r\n{}\r\n", "x".repeat(60_000));
    let mut puts = 0;
    while !hub.lock().broker.unwritten().waits_for_chore {
        write_all(&hub);
        puts += 1;
        // Between these the only chore asked for is the one that moves the watermark, mostly.
        if puts % 80 == 1 {
            run_chores(&hub);
        }
        assert!(puts < 1_000, "no batch waits for a chore");
        client.send(&put);
        turns.run_until_idle();
    }
    assert!(!hub.is_write_due(), "reactors sleep");
    hub.hand_over(&mut hub.lock());
    assert_eq!(write_handed(&hub), 0, "no write begins before the chore is done");
    turns.turn_if_any();
    assert_eq!(client.lines().last(), Some(&format!("INSERTED {}", puts - 1)));

    run_chores(&hub);
    assert_eq!(write_handed(&hub), 1);
    turns.run_until_idle();
    assert_eq!(client.lines(), [format!("INSERTED {puts}")]);
    drop(turns);
    drop(hub);
    std::fs::remove_dir_all(data).unwrap();
}

#[test]
fn session_answers_are_charged_steps() {
    let hub = hub();
    let mut turns = Turns::new(&hub);
    let mut client = turns.connect();
    client.watch(&mut turns, 4_999);
    client.send(&"list-tubes-watched\r\n".repeat(100));
    turns.turn();
    let lines = client.lines();
    let lists = lines.iter().filter(|line| line.starts_with("OK ")).count();
    assert_eq!(lists, 2, "of 39 kB or 2,430 steps each");
}

#[test]
fn slow_readers_pause_before_any_closes() {
    const CLIENTS: usize = 20;
    const BODY: usize = 2_000;
    const PEEKS: usize = 600;
    const BYTES_MAX: usize = 4 << 20;
    let hub = hub_with(Limits { buffered_bytes: BYTES_MAX, ..Limits::default() });
    let mut turns = Turns::new(&hub);
    let mut other = turns.connect();
    other.send(&format!("put 0 0 60 {BODY}\r\n{}\r\n", "x".repeat(BODY)));
    turns.run_until_idle();
    assert_eq!(other.lines(), ["INSERTED 1"]);
    let mut slow: Vec<_> = (0..CLIENTS).map(|_| turns.connect()).collect();
    for client in &mut slow {
        client.send(&"peek 1\r\n".repeat(PEEKS));
        turns.run_until_idle();
    }
    let held = hub.buffered.bytes();
    let bounds = BYTES_MAX / 4..BYTES_MAX * 3 / 4;
    assert!(bounds.contains(&held), "{held} bytes of 24,000,000");
    other.send(PUT);
    turns.run_until_idle();
    assert_eq!(other.lines(), ["INSERTED 2"], "who reads is served");
    for client in &mut slow {
        let mut read = 0;
        for _ in 0..PEEKS {
            read += client.lines().iter().map(String::len).sum::<usize>();
            turns.turn_if_any();
        }
        assert!(read > PEEKS * BODY, "{read} bytes");
    }
    assert_eq!((turns.open(), hub.buffered.bytes()), (CLIENTS + 1, 0), "nobody was closed");
}

#[test]
fn partial_body_over_budget_closes_largest() {
    const BYTES_MAX: usize = 256 * 1024;
    let hub = hub_with(Limits { buffered_bytes: BYTES_MAX, ..Limits::default() });
    let mut turns = Turns::new(&hub);
    let mut halves: Vec<_> = (0..20).map(|_| turns.connect()).collect();
    for (index, client) in halves.iter_mut().enumerate() {
        client.send(&format!("put 0 0 60 60000\r\n{}", "x".repeat(40_000 - index)));
        turns.run_until_idle();
        assert!(hub.buffered.bytes() <= BYTES_MAX, "{} bytes", hub.buffered.bytes());
    }
    let left: usize = (14..20).map(|index| 40_000 - index).sum();
    assert_eq!((turns.open(), hub.buffered.bytes()), (6, left), "the last, who hold less");
    let mut other = turns.connect();
    other.send(PUT);
    turns.run_until_idle();
    assert_eq!(other.lines(), ["INSERTED 1"]);
    halves[19].send(&"x".repeat(20_019));
    halves[19].send("\r\n");
    turns.run_until_idle();
    assert_eq!(halves[19].lines(), ["INSERTED 2"]);
    drop(halves);
    turns.run_until_idle();
    assert_eq!((turns.open(), hub.buffered.bytes()), (1, 0));
}

/// Each turn closes as many as it takes, however many have come in together.
#[test]
fn partial_bodies_over_budget_close_largest_connections() {
    const BYTES_MAX: usize = 1 << 20;
    let hub = hub_with(Limits { buffered_bytes: BYTES_MAX, ..Limits::default() });
    let mut turns = Turns::new(&hub);
    let mut halves: Vec<_> = (0..100).map(|_| turns.connect()).collect();
    turns.run_until_idle();
    for client in &mut halves {
        client.send(&format!("put 0 0 60 60000\r\n{}", "x".repeat(40_000)));
    }
    for _ in 0..3 {
        turns.turn_if_any();
        assert!(hub.buffered.bytes() <= BYTES_MAX, "{} bytes", hub.buffered.bytes());
    }
    assert_eq!((turns.open(), hub.buffered.bytes()), (26, 26 * 40_000));
    let mut other = turns.connect();
    other.send(PUT);
    turns.run_until_idle();
    assert_eq!(other.lines(), ["INSERTED 1"]);
}

#[test]
fn turn_reads_bounded_bytes_then_rest() {
    const EACH: usize = 60_000;
    const CLIENTS: usize = 200;
    let hub = hub_with(Limits { buffered_bytes: 64 << 20, ..Limits::default() });
    let mut turns = Turns::new(&hub);
    let mut halves: Vec<_> = (0..CLIENTS).map(|_| turns.connect()).collect();
    turns.run_until_idle();
    for client in &mut halves {
        client.send(&format!("put 0 0 60 {}\r\n{}", EACH + 1, "x".repeat(EACH)));
    }
    turns.turn();
    let read = hub.buffered.bytes();
    let most = READ_BYTES_PER_TURN + EACH + 100;
    assert!((READ_BYTES_PER_TURN - EACH..most).contains(&read), "{read} bytes");
    turns.turn();
    assert_eq!(hub.buffered.bytes(), CLIENTS * EACH);
}

/// Bytes sent before are read, and answered, though they are more than a turn reads.
#[test]
fn stopping_server_reads_rest_in_turns() {
    const EACH: usize = 60_000;
    const CLIENTS: usize = 200;
    let hub = hub_with(Limits { buffered_bytes: 64 << 20, ..Limits::default() });
    let mut turns = Turns::new(&hub);
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| turns.connect()).collect();
    turns.run_until_idle();
    for client in &mut clients {
        client.send(&format!("put 0 0 60 {EACH}\r\n{}\r\n", "x".repeat(EACH)));
    }
    hub.enter(crate::hub::Phase::Stopping);
    turns.turn();
    let read = (CLIENTS - turns.reactor.lists.unread.len()) * EACH;
    let most = READ_BYTES_PER_TURN + EACH;
    assert!((READ_BYTES_PER_TURN - EACH..most).contains(&read), "{read} bytes");
    while turns.open() > 0 {
        turns.turn();
    }
    for client in &mut clients {
        assert!(client.lines().join("").starts_with("INSERTED"));
    }
}

/// A turn answers more of them than one, and all answers are there before any client reads.
#[test]
fn unread_answers_over_budget_close_clients() {
    const BODY: usize = 6 << 20;
    const BYTES_MAX: usize = 20 << 20;
    let (message_bytes, buffered_bytes) = (Some(BODY), BYTES_MAX);
    let hub = hub_with(Limits { message_bytes, buffered_bytes, ..Limits::default() });
    let mut turns = Turns::new(&hub);
    let mut other = turns.connect();
    other.send(&format!("put 0 0 60 {BODY}\r\n"));
    for _ in 0..BODY >> 16 {
        other.send(&"x".repeat(1 << 16));
        turns.run_until_idle();
    }
    other.send("\r\n");
    turns.run_until_idle();
    assert_eq!(other.lines(), ["INSERTED 1"]);
    let mut slow: Vec<_> = (0..20).map(|_| turns.connect()).collect();
    turns.run_until_idle();
    slow.iter_mut().for_each(|client| client.send("peek 1\r\n"));
    for _ in 0..2 * slow.len() {
        turns.turn_if_any();
        assert!(hub.buffered.bytes() <= BYTES_MAX, "{} bytes", hub.buffered.bytes());
    }
    assert!((2..10).contains(&turns.open()), "{} are open", turns.open());
    other.send(PUT);
    turns.run_until_idle();
    assert_eq!(other.lines(), ["INSERTED 2"]);
}

/// One command speaks to all of them.
#[test]
fn publish_deliveries_are_bounded_per_turn() {
    const BODY: usize = 1 << 20;
    const BYTES_MAX: usize = 24 << 20;
    let hub = hub_with(Limits { buffered_bytes: BYTES_MAX, ..Limits::default() });
    let mut turns = Turns::new(&hub);
    let mut publisher = turns.connect_by(Protocol::Redis);
    let mut silent: Vec<_> = (0..40).map(|_| turns.connect_by(Protocol::Redis)).collect();
    let mut reader = turns.connect_by(Protocol::Redis);
    silent.iter_mut().chain([&mut reader]).for_each(|client| client.send("SUBSCRIBE t\r\n"));
    for _ in 0..3 {
        turns.turn_if_any();
    }
    assert_eq!(reader.lines().len(), 6);
    publisher.send(&format!("*3\r\n$7\r\nPUBLISH\r\n$1\r\nt\r\n${BODY}\r\n"));
    for _ in 0..BODY >> 16 {
        publisher.send(&"x".repeat(1 << 16));
        turns.turn_if_any();
    }
    publisher.send("\r\n");
    let mut told = 0;
    for _ in 0..2_000 {
        turns.turn_if_any();
        assert!(hub.buffered.bytes() <= BYTES_MAX, "{} bytes", hub.buffered.bytes());
        told += reader.lines().concat().bytes().filter(|byte| *byte == b'x').count();
    }
    assert_eq!(told, BODY, "who reads is told all of it");
    assert_eq!(publisher.lines(), [":41"]);
    assert!((3..30).contains(&turns.open()), "{} are open", turns.open());
}

/// A queue may be empty by a delete that a crash undoes: no client hears of it before that delete
/// is durable. Only the test writes here.
#[test]
fn empty_reply_waits_for_durable_delete() {
    let (data, hub) = journal_hub("nothing");
    let mut turns = Turns::new(&hub);
    let (mut worker, mut other) = (turns.connect(), turns.connect());
    worker.send(&format!("{PUT}reserve\r\ndelete 1\r\n"));
    turns.turn();
    other.send("reserve-with-timeout 0\r\nlist-tube-used\r\n");
    turns.turn();
    turns.turn_if_any();
    assert!(worker.lines().is_empty() && other.lines().is_empty(), "nothing is durable yet");
    write_all(&hub);
    turns.turn();
    assert_eq!(worker.lines(), ["INSERTED 1", "RESERVED 1 1", "x", "DELETED"]);
    assert_eq!(other.lines(), ["TIMED_OUT", "USING default"]);
    drop(turns);
    drop(hub);
    std::fs::remove_dir_all(data).unwrap();
}

/// Otherwise even commands that need no disk would wait for it, on a slow one for long.
#[test]
fn fresh_log_has_room_without_chores() {
    let (data, hub) = fresh_hub("first", None);
    let mut turns = Turns::new(&hub);
    let mut client = turns.connect();
    client.send("list-tube-used\r\n");
    turns.turn();
    assert_eq!(client.lines(), ["USING default"], "without a chore");
    drop(turns);
    drop(hub);
    std::fs::remove_dir_all(data).unwrap();
}

/// As when a disk stands still: commands that settle go ahead of those that add, in other
/// connections.
#[test]
fn lagging_log_delays_only_adding_commands() {
    const SENDERS: usize = 4;
    let (data, hub) = journal_hub("behind");
    let mut turns = Turns::new(&hub);
    let (mut worker, mut other) = (turns.connect(), turns.connect());
    worker.send(&format!("{PUT}reserve\r\n"));
    turns.turn();
    write_all(&hub);
    turns.turn_if_any();
    assert_eq!(worker.lines(), ["INSERTED 1", "RESERVED 1 1", "x"]);
    let mut senders: Vec<_> = (0..SENDERS).map(|_| turns.connect()).collect();
    let put = format!("put 0 0 60 60000\r\n{}\r\n", "x".repeat(60_000));
    let mut sent = 0;
    while !hub.lock().broker.holds_back() {
        senders.iter_mut().for_each(|sender| sender.send(&put));
        sent += SENDERS;
        turns.turn();
        run_chores(&hub);
    }
    senders.iter_mut().for_each(|sender| sender.send(&put));
    sent += SENDERS;
    turns.turn_if_any();
    let stored = hub.lock().broker.statistics().messages_total;
    assert!(stored < sent as u64, "{stored} of {sent}");
    assert!(!hub.lock().broker.stalled());

    worker.send("delete 1\r\n");
    other.send("reserve\r\n");
    turns.turn();
    assert_eq!(hub.lock().broker.statistics().leased, 1, "one was deleted, another taken");
    assert_eq!(hub.lock().broker.statistics().messages_total, stored, "and nothing stored");

    let mut answered = 0;
    while answered < sent {
        run_chores(&hub);
        write_all(&hub);
        turns.turn_if_any();
        answered += senders.iter_mut().map(|sender| sender.lines().len()).sum::<usize>();
    }
    assert_eq!(worker.lines(), ["DELETED"]);
    assert_eq!(other.lines().len(), 2);
    drop(turns);
    drop(hub);
    std::fs::remove_dir_all(data).unwrap();
}

#[test]
fn postponed_puts_precede_later_ones() {
    let (data, hub) = journal_hub("postponed");
    let mut turns = Turns::new(&hub);
    let (mut filling, mut late) = (turns.connect(), turns.connect());
    let mut waiting: Vec<_> = (0..3).map(|_| turns.connect()).collect();
    turns.run_until_idle();
    let put = format!("put 0 0 60 60000\r\n{}\r\n", "x".repeat(60_000));
    while !hub.lock().broker.holds_back() {
        filling.send(&put);
        turns.turn();
        run_chores(&hub);
    }
    waiting.iter_mut().for_each(|client| client.send(PUT));
    turns.turn_if_any();
    let stored = hub.lock().broker.statistics().messages_total;
    while hub.lock().broker.holds_back() {
        run_chores(&hub);
        write_all(&hub);
    }
    late.send(PUT);
    turns.turn_if_any();
    run_chores(&hub);
    write_all(&hub);
    turns.turn_if_any();
    let mut numbers = waiting.iter_mut().chain([&mut late]).flat_map(Client::lines);
    assert!((1..=4).all(|index| numbers.next() == Some(format!("INSERTED {}", stored + index))));
    drop(numbers);
    drop(turns);
    drop(hub);
    std::fs::remove_dir_all(data).unwrap();
}

/// A lone client's put takes no needless wakes: a reactor that writes for it need not be woken by
/// it.
#[test]
fn writing_reactor_is_not_woken() {
    const PUTS: usize = 20;
    let (data, hub) = journal_hub("rung");
    let mut turns = Turns::new(&hub);
    let mut client = turns.connect();
    let (mut rings, mut left_to_others) = (0, 0);
    for _ in 0..PUTS {
        client.send(PUT);
        turns.turn();
        // Nothing else is to be done, so that the frame is written, here or by others.
        turns.turn();
        let written_here = !client.lines().is_empty();
        rings +=
            usize::from(rustix::io::read(hub.mailbox(0).event().unwrap(), &mut [0; 8]).is_ok());
        if !written_here {
            left_to_others += write_handed(&hub);
            turns.turn();
            assert_eq!(client.lines().len(), 1);
        }
    }
    assert!(left_to_others < PUTS / 2, "{left_to_others} writes were left to others");
    assert_eq!(rings, 0);
    drop(turns);
    drop(hub);
    std::fs::remove_dir_all(data).unwrap();
}

/// However busy the log is: the turn in which a write ends may be the one that answers.
#[test]
fn logless_answer_is_noted_beside_writes() {
    let (data, hub) = journal_hub("mixed");
    let mut turns = Turns::new(&hub);
    let (mut client, mut other) = (turns.connect(), turns.connect());
    client.send(PUT);
    turns.turn();
    assert!(client.lines().is_empty(), "it waits for the log");
    turns.reactor.answered_at = Nanos::ZERO;
    write_all(&hub);
    turns.turn_if_any();
    assert_eq!(client.lines(), ["INSERTED 1"]);
    assert_eq!(turns.reactor.answered_at, Nanos::ZERO, "this was not");
    client.send(PUT);
    turns.turn();
    write_all(&hub);
    other.send("list-tube-used\r\n");
    turns.turn();
    assert_eq!((client.lines().len(), other.lines().len()), (1, 1), "in one turn");
    assert_ne!(turns.reactor.answered_at, Nanos::ZERO);
    drop(turns);
    drop(hub);
    std::fs::remove_dir_all(data).unwrap();
}

/// Each of a crowd waits for its own frame: no client is served sooner when another thread writes.
/// But a client that need not wait must not find the reactor at the disk.
#[test]
fn reactor_writes_only_if_all_wait() {
    let (data, hub) = journal_hub("crowd");
    let mut turns = Turns::new(&hub);
    let mut crowd: Vec<_> = (0..4).map(|_| turns.connect()).collect();
    let mut other = turns.connect();
    let mut writes_here = |turns: &mut Turns<'_>, commands: &str| {
        // As on a quick disk, however slow this one is.
        hub.lock().scheduler.forget_latency();
        crowd.iter_mut().for_each(|client| client.send(commands));
        turns.turn();
        turns.turn();
        let answered = crowd.iter_mut().filter_map(|it| (!it.lines().is_empty()).then_some(()));
        let here = answered.count() == crowd.len();
        if !here {
            assert_eq!(write_handed(&hub), 1, "either by the reactor or by others");
            turns.turn();
            crowd.iter_mut().for_each(|client| assert!(!client.lines().is_empty()));
        }
        here
    };
    turns.reactor.answered_at = Nanos::ZERO;
    assert!(writes_here(&mut turns, PUT));
    assert!(writes_here(&mut turns, PUT), "what a write released was not answered without it");
    assert!(
        !writes_here(&mut turns, &PUT.repeat(2)),
        "who has asked for more may bring still more"
    );
    assert!(writes_here(&mut turns, PUT));
    other.send("list-tube-used\r\n");
    turns.turn();
    assert_eq!(other.lines(), ["USING default"]);
    assert!(!writes_here(&mut turns, PUT));
    turns.reactor.answered_at = Nanos::ZERO;
    assert!(writes_here(&mut turns, PUT), "who needs no disk is not expected for ever");
    drop(turns);
    drop(hub);
    std::fs::remove_dir_all(data).unwrap();
}
