//! How much memory there is.

use std::fs;
use std::path::{Path, PathBuf};

use coapway_config::Config;

/// Where the kernel tells of all.
const MEMORY: &str = "/proc/meminfo";
/// Where it tells which control groups we are in, and where those are.
const OURS: &str = "/proc/self/cgroup";
const GROUPS: &str = "/sys/fs/cgroup";

/// A warning, where strangers could make us use more memory than there is.
pub(crate) fn warning(config: &Config) -> Option<String> {
    let (bytes, place) = memory(|path| fs::read_to_string(path).ok())?;
    config.memory_beyond(bytes, place)
}

/// The memory that we may use, in bytes, and what limits it.
fn memory(read: impl Fn(&Path) -> Option<String>) -> Option<(u64, &'static str)> {
    let machine = read(Path::new(MEMORY)).as_deref().and_then(total).map(|bytes| (bytes, "this machine"));
    let group = groups(&read(Path::new(OURS)).unwrap_or_default())
        .iter()
        .filter_map(|path| read(path)?.trim().parse().ok())
        .min()
        .map(|bytes| (bytes, "its control group"));
    [machine, group].into_iter().flatten().min_by_key(|(bytes, _)| *bytes)
}

/// The whole memory of the machine.
fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The files with the limits of our control groups and of those around them, of either version.
fn groups(ours: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in ours.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let (root, limit) = match controllers {
            "" => (PathBuf::from(GROUPS), "memory.max"),
            _ if controllers.split(',').any(|name| name == "memory") => {
                (Path::new(GROUPS).join("memory"), "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let path = path.trim_start_matches('/');
        files.extend(Path::new(path).ancestors().map(|group| root.join(group).join(limit)));
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The memory on a host with these files.
    fn on(files: &[(&str, &str)]) -> Option<(u64, &'static str)> {
        memory(|path| {
            files.iter().find(|(name, _)| Path::new(name) == path).map(|(_, text)| (*text).to_owned())
        })
    }

    const MEMINFO: (&str, &str) = (MEMORY, "MemTotal:       24684084 kB\nMemFree:        19212476 kB\n");

    #[test]
    fn the_machine_has_what_the_kernel_tells() {
        assert_eq!(on(&[MEMINFO]), Some((24_684_084 << 10, "this machine")));
        for broken in ["", "MemTotal:\n", "MemTotal: many kB\n", "MemTotal: 18446744073709551615 kB\n"] {
            assert_eq!(on(&[(MEMORY, broken)]), None, "{broken:?}");
        }
    }

    #[test]
    fn the_least_of_all_groups_around_us_is_the_limit() {
        let ours = (OURS, "0::/system.slice/coapway.service\n");
        let limit = |path, text| [MEMINFO, ours, (path, text)];
        let group = Some((512 << 20, "its control group"));
        assert_eq!(
            on(&limit("/sys/fs/cgroup/system.slice/coapway.service/memory.max", "536870912\n")),
            group
        );
        assert_eq!(on(&limit("/sys/fs/cgroup/system.slice/memory.max", "536870912\n")), group);
        let machine = Some((24_684_084 << 10, "this machine"));
        for none in ["max\n", "9223372036854771712\n", ""] {
            assert_eq!(on(&limit("/sys/fs/cgroup/system.slice/memory.max", none)), machine, "{none:?}");
        }
        let first = (OURS, "9:name=systemd:/\n4:cpu,memory:/a:b\n0::/\nnonsense\n");
        let path = "/sys/fs/cgroup/memory/a:b/memory.limit_in_bytes";
        assert_eq!(on(&[first, MEMINFO, (path, "536870912\n")]), group);
    }

    #[test]
    fn this_host_has_some() {
        assert!(memory(|path| fs::read_to_string(path).ok()).is_some_and(|(bytes, _)| bytes > 1 << 20));
    }
}
