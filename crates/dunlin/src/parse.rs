//! The words of settings, alike on the command line, in variables and in files.

use std::collections::BTreeSet;
use std::time::Duration;

use engine::{QueuePolicies, QueuePolicy};
use model::{Nanos, QueueName, QueueRule, RuleKey, StorePolicy, limits};
use server::{AllowedHost, Side};

use crate::cli::TlsClients;

/// `--sync`: when a persistent message counts as stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Sync {
    #[default]
    Always,
    Period(Duration),
    Never,
}

/// `--store`: whether there is a journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Store {
    #[default]
    Journal,
    None,
}

pub(crate) const fn policy(store: Store, sync: Sync) -> StorePolicy {
    match (store, sync) {
        (Store::None, _) => StorePolicy::Memory,
        (Store::Journal, Sync::Always) => StorePolicy::Always,
        (Store::Journal, Sync::Never) => StorePolicy::Never,
        (Store::Journal, Sync::Period(period)) => {
            StorePolicy::Periodic(Nanos(period.as_nanos() as u64))
        }
    }
}

pub(crate) fn sync(text: &str) -> Result<Sync, String> {
    match text {
        "always" => Ok(Sync::Always),
        "never" => Ok(Sync::Never),
        period if period.starts_with(|first: char| first.is_ascii_digit()) => {
            duration(period).map(Sync::Period)
        }
        _ => Err(format!("`{text}` is none of always, never and a duration such as 25ms")),
    }
}

pub(crate) fn store(text: &str) -> Result<Store, String> {
    match text {
        "journal" => Ok(Store::Journal),
        "none" => Ok(Store::None),
        _ => Err(format!("`{text}` is neither journal nor none")),
    }
}

/// A positive whole number with a unit.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    if let Some(span) = Nanos::of_text(text) {
        return Ok(Duration::from_nanos(span.0));
    }
    let number = UNITS.iter().find_map(|unit| text.strip_suffix(unit)).unwrap_or_default();
    Err(match number {
        _ if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("`{text}` is no duration: use a number with us, ms, s, m, h or d")
        }
        _ if number.bytes().all(|byte| byte == b'0') => {
            format!("`{text}` is no time at all: use a number above 0, or leave it out")
        }
        _ => format!("`{text}` is longer than 100 days, which is the most"),
    })
}

/// A duration, or `never` for a limit that is not to be.
pub(crate) fn limit(text: &str) -> Result<Option<Duration>, String> {
    if text == "never" { Ok(None) } else { duration(text).map(Some) }
}

/// A duration, or `never` for none at all.
pub(crate) fn dedup_window(text: &str) -> Result<Duration, String> {
    limit(text).map(Option::unwrap_or_default)
}

pub(crate) fn dedup_max_ids(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("`{text}` is no number")).and_then(dedup_ids_count)
}

pub(crate) fn dedup_ids_count(count: usize) -> Result<usize, String> {
    let max = limits::DEDUP_MAX_IDS;
    if count <= max { Ok(count) } else { Err(format!("{count} is more than {max}")) }
}

/// `NAME=VALUE`.
pub(crate) fn property(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let pair = pair.map(|(name, value)| (name.to_owned(), value.to_owned()));
    pair.ok_or_else(|| format!("`{text}` is not NAME=VALUE"))
}

/// Checks that no name occurs twice: only one of two values would hold, and users could not tell
/// which.
pub(crate) fn each_once(names: impl IntoIterator<Item = String>) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    let again = names.into_iter().find_map(|name| seen.replace(name));
    again.map_or(Ok(()), |name| Err(format!("{name} stands twice: say it once")))
}

/// `500M`: a number of bytes, or of KiB, MiB or GiB.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let (number, unit) = match text.char_indices().last() {
        Some((at, 'K' | 'k')) => (text.get(..at), 1 << 10),
        Some((at, 'M' | 'm')) => (text.get(..at), 1 << 20),
        Some((at, 'G' | 'g')) => (text.get(..at), 1 << 30),
        _ => (Some(text), 1),
    };
    let number = number.and_then(|number| number.parse::<u64>().ok());
    number
        .and_then(|number| number.checked_mul(unit))
        .ok_or_else(|| format!("{text} is no size, write it as 65536, 64K, 500M or 10G"))
}

/// The same for a size that fits into memory.
pub(crate) fn size(text: &str) -> Result<usize, String> {
    usize::try_from(bytes(text)?).map_err(|_| format!("{text} is more than there can be"))
}

/// A size of memory that a broker can live in.
pub(crate) fn memory(text: &str) -> Result<u64, String> {
    let least = server::MEMORY_LIMIT_MIN;
    match bytes(text)? {
        bytes if bytes < least => Err(format!("{text} is too little, give it {least} at least")),
        bytes => Ok(bytes),
    }
}

/// The bytes of a base64 text.
pub(crate) fn base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0);
    for letter in text.trim_end_matches('=').bytes() {
        let sextet = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(sextet);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count & 0xff) as u8);
        }
    }
    Some(bytes)
}

/// `--allowed-hosts`.
pub(crate) fn allowed_host(text: &str) -> Result<AllowedHost, String> {
    text.parse().map_err(|_| {
        format!("`{text}` is no name of a host: use broker.example, .example.com or *, no port")
    })
}

/// `--list-head`: which side of a list is the head of its queue.
pub(crate) fn list_head(text: &str) -> Result<Side, String> {
    match text {
        "left" => Ok(Side::Left),
        "right" => Ok(Side::Right),
        _ => Err(format!("`{text}` is no side of a list: use left or right")),
    }
}

/// `--redis-databases`
pub(crate) fn redis_databases(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("`{text}` is no number")).and_then(database_count)
}

pub(crate) fn database_count(count: usize) -> Result<usize, String> {
    let bounds = 1..=limits::REDIS_DATABASES_MAX;
    let refusal = || format!("{count} is no number of databases: use 1 to {}", bounds.end());
    if bounds.contains(&count) { Ok(count) } else { Err(refusal()) }
}

/// `--scripts`
pub(crate) fn on_or_off(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(format!("`{text}` is neither on nor off")),
    }
}

/// `--script-time`: from a millisecond to ten seconds, for nobody else is served meanwhile.
pub(crate) fn script_time(text: &str) -> Result<Duration, String> {
    let time = duration(text)?;
    let bounds = Duration::from_millis(1)..=Duration::from_secs(10);
    if bounds.contains(&time) {
        Ok(time)
    } else {
        Err(format!("`{text}` is no time for a script: use 1ms to 10s"))
    }
}

/// `--tls-clients`: what clients by TLS have to show.
pub(crate) fn tls_clients(text: &str) -> Result<TlsClients, String> {
    match text {
        "optional" => Ok(TlsClients::Optional),
        "required" => Ok(TlsClients::Required),
        _ => Err(format!("`{text}` says nothing of certificates: use optional or required")),
    }
}

/// `NAME:SETTING=VALUE`, with `*` for all queues that are not named; without a name it is about
/// the one named before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QueueSetting {
    whose: Whose,
    rule: QueueRule,
}

impl QueueSetting {
    /// As it is said on the command line.
    fn name(&self) -> String {
        let whose = match &self.whose {
            Whose::One(name) => name.as_str(),
            Whose::AllOthers => "*",
            Whose::AsBefore => unreachable!("settings were attributed"),
        };
        format!("{whose}:{}", self.rule.key().word())
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Whose {
    One(QueueName),
    AllOthers,
    AsBefore,
}

pub(crate) fn queue(text: &str) -> Result<QueueSetting, String> {
    let (name, setting) =
        text.rsplit_once(':').map_or((None, text), |(name, setting)| (Some(name), setting));
    let parts = setting.split_once('=');
    let (key, value) = parts.ok_or_else(|| format!("`{text}` is not NAME:SETTING=VALUE"))?;
    let rule = rule(rule_key(key)?, value)?;
    match name {
        Some(name) => queue_setting(name, rule),
        None => Ok(QueueSetting { whose: Whose::AsBefore, rule }),
    }
}

/// The name of a rule of a queue.
pub(crate) fn rule_key(text: &str) -> Result<RuleKey, String> {
    let known = RuleKey::ALL.map(RuleKey::word).join(", ");
    RuleKey::named(text)
        .ok_or_else(|| format!("`{text}` is no setting of a queue; there are {known}"))
}

/// A rule of a queue.
pub(crate) fn rule(key: RuleKey, text: &str) -> Result<QueueRule, String> {
    let wrong = || format!("{} is `{text}` and has to be {}", key.word(), key.allowed());
    QueueRule::parse(key, text).ok_or_else(wrong)
}

/// `SETTING=VALUE`
pub(crate) fn rule_setting(text: &str) -> Result<QueueRule, String> {
    let parts = text.split_once('=');
    let (key, value) = parts.ok_or_else(|| format!("`{text}` is not SETTING=VALUE"))?;
    rule(rule_key(key)?, value)
}

pub(crate) fn queue_setting(name: &str, rule: QueueRule) -> Result<QueueSetting, String> {
    let whose = match name {
        "*" => Whose::AllOthers,
        name => Whose::One(queue_name(name)?),
    };
    Ok(QueueSetting { whose, rule })
}

/// Each setting with the name that it is about, and none of a queue twice.
pub(crate) fn attributed(settings: Vec<QueueSetting>) -> Result<Vec<QueueSetting>, String> {
    let mut before = None;
    let attributed = settings.into_iter().map(|QueueSetting { whose, rule }| {
        let whose = if whose == Whose::AsBefore { before.clone() } else { Some(whose) };
        before = whose.clone();
        let whose = whose.ok_or("the first setting of a queue is not NAME:SETTING=VALUE")?;
        Ok(QueueSetting { whose, rule })
    });
    let attributed: Vec<_> = attributed.collect::<Result<_, String>>()?;
    each_once(attributed.iter().map(QueueSetting::name))?;
    Ok(attributed)
}

pub(crate) fn queue_name(text: &str) -> Result<QueueName, String> {
    QueueName::new(text).map_err(|error| format!("`{text}`: {error}"))
}

/// The rules of all queues; of two for one thing the later holds.
pub(crate) fn queue_policies(settings: &[QueueSetting]) -> QueuePolicies {
    let mut policies = QueuePolicies::default();
    for QueueSetting { whose, rule } in settings {
        let policy: &mut QueuePolicy = match whose {
            Whose::One(name) => policies.named.entry(name.clone()).or_default(),
            Whose::AllOthers => &mut policies.default,
            Whose::AsBefore => unreachable!("settings were attributed"),
        };
        rule.apply(policy);
    }
    policies
}

/// Of durations; of two that end alike the longer one first.
const UNITS: [&str; 6] = ["us", "ms", "s", "m", "h", "d"];

#[cfg(test)]
mod tests {
    use engine::{DeadLetters, ReleaseOrder, WhenFull};

    use super::*;

    #[test]
    fn bytes_come_out_of_base64() {
        for (text, bytes) in [("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm9v", "foo")] {
            assert_eq!(base64(text).unwrap(), bytes.as_bytes());
        }
        assert_eq!(base64("/+8=").unwrap(), [0xff, 0xef]);
        assert_eq!(base64("a b="), None);
    }

    #[test]
    fn durations_have_units() {
        assert_eq!(duration("25ms"), Ok(Duration::from_millis(25)));
        assert_eq!(duration("1500us"), Ok(Duration::from_micros(1_500)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(duration("2d"), duration("48h"));
        for wrong in ["", "25", "ms", "-1s", "1 s", "1.5s", "d", "+1d", "1w", "\u{e9}"] {
            assert!(duration(wrong).unwrap_err().contains("is no duration"), "{wrong}");
        }
        for zero in ["0s", "00d", "0us"] {
            assert!(duration(zero).unwrap_err().contains("above 0"), "{zero}");
        }
        for long in ["101d", "9999999999d", "2401h", "99999999999999999999h"] {
            assert!(duration(long).unwrap_err().contains("100 days"), "{long}");
        }
        assert_eq!(duration("100d"), duration("2400h"));
        let lease = rule_setting("pop-lease=2d").unwrap();
        assert_eq!(lease, QueueRule::PopLease(Some(Nanos::from_secs(2 * 86_400))));
        assert!(rule_setting("max-messages=2d").is_err());
    }

    #[test]
    fn sizes_have_units() {
        let sizes = [("7", 7), ("64K", 65_536), ("3m", 3 << 20), ("10G", 10 << 30)];
        for (text, size) in sizes {
            assert_eq!(bytes(text), Ok(size));
        }
        for wrong in ["", "K", "-1", "1.5G", "1T", "99999999999999G", "1 G", "\u{e9}"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn send_id_options_are_bounded() {
        assert_eq!(dedup_window("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(dedup_window("never"), Ok(Duration::ZERO));
        assert!(dedup_window("often").is_err());
        assert_eq!(dedup_max_ids("0"), Ok(0));
        assert_eq!(dedup_max_ids("1000000"), Ok(1_000_000));
        assert!(dedup_max_ids("1000001").unwrap_err().contains("more than 1000000"));
        assert!(dedup_max_ids("-1").is_err());
    }

    #[test]
    fn sync_is_word_or_duration() {
        assert_eq!(sync("always"), Ok(Sync::Always));
        assert_eq!(sync("never"), Ok(Sync::Never));
        assert_eq!(sync("1s"), Ok(Sync::Period(Duration::from_secs(1))));
        assert!(sync("often").unwrap_err().contains("25ms"));
    }

    #[test]
    fn store_none_ignores_sync_policy() {
        assert_eq!(policy(Store::None, Sync::Always), StorePolicy::Memory);
        assert_eq!(policy(Store::Journal, Sync::Always), StorePolicy::Always);
        let period = Sync::Period(Duration::from_millis(25));
        let expected = StorePolicy::Periodic(Nanos::from_millis(25));
        assert_eq!(policy(Store::Journal, period), expected);
    }

    #[test]
    fn list_has_two_sides() {
        assert_eq!(list_head("left"), Ok(Side::Left));
        assert_eq!(list_head("right"), Ok(Side::Right));
        assert_eq!([redis_databases("1"), redis_databases("128")], [Ok(1), Ok(128)]);
        assert!(redis_databases("129").unwrap_err().contains("use 1 to 128"));
        assert!(redis_databases("0").is_err() && redis_databases("all").is_err());
        assert!(list_head("front").unwrap_err().contains("left or right"));
    }

    #[test]
    fn queue_settings_apply_by_name() {
        let settings =
            ["*:release-order=back", "a:b:release-order=front"].map(|text| queue(text).unwrap());
        let policies = queue_policies(&settings);
        assert_eq!(policies.default.release_order, ReleaseOrder::Back);
        let named = policies.of(&QueueName::new("a:b").unwrap());
        assert_eq!(named.release_order, ReleaseOrder::Front);
        for wrong in [
            "a",
            "a:b",
            "a:order=back",
            "a:release-order=middle",
            ":release-order=back",
            "a:max-delivery-attempts=-1",
            "a:dead-letters=burn",
            "a:pop-lease=0s",
            "a:max-messages=0",
            "a:max-bytes=1k",
            "a:when-full=burn",
            "a:redelivery-delay=1",
            "a:redelivery-factor=0.9",
            "a:redelivery-max=0s",
            "a:redelivery-jitter=2",
        ] {
            assert!(queue(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn setting_without_name_continues_its_queue() {
        let texts = ["a:max-messages=5", "max-bytes=7", "when-full=drop-oldest", "*:max-bytes=9"];
        let settings = attributed(texts.map(|text| queue(text).unwrap()).to_vec()).unwrap();
        let policies = queue_policies(&settings);
        let bounds = policies.of(&QueueName::new("a").unwrap()).bounds;
        assert_eq!((bounds.messages_max, bounds.bytes_max), (Some(5), Some(7)));
        assert_eq!(bounds.when_full, WhenFull::DropOldest);
        assert_eq!(policies.default.bounds.bytes_max, Some(9));
        let nobodys = attributed(vec![queue("max-bytes=7").unwrap()]);
        assert!(nobodys.unwrap_err().contains("NAME:SETTING"));
    }

    #[test]
    fn rules_of_one_queue_add_up() {
        let texts = [
            "a:max-delivery-attempts=3",
            "a:dead-letters=drop",
            "a:max-delivery-attempts=0",
            "a:pop-lease=30s",
        ];
        let policies = queue_policies(&texts.map(|text| queue(text).unwrap()));
        let policy = policies.of(&QueueName::new("a").unwrap());
        assert_eq!((policy.max_delivery_attempts, policy.dead_letters), (0, DeadLetters::Drop));
        assert_eq!(policy.pop_lease, Some(Nanos::from_secs(30)));
        assert_eq!(policies.default, QueuePolicy::default());
    }
}
