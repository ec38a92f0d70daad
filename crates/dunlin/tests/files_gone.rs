//! Files of the journal that are taken away while the binary runs: it ends, and says which.
use std::fs;
use std::path::Path;

use crate::common::{ANY, Directory, Server, dunlin};
use rustix::process::Signal;

const ACTIVE: &str = "0000000000000001.segment";

/// Serves with one stored message, lets `harm` come to its data, and puts until it ends.
fn ends_after(test: &str, harm: impl FnOnce(&Path)) -> String {
    let directory = Directory::new(test);
    let mut command = dunlin(&directory);
    command.arg("serve").args(ANY);
    let server = Server::start(command);
    let mut client = server.connect();
    assert_eq!(client.put("before"), "INSERTED 1");
    harm(&directory.0.join("dunlin-data"));
    while client.try_put("after").is_some() {}
    let (status, stderr) = server.end();
    assert_eq!(status.code(), Some(74), "{stderr}");
    assert!(stderr.contains("nothing more is confirmed"), "{stderr}");
    stderr
}

fn replace(path: &Path) {
    let copy = path.with_extension("copy");
    fs::copy(path, &copy).unwrap();
    fs::rename(copy, path).unwrap();
}

#[test]
fn removed_directory_ends_the_broker() {
    let said = ends_after("gone-all", |data| fs::remove_dir_all(data).unwrap());
    assert!(said.contains("cannot find") && said.contains("dunlin-data"), "{said}");
}

#[test]
fn renamed_directory_ends_the_broker() {
    let said = ends_after("gone-renamed", |data| {
        fs::rename(data, data.with_extension("old")).unwrap();
    });
    assert!(said.contains("dunlin-data: it was removed or renamed"), "{said}");
    let said = ends_after("gone-swapped", |data| {
        fs::rename(data, data.with_extension("old")).unwrap();
        fs::create_dir(data).unwrap();
    });
    assert!(said.contains("dunlin-data: another was put in its place"), "{said}");
}

#[test]
fn removed_file_ends_the_broker() {
    for name in [ACTIVE, "snapshot-a", "snapshot-b", "0000000000000002.segment"] {
        let said = ends_after("gone-one", |data| fs::remove_file(data.join(name)).unwrap());
        assert!(said.contains(name) && said.contains("removed or renamed"), "{said}");
    }
}

#[test]
fn replaced_file_ends_the_broker() {
    for name in [ACTIVE, "snapshot-b"] {
        let said = ends_after("gone-replaced", |data| replace(&data.join(name)));
        assert!(said.contains(name) && said.contains("put in its place"), "{said}");
    }
}

#[test]
fn stop_without_directory_exits_with_error() {
    let directory = Directory::new("gone-stop");
    let mut command = dunlin(&directory);
    command.arg("serve").args(ANY);
    let server = Server::start(command);
    assert_eq!(server.connect().put("before"), "INSERTED 1");
    fs::remove_dir_all(directory.0.join("dunlin-data")).unwrap();
    server.signal(Signal::TERM);
    let (status, stderr) = server.end();
    assert_eq!(status.code(), Some(74), "{stderr}");
}
