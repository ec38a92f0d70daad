//! `dunlin journal salvage`.

use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use broker::{SalvageError, Salvaged, salvage};
use disk::{Choice, Method, RealDisk, rename_directory};
use engine::LostMessage;
use model::{BrokerStatistics, Nanos};
use serde_json::{Value, json};

use crate::client::table::say;
use crate::exit::Error;
use crate::journal_open::{Reading, open};

/// Lost messages that are named to people; JSON names all.
const LOST_TOLD: usize = 100;

/// Copies the readable part of a directory into a new one, and reports the rest.
pub(crate) fn run(from: &Path, to: &Path, as_json: bool) -> Result<(), Error> {
    let failed = |error: &dyn std::fmt::Display| Error::Other(error.to_string());
    let disk = open(from)?;
    check_outside(from, to)?;
    let unfinished = unfinished(to)?;
    let salvaged = {
        let target = RealDisk::open(&unfinished, Choice::Force(Method::Buffered));
        let target = target.map_err(|error| failed(&error))?;
        let reading = Reading::begin();
        salvage(&disk, &target, now(), &mut |bytes| reading.read(bytes))
    };
    let salvaged = salvaged.map_err(|error| abandoned(&unfinished, &error))?;
    rename_directory(&unfinished, to).map_err(|error| {
        Error::Other(format!("{} is whole and has no other name: {error}", unfinished.display()))
    })?;
    let told = if as_json { to_json(&salvaged, to) } else { to_text(&salvaged, to) };
    say(told.as_bytes())
}

/// The damaged directory is only read: the copy does not go into it.
fn check_outside(from: &Path, to: &Path) -> Result<(), Error> {
    let from = fs::canonicalize(from).map_err(|error| Error::Other(error.to_string()))?;
    let above = std::path::absolute(to).map_err(|error| Error::Settings(error.to_string()))?;
    let above = above.ancestors().skip(1).find_map(|above| fs::canonicalize(above).ok());
    if above.is_some_and(|above| above.starts_with(&from)) {
        let text = format!("{} is inside of the damaged directory", to.display());
        return Err(Error::Settings(text));
    }
    Ok(())
}

/// The copy is made under another name: the one that was asked for is there once it is whole.
fn unfinished(to: &Path) -> Result<PathBuf, Error> {
    let name = to.file_name().ok_or_else(|| Error::Settings("--to needs a name".into()))?;
    match fs::read_dir(to).map(|mut entries| entries.next().is_some()) {
        Ok(false) => {}
        Ok(true) => {
            let text = format!("{} is not empty: give --to a new directory", to.display());
            return Err(Error::Settings(text));
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(Error::Settings(format!("{}: {error}", to.display()))),
    }
    let mut name = name.to_owned();
    name.push(".unfinished");
    let unfinished = to.with_file_name(name);
    if fs::symlink_metadata(&unfinished).is_ok() {
        let text = format!(
            "{} is what a salvage left that did not end: remove it first",
            unfinished.display()
        );
        return Err(Error::Settings(text));
    }
    Ok(unfinished)
}

/// The copy failed: the part of it that this process made is of no use.
fn abandoned(unfinished: &Path, error: &SalvageError) -> Error {
    let left = match fs::remove_dir_all(unfinished) {
        Ok(()) => String::new(),
        Err(error) => format!("; {} is left and of no use: {error}", unfinished.display()),
    };
    Error::Other(format!("{error}{left}"))
}

fn now() -> Nanos {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

fn to_text(salvaged: &Salvaged, to: &Path) -> String {
    let report = &salvaged.report;
    let BrokerStatistics { ready, delayed, buried, queues, .. } = salvaged.recovery.statistics;
    let mut text = format!(
        "{}: {ready} ready, {delayed} delayed and {buried} buried messages in {queues} queues\n",
        to.display()
    );
    let mut line = |line: std::fmt::Arguments<'_>| {
        let _ = writeln!(text, "{line}");
    };
    if salvaged.is_whole() {
        line(format_args!("nothing is known to be lost"));
        return text;
    }
    for damage in &salvaged.damage {
        line(format_args!("damaged: {}: {}", damage.file, damage.cause));
    }
    for gap in &salvaged.gaps {
        let after = gap.after.as_ref().map_or_else(String::new, |(file, offset)| {
            format!(", behind the batch at byte {offset} of {file}")
        });
        let word = if gap.synced { "lost" } else { "missing, and maybe never confirmed" };
        let (first, last) = (gap.first, gap.last);
        if first == last {
            line(format_args!("{word}: frame {first}{after}"));
        } else {
            line(format_args!("{word}: frames {first} to {last}{after}"));
        }
    }
    if salvaged.gaps.iter().any(|gap| gap.synced) {
        line(format_args!(
            "messages that came in these frames are lost; messages that were settled in them are \
             there again"
        ));
    }
    for lost in report.messages_lost.iter().take(LOST_TOLD) {
        let LostMessage { message, place, created, frame } = lost;
        let created = created.rfc3339();
        line(format_args!("lost: message {message} of {place}, stored {created}, frame {frame}"));
    }
    if let Some(more) = report.messages_lost.len().checked_sub(LOST_TOLD).filter(|more| *more > 0) {
        line(format_args!("lost: {more} more messages, which --json names"));
    }
    if report.messages_doubtful > 0 {
        line(format_args!(
            "doubtful: {} messages were found in older frames only and may have been settled since",
            report.messages_doubtful
        ));
    }
    if report.others_doubtful > 0 {
        line(format_args!(
            "doubtful: {} values, deadlines, rules, subscriptions and deduplication ids were found \
             in older frames only and may be gone since",
            report.others_doubtful
        ));
    }
    for (number, queue) in &report.subscriptions_lost {
        line(format_args!("lost: subscription {number}; its messages are in the queue {queue}"));
    }
    if report.commits_partial > 0 {
        line(format_args!(
            "partial: {} commits of which some frames are lost; the rest is kept",
            report.commits_partial
        ));
    }
    for (lsn, error) in &report.frames_unreadable {
        line(format_args!("unreadable: frame {lsn}: {error}"));
    }
    text
}

fn to_json(salvaged: &Salvaged, to: &Path) -> String {
    let report = &salvaged.report;
    let BrokerStatistics { ready, delayed, buried, queues, .. } = salvaged.recovery.statistics;
    let damage = salvaged.damage.iter();
    let damage: Vec<Value> =
        damage.map(|it| json!({ "file": it.file, "cause": it.cause })).collect();
    let gaps = salvaged.gaps.iter().map(|gap| {
        let (file, offset) = gap.after.clone().unzip();
        json!({
            "first": gap.first.0, "last": gap.last.0, "synced": gap.synced,
            "after_file": file, "after_offset": offset,
        })
    });
    let lost = report.messages_lost.iter().map(|lost| {
        json!({
            "message": lost.message.0, "place": lost.place, "frame": lost.frame.0,
            "stored": lost.created.rfc3339().to_string(),
        })
    });
    let subscriptions = report.subscriptions_lost.iter();
    let subscriptions =
        subscriptions.map(|(number, queue)| json!({ "subscription": number, "queue": queue }));
    let unreadable = report.frames_unreadable.iter();
    let unreadable =
        unreadable.map(|(lsn, error)| json!({ "frame": lsn.0, "cause": error.to_string() }));
    let object = json!({
        "to": to.to_string_lossy(), "whole": salvaged.is_whole(),
        "ready": ready, "delayed": delayed, "buried": buried, "queues": queues,
        "damage": damage,
        "frames_lost": gaps.collect::<Vec<_>>(),
        "messages_lost": lost.collect::<Vec<_>>(),
        "messages_doubtful": report.messages_doubtful,
        "others_doubtful": report.others_doubtful,
        "subscriptions_lost": subscriptions.collect::<Vec<_>>(),
        "commits_partial": report.commits_partial,
        "frames_unreadable": unreadable.collect::<Vec<_>>(),
    });
    format!("{object}\n")
}
