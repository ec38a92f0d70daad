//! The memory this process may take: that of the machine, or the part that control groups leave of
//! it, as in a container or a service with `MemoryMax=`.
//!
//! A group is as limited as all groups around it, so each is asked. Version 2 has `memory.max`, and
//! `memory.high`, above which the system throttles. Version 1 has `memory.limit_in_bytes`, and
//! `memory.stat` for groups that a container does not see. Limits of swap do not count: the memory
//! of the process has to fit without swap.

use std::path::{Component, Path, PathBuf};

/// The bound of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Available {
    pub(crate) bytes: u64,
    /// The file that says so, if it is less than the machine has.
    pub(crate) file: Option<PathBuf>,
}

/// The memory this process may take now, on a machine with so much memory.
pub(crate) fn available(machine_bytes: u64) -> Available {
    available_by(machine_bytes, |path| std::fs::read_to_string(path).ok())
}

/// The same if files are read so.
fn available_by(machine_bytes: u64, read: impl Fn(&Path) -> Option<String>) -> Available {
    let machine = Available { bytes: machine_bytes, file: None };
    let groups = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    let mounts = read(Path::new("/proc/self/mountinfo")).unwrap_or_default();
    let mut least = machine;
    for line in groups.lines() {
        let Some((version, group)) = memory_group(line) else { continue };
        for directory in directories(version, group, &mounts) {
            for (file, value) in version.files() {
                let file = directory.join(file);
                let bytes = read(&file).and_then(|text| value(&text));
                if let Some(bytes) = bytes.filter(|bytes| *bytes < least.bytes) {
                    least = Available { bytes, file: Some(file) };
                }
            }
        }
    }
    least
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// Parses the limit that a file states, if it states one.
type Value = fn(&str) -> Option<u64>;

impl Version {
    fn files(self) -> [(&'static str, Value); 2] {
        match self {
            Self::One => [("memory.limit_in_bytes", number), ("memory.stat", hierarchical)],
            Self::Two => [("memory.max", number), ("memory.high", number)],
        }
    }

    /// The directory of its groups unless the system says otherwise.
    fn usual_mount(self) -> &'static Path {
        Path::new(match self {
            Self::One => "/sys/fs/cgroup/memory",
            Self::Two => "/sys/fs/cgroup",
        })
    }

    /// True if a mount of this type, with these options, has such groups.
    fn is_mounted_by(self, kind: &str, options: &str) -> bool {
        match self {
            Self::One => kind == "cgroup" && options.split(',').any(|option| option == "memory"),
            Self::Two => kind == "cgroup2",
        }
    }
}

/// Anything that is no number, such as `max`, is no limit.
fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

fn hierarchical(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("hierarchical_memory_limit ")).and_then(number)
}

/// The group that bounds memory, of a line `NUMBER:CONTROLLERS:GROUP`.
fn memory_group(line: &str) -> Option<(Version, &Path)> {
    let mut fields = line.splitn(3, ':');
    let (number, controllers, group) = (fields.next()?, fields.next()?, fields.next()?);
    let version = if controllers.split(',').any(|controller| controller == "memory") {
        Version::One
    } else if number == "0" && controllers.is_empty() {
        Version::Two
    } else {
        return None;
    };
    Some((version, Path::new(group)))
}

/// The group's directory and those of all groups around it, wherever they are mounted.
fn directories(version: Version, group: &Path, mounts: &str) -> Vec<PathBuf> {
    let mounted = mounts.lines().filter_map(|line| mount(version, line));
    let usual = (PathBuf::from("/"), version.usual_mount().to_owned());
    let mut found = Vec::new();
    for (root, place) in mounted.chain([usual]) {
        // A group outside the mounted hierarchy is a name of another namespace.
        let below = group.strip_prefix(&root).unwrap_or(Path::new(""));
        let is_plain = below.components().all(|part| matches!(part, Component::Normal(_)));
        let below = if is_plain { below } else { Path::new("") };
        for group in below.ancestors() {
            let directory = place.join(group);
            if !found.contains(&directory) {
                found.push(directory);
            }
        }
    }
    found
}

/// Which group is mounted where, of a line of proc(5)'s `mountinfo`.
fn mount(version: Version, line: &str) -> Option<(PathBuf, PathBuf)> {
    let (mount, system) = line.split_once(" - ")?;
    let mut mount = mount.split(' ').skip(3);
    let (root, place) = (mount.next()?, mount.next()?);
    let mut system = system.split(' ');
    let (kind, options) = (system.next()?, system.nth(1).unwrap_or_default());
    version.is_mounted_by(kind, options).then(|| (unescaped(root), unescaped(place)))
}

/// Spaces and the like are three octal digits there.
fn unescaped(text: &str) -> PathBuf {
    let plain = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    PathBuf::from(plain.iter().fold(text.to_owned(), |text, (code, byte)| text.replace(code, byte)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const MIB: u64 = 1 << 20;
    const V2: &str = "29 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
    const V1: &str = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n";

    /// The result with these files on a machine with 8 GiB.
    fn found(group: &str, mounts: &str, files: &[(&str, &str)]) -> (u64, Option<String>) {
        let proc = [("/proc/self/cgroup", group), ("/proc/self/mountinfo", mounts)];
        let files: BTreeMap<_, _> = proc.into_iter().chain(files.iter().copied()).collect();
        let read = |path: &Path| files.get(path.to_str()?).map(|text| (*text).to_owned());
        let found = available_by(8_192 * MIB, read);
        (found.bytes / MIB, found.file.map(|file| file.display().to_string()))
    }

    fn in_file(mebibytes: u64, file: &str) -> (u64, Option<String>) {
        (mebibytes, Some(file.to_owned()))
    }

    const ALL: (u64, Option<String>) = (8_192, None);

    #[test]
    fn machines_without_groups_have_all() {
        assert_eq!(found("", "", &[]), ALL);
        assert_eq!(found("0::/\n", V2, &[]), ALL);
        assert_eq!(found("nonsense\n0:\n::::\n", "nonsense - x", &[]), ALL);
    }

    #[test]
    fn groups_of_version_two_are_nested() {
        let group = "0::/system.slice/dunlin.service\n";
        let (outer, inner) =
            ("/sys/fs/cgroup/system.slice", "/sys/fs/cgroup/system.slice/dunlin.service");
        let limits = |outer_max: &str, inner_max: &str, inner_high: &str| {
            let names = [(outer, "memory.max"), (inner, "memory.max"), (inner, "memory.high")];
            let names = names.map(|(directory, file)| format!("{directory}/{file}"));
            let [first, second, third] = &names;
            found(group, V2, &[(first, outer_max), (second, inner_max), (third, inner_high)])
        };
        assert_eq!(limits("max\n", "max\n", "max\n"), ALL);
        assert_eq!(limits("max\n", "268435456\n", "max\n").0, 256);
        let by_outer = in_file(256, "/sys/fs/cgroup/system.slice/memory.max");
        assert_eq!(limits("268435456\n", "536870912\n", "max\n"), by_outer);
        assert_eq!(limits("max\n", "536870912\n", "268435456\n").0, 256, "throttled above it");
        assert_eq!(limits("max\n", "99999999999999999999999\n", "x").0, 8_192);
        assert_eq!(limits("max\n", "17179869184\n", "max\n"), ALL, "more than the machine has");
        assert_eq!(limits("max\n", "0\n", "max\n").0, 0);
    }

    #[test]
    fn cgroup_of_container_is_root() {
        let limit = ("/sys/fs/cgroup/memory.max", "134217728");
        let expected = in_file(128, "/sys/fs/cgroup/memory.max");
        assert_eq!(found("0::/\n", V2, &[limit]), expected);
        assert_eq!(found("0::/../../other\n", V2, &[limit]), expected, "of another namespace");
        assert_eq!(found("0::/\n", "", &[limit]), expected, "where no mount is told");
    }

    #[test]
    fn groups_of_version_one_bound_too() {
        let group = "4:memory:/docker/7f\n0::/\n";
        let limit = ("/sys/fs/cgroup/memory/docker/7f/memory.limit_in_bytes", "134217728\n");
        assert_eq!(found(group, V1, &[limit]).0, 128);
        let none = ("/sys/fs/cgroup/memory/docker/7f/memory.limit_in_bytes", "9223372036854771712");
        assert_eq!(found(group, V1, &[none]), ALL);
        let hidden = "35 31 0:32 /docker/7f /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
        let mounted = ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "134217728\n");
        assert_eq!(found(group, hidden, &[mounted]).0, 128);
        let stat =
            ("/sys/fs/cgroup/memory/memory.stat", "cache 5\nhierarchical_memory_limit 67108864\n");
        assert_eq!(found(group, hidden, &[mounted, stat]).0, 64, "by a group outside");
        let elsewhere = "35 31 0:32 / /mnt/my\\040groups rw - cgroup cgroup rw,cpu,memory\n";
        let limit = ("/mnt/my groups/docker/memory.limit_in_bytes", "67108864");
        assert_eq!(found("3:cpu,memory:/docker/7f\n", elsewhere, &[limit]).0, 64);
    }

    #[test]
    fn both_versions_may_be_mounted() {
        let unified = "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let mounts = format!("{V1}{unified}");
        let limit = ("/sys/fs/cgroup/unified/a/memory.max", "67108864");
        assert_eq!(found("4:memory:/b\n0::/a\n", &mounts, &[limit]).0, 64);
    }
}
