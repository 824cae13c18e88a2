//! One file of the in-memory disk: its content as programs see it, its durable content, and the changes between
//! the two in order.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use drumlin_base::rng::Rng;

/// Writes up to this long may be torn so that a single bit differs.
const MENDED_BYTES: u64 = 512;

/// The unsynced changes that a crash keeps. Except for the first three, each unsynced change of
/// names is kept or lost by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashPolicy {
    /// None: the synced state exactly.
    KeepNothing,
    /// All that reached the system: the process was killed, the machine runs on. Changes that were
    /// not durable still are not: a power cut that follows may lose them.
    KeepAll,
    /// Those up to some moment, in order over all files and names.
    PrefixInTime,
    /// Of each file any subset of its changed sectors, and a size between the old and the new.
    RandomSectors {
        /// Bytes that are written whole or not at all: 512 or 4096.
        sector: u32,
    },
    /// The new sizes, with zeros for the new data.
    LengthOnly,
    /// The changed data, but no file longer than it was.
    DataOnlyOldLength,
    /// All data but a part of the last write to each file.
    TornLastWrite,
    /// Changed sectors are as they should be, as they were, or noise.
    GarbageInUnsynced,
}

impl CrashPolicy {
    /// Every policy once, for tests that try all.
    pub const ALL: [Self; 9] = [
        Self::KeepNothing,
        Self::KeepAll,
        Self::PrefixInTime,
        Self::RandomSectors { sector: 512 },
        Self::RandomSectors { sector: 4096 },
        Self::LengthOnly,
        Self::DataOnlyOldLength,
        Self::TornLastWrite,
        Self::GarbageInUnsynced,
    ];
}

/// The bytes of a file. The file may be longer than `bytes`; the rest are zeros, so that reserved
/// space costs no memory. Clones share the bytes until one is changed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Image {
    bytes: Arc<Vec<u8>>,
    size: u64,
}

impl Image {
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) {
        let start = offset as usize;
        let end = start + data.len();
        let bytes = Arc::make_mut(&mut self.bytes);
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        let room = bytes.get_mut(start..end);
        room.expect("made as long just now").copy_from_slice(data);
        self.size = self.size.max(end as u64);
        assert!(bytes.len() as u64 <= self.size, "no byte is behind the end");
    }

    pub(crate) fn resize(&mut self, size: u64) {
        if self.bytes.len() as u64 > size {
            Arc::make_mut(&mut self.bytes).truncate(size as usize);
        }
        self.size = size;
        assert!(
            self.bytes.len() as u64 <= self.size,
            "no byte is behind the end"
        );
    }

    /// Fills `buffer` from `offset` until the file ends, and returns the number of bytes.
    pub(crate) fn read(&self, offset: u64, buffer: &mut [u8]) -> usize {
        let n = self.size.saturating_sub(offset).min(buffer.len() as u64) as usize;
        let (room, _) = buffer.split_at_mut(n);
        // Reserved space behind the bytes is zeros.
        let stored = self.bytes.get(offset as usize..).unwrap_or_default();
        let (stored, _) = stored.split_at(stored.len().min(n));
        let (copied, zeros) = room.split_at_mut(stored.len());
        copied.copy_from_slice(stored);
        zeros.fill(0);
        n
    }

    /// The bytes of a range, cut at the end of the file.
    pub(crate) fn range(&self, start: u64, end: u64) -> Vec<u8> {
        let mut out = vec![0; end.min(self.size).saturating_sub(start) as usize];
        self.read(start, &mut out);
        out
    }
}

#[derive(Clone, Copy, Debug)]
enum Change {
    Write { offset: u64, len: u64 },
    Resize { size: u64 },
}

/// The three states of a file's content. See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileData {
    now: Image,
    durable: Image,
    /// Changes since the last sync, with the moment of each.
    changes: Vec<(u64, Change)>,
    /// Names the file has now.
    pub(crate) links: u32,
}

impl FileData {
    /// A file that is on the disk with this content.
    fn on_disk(image: Image) -> Self {
        Self {
            now: image.clone(),
            durable: image,
            ..Self::default()
        }
    }

    pub(crate) fn now(&self) -> &Image {
        &self.now
    }

    pub(crate) fn write(&mut self, moment: u64, offset: u64, bytes: &[u8]) {
        self.now.write(offset, bytes);
        let len = bytes.len() as u64;
        self.changes.push((moment, Change::Write { offset, len }));
    }

    pub(crate) fn resize(&mut self, moment: u64, size: u64) {
        if size != self.now.size {
            self.now.resize(size);
            self.changes.push((moment, Change::Resize { size }));
        }
    }

    pub(crate) fn sync(&mut self) {
        for (_, change) in std::mem::take(&mut self.changes) {
            apply(&mut self.durable, &self.now, change);
        }
    }

    /// Acts as a kernel does after a failed sync: the pages count as clean though they are not on the
    /// disk. Readers see them, later syncs have nothing to do, a power cut loses them. A truncation
    /// is no page: the file system's journal has it, and a later sync waits for that.
    pub(crate) fn forget_changes(&mut self) {
        let before = self.durable.size;
        let is_cut = |change: &Change| matches!(change, Change::Resize { size } if *size < before);
        self.changes.retain(|(_, change)| is_cut(change));
    }

    /// Changes the content behind every program's back, on the disk and in memory.
    pub(crate) fn tamper(&mut self, change: impl Fn(&mut Image)) {
        change(&mut self.now);
        change(&mut self.durable);
    }

    /// The moments of the changes a power cut may lose.
    pub(crate) fn unsynced_moments(&self) -> impl Iterator<Item = u64> {
        self.changes.iter().map(|(moment, _)| *moment)
    }

    /// The file after a crash. `cut` is the last moment of [`CrashPolicy::PrefixInTime`].
    pub(crate) fn after_crash(&self, policy: CrashPolicy, cut: u64, rng: &mut Rng) -> Self {
        if policy == CrashPolicy::KeepAll {
            return Self {
                links: 0,
                ..self.clone()
            };
        }
        Self::on_disk(self.image_after_crash(policy, cut, rng))
    }

    fn image_after_crash(&self, policy: CrashPolicy, cut: u64, rng: &mut Rng) -> Image {
        let mut image = self.durable.clone();
        if self.changes.is_empty() {
            return image;
        }
        match policy {
            CrashPolicy::KeepNothing | CrashPolicy::KeepAll => {}
            CrashPolicy::PrefixInTime => {
                for &(_, change) in self.changes.iter().take_while(|(at, _)| *at <= cut) {
                    apply(&mut image, &self.now, change);
                }
            }
            CrashPolicy::RandomSectors { sector } => {
                image.resize(self.some_size(rng));
                self.keep_sectors(&mut image, sector, rng, |rng| rng.one_in(2), false);
            }
            CrashPolicy::LengthOnly => image.resize(self.now.size),
            CrashPolicy::DataOnlyOldLength => {
                self.keep_sectors(&mut image, 512, rng, |_| true, false);
            }
            CrashPolicy::TornLastWrite => self.tear_last_write(&mut image, rng),
            CrashPolicy::GarbageInUnsynced => {
                image.resize(self.some_size(rng));
                self.keep_sectors(&mut image, 512, rng, |rng| rng.one_in(2), true);
            }
        }
        image
    }

    /// The old size, the new one, or one between.
    fn some_size(&self, rng: &mut Rng) -> u64 {
        let (old, new) = (self.durable.size, self.now.size);
        match rng.below(3) {
            0 => old,
            1 => new,
            _ => old.min(new) + rng.below(old.abs_diff(new) + 1),
        }
    }

    /// Lets changed sectors within `image` reach the disk where `keeps` says so; the others stay as
    /// they were or, with `garbage`, half of them get noise in place of the written bytes. Synced
    /// bytes that share a sector with unsynced ones are safe, as disks with whole-sector writes
    /// make it.
    fn keep_sectors(
        &self,
        image: &mut Image,
        sector: u32,
        rng: &mut Rng,
        keeps: impl Fn(&mut Rng) -> bool,
        garbage: bool,
    ) {
        let sector = u64::from(sector.max(1));
        let size = image.size;
        let ranges = self.changed_ranges();
        let sectors = ranges
            .iter()
            .flat_map(|r| r.start / sector..=(r.end - 1) / sector);
        for index in sectors.collect::<BTreeSet<u64>>() {
            let (start, end) = (index * sector, ((index + 1) * sector).min(size));
            if keeps(rng) {
                image.write(start, &self.now.range(start, end));
            } else if garbage && rng.one_in(2) {
                let first = ranges.partition_point(|range| range.end <= start);
                let inside = ranges.iter().skip(first).take_while(|r| r.start < end);
                for range in inside {
                    let (from, to) = (range.start.max(start), range.end.min(end));
                    let mut noise = vec![0; to.saturating_sub(from) as usize];
                    rng.fill(&mut noise);
                    if bits_apart(&noise, &self.now.range(from, to)) == 1 {
                        noise.iter_mut().for_each(|byte| *byte = !*byte);
                    }
                    image.write(from, &noise);
                }
            }
        }
        image.resize(size);
    }

    /// The ranges written since the last sync: ascending, disjoint and not empty.
    fn changed_ranges(&self) -> Vec<Range<u64>> {
        let mut written: Vec<Range<u64>> = self
            .changes
            .iter()
            .filter_map(|(_, change)| match *change {
                Change::Write { offset, len } if len > 0 => Some(offset..offset + len),
                Change::Write { .. } | Change::Resize { .. } => None,
            })
            .collect();
        written.sort_unstable_by_key(|range| range.start);
        let mut merged: Vec<Range<u64>> = Vec::new();
        for range in written {
            match merged.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => merged.push(range),
            }
        }
        merged
    }

    /// All is kept, but of the last write only its front, its back or its middle.
    fn tear_last_write(&self, image: &mut Image, rng: &mut Rng) {
        let is_write = |change: &Change| matches!(change, Change::Write { len: 1.., .. });
        let last = self.changes.iter().rposition(|(_, c)| is_write(c));
        for (index, &(_, change)) in self.changes.iter().enumerate() {
            let torn = match change {
                Change::Write { offset, len } if Some(index) == last => {
                    let (mut from, mut to) = (rng.below(len + 1), rng.below(len + 1));
                    match rng.below(3) {
                        0 => from = 0,
                        1 => to = len,
                        _ => {}
                    }
                    (from, to) = (from.min(to), from.max(to));
                    // The size was set for the whole write: the missing bytes read as zeros.
                    image.resize(image.size.max((offset + len).min(self.now.size)));
                    let missing = [(offset, offset + from), (offset + to, offset + len)];
                    let apart = missing.map(|(start, end)| {
                        let old = image.range(start, end);
                        match old.iter().all(|byte| *byte == 0) {
                            true => 0,
                            false => bits_apart(&old, &self.now.range(start, end)),
                        }
                    });
                    if len > MENDED_BYTES && apart.iter().sum::<u64>() == 1 {
                        (from, to) = (0, 0);
                    }
                    Change::Write {
                        offset: offset + from,
                        len: to - from,
                    }
                }
                other => other,
            };
            apply(image, &self.now, torn);
        }
    }
}

/// The number of bits in which `a` and `b` differ. Noise, or the bytes present before a long write, may
/// differ from the written bytes in a single bit. Then the image gets other bytes, because a single flipped
/// bit looks like rot and is judged as rot. A short record is mended.
fn bits_apart(a: &[u8], b: &[u8]) -> u64 {
    let pairs = a.iter().zip(b);
    pairs.map(|(a, b)| u64::from((a ^ b).count_ones())).sum()
}

/// Does `change` to `image`, the bytes written taken from `source`.
fn apply(image: &mut Image, source: &Image, change: Change) {
    match change {
        Change::Write { offset, len } => {
            // Empty where the file was cut since: the cut comes later in the list.
            let bytes = source.range(offset, offset + len);
            if !bytes.is_empty() {
                image.write(offset, &bytes);
            }
        }
        Change::Resize { size } => image.resize(size),
    }
}
