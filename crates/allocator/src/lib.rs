//! The allocator of whatever links this crate, and how soon it gives back what was freed.
//!
//! mimalloc keeps freed memory for a second, since whoever is busy wants it again at once. With
//! little memory that second is worth more than the page faults that it saves; with more, what a
//! queue that is emptied gives back is wanted when it fills again, some seconds later: see ADR 20.

use std::ffi::c_long;

/// A message takes a handful of allocations, made in one thread and freed in another.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Whoever was given less memory than this many bytes has what is freed given back soon.
const SCARCE_BYTES: u64 = 512 * 1024 * 1024;
/// How soon, in milliseconds, where mimalloc would keep it for 1,000.
const SOON_MS: c_long = 10;
/// And everybody else has it kept so long.
const LATER_MS: c_long = 10_000;
/// `mi_option_purge_delay` of mimalloc 3, to which the bindings give no name (`mimalloc.h`).
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

/// Has freed memory given back to the system as soon as `limit`, the bytes that the process was
/// given, asks for, and no sooner. To be called before the process has other threads. What the
/// environment says (`MIMALLOC_PURGE_DELAY`, in milliseconds) stays.
pub fn keep_within(limit: u64) {
    set_default_delay(if limit < SCARCE_BYTES { SOON_MS } else { LATER_MS });
}

/// Gives back to the system what other threads have freed to the allocator, whatever the delay.
/// Takes as long as the system needs to take it: some 0.1 ms a MiB.
pub fn give_back() {
    collect();
}

#[expect(unsafe_code, reason = "mimalloc's collection is called in C")]
fn collect() {
    // SAFETY: mimalloc lets any thread collect at any time: its own heap, and what no heap has.
    unsafe { libmimalloc_sys::mi_collect(true) }
}

#[expect(unsafe_code, reason = "mimalloc's options are set in C")]
fn set_default_delay(milliseconds: c_long) {
    // SAFETY: mimalloc checks the option's number and stores an aligned word of its own, which
    // nobody reads meanwhile: there are no other threads yet.
    unsafe { libmimalloc_sys::mi_option_set_default(PURGE_DELAY, milliseconds) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "MIMALLOC_PURGE_DELAY";

    #[expect(unsafe_code, reason = "mimalloc's options are read in C")]
    fn delay() -> c_long {
        // SAFETY: as above, and nobody stores it meanwhile: this crate has one test.
        unsafe { libmimalloc_sys::mi_option_get(PURGE_DELAY) }
    }

    /// Runs itself again with a delay in its environment: that it is read there under this number
    /// says that the number is right.
    #[test]
    fn purge_delay_follows_memory_and_environment() {
        if std::env::var_os(NAME).is_some() {
            assert_eq!(delay(), 77);
            keep_within(SCARCE_BYTES - 1);
            assert_eq!(delay(), 77);
            return;
        }
        assert_eq!(delay(), 1_000, "as mimalloc has it");
        keep_within(SCARCE_BYTES);
        assert_eq!(delay(), LATER_MS);
        keep_within(SCARCE_BYTES - 1);
        assert_eq!(delay(), SOON_MS);
        let itself = std::env::current_exe().expect("a path");
        let again = std::process::Command::new(itself).env(NAME, "77").status();
        assert!(again.expect("its status").success());
    }
}
