//! A broker with a JMS client that asks it; each has a process, and the client is asked by lines.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;

use super::asked::{Answer, Asked};
use super::document::Run;
use super::usage::Usage;
use crate::Result;
use crate::counters;
use crate::repository::root;
use crate::run::run;
use crate::server::{Dunlin, Java, Program, Server, java_command_of};

/// Longer than any question should take; then it is a failure.
const ANSWER_MAX: Duration = Duration::from_secs(90);

const BUILD_MAX: Duration = Duration::from_secs(1800);

/// The client class that is asked, and its flags.
pub(super) struct Client {
    /// In `dunlin.bench`.
    pub(super) class: &'static str,
    pub(super) flags: Vec<String>,
}

/// How a broker is to be.
pub(super) struct Wanted<'a> {
    pub(super) name: &'a str,
    /// `none`, `always`, or a duration.
    pub(super) policy: &'a str,
    /// More options of Dunlin's.
    pub(super) options: Vec<String>,
}

/// Both processes. Dropping it ends them.
pub(super) struct System {
    /// None where the broker is in the client's process.
    server: Option<Server>,
    data: PathBuf,
    client: Asked,
}

impl System {
    /// Starts both, with nothing in the broker.
    ///
    /// # Errors
    /// When one of them cannot be started.
    pub(super) fn start(run: &Run, wanted: &Wanted<'_>, client: &Client) -> Result<System> {
        let data = run.empty_folder()?;
        let name = wanted.name;
        if name == "classic-vm" {
            return within(run, wanted, client, data);
        }
        let log = run.bench.log(&format!("bench-{name}"));
        let program = program(run, wanted, &data)?;
        let mut server = program.start(&log)?;
        let address = server.wait_ready()?;
        if name.starts_with("dunlin") {
            counters::await_rest(&server, &log)?;
        }
        let (scheme, modules): (_, &[&str]) = match program.protocol() {
            "joram" => ("joram", &["bench-javax"]),
            "openwire" => ("tcp", &["bench"]),
            "mq" => ("mq", &["bench", "openmq"]),
            _ => ("amqp", &["bench"]),
        };
        let mut command = java_command_of(modules)?;
        command
            .args([class(client), format!("{name}={scheme}://{address}")])
            .args(["--broker-pid", &server.pid().to_string()])
            .args(&client.flags);
        let client = Asked::start(command, &run.bench.log("bench-client"))?;
        Ok(System { server: Some(server), data, client })
    }

    /// The client's answer, with the flushes and bytes of the disk meanwhile.
    ///
    /// # Errors
    /// As [`Asked::ask`].
    pub(super) fn ask(&mut self, question: &str) -> Result<Answer> {
        let pid = self.server.as_ref().map_or_else(|| self.client.pid(), Server::pid);
        let before = Usage::of(pid, &self.data)?;
        let mut answer = self.client.ask(question, ANSWER_MAX)?;
        let used = Usage::of(pid, &self.data)?.since(before);
        answer.insert("flushes".to_owned(), json!(used.flushes));
        answer.insert("written_bytes".to_owned(), json!(used.written_bytes));
        Ok(answer)
    }
}

/// Classic in the client's own process, as its `vm:` transport wants it.
fn within(run: &Run, wanted: &Wanted<'_>, client: &Client, data: PathBuf) -> Result<System> {
    let mut command = java_command_of(&["brokers", "bench"])?;
    command
        .arg("dunlin.interop.Within")
        .arg(&data)
        .args([wanted.policy, &class(client), "classic-vm=vm://within?create=false"])
        // The process counts as the client.
        .args(["--broker-pid", "0"])
        .args(&client.flags);
    let client = Asked::start(command, &run.bench.log("bench-client"))?;
    Ok(System { server: None, data, client })
}

fn class(client: &Client) -> String {
    format!("dunlin.bench.{}", client.class)
}

fn program(run: &Run, wanted: &Wanted<'_>, data: &Path) -> Result<Program> {
    let (data, policy) = (data.display().to_string(), wanted.policy);
    let of = |module, name, class, protocol, rest: &[&str]| {
        let rest = rest.iter().map(|word| (*word).to_owned());
        let arguments = [data.clone()].into_iter().chain(rest).collect();
        Program::Java(Java { module, name, class, protocol, arguments })
    };
    let java = |name, class, protocol, rest: &[&str]| of("brokers", name, class, protocol, rest);
    Ok(match wanted.name {
        name if name.starts_with("dunlin") => {
            let kept = if policy == "none" { "--store" } else { "--sync" };
            let mut options = ["--data", &data, kept, policy].map(str::to_owned).to_vec();
            options.extend(wanted.options.iter().cloned());
            let binary = run.binary.clone();
            Program::Dunlin(Dunlin { binary, protocol: "amqp", options, variables: Vec::new() })
        }
        "joram" => java("joram", "Joram", "joram", &[policy]),
        "classic" => java("classic", "Classic", "openwire", &[policy]),
        "classic-amqp" => java("classic", "Classic", "amqp", &[policy]),
        "artemis" => java("artemis", "Artemis", "amqp", &["0", policy]),
        "openmq" | "openmq-default" => of("openmq", "openmq", "OpenMq", "mq", &[policy]),
        other => return Err(format!("{other}? See cargo xtask --help").into()),
    })
}

/// Builds modules of `interop/jms`.
///
/// # Errors
/// When Maven fails.
pub(super) fn build(test: &Run, modules: &str) -> Result<()> {
    maven(test, "jms", &["-pl", modules])
}

/// Builds a folder of `interop` that is no module of another.
///
/// # Errors
/// When Maven fails.
pub(super) fn build_alone(test: &Run, folder: &str) -> Result<()> {
    maven(test, folder, &[])
}

fn maven(test: &Run, folder: &str, words: &[&str]) -> Result<()> {
    println!("building interop/{folder} {}", words.join(" "));
    let mut maven = crate::amqp::in_folder(folder, &["mvn", "-B", "-ntp", "process-classes"])?;
    maven.args(words);
    let outcome = run(&mut maven, &test.bench.log("bench-build"), BUILD_MAX)?;
    if outcome.ended_well {
        return Ok(());
    }
    Err(format!("interop/{folder} cannot be built\n{}", outcome.tail()).into())
}

/// The version that a separately built module of `interop/jms` states.
pub(super) fn said_version(module: &str) -> Option<String> {
    fs::read_to_string(root().join("interop/jms").join(module).join("target/version")).ok()
}
