//! After a crash: the content of the server, compared with the ledger of the clients.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;

use testkit::Rng;

use super::ledger::Ledger;
use crate::Result;
use crate::wire::Connection;

/// Pipelined commands at a time: few enough that neither side's socket buffers fill up.
const WINDOW: usize = 128;
/// Jobs looked at in each check of those that are many.
const SAMPLE: u64 = 300;

/// Compares the whole content of the server with the ledger, and settles its open jobs.
///
/// `checked` is the largest id that the check before has seen; gives the one to start from next.
///
/// # Errors
/// When the server does not answer. Broken rules go into the ledger.
pub(crate) fn check(
    address: SocketAddr,
    ledger: &mut Ledger,
    checked: u64,
    random: &mut Rng,
) -> Result<u64> {
    let mut connection = Connection::open(address)?;
    let newest = newest_id(&mut connection)?;
    if newest <= ledger.last_id() {
        ledger.violate(format!("id {newest} was given twice, {} is known", ledger.last_id()));
    }
    let mut ids: BTreeSet<u64> = ledger.open_ids().into_iter().collect();
    ids.extend(checked + 1..newest);
    ids.extend(sample(&ledger.gone_ids(), random));
    let found = peek_all(&mut connection, &ids)?;
    let count = job_count(&mut connection)?;
    if count != found.len() as u64 {
        ledger.violate(format!("{count} jobs are counted, {} were found", found.len()));
    }
    ledger.settle(&found);
    Ok(newest)
}

/// Compares states and priorities with those that were confirmed.
///
/// # Errors
/// When the server does not answer. Broken rules go into the ledger.
pub(crate) fn check_places(
    address: SocketAddr,
    ledger: &mut Ledger,
    random: &mut Rng,
) -> Result<()> {
    let mut connection = Connection::open(address)?;
    for (number, id, place) in sample(&ledger.places(), random) {
        let stats = connection.ask(&format!("stats-job {id}"))?;
        let found = (stats.value("state"), stats.value("pri"));
        let (Some(state), Some(priority)) = found else { continue };
        let expected = place.priority.map_or(priority.clone(), |priority| priority.to_string());
        if state != place.state || priority != expected {
            ledger.violate(format!("job {number} (id {id}) is {state} {priority}, not {place:?}"));
        }
    }
    Ok(())
}

/// Takes everything away: each job exactly once, and nothing is left.
///
/// # Errors
/// When the server does not answer.
pub(crate) fn drain(address: SocketAddr, ledger: &mut Ledger) -> Result<()> {
    let mut connection = Connection::open(address)?;
    for tube in tubes(&mut connection)? {
        connection.ask(&format!("watch {tube}"))?;
        connection.ask(&format!("use {tube}"))?;
        while connection.ask("kick 1000000")?.line != "KICKED 0" {}
    }
    loop {
        let reply = connection.ask("reserve-with-timeout 0")?;
        let ("RESERVED", Some(id)) = (reply.word(), reply.id()) else { break };
        let number = ledger.delivered(id, &reply.body);
        if connection.ask(&format!("delete {id}"))?.line == "DELETED" {
            number.into_iter().for_each(|number| ledger.deleted(number));
        }
    }
    let (left, missing) = (job_count(&mut connection)?, ledger.count_there());
    if left != 0 || missing != 0 {
        ledger.violate(format!("after the last job {left} are left and {missing} are missing"));
    }
    Ok(())
}

/// Puts a job and deletes it, for its id is above all that were given before.
fn newest_id(connection: &mut Connection) -> Result<u64> {
    connection.ask("use marker")?;
    connection.send(b"put 0 0 60 6\r\nmarker\r\n")?;
    let reply = connection.reply()?;
    let id = reply.id().ok_or(format!("the marker was answered {}", reply.line))?;
    match connection.ask(&format!("delete {id}"))?.word() {
        "DELETED" => Ok(id),
        other => Err(format!("the marker's delete was answered {other}").into()),
    }
}

fn peek_all(
    connection: &mut Connection,
    ids: &BTreeSet<u64>,
) -> io::Result<BTreeMap<u64, Vec<u8>>> {
    let mut found = BTreeMap::new();
    let ids: Vec<u64> = ids.iter().copied().collect();
    for window in ids.chunks(WINDOW) {
        let lines: String = window.iter().map(|id| format!("peek {id}\r\n")).collect();
        connection.send(lines.as_bytes())?;
        for &id in window {
            let reply = connection.reply()?;
            if reply.word() == "FOUND" {
                found.insert(id, reply.body);
            }
        }
    }
    Ok(found)
}

/// All jobs of the server, by its own count.
fn job_count(connection: &mut Connection) -> Result<u64> {
    let stats = connection.ask("stats")?;
    let mut count = 0;
    for state in ["ready", "reserved", "delayed", "buried"] {
        let value = stats.value(&format!("current-jobs-{state}")).ok_or("stats lack a count")?;
        count += value.parse::<u64>()?;
    }
    Ok(count)
}

fn sample<T: Copy>(all: &[T], random: &mut Rng) -> Vec<T> {
    if all.len() as u64 <= SAMPLE {
        return all.to_vec();
    }
    (0..SAMPLE).filter_map(|_| all.get(random.below(all.len() as u64) as usize).copied()).collect()
}

fn tubes(connection: &mut Connection) -> Result<Vec<String>> {
    let list = connection.ask("list-tubes")?;
    let names = std::str::from_utf8(&list.body)?.lines().filter_map(|line| line.strip_prefix("- "));
    Ok(names.map(|name| name.trim_matches('"').to_owned()).collect())
}
