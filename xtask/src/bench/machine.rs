//! The environment of a run: the machine, and the versions of everything.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::Result;
use crate::server::java_libraries;

/// A sentence about the machine, without its name.
pub(super) fn describe() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let model = field(&read("/proc/cpuinfo"), "model name").unwrap_or_default();
    let kilobytes = field(&read("/proc/meminfo"), "MemTotal")
        .and_then(|text| text.split(' ').next()?.parse::<u64>().ok())
        .unwrap_or_default();
    let load = read("/proc/loadavg");
    format!(
        "{cores} cores ({model}), {} GiB, Linux {}; load of the minute before {}",
        kilobytes >> 20,
        read("/proc/sys/kernel/osrelease").trim(),
        load.split(' ').next().unwrap_or("unknown"),
    )
}

/// The first field of this name in a file of `/proc`.
fn field(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_once(':').map(|(_, value)| value.trim().to_owned())
}

/// Of Dunlin and of programs that are asked by `words`.
pub(super) fn versions(binary: &Path, programs: &[&[&str]]) -> Result<Vec<String>> {
    let mut versions = vec![first_line(Command::new(binary).arg("--version"))?];
    for words in programs {
        let Some((program, words)) = words.split_first() else { continue };
        // A missing program is reported in its line of the table.
        versions.extend(first_line(Command::new(program).args(words)));
    }
    Ok(versions)
}

/// Of libraries of modules of `interop/jms`.
pub(super) fn libraries(names: &[(&str, &str)]) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for (module, name) in names {
        found.extend(library_of(&java_libraries(module)?, name));
    }
    Ok(found)
}

/// Processor time of the processes that this one started and that have ended.
pub(super) fn children_cpu_nanos() -> Result<u64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    Ok(super::usage::ended_children_cpu_nanos(&stat))
}

/// The time of day, so that figures of several runs are told apart.
pub(super) fn now() -> Result<String> {
    first_line(Command::new("date").args(["-u", "+%Y-%m-%d %H:%M:%S UTC"]))
}

fn first_line(command: &mut Command) -> Result<String> {
    let output = command.output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

/// `NAME-1.2.3.jar` on a class path, as `NAME 1.2.3`.
pub(super) fn library_of(class_path: &str, name: &str) -> Option<String> {
    let mut files = class_path.trim().split(':').filter_map(|path| path.rsplit('/').next());
    files.find_map(|file| {
        let version = file.strip_prefix(name)?.strip_prefix('-')?.strip_suffix(".jar")?;
        version.starts_with(|c: char| c.is_ascii_digit()).then(|| format!("{name} {version}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn library_version_is_found() {
        let path = "/m2/a/artemis-server-osgi-1.jar:/m2/b/artemis-server-2.55.0.jar\n";
        assert_eq!(library_of(path, "artemis-server").as_deref(), Some("artemis-server 2.55.0"));
        assert_eq!(library_of(path, "joram-mom-core"), None);
    }

    #[test]
    fn field_is_read() {
        let text = "processor\t: 0\nmodel name\t: A Processor\n";
        assert_eq!(field(text, "model name").as_deref(), Some("A Processor"));
    }
}
