//! A peer's input, by mistake or malice, must neither stop the session nor throw it out of step nor
//! cost memory. It must mean the same however the network cuts it into pieces.
//!
//! The fuzz targets in `fuzz/` share [`bytes`] and [`codec`].

use std::fs;
use std::path::Path;

use beanstalk::ListenerState;
use model::{
    Command, Delivery, Element, LoginAnswer, LoginOffer, LoginStep, MessageId, Peek, Reply,
};
use testkit::{Rng, escape};

use crate::connection::Connection;
use crate::facts;
use crate::ours::Ours;

/// A line that has not ended is all that may stay unread.
const UNREAD_BYTES_MAX: usize = 224;

/// Any bytes to an engine, whole and in pieces: the same is answered.
pub(crate) fn bytes(input: &[u8]) {
    let size = piece_bytes(input);
    assert_eq!(served(input, size), served(input, usize::MAX), "in pieces of {size}");
}

/// The same without an engine behind the session, so that there is time for many more inputs: the
/// same commands and answers.
pub(crate) fn codec(input: &[u8]) {
    let size = piece_bytes(input);
    let whole = replay(input, &mut || usize::MAX);
    assert_eq!(replay(input, &mut || size), whole, "in pieces of {size}");
}

/// Any bytes of a client that has to log in: it does nothing before, and hears the same in pieces.
pub(crate) fn stranger(input: &[u8]) {
    let size = piece_bytes(input);
    let whole = log_in(input, usize::MAX);
    assert_eq!(log_in(input, size), whole, "in pieces of {size}");
    let with_login = [b"auth a secret\r\n", input].concat();
    let (commands, _) = log_in(&with_login, size);
    assert_eq!(commands.get(..2).map(<[_]>::len), Some(2), "the producer and the consumer");
}

/// All commands that came of the input, and all answers. A login with the password `secret` is
/// granted.
fn log_in(input: &[u8], size: usize) -> (Vec<Command>, Vec<u8>) {
    let mut shared = facts::shared();
    let mut connection = Connection::new(1, &mut shared);
    connection.offer(LoginOffer { password: true, ..LoginOffer::default() });
    let mut commands = Vec::new();
    for piece in input.chunks(size) {
        connection.receive(piece);
        loop {
            serve(&mut connection, &mut shared, &mut commands);
            let is_stranger = connection.session().needs_login();
            assert!(!is_stranger || commands.is_empty(), "it does nothing before its login");
            let Some(step) = connection.poll_login() else { break };
            connection.answer_login(match step {
                LoginStep::Password { user, password } if password.expose() == b"secret" => {
                    LoginAnswer::Granted {
                        rights: model::Rights::everything(&user).into(),
                        proof: Vec::new(),
                    }
                }
                _ => LoginAnswer::Refused,
            });
        }
    }
    let answers = connection.take_out();
    connection.close(&mut shared);
    (commands, answers)
}

/// How large the pieces are is told by how many bytes there are, so that an input costs two
/// connections, and not one a size.
fn piece_bytes(input: &[u8]) -> usize {
    [1, 3, 64][input.len() % 3]
}

/// All answers of the engine, of which nothing is left when the peer has gone.
fn served(input: &[u8], size: usize) -> Vec<u8> {
    let mut ours = Ours::new();
    let client = ours.connect();
    for piece in input.chunks(size) {
        ours.receive(client, piece);
    }
    let heard = ours.output(client);
    ours.half_close(client);
    ours.check();
    heard
}

#[test]
fn corpus_does_no_harm() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/hostile");
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let input = fs::read(&path).unwrap();
        let whole = replay(&input, &mut || usize::MAX);
        bytes(&input);
        for size in [1, 2, 3, 64, 223, 224, 225, 4_096] {
            assert_eq!(replay(&input, &mut || size), whole, "{} by {size}", path.display());
        }
        count += 1;
    }
    assert!(count >= 20, "only {count} files were found");
}

#[test]
fn mutated_commands_do_no_harm() {
    for seed in 0..4_000 {
        let mut random = Rng::new(seed);
        let input = mutated_commands(&mut random);
        let whole = replay(&input, &mut || usize::MAX);
        let pieces = replay(&input, &mut || 1 + random.index(40));
        assert_eq!(pieces, whole, "seed {seed}: {}", escape::text(&input));
        stranger(&input);
    }
}

#[test]
fn random_bytes_do_no_harm() {
    for seed in 0..1_000 {
        let mut random = Rng::new(seed);
        let length = random.index(2_000);
        let input: Vec<u8> = (0..length).map(|_| random.index(256) as u8).collect();
        let whole = replay(&input, &mut || usize::MAX);
        let pieces = replay(&input, &mut || 1 + random.index(300));
        assert_eq!(pieces, whole, "seed {seed}: {}", escape::text(&input));
    }
}

#[test]
fn fuzz_corpus_does_no_harm() {
    testkit::replay("beanstalkd", bytes);
    testkit::replay("beanstalkd", codec);
    testkit::replay("beanstalkd", stranger);
}

#[test]
fn oversized_body_is_not_kept() {
    let mut shared = facts::shared();
    let mut connection = Connection::opened(1, &mut shared);
    connection.receive(b"put 0 0 60 100000000\r\n");
    for _ in 0..100 {
        assert_eq!(connection.poll(&mut shared), None);
        assert_eq!(connection.unread(), 0);
        assert!(connection.session().half_sent());
        connection.receive(&[b'x'; 1_000_000]);
    }
    connection.receive(b"\r\nlist-tube-used\r\n");
    assert_eq!(connection.poll(&mut shared), None);
    assert_eq!(connection.take_out(), b"JOB_TOO_BIG\r\nUSING default\r\n");
}

#[test]
fn long_answers_come_in_portions() {
    const PORTION_BYTES_MAX: usize = 2 * 1024 * 1024;
    let mut shared = facts::shared();
    let mut connection = Connection::opened(1, &mut shared);
    for tube in 0..1_000 {
        connection.receive(format!("watch {tube:0200}\r\n").as_bytes());
        connection.poll(&mut shared).expect("a watch");
        connection.reply(Reply::Done, &mut shared);
    }
    connection.take_out();
    connection.receive(&b"list-tubes-watched\r\n".repeat(100));
    let (mut answered, mut portions) = (0, 0);
    loop {
        assert_eq!(connection.poll(&mut shared), None);
        let portion = connection.take_out();
        assert!(portion.len() <= PORTION_BYTES_MAX);
        answered += portion.windows(4).filter(|window| window == b"---\n").count();
        portions += 1;
        if !connection.session().has_more() {
            break;
        }
    }
    assert_eq!(answered, 100);
    assert!(portions > 10, "{portions} portions");
}

#[test]
fn quit_ends_the_reading() {
    let mut shared = facts::shared();
    let mut connection = Connection::opened(1, &mut shared);
    connection.receive(b"list-tube-used\r\nquit\r\nlist-tube-used\r\ndelete 1\r\n");
    assert_eq!(connection.poll(&mut shared), None);
    assert!(connection.session().wants_close());
    assert_eq!(connection.poll(&mut shared), None);
    assert_eq!(connection.take_out(), b"USING default\r\n");
}

/// All commands that came of the input and all answers, after checking that the session is still
/// in step. `size` gives the length of each next piece.
fn replay(input: &[u8], size: &mut dyn FnMut() -> usize) -> (Vec<Command>, Vec<u8>) {
    let mut shared = facts::shared();
    let mut connection = Connection::opened(1, &mut shared);
    let mut commands = Vec::new();
    let mut rest = input;
    while !rest.is_empty() {
        let (piece, others) = rest.split_at(size().min(rest.len()));
        connection.receive(piece);
        serve(&mut connection, &mut shared, &mut commands);
        rest = others;
    }
    let answers = connection.take_out();
    if !connection.session().wants_close() {
        check_in_step(&mut connection, &mut shared);
    }
    connection.close(&mut shared);
    (commands, answers)
}

/// Ends the command that has begun; then a question must get its answer.
fn check_in_step(connection: &mut Connection, shared: &mut ListenerState) {
    let mut commands = Vec::new();
    for length in [0, 0, 600, 70_000] {
        if connection.session().half_sent() {
            connection.receive(&[b'x'].repeat(length));
            connection.receive(b"\r\n");
            serve(connection, shared, &mut commands);
        }
    }
    if connection.session().half_sent() || connection.session().wants_close() {
        return; // It awaits a larger body still, or what was not ended was a `quit`.
    }
    connection.take_out();
    connection.receive(b"use in-step\r\n");
    serve(connection, shared, &mut commands);
    assert_eq!(connection.take_out(), b"USING in-step\r\n");
}

/// Serves the bytes that have arrived, each command with a likely reply.
fn serve(connection: &mut Connection, shared: &mut ListenerState, commands: &mut Vec<Command>) {
    loop {
        if let Some(command) = connection.poll(shared) {
            let reply = likely_reply(&command);
            commands.push(command);
            connection.reply(reply, shared);
        } else if !connection.session().has_more() {
            break;
        }
    }
    if !connection.session().wants_close() {
        let is_held = connection.session().awaits_reply();
        assert!(is_held || connection.unread() < UNREAD_BYTES_MAX);
    }
}

fn likely_reply(command: &Command) -> Reply {
    match command {
        Command::Put { .. } => Reply::Stored { message: MessageId(7) },
        Command::Receive { .. } => Reply::TimedOut { link: None },
        Command::Lease { message } => {
            Reply::Delivered(Box::new(Delivery::new(*message, b"body".to_vec().into())))
        }
        Command::Peek(Peek::Message(message)) => {
            Reply::Found { message: *message, element: Box::new(Element::raw(b"body"[..].into())) }
        }
        Command::Kick { max, .. } => Reply::Count(*max),
        Command::BrokerStatistics => Reply::BrokerStatistics(Box::default()),
        Command::Peek(_) | Command::MessageStatistics { .. } | Command::QueueStatistics { .. } => {
            Reply::NotFound
        }
        Command::ListQueues => Reply::Queues(Vec::new()),
        _ => Reply::Done,
    }
}

/// Commands as clients send them, with a few bytes changed, lost, doubled or put in.
fn mutated_commands(random: &mut Rng) -> Vec<u8> {
    const COMMANDS: [&[u8]; 26] = [
        b"put 0 0 60 5\r\nhello\r\n",
        b"put 10 1 0 0\r\n\r\n",
        b"put 1 2 3 70000\r\nshort\r\n",
        b"reserve\r\n",
        b"reserve-with-timeout 5\r\n",
        b"reserve-job 3\r\n",
        b"delete 1\r\n",
        b"release 2 3 4\r\n",
        b"bury 2 3\r\n",
        b"touch 4\r\n",
        b"use emails\r\n",
        b"watch emails\r\n",
        b"ignore default\r\n",
        b"ignore emails\r\n",
        b"peek 5\r\n",
        b"peek-ready\r\n",
        b"peek-buried\r\n",
        b"kick 10\r\n",
        b"kick-job 1\r\n",
        b"stats\r\n",
        b"stats-job 1\r\n",
        b"stats-tube emails\r\n",
        b"list-tubes\r\n",
        b"list-tubes-watched\r\n",
        b"list-tube-used\r\n",
        b"pause-tube emails 10\r\n",
    ];
    let mut input = Vec::new();
    for _ in 0..1 + random.index(30) {
        input.extend_from_slice(random.pick(&COMMANDS));
    }
    for _ in 0..random.index(8) {
        mutate(&mut input, random);
    }
    input
}

fn mutate(input: &mut Vec<u8>, random: &mut Rng) {
    const BYTES: &[u8] = b"\r\n\0 -0199azA\xff";
    let place = random.index(input.len() + 1);
    match random.index(5) {
        0 => input.truncate(place),
        1 => input.insert(place, random.pick(BYTES)),
        2 => drop(input.drain(place..(place + 1 + random.index(4)).min(input.len()))),
        3 => {
            let long = vec![random.pick(BYTES); 200 + random.index(60)];
            input.splice(place..place, long);
        }
        _ => {
            if let Some(byte) = input.get_mut(place) {
                *byte = random.pick(BYTES);
            }
        }
    }
}
