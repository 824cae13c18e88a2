//! Creating and dropping column families.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use drumlin_base::{Error, Result, limits};
use drumlin_memtable::Memtable;

use crate::compaction::InFlight;
use crate::db::engine::{Engine, FamilyState, State};
use crate::family::column_family::Family;
use crate::family::super_version::SuperVersion;
use crate::options::settings::FamilyOptions;
use crate::version::{Version, VersionSet};

impl FamilyState {
    /// A family as it stands after recovery or creation: an empty memtable over `version`.
    pub(crate) fn new(family: Arc<Family>, version: Arc<Version>, wal: u64) -> Self {
        let mutable = family.fresh_memtable();
        let mut state = Self {
            family,
            mutable,
            mutable_wal: wal,
            immutables: VecDeque::new(),
            version,
            flushing: false,
            in_flight: InFlight::default(),
            installs: 0,
            no_room_at: None,
        };
        state.install();
        state
    }
}

impl Engine {
    /// What all handles of a family share, before its state exists.
    pub(crate) fn make_family(
        &self,
        id: u32,
        name: &str,
        mut options: FamilyOptions,
    ) -> Arc<Family> {
        options.keep_to(self.vintage, &self.options.tuning);
        let tables = self
            .table_cache
            .for_family(options.order.clone(), options.prefix_extractor.clone());
        let view = empty_view(&options);
        Family::new(
            (id, name),
            options,
            &self.options,
            (tables, &self.blob_cache),
            (self.store, &self.budget),
            view,
        )
    }

    pub(crate) fn create_family(&self, name: &str, options: FamilyOptions) -> Result<Arc<Family>> {
        if self.leveldb {
            return Err(Error::not_supported(
                "column families in a LevelDB directory",
            ));
        }
        self.check_writable()?;
        if name.is_empty() || name.len() > limits::NAME_BYTES_MAX {
            return Err(Error::invalid_argument(
                "a column family needs a name of 1 to 65536 bytes",
            ));
        }
        options.validate()?;
        self.lead_alone(|leader| {
            self.check_open()?;
            let mut state = self.lock_state();
            let wal = leader.wal.number();
            let order = options.order.clone();
            let from = wal + u64::from(drumlin_base::bug!("family-begins-a-wal-late"));
            let id = self.edit_manifest(&mut state, |set| set.add_family(name, order, from))?;
            let family = self.make_family(id, name, options);
            let version = current_version(&state.versions, id)?;
            state
                .families
                .insert(id, FamilyState::new(Arc::clone(&family), version, wal));
            self.publish_families(&state);
            self.rewrite_options(&state);
            Ok(family)
        })
    }

    pub(crate) fn drop_family(&self, family: &Arc<Family>) -> Result<()> {
        if family.id == 0 {
            return Err(Error::invalid_argument(
                "the default family cannot be dropped",
            ));
        }
        self.lead_alone(|_leader| {
            self.check_open()?;
            family.check_alive()?;
            let mut state = self.lock_state();
            self.edit_manifest(&mut state, |set| set.drop_family(family.id))?;
            family.dropped.store(true, Ordering::Release);
            // Walks that wait there own the family.
            if !drumlin_base::bug!("dropped-walks-kept") {
                family.reads.walks.close();
            }
            self.full.remove(family.id);
            state.families.remove(&family.id);
            self.publish_families(&state);
            self.rewrite_options(&state);
            self.changed.notify_all();
            Ok(())
        })
    }

    /// Tells the OPTIONS file of the families there are now. The MANIFEST has been written, so a
    /// failure here is no failure of the operation.
    fn rewrite_options(&self, state: &State) {
        if let Err(error) = self.write_options(state) {
            tracing::warn!(%error, "the OPTIONS file does not tell of the present families");
            self.tell(&error);
        }
    }
}

/// What readers see before anything is known of a family.
pub(crate) fn empty_view(options: &FamilyOptions) -> Arc<SuperVersion> {
    let memtable = Arc::new(Memtable::new(options.order.clone()));
    SuperVersion::new(memtable, Vec::new(), Arc::new(Version::empty()), 0)
}

/// The present version of family `id`.
pub(crate) fn current_version(versions: &VersionSet, id: u32) -> Result<Arc<Version>> {
    match versions.family(id) {
        Some(family) => Ok(Arc::clone(&family.current)),
        None => Err(Error::invalid_argument(format!(
            "there is no column family {id}"
        ))),
    }
}
