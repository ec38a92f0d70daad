//! Random peers: mostly sensible frames in senseless order, some of them damaged. Nothing panics.
//! All frames for them can be decoded and fit their limits. The engine stays sound, and once they
//! are gone it holds nothing for them.

use amqp::Options;
use testkit::Rng;

use crate::pair::Pair;
use crate::peer;

/// The largest frame of each client.
const FRAMES: [u32; 3] = [512, 600, 65_536];

/// How much each may leave unsettled in a session.
const UNSETTLED: [usize; 3] = [3, 262_144, 262_144];

const STEPS: u64 = 400;

/// Gives the frames that the peers got.
pub(crate) fn run(seed: u64) -> String {
    let mut all = String::new();
    let mut random = Rng::new(seed);
    let mut pair = Pair::new();
    for step in 0..STEPS {
        let client = random.below(FRAMES.len() as u64) as usize;
        act(&mut pair, &mut random, client);
        for (end, frame_bytes_max) in (0..pair.ends.len()).zip(FRAMES.iter().cycle()) {
            let heard = pair.hear(end, *frame_bytes_max);
            assert!(!heard.contains("internal-error"), "seed {seed} step {step}: {heard}");
            all += &heard;
        }
    }
    for end in 0..pair.ends.len() {
        pair.lose(end);
    }
    pair.sync();
    let counts = pair.engine.statistics();
    assert_eq!((counts.leased, counts.waiting), (0, 0), "seed {seed}");
    all
}

fn act(pair: &mut Pair, random: &mut Rng, client: usize) {
    let end = match (0..pair.ends.len()).rev().find(|end| end % FRAMES.len() == client) {
        Some(end) if !pair.is_lost(end) => end,
        _ if pair.ends.len() % FRAMES.len() == client => greet(pair, client),
        _ => return,
    };
    match random.below(40) {
        0 => pair.lose(end),
        1..5 => pair.sync(),
        5 => pair.pass(model::Nanos::from_secs(random.below(20))),
        6 => pair.say(end, "close"),
        _ => {
            let mut bytes = peer::bytes(&line(random)).expect("a peer's line");
            if random.below(100) == 0 {
                let place = random.below(bytes.len() as u64) as usize;
                bytes[place] = random.below(256) as u8;
            }
            pair.send(end, &bytes);
        }
    }
}

fn greet(pair: &mut Pair, client: usize) -> usize {
    let end = pair.connect_with(Options { unsettled_max: UNSETTLED[client], ..Options::default() });
    pair.say(end, "header amqp");
    pair.say(
        end,
        &format!(
            "open client-{client} max={} desired=sole-connection-for-container",
            FRAMES[client]
        ),
    );
    for channel in 0..2 {
        pair.say(end, &format!("begin {channel} window=20"));
        pair.say(end, &format!("attach {channel} 0 sender c coordinator"));
        pair.say(end, &format!("attach {channel} 1 sender s{channel} target=q0"));
        pair.say(end, &format!("attach {channel} 2 receiver r{channel} source=q0"));
        pair.say(end, &format!("attach {channel} 3 receiver t{channel} source=t0 is=topic"));
        pair.say(end, &format!("flow {channel} handle=2 count=0 credit=10"));
    }
    end
}

fn line(random: &mut Rng) -> String {
    let channel = random.below(2);
    let handle = random.below(5);
    let id = random.below(30);
    match random.below(16) {
        0 => attach(random, channel, handle),
        1 => format!("detach {channel} {handle} {}", random.pick(&["closed", ""])),
        2 => random.pick(&["end 0", "begin 0 window=5", "begin 1 window=5", "alive"]).into(),
        3..6 => format!(
            "flow {channel} handle={handle} count={} credit={} {} {} seen={} window={}",
            random.below(12),
            random.below(12),
            random.pick(&["drain", "", ""]),
            random.pick(&["echo", "", ""]),
            random.below(20),
            random.below(20)
        ),
        6..9 => format!(
            "disposition {channel} {id} last={} {} {} {}",
            id + random.below(4),
            random.pick(&["settled", "settled", ""]),
            random.pick(&["accepted", "released", "failed", "rejected", "undeliverable", ""]),
            random.pick(&["", "", "txn=0", "txn=1"])
        ),
        9 => format!(
            "transfer {channel} 0 {id} {}",
            random.pick(&["declare", "commit=0", "rollback=1"])
        ),
        _ => format!(
            "transfer {channel} 1 {id} {} {} {} {} ttl={}",
            random.pick(&["settled", "", ""]),
            random.pick(&["durable", ""]),
            random.pick(&["body=x", "body=y", "bytes=900", "more bytes=900", "goes-on hex=00"]),
            random.pick(&["", "", "", "txn=0", "txn=1", "to=t0 jms-dest=1", "delivery-delay=4000"]),
            1 + random.below(60_000)
        ),
    }
}

fn attach(random: &mut Rng, channel: u64, handle: u64) -> String {
    let what = random.pick(&[
        "receiver r source=q0",
        "receiver m source=q0 send=settled",
        "receiver b source=q0 copy send=settled",
        "receiver b2 source=q0 copy",
        "receiver sel source=q0 selector=JMSPriority=4",
        "receiver d source=t0 is=topic durable",
        "receiver d source=t0 is=topic durable selector=a=1",
        "receiver d source=t0 is=topic durable ends=link-detach timeout=1",
        "receiver d source=t0 is=topic durable ends=connection-close",
        "receiver w source=*.# is=topic durable",
        "receiver x source=> is=topic",
        "receiver sh|1 source=t0 is=topic,shared",
        "receiver sh|2 source=t0 is=topic,shared durable",
        "receiver nl source=t0 is=topic no-local",
        "receiver d no-source",
        "receiver dyn dynamic is=temporary-queue",
        "sender dyn dynamic is=temporary-topic",
        "sender relay",
        "sender t target=t0 is=topic",
        "sender q target=q0",
        "sender n no-target",
    ]);
    format!("attach {channel} {handle} {what}")
}
