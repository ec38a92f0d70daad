//! How the memory that the server was given is shared out.

use std::sync::OnceLock;

use engine::DeadLettersMax;
use model::{StorePolicy, limits};

use crate::Config;
use crate::cgroup::{self, Available};

/// The least that can be asked for.
pub const MEMORY_LIMIT_MIN: u64 = 64 * 1024 * 1024;

/// Bytes of memory, divided among their users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoryShares {
    /// All of it.
    pub(crate) limit: u64,
    /// For the buffers of connections.
    pub(crate) buffers: usize,
    /// For the requests of HTTP, and answers that are not read yet.
    pub(crate) http: usize,
    /// For batches that wait to be written, and those that are being written.
    pub(crate) log: u64,
    /// For messages.
    pub(crate) messages: u64,
}

impl MemoryShares {
    /// Messages get the rest after the log's need for batches, and the shares of connections and
    /// HTTP: an eighth each, unless they were given less.
    pub(crate) fn of(config: &Config) -> Self {
        let limit = config.memory_bytes();
        let buffers = (limit / 8).min(config.limits.buffered_bytes as u64);
        let log = (limit / 4).min(LOG_BYTES_MAX);
        let messages = limit - 2 * buffers - log;
        let buffers = usize::try_from(buffers).unwrap_or(config.limits.buffered_bytes);
        Self { limit, buffers, http: buffers, log, messages }
    }

    /// The part of the log's share for frames that wait to be written. The rest is for two writes
    /// under way, the buffers that are kept, and the unfilled part of allocated buffers.
    pub(crate) fn waiting(&self) -> usize {
        usize::try_from(self.log / 8 * 5).unwrap_or(usize::MAX)
    }

    /// For one message. A connection that sends or is sent one holds it in its buffers, and few
    /// that do so at once must not fill them.
    pub(crate) fn message(&self) -> usize {
        (self.buffers / 4).min(limits::MESSAGE_BYTES_MAX)
    }

    /// For the content of one reply.
    pub(crate) fn reply(&self) -> usize {
        (self.buffers / 4).min(limits::REPLY_BYTES_MAX)
    }

    /// For one command, which may bring several messages.
    pub(crate) const fn command(&self) -> usize {
        self.buffers / 2
    }

    /// For dead letters: an eighth of the messages' share. Their bodies leave memory if the log has
    /// them, and take at most a sixteenth of the limit for the device.
    pub(crate) fn dead_letters(&self, config: &Config) -> DeadLettersMax {
        let messages = self.messages / 8 / DEAD_LETTER_BYTES;
        let bytes = match (config.policy, config.disk_limit) {
            (StorePolicy::Memory, _) => self.messages / 8,
            (_, None) => DEAD_LETTERS_BYTES_MAX,
            (_, Some(limit)) => (limit / 16).min(DEAD_LETTERS_BYTES_MAX),
        };
        DeadLettersMax { messages, bytes: bytes.max(self.message() as u64) }
    }

    /// For files of the log that a start reads ahead: connections, requests and batches have
    /// nothing yet.
    pub(crate) const fn start(&self) -> u64 {
        self.limit / 4
    }
}

/// How many receives of HTTP may wait, or collect more: they take a quarter of all memory at most.
pub(crate) fn receives_max(memory_limit: u64) -> usize {
    usize::try_from(memory_limit / 4 / RECEIVE_BYTES)
        .map_or(RECEIVES_MAX, |it| it.min(RECEIVES_MAX))
}

impl Config {
    /// Bytes of memory that the process is to keep to: the configured limit, or a quarter of the
    /// memory that the machine has or the control group leaves to the process. At least
    /// [`MEMORY_LIMIT_MIN`].
    pub fn memory_bytes(&self) -> u64 {
        self.memory_limit.unwrap_or_else(|| available().bytes / 4).max(MEMORY_LIMIT_MIN)
    }
}

/// Logs that the process may take less memory than the machine has, and the limit that follows.
pub(crate) fn tell_limit(config: &Config) {
    let Available { bytes, file: Some(file) } = available() else { return };
    let (limit, file) = (config.memory_bytes(), file.display());
    if limit + BESIDE_BYTES <= *bytes {
        config.log.line(format_args!("memory limit {limit} bytes: {file} allows {bytes}"));
    } else {
        config.log.line(format_args!(
            "memory limit {limit} bytes, and {file} allows {bytes}: the system may kill the broker \
             when its memory is used; give it {} at least, or --memory-limit less",
            limit + BESIDE_BYTES
        ));
    }
}

/// The memory available at the first call.
fn available() -> &'static Available {
    static AVAILABLE: OnceLock<Available> = OnceLock::new();
    AVAILABLE.get_or_init(|| cgroup::available(machine_bytes()))
}

fn machine_bytes() -> u64 {
    let system = rustix::system::sysinfo();
    let unit = u64::from(system.mem_unit.max(1));
    // The type of this field is that of the platform.
    #[allow(clippy::useless_conversion, reason = "it is 32 bits wide elsewhere")]
    let total = u64::from(system.totalram);
    total.saturating_mul(unit)
}

/// Memory of the process beside its limit: threads, code, the allocator's reserve.
const BESIDE_BYTES: u64 = 32 * 1024 * 1024;

/// Memory of a dead letter beside its body: the message, its history, its places in indexes.
const DEAD_LETTER_BYTES: u64 = 320;

/// Bytes of dead letters that are kept for inspection by an operator.
const DEAD_LETTERS_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// One on each connection, and as many more: by HTTP/2 there may be a hundred on one.
const RECEIVES_MAX: usize = 20_000;

/// Memory of one waiting receive, about.
const RECEIVE_BYTES: u64 = 7 * 1024;

/// More than this makes no batch larger.
const LOG_BYTES_MAX: u64 = 64 * 1024 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_receives_shrink_with_memory() {
        let counts = [64 << 20, 256 << 20, 1 << 30, u64::MAX].map(receives_max);
        assert_eq!(counts, [2_340, 9_362, RECEIVES_MAX, RECEIVES_MAX]);
    }

    #[test]
    fn dead_letters_have_a_small_share() {
        let config = |memory, disk| Config {
            memory_limit: Some(memory),
            disk_limit: disk,
            ..Config::default()
        };
        let most = |config: &Config| MemoryShares::of(config).dead_letters(config);
        let little = most(&config(64 << 20, Some(300 << 20)));
        assert_eq!((little.messages, little.bytes), (13_107, 300 << 16));
        let much = most(&config(4 << 30, None));
        assert_eq!((much.messages, much.bytes), (1_441_792, 1 << 30));
        let tiny = most(&config(64 << 20, Some(16 << 20)));
        assert_eq!(tiny.bytes, 2 << 20, "as large as a message may be");
        let none = Config { policy: StorePolicy::Memory, ..config(64 << 20, None) };
        assert_eq!(most(&none).bytes, 4 << 20, "memory alone keeps them");
    }

    #[test]
    fn memory_shares_fit_the_limit() {
        for limit in [None, Some(0), Some(256 << 20), Some(u64::MAX)] {
            let shares = MemoryShares::of(&Config { memory_limit: limit, ..Config::default() });
            assert!(shares.limit >= MEMORY_LIMIT_MIN, "{shares:?}");
            assert!(shares.messages >= shares.limit / 2, "{shares:?}");
            let buffers = (shares.buffers + shares.http) as u64;
            assert!(shares.messages + shares.log + buffers <= shares.limit, "{shares:?}");
        }
    }
}
