//! How a follower goes on: from what its store shows to what the writer's files have.
//!
//! A round reads the MANIFEST, then the WAL files that its versions need, then looks at the MANIFEST again. If that says
//! no more than what tables were rewritten to, the versions and what was read of the WAL are one moment: a writer removes
//! or reuses a WAL, takes tables in and makes families only with an edit that says so, and before what it does next. If
//! it says more, the round is repeated; what was read stays.
//!
//! Readers see nothing of a round until its end. Then the newest sequence number is shown first and the versions after
//! it, because a version may lack what only an older number needs; between the two a read of one family is of the moment
//! at which its memtables ended, and what shows several families at once waits ([`crate::store::store::Store::settled`]).
//!
//! What a round cannot make sense of (another MANIFEST, a WAL that does not go on, damage, files that stay away) is for an
//! opening, which judges it; the store then takes over what that has.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use drumlin_base::{Error, ErrorKind, Result, SeqNo};

use crate::db::engine::Engine;
use crate::db::settle::may_pass;
use crate::db::{reader, recover};
use crate::files::held_files::HeldFiles;
use crate::maintenance::families::make_family;
use crate::options::settings::{FamilyOptions, Options};
use crate::options::stored as stored_options;
use crate::store::state::{FamilyState, State};
use crate::version::{NewFiles, VersionSet};
use crate::wal::follow::{Reading, WalFollow};
use crate::write::batch::BatchPart;

/// How many rounds catching up takes at most. Beside a writer with memtables of 64 KiB a few are usual.
const ROUNDS_MAX: usize = 1000;
/// Rounds in a row that failed before an opening has to say why.
const FAILURES_MAX: usize = 8;
/// Rounds for which the OPTIONS file may lack a family that the MANIFEST has.
const UNTOLD_MAX: usize = 100;
/// Pause before a round that is repeated once more.
const PAUSE: Duration = Duration::from_millis(1);

/// What a round came to.
enum Round {
    /// The store shows a moment after the round began.
    Done,
    /// There is more than one round reads: the store shows what was read, where that is a moment.
    Part,
    /// The writer went on meanwhile.
    Again,
    /// An opening has to judge.
    Reopen(&'static str),
}

/// See the module.
pub(super) struct Following {
    engine: Arc<Engine>,
    options: Options,
    held: Arc<HeldFiles>,
    versions: VersionSet,
    /// Files of `versions` that are not held yet.
    unheld: NewFiles,
    wals: WalFollow,
    sections: recover::Sections,
    /// Rounds in which the OPTIONS file lacked a family.
    untold: usize,
    /// Whether the store shows other versions.
    is_changed: bool,
}

impl Following {
    /// Goes on from what `engine` shows, which was opened with `options` to follow and holds `held`.
    pub(super) fn new(
        engine: &Arc<Engine>,
        held: Arc<HeldFiles>,
        options: Options,
    ) -> Result<Self> {
        let store = &engine.store;
        let versions = store.lock_state().versions.take_reader();
        let versions = versions.ok_or_else(|| lost(&store.id.dir))?;
        held.release_wals();
        Ok(Self {
            engine: Arc::clone(engine),
            wals: wals_of(engine, &options),
            sections: sections_of(engine),
            options,
            held,
            versions,
            unheld: NewFiles::default(),
            untold: 0,
            is_changed: true,
        })
    }

    /// Shows what was there when this was called, or more; up to which sequence number.
    ///
    /// # Errors
    /// As opening for reading; `Aborted` where the writer's directory has less than what was shown.
    pub(super) fn catch_up(&mut self) -> Result<SeqNo> {
        let mut failures = 0;
        for round in 0..ROUNDS_MAX {
            match self.round() {
                Ok(Round::Done) => return Ok(self.engine.store.visible_seqno()),
                Ok(Round::Again) => failures = 0,
                Ok(Round::Part) => {
                    failures = 0;
                    continue;
                }
                Ok(Round::Reopen(reason)) => {
                    tracing::debug!(reason, "the follower opens the database anew");
                    return self.reopen();
                }
                Err(error) if !may_pass(&error) => return Err(error),
                Err(_) if failures == FAILURES_MAX => return self.reopen(),
                Err(_) => failures += 1,
            }
            if round > FAILURES_MAX {
                self.options.env.clock.sleep(PAUSE);
            }
        }
        let message = "the writer is faster than it can be followed";
        Err(Error::new(ErrorKind::Busy, message).with_file(&self.engine.store.id.dir))
    }

    fn round(&mut self) -> Result<Round> {
        if !self.versions.look_on()? {
            return Ok(Round::Reopen("there is another MANIFEST"));
        }
        let options = &self.options;
        let new = self
            .versions
            .take_in(&|name, order| stored_options::order_of(options, name, order))?;
        self.is_changed |= !new.is_nothing;
        self.unheld.extend(new);
        self.versions.check_new(&mut self.unheld)?;
        self.held
            .take_models(&self.engine.store.id.dir, &self.versions)?;
        if !self.make_families()? {
            return Ok(Round::Again);
        }
        let is_whole = match self.read_wals()? {
            Reading::Whole => true,
            Reading::Part => false,
            Reading::Early => return Ok(Round::Again),
            Reading::Diverged(reason) => return Ok(Round::Reopen(reason)),
        };
        if !self.versions.look_on()? || self.versions.has_turned() {
            return Ok(match is_whole {
                true => Round::Again,
                false => Round::Part,
            });
        }
        let (read, in_tables) = (self.wals.last_seqno(), self.versions.last_seqno());
        // Tables may lack what only a number before theirs needs.
        if is_whole || read >= in_tables {
            self.show(read.max(in_tables));
        }
        Ok(match is_whole {
            true => Round::Done,
            false => Round::Part,
        })
    }

    /// Makes the families that the store does not have. They are shown at the end of the round. False where it is not yet
    /// known what they are like.
    fn make_families(&mut self) -> Result<bool> {
        let store = &self.engine.store;
        let missing = {
            let state = store.lock_state();
            let found = self.versions.families().values();
            let missing = found.filter(|found| !state.families.contains_key(&found.id));
            missing.cloned().collect::<Vec<_>>()
        };
        if missing.is_empty() {
            return Ok(true);
        }
        let stored = stored_options::read(&store.id.dir, &self.options)?;
        for found in missing {
            let mut family = stored_options::of_order(&self.options, Some(found.order.name()));
            match stored.as_ref().map(|file| file.family(&found.name)) {
                Some(Some(section)) => {
                    let style = self.options.compaction_style;
                    stored_options::complete(&mut family, section, style);
                }
                // It is written after the MANIFEST.
                Some(None) if self.untold < UNTOLD_MAX => {
                    self.untold += 1;
                    return Ok(false);
                }
                _ => {}
            }
            self.add_family((found.id, &found.name), family, found.log_number);
        }
        self.untold = 0;
        Ok(true)
    }

    fn add_family(&self, (id, name): (u32, &str), options: FamilyOptions, log_number: u64) {
        let store = &self.engine.store;
        let family = make_family(store, id, name, options);
        let version = Arc::new(crate::version::Version::empty());
        let state = FamilyState::new(family, version, log_number);
        store.lock_state().families.insert(id, state);
    }

    fn read_wals(&mut self) -> Result<Reading> {
        let Self {
            engine,
            versions,
            wals,
            sections,
            ..
        } = self;
        let families_max = versions.max_family_id();
        let read = wals.read_on(&versions.needs(), |wal, batch| {
            for part in batch.parts() {
                if let BatchPart::Record(record) = part?
                    && record.family > families_max
                {
                    return Ok(None);
                }
            }
            recover::apply_recovered(engine, (wal, batch), Some(families_max), sections).map(Some)
        });
        for family in self.engine.store.lock_state().families.values() {
            family.family.account(&family.mutable);
        }
        read
    }

    /// Shows the versions, and everything up to `last`.
    fn show(&mut self, last: SeqNo) {
        let Self {
            engine,
            held,
            versions,
            is_changed,
            ..
        } = self;
        let store = &engine.store;
        engine.writes.run_exclusive(|log| {
            let mut state = store.lock_state();
            let state = &mut *state;
            if *is_changed {
                store.caches.moments.forget();
            }
            log.last_seqno = log.last_seqno.max(last);
            store.published.set(log.last_seqno);
            if !std::mem::take(is_changed) {
                return;
            }
            for (id, family) in &mut state.families {
                if let Some(found) = versions.family(*id) {
                    family.flushed_elsewhere(Arc::clone(&found.current), found.log_number);
                }
            }
            show_families(engine, state, versions);
            state.versions.take_over(versions);
        });
        let (tables, blobs) = held.release_obsolete(&store.id.dir, versions);
        for table in tables {
            store.caches.table_cache.evict(table);
        }
        for blob in blobs {
            store.caches.blob_cache.evict(blob);
        }
    }

    /// Opens the database anew and takes over what that has.
    fn reopen(&mut self) -> Result<SeqNo> {
        let store = Arc::clone(&self.engine.store);
        let (opened, held) = reader::open_read_only(&store.id.dir, &self.options, true)?;
        let fresh = &opened.engine;
        let cut = fresh.store.id.recovered().report.cut.as_ref();
        if cut.is_some_and(|cut| cut.later_wals > 0) {
            let message = "the WAL has a gap, which opening the database for writing has to judge";
            return Err(Error::corruption(message).with_file(&store.id.wal_dir));
        }
        let (from, to) = (store.visible_seqno(), fresh.store.visible_seqno());
        if to < from {
            let message = format!(
                "the database went back, from the sequence number {from} to {to}: open the follower again"
            );
            return Err(Error::new(ErrorKind::Aborted, message).with_file(&store.id.dir));
        }
        let mut versions = fresh.store.lock_state().versions.take_reader();
        let mut versions = versions.take().ok_or_else(|| lost(&store.id.dir))?;
        self.wals = wals_of(fresh, &self.options);
        self.sections = sections_of(fresh);
        held.release_wals();
        self.held.take_over(&held);
        versions.succeed(&mut self.versions);
        versions.set_files(Arc::clone(&store.id.env.files));
        self.versions = versions;
        self.unheld = NewFiles::default();
        self.take_memtables(fresh);
        self.is_changed = true;
        self.show(to);
        Ok(to)
    }

    /// Has the memtables of `fresh` in place of those there are.
    fn take_memtables(&mut self, fresh: &Engine) {
        let theirs = std::mem::take(&mut fresh.store.lock_state().families);
        for (id, mut theirs) in theirs {
            let there = self.engine.store.lock_state().families.contains_key(&id);
            if !there {
                let family = &theirs.family;
                let options = family.options.clone();
                self.add_family((id, &family.name), options, theirs.mutable_oldest_wal);
            }
            let mut state = self.engine.store.lock_state();
            if let Some(family) = state.families.get_mut(&id) {
                family.mutable = Arc::clone(&theirs.mutable);
                family.mutable_oldest_wal = theirs.mutable_oldest_wal;
                family.immutables = std::mem::take(&mut theirs.immutables);
            }
        }
    }
}

/// Takes out the families that are gone, and shows those there are.
fn show_families(engine: &Engine, state: &mut State, versions: &VersionSet) {
    let before = state.families.len();
    state.families.retain(|id, family| {
        let is_there = versions.family(*id).is_some();
        if !is_there {
            family.family.dropped.store(true, Ordering::Release);
            family.family.reads.walks.close();
        }
        is_there
    });
    let shown = engine.store.families.load();
    if before != state.families.len() || !shown.keys().eq(state.families.keys()) {
        engine.store.publish_families(state);
    }
}

fn wals_of(engine: &Engine, options: &Options) -> WalFollow {
    let id = &engine.store.id;
    let files = Arc::clone(&options.env.files);
    let wals = &id.recovered().wals;
    let last = engine.store.visible_seqno();
    WalFollow::new(files, id.wal_dir.clone(), wals, last)
}

/// What is prepared in the WAL files that the opening of `engine` read.
fn sections_of(engine: &Engine) -> recover::Sections {
    let all = engine.store.prepared.all().into_iter();
    all.map(|(name, writes)| (name, Arc::unwrap_or_clone(writes)))
        .collect()
}

fn lost(dir: &Path) -> Error {
    Error::invalid_argument("the store was not opened to be followed").with_file(dir)
}
