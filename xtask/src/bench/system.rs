//! A broker that runs with the client that asks it.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;

use super::asked::{Answer, Asked};
use super::options::Options;
use crate::Result;
use crate::counters;
use crate::server::{Dunlin, Java, Program, Server, java_command};
use crate::steps::Bench;

/// A question is over after `--millis`, and what it waits for besides; longer is a failure.
const ANSWER_MAX: Duration = Duration::from_secs(90);

/// Both processes. Dropping it ends them.
pub(super) struct System {
    server: Server,
    log: PathBuf,
    client: Asked,
    counts: bool,
}

impl System {
    /// Starts both, with nothing in the broker. `paced` are the destinations that get a target age
    /// where the system has one.
    pub(super) fn start(
        bench: &Bench,
        options: &Options,
        name: &str,
        paced: &[String],
    ) -> Result<System> {
        let data = bench.scratch.join("bench-data");
        if data.exists() {
            fs::remove_dir_all(&data)?;
        }
        let log = bench.log(&format!("bench-{name}"));
        let data = data.display().to_string();
        let program = program(bench, options, name, data, paced)?;
        let mut server = program.start(&log)?;
        let address = server.wait_ready()?;
        let counts = name.starts_with("dunlin");
        if counts {
            counters::await_rest(&server, &log)?;
        }
        let (scheme, module) = match program.protocol() {
            "joram" => ("joram", "bench-javax"),
            "openwire" => ("tcp", "bench"),
            _ => ("amqp", "bench"),
        };
        let mut client = java_command(module)?;
        client
            .args(["dunlin.bench.Saturation", &format!("{name}={scheme}://{address}")])
            .args(["--broker-pid", &server.pid().to_string()])
            .args(["--messages", &options.messages.to_string()])
            .args(["--backlog", &options.backlog.to_string()])
            .args(["--millis", &options.millis.to_string()]);
        let client = Asked::start(client, &bench.log("bench-client"))?;
        Ok(System { server, log, client, counts })
    }

    /// The client's answer, with what the broker did to the disk for it where that is counted.
    ///
    /// # Errors
    /// As [`Asked::ask`].
    pub(super) fn ask(&mut self, question: &str) -> Result<Answer> {
        let before = self.disk()?;
        let mut answer = self.client.ask(question, ANSWER_MAX)?;
        if let Some((before, after)) = before.zip(self.disk()?) {
            let mut put = |name: &str, count: u64| answer.insert(name.to_owned(), json!(count));
            put("disk_bytes", after.bytes.saturating_sub(before.bytes));
            put("syncs", after.syncs.saturating_sub(before.syncs));
        }
        Ok(answer)
    }

    fn disk(&self) -> Result<Option<counters::Disk>> {
        if self.counts { counters::disk(&self.server, &self.log) } else { Ok(None) }
    }
}

/// Each flushes to the disk before it confirms.
fn program(
    bench: &Bench,
    options: &Options,
    name: &str,
    data: String,
    paced: &[String],
) -> Result<Program> {
    let java = |name, class, protocol, rest: &[&str]| {
        let rest = rest.iter().map(|word| (*word).to_owned());
        let arguments = [data.clone()].into_iter().chain(rest).collect();
        Program::Java(Java { name, class, protocol, arguments })
    };
    Ok(match name {
        "dunlin" => dunlin(bench, options, &data, &[])?,
        "dunlin-target-age" => dunlin(bench, options, &data, paced)?,
        "joram" => java("joram", "Joram", "joram", &["always"]),
        "classic" => java("classic", "Classic", "openwire", &["always"]),
        "artemis" => java("artemis", "Artemis", "amqp", &["0", "always"]),
        other => return Err(format!("{other}? See cargo xtask --help").into()),
    })
}

fn dunlin(bench: &Bench, options: &Options, data: &str, paced: &[String]) -> Result<Program> {
    let binary = binary(bench, options)?;
    let mut words = ["--data", data, "--sync", "always"].map(str::to_owned).to_vec();
    for name in paced {
        for rule in ["target-age=200ms", "when-full=pace"] {
            words.extend(["--queue".to_owned(), format!("{name}:{rule}")]);
        }
    }
    Ok(Program::Dunlin(Dunlin { binary, protocol: "amqp", options: words, variables: Vec::new() }))
}

/// The one that was named, or the release build.
pub(super) fn binary(bench: &Bench, options: &Options) -> Result<PathBuf> {
    options.binary.clone().map_or_else(|| bench.dunlin(), Ok)
}
