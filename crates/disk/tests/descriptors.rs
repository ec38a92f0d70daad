//! A directory with too few descriptors. In a process of its own, for it takes all that there are.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs::File;

use disk::{Choice, Method, RealDisk};
use journal::{Disk as _, DiskErrorKind};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// A file takes two descriptors if writes are direct.
#[test]
fn file_without_second_descriptor_is_unmade() {
    let path = std::env::temp_dir().join(format!("dunlin-descriptors-{}", std::process::id()));
    let disk = RealDisk::open(&path, Choice::Force(Method::Direct)).unwrap();
    // Few enough to be taken in no time, and of this process alone.
    let few = Rlimit { current: Some(64), ..getrlimit(Resource::Nofile) };
    setrlimit(Resource::Nofile, few).unwrap();
    let mut taken: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    taken.pop();
    let error = disk.create("unfinished.segment").unwrap_err();
    assert_eq!(error.kind, DiskErrorKind::Full, "{error}");
    drop(taken);
    let (names, again) = (disk.names(), disk.create("unfinished.segment"));
    std::fs::remove_dir_all(&path).unwrap();
    assert_eq!(names.unwrap(), [""; 0]);
    again.unwrap();
}
