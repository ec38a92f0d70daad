//! `dunlin journal explain`: the reason why each log file is kept, of a directory or a broker.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use broker::{Explained, QueueShare, explain};
use engine::EngineOptions;
use model::{Nanos, StorePolicy};
use serde_json::{Map, Value as Json, json};

use crate::client::table::print;
use crate::client::web::Web;
use crate::exit::Error;
use crate::journal_open::{Reading, open};

/// Prints a line for each file.
pub(crate) fn run(place: &str, as_json: bool) -> Result<(), Error> {
    let is_url = place.starts_with("http://") || place.starts_with("https://");
    let mut segments = if is_url { of_broker(place)? } else { of_directory(Path::new(place))? };
    if !as_json {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        segments.iter_mut().for_each(|segment| tell(segment, now));
    }
    print(&segments, &COLUMNS, as_json)
}

fn of_broker(url: &str) -> Result<Vec<Map<String, Json>>, Error> {
    let mut answer = Web::new(url).get("/journal")?.object()?;
    let Some(Json::Array(segments)) = answer.remove("segments") else { return Ok(Vec::new()) };
    Ok(segments.into_iter().filter_map(object).collect())
}

/// Reads as `verify` does, and refuses the same directories.
fn of_directory(directory: &Path) -> Result<Vec<Map<String, Json>>, Error> {
    let failed = |error: &dyn std::fmt::Display| Error::Other(error.to_string());
    let disk = open(directory)?;
    // The stored content does not depend on any option.
    let options = EngineOptions::new(StorePolicy::Always);
    let reading = Reading::begin();
    let explained = explain(&disk, options, &mut |bytes| reading.read(bytes))
        .map_err(|error| failed(&error))?;
    Ok(explained.iter().map(segment_json).filter_map(object).collect())
}

fn object(json: Json) -> Option<Map<String, Json>> {
    if let Json::Object(object) = json { Some(object) } else { None }
}

/// In the words of `GET /journal`.
fn segment_json(explained: &Explained) -> Json {
    let Explained { segment, queues, queues_count } = explained;
    json!({
        "file": segment.number.file_name(),
        "bytes": segment.bytes,
        "used_bytes": segment.used_bytes,
        "live_bytes": segment.live.bytes,
        "live_records": segment.live.count,
        "kept_for": segment.kept_for.name(),
        "queues": queues.iter().map(queue_json).collect::<Vec<_>>(),
        "queues_count": queues_count,
    })
}

fn queue_json(share: &QueueShare) -> Json {
    let kind = if share.of_topic { "topic" } else { "queue" };
    json!({
        kind: share.queue.as_str(),
        "messages": share.messages,
        "oldest": share.oldest.0,
        "created": share.created.rfc3339().to_string(),
    })
}

/// Adds the fields that operators look for first.
fn tell(segment: &mut Map<String, Json>, now_millis: u128) {
    let number = |name: &str| segment.get(name).and_then(Json::as_u64).unwrap_or_default();
    let (live, bytes) = (number("live_bytes"), number("bytes").max(1));
    let share = format!("{}%", (live * 100).div_ceil(bytes));
    let listed = segment.get("queues").and_then(Json::as_array).map_or(0, Vec::len);
    let others = number("queues_count").saturating_sub(listed.min(1) as u64);
    let first = segment.get("queues").and_then(|queues| queues.get(0)).and_then(Json::as_object);
    let mut oldest = first.map(|queue| oldest(queue, now_millis)).unwrap_or_default();
    if others > 0 {
        oldest.push_str(&format!(" (+{others} more)"));
    }
    segment.insert("live".into(), share.into());
    segment.insert("oldest_message".into(), oldest.into());
}

fn oldest(queue: &Map<String, Json>, now_millis: u128) -> String {
    let number = |name: &str| queue.get(name).and_then(Json::as_u64).unwrap_or_default();
    let text = |name: &str| queue.get(name).and_then(Json::as_str);
    let name = text("queue").or(text("topic")).unwrap_or_default();
    let created = text("created").and_then(Nanos::of_rfc3339).unwrap_or_default();
    let seconds = now_millis.saturating_sub(u128::from(created.0 / 1_000_000)) / 1000;
    let (id, messages) = (number("oldest"), number("messages"));
    format!("{id} in {name}, {} old, of {messages}", span(seconds))
}

/// Roughly.
fn span(seconds: u128) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

const COLUMNS: [&str; 6] = ["file", "bytes", "live_bytes", "live", "kept_for", "oldest_message"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_message_is_shown_with_age() {
        let segment = json!({
            "bytes": 1000, "live_bytes": 5, "queues_count": 3,
            "queues": [{ "queue": "mail", "messages": 2, "oldest": 17,
                "created": "1970-01-01T00:00:01.000Z" }],
        });
        let mut segment = object(segment).unwrap();
        tell(&mut segment, 10_801_000);
        assert_eq!(segment["live"], "1%");
        assert_eq!(segment["oldest_message"], "17 in mail, 3 h old, of 2 (+2 more)");
        let spans = [5, 600, 90_000, 864_000].map(span);
        assert_eq!(spans, ["5 s", "10 min", "25 h", "10 days"]);
    }
}
