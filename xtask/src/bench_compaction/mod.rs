//! `cargo xtask bench-compaction`: how long clients wait while the live rest of segments is copied,
//! beside how long they wait while it is not; of the same clients, in the same run.
//!
//! Each connection stores a job and deletes another, so that as many are kept all the time. The
//! deleted jobs are chosen at random, so that live records have to be copied out of every segment.
//! Or they are the oldest, so that segments come free by themselves and nothing is copied.

mod options;
mod waits;

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use testkit::Rng;

use crate::Result;
use crate::server::{Dunlin, Program};
use crate::steps::Bench;
use crate::tally::Tally;
use crate::wire::Connection;

pub(crate) use options::Options;
use waits::{Answer, Look, Waits, divide};

/// Which job is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Random,
    Oldest,
}

/// Measures as `options` say and prints a table.
///
/// # Errors
/// When the server cannot be started, or answers otherwise than it should.
pub(crate) fn run_all(bench: &Bench, options: &Options) -> Result<Tally> {
    let binary = options.binary.clone().map_or_else(|| bench.dunlin(), Ok)?;
    println!("| jobs deleted | segments | answers | p50, ms | p99 | p99.9 | longest |");
    println!("|---|---|--:|--:|--:|--:|--:|");
    for _ in 0..options.rounds {
        for order in [Order::Random, Order::Oldest] {
            let (during, beside) = measure(bench, &binary, options, order)?;
            let name = format!("{order:?}").to_lowercase();
            for (what, waits) in [("compacted", during), ("not", beside)] {
                if waits.count > 0 {
                    println!("| {name} | {what} | {}", row(waits));
                }
            }
        }
    }
    Ok(Tally { passed: u64::from(options.rounds) * 2, failed: 0 })
}

fn row(waits: Waits) -> String {
    let Waits { count, p50, p99, p999, longest } = waits;
    let cells = [p50, p99, p999, longest].map(|wait| format!("{:.2} |", wait.as_secs_f64() * 1e3));
    format!("{count} | {}", cells.join(" "))
}

/// One run on a store of its own.
fn measure(
    bench: &Bench,
    binary: &std::path::Path,
    options: &Options,
    order: Order,
) -> Result<(Waits, Waits)> {
    let folder = bench.scratch.join("compaction");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let words = [
        ["--data", &folder.join("data").display().to_string()],
        ["--sync", "always"],
        ["--segment-bytes", &options.segment_bytes],
        ["--max-message-bytes", "65535"],
    ];
    let program = Program::Dunlin(Dunlin {
        binary: binary.to_owned(),
        protocol: "beanstalkd",
        options: words.concat().into_iter().map(str::to_owned).collect(),
        variables: Vec::new(),
    });
    let mut server = program.start(&bench.log("bench-compaction"))?;
    let address = server.wait_ready()?;
    let jobs = fill(address, options)?;
    let jobs = Mutex::new(churn(address, options, order, jobs)?);
    let ends = AtomicBool::new(false);
    let (answers, looks) = thread::scope(|scope| {
        let watch = scope.spawn(|| look(address, &ends));
        let work = |seed| {
            scope.spawn({
                let (jobs, ends) = (&jobs, &ends);
                move || exchange(address, options, order, jobs, Rng::new(seed), ends)
            })
        };
        let workers: Vec<_> = (0..options.clients as u64).map(work).collect();
        thread::sleep(options.span);
        ends.store(true, Ordering::Relaxed);
        let mut answers = Vec::new();
        for worker in workers {
            answers.extend(joined(worker)?);
        }
        Ok::<_, io::Error>((answers, joined(watch)?))
    })?;
    server.terminate()?;
    fs::remove_dir_all(&folder)?;
    Ok(divide(&answers, &looks))
}

fn joined<T>(thread: ScopedJoinHandle<'_, io::Result<T>>) -> io::Result<T> {
    thread.join().unwrap_or_else(|_| Err(io::Error::other("a client panicked")))
}

/// Stores the jobs that are kept, and gives their ids.
fn fill(address: SocketAddr, options: &Options) -> io::Result<VecDeque<u64>> {
    let mut connection = Connection::open(address)?;
    let put = put(options.bytes);
    let mut ids = VecDeque::new();
    while ids.len() < options.kept {
        let several = PIPELINE.min(options.kept - ids.len());
        connection.send(&put.repeat(several))?;
        for _ in 0..several {
            ids.push_back(inserted(&mut connection)?);
        }
    }
    Ok(ids)
}

/// Stores and deletes by many at once until something is copied, or would have to be. Gives the ids
/// of the jobs that are stored then.
fn churn(
    address: SocketAddr,
    options: &Options,
    order: Order,
    mut ids: VecDeque<u64>,
) -> io::Result<VecDeque<u64>> {
    let mut connection = Connection::open(address)?;
    let (put, mut random, mut stored) = (put(options.bytes), Rng::new(0), 0);
    while copied(&mut connection)? == 0 && stored < CHURN * options.kept {
        connection.send(&put.repeat(PIPELINE))?;
        let mut old = Vec::new();
        for _ in 0..PIPELINE {
            let new = inserted(&mut connection)?;
            old.push(exchanged(&mut ids, new, order, &mut random));
        }
        let deletes = old.iter().map(|id| format!("delete {id}\r\n"));
        connection.send(deletes.collect::<String>().as_bytes())?;
        for _ in 0..PIPELINE {
            deleted(&mut connection)?;
        }
        stored += PIPELINE;
    }
    Ok(ids)
}

/// Stores one and deletes another until it ends; gives when that was, of both.
fn exchange(
    address: SocketAddr,
    options: &Options,
    order: Order,
    jobs: &Mutex<VecDeque<u64>>,
    mut random: Rng,
    ends: &AtomicBool,
) -> io::Result<Vec<Answer>> {
    let mut connection = Connection::open(address)?;
    let put = put(options.bytes);
    let mut answers = Vec::new();
    while !ends.load(Ordering::Relaxed) {
        let asked = Instant::now();
        connection.send(&put)?;
        let new = inserted(&mut connection)?;
        answers.push((asked, Instant::now()));
        let mut ids = jobs.lock().unwrap_or_else(PoisonError::into_inner);
        let old = exchanged(&mut ids, new, order, &mut random);
        drop(ids);
        let asked = Instant::now();
        connection.send(format!("delete {old}\r\n").as_bytes())?;
        deleted(&mut connection)?;
        answers.push((asked, Instant::now()));
    }
    Ok(answers)
}

/// Takes the new job in, and one out.
fn exchanged(jobs: &mut VecDeque<u64>, new: u64, order: Order, random: &mut Rng) -> u64 {
    if order == Order::Random {
        let place = random.below(jobs.len() as u64) as usize;
        jobs.swap(0, place);
    }
    jobs.push_back(new);
    jobs.pop_front().unwrap_or(new)
}

/// Asks every now and then how much compaction has copied.
fn look(address: SocketAddr, ends: &AtomicBool) -> io::Result<Vec<Look>> {
    let mut connection = Connection::open(address)?;
    let mut looks = Vec::new();
    while !ends.load(Ordering::Relaxed) {
        let copied = copied(&mut connection)?;
        looks.push((Instant::now(), copied));
        thread::sleep(LOOK_EVERY);
    }
    Ok(looks)
}

/// Records that compaction has copied.
fn copied(connection: &mut Connection) -> io::Result<u64> {
    let copied = connection.ask("stats")?.value("binlog-records-migrated");
    copied.and_then(|value| value.parse().ok()).ok_or(io::ErrorKind::InvalidData.into())
}

fn put(bytes: usize) -> Vec<u8> {
    format!("put 0 0 60 {bytes}\r\n{}\r\n", "x".repeat(bytes)).into_bytes()
}

fn inserted(connection: &mut Connection) -> io::Result<u64> {
    let reply = connection.reply()?;
    reply.id().filter(|_| reply.word() == "INSERTED").ok_or_else(|| io::Error::other(reply.line))
}

fn deleted(connection: &mut Connection) -> io::Result<()> {
    let reply = connection.reply()?;
    if reply.line == "DELETED" { Ok(()) } else { Err(io::Error::other(reply.line)) }
}

/// So many times the kept jobs are stored before anything is measured, unless copying begins
/// earlier.
const CHURN: usize = 20;

/// Jobs that are stored at once before anything is measured.
const PIPELINE: usize = 500;

/// Shorter than it takes to copy the rest of a segment.
const LOOK_EVERY: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exchange_keeps_the_job_count() {
        for (order, oldest) in [(Order::Oldest, true), (Order::Random, false)] {
            let mut jobs = (1..=100).collect::<VecDeque<u64>>();
            let mut random = Rng::new(1);
            let gone: Vec<_> =
                (101..=150).map(|new| exchanged(&mut jobs, new, order, &mut random)).collect();
            assert_eq!(jobs.len(), 100);
            assert_eq!(gone == (1..=50).collect::<Vec<_>>(), oldest, "{order:?}: {gone:?}");
        }
    }
}
