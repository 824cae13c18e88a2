//! The share of the machine that this process may use.

use std::num::NonZeroUsize;
use std::path::Path;

/// Threads that can run at once, a container's share counted; at least 1.
pub fn cores_available() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// How many files this process may have open at once.
pub fn open_files_max() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    limit.map_or(usize::MAX, |limit| {
        usize::try_from(limit).unwrap_or(usize::MAX)
    })
}

/// The least of physical memory and the limits of this process's control groups, in bytes.
pub fn memory_limit_bytes() -> u64 {
    let facts = rustix::system::sysinfo();
    let physical = facts.totalram.saturating_mul(u64::from(facts.mem_unit));
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    control_group_limit(&groups, Path::new("/sys/fs/cgroup")).map_or(physical, |n| n.min(physical))
}

/// Has the C library give freed memory back to the system soon. By default its thresholds grow with
/// each large free, up to 64 MiB kept by each of many arenas, which no budget sees; and blocks of 64 KiB that come and go
/// leave holes. For programs to call once at their start; a library leaves this choice to its user.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn return_freed_memory() {
    const SETTINGS: [(libc::c_int, libc::c_int); 3] = [
        (libc::M_MMAP_THRESHOLD, 48 << 10),
        (libc::M_TRIM_THRESHOLD, 512 << 10),
        (libc::M_ARENA_MAX, 2),
    ];
    for (name, value) in SETTINGS {
        // SAFETY: sets a number of the allocator; it may be called at any time.
        unsafe { libc::mallopt(name, value) };
    }
}

/// Other C libraries have no such thresholds to set.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn return_freed_memory() {}

/// Memory of this process that is in RAM now, mapped files included; 0 if it is not known.
pub fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: Option<u64> = text.split(' ').nth(1).and_then(|n| n.parse().ok());
    pages.unwrap_or(0) * rustix::param::page_size() as u64
}

/// Seconds that this process, or only the calling thread, had a processor: in the system and in the program; 0 if they
/// are not known.
pub fn processor_seconds(of_thread: bool) -> (f64, f64) {
    let file = match of_thread {
        true => "/proc/thread-self/stat",
        false => "/proc/self/stat",
    };
    let text = std::fs::read_to_string(file).unwrap_or_default();
    // The name of the program, in parentheses, may have spaces.
    let fields = text.rsplit_once(')').map_or("", |(_, fields)| fields);
    let mut ticks = fields.split_whitespace().skip(11).map(|n| n.parse().ok());
    let mut seconds = || {
        let ticks: Option<u64> = ticks.next().flatten();
        ticks.unwrap_or(0) as f64 / rustix::param::clock_ticks_per_second() as f64
    };
    let (user, system) = (seconds(), seconds());
    (system, user)
}

/// The name of this machine.
pub fn host_name() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().into_owned()
}

/// The system's name, release and machine.
pub fn system_name() -> String {
    let name = rustix::system::uname();
    [name.sysname(), name.release(), name.machine()]
        .map(std::ffi::CStr::to_string_lossy)
        .join(" ")
}

/// The tightest limit named under `root` for the groups in `groups`, which has the format of
/// `/proc/self/cgroup`. Inside a container the group's path is one of the host's and may not exist
/// under `root`, whose top then carries the limit: so every ancestor is read.
fn control_group_limit(groups: &str, root: &Path) -> Option<u64> {
    let limits = groups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let path = Path::new(path.trim_start_matches('/'));
        if controllers.is_empty() {
            tightest(root, path, "memory.max")
        } else if controllers.split(',').any(|name| name == "memory") {
            tightest(&root.join("memory"), path, "memory.limit_in_bytes")
        } else {
            None
        }
    });
    limits.min()
}

fn tightest(root: &Path, path: &Path, name: &str) -> Option<u64> {
    path.ancestors()
        .filter_map(|group| std::fs::read_to_string(root.join(group).join(name)).ok())
        // "max" is no number and no limit.
        .filter_map(|text| text.trim().parse().ok())
        .min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_of_this_machine_are_plausible() {
        assert!(cores_available() >= 1);
        let resident = resident_bytes();
        assert!(resident > 100 << 10, "{resident}");
        assert!(memory_limit_bytes() >= resident);
    }

    #[test]
    fn the_tightest_group_of_version_2_counts() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("a/b");
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::write(inner.join("memory.max"), "max\n").unwrap();
        assert_eq!(control_group_limit("0::/a/b\n", root.path()), None);
        std::fs::write(root.path().join("a/memory.max"), "1000\n").unwrap();
        assert_eq!(control_group_limit("0::/a/b\n", root.path()), Some(1000));
        std::fs::write(root.path().join("memory.max"), "900\n").unwrap();
        assert_eq!(control_group_limit("0::/of/host\n", root.path()), Some(900));
    }

    #[test]
    fn a_limit_of_version_1_counts() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("memory/a");
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::write(inner.join("memory.limit_in_bytes"), "77\n").unwrap();
        let groups = "5:cpu,cpuacct:/a\n4:memory:/a\n";
        assert_eq!(control_group_limit(groups, root.path()), Some(77));
        assert_eq!(control_group_limit("5:cpu:/a\n", root.path()), None);
    }
}
