//! Reads.

use drumlin::{ColumnFamily, Db, DbIterator, ErrorKind, ReadOptions, ReadTier, Result};

use super::World;
use crate::digest::{self, Digest};
use crate::expected::bounds;
use crate::generate::SNAPSHOTS;
use crate::op::Op;
use crate::verb::Verb;

impl World<'_> {
    /// How to read at the snapshot that `op` names, if it is there; `None` when the family is younger.
    pub(super) fn options_at(&self, op: &Op, family: &ColumnFamily) -> Option<ReadOptions> {
        let mut options = ReadOptions::default();
        if let Some(pinned) = &self.snapshots[op.at % SNAPSHOTS] {
            if !pinned.families.contains(&family.id()) {
                return None;
            }
            options.snapshot = Some(pinned.snapshot.clone());
        }
        Some(options)
    }

    pub(super) fn read(&mut self, op: &Op, family: &ColumnFamily) -> Result<String> {
        let mut options = ReadOptions::default();
        match op.verb {
            Verb::GetAt | Verb::MultiGetAt | Verb::ScanAt | Verb::IterNewAt => {
                match self.options_at(op, family) {
                    Some(at) => options = at,
                    None => return Ok("young".to_owned()),
                }
            }
            Verb::GetUncached => options.fill_cache = false,
            Verb::GetUnverified => options.verify_checksums = false,
            Verb::ScanReadahead => {
                options.fill_cache = false;
                options.readahead_bytes = 1 + (op.count % 40_000) as usize;
            }
            _ => {}
        }
        let db = self.db();
        match op.verb {
            Verb::GetHeld => {
                let value = db.get_cf(family, op.key(0), &options)?;
                let said = digest::value(value.as_deref());
                self.held.push(value);
                Ok(said)
            }
            Verb::GetCached => get_cached(db, family, op.key(0)),
            Verb::GetEveryWay => get_every_way(db, family, op.key(0)),
            Verb::MultiGet | Verb::MultiGetAt => multi_get(db, family, &op.keys, &options),
            Verb::CompactBeside => compact_beside(db, family, &op.keys),
            Verb::IterNew | Verb::IterNewAt => Ok(self.iter_new(op, family, options)),
            Verb::Scan | Verb::ScanAt | Verb::ScanReadahead => {
                scan(&mut db.iter_cf(family, options), true)
            }
            Verb::ScanBackward => scan(&mut db.iter_cf(family, options), false),
            Verb::ScanBounded => {
                (options.lower_bound, options.upper_bound) = bounds(op);
                let mut iterator = db.iter_cf(family, options);
                let forward = scan(&mut iterator, true)?;
                Ok(format!("{forward}; {}", scan(&mut iterator, false)?))
            }
            Verb::ScanPrefix => self.scan_prefix(family, op.key(0)),
            Verb::ScanBySeeks => scan_by_seeks(db, family),
            Verb::ScanCached => scan_cached(db, family),
            Verb::ListFamilies => self.list_families(),
            _ => {
                let value = db.get_cf(family, op.key(0), &options)?;
                Ok(digest::value(value.as_deref()))
            }
        }
    }

    pub(super) fn read_dropped(&self, op: &Op) -> Result<String> {
        let Some(family) = &self.dropped else {
            return Ok("none".to_owned());
        };
        let options = ReadOptions::default();
        let value = self.db().get_cf(family, op.key(0), &options)?;
        let rows = scan(&mut self.db().iter_cf(family, options), true)?;
        Ok(format!("{}; {rows}", digest::value(value.as_deref())))
    }

    fn list_families(&self) -> Result<String> {
        let mut open: Vec<String> = self
            .db()
            .families()
            .iter()
            .map(|f| f.name().into())
            .collect();
        open.sort();
        let options = self.disk.options(&self.choice);
        let mut on_disk = Db::list_families(self.disk.dir(), &options.env)?;
        on_disk.sort();
        match open == on_disk {
            true => Ok(open.join(" ")),
            false => Ok(format!("open {open:?}, on disk {on_disk:?}")),
        }
    }

    /// Rows that begin with `prefix`: by the tables' prefix filters where they know such prefixes.
    fn scan_prefix(&self, family: &ColumnFamily, prefix: &[u8]) -> Result<String> {
        let filtered = self.choice.prefix == Some(prefix.len());
        let mut iterator = self.db().iter_cf(
            family,
            ReadOptions {
                prefix_same_as_start: filtered,
                ..ReadOptions::default()
            },
        );
        let descending = family.name().starts_with('r');
        match (filtered, descending) {
            (false, true) => iterator.seek_to_first(),
            // In descending order the prefix itself is the last key that has it.
            (true, true) => iterator.seek(&[prefix, &[0xFF; 64]].concat()),
            (_, false) => iterator.seek(prefix),
        }
        let mut digest = Digest::new();
        while iterator.valid() {
            if iterator.key().starts_with(prefix) {
                digest.add(iterator.key());
                digest.add(iterator.try_value()?);
            } else if !descending {
                break;
            }
            iterator.next();
        }
        iterator.status()?;
        Ok(digest.text())
    }
}

/// Every row, walked one way.
pub(super) fn scan(iterator: &mut DbIterator, forward: bool) -> Result<String> {
    let mut digest = Digest::new();
    match forward {
        true => iterator.seek_to_first(),
        false => iterator.seek_to_last(),
    }
    while iterator.valid() {
        digest.add(iterator.key());
        digest.add(iterator.try_value()?);
        match forward {
            true => iterator.next(),
            false => iterator.prev(),
        }
    }
    iterator.status()?;
    Ok(digest.text())
}

/// Every family with all its rows.
pub(super) fn everything(db: &Db, shown: fn(&str) -> bool) -> Result<String> {
    let mut families = db.families();
    families.sort_by(|a, b| a.name().cmp(b.name()));
    let mut said = Vec::new();
    for family in families {
        let rows = scan(&mut db.iter_cf(&family, ReadOptions::default()), true)?;
        if shown(&rows) {
            said.push((family.name().to_owned(), rows));
        }
    }
    Ok(digest::families(said))
}

fn multi_get(
    db: &Db,
    family: &ColumnFamily,
    keys: &[Vec<u8>],
    options: &ReadOptions,
) -> Result<String> {
    let values = db.multi_get_cf(family, keys, options);
    let values = values.into_iter().collect::<Result<Vec<_>>>()?;
    Ok(digest::values(values.iter().map(Option::as_deref)))
}

fn get_cached(db: &Db, family: &ColumnFamily, key: &[u8]) -> Result<String> {
    let cached = ReadOptions {
        tier: ReadTier::BlockCache,
        ..ReadOptions::default()
    };
    let want = db.get_cf(family, key, &ReadOptions::default())?;
    match db.get_cf(family, key, &cached) {
        Err(error) if error.kind() == ErrorKind::Incomplete => {}
        Err(error) => return Err(error),
        Ok(found) if found.as_deref() == want.as_deref() => {}
        Ok(found) => return Ok(format!("cached {}", digest::value(found.as_deref()))),
    }
    Ok("right".to_owned())
}

/// Get, multi-get, a walk, and each at a snapshot: one answer.
fn get_every_way(db: &Db, family: &ColumnFamily, key: &[u8]) -> Result<String> {
    let at = ReadOptions {
        snapshot: Some(db.snapshot()),
        ..ReadOptions::default()
    };
    let mut answers = Vec::new();
    for options in [ReadOptions::default(), at] {
        answers.push(db.get_cf(family, key, &options)?.map(|v| v.to_vec()));
        for found in db.multi_get_cf(family, &[key, key], &options) {
            answers.push(found?.map(|v| v.to_vec()));
        }
        let mut iterator = db.iter_cf(family, options);
        for forward in [true, false] {
            match forward {
                true => iterator.seek(key),
                false => iterator.seek_for_prev(key),
            }
            iterator.status()?;
            let there = iterator.valid() && iterator.key() == key;
            let value = there.then(|| iterator.try_value().map(<[u8]>::to_vec));
            answers.push(value.transpose()?);
        }
    }
    let first = answers.first().cloned().flatten();
    match answers.iter().all(|answer| *answer == first) {
        true => Ok(digest::value(first.as_deref())),
        false => {
            let said: Vec<_> = answers
                .iter()
                .map(|a| digest::value(a.as_deref()))
                .collect();
            Ok(format!("answers differ: {said:?}"))
        }
    }
}

fn compact_beside(db: &Db, family: &ColumnFamily, keys: &[Vec<u8>]) -> Result<String> {
    let options = ReadOptions::default();
    std::thread::scope(|scope| {
        let compaction = scope.spawn(|| db.compact_range(family, None, None));
        let said = multi_get(db, family, keys, &options)?;
        let mut single = Vec::new();
        for key in keys {
            single.push(db.get_cf(family, key, &options)?);
        }
        let again = digest::values(single.iter().map(Option::as_deref));
        compaction.join().expect("compactions do not panic")?;
        match again == said {
            true => Ok(said),
            false => Ok(format!("gets say {again}, multi-get {said}")),
        }
    })
}

/// Every row, each found by a seek from the one before.
fn scan_by_seeks(db: &Db, family: &ColumnFamily) -> Result<String> {
    let mut digest = Digest::new();
    let mut iterator = db.iter_cf(family, ReadOptions::default());
    iterator.seek_to_first();
    while iterator.valid() {
        let key = iterator.key().to_vec();
        digest.add(&key);
        digest.add(iterator.try_value()?);
        iterator.seek(&key);
        if iterator.valid() {
            iterator.next();
        }
    }
    iterator.status()?;
    Ok(digest.text())
}

/// Checks that a walk over cached blocks alone gives a prefix of all rows.
fn scan_cached(db: &Db, family: &ColumnFamily) -> Result<String> {
    let mut all = db.iter_cf(family, ReadOptions::default());
    let mut cached = db.iter_cf(
        family,
        ReadOptions {
            tier: ReadTier::BlockCache,
            ..ReadOptions::default()
        },
    );
    all.seek_to_first();
    cached.seek_to_first();
    while cached.valid() {
        if !all.valid() || all.key() != cached.key() {
            return Ok(format!("{:?} is not there", cached.key()));
        }
        match cached.try_value() {
            Ok(value) if value != all.try_value()? => return Ok("a wrong value".to_owned()),
            Err(error) if error.kind() != ErrorKind::Incomplete => return Err(error),
            _ => {}
        }
        all.next();
        cached.next();
    }
    all.status()?;
    match cached.status() {
        Err(error) if error.kind() == ErrorKind::Incomplete => {}
        Err(error) => return Err(error),
        Ok(()) if all.valid() => return Ok("it ended early and said nothing".to_owned()),
        Ok(()) => {}
    }
    Ok("right".to_owned())
}
