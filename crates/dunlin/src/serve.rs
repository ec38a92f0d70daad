//! `dunlin serve`.

use std::io::Write as _;
use std::sync::{Arc, OnceLock};

use server::{Listening, Log, Server, ServiceManager, signals};

use crate::cli::Serve;
use crate::exit::Error;
use crate::variables::Origins;
use crate::{settings, variables};

/// Serves until a signal or a failure ends it.
pub(crate) fn run(serve: Serve) -> Result<(), Error> {
    let origins = Origins::of(&serve);
    serve_until_end(serve).map_err(|error| origins.explain(error))
}

fn serve_until_end(serve: Serve) -> Result<(), Error> {
    let deaf = |error| Error::Other(format!("cannot listen to signals: {error}"));
    let signals = signals::Caught::now().map_err(deaf)?;
    let config = settings::config(serve)?;
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for complaint in variables::complaints(names) {
        Log::Stderr.line(format_args!("{complaint}"));
    }
    allocator::keep_within(config.memory_bytes());
    let remote = Arc::new(OnceLock::new());
    let manager = Arc::new(ServiceManager::from_environment(Log::Stderr));
    signals.obey(Arc::clone(&remote), Arc::clone(&manager)).map_err(deaf)?;
    let running = Server::start(config).map_err(Error::Start)?;
    remote.get_or_init(|| running.remote());
    announce(running.addresses());
    manager.ready();
    let watched = manager.watch(running.remote());
    watched.map_err(|error| Error::Other(format!("cannot watch: {error}")))?;
    running.wait().map_err(|failure| {
        manager.stopping(&failure.to_string());
        Error::Failed(failure)
    })?;
    Log::Stderr.line(format_args!("stopped"));
    Ok(())
}

/// Tells whoever started this where to connect.
fn announce(listeners: &[Listening]) {
    let mut stdout = std::io::stdout().lock();
    let lines = listeners
        .iter()
        .try_for_each(|it| writeln!(stdout, "listening {} {}", it.protocol.name(), it.endpoint))
        .and_then(|()| writeln!(stdout, "ready"))
        .and_then(|()| stdout.flush());
    if let Err(error) = lines {
        Log::Stderr.line(format_args!("cannot tell that it is ready: {error}"));
    }
}
