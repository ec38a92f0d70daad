//! `dunlin health`: one question to a broker, for the health check of a container.

use serde_json::Value as Json;

use crate::cli::Health;
use crate::client::table::say;
use crate::client::web::Web;
use crate::exit::Error;

/// Prints the state that the broker tells.
pub(crate) fn run(health: &Health) -> Result<(), Error> {
    let path = if health.ready { "/ready" } else { "/health" };
    let answer = Web::answering_within(&health.server, health.timeout)?.get(path)?;
    let state = answer.object().map_err(|error| match error {
        // Another server: it answers, and knows no such page.
        Error::Nothing(what) => Error::Other(format!("{what}: is this a Dunlin server?")),
        error => error,
    })?;
    let text = match state.get("status").and_then(Json::as_str) {
        Some(status) if !health.server.json => status.to_owned(),
        _ => Json::Object(state).to_string(),
    };
    say(format!("{text}\n").as_bytes())
}
