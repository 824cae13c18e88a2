//! A group with limits, and programs started in it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use drumlin_base::{Error, ErrorKind, Result};
use drumlin_fs::Env;

use super::device::disk_of;
use super::page_cache::forget_files;
use super::places::{Place, Version, place};

/// The resources a program may use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of memory, page cache included.
    pub memory_bytes: Option<u64>,
    /// Reads a second from the disk.
    pub disk_reads: Option<u64>,
    /// Directory of the store. It determines the disk, and if memory is limited its files are dropped from
    /// the page cache, where they would be outside of the limit. Without it the disk is that of the working
    /// directory.
    pub dir: Option<PathBuf>,
}

impl Limits {
    /// Whether there is any.
    pub fn is_any(&self) -> bool {
        self.memory_bytes.is_some() || self.disk_reads.is_some()
    }
}

/// Memory charged to a group, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupMemory {
    /// Everything.
    pub all: u64,
    /// Files in the page cache.
    pub page_cache: u64,
}

/// A control group of our own; removed when dropped, which needs the programs in it to have ended.
#[derive(Debug)]
pub struct ControlGroup {
    /// The group in each hierarchy it is in: one, or two of the first version.
    dirs: Vec<PathBuf>,
    memory: Option<PathBuf>,
    version: Version,
}

impl ControlGroup {
    /// A group called `name` with `limits`. Requires: if memory is limited, nobody has the store open.
    ///
    /// # Errors
    /// `Io` when the store's files cannot be read; `NotSupported`, with advice, when this process may
    /// not make groups or a limit is not available here.
    pub fn new(name: &str, limits: &Limits, env: &Env) -> Result<Self> {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let (mounts, groups) = (read("/proc/mounts"), read("/proc/self/cgroup"));
        let mut group = Self {
            dirs: Vec::new(),
            memory: None,
            version: Version::Two,
        };
        if let Some(bytes) = limits.memory_bytes {
            let at = place("memory", &mounts, &groups)
                .ok_or_else(|| refused("no memory controller is mounted"))?;
            let dir = group.join(&at, name, "memory")?;
            let file = match at.version {
                Version::One => "memory.limit_in_bytes",
                Version::Two => "memory.max",
            };
            write(&dir.join(file), &bytes.to_string())?;
            // Swapping would replace the limit by waiting.
            let swap = match at.version {
                Version::One => "memory.swappiness",
                Version::Two => "memory.swap.max",
            };
            if dir.join(swap).exists() {
                write(&dir.join(swap), "0")?;
            }
            group.memory = Some(dir);
            if let Some(dir) = &limits.dir {
                forget_files(dir, env)?;
            }
        }
        if let Some(reads) = limits.disk_reads {
            let disk = disk_of(limits.dir.as_deref().unwrap_or(Path::new(".")))?;
            let first = place("blkio", &mounts, &groups).filter(|at| at.version == Version::One);
            let (at, controller) = match first {
                Some(at) => (Some(at), "blkio"),
                None => (place("io", &mounts, &groups), "io"),
            };
            let at = at.ok_or_else(|| refused("no controller of disks is mounted"))?;
            let dir = group.join(&at, name, controller)?;
            match at.version {
                Version::One => write(
                    &dir.join("blkio.throttle.read_iops_device"),
                    &format!("{disk} {reads}"),
                )?,
                Version::Two => write(&dir.join("io.max"), &format!("{disk} riops={reads}"))?,
            }
        }
        Ok(group)
    }

    /// Makes the group in the hierarchy at `at`, unless it is there, and returns its directory.
    fn join(&mut self, at: &Place, name: &str, controller: &str) -> Result<PathBuf> {
        self.version = at.version;
        let mut why = String::from("its hierarchy has no directory");
        for parent in at.parents() {
            let dir = parent.join(name);
            if self.dirs.contains(&dir) {
                return Ok(dir);
            }
            match create(&parent, &dir, at.version, controller) {
                Ok(()) => {
                    self.dirs.push(dir.clone());
                    return Ok(dir);
                }
                Err(error) => why = format!("{}: {error}", dir.display()),
            }
        }
        Err(refused(&format!(
            "no group for the controller {controller} can be made ({why})"
        )))
    }

    /// A command that runs `program` in this group. Its shell joins before it becomes the program, so
    /// that not one page of it is charged elsewhere.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("/bin/sh");
        let mut script = String::new();
        for (number, _) in self.dirs.iter().enumerate() {
            script.push_str(&format!(
                "echo $$ > \"$DRUMLIN_GROUP_{number}/cgroup.procs\" || exit 125; "
            ));
        }
        script.push_str("exec \"$0\" \"$@\"");
        command.arg("-c").arg(script).arg(program);
        for (number, dir) in self.dirs.iter().enumerate() {
            command.env(format!("DRUMLIN_GROUP_{number}"), dir);
        }
        command
    }

    /// Memory charged now; `None` without a limit of memory.
    pub fn memory(&self) -> Option<GroupMemory> {
        let dir = self.memory.as_ref()?;
        let read = |name: &str| std::fs::read_to_string(dir.join(name)).ok();
        let (all, cache) = match self.version {
            Version::One => ("memory.usage_in_bytes", "total_cache"),
            Version::Two => ("memory.current", "file"),
        };
        Some(GroupMemory {
            all: read(all)?.trim().parse().ok()?,
            page_cache: field(&read("memory.stat")?, cache)?,
        })
    }

    /// How often the limit of memory was met so far; pages were then given up, or allocations waited.
    pub fn times_full(&self) -> Option<u64> {
        let dir = self.memory.as_ref()?;
        match self.version {
            Version::One => {
                let text = std::fs::read_to_string(dir.join("memory.failcnt")).ok()?;
                text.trim().parse().ok()
            }
            Version::Two => field(
                &std::fs::read_to_string(dir.join("memory.events")).ok()?,
                "max",
            ),
        }
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        for dir in &self.dirs {
            // The remaining page cache goes with its group.
            let _best_effort = write(&dir.join("memory.force_empty"), "0");
            // An empty group that stays costs nothing.
            let _stays = std::fs::remove_dir(dir);
        }
    }
}

/// Makes `dir` in `parent` and sees that it has `controller`.
fn create(parent: &Path, dir: &Path, version: Version, controller: &str) -> Result<()> {
    let file = match controller {
        "memory" if version == Version::One => "memory.limit_in_bytes",
        "memory" => "memory.max",
        "blkio" => "blkio.throttle.read_iops_device",
        _ => "io.max",
    };
    std::fs::create_dir(dir).map_err(|error| Error::io("make group", dir, error))?;
    if version == Version::Two && !dir.join(file).exists() {
        // Controllers of the second version are handed down by the parent, if it holds no process.
        let handed = write(
            &parent.join("cgroup.subtree_control"),
            &format!("+{controller}"),
        );
        if let Err(error) = handed {
            let _empty = std::fs::remove_dir(dir);
            return Err(error);
        }
    }
    if dir.join(file).exists() {
        return Ok(());
    }
    let _empty = std::fs::remove_dir(dir);
    Err(refused(&format!("there is no {file}")))
}

/// The number behind `name` in a file of `name number` lines.
fn field(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    lines
        .find(|(found, _)| *found == name)?
        .1
        .trim()
        .parse()
        .ok()
}

fn refused(why: &str) -> Error {
    let message = format!(
        "memory and disk cannot be limited here: {why}; run it as root, or in a container with a \
         writable /sys/fs/cgroup"
    );
    Error::new(ErrorKind::NotSupported, message)
}

#[expect(
    clippy::disallowed_methods,
    reason = "control files are switches of the kernel, not files that a file system keeps"
)]
fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).map_err(|error| {
        let message = format!("cannot write '{text}' to {}: {error}", path.display());
        refused(&message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_found_by_the_whole_name() {
        let text = "cache 1\ntotal_cache 4096\nfile 7\n";
        assert_eq!(field(text, "total_cache"), Some(4096));
        assert_eq!((field(text, "file"), field(text, "total")), (Some(7), None));
    }

    /// Needs rights that a test may not have; it then prints that, as the command does.
    #[test]
    fn a_program_in_a_group_meets_its_limit_of_memory() {
        let limits = Limits {
            memory_bytes: Some(64 << 20),
            ..Limits::default()
        };
        let name = format!("drumlin-test-{}", std::process::id());
        let group = match ControlGroup::new(&name, &limits, &Env::system()) {
            Ok(group) => group,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::NotSupported);
                assert!(error.to_string().contains("run it as root"), "{error}");
                return;
            }
        };
        let limit = group
            .command("cat")
            .arg("/proc/self/cgroup")
            .output()
            .expect("a program");
        let text = String::from_utf8_lossy(&limit.stdout).into_owned();
        assert!(
            text.contains(&name),
            "{text} {}",
            String::from_utf8_lossy(&limit.stderr)
        );
        assert!(group.memory().is_some() && group.times_full().is_some());
        let dir = group.dirs.first().cloned().expect("a directory");
        drop(group);
        assert!(!dir.exists(), "{}", dir.display());
    }
}
