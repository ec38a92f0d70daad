//! Settings that change while the server runs, and those that wait for its next start.

use crate::clock::nanos;
use crate::config::{Config, Limits};
use crate::hub::Hub;
use crate::server::{Remote, check};

impl Remote {
    /// Goes on with these settings, as far as that is possible at once, and reads the files of
    /// users and certificates again. The log names the settings that hold from now on, and those
    /// that hold from the next start on. Settings that no server could start with change nothing.
    pub fn reconfigure(&self, config: Config) {
        let log = self.hub.log;
        if let Err(error) = check(&config) {
            return self.tell_settings_stay(&error.to_string());
        }
        let before = self.hub.asked();
        let has_tls = self.hub.tls().is_some();
        let (mut now, mut later) = (adjustable(&before, &config), fixed(&before, &config));
        if before.tls != config.tls {
            // A server without a listener of TLS has nothing that keeps certificates.
            if has_tls { &mut now } else { &mut later }.push("tls-cert and the like");
        }
        if !now.is_empty() {
            apply(&self.hub, config);
            log.line(format_args!("settings that hold from now on: {}", now.join(", ")));
        }
        if !later.is_empty() {
            log.line(format_args!("settings that hold from the next start: {}", later.join(", ")));
        }
    }

    /// The log tells that settings could not be read again.
    pub fn tell_settings_stay(&self, error: &str) {
        self.hub.log.line(format_args!("settings stay as they were: {error}"));
    }
}

/// Limits hold for all connections, and hosts for new ones.
fn apply(hub: &Hub, config: Config) {
    if let Some(tls) = hub.tls() {
        tls.set_files(config.tls.clone());
    }
    if let (Some(logins), Some(file)) = (hub.logins(), &config.users) {
        logins.set_file(file.clone());
    }
    hub.lock().commons.redis.set_idle(config.limits.idle.map(nanos));
    hub.adjust(|adjusted| {
        let Limits { output_bytes, half_sent, idle, http_idle, .. } = config.limits;
        adjusted.limits = Limits { output_bytes, half_sent, idle, http_idle, ..adjusted.limits };
        let asked = &mut adjusted.asked;
        asked.limits = Limits { output_bytes, half_sent, idle, http_idle, ..asked.limits };
        if asked.users.is_some() && config.users.is_some() {
            asked.users = config.users;
        }
        asked.allowed_hosts = config.allowed_hosts;
        if hub.tls().is_some() {
            asked.tls = config.tls;
        }
    });
}

/// The flags of the settings that differ and can change at once.
fn adjustable(before: &Config, now: &Config) -> Vec<&'static str> {
    let (old, new) = (&before.limits, &now.limits);
    let users = before.users.is_some() && now.users.is_some() && before.users != now.users;
    names(&[
        (old.output_bytes != new.output_bytes, "max-output-bytes"),
        (old.half_sent != new.half_sent, "half-sent-timeout"),
        (old.idle != new.idle, "idle-timeout"),
        (old.http_idle != new.http_idle, "http-idle-timeout"),
        (before.allowed_hosts != now.allowed_hosts, "allowed-hosts"),
        (users, "users"),
    ])
}

/// The same of those that cannot.
fn fixed(before: &Config, now: &Config) -> Vec<&'static str> {
    let (old, new) = (&before.limits, &now.limits);
    names(&[
        (before.data != now.data, "data"),
        (before.policy != now.policy, "store, sync"),
        (before.listen != now.listen, "listen"),
        (before.insecure != now.insecure, "insecure"),
        (before.users.is_some() != now.users.is_some(), "users"),
        (before.audit != now.audit, "audit-log"),
        (before.threads != now.threads, "threads"),
        (before.journal_io != now.journal_io, "journal-io"),
        (before.segment_bytes != now.segment_bytes, "segment-bytes"),
        (before.disk_limit != now.disk_limit, "disk-limit"),
        (before.memory_limit != now.memory_limit, "memory-limit"),
        (before.queues != now.queues, "queue rules (dunlin policy set changes them at once)"),
        (before.dead_letter_queue != now.dead_letter_queue, "dead-letter-queue"),
        (before.dedup_window != now.dedup_window, "dedup-window"),
        (before.dedup_max_ids != now.dedup_max_ids, "dedup-max-ids"),
        (before.block_timeout != now.block_timeout, "block-timeout"),
        (before.list_head != now.list_head, "list-head"),
        (before.redis_databases != now.redis_databases, "redis-databases"),
        (before.scripts != now.scripts, "scripts"),
        (before.script_time != now.script_time, "script-time"),
        (old.connections != new.connections, "max-connections"),
        (old.message_bytes != new.message_bytes, "max-message-bytes"),
        (old.buffered_bytes != new.buffered_bytes, "max-buffered-bytes"),
    ])
}

fn names(changed: &[(bool, &'static str)]) -> Vec<&'static str> {
    changed.iter().filter(|(is, _)| *is).map(|(_, name)| *name).collect()
}
