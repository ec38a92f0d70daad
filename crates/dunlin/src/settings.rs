//! Sources of settings: flags over variables (both by clap), over the file, over defaults.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use model::RuleKey;
use serde::Deserialize;
use server::{
    AuditTarget, ClientCertificates, Config, Identity, Limits, Logger, Protocol, TlsSettings,
    threads_default,
};

use crate::cli::{Limit, Policy, Serve, Tls, TlsClients, Tuning};
use crate::exit::Error;
use crate::listen::{self, ListenItem};
use crate::parse::{self, QueueSetting};

/// The configuration that a server is started with.
pub(crate) fn config(serve: Serve) -> Result<Config, Error> {
    let file = serve.config.as_deref().map_or_else(|| Ok(Serve::default()), read)?;
    let given = parse::attributed(serve.queue.unwrap_or_default()).map_err(Error::Settings)?;
    let serve = overrule(Serve { queue: Some(given), ..serve }, file);
    let listen = listen::listeners(serve.listen, serve.insecure_listen).map_err(Error::Settings)?;
    let tuning = &serve.tuning;
    let (limits, usual) = (Limits::default(), Config::default());
    let limit = |given: Option<Limit>, default| given.map_or(default, |limit| limit.0);
    Ok(Config {
        data: serve.data.unwrap_or_else(|| PathBuf::from("./dunlin-data")),
        policy: policy(serve.policy),
        listen: listen.unwrap_or_else(|| Protocol::ALL.map(Protocol::standard).to_vec()),
        passed: Vec::new(),
        insecure: serve.insecure.unwrap_or(false),
        users: serve.users,
        audit: serve.audit_log.map(audit_target),
        tls: tls(serve.tls).map_err(Error::Settings)?,
        accept_clock: serve.accept_clock.unwrap_or(false),
        allowed_hosts: serve.allowed_hosts.unwrap_or_default(),
        threads: tuning.threads.unwrap_or_else(threads_default),
        journal_io: tuning.journal_io.unwrap_or_default(),
        segment_bytes: tuning.segment_bytes,
        disk_limit: tuning.disk_limit,
        memory_limit: tuning.memory_limit,
        queues: parse::queue_policies(&serve.queue.unwrap_or_default()),
        dead_letter_queue: serve.dead_letter_queue,
        dedup_window: serve.dedup_window,
        dedup_max_ids: serve.dedup_max_ids,
        block_timeout: serve.block_timeout,
        list_head: serve.list_head.unwrap_or_default(),
        redis_databases: serve.redis_databases.unwrap_or(usual.redis_databases),
        scripts: serve.scripts.unwrap_or(usual.scripts),
        script_time: serve.script_time.unwrap_or(usual.script_time),
        limits: Limits {
            connections: tuning.max_connections.unwrap_or(limits.connections),
            message_bytes: serve.max_message_bytes,
            output_bytes: tuning.max_output_bytes.unwrap_or(limits.output_bytes),
            buffered_bytes: tuning.max_buffered_bytes.unwrap_or(limits.buffered_bytes),
            half_sent: limit(tuning.half_sent_timeout, limits.half_sent),
            idle: limit(tuning.idle_timeout, limits.idle),
            http_idle: limit(tuning.http_idle_timeout, limits.http_idle),
            ..limits
        },
        log: Logger::Stderr,
    })
}

/// The files of TLS that belong together.
fn tls(given: Tls) -> Result<TlsSettings, String> {
    let (certificates, keys) =
        (given.tls_cert.unwrap_or_default(), given.tls_key.unwrap_or_default());
    if certificates.len() != keys.len() {
        return Err(format!(
            "there are {} files of --tls-cert and {} of --tls-key: give each certificate its key, \
             in the same order",
            certificates.len(),
            keys.len()
        ));
    }
    let pairs = certificates.into_iter().zip(keys);
    let identities = pairs.map(|(certificates, key)| Identity { certificates, key }).collect();
    let required = given.tls_clients != Some(TlsClients::Optional);
    let clients = match given.tls_client_ca {
        Some(roots) => Some(ClientCertificates { roots, revoked: given.tls_client_crl, required }),
        None if given.tls_clients.is_some() || given.tls_client_crl.is_some() => {
            return Err(
                "--tls-clients and --tls-client-crl are about certificates of clients: name \
                        their roots by --tls-client-ca"
                    .into(),
            );
        }
        None => None,
    };
    Ok(TlsSettings { identities, clients })
}

/// `-` is standard error.
fn audit_target(path: PathBuf) -> AuditTarget {
    if path == *"-" { AuditTarget::Stderr } else { AuditTarget::File(path) }
}

pub(crate) fn policy(policy: Policy) -> model::StorePolicy {
    parse::policy(policy.store.unwrap_or_default(), policy.sync.unwrap_or_default())
}

/// A setting that both give comes from `upper`. Rules of queues add up, the upper ones last.
fn overrule(upper: Serve, lower: Serve) -> Serve {
    let (above, below) = (upper.tuning, lower.tuning);
    let queues = lower.queue.into_iter().chain(upper.queue).flatten();
    Serve {
        data: upper.data.or(lower.data),
        policy: Policy {
            store: upper.policy.store.or(lower.policy.store),
            sync: upper.policy.sync.or(lower.policy.sync),
        },
        listen: upper.listen.or(lower.listen),
        insecure_listen: upper.insecure_listen.or(lower.insecure_listen),
        insecure: upper.insecure.or(lower.insecure),
        users: upper.users.or(lower.users),
        audit_log: upper.audit_log.or(lower.audit_log),
        tls: Tls {
            tls_cert: upper.tls.tls_cert.or(lower.tls.tls_cert),
            tls_key: upper.tls.tls_key.or(lower.tls.tls_key),
            tls_client_ca: upper.tls.tls_client_ca.or(lower.tls.tls_client_ca),
            tls_client_crl: upper.tls.tls_client_crl.or(lower.tls.tls_client_crl),
            tls_clients: upper.tls.tls_clients.or(lower.tls.tls_clients),
        },
        accept_clock: upper.accept_clock.or(lower.accept_clock),
        allowed_hosts: upper.allowed_hosts.or(lower.allowed_hosts),
        config: upper.config,
        max_message_bytes: upper.max_message_bytes.or(lower.max_message_bytes),
        queue: Some(queues.collect()),
        dead_letter_queue: upper.dead_letter_queue.or(lower.dead_letter_queue),
        dedup_window: upper.dedup_window.or(lower.dedup_window),
        dedup_max_ids: upper.dedup_max_ids.or(lower.dedup_max_ids),
        block_timeout: upper.block_timeout.or(lower.block_timeout),
        list_head: upper.list_head.or(lower.list_head),
        redis_databases: upper.redis_databases.or(lower.redis_databases),
        scripts: upper.scripts.or(lower.scripts),
        script_time: upper.script_time.or(lower.script_time),
        tuning: Tuning {
            threads: above.threads.or(below.threads),
            journal_io: above.journal_io.or(below.journal_io),
            segment_bytes: above.segment_bytes.or(below.segment_bytes),
            disk_limit: above.disk_limit.or(below.disk_limit),
            memory_limit: above.memory_limit.or(below.memory_limit),
            max_connections: above.max_connections.or(below.max_connections),
            max_output_bytes: above.max_output_bytes.or(below.max_output_bytes),
            max_buffered_bytes: above.max_buffered_bytes.or(below.max_buffered_bytes),
            half_sent_timeout: above.half_sent_timeout.or(below.half_sent_timeout),
            idle_timeout: above.idle_timeout.or(below.idle_timeout),
            http_idle_timeout: above.http_idle_timeout.or(below.http_idle_timeout),
        },
    }
}

/// The file as it is written: keys are named like the flags.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    data: Option<PathBuf>,
    store: Option<String>,
    sync: Option<String>,
    listen: Option<Vec<String>>,
    insecure_listen: Option<Vec<String>>,
    insecure: Option<bool>,
    users: Option<PathBuf>,
    audit_log: Option<PathBuf>,
    tls_cert: Option<Vec<PathBuf>>,
    tls_key: Option<Vec<PathBuf>>,
    tls_client_ca: Option<PathBuf>,
    tls_client_crl: Option<PathBuf>,
    tls_clients: Option<String>,
    allowed_hosts: Option<Vec<String>>,
    max_message_bytes: Option<Bytes>,
    threads: Option<usize>,
    journal_io: Option<String>,
    segment_bytes: Option<Bytes>,
    disk_limit: Option<Bytes>,
    memory_limit: Option<Bytes>,
    max_connections: Option<usize>,
    max_output_bytes: Option<Bytes>,
    max_buffered_bytes: Option<Bytes>,
    half_sent_timeout: Option<String>,
    idle_timeout: Option<String>,
    http_idle_timeout: Option<String>,
    dead_letter_queue: Option<String>,
    dedup_window: Option<String>,
    dedup_max_ids: Option<usize>,
    block_timeout: Option<String>,
    list_head: Option<String>,
    redis_databases: Option<usize>,
    scripts: Option<String>,
    script_time: Option<String>,
    #[serde(default)]
    queues: BTreeMap<String, Queue>,
}

/// A size: a number, or a text such as "10G".
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Bytes {
    Count(u64),
    Text(String),
}

impl Bytes {
    fn count(self) -> Result<u64, String> {
        match self {
            Self::Count(bytes) => Ok(bytes),
            Self::Text(text) => parse::bytes(&text),
        }
    }

    /// The same for a size that fits into memory.
    fn size(self) -> Result<usize, String> {
        match self {
            Self::Count(bytes) => parse::size(&bytes.to_string()),
            Self::Text(text) => parse::size(&text),
        }
    }

    /// The same of a size of memory.
    fn memory(self) -> Result<u64, String> {
        match self {
            Self::Count(bytes) => parse::memory(&bytes.to_string()),
            Self::Text(text) => parse::memory(&text),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Queue {
    release_order: Option<String>,
    max_delivery_attempts: Option<u32>,
    dead_letters: Option<String>,
    pop_lease: Option<String>,
    max_messages: Option<u64>,
    max_bytes: Option<u64>,
    when_full: Option<String>,
    target_age: Option<String>,
    redelivery_delay: Option<String>,
    redelivery_factor: Option<Decimal>,
    redelivery_max: Option<String>,
    redelivery_jitter: Option<Decimal>,
}

/// A number that may have decimals, as TOML has it or as text.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Decimal {
    Whole(u64),
    Float(f64),
    Text(String),
}

impl Decimal {
    fn text(&self) -> String {
        match self {
            Self::Whole(number) => number.to_string(),
            Self::Float(number) => number.to_string(),
            Self::Text(text) => text.clone(),
        }
    }
}

fn read(path: &Path) -> Result<Serve, Error> {
    let failed = |what: String| Error::Settings(format!("{}: {what}", path.display()));
    let text = text_of(path)
        .map_err(|error| failed(format!("{error}, correct --config or leave it out")))?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(failed(format!("it has more than {FILE_BYTES_MAX} bytes, shorten it")));
    }
    let file: File = toml::from_str(&text).map_err(|error| failed(error.to_string()))?;
    parse(file).map_err(failed)
}

/// So much of it that it is known to be too long.
fn text_of(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
    Ok(text)
}

/// A line of rules for each queue that may have some, many times over.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The words of the file, understood as those of the flags are.
fn parse(file: File) -> Result<Serve, String> {
    let mut queues = Vec::new();
    for (name, queue) in &file.queues {
        let settings = queue_settings(name, queue);
        queues.extend(named(&format!("queues.{name}"), settings)?);
    }
    Ok(Serve {
        data: file.data,
        policy: Policy {
            store: word("store", file.store, parse::store)?,
            sync: word("sync", file.sync, parse::sync)?,
        },
        listen: items("listen", file.listen, listen::listen)?,
        insecure_listen: items("insecure-listen", file.insecure_listen, listen::insecure_listen)?,
        insecure: file.insecure,
        users: file.users,
        audit_log: file.audit_log,
        tls: Tls {
            tls_cert: file.tls_cert,
            tls_key: file.tls_key,
            tls_client_ca: file.tls_client_ca,
            tls_client_crl: file.tls_client_crl,
            tls_clients: word("tls-clients", file.tls_clients, parse::tls_clients)?,
        },
        // For one start, not for all.
        accept_clock: None,
        allowed_hosts: file
            .allowed_hosts
            .map(|names| {
                names.iter().map(|name| named("allowed-hosts", parse::allowed_host(name))).collect()
            })
            .transpose()?,
        config: None,
        max_message_bytes: named(
            "max-message-bytes",
            file.max_message_bytes.map(Bytes::size).transpose(),
        )?,
        queue: Some(queues),
        dead_letter_queue: word("dead-letter-queue", file.dead_letter_queue, parse::queue_name)?,
        block_timeout: word("block-timeout", file.block_timeout, parse::duration)?,
        dedup_window: word("dedup-window", file.dedup_window, parse::dedup_window)?,
        dedup_max_ids: number("dedup-max-ids", file.dedup_max_ids, parse::dedup_ids_count)?,
        list_head: word("list-head", file.list_head, parse::list_head)?,
        redis_databases: number("redis-databases", file.redis_databases, parse::database_count)?,
        scripts: word("scripts", file.scripts, parse::on_or_off)?,
        script_time: word("script-time", file.script_time, parse::script_time)?,
        tuning: Tuning {
            threads: file.threads,
            journal_io: word("journal-io", file.journal_io, str::parse)?,
            segment_bytes: named(
                "segment-bytes",
                file.segment_bytes.map(Bytes::count).transpose(),
            )?,
            disk_limit: named("disk-limit", file.disk_limit.map(Bytes::count).transpose())?,
            memory_limit: named("memory-limit", file.memory_limit.map(Bytes::memory).transpose())?,
            max_connections: file.max_connections,
            max_output_bytes: named(
                "max-output-bytes",
                file.max_output_bytes.map(Bytes::size).transpose(),
            )?,
            max_buffered_bytes: named(
                "max-buffered-bytes",
                file.max_buffered_bytes.map(Bytes::size).transpose(),
            )?,
            half_sent_timeout: word("half-sent-timeout", file.half_sent_timeout, Limit::parse)?,
            idle_timeout: word("idle-timeout", file.idle_timeout, Limit::parse)?,
            http_idle_timeout: word("http-idle-timeout", file.http_idle_timeout, Limit::parse)?,
        },
    })
}

fn queue_settings(name: &str, queue: &Queue) -> Result<Vec<QueueSetting>, String> {
    let number = |number: Option<u64>| number.map(|number| number.to_string());
    let texts = [
        (RuleKey::ReleaseOrder, queue.release_order.clone()),
        (RuleKey::MaxDeliveryAttempts, number(queue.max_delivery_attempts.map(u64::from))),
        (RuleKey::DeadLetters, queue.dead_letters.clone()),
        (RuleKey::PopLease, queue.pop_lease.clone()),
        (RuleKey::MessagesMax, number(queue.max_messages)),
        (RuleKey::BytesMax, number(queue.max_bytes)),
        (RuleKey::WhenFull, queue.when_full.clone()),
        (RuleKey::TargetAge, queue.target_age.clone()),
        (RuleKey::RedeliveryDelay, queue.redelivery_delay.clone()),
        (RuleKey::RedeliveryFactor, queue.redelivery_factor.as_ref().map(Decimal::text)),
        (RuleKey::RedeliveryMax, queue.redelivery_max.clone()),
        (RuleKey::RedeliveryJitter, queue.redelivery_jitter.as_ref().map(Decimal::text)),
    ];
    let given = texts.into_iter().filter_map(|(key, text)| Some((key, text?)));
    given.map(|(key, text)| parse::queue_setting(name, parse::rule(key, &text)?)).collect()
}

/// Listeners, which are divided by commas within a text too.
fn items(
    key: &str,
    texts: Option<Vec<String>>,
    parse: impl Fn(&str) -> Result<ListenItem, String>,
) -> Result<Option<Vec<ListenItem>>, String> {
    let Some(texts) = texts else { return Ok(None) };
    let items = texts.iter().flat_map(|text| text.split(',')).map(|text| named(key, parse(text)));
    items.collect::<Result<_, _>>().map(Some)
}

fn word<T>(
    key: &str,
    text: Option<String>,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, String> {
    named(key, text.as_deref().map(parse).transpose())
}

fn number(
    key: &str,
    number: Option<usize>,
    check: impl Fn(usize) -> Result<usize, String>,
) -> Result<Option<usize>, String> {
    named(key, number.map(check).transpose())
}

fn named<T>(key: &str, parsed: Result<T, String>) -> Result<T, String> {
    parsed.map_err(|error| format!("{key}: {error}"))
}

#[cfg(test)]
mod tests {
    use disk::{Choice, Method};
    use model::{Nanos, Redelivery, StorePolicy, Thousandths};
    use server::{Address, Listen, UnixSocket};

    use super::*;

    fn file(text: &str) -> Result<Serve, String> {
        parse(toml::from_str(text).map_err(|error| error.to_string())?)
    }

    #[test]
    fn file_keys_reach_the_configuration() {
        let text = "
            data = '/d'\n store = 'journal'\n sync = '25ms'
            listen = ['beanstalkd=127.0.0.1:1', 'redis=unix:a,mode=0600']
            insecure-listen = ['amqp=0.0.0.0:2']
            insecure = true
            users = 'users.toml'
            audit-log = '-'
            tls-cert = ['a.pem', 'b.pem']
 tls-key = ['a.key', 'b.key']
            tls-client-ca = 'roots.pem'
 tls-client-crl = 'revoked.pem'
            tls-clients = 'optional'
 allowed-hosts = ['broker.example', '.lan']
            max-message-bytes = 7\n threads = 1\n journal-io = 'buffered'
            max-connections = 3\n max-output-bytes = 4
            max-buffered-bytes = '5K'
            half-sent-timeout = 'never'\n idle-timeout = '9s'
            http-idle-timeout = '11s'
            dead-letter-queue = 'dead'\n dedup-window = '7s'\n dedup-max-ids = 6
            block-timeout = '5s'
 list-head = 'left'
 redis-databases = 32
            disk-limit = '2G'
            memory-limit = '256M'
            [queues.'*']
 release-order = 'back'\n max-delivery-attempts = 3\n dead-letters = 'drop'
            pop-lease = '30s'\n max-messages = 8\n max-bytes = 9
            when-full = 'reject'\n target-age = '8s'
            redelivery-delay = '1s'
 redelivery-factor = 1.5
 redelivery-max = '1m'
            redelivery-jitter = '0.25'
            ";
        let config = config(file(text).unwrap()).unwrap();
        assert_eq!(config.data, Path::new("/d"));
        assert_eq!(config.policy, StorePolicy::Periodic(Nanos::from_millis(25)));
        let loopback = "127.0.0.1:1".parse().unwrap();
        assert_eq!(config.listen[0], Listen::tcp(Protocol::Beanstalkd, loopback));
        let socket = UnixSocket { path: "a".into(), mode: 0o600, group: None };
        assert_eq!(config.listen[1].address, Address::Unix(socket));
        assert_eq!((config.listen[2].protocol, config.listen[2].insecure), (Protocol::Amqp, true));
        assert!(config.insecure);
        assert_eq!(config.users.as_deref(), Some(Path::new("users.toml")));
        assert_eq!(config.audit, Some(AuditTarget::Stderr));
        let identity = |name: &str| Identity {
            certificates: format!("{name}.pem").into(),
            key: format!("{name}.key").into(),
        };
        assert_eq!(config.tls.identities, [identity("a"), identity("b")]);
        let (roots, revoked) = ("roots.pem".into(), Some("revoked.pem".into()));
        let clients = ClientCertificates { roots, revoked, required: false };
        assert_eq!(config.tls.clients, Some(clients));
        let hosts: Vec<_> = config.allowed_hosts.iter().map(ToString::to_string).collect();
        assert_eq!(hosts, ["broker.example", ".lan"]);
        assert_eq!((config.threads, config.limits.message_bytes), (1, Some(7)));
        assert_eq!(config.journal_io, Choice::Force(Method::Buffered));
        assert_eq!((config.limits.connections, config.limits.output_bytes), (3, 4));
        assert_eq!(config.limits.buffered_bytes, 5 * 1024);
        assert_eq!(config.limits.half_sent, None);
        assert_eq!(config.limits.idle.unwrap().as_secs(), 9);
        assert_eq!(config.limits.http_idle.unwrap().as_secs(), 11);
        let policy = config.queues.default;
        assert_eq!(policy.release_order, engine::ReleaseOrder::Back);
        assert_eq!(
            (policy.max_delivery_attempts, policy.dead_letters),
            (3, engine::DeadLetters::Drop)
        );
        assert_eq!(policy.pop_lease, Some(Nanos::from_secs(30)));
        let bounds = policy.bounds;
        assert_eq!((bounds.messages_max, bounds.bytes_max), (Some(8), Some(9)));
        assert_eq!(bounds.when_full, engine::WhenFull::Reject);
        assert_eq!(bounds.target_age, Some(Nanos::from_secs(8)));
        let expected = Redelivery {
            delay: Some(Nanos::SECOND),
            factor: Thousandths(1_500),
            delay_max: Some(Nanos::from_secs(60)),
            jitter: Thousandths(250),
        };
        assert_eq!(policy.redelivery, expected);
        assert_eq!(config.dead_letter_queue.unwrap().as_str(), "dead");
        assert_eq!(config.dedup_window.unwrap().as_secs(), 7);
        assert_eq!(config.dedup_max_ids, Some(6));
        assert_eq!(config.block_timeout.unwrap().as_secs(), 5);
        assert_eq!(config.disk_limit, Some(2 << 30));
        assert_eq!(config.memory_limit, Some(256 << 20));
        assert_eq!((config.list_head, config.redis_databases), (server::Side::Left, 32));
    }

    #[test]
    fn tls_files_belong_together() {
        let refusal = |text| match config(file(text).unwrap()) {
            Err(Error::Settings(text)) => text,
            other => panic!("{other:?}"),
        };
        let error = refusal("tls-cert = ['a.pem']");
        assert!(error.contains("1 files of --tls-cert and 0 of --tls-key"), "{error}");
        for text in ["tls-clients = 'required'", "tls-client-crl = 'a.pem'"] {
            let error = refusal(text);
            assert!(error.contains("--tls-client-ca"), "{error}");
        }
        let required = config(file("tls-client-ca = 'a.pem'").unwrap()).unwrap();
        assert!(required.tls.clients.unwrap().required);
        let error = file("tls-clients = 'maybe'").unwrap_err();
        assert!(error.starts_with("tls-clients: ") && error.contains("optional"), "{error}");
    }

    #[test]
    fn unknown_key_is_named_beside_known() {
        let error = file("sink = '25ms'").unwrap_err();
        assert!(error.contains("sink") && error.contains("`max-message-bytes`"), "{error}");
        let error = file("[queues.a]\nreleases = 'back'").unwrap_err();
        assert!(error.contains("releases") && error.contains("release-order"), "{error}");
    }

    #[test]
    fn wrong_value_is_named_with_key() {
        let error = file("sync = 'often'").unwrap_err();
        assert!(error.starts_with("sync: ") && error.contains("25ms"), "{error}");
        let error = file("[queues.a]\nrelease-order = 'up'").unwrap_err();
        assert!(error.starts_with("queues.a: "), "{error}");
        let error = file("[queues.a]\nmax-bytes = 0").unwrap_err();
        assert!(error.starts_with("queues.a: ") && error.contains("above 0"), "{error}");
        let error = file("[queues.a]\ndead-letters = 'burn'").unwrap_err();
        assert!(error.starts_with("queues.a: ") && error.contains("park"), "{error}");
        let error = file("memory-limit = 1000").unwrap_err();
        assert!(error.starts_with("memory-limit: ") && error.contains("at least"), "{error}");
        let error = file("disk-limit = '2X'").unwrap_err();
        assert!(error.starts_with("disk-limit: ") && error.contains("10G"), "{error}");
        let error = file("dedup-max-ids = 1000001").unwrap_err();
        assert!(error.starts_with("dedup-max-ids: ") && error.contains("1000000"), "{error}");
        let error = file("dead-letter-queue = ''").unwrap_err();
        assert!(error.starts_with("dead-letter-queue: "), "{error}");
    }

    #[test]
    fn settings_overrule_and_queues_add_up() {
        let upper = "sync = 'never'\n[queues.a]\nrelease-order = 'front'";
        let lower = "sync = '1s'\nstore = 'none'\n[queues]\na.release-order = 'back'\n\
                     a.max-delivery-attempts = 0\nb.release-order = 'back'";
        let merged = overrule(file(upper).unwrap(), file(lower).unwrap());
        assert_eq!(merged.policy.sync, Some(parse::Sync::Never));
        assert_eq!(merged.policy.store, Some(parse::Store::None));
        let policies = parse::queue_policies(&merged.queue.unwrap());
        let order = |name| policies.of(&model::QueueName::new(name).unwrap()).release_order;
        assert_eq!(order("a"), engine::ReleaseOrder::Front);
        assert_eq!(order("b"), engine::ReleaseOrder::Back);
        assert_eq!(policies.of(&model::QueueName::new("a").unwrap()).max_delivery_attempts, 0);
    }
}
