//! Rules: the operations that fail, and how they fail.

use std::path::Path;
use std::time::Duration;

use drumlin_base::rng::Rng;

use crate::file_system::FileKind;

/// The operations of a file system that are counted and can be made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpKind {
    /// A file created.
    Create,
    /// A file recycled.
    Reuse,
    /// Bytes appended.
    Append,
    /// An open file synced, by its owner or a syncer.
    Sync,
    /// A written file closed.
    Close,
    /// A file opened for reading.
    Open,
    /// Bytes read.
    Read,
    /// A directory listed.
    List,
    /// A file's attributes read.
    Info,
    /// A file renamed; the path is the new one.
    Rename,
    /// A file linked; the path is the new one.
    Link,
    /// A file removed.
    Remove,
    /// Directories created.
    CreateDir,
    /// A directory removed.
    RemoveDir,
    /// A directory synced.
    SyncDir,
    /// A file synced by its path.
    SyncFile,
    /// A file cut or extended by its path.
    Truncate,
    /// A file locked.
    Lock,
    /// The free space queried.
    FreeSpace,
}

impl OpKind {
    /// Whether the operation can change the disk.
    pub fn changes_disk(self) -> bool {
        !matches!(
            self,
            Self::Open | Self::Read | Self::List | Self::Info | Self::FreeSpace
        )
    }
}

/// The effect that replaces the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It fails with the system's "input/output error". A failed sync over the in-memory disk
    /// leaves the unsynced bytes marked clean, as kernels do.
    Io,
    /// It fails because the disk is full.
    NoSpace,
    /// It fails because the process has too many open files.
    TooManyFiles,
    /// An append does its front half, then fails as [`Fault::Io`]. Others act as that fault.
    TornAppend,
    /// An append does its front half, then fails because the disk is full. Others act as
    /// [`Fault::NoSpace`].
    TornNoSpace,
    /// A read gives its bytes with one bit flipped. Other operations are done as usual.
    FlippedBit,
    /// A read gives half of its bytes, as if the file ended. Others are done as usual.
    ShortRead,
    /// The machine stops: this and every later operation fails, see
    /// [`crate::FaultFileSystem::is_stopped`].
    Stop,
    /// It is done as usual, but later: after a time evenly at random between the two, the same times
    /// for the same seed ([`FaultRule::seeded`]), on the clock of
    /// [`crate::FaultFileSystem::set_clock`]. The delays of all rules that strike add up, and another
    /// fault strikes after them.
    Slow {
        /// The shortest delay.
        least: Duration,
        /// The longest.
        most: Duration,
    },
}

impl Fault {
    /// Always the same delay.
    pub fn slow(delay: Duration) -> Self {
        Self::Slow {
            least: delay,
            most: delay,
        }
    }
}

/// The choice of the operations, among those a rule counts, that are struck.
#[derive(Clone, Debug)]
pub(crate) enum When {
    Once(u64),
    From(u64),
    OneIn(u64, Rng),
}

impl When {
    /// Whether the operation of this number is struck.
    pub(crate) fn strikes(&mut self, index: u64) -> bool {
        match self {
            Self::Once(n) => index == *n,
            Self::From(n) => index >= *n,
            Self::OneIn(n, rng) => rng.one_in(*n),
        }
    }
}

/// A time evenly at random between the two.
pub(crate) fn draw_delay(rng: &mut Rng, least: Duration, most: Duration) -> Duration {
    let spread = most.saturating_sub(least).as_nanos();
    let spread = u64::try_from(spread).unwrap_or(u64::MAX - 1);
    least + Duration::from_nanos(rng.below(spread + 1))
}

/// A fault and the operations it strikes. Operations that meet the rule's conditions are numbered
/// from 0, beginning when the rule is added.
#[derive(Clone, Debug)]
pub struct FaultRule {
    pub(crate) fault: Fault,
    when: When,
    ops: Vec<OpKind>,
    kinds: Vec<FileKind>,
    path_part: Option<String>,
    changes_only: bool,
    seen: u64,
    /// Where random delays come from.
    delays: Rng,
}

impl FaultRule {
    /// Strikes operation `index`, counted from when the rule is added, and no other.
    pub fn once(index: u64, fault: Fault) -> Self {
        Self::new(When::Once(index), fault)
    }

    /// Strikes operation `index` and all after it.
    pub fn from(index: u64, fault: Fault) -> Self {
        Self::new(When::From(index), fault)
    }

    /// Strikes every operation.
    pub fn always(fault: Fault) -> Self {
        Self::from(0, fault)
    }

    /// Strikes one operation in `n` on average, the same ones for the same `seed`.
    pub fn one_in(n: u64, seed: u64, fault: Fault) -> Self {
        Self::new(When::OneIn(n, Rng::new(seed)), fault)
    }

    fn new(when: When, fault: Fault) -> Self {
        Self {
            fault,
            when,
            ops: Vec::new(),
            kinds: Vec::new(),
            path_part: None,
            changes_only: false,
            seen: 0,
            delays: Rng::new(0),
        }
    }

    /// Draws the delays of [`Fault::Slow`] from this seed.
    #[must_use]
    pub fn seeded(mut self, seed: u64) -> Self {
        self.delays = Rng::new(seed);
        self
    }

    /// Only operations of this kind, or of one of the kinds when called more than once.
    #[must_use]
    pub fn on(mut self, op: OpKind) -> Self {
        self.ops.push(op);
        self
    }

    /// Only operations that can change the disk.
    #[must_use]
    pub fn on_changes(mut self) -> Self {
        self.changes_only = true;
        self
    }

    /// Only files of this kind, or of one of the kinds when called more than once. The kind of a
    /// file that is not being written follows from its name.
    #[must_use]
    pub fn of_kind(mut self, kind: FileKind) -> Self {
        self.kinds.push(kind);
        self
    }

    /// Only paths that contain `part`.
    #[must_use]
    pub fn of_path(mut self, part: &str) -> Self {
        self.path_part = Some(part.to_owned());
        self
    }

    /// Counts the operation if it meets the conditions. Returns whether the fault strikes it.
    pub(crate) fn strikes(&mut self, op: OpKind, kind: FileKind, path: &Path) -> bool {
        let part = self.path_part.as_deref();
        let meets = (self.ops.is_empty() || self.ops.contains(&op))
            && (self.kinds.is_empty() || self.kinds.contains(&kind))
            && (!self.changes_only || op.changes_disk())
            && part.is_none_or(|part| path.to_string_lossy().contains(part));
        if !meets {
            return false;
        }
        let index = self.seen;
        self.seen += 1;
        self.when.strikes(index)
    }
}

impl FaultRule {
    /// The next delay, if the fault is one.
    pub(crate) fn delay(&mut self) -> Option<Duration> {
        let Fault::Slow { least, most } = self.fault else {
            return None;
        };
        Some(draw_delay(&mut self.delays, least, most))
    }
}

/// The kind of a file by its name.
pub(crate) fn kind_of(path: &Path) -> FileKind {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if name.starts_with("MANIFEST-") {
        return FileKind::Manifest;
    }
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("log") => FileKind::Wal,
        Some("sst" | "ldb") => FileKind::Table,
        Some("blob") => FileKind::Blob,
        _ => FileKind::Other,
    }
}
