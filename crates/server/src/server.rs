//! Starting a server, and ending it. The binary, the benchmarks and the tests all use this.

use std::fmt;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, mpsc};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use beanstalk::{ListenerState, default_tube};
use broker::{Broker, BrokerOptions, JournalFailed, OpenError, Recovery};
use disk::{File, RealDisk};
use engine::{EngineOptions, QueuePolicies};
use input::Admission;
use journal::JournalOptions;
use model::{BrokerStatistics, Nanos, Secrets, StorePolicy, limits};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

use crate::address::{Endpoint, Listen, Listening, listed_twice};
use crate::audit::AuditLog;
use crate::buffered::ALLOWED_BYTES_MIN;
use crate::clock::{Clock, nanos};
use crate::committer::{COMMITTERS, commit, read_back, run_chores};
use crate::config::{CONNECTIONS_MAX, Config, Limits, Protocol, THREADS_MAX};
use crate::core::Core;
use crate::counters::Counters;
use crate::descriptors;
use crate::events::EventSet;
use crate::facts::{JournalGauges, ProcessFacts};
use crate::gateway_thread::HttpThread;
use crate::hub::{Adjusted, Hub, Parts, Phase};
use crate::listener::{self, Acceptor, Listener};
use crate::listener_fault::ListenerFault;
use crate::logins::Logins;
use crate::mailbox::Mailbox;
use crate::memory::{self, MemoryShares};
use crate::passed;
use crate::peer::ProtocolState;
use crate::reactor::Reactor;
use crate::tls::TlsKeeper;
use crate::{Failure, Logger, StartError};

/// A broker behind sockets.
#[derive(Debug)]
pub struct Server;

impl Server {
    /// Checks all that can be checked without a look at the data directory and without listening:
    /// the settings, and the files of users and certificates.
    ///
    /// # Errors
    /// [`StartError`], as [`Server::start`] would fail with.
    pub fn check(config: &Config) -> Result<(), StartError> {
        check(config)?;
        check_disk_limit(&broker_options(config).journal)?;
        certificates(config)?;
        match config.users.clone() {
            Some(file) => Logins::open(file, Secrets::new(random), config.log).map(drop),
            None => Ok(()),
        }
        .map_err(StartError::Users)
    }

    /// Opens the store, recovers its content, listens, and serves from threads of its own. When
    /// this returns, every listener accepts.
    ///
    /// # Errors
    /// [`StartError`]; nothing is left running then.
    pub fn start(mut config: Config) -> Result<Running, StartError> {
        // As a later reading of the settings gives it: without the passed sockets.
        let asked = Config { passed: Vec::new(), ..config.clone() };
        passed::assign(&mut config.listen, &config.passed).map_err(StartError::Passed)?;
        check(&config)?;
        memory::tell_limit(&config);
        let descriptors = descriptors::raised();
        if config.policy != StorePolicy::Memory {
            descriptors::bound_connections(&mut config, descriptors);
        }
        let disk = open_disk(&config, descriptors)?;
        let listeners = listener::bind_all(&config.listen)?;
        tell_exposed(&config);
        let addresses: Vec<_> = listeners.iter().map(|it| it.listening().clone()).collect();
        config.listen = listeners.iter().filter_map(Listener::bound).collect();
        let hub = Arc::new(build(&config, disk)?);
        hub.adjust(|adjusted| adjusted.asked = asked);
        let (reactors, writers) = (Vec::new(), Vec::new());
        let mut running = Running { hub, addresses, reactors, writers, watching: None };
        let is_http = |listener: &Listener| listener.protocol() == Protocol::Http;
        let (http, listeners) = listeners.into_iter().partition(is_http);
        running.spawn_writers()?;
        running.spawn_doorkeeper()?;
        running.spawn_audit()?;
        running.watch_files()?;
        running.spawn_http(http, &config)?;
        running.spawn_reactors(config.threads, listeners)?;
        Ok(running)
    }
}

/// A server that serves. Dropping it stops it.
pub struct Running {
    hub: Arc<Hub>,
    addresses: Vec<Listening>,
    /// The threads that serve: reactors and others.
    reactors: Vec<JoinHandle<()>>,
    /// The committers and the housekeeper.
    writers: Vec<JoinHandle<()>>,
    /// Kept for the thread that looks at the files of users and certificates: it ends when this is
    /// dropped.
    watching: Option<mpsc::Sender<()>>,
}

/// A way to speak to a running server from any thread.
#[derive(Clone)]
pub struct Remote {
    pub(crate) hub: Arc<Hub>,
}

impl Running {
    /// Its listeners, with the ports that were picked, in the order of the configuration.
    #[must_use]
    pub fn addresses(&self) -> &[Listening] {
        &self.addresses
    }

    /// A handle for other threads.
    #[must_use]
    pub fn remote(&self) -> Remote {
        Remote { hub: Arc::clone(&self.hub) }
    }

    /// The server's counters.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.hub.counters()
    }

    /// Serves until [`Remote::stop`], then stops as [`Running::shutdown`] does.
    ///
    /// # Errors
    /// [`Failure`]: it could not go on.
    pub fn wait(mut self) -> Result<(), Failure> {
        self.hub.wait_for_end().and_then(|()| self.stop())
    }

    /// Accepts nothing more, answers the commands that have come in, closes all connections, and
    /// leaves the store flushed and with a snapshot.
    ///
    /// # Errors
    /// [`Failure`]: the store could not be left so. It still has every confirmed change.
    pub fn shutdown(mut self) -> Result<(), Failure> {
        self.stop()
    }

    fn stop(&mut self) -> Result<(), Failure> {
        self.watching = None;
        self.hub.enter(Phase::Stopping);
        let mut end = join(&mut self.reactors);
        self.hub.logins().iter().for_each(|logins| logins.end());
        if end.is_ok() && self.hub.phase() < Phase::Halted {
            end = self.hub.quiesce();
        }
        self.hub.audit().iter().for_each(|audit| {
            audit.note_server(self.hub.wall_now(), "stop", None);
            audit.end();
        });
        self.hub.enter(Phase::Halted);
        end = end.and(join(&mut self.writers));
        self.hub.failure().map_or(end, Err)
    }

    fn spawn_writers(&mut self) -> Result<(), StartError> {
        if self.hub.disk.is_none() {
            return Ok(());
        }
        for index in 0..COMMITTERS {
            self.writers.push(self.spawn(format!("committer-{index}"), commit)?);
        }
        self.writers.push(self.spawn("housekeeper".into(), run_chores)?);
        self.writers.push(self.spawn("reader".into(), read_back)?);
        Ok(())
    }

    fn spawn_doorkeeper(&mut self) -> Result<(), StartError> {
        if self.hub.logins().is_some() {
            let answer = |hub: &Hub| hub.logins().iter().for_each(|logins| logins.run(hub.clock));
            self.writers.push(self.spawn("doorkeeper".into(), answer)?);
        }
        Ok(())
    }

    fn spawn_audit(&mut self) -> Result<(), StartError> {
        if let Some(audit) = self.hub.audit() {
            audit.note_server(self.hub.wall_now(), "start", None);
            let write = |hub: &Hub| hub.audit().iter().for_each(|audit| audit.run());
            self.writers.push(self.spawn("audit".into(), write)?);
        }
        Ok(())
    }

    /// Reads users and certificates again when their files change.
    fn watch_files(&mut self) -> Result<(), StartError> {
        if self.hub.tls().is_none() && self.hub.logins().is_none() {
            return Ok(());
        }
        let (watching, ends) = mpsc::channel();
        self.watching = Some(watching);
        let watch = move |hub: &Hub| {
            while ends.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
                hub.reload_changed();
            }
        };
        self.writers.push(self.spawn("files".into(), watch)?);
        Ok(())
    }

    fn spawn_reactors(
        &mut self,
        threads: usize,
        listeners: Vec<Listener>,
    ) -> Result<(), StartError> {
        let mut acceptor = Some(Acceptor::new(listeners)?);
        for index in 0..threads {
            let waker = self.hub.mailbox(index).event();
            let event_set = EventSet::new(waker.expect("invariant: a reactor's mailbox has one"))?;
            let acceptor = acceptor.take();
            acceptor.iter().try_for_each(|acceptor| acceptor.watch(&event_set))?;
            let serve = move |hub: &Hub| Reactor::new(hub, index, event_set, acceptor).serve();
            self.reactors.push(self.spawn(format!("reactor-{index}"), serve)?);
        }
        Ok(())
    }

    fn spawn_http(&mut self, listeners: Vec<Listener>, config: &Config) -> Result<(), StartError> {
        if listeners.is_empty() {
            return Ok(());
        }
        let options = http_options(config, &self.hub);
        let http = HttpThread::new(listeners, options, &self.hub).map_err(StartError::System)?;
        let hub = Arc::clone(&self.hub);
        self.reactors.push(self.spawn("http".into(), move |_| http.run(&hub))?);
        Ok(())
    }

    fn spawn(
        &self,
        name: String,
        work: impl FnOnce(&Hub) + Send + 'static,
    ) -> Result<JoinHandle<()>, StartError> {
        let hub = Arc::clone(&self.hub);
        let watched = name.clone();
        let body = move || {
            let _alarm = Alarm { hub: &hub, thread: watched };
            work(&hub);
        };
        Builder::new().name(name).spawn(body).map_err(StartError::System)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A caller that drops a server instead of shutting it down has no use for the result.
        let _ = self.stop();
    }
}

impl Remote {
    /// Ends [`Running::wait`].
    pub fn stop(&self) {
        self.hub.request_end();
    }

    /// Refuses to store messages from now on, with the protocol's answer; all else goes on.
    pub fn drain(&self) {
        self.hub.drain();
        let audit = self.hub.audit();
        audit.iter().for_each(|it| it.note_server(self.hub.wall_now(), "drain", None));
        self.hub
            .log
            .line(format_args!("draining: what would be stored is refused until the next start"));
    }

    /// Returns as soon as a command could be served.
    pub fn take_turn(&self) {
        drop(self.hub.lock());
    }

    /// Reads the files of users and certificates again; the log tells how it went.
    pub fn reload(&self) {
        self.hub.reload();
    }

    /// Writes the counters to the log.
    pub fn log_counters(&self) {
        self.hub.log.line(format_args!("{}", self.hub.counters()));
    }
}

/// Ends the server when its thread panics: half of it must not go on alone.
struct Alarm<'a> {
    hub: &'a Hub,
    thread: String,
}

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.hub.fail(Failure::Panicked(std::mem::take(&mut self.thread)));
        }
    }
}

/// Checks the settings alone.
pub(crate) fn check(config: &Config) -> Result<(), StartError> {
    if !(1..=THREADS_MAX).contains(&config.threads) {
        return Err(StartError::Threads { asked: config.threads });
    }
    if let Some(endpoint) = listed_twice(&config.listen) {
        return Err(StartError::ListenTwice { endpoint });
    }
    config.listen.iter().try_for_each(|listen| check_listener(config, listen))?;
    let mut by_tls = config.listen.iter().filter(|listen| listen.by_tls);
    if let Some(listen) = by_tls.next().filter(|_| config.tls.identities.is_empty()) {
        return Err(StartError::NoCertificate { scheme: listen.scheme() });
    }
    let Limits { connections, output_bytes, buffered_bytes, .. } = config.limits;
    if !(1..=CONNECTIONS_MAX).contains(&connections) {
        return Err(StartError::Connections { asked: connections });
    }
    let answers = [("--max-output-bytes", output_bytes), ("--max-buffered-bytes", buffered_bytes)];
    for (setting, asked) in answers {
        if asked < ALLOWED_BYTES_MIN {
            return Err(StartError::OutputBytes { setting, asked });
        }
    }
    check_message_bytes(config)?;
    check_queues(&config.queues)
}

/// Other machines reach a listener only if it speaks TLS and knows its clients, or the operator
/// says that it may be open.
fn check_listener(config: &Config, listen: &Listen) -> Result<(), StartError> {
    let Admission { user, from, .. } = &listen.admission;
    let fault = |fault| Err(StartError::Listener(fault));
    if let (Some(user), None) = (user, &config.users) {
        return fault(ListenerFault::NoUsers { user: Arc::clone(user) });
    }
    let endpoints = listen.address.endpoints();
    let unix = endpoints.into_iter().find(|it| matches!(it, Endpoint::Unix(_)));
    if let Some(endpoint) = unix.filter(|_| listen.admission.is_by_address()) {
        return fault(ListenerFault::AddressesOfUnix { endpoint });
    }
    let Some(address) = listen.exposed().filter(|_| !config.insecure && !listen.insecure) else {
        return Ok(());
    };
    let scheme = listen.scheme();
    if !listen.by_tls || config.users.is_none() {
        return Err(StartError::Insecure { scheme, address });
    }
    match user {
        Some(user) if from.is_empty() => {
            fault(ListenerFault::OpenUser { scheme, address, user: Arc::clone(user) })
        }
        _ => Ok(()),
    }
}

fn check_message_bytes(config: &Config) -> Result<(), StartError> {
    let Some(asked) = config.limits.message_bytes else { return Ok(()) };
    if !(1..=limits::MESSAGE_BYTES_MAX).contains(&asked) {
        return Err(StartError::MessageBytes { asked });
    }
    let shares = MemoryShares::of(config);
    let (most, buffers) = (shares.message(), shares.buffers);
    if asked > most {
        return Err(StartError::LargeMessages { asked, most, buffers });
    }
    Ok(())
}

/// Bytes of one message by protocols that have no usual bound of their own.
fn message_bytes(config: &Config) -> usize {
    config.limits.message_bytes.unwrap_or_else(|| MemoryShares::of(config).message())
}

/// Bytes of a job.
fn job_bytes(config: &Config) -> usize {
    let usual = || limits::MESSAGE_BYTES_DEFAULT.min(message_bytes(config));
    config.limits.message_bytes.unwrap_or_else(usual)
}

fn check_queues(queues: &QueuePolicies) -> Result<(), StartError> {
    let named = queues.named.iter().map(|(name, policy)| (Some(name), policy));
    let mut all = named.chain([(None, &queues.default)]);
    match all.find(|(_, policy)| policy.bounds.are_at_odds()) {
        Some((queue, _)) => Err(StartError::TargetAge { queue: queue.cloned() }),
        None => Ok(()),
    }
}

fn check_disk_limit(journal: &JournalOptions) -> Result<(), StartError> {
    let least = journal.disk_bytes_min();
    match journal.disk_bytes_max {
        Some(asked) if asked < least => Err(StartError::DiskLimit { asked, least }),
        _ => Ok(()),
    }
}

/// With so many descriptors for the whole process.
pub(crate) fn open_disk(
    config: &Config,
    descriptors: usize,
) -> Result<Option<RealDisk>, StartError> {
    if config.policy == StorePolicy::Memory {
        return Ok(None);
    }
    let disk = RealDisk::open(&config.data, config.journal_io).map_err(StartError::Disk)?;
    let disk = disk.reading_ahead_within(MemoryShares::of(config).start());
    let of_store = descriptors::of_store(config, descriptors);
    let disk = disk.with_descriptors(of_store).map_err(StartError::Disk)?;
    config.log.line(format_args!("journal in {}: {}", config.data.display(), disk.probe()));
    Ok(Some(disk))
}

/// Recovers the broker and puts around it the state that the threads share.
pub(crate) fn build(config: &Config, disk: Option<RealDisk>) -> Result<Hub, StartError> {
    let tls = certificates(config)?;
    let logins =
        config.users.clone().map(|file| Logins::open(file, Secrets::new(random), config.log));
    let logins = logins.transpose().map_err(StartError::Users)?;
    let audit = config.audit.clone().map(|target| AuditLog::open(target, config.log));
    let audit = audit.transpose().map_err(StartError::Audit)?;
    let mut options = broker_options(config);
    check_disk_limit(&options.journal)?;
    if let Some(disk) = &disk {
        options.journal = descriptors::share_files(options.journal, disk.files_max())?;
    }
    let segment_bytes = disk.as_ref().map_or(0, |_| options.journal.segment_bytes);
    let clock = Clock::new();
    let mut broker = open_broker(config, disk.as_ref(), options, &clock)?;
    check_clock(config, &broker, clock.now())?;
    let clock = clock.not_before(broker.started_at());
    broker.set_users(logins.as_ref().map(Logins::rights));
    disk.as_ref().map_or(Ok(()), |disk| make_room(&mut broker, disk, &clock))?;
    tell_clock(config.log, &clock);
    let gauges = Arc::new(JournalGauges::new(segment_bytes));
    let facts = || Box::new(ProcessFacts::new(clock, Arc::clone(&gauges)));
    let commons = ProtocolState::new(
        ListenerState::new(job_bytes(config), facts()),
        amqp_options(config),
        redis_state(config, facts()),
    );
    let mailboxes = std::iter::repeat_with(Mailbox::new).take(config.threads);
    let mut mailboxes = mailboxes.collect::<rustix::io::Result<Vec<_>>>()?;
    let requests = Arc::new(http_api::RequestQueue::default());
    mailboxes.push(Mailbox::of_task(requests.waker()));
    let core = Core::new(broker, commons, mailboxes.len());
    let shares = MemoryShares::of(config);
    let limits = Limits { buffered_bytes: shares.buffers, ..config.limits };
    let (memory_limit, log) = (shares.limit, config.log);
    let adjusted = Adjusted { limits, asked: config.clone() };
    Ok(Hub::new(
        core,
        Parts {
            mailboxes,
            requests,
            gauges,
            disk,
            clock,
            adjusted,
            memory_limit,
            tls,
            logins,
            audit,
            log,
        },
    ))
}

/// Reads the certificates, if a listener needs them.
fn certificates(config: &Config) -> Result<Option<TlsKeeper>, StartError> {
    if config.listen.iter().all(|listen| !listen.by_tls) {
        return Ok(None);
    }
    TlsKeeper::new(config.tls.clone(), config.log).map(Some).map_err(StartError::Tls)
}

/// Logs at each start which listeners are exposed to other machines by a waived check.
fn tell_exposed(config: &Config) {
    for listen in &config.listen {
        let Some(address) = listen.exposed() else { continue };
        if listen.by_tls && config.users.is_some() {
            continue;
        }
        let flag = if listen.insecure { "--insecure-listen" } else { "--insecure" };
        let lacking = match (listen.by_tls, &config.users) {
            (true, _) => "users",
            (false, None) => "users and encryption",
            (false, Some(_)) => "encryption",
        };
        config.log.line(format_args!(
            "{} listens on {address} without {lacking} ({flag}): everybody who reaches it can \
             read, send and delete messages",
            listen.scheme()
        ));
    }
}

/// A clock that is far ahead of the journal may be wrong, as on a machine with an empty battery.
/// Messages and keys that expire by it do not come back, so the operator has to accept it.
fn check_clock(config: &Config, broker: &Broker<File>, now: Nanos) -> Result<(), StartError> {
    let latest = broker.started_at();
    if config.accept_clock || latest == Nanos::ZERO || now.since(latest) < CLOCK_AHEAD_MAX {
        return Ok(());
    }
    match broker.ending_by(now) {
        0 => Ok(()),
        ending => Err(StartError::ClockAhead { now, latest, ending }),
    }
}

/// By so much the machine's clock may be ahead of the journal without being accepted: longer than
/// most brokers are ever stopped.
const CLOCK_AHEAD_MAX: Nanos = Nanos::from_secs(7 * 86_400);

/// Says that the wall's clock was set back since the log was written, or was wrong then.
fn tell_clock(log: Logger, clock: &Clock) {
    if clock.ahead() > Nanos::SECOND {
        log.line(format_args!(
            "the journal remembers a time {} s ahead of this machine's clock: time goes on from \
             there, so that nothing waits longer; if the clock is right now, it was wrong when the \
             journal was written",
            clock.ahead().as_secs()
        ));
    }
}

fn http_options(config: &Config, hub: &Hub) -> http_api::Options {
    let engine = EngineOptions::new(config.policy);
    http_api::Options {
        message_bytes_max: message_bytes(config),
        buffered_bytes: MemoryShares::of(config).http,
        block_timeout: config.block_timeout.unwrap_or(Duration::from_nanos(engine.block_timeout.0)),
        half_sent: config.limits.half_sent,
        idle: config.limits.http_idle,
        stop: config.limits.stop,
        allowed_hosts: config.allowed_hosts.clone(),
        envelopes: amqp::envelopes(),
        held_bytes: Arc::clone(&hub.http_bytes),
    }
}

fn amqp_options(config: &Config) -> amqp::Options {
    amqp::Options {
        max_message_bytes: message_bytes(config) as u64,
        secrets: Secrets::new(random),
        ..amqp::Options::default()
    }
}

/// 128 bits of the system's randomness.
fn random() -> u128 {
    let mut bytes = [0; 16];
    loop {
        match getrandom(&mut bytes, GetRandomFlags::empty()) {
            Ok(count) if count == bytes.len() => return u128::from_ne_bytes(bytes),
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => panic!("the system gives no random numbers: {errno}"),
        }
    }
}

fn redis_state(config: &Config, facts: Box<ProcessFacts>) -> resp::ListenerState {
    let mut state = resp::ListenerState::new(redis_options(config), facts);
    if config.scripts {
        let usual = script::Limits::default();
        let limits = script::Limits { time: config.script_time, ..usual };
        state.set_interpreter(Arc::new(script::Luau::new(limits)));
    }
    state
}

fn redis_options(config: &Config) -> resp::Options {
    let mut listen = config.listen.iter();
    let port = listen.find(|listen| listen.protocol == Protocol::Redis);
    let (shares, usual) = (MemoryShares::of(config), resp::Options::default());
    resp::Options {
        list_head: config.list_head,
        message_bytes_max: message_bytes(config),
        command_bytes_max: shares.command().min(usual.command_bytes_max),
        reply_bytes_max: shares.reply(),
        policy: config.policy,
        port: port.and_then(Listen::port).unwrap_or_default(),
        connections_max: config.limits.connections,
        idle: config.limits.idle.map(nanos),
        databases: config.redis_databases,
    }
}

fn broker_options(config: &Config) -> BrokerOptions {
    let mut queue_policies = config.queues.clone();
    queue_policies.keep(default_tube());
    let formats = amqp::formats();
    let engine = EngineOptions::new(config.policy);
    let dead_letter_queue = config.dead_letter_queue.clone().unwrap_or(engine.dead_letter_queue);
    let shares = MemoryShares::of(config);
    let engine = EngineOptions {
        queue_policies,
        formats,
        dead_letter_queue,
        dead_letters_max: shares.dead_letters(config),
        dedup_window: config.dedup_window.map_or(engine.dedup_window, nanos),
        dedup_max_ids: config.dedup_max_ids.unwrap_or(engine.dedup_max_ids),
        block_timeout: config.block_timeout.map_or(engine.block_timeout, nanos),
        reply_bytes_max: shares.reply(),
        memory_limit: shares.messages,
        ..engine
    };
    let journal = JournalOptions::new(config.policy).with_message_bytes_max(message_bytes(config));
    let segment_bytes = config.segment_bytes.or(config.disk_limit.map(|most| {
        // As many segments as make a nearly empty one not matter, if the size of messages allows
        // it.
        (most / SEGMENTS_IN_LIMIT).min(journal.segment_bytes)
    }));
    let journal = match segment_bytes {
        Some(bytes) => journal.with_segment_bytes(bytes),
        None => journal,
    };
    let journal =
        JournalOptions { waiting_bytes_max: shares.waiting(), ..journal.with_transactions() };
    BrokerOptions { engine, journal: share_disk(journal, config.disk_limit) }
}

/// The spill gets an eighth of the limit for the device, but no room that the log needs.
fn share_disk(journal: JournalOptions, limit: Option<u64>) -> JournalOptions {
    let Some(limit) = limit else {
        return JournalOptions { spill_bytes_max: SPILL_BYTES_MAX, ..journal };
    };
    let left = limit.saturating_sub(journal.disk_bytes_min());
    let spill_bytes_max = (limit / 8).min(left).min(SPILL_BYTES_MAX);
    JournalOptions { disk_bytes_max: Some(limit - spill_bytes_max), spill_bytes_max, ..journal }
}

/// How often the files of certificates are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Its files are open as long as they are there, and so they are some hundred at most.
const SPILL_BYTES_MAX: u64 = 32 * 1024 * 1024 * 1024;

/// Segments that a limit of the disk has room for, unless they have to be larger.
const SEGMENTS_IN_LIMIT: u64 = 32;

fn open_broker(
    config: &Config,
    disk: Option<&RealDisk>,
    options: BrokerOptions,
    clock: &Clock,
) -> Result<Broker<File>, StartError> {
    let Some(disk) = disk else { return Ok(Broker::in_memory(options.engine)) };
    let begin = clock.uptime();
    let (broker, recovery) = Broker::open(disk, options).map_err(StartError::Journal)?;
    config.log.line(format_args!(
        "recovered in {} ms: {}",
        clock.uptime().since(begin).0 / 1_000_000,
        Summary(&recovery)
    ));
    Ok(broker)
}

/// Without room the log takes no frame, not even one that needs no room: the first client would
/// wait for the disk. So the room is there before any client comes, unless the device has none.
fn make_room(broker: &mut Broker<File>, disk: &RealDisk, clock: &Clock) -> Result<(), StartError> {
    while broker.stalled()
        && let Some(chore) = broker.poll_chore(clock.now())
    {
        let done = chore.perform(disk);
        let failed = |JournalFailed { cause }| StartError::Journal(OpenError::Disk(cause));
        broker.handle_chore(clock.now(), done).map_err(failed)?;
    }
    Ok(())
}

/// The findings of recovery, in one line.
struct Summary<'a>(&'a Recovery);

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BrokerStatistics { ready, delayed, buried, queues, .. } = self.0.statistics;
        write!(f, "{ready} ready, {delayed} delayed, {buried} buried messages in {queues} queues")
    }
}

fn join(threads: &mut Vec<JoinHandle<()>>) -> Result<(), Failure> {
    let mut end = Ok(());
    for thread in threads.drain(..) {
        let name = thread.thread().name().unwrap_or_default().to_owned();
        end = end.and(thread.join().map_err(|_| Failure::Panicked(name)));
    }
    end
}

#[cfg(test)]
#[path = "start_test.rs"]
mod tests;
