//! Why the files of the log are kept.

use hyper::StatusCode;
use model::AdminCommand;
use serde_json::{Value as Json, json};

use crate::app::{App, Asked, json};
use crate::body::Answer;
use crate::gateway::{Gateway, QueueFigures, SegmentFigures};
use crate::latest::Aged;
use crate::operate::age_millis;
use crate::problem::Result;
use crate::shown::moment;

impl<G: Gateway> App<G> {
    /// Its files, whole: they are as many as the disk holds segments.
    pub(crate) async fn journal(&self, asked: Asked) -> Result<Answer> {
        asked.query.finish()?;
        self.check_operator()?;
        let segments: Vec<Json> = self.gateway.segments().await.iter().map(segment).collect();
        // Answered when all of the log so far is durable.
        let durable = async { self.admin(AdminCommand::NextMessage).await.map(drop) };
        let Aged { value: segments, age } =
            self.segments_or_latest(segments.into(), durable).await?;
        let told = json!({ "segments": segments, "age_millis": age_millis(age) });
        Ok(json(StatusCode::OK, &told))
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
