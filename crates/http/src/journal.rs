//! What the log is kept for.

use hyper::StatusCode;
use serde_json::{Value as Json, json};

use crate::app::{App, Asked, json};
use crate::body::Answer;
use crate::gateway::{Gateway, QueueFigures, SegmentFigures};
use crate::problem::Result;
use crate::shown::moment;

impl<G: Gateway> App<G> {
    /// Its files, whole: they are as many as the disk holds segments.
    pub(crate) async fn journal(&self, asked: Asked) -> Result<Answer> {
        asked.query.finish()?;
        let segments: Vec<Json> = self.gateway.segments().await.iter().map(segment).collect();
        Ok(json(StatusCode::OK, &json!({ "segments": segments })))
    }
}

fn segment(segment: &SegmentFigures) -> Json {
    let queues: Vec<Json> = segment.queues.iter().map(queue).collect();
    json!({
        "file": segment.file,
        "bytes": segment.bytes,
        "used_bytes": segment.used_bytes,
        "live_bytes": segment.live_bytes,
        "live_records": segment.live_records,
        "kept_for": segment.kept_for,
        "queues": queues,
        "queues_count": segment.queues_count,
    })
}

fn queue(queue: &QueueFigures) -> Json {
    let kind = if queue.of_topic { "topic" } else { "queue" };
    json!({
        kind: queue.queue.as_str(),
        "messages": queue.messages,
        "oldest": queue.oldest.0,
        "created": moment(queue.created),
    })
}
