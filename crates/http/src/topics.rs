//! Following a topic: server-sent events, as browsers know them.

use std::time::Duration;

use bytes::Bytes;
use hyper::header::{CACHE_CONTROL, HeaderName, HeaderValue};
use model::{Delivery, Envelopes, QueueName};
use serde_json::{Value as Json, json};
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::app::{App, Asked, Peer, text};
use crate::body::{Answer, Body};
use crate::byte_share::Follower;
use crate::gateway::{Events, Gateway};
use crate::guard::attachment;
use crate::memory_gauge::{MemoryGauge, REQUEST_BYTES};
use crate::problem::Result;
use crate::shown;

impl<G: Gateway> App<G> {
    pub(crate) async fn events(&self, topic: QueueName, asked: Asked) -> Result<Answer> {
        asked.query.finish()?;
        let events = self.gateway.follow(self.actor().clone(), topic).await?;
        // One piece is on its way to the connection. The credit bounds the others, which wait
        // before it.
        let (to, pieces) = mpsc::channel(1);
        let Peer { hangup, asker, .. } = asked.peer;
        let following =
            forward_events(events, self.options.envelopes, self.budget.events.follower(hangup), to);
        let counted = MemoryGauge::new(&self.options.held_bytes, REQUEST_BYTES);
        tokio::spawn(async move {
            tokio::select! {
                () = following => {}
                () = asker.left() => {}
            }
            drop(counted);
        });
        let mut answer = attachment(text("text/event-stream", Bytes::new()));
        let headers = answer.headers_mut();
        // A proxy that keeps events back until they fill its buffer would keep them for ever.
        headers.insert(BUFFERING, HeaderValue::from_static("no"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store, no-transform"));
        Ok(answer.map(|_| Body::Stream(pieces)))
    }
}

/// Until one of the two ends is gone.
async fn forward_events(
    mut events: impl Events,
    envelopes: Envelopes,
    follower: Follower,
    to: mpsc::Sender<Bytes>,
) {
    let mut piece = Bytes::from_static(b": follows\n\n");
    while to.send(piece).await.is_ok() {
        piece = tokio::select! {
            event = events.next() => match event {
                Some(delivery) => tokio::select! {
                    event = held_event(delivery, &envelopes, &follower) => match event {
                        Ok(event) => event,
                        // Its client comes again.
                        Err(_) => return,
                    },
                    () = to.closed() => return,
                },
                None => {
                    if let Some(why) = events.end() {
                        let _ = to.send(end_text(&why)).await;
                    }
                    return;
                }
            },
            () = sleep(HEARTBEAT) => Bytes::from_static(b": still there\n\n"),
            () = to.closed() => return,
        };
    }
}

/// The text of an event, as soon as there is room for it.
async fn held_event(
    delivery: Delivery,
    envelopes: &Envelopes,
    follower: &Follower,
) -> Result<Bytes> {
    // About, before it is there.
    let permit = follower.permit(delivery.body.len() / 3 * 4).await?;
    let text = event_text(&delivery, envelopes);
    Ok(match permit {
        Some(permit) => permit.hold(text),
        None => text,
    })
}

/// An event: its data is one line of JSON.
fn event_text(delivery: &Delivery, envelopes: &Envelopes) -> Bytes {
    let json = Json::Object(shown::json(delivery, envelopes));
    format!("id: {}\nevent: message\ndata: {json}\n\n", delivery.message).into()
}

/// The last event, which says why there are no more.
fn end_text(why: &str) -> Bytes {
    let json = json!({ "type": "urn:dunlin:problem:subscription-full", "detail": why });
    format!("event: end\ndata: {json}\n\n").into()
}

/// The header by which an answer tells nginx, and proxies that took it over, to pass on events at
/// once.
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// The interval of comments that keep proxies from closing a quiet stream, and find out that a
/// reader is gone.
const HEARTBEAT: Duration = Duration::from_secs(15);
