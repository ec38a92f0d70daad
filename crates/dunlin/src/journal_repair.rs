//! `dunlin journal repair`.

use std::path::Path;

use broker::Repaired;
use disk::{Choice, Method, RealDisk};
use serde_json::json;

use crate::client::table::say;
use crate::exit::Error;
use crate::journal_open::{Reading, open};
use crate::journal_verify::options;

/// Reports the fault and the loss that a repair means; repairs if `accept_loss` is set.
pub(crate) fn run(directory: &Path, accept_loss: bool, as_json: bool) -> Result<(), Error> {
    let failed = |error: &dyn std::fmt::Display| Error::Other(error.to_string());
    let disk = open(directory)?;
    let reading = Reading::begin();
    let mut tell = |bytes| reading.read(bytes);
    let found = broker::repair(&disk, options(), false, &mut tell);
    let mut repaired = found.map_err(|error| failed(&error))?;
    let is_sound = repaired.repair.fault.is_none();
    if accept_loss && !is_sound {
        // Another lock: a process may have written in between, so all is checked anew under this
        // one.
        drop(disk);
        let disk = RealDisk::open(directory, Choice::Force(Method::Buffered));
        let disk = disk.map_err(|error| failed(&error))?;
        let done = broker::repair(&disk, options(), true, &mut tell);
        repaired = done.map_err(|error| failed(&error))?;
    }
    drop(reading);
    say(told(&repaired, accept_loss, as_json).as_bytes())?;
    if is_sound || accept_loss {
        return Ok(());
    }
    Err(Error::Other(
        "nothing was changed: look for the missing files first; where they are gone for good, \
         --accept-loss goes on without them"
            .into(),
    ))
}

fn told(repaired: &Repaired, accept_loss: bool, as_json: bool) -> String {
    let Repaired { repair, statistics } = repaired;
    let last = repair.recovered.last;
    let fault = repair.fault.as_ref().map(|fault| fault.cause());
    if as_json {
        let lost = repair.lost().map(|(first, last)| json!({ "first": first.0, "last": last.0 }));
        let object = json!({
            "sound": fault.is_none(), "fault": fault, "repaired": fault.is_some() && accept_loss,
            "last_frame": last.0, "frames_lost": lost,
            "ready": statistics.ready, "delayed": statistics.delayed, "buried": statistics.buried,
        });
        return format!("{object}\n");
    }
    let left = format!(
        "{} ready, {} delayed and {} buried messages in {} queues, up to frame {last}",
        statistics.ready, statistics.delayed, statistics.buried, statistics.queues
    );
    let Some(fault) = fault else { return format!("sound, nothing to repair: {left}\n") };
    let lost = match repair.lost() {
        Some((first, last)) => format!(
            "frames {first} to {last} were on the device once and are gone, and all that came \
             behind them"
        ),
        None => "no frame is known to be gone; of a segment that was begun later nothing tells"
            .to_owned(),
    };
    let done = if accept_loss { "repaired" } else { "to be repaired" };
    format!("{done}: {fault}\nlost: {lost}\nleft: {left}\n")
}
